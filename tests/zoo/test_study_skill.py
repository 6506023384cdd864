"""All trials of a study fine-tune the same skill, and ``--trial-id`` trains with it."""

from types import SimpleNamespace

import optuna
import pytest
from huggingface_sb3 import EnvironmentName
from small import make_small
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import METRA, CeSD
from sb3_cesd.zoo.search import OF_ENTRY, SearchTrial
from sb3_cesd.zoo.studies import make_loader, start_study
from sb3_cesd.zoo.study_skill import draw_study_skill
from sb3_cesd.zoo.trained_again import load_arguments

#: More than any draw meets by luck
N_SKILLS = 1000
TASK = {"policy": "MlpPolicy", "reward": "extrinsic", "learning_starts": 20, "batch_size": 16, "warm_up": "random"}


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """A pre-trained model of many skills."""
    path = tmp_path_factory.mktemp("pretrained") / "model.zip"
    make_small(METRA, n_skills=N_SKILLS).learn(60).save(path)
    return str(path)


def manager_of(agent, seed=0, algo="metra", **entry):
    """What is asked of RL Zoo's ExperimentManager."""
    return SimpleNamespace(
        algo=algo, _hyperparams={**TASK, **entry}, custom_hyperparams=None, trained_agent=agent, device="cpu", n_envs=1,
        seed=seed, n_timesteps=100, create_envs=lambda n_envs, no_log: make_vec_env("Pendulum-v1", n_envs), storage=None,
        env_name=EnvironmentName("Pendulum-v1"), env_kwargs={}, settings_of_env={"n_envs": 1}, normalize=False,
        eval_env_kwargs={}, n_eval_episodes=5, n_evaluations=1, specified_callbacks=[],
    )  # fmt: skip


def skills_of_trials(manager, storage, n_trials=2):
    """Ask for trials as RL Zoo does, and tell which skill each fine-tunes."""
    algos, skills = {"metra": METRA}, []

    def optimize(self):
        study = optuna.create_study(storage=storage, study_name="skills", load_if_exists=True)
        for _ in range(n_trials):
            trial = study.ask()
            drawn = SearchTrial(trial, self.search_space).draw()
            make = make_loader(METRA, self.trained_agent, {})
            skills.append(make(env="Pendulum-v1", **{**self._hyperparams, **drawn}).skill)
            assert trial.user_attrs["arguments"]["skill"] == drawn["skill"]

    start_study(algos)(optimize)(manager)
    return skills


def test_trials_of_a_study_fine_tune_the_same_skill(agent, tmp_path, capsys):
    storage = f"sqlite:///{tmp_path}/study.db"
    skills = skills_of_trials(manager_of(agent, seed=1), storage)
    # Another process, or a later one
    skills += skills_of_trials(manager_of(agent, seed=2), storage)
    study = optuna.load_study(study_name="skills", storage=storage)
    (index,) = {trial.user_attrs["arguments"]["skill"] for trial in study.trials}
    assert study.trials[0].user_attrs[OF_ENTRY] and capsys.readouterr().out.count(f"All trials fine-tune skill {index}. ") == 2
    assert skills == [METRA.load(agent).skill_space.name_of(index)] * 4
    again = load_arguments(None)(manager_of(agent, seed=3), storage, "skills", 1)
    assert again["skill"] == index


def test_it_is_the_skill_that_a_training_with_the_same_seed_draws(agent):
    model = METRA.from_pretrained(agent, "Pendulum-v1", seed=7, warm_up="random")
    assert model.skill == model.skill_space.name_of(draw_study_skill(manager_of(agent, seed=7)))


def test_no_other_study_has_one(agent, tmp_path):
    assert draw_study_skill(manager_of(agent, skill="random")) is not None
    for entry in ({"skill": "best"}, {"skill": 2}, {"skill": [0.6, 0.8]}, {"reward": "intrinsic"}):
        assert draw_study_skill(manager_of(agent, **entry)) is None
    assert draw_study_skill(manager_of("")) is None
    fine_tuned = str(tmp_path / "task.zip")
    make_small(CeSD, reward="extrinsic").save(fine_tuned)
    assert draw_study_skill(manager_of(fine_tuned, algo="cesd")) is None
