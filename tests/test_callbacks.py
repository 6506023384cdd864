"""Metrics of skills that are logged during training."""

import csv

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from learned import Memory
from small import make_small
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from sb3_cesd import APT, DADS, VecSkillObservation
from sb3_cesd.callbacks import SkillMetricsCallback
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import maze_coverage

PLAIN = {"knn_accuracy", "particle_entropy"}
PLACES = {"policy_coverage", "mutual_information", "total_coverage"}
MOTION = {"moving_share", "knn_accuracy_standardized"}
ROBOT = MOTION | {"torso_speed", "queue_coverage", "knn_accuracy_places"}
CLUSTERS = {"on_cluster_share", "cluster_size_entropy"}


def learn(model, steps, eval_env=None, callback=None, **kwargs):
    memory = Memory(model)
    kwargs = {"eval_freq": steps // 2, "n_rollouts": 2, "n_steps": 10, **kwargs}
    callback = callback or SkillMetricsCallback(eval_env, **kwargs)
    model.learn(steps, callback=callback, log_interval=1)
    model.logger.dump()
    of_skills = [
        {name.removeprefix("skills/"): row[name] for name in row if name.startswith("skills/")} for row in memory.rows
    ]
    rows = [{name: row[name] for name in row if not name.startswith("share")} for row in of_skills]
    return [row for row in rows if row][-1], callback


@pytest.mark.parametrize(
    ("env", "names"),
    [("MazeSquareC-v0", PLACES | CLUSTERS), ("Walker-v0", PLACES | ROBOT | CLUSTERS), ("Pendulum-v1", MOTION | CLUSTERS)],
)
def test_what_is_logged(make_model, env, names):
    row, callback = learn(make_model(env), 100)
    assert set(row) == PLAIN | names and 0 <= row["on_cluster_share"] <= 1 and 0 <= row["knn_accuracy"] <= 1
    if env == "Walker-v0":
        assert row["policy_coverage"] >= 1 and row["total_coverage"] >= row["queue_coverage"] >= 1
    if env == "MazeSquareC-v0":
        assert callback._env.num_envs == 8, "all rollouts at once"


@pytest.mark.parametrize(("method", "skills"), [(APT, {"skill_type": "sphere", "skill_dim": 2}), (DADS, {})])
def test_methods_without_clusters_and_with_any_skills(method, skills):
    row, _ = learn(make_small(method, MazeVecEnv("square_c", 5), **skills), 100, eval_freq=10)
    assert set(row) == PLAIN | PLACES and 0 < row["mutual_information"] <= np.log(4) + 1e-9


@pytest.mark.parametrize("kind", ["plain", "normalized", "normalized around the skill"])
def test_total_coverage_is_that_of_the_states_of_training(make_model, kind):
    plain = MazeVecEnv("square_c", 5)
    if kind == "plain":
        env = plain
    elif kind == "normalized":
        env = VecNormalize(plain)
    else:
        env = VecNormalize(VecSkillObservation(plain, 4), norm_obs_keys=["observation"])
    model = make_model(env)
    row, callback = learn(model, 250, eval_freq=50)
    # An episode in each environment, its end, and the first places of the next
    reached = model.replay_buffer.next_observations["observation"][:50]
    states = np.concatenate([*reached, plain.position[:, :2]])
    # With statistics, the end of an episode is now and then rounded into the next bin
    expected = maze_coverage(states, plain.layout)
    assert row["total_coverage"] == (expected if kind == "plain" else pytest.approx(expected, abs=2e-4)) and expected > 0
    # What training has covered is kept if it goes on
    before = callback._coverage.total
    model.learn(50, callback=callback, reset_num_timesteps=False)
    assert callback._coverage.total > before
    model.learn(50, callback=callback)
    assert callback._coverage.total < before


class Leaps(gym.Env):
    """Each episode is one step to another place."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    position = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        place = self.np_random.uniform(1, 9, 2)
        return np.zeros(2, np.float32), 0.0, True, False, {"position": place}


def test_coverage_counts_the_ends_of_episodes_that_info_tells(make_model):
    row, _ = learn(make_model(make_vec_env(Leaps, 2, seed=0)), 100, make_vec_env(Leaps), eval_freq=50, n_steps=2)
    rng = [np.random.default_rng(seed) for seed in (0, 1)]
    ends = {tuple(np.floor(each.uniform(1, 9, 2)).tolist()) for each in rng for _ in range(50)}
    assert row["total_coverage"] == row["queue_coverage"] == len(ends | {(0.0, 0.0)}) > 30


def trained(make_model, env, normalized, callback=None):
    """All that training leaves behind: parameters, statistics and random numbers."""
    train_env = make_vec_env(env, seed=0)
    if normalized:
        train_env = VecNormalize(train_env, clip_obs=2.0)
    model = make_model(train_env).learn(160, callback=callback)
    numbers = [value.numpy() for part in (model.policy, model.intrinsic) for value in part.state_dict().values()]
    numbers += [train_env.obs_rms.mean, train_env.obs_rms.count] if normalized else []
    return [*numbers, np.random.random(3), th.rand(3).numpy()]


@pytest.mark.parametrize(
    ("env", "normalized", "eval_env"),
    [
        ("MazeSquareC-v0", False, None),
        # SB3's default is to go on with the statistics
        ("Pendulum-v1", True, lambda: VecNormalize(make_vec_env("Pendulum-v1"))),
        ("Pendulum-v1", False, lambda: VecSkillObservation(make_vec_env("Pendulum-v1"), 4)),
    ],
)
def test_training_is_the_same_to_the_last_bit(make_model, env, normalized, eval_env):
    callback = SkillMetricsCallback(eval_env and eval_env(), eval_freq=37, n_rollouts=2, n_steps=10)
    with_callback, without = trained(make_model, env, normalized, callback), trained(make_model, env, normalized)
    assert all(np.array_equal(left, right) for left, right in zip(without, with_callback, strict=True))
    if normalized:
        assert not callback._env.training and callback._env.clip_obs == 2.0


def test_observations_are_normalised_as_in_training(make_model, monkeypatch):
    train_env = VecNormalize(make_vec_env("Pendulum-v1", seed=0))
    model = make_model(train_env)
    seen, predict = [], model.predict
    monkeypatch.setattr(model, "predict", lambda obs, *args, **kwargs: seen.append(obs) or predict(obs, *args, **kwargs))
    _, callback = learn(model, 150, eval_freq=150)
    raw = callback._env.unnormalize_obs(np.concatenate(seen))
    assert np.abs(np.linalg.norm(raw[:, :2], axis=1) - 1).max() < 1e-4, "cosine and sine"
    assert callback._env.obs_rms is train_env.obs_rms
    _, callback = learn(make_model(VecNormalize(make_vec_env("Pendulum-v1"), norm_obs=False)), 50)
    assert np.hypot(*callback._env.reset()[0, :2]) == pytest.approx(1.0, abs=1e-5)


def test_wrapped_observations(make_model):
    model = make_model(VecFrameStack(make_vec_env("Pendulum-v1"), 2))
    row, _ = learn(model, 60, VecFrameStack(make_vec_env("Pendulum-v1"), 2))
    assert set(row) == PLAIN | MOTION | CLUSTERS
    with pytest.raises(ValueError, match="wrapped as that of training"):
        learn(model, 60, "MazeTree-v0")


def test_measured_at_the_last_step_and_with_its_number(make_model, tmp_path):
    model = make_model()
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(60, callback=SkillMetricsCallback(eval_freq=30, n_rollouts=2, n_steps=5), log_interval=None)
    rows = list(csv.DictReader((tmp_path / "progress.csv").open()))
    assert [row["time/total_timesteps"] for row in rows if row["skills/knn_accuracy"]] == ["30", "60"]


def test_bad_use(make_model):
    for wrong in ({"n_rollouts": 1}, {"eval_freq": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SkillMetricsCallback(**wrong)
    with pytest.raises(ValueError, match="PPO has no skills"):
        PPO("MlpPolicy", "Pendulum-v1", n_steps=8, batch_size=8).learn(8, callback=SkillMetricsCallback())
    env = make_vec_env("Pendulum-v1")
    with pytest.raises(ValueError, match="is the training environment"):
        learn(make_model(env), 8, env)
    with pytest.raises(ValueError, match="pass eval_env"):
        learn(make_model(DummyVecEnv([Leaps])), 8)
