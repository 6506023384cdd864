import warnings

import gymnasium as gym
import numpy as np
import pytest
from learned import Memory
from stable_baselines3.common.callbacks import (
    CallbackList,
    CheckpointCallback,
    EvalCallback,
    EveryNTimesteps,
    StopTrainingOnNoModelImprovement,
)
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import CeSD, VecSkillObservation
from sb3_cesd.callbacks import SkillEvalCallback


def test_logged_figures_agree_with_each_other(make_model):
    model = make_model(alpha=2.0)
    memory = Memory(model)
    model.learn(400, log_interval=1)
    row = memory.rows[-1]
    assert row["intrinsic/reward"] == pytest.approx(row["intrinsic/entropy"] + row["intrinsic/constraint"], rel=1e-5)
    for name in ("clusters/share", "skills/share"):
        assert sum(row[f"{name}_{skill:02d}"] for skill in range(4)) == pytest.approx(1.0, rel=1e-5)
    assert 0 <= row["intrinsic/agreement"] <= 1 and 0 <= row["intrinsic/empty_clusters"] < 4


def test_episodes_that_end_at_once_are_logged_once(make_model):
    model = make_model(make_vec_env("MazeSquareC-v0", 4), skill_duration=10)
    memory = Memory(model)
    for _ in range(2):
        model.learn(400, log_interval=1)
    assert [row["time/total_timesteps"] for row in memory.rows] == [200, 400] * 2


def test_return_of_a_skill_is_that_of_the_steps_it_was_followed_in(make_model):
    """Mean reward of the steps of each skill, times the mean length of an episode; skills change within episodes."""
    model = make_model(skill_duration=7, learning_starts=10_000)
    memory = Memory(model)
    model.learn(200, log_interval=1)
    (row,) = memory.rows
    skills, rewards = model.replay_buffer.skills[:200, 0], model.replay_buffer.rewards[:200, 0]
    for skill in range(4):
        assert row[f"rollout/ep_rew_skill_{skill:02d}"] == pytest.approx(rewards[skills == skill].mean() * 200, rel=1e-4)


def test_learning_rate_schedule_reaches_every_optimizer(make_model):
    model = make_model(learning_rate=lambda progress: 1e-3 * progress + 1e-6).learn(200)
    for optimizer in (model.actor.optimizer, model.critic.optimizer, *model.intrinsic.optimizers.values()):
        assert optimizer.param_groups[0]["lr"] < 5e-5
    model = make_model(learning_rate=1e-3, prototype_kwargs={"learning_rate": 0.5}).learn(60)
    assert model.intrinsic.prototype_optimizer.param_groups[0]["lr"] == 0.5
    assert model.intrinsic.encoder_optimizer.param_groups[0]["lr"] == 1e-3


def test_evaluations_go_through_the_skills(make_model, tmp_path):
    model = make_model()
    callback = EvalCallback(
        make_vec_env("Pendulum-v1"),
        eval_freq=100,
        n_eval_episodes=4,
        log_path=str(tmp_path),
        best_model_save_path=str(tmp_path),
        verbose=0,
    )
    followed = []
    callback._log_success_callback = lambda local, _: followed.append(local["info"]["followed_skill"])
    model.learn(200, callback=CallbackList([EveryNTimesteps(100, CheckpointCallback(100, str(tmp_path))), callback]))
    assert isinstance(callback.eval_env, VecSkillObservation)
    # Two evaluations of four episodes of 200 steps, each with one skill
    assert [followed[start] for start in range(0, 1600, 200)] == [0, 1, 2, 3] * 2
    assert all(followed[step] == followed[step - step % 200] for step in range(1600))
    evaluations = np.load(tmp_path / "evaluations.npz")
    assert evaluations["results"].shape == (2, 4)
    CeSD.load(tmp_path / "best_model.zip", device="cpu").predict(np.zeros(3, np.float32))


def test_evaluation_of_a_fixed_skill(make_model):
    model = make_model()
    model.set_skill(1)
    callback = EvalCallback(make_vec_env("Pendulum-v1"), eval_freq=60, n_eval_episodes=1, verbose=0)
    model.learn(60, callback=[callback])
    assert callback.eval_env.skills.tolist() == [1]
    own = VecSkillObservation(make_vec_env("Pendulum-v1"), 4, skill=2)
    model.learn(4, callback=EvalCallback(own, eval_freq=4, n_eval_episodes=1, verbose=0))
    assert own.skills.tolist() == [2], "a wrapper of the user stays as it is"


def test_nested_callbacks_are_found(make_model):
    inner = EvalCallback(make_vec_env("Pendulum-v1"), eval_freq=1, n_eval_episodes=1, verbose=0)
    make_model().learn(60, callback=[CallbackList([EveryNTimesteps(50, inner)])])
    assert isinstance(inner.eval_env, VecSkillObservation)


@pytest.mark.parametrize("make", [lambda: gym.make("Pendulum-v1"), lambda: make_vec_env("MazeSquareA-v0", 2)])
def test_evaluation_in_the_environments_of_training_is_refused(make_model, make):
    env = make()
    with pytest.raises(ValueError, match="is the training environment"):
        make_model(env).learn(60, callback=[EvalCallback(env, eval_freq=10, verbose=0)])


@pytest.mark.parametrize(
    ("given", "kwargs", "expected"),
    [
        ({}, {}, 64),
        ({"n_eval_episodes": 5}, {}, 8),
        ({"n_eval_episodes": 10}, {}, 12),
        ({}, {"reward": "extrinsic"}, 5),
        ({"n_eval_episodes": 3}, {"reward": "extrinsic"}, 3),
    ],
)
def test_number_of_episodes_of_an_evaluation_by_skills(make_model, tmp_path, given, kwargs, expected):
    """64 of a pre-training by default, or what is passed, rounded up to at least two of each of four skills."""
    callback = SkillEvalCallback(make_vec_env("Pendulum-v1", 4), eval_freq=50, verbose=0, log_path=tmp_path, **given)
    make_model(**kwargs).learn(50, callback=callback)
    assert len(callback.evaluations_results[0]) == expected


def test_evaluations_by_skills_keep_the_best_model(make_model, tmp_path):
    callback = SkillEvalCallback(make_vec_env("Pendulum-v1"), eval_freq=100, n_eval_episodes=8, best_model_save_path=tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*not evaluated equally often")
        model = make_model().learn(200, callback=callback)
    assert (tmp_path / "best_model.zip").is_file() == (callback.best_mean_reward > -np.inf)
    assert callback.last_mean_reward == callback.evaluations_metrics["skill_score"][-1] and model.num_timesteps == 200


def test_evaluations_before_the_first_update_stop_nothing(make_model):
    stop = StopTrainingOnNoModelImprovement(max_no_improvement_evals=2)
    maze = "MazeSquareC-v0"
    callback = SkillEvalCallback(make_vec_env(maze), eval_freq=20, n_eval_episodes=8, callback_after_eval=stop)
    make_model(maze, learning_starts=60).learn(80, callback=callback)
    assert stop.n_calls == 1 and len(callback.evaluations_metrics["skill_score"]) == 4
