"""Studies whose trials learn nothing warn."""

import warnings
from types import SimpleNamespace

import pytest
from small import make_small
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import CeSD
from sb3_cesd.zoo.studies import make_loader, trial_time
from sb3_cesd.zoo.trial_length import steps_before_learning

MESSAGE = r"^Trials of {} steps learn nothing, .* first {} steps .*: pass a larger -n, or a lower learning_starts with"


def time_of(n_timesteps, make=CeSD, agent="", **entry):
    """Estimate the time of a trial, as a study does before the first one."""
    manager = SimpleNamespace(
        _hyperparams={"policy": "MlpPolicy", "batch_size": 32, **entry}, n_timesteps=n_timesteps, n_envs=1, device="cpu",
        trained_agent=agent, create_envs=lambda n_envs, no_log: make_vec_env("Pendulum-v1", n_envs),
    )  # fmt: skip
    return trial_time(manager, make, {"policy_kwargs": {"net_arch": [8]}})


def test_trials_should_be_longer_than_their_warm_up():
    with pytest.warns(UserWarning, match=MESSAGE.format(300, 300)):
        time_of(300, learning_starts=300)
    with pytest.warns(UserWarning, match=MESSAGE.format(300, 4000)):
        assert time_of(300) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert time_of(301, learning_starts=300) > 0


@pytest.mark.parametrize("has_buffer", [False, True])
def test_trials_that_go_on_from_a_model_count_on(tmp_path, has_buffer):
    """With its replay buffer they learn at once."""
    agent = str(tmp_path / "model.zip")
    model = make_small(CeSD).learn(100)
    model.save(agent)
    if has_buffer:
        model.save_replay_buffer(tmp_path / "replay_buffer.pkl")
    assert steps_before_learning(CeSD.load(agent), agent) == (0 if has_buffer else 40)
    make = make_loader(CeSD, agent, {})
    if has_buffer:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert time_of(30, make, agent) > 0
    else:
        with pytest.warns(UserWarning, match=MESSAGE.format(30, 40)):
            time_of(30, make, agent)


def test_tasks_from_a_model_have_a_warm_up(tmp_path):
    """The replay buffer beside the model, of the pre-training, is of no use to them."""
    agent = str(tmp_path / "model.zip")
    model = make_small(CeSD).learn(100)
    model.save(agent)
    model.save_replay_buffer(tmp_path / "replay_buffer.pkl")
    with pytest.warns(UserWarning, match=MESSAGE.format(40, 40)):
        time_of(40, make_loader(CeSD, agent, {}), agent, reward="extrinsic")
