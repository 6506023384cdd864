"""What RL Zoo's studies are extended by, without a study."""

from types import SimpleNamespace

import torch as th
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import set_random_seed

from sb3_cesd import CeSD
from sb3_cesd.zoo.studies import describe

ENTRY = {"policy": "MlpPolicy", "n_skills": 2, "policy_kwargs": {"net_arch": [8]}, "batch_size": 64}


def manager_of(entry, given):
    """What is asked of RL Zoo's ExperimentManager."""
    return SimpleNamespace(
        algo="cesd", _hyperparams={**entry, **given}, custom_hyperparams=given, trained_agent="", device="cpu", n_envs=1,
        n_timesteps=1000, create_envs=lambda n_envs, no_log: make_vec_env("Pendulum-v1", n_envs),
    )  # fmt: skip


def test_the_estimate_leaves_the_seed_of_a_study_alone(capsys):
    drawn = []
    for seed in (1, 2):
        set_random_seed(seed)
        describe(manager_of(ENTRY, {"batch_size": 64}), CeSD)
        drawn.append(th.rand(3))
        set_random_seed(seed)
        assert th.equal(drawn[-1], th.rand(3)), "as without the estimate"
    assert not th.equal(*drawn) and "Estimated time of a trial" in capsys.readouterr().out
