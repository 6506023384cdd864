"""Copies of a model, its policy and its replay buffer, whatever they are made with."""

import copy
import pickle

import cloudpickle
import numpy as np
import pytest
import torch as th
from every_method import each_kind
from learned import differences
from small import make_small
from stable_baselines3.common.env_util import make_vec_env

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)
COPY = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "cloudpickle": lambda value: cloudpickle.loads(cloudpickle.dumps(value)),
}


def learn_on(model):
    """Go on from here, from the same state of all random generators."""
    np.random.seed(7)
    th.manual_seed(7)
    model.action_space.seed(7)
    return model.learn(40, reset_num_timesteps=False)


@each_kind
@pytest.mark.parametrize("how", COPY)
def test_a_copy_learns_on_as_the_model_does(method, how):
    """Environments, clock and replay buffer are copied, too, and nothing is shared."""
    model = make_small(method, make_vec_env("Pendulum-v1", 3), skill_duration=5).learn(90)
    twin = COPY[how](model)
    assert type(twin) is method and not differences(model, twin)
    assert (twin.predict(OBS, deterministic=True)[0] == model.predict(OBS, deterministic=True)[0]).all()
    before = copy.deepcopy(twin.get_parameters())
    learn_on(model)
    assert all((value == before["policy"][name]).all() for name, value in twin.get_parameters()["policy"].items())
    learn_on(twin)
    assert twin.num_timesteps == model.num_timesteps and twin._n_updates == model._n_updates
    for name, array in model.replay_buffer._arrays().items():
        assert (twin.replay_buffer._arrays()[name] == array).all(), name
    assert not differences(model, twin)
