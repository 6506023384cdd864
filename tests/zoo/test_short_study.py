"""A short study finds better hyperparameters than the default, where the default was not made for the environment."""

import statistics

import optuna
import pytest
import torch as th
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import CeSD
from sb3_cesd.metrics import play_and_score
from sb3_cesd.zoo.hyperparams import read_entry
from sb3_cesd.zoo.search import SearchSpace, SearchTrial

ENV_ID = "Pendulum-v1"
#: What a user fixes to make trials short
GIVEN = {"train_freq": 10, "learning_starts": 250, "batch_size": 64, "policy_kwargs": {"net_arch": [64, 64]}}


def score(entry, arguments, seed):
    """The objective of a trial, with a seed, as studies have none."""
    model = CeSD("MlpPolicy", ENV_ID, **{**entry, **arguments}, seed=seed, device="cpu").learn(3000)
    return play_and_score(model, make_vec_env(ENV_ID, 16))[0]["skill_score"]


@pytest.mark.slow
def test_a_short_study_improves_on_the_default():
    th.set_num_threads(1)
    of_the_run = ("n_timesteps", "n_envs", "policy")
    entry = {name: value for name, value in read_entry("cesd_laptop", ENV_ID).items() if name not in of_the_run} | GIVEN
    space = SearchSpace(CeSD, entry, GIVEN)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = []
    for _ in range(4):
        trial = study.ask()
        drawn.append(SearchTrial(trial, space).draw())
        study.tell(trial, score(entry, drawn[-1], seed=0))
    # With seeds that the study has not seen: the best of few is partly luck
    scores = {
        name: [score(entry, found, seed) for seed in (1, 2)]
        for name, found in [("default", {}), ("best", drawn[study.best_trial.number])]
    }
    assert statistics.mean(scores["best"]) > statistics.mean(scores["default"]), scores
