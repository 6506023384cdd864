"""Actions of any shape and precision, as TD3 takes them."""

import numpy as np
import pytest
from every_method import each_kind
from gymnasium import spaces
from small import make_small
from spaces_to_learn_in import RandomEnv
from stable_baselines3.common.vec_env import DummyVecEnv
from tuning import saved

from sb3_cesd.registry import METHODS

SPACES = {
    "matrix": spaces.Box(-1, 1, (2, 2)),
    "row": spaces.Box(-1, 1, (1, 2)),
    "scalar": spaces.Box(-2, 1, ()),
    "other bounds": spaces.Box(np.array([[0, -3], [2, -1]], np.float32), np.array([[1, 5], [9, 1]], np.float32)),
    "double": spaces.Box(-2.0, 3.0, (2,), np.float64),
}
OBS = np.array([0.1, -0.5, 0.3], np.float32)


@each_kind
@pytest.mark.parametrize(("n_envs", "name"), list(zip([1, 3, 1, 3, 1], SPACES, strict=True)))
def test_any_shape_trains_predicts_and_loads(method, n_envs, name):
    """The environment itself checks shape, type and bounds of every action."""
    space = SPACES[name]
    env = DummyVecEnv([lambda: RandomEnv(action_space=space)] * n_envs)
    model = make_small(method, env).learn(40 + 20 * n_envs)
    assert model._n_updates > 0 and model.action_dim == int(np.prod(space.shape))
    loaded = method.load(saved(model), DummyVecEnv([lambda: RandomEnv(action_space=space)] * n_envs), device="cpu")
    loaded.learn(50)
    loaded = method.load(saved(model), device="cpu")
    for observations in (OBS, np.stack([OBS, 2 * OBS, -OBS])):
        expected_shape = (*observations.shape[:-1], *space.shape)
        for skill in (None, 2):
            actions, _ = model.predict(observations, skill=skill, deterministic=True)
            assert actions.shape == expected_shape and actions.dtype == space.dtype
            assert all(space.contains(np.asarray(action)) for action in np.reshape(actions, (-1, *space.shape)))
            assert (loaded.predict(observations, skill=skill, deterministic=True)[0] == actions).all()


@pytest.mark.parametrize("skill", [1, "best"])
def test_a_task_with_a_matrix_of_actions(skill):
    pretrained = make_small(METHODS["cesd"], RandomEnv(action_space=SPACES["matrix"])).learn(60)
    task = RandomEnv(action_space=SPACES["matrix"])
    model = METHODS["cesd"].from_pretrained(saved(pretrained), task, skill=skill, learning_starts=40, device="cpu").learn(60)
    assert model.predict(OBS, deterministic=True)[0].shape == (2, 2) and len(task.actions) == 60
