"""RL Zoo's evaluations of a pre-training, during training and of a trial: by the skills."""

import numpy as np
import optuna
import pytest
import rl_zoo3.exp_manager
from rl_zoo import train
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sb3_cesd import CeSD
from sb3_cesd.metrics import play_and_score
from sb3_cesd.zoo import register

register()

METRICS = {"skill_score", "coarse_coverage", "knn_accuracy", "particle_entropy", "mean_reward", "on_cluster_share"}


def make_callback(env, n_eval_episodes=8, eval_freq=50, **kwargs):
    return rl_zoo3.exp_manager.EvalCallback(env, n_eval_episodes=n_eval_episodes, eval_freq=eval_freq, **kwargs)


def test_best_model_follows_the_skills(make_model, tmp_path, capsys):
    """Also where the reward of the environment falls."""
    model = make_model()
    callback = make_callback(make_vec_env("Pendulum-v1", 8), best_model_save_path=tmp_path, log_path=tmp_path)
    scores = iter([0.3, 0.2, 0.5])

    def score(model, env, n_episodes, deterministic):
        metrics, rollouts = play_and_score(model, env, n_episodes, 10, deterministic=deterministic)
        return {**metrics, "skill_score": next(scores)}, rollouts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sb3_cesd.callbacks.play_and_score", score)
        model.learn(150, callback=callback)
    output = capsys.readouterr().out
    assert output.count("New best skill score!") == 2 and "New best mean reward" not in output
    assert "Eval num_timesteps=100, skill_score=0.2 (knn_accuracy=" in output
    assert (callback.best_mean_reward, callback.last_mean_reward) == (0.5, 0.5)
    assert CeSD.load(tmp_path / "best_model").num_timesteps == 150
    with np.load(tmp_path / "evaluations.npz") as written:
        assert written["timesteps"].tolist() == [50, 100, 150] and written["skill_score"].tolist() == [0.3, 0.2, 0.5]
        assert written["results"].shape == written["ep_lengths"].shape == (3, 8)
        assert written["mean_reward"].tolist() == written["results"].mean(axis=1).tolist()
        assert METRICS <= set(written)


@pytest.mark.parametrize("ent_coef", [None, 0.1])
def test_training_goes_on_as_without_evaluations(make_model, ent_coef):
    """Also with a stochastic policy, which draws from the generator that training draws from."""
    often, never = (
        make_model(ent_coef=ent_coef).learn(
            100, callback=make_callback(make_vec_env("Pendulum-v1", 8), eval_freq=freq, verbose=0, deterministic=False)
        )
        for freq in (50, 1000)
    )
    for name, value in never.policy.state_dict().items():
        assert (value == often.policy.state_dict()[name]).all()


@pytest.mark.parametrize("make", ["task", "ppo"])
def test_others_are_evaluated_as_ever(make_model, make, capsys):
    env = make_vec_env("Pendulum-v1")
    model = make_model(reward="extrinsic") if make == "task" else PPO("MlpPolicy", env, n_steps=32, batch_size=32)
    callback = make_callback(make_vec_env("Pendulum-v1"), n_eval_episodes=1, eval_freq=32)
    model.learn(32, callback=callback)
    assert "New best mean reward!" in capsys.readouterr().out and callback.last_mean_reward < -100


def make_trial_callback(trial, **kwargs):
    return rl_zoo3.exp_manager.TrialEvalCallback(make_vec_env("Pendulum-v1", 8), trial, eval_freq=50, **kwargs)


def test_objective_of_a_trial(make_model):
    study = optuna.create_study(direction="maximize")
    trial = study.ask()
    callback = make_trial_callback(trial, n_eval_episodes=8)
    make_model().learn(100, callback=callback)
    reported = study.trials[0].intermediate_values
    attributes = study.trials[0].user_attrs
    assert set(reported) == {1, 2} and METRICS <= set(attributes)
    assert reported[2] == callback.last_mean_reward == attributes["skill_score"] != attributes["mean_reward"]


def test_metrics_of_skills_are_logged(tmp_path):
    callback = "callback:[{'sb3_cesd.callbacks.SkillMetricsCallback':{'eval_freq':30,'n_rollouts':2,'n_steps':10}}]"
    train(tmp_path, "-n", 120, "--tensorboard-log", "tb", params=["n_envs:2", "normalize:True", callback])
    (events,) = (tmp_path / "tb").rglob("events.*")
    logged = EventAccumulator(str(events)).Reload()
    assert {"skills/knn_accuracy", "skills/total_coverage", "skills/on_cluster_share"} <= set(logged.Tags()["scalars"])
    assert [event.step for event in logged.Scalars("skills/policy_coverage")] == [60, 120]
