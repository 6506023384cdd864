import csv
import os
import subprocess
import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium.envs.classic_control import PendulumEnv
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList, EveryNTimesteps
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import KVWriter, Logger, configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecNormalize
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sb3_cesd import APT, CIC, DADS, METRA, VecSkillObservation
from sb3_cesd.callbacks import SkillMetricsCallback
from sb3_cesd.envs.mazes.layouts import get_layout
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import env_positions, maze_coverage, play_and_measure, skill_metrics
from sb3_cesd.metrics.rollouts import SkillRollouts

PLAIN = {"knn_accuracy", "particle_entropy"}
PLACES = {"policy_coverage", "mutual_information", "knn_accuracy_places", "particle_entropy_places", "total_coverage"}
MOTION = {"moving_share", "knn_accuracy_standardized"}
ROBOT = MOTION | {"torso_speed", "queue_coverage"}
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
        ("Walker-v0", 100, PLAIN | PLACES | ROBOT | CLUSTERS),
        ("Pendulum-v1", 100, PLAIN | MOTION | CLUSTERS),
    ],
)
def test_what_is_logged(make_model, env, steps, names):
    rows = learn(make_model(env), steps, SkillMetricsCallback(eval_freq=50, n_rollouts=2, n_steps=20))
    assert set(rows[-1]) == names
    assert 0 <= rows[-1]["on_cluster_share"] <= 1 and 0 <= rows[-1]["knn_accuracy"] <= 1
    if env == "Walker-v0":
        assert rows[-1]["policy_coverage"] >= 1 and rows[-1]["total_coverage"] >= rows[-1]["queue_coverage"] >= 1


@pytest.mark.parametrize("normalized", [False, True])
def test_total_coverage_is_that_of_the_states_of_training(make_model, normalized):
    plain = MazeVecEnv("square_c", 5)
    model = make_model(VecNormalize(plain) if normalized else plain)
    rows = learn(model, 500, SkillMetricsCallback(eval_freq=50, n_rollouts=2, n_steps=20))
    # Two episodes in each environment, their ends, and the first places of the second and the third
    assert model.replay_buffer.pos == 100
    starts = model.replay_buffer.observations["observation"][50]
    reached = model.replay_buffer.next_observations["observation"][:100]
    states = np.concatenate([*reached, starts, plain.position[:, :2]])
    if normalized:
        # Now and then the end of an episode is rounded into the next bin
        assert rows[-1]["total_coverage"] == pytest.approx(maze_coverage(states, plain.layout), abs=2e-4)
    else:
        assert rows[-1]["total_coverage"] == maze_coverage(states, plain.layout) > 0


class Leaps(gym.Env):
    """Each episode is one step to another place."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    position = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.position = self.np_random.uniform(1, 9, 2)
        info = {"position": self.position}
        self.position = np.zeros(2)
        return self.position.astype(np.float32), 0.0, True, False, info


def test_coverage_counts_the_ends_of_episodes_that_info_tells(make_model):
    callback = SkillMetricsCallback(make_vec_env(Leaps), eval_freq=50, n_rollouts=2, n_steps=2)
    rows = learn(make_model(make_vec_env(Leaps, 2, seed=0)), 100, callback)
    rng = [np.random.default_rng(seed) for seed in (0, 1)]
    ends = {tuple(np.floor(each.uniform(1, 9, 2)).tolist()) for each in rng for _ in range(50)}
    assert rows[-1]["total_coverage"] == rows[-1]["queue_coverage"] == len(ends | {(0.0, 0.0)}) > 30


def trained(make_model, env, callback, normalized):
    """All that training leaves behind: parameters, statistics and random numbers."""
    train_env = make_vec_env(env, seed=0)
    if normalized:
        train_env = VecNormalize(train_env, clip_obs=2.0)
    model = make_model(train_env).learn(160, callback=callback)
    numbers = [value.numpy() for value in model.get_parameters()["policy"].values()]
    numbers += [value.numpy() for value in model.intrinsic.state_dict().values()]
    numbers += [train_env.obs_rms.mean, train_env.obs_rms.count] if normalized else []
    return [*numbers, np.random.random(3), th.rand(3).numpy()]


@pytest.mark.parametrize(
    ("env", "normalized", "eval_env"),
    [
        ("MazeSquareC-v0", False, None),
        ("MazeSquareC-v0", True, lambda: MazeVecEnv("square_c", 8)),
        ("Pendulum-v1", True, None),
        # SB3's default is to go on with the statistics
        ("Pendulum-v1", True, lambda: VecNormalize(make_vec_env("Pendulum-v1"))),
        ("Pendulum-v1", False, lambda: VecSkillObservation(make_vec_env("Pendulum-v1"), 4)),
    ],
)
def test_training_is_the_same_to_the_last_bit(make_model, env, normalized, eval_env):
    made = None if eval_env is None else eval_env()
    callback = SkillMetricsCallback(made, eval_freq=37, n_rollouts=2, n_steps=10)
    with_callback = trained(make_model, env, callback, normalized)
    without = trained(make_model, env, None, normalized)
    assert len(without) == len(with_callback)
    assert all(np.array_equal(left, right) for left, right in zip(without, with_callback, strict=True))
    assert not callback._env.training if isinstance(callback._env, VecNormalize) else not normalized


def test_normalised_observations_reach_the_model(make_model, monkeypatch):
    train_env = VecNormalize(make_vec_env("Pendulum-v1", seed=0))
    model = make_model(train_env)
    seen, predict = [], model.predict
    monkeypatch.setattr(model, "predict", lambda obs, *args, **kwargs: seen.append(obs) or predict(obs, *args, **kwargs))
    callback = SkillMetricsCallback(eval_freq=150, n_rollouts=2, n_steps=5)
    learn(model, 150, callback)
    # Training itself predicts by the policy
    assert all(obs.shape[1:] == (3,) for obs in seen)
    raw = callback._env.unnormalize_obs(np.concatenate(seen))
    assert np.abs(np.linalg.norm(raw[:, :2], axis=1) - 1).max() < 1e-4, "cosine and sine, normalised as in training"
    assert callback._env.obs_rms is train_env.obs_rms and not callback._env.training


def test_observations_are_clipped_as_in_training_and_only_normalised_if_those_are(make_model):
    callback = SkillMetricsCallback(eval_freq=50, n_rollouts=2, n_steps=5)
    learn(make_model(VecNormalize(make_vec_env("Pendulum-v1"), clip_obs=0.3)), 50, callback)
    assert callback._env.clip_obs == 0.3
    learn(make_model(VecNormalize(make_vec_env("Pendulum-v1"), norm_obs=False)), 50, callback)
    assert np.hypot(*callback._env.reset()[0, :2]) == pytest.approx(1.0, abs=1e-5)


def test_stacked_observations(make_model):
    def stacked():
        return VecFrameStack(make_vec_env("Pendulum-v1"), 2)

    rows = learn(make_model(stacked()), 60, SkillMetricsCallback(eval_freq=60, n_rollouts=2, n_steps=5))
    assert set(rows[-1]) == PLAIN | MOTION | CLUSTERS
    with pytest.raises(ValueError, match=r"observes Box\(\(6,\), float32\) .* pass an eval_env wrapped as that of training"):
        learn(make_model(stacked()), 60, SkillMetricsCallback("Pendulum-v1"))


def test_measured_at_the_last_step_and_with_its_number(make_model, tmp_path):
    model = make_model()
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(60, callback=SkillMetricsCallback(eval_freq=30, n_rollouts=2, n_steps=5), log_interval=None)
    rows = list(csv.DictReader((tmp_path / "progress.csv").open()))
    assert [row["time/total_timesteps"] for row in rows if row["skills/knn_accuracy"]] == ["30", "60"]


class Blind(gym.ObservationWrapper):
    """Hides everything."""

    def observation(self, observation):
        return np.zeros_like(observation)


def test_wrappers_of_training_are_measured(make_model):
    callback = SkillMetricsCallback(eval_freq=60, n_rollouts=2, n_steps=5)
    rows = learn(make_model(make_vec_env("MazeSquareC-v0", 2, wrapper_class=Blind)), 120, callback)
    assert rows[-1]["particle_entropy"] == 0 < rows[-1]["particle_entropy_places"]
    assert set(rows[-1]) == PLAIN | PLACES | CLUSTERS


class Short(PendulumEnv):
    """Has a position that is no place, and ends after a step."""

    position = 0.0

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, True, False, info


def test_positions_that_are_no_places_and_episodes_of_one_step(make_model):
    model = make_model(DummyVecEnv([Short]), n_skills=2)
    with pytest.warns(UserWarning, match=r"position of the environment has shape \(\), .* let it be \(x, y\) or \(x, y, z\)"):
        rows = learn(model, 20, SkillMetricsCallback(DummyVecEnv([Short]), eval_freq=20, n_rollouts=2))
    assert set(rows[-1]) == PLAIN | MOTION | CLUSTERS
    with pytest.raises(ValueError, match=r"position of the environment has shape \(\)"):
        env_positions(DummyVecEnv([Short]))
    message = (
        r"^The position .* has shape \(\), .* no place for n_trajectories and goal_range: let it be \(x, y\) or \(x, y, z\)"
    )
    for wanted in ({"n_trajectories": 2}, {"goal_range": 1.0}):
        with pytest.warns(UserWarning, match="is ignored"), pytest.raises(ValueError, match=message):
            model.learn(20, callback=SkillMetricsCallback(DummyVecEnv([Short]), **wanted))


class Lost(PendulumEnv):
    """Its position is not a number."""

    position = np.array([0.0, np.inf])


def test_a_position_that_is_not_finite_is_told_with_its_step(make_model):
    message = r"^Lost, environment 0, time step 1: the position is not finite \(\[1\] = inf\).*e\.g\. clip the position or end"
    env = DummyVecEnv([Lost])
    with pytest.raises(ValueError, match=message):
        make_model(env).learn(20, callback=SkillMetricsCallback(DummyVecEnv([Lost])))


def test_goals_and_trajectories_of_a_robot():
    model = METRA("MlpPolicy", make_vec_env("SkillAnt-v0", 2), n_skills=4, learning_starts=40, batch_size=32,
                  buffer_size=1000, device="cpu", policy_kwargs={"net_arch": [16]})  # fmt: skip
    callback = SkillMetricsCallback(eval_freq=40, n_rollouts=2, n_steps=5, n_trajectories=6, goal_range=2.0)
    rows = learn(model, 80, callback)
    goals = {f"goal_{name}_{radius}" for name in ("hit", "end", "stay") for radius in (1, 3)} | {"goal_distance"}
    assert set(rows[-1]) == PLAIN | PLACES | ROBOT | goals | {"policy_coverage_6"}
    assert 0 < rows[-1]["goal_end_3"] <= rows[-1]["goal_hit_3"] <= 1 <= rows[-1]["policy_coverage_6"]
    with pytest.raises(ValueError, match="are for robots with a position: leave them out"):
        APT("MlpPolicy", "MazeTree-v0", device="cpu").learn(1, callback=SkillMetricsCallback(goal_range=1.0))


def test_environments_take_the_arguments_of_those_of_training(make_model):
    env = make_vec_env("Walker-v0", env_kwargs={"camera": "side", "width": 64})
    callback = SkillMetricsCallback(eval_freq=50, n_rollouts=2, n_steps=5)
    learn(make_model(env), 50, callback)
    assert callback._env.get_attr("width")[0] == 64 and callback._env is not env


def test_a_maze_is_measured_at_once_and_needs_no_id(make_model):
    callback = SkillMetricsCallback(eval_freq=10, n_rollouts=3, n_steps=20)
    learn(make_model(MazeVecEnv("square_c", 5)), 50, callback)
    assert isinstance(callback._env, MazeVecEnv) and callback._env.num_envs == 12
    assert callback._env.layout is get_layout("square_c")
    learn(make_model("MazeTree-v0"), 10, callback)
    assert isinstance(callback._env, MazeVecEnv) and callback._env.layout is get_layout("tree")


@pytest.mark.parametrize("processes", [False, True])
def test_coverage_is_kept_when_training_goes_on(make_model, processes):
    # The other process does not import the package by itself
    env = SubprocVecEnv([partial(gym.make, "sb3_cesd:MazeSquareC-v0")]) if processes else "MazeSquareC-v0"
    model = make_model(env)
    callback = SkillMetricsCallback(eval_freq=50, n_rollouts=2, n_steps=5)
    first = learn(model, 100, callback)[-1]["total_coverage"]
    model.learn(50, callback=callback, reset_num_timesteps=False)
    assert callback._maze_coverage.share > first
    model.learn(50, callback=callback)
    assert callback._maze_coverage.share < first


def test_rl_zoo(tmp_path):
    (tmp_path / "skills.yml").write_text("""
MazeSquareC-v0:
  policy: MlpPolicy
  n_timesteps: 120
  n_skills: 4
  skill_duration: null
  n_envs: 2
  learning_starts: 40
  batch_size: 32
  buffer_size: 1000
  normalize: True
  intrinsic_kwargs: {encoder: identity, entropy_kwargs: {k: 3}}
  policy_kwargs: dict(net_arch=[16, 16])
  callback:
    - sb3_cesd.callbacks.SkillMetricsCallback: {eval_freq: 30, n_rollouts: 2, n_steps: 10}
""")
    command = [
        "--algo",
        "cesd",
        "--env",
        "MazeSquareC-v0",
        "--conf-file",
        "skills.yml",
        "--tensorboard-log",
        "tb",
        "--eval-freq",
        "-1",
    ]
    result = subprocess.run(
        [sys.executable, "-m", "rl_zoo3.train", *command],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    (events,) = (tmp_path / "tb").rglob("events.*")
    logged = EventAccumulator(str(events)).Reload()
    assert {f"skills/{name}" for name in PLAIN | PLACES | CLUSTERS} <= set(logged.Tags()["scalars"])
    assert [event.step for event in logged.Scalars("skills/policy_coverage")] == [60, 120]


def test_methods_without_clusters(tiny):
    model = APT("MlpPolicy", "Pendulum-v1", n_skills=4, learning_starts=40, batch_size=32, buffer_size=1000, device="cpu",
                policy_kwargs=tiny["policy_kwargs"], intrinsic_kwargs={"encoder": "identity"})  # fmt: skip
    rows = learn(model, 60, SkillMetricsCallback(eval_freq=60, n_rollouts=2, n_steps=10))
    assert set(rows[-1]) == PLAIN | MOTION


class Split(gym.ObservationWrapper):
    """Pendulum with a dictionary for an observation."""

    def __init__(self, env):
        super().__init__(env)
        low, high = env.observation_space.low, env.observation_space.high
        self.observation_space = gym.spaces.Dict(
            {"speed": gym.spaces.Box(low[2:], high[2:]), "pole": gym.spaces.Box(low[:2], high[:2])}
        )

    def observation(self, observation):
        return {"speed": observation[2:], "pole": observation[:2]}


@pytest.mark.parametrize("normalized", [False, True])
def test_observations_that_are_dictionaries(make_model, normalized):
    def split():
        env = make_vec_env("Pendulum-v1", wrapper_class=Split)
        return VecNormalize(env) if normalized else env

    callback = SkillMetricsCallback(split(), eval_freq=60, n_rollouts=2, n_steps=5)
    rows = learn(make_model(split()), 60, callback)
    assert set(rows[-1]) == PLAIN | MOTION | CLUSTERS
    with pytest.raises(ValueError, match=r"observes Dict\(.*pole.* pass an eval_env wrapped as that of training"):
        learn(make_model(split()), 60, SkillMetricsCallback("Pendulum-v1"))


def test_statistics_around_the_skill(make_model):
    """Normalised outside the wrapper of skills, all but the skill."""
    plain = MazeVecEnv("square_c", 5)
    model = make_model(VecNormalize(VecSkillObservation(plain, 4), norm_obs_keys=["observation"]))
    callback = SkillMetricsCallback(eval_freq=50, n_rollouts=2, n_steps=20)
    rows = learn(model, 250, callback)
    assert set(rows[-1]) == PLAIN | PLACES | CLUSTERS
    assert callback._env.obs_rms is model.get_vec_normalize_env().obs_rms["observation"]
    # One episode in each environment, its end, and the first place of the next
    states = np.concatenate([*model.replay_buffer.next_observations["observation"][:50], plain.position[:, :2]])
    assert rows[-1]["total_coverage"] == pytest.approx(maze_coverage(states, plain.layout), abs=2e-4)


@pytest.mark.parametrize(
    ("method", "skills"),
    [(APT, {"skill_type": "sphere", "skill_dim": 2}), (DADS, {}), (CIC, {}), (APT, {"skill_type": "discrete"})],
)
def test_methods_without_clusters_and_with_any_skills(method, skills):
    model = method("MlpPolicy", MazeVecEnv("square_c", 5), n_skills=4, learning_starts=40, batch_size=32, buffer_size=1000,
                   device="cpu", policy_kwargs={"net_arch": [16]}, **skills)  # fmt: skip
    rows = learn(model, 100, SkillMetricsCallback(eval_freq=20, n_rollouts=2, n_steps=10))
    assert set(rows[-1]) == PLAIN | PLACES and 0 < rows[-1]["mutual_information"] <= np.log(4) + 1e-9


def test_bad_use(make_model):
    with pytest.raises(ValueError, match="play at least 2"):
        SkillMetricsCallback(n_rollouts=1)
    with pytest.raises(ValueError, match="eval_freq=0"):
        SkillMetricsCallback(eval_freq=0)
    with pytest.raises(ValueError, match="PPO has no skills to measure: use this callback with CeSD"):
        PPO("MlpPolicy", "Pendulum-v1", n_steps=8, batch_size=8).learn(8, callback=SkillMetricsCallback())
    env = make_vec_env("Pendulum-v1")
    with pytest.raises(ValueError, match=r"is the training environment, .* pass another one"):
        make_model(env).learn(8, callback=SkillMetricsCallback(env))
    with pytest.raises(ValueError, match=r"acts in .* pass an eval_env wrapped as that of training"):
        make_model().learn(8, callback=SkillMetricsCallback("MazeSquareA-v0"))
    with pytest.raises(ValueError, match="There is no environment 'Pendulum-v99'"):
        make_model().learn(8, callback=SkillMetricsCallback("Pendulum-v99"))

    class Unregistered(PendulumEnv):
        spec = None

    with pytest.raises(ValueError, match="has no id to make another one from: pass eval_env"):
        make_model(DummyVecEnv([Unregistered])).learn(8, callback=SkillMetricsCallback())


def test_metrics_of_skills_that_stay_apart():
    """Two skills, each in a bin and a cluster of its own."""
    states = np.zeros((2, 20, 3, 2)) + np.array([0.1, 3.1])[:, None, None, None]
    states += np.random.default_rng(0).uniform(0, 0.1, states.shape)
    skills = np.repeat(np.arange(2)[:, None], 20, axis=1)
    rollouts = SkillRollouts(states, skills, np.zeros((2, 20)), np.full((2, 20), 2))
    metrics = skill_metrics(rollouts, np.repeat([0, 1], 60), in_the_plane=True, layout=None)
    assert metrics["policy_coverage"] == 2 and metrics["knn_accuracy"] == 1 and metrics["on_cluster_share"] == 1
    assert metrics["mutual_information"] == pytest.approx(np.log(2))
    assert metrics["cluster_size_entropy"] == pytest.approx(np.log(2))
    metrics = skill_metrics(rollouts, None, in_the_plane=False, layout=None)
    assert set(metrics) == PLAIN | {"knn_accuracy_standardized"} and metrics["knn_accuracy_standardized"] == 1


def test_rollouts_are_measured_in_the_plane(make_model):
    model = make_model("Walker-v0")
    _, rollouts = play_and_measure(model, make_vec_env("Walker-v0", 2), n_rollouts=2, n_steps=5)
    assert rollouts.states.shape == (4, 2, 6, 2) and (rollouts.states[..., 1] == rollouts.states[0, 0, 0, 1]).all()


@pytest.mark.parametrize("in_list", [False, True], ids=["alone", "in a list"])
def test_within_an_event_it_does_not_see_training(make_model, in_list):
    metrics = SkillMetricsCallback(eval_freq=1, n_rollouts=2, n_steps=5)
    callback = EveryNTimesteps(20, CallbackList([metrics]) if in_list else metrics)
    message = "but EveryNTimesteps calls its callback in only some of them: pass SkillMetricsCallback beside"
    with pytest.warns(UserWarning, match=message):
        make_model("MazeSquareC-v0").learn(20, callback)
