"""Error messages are short enough to read, and name all there is to choose from."""

import inspect
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from conftest import arguments
from gymnasium import spaces
from small import make_small
from tuning import saved

from sb3_cesd import METHODS, CeSD
from sb3_cesd.common import choices
from sb3_cesd.common.allowed import ALLOWED
from sb3_cesd.common.observations import short
from sb3_cesd.common.rules import Choice
from sb3_cesd.skill_ddpg.load_errors import without_bounds

#: Bounds that differ, so that they are shown one by one
LOW = np.r_[np.full(200, -np.inf), np.linspace(-3, 3, 200)].astype(np.float32)
WIDE = spaces.Box(LOW, np.float32(np.inf), (400,), np.float32)


class WideEnv(gym.Env):
    """Observations of 400 numbers, of which each has a bound of its own."""

    def __init__(self, observation_space=WIDE, action_space=None):
        self.observation_space = observation_space
        self.action_space = spaces.Box(-1, 1, (1,)) if action_space is None else action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(400, np.float32), {}


def message_of(function, *args, **kwargs):
    with pytest.raises(ValueError) as caught:
        function(*args, **kwargs)
    message = str(caught.value)
    assert len(message) < 450 and "inf inf" not in message
    return message


def test_spaces_are_told_by_their_shapes(pretrained):
    file = saved(pretrained)
    message = message_of(CeSD.load, file, env=WideEnv(), device="cpu")
    assert "Observation spaces do not match" in message and "(400,)" in message and "(3,)" in message
    assert message.endswith("or train a new model for this environment.")
    assert "(400,)" in message_of(pretrained.set_env, WideEnv())
    file.seek(0)
    assert "(400,)" in message_of(CeSD.from_pretrained, file, WideEnv())
    pair = spaces.Tuple([WIDE, spaces.Discrete(3)])
    assert "Tuple(Box((400,), float32), Discrete(3))" in message_of(CeSD, "MlpPolicy", WideEnv(pair), **arguments())
    assert "the action space is Tuple(Box((400,)" in message_of(CeSD, "MlpPolicy", WideEnv(WIDE, pair), **arguments())


def test_messages_keep_what_is_short():
    assert without_bounds("Box([-1. -1. -8.], [1. 1. 8.], (3,), float32)") == "Box([-1. -1. -8.], [1. 1. 8.], (3,), float32)"
    image = spaces.Box(np.arange(48, dtype=np.uint8).reshape(3, 4, 4), 255, (3, 4, 4), np.uint8)
    assert without_bounds(f"{WIDE} != {image}") == "Box([...], inf, (400,), float32) != Box([...], 255, (3, 4, 4), uint8)"
    assert short(spaces.Dict({"a": WIDE})) == "Dict(a: Box((400,), float32))"


@pytest.mark.parametrize("name", METHODS)
def test_unknown_arguments_of_a_reward_meet_all_known_ones(name):
    method = METHODS[name]
    parameters = inspect.signature(method.reward_class).parameters
    known = sorted(set(parameters) - {"obs_dim", "action_dim", "skill_space"})
    message = message_of(make_small, method, intrinsic_kwargs={"misspelt": 1})
    assert message == f"intrinsic_kwargs has no 'misspelt': use some of {', '.join(known)}."


def test_unknown_arguments_of_prototypes_meet_the_learning_rate_too(make_model):
    keys = "learning_rate, sinkhorn_iterations, sinkhorn_temperature, swap, temperature"
    message = message_of(make_model, prototype_kwargs={"rate": 1, "learning_rate": 1e-4})
    assert message == f"prototype_kwargs has no 'rate': use some of {keys}."


def test_numbers_of_numpy_are_shown_as_plain_ones(finetune):
    task = saved(finetune(skill=1).learn(60))
    assert message_of(CeSD.load, task, env="Pendulum-v1", device="cpu", skill=np.int64(3)).startswith("skill=3 does not fit")


def test_choices_of_the_table_are_those_of_the_types():
    """Of every word that the table accepts, a type checker knows the same words."""
    literals = [set(value.__args__) for value in vars(choices).values() if hasattr(value, "__args__")]
    in_table = [rule for rules in ALLOWED.values() for rule in rules.values() if isinstance(rule, Choice)]
    assert len(in_table) > 10
    for rule in in_table:
        assert set(rule.words) in literals, rule.words


def test_robots_without_dm_control_name_the_remedy():
    """As on Python 3.13, where pip leaves it out; mazes do without."""
    code = (
        "import sys; sys.modules['dm_control'] = None\n"  # an import of it fails
        "import gymnasium as gym, sb3_cesd\n"
        "gym.make('MazeSquareA-v0').reset()\n"
        "for make in (gym.make, lambda name: sb3_cesd.make_batched(name, 2), lambda name: sb3_cesd.CeSD('MlpPolicy', name)):\n"
        "    try: make('Walker-v0')\n"
        "    except ImportError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    lines = result.stdout.splitlines()
    assert len(lines) == 3, result.stdout + result.stderr
    for line in lines:
        assert "need dm_control, which is not installed: from Python 3.13 on pip leaves it out" in line
        assert 'pip install --no-deps "dm_control>=1.0.50"' in line
