import copy
import os

import pytest
import torch as th
from every_method import OTHERS
from small import RELEASED, arguments
from stable_baselines3.common.utils import set_random_seed
from tuning import saved

from sb3_cesd import CeSD
from sb3_cesd.common import buffers
from sb3_cesd.common.cuda import DeviceArrays
from sb3_cesd.registry import METHODS

# Workers run side by side: one thread each
th.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items):
    """What all methods share is tested with each of them, but in the fast tests only with those that differ."""
    others = [each for name in OTHERS for each in (name, METHODS[name])]
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if any(value in others for value in values if isinstance(value, str | type)):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def folder_of_loggers(tmp_path_factory):
    """Loggers of SB3 share a folder that pytest removes, instead of leaving one each in the folder for temporary files."""
    os.environ["SB3_LOGDIR"] = str(tmp_path_factory.mktemp("loggers"))


@pytest.fixture
def tiny():
    """Arguments of a model that trains in a second; they may be changed."""
    return arguments()


@pytest.fixture(scope="session")
def make_model():
    """Make a small model on Pendulum-v1, or on another environment."""

    def make(env="Pendulum-v1", seed=0, **kwargs):
        return CeSD("MlpPolicy", env, seed=seed, **arguments(**kwargs))

    return make


@pytest.fixture
def make_released(make_model):
    """The same with the released code's method; arguments that are dicts are merged with it."""

    def make(env="Pendulum-v1", seed=0, **kwargs):
        merged = {name: {**value, **kwargs.pop(name, {})} for name, value in RELEASED.items()}
        return make_model(env, seed, **{"shared_value": False, **merged, **kwargs})

    return make


@pytest.fixture(scope="session")
def pretrained_once(make_model):
    """A small model with skills, the same for all tests."""
    return make_model(constraint_kwargs={"start": 0.0}).learn(100)


@pytest.fixture
def pretrained(pretrained_once):
    """A small model with skills; it may be changed."""
    set_random_seed(0)
    return copy.deepcopy(pretrained_once)


@pytest.fixture
def finetune(pretrained):
    """Make a model to fine-tune of the pre-trained one."""

    def make(env="Pendulum-v1", seed=3, model=pretrained, **kwargs):
        kwargs = {"device": "cpu", "learning_starts": 40, "warm_up": "random", **kwargs}
        return type(model).from_pretrained(saved(model), env, seed=seed, **kwargs)

    return make


@pytest.fixture
def copied(monkeypatch):
    """Tensors of replay buffers are copies of their arrays, as on a GPU."""
    monkeypatch.setattr(buffers, "DeviceArrays", lambda device: DeviceArrays(device, shared=False))


@pytest.fixture(scope="session")
def zoo_run(tmp_path_factory):
    """A folder with a run of RL Zoo that used most of its options, normalised and with checkpoints; and what it printed."""
    from rl_zoo import CHECKPOINTS, SMALL, run

    folder = tmp_path_factory.mktemp("zoo")
    output = run(
        folder, "-n", 400, "--eval-freq", 200, "--eval-episodes", 1, "--save-freq", 200, "--save-replay-buffer", "-P",
        "--seed", 1, "--log-interval", 1, "-params", *SMALL, "n_envs:1", "normalize:True", CHECKPOINTS,
    )  # fmt: skip
    return folder, output
