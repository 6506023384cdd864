import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import APT
from sb3_cesd.callbacks import SkillMetricsCallback
from sb3_cesd.envs.maze_vec_env import MazeVecEnv
from sb3_cesd.metrics import play_and_measure, skill_metrics
from sb3_cesd.metrics.rollouts import SkillRollouts

PLAIN = {"knn_accuracy", "particle_entropy"}
PLACES = {"coverage", "mutual_information", "cumulative_coverage"}
CLUSTERS = {"on_cluster_share", "cluster_size_entropy"}


class Memory(KVWriter):
    """Keeps everything that is logged about skills."""

    def __init__(self):
        self.rows = []

    def write(self, key_values, key_excluded, step=0):
        row = {key.removeprefix("skills/"): value for key, value in key_values.items() if key.startswith("skills/")}
        self.rows.append({name: value for name, value in row.items() if not name.startswith("share")})

    def close(self):
        pass


def learn(model, steps, callback):
    memory = Memory()
    model.set_logger(Logger(None, [memory]))
    model.learn(steps, callback=callback, log_interval=1)
    model.logger.dump()
    return [row for row in memory.rows if row]


@pytest.mark.parametrize(
    ("env", "steps", "names"),
    [
        ("MazeSquareC-v0", 200, PLAIN | PLACES | CLUSTERS),
        ("Walker-v0", 100, PLAIN | PLACES | CLUSTERS),
        ("Pendulum-v1", 100, PLAIN | CLUSTERS),
    ],
)
def test_what_is_logged(make_model, env, steps, names):
    rows = learn(make_model(env), steps, SkillMetricsCallback(eval_freq=50, n_rollouts=2, n_steps=20))
    assert set(rows[-1]) == names
    assert 0 <= rows[-1]["on_cluster_share"] <= 1 and 0 <= rows[-1]["knn_accuracy"] <= 1
    if env == "Walker-v0":
        assert rows[-1]["coverage"] >= 1 and rows[-1]["cumulative_coverage"] >= 1


def test_cumulative_coverage_is_that_of_the_states_of_training(make_model):
    from sb3_cesd.metrics import maze_coverage

    env = MazeVecEnv("square_c", 5)
    model = make_model(env)
    rows = learn(model, 250, SkillMetricsCallback(MazeVecEnv("square_c", 8), eval_freq=50, n_rollouts=2, n_steps=20))
    # The last step of an episode is seen after the reset
    states = np.concatenate([model.replay_buffer.observations[1:50].reshape(-1, 2), env.position[:, :2]])
    assert rows[-1]["cumulative_coverage"] == pytest.approx(maze_coverage(states, env.layout), abs=1e-3)
    assert rows[-1]["cumulative_coverage"] > 0


@pytest.mark.parametrize("env", ["MazeSquareC-v0", "Pendulum-v1"])
def test_training_is_the_same_to_the_last_bit(make_model, env):
    results = []
    for callback in (None, SkillMetricsCallback(eval_freq=37, n_rollouts=2, n_steps=10)):
        model = make_model(env).learn(160, callback=callback)
        results.append(model.get_parameters()["policy"])
    assert all((results[0][name] == value).all() for name, value in results[1].items())


def test_normalised_observations_reach_the_model(make_model, monkeypatch):
    train_env = VecNormalize(make_vec_env("Pendulum-v1", seed=0))
    model = make_model(train_env)
    seen, predict = [], model.predict
    monkeypatch.setattr(model, "predict", lambda obs, *args, **kwargs: seen.append(obs) or predict(obs, *args, **kwargs))
    callback = SkillMetricsCallback(eval_freq=150, n_rollouts=2, n_steps=5)
    learn(model, 150, callback)
    # Training itself predicts on observations with skills
    raw = callback._env.unnormalize_obs(np.concatenate([obs for obs in seen if obs.shape[1] == 3]))
    assert np.abs(np.linalg.norm(raw[:, :2], axis=1) - 1).max() < 1e-4, "cosine and sine, normalised as in training"
    assert callback._env.obs_rms is train_env.obs_rms and not callback._env.training


def test_methods_without_clusters(tiny):
    model = APT("MlpPolicy", "Pendulum-v1", n_skills=4, learning_starts=40, batch_size=32, buffer_size=1000, device="cpu",
                policy_kwargs=tiny["policy_kwargs"], intrinsic_kwargs={"encoder": "identity"})  # fmt: skip
    rows = learn(model, 60, SkillMetricsCallback(eval_freq=60, n_rollouts=2, n_steps=10))
    assert set(rows[-1]) == PLAIN


def test_bad_use(make_model):
    with pytest.raises(ValueError, match="play at least 2"):
        SkillMetricsCallback(n_rollouts=1)
    with pytest.raises(ValueError, match="eval_freq=0"):
        SkillMetricsCallback(eval_freq=0)
    with pytest.raises(ValueError, match="PPO has no skills to measure: use this callback with CeSD"):
        PPO("MlpPolicy", "Pendulum-v1", n_steps=8, batch_size=8).learn(8, callback=SkillMetricsCallback())
    with pytest.raises(ValueError, match="has no id to make another one by: pass eval_env"):
        make_model(MazeVecEnv("square_c", 2)).learn(8, callback=SkillMetricsCallback())


def test_metrics_of_skills_that_stay_apart():
    """Two skills, each in a bin and a cluster of its own."""
    states = np.zeros((2, 20, 3, 2)) + np.array([0.1, 3.1])[:, None, None, None]
    states += np.random.default_rng(0).uniform(0, 0.1, states.shape)
    skills = np.repeat(np.arange(2)[:, None], 20, axis=1)
    rollouts = SkillRollouts(states, skills, np.zeros((2, 20)), np.full((2, 20), 2))
    metrics = skill_metrics(rollouts, np.repeat([0, 1], 60), in_the_plane=True, layout=None)
    assert metrics["coverage"] == 2 and metrics["knn_accuracy"] == 1 and metrics["on_cluster_share"] == 1
    assert metrics["mutual_information"] == pytest.approx(np.log(2))
    assert metrics["cluster_size_entropy"] == pytest.approx(np.log(2))
    assert set(skill_metrics(rollouts, None, in_the_plane=False, layout=None)) == PLAIN


def test_rollouts_are_measured_in_the_plane(make_model):
    model = make_model("Walker-v0")
    _, rollouts = play_and_measure(model, make_vec_env("Walker-v0", 2), n_rollouts=2, n_steps=5)
    assert rollouts.states.shape == (4, 2, 6, 2) and (rollouts.states[..., 1] == rollouts.states[0, 0, 0, 1]).all()
