"""Playing the skills of a model."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RescaleAction
from players import Compass, Placed, Plane
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd import APT, CeSD, VecSkillObservation
from sb3_cesd.common.playing import gaussian_noise
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import (
    collect_rollouts,
    env_positions,
    maze_coverage,
    play_and_measure,
    play_and_score,
    play_places,
    policy_coverage,
    skill_score,
    zero_shot_goals,
)
from sb3_cesd.metrics.environments import find_positions
from sb3_cesd.metrics.rollouts import RandomActions, record


@pytest.mark.parametrize("n_envs", [1, 5, 12, 40])
def test_all_skills_are_played_from_the_start(n_envs):
    env = DummyVecEnv([Plane] * n_envs)
    rollouts = collect_rollouts(Compass(), env, n_rollouts=3, n_steps=50, reset_options={"position": (2.0, 1.0)})
    assert rollouts.states.shape == (4, 3, 51, 2) and rollouts.states.dtype == np.float32 and rollouts.positions is None
    assert rollouts.skills.tolist() == [[skill] * 3 for skill in range(4)]
    assert (rollouts.states[:, :, 0] == (2.0, 1.0)).all()
    # The last state is that before the automatic reset
    ends = [[4.5, 1.0], [2.0, 3.5], [-0.5, 1.0], [2.0, -1.5]]
    assert rollouts.states[:, :, 50].swapaxes(0, 1) == pytest.approx(np.array([ends] * 3), abs=1e-4)
    assert (rollouts.lengths == 50).all() and (rollouts.returns == 25.0).all()


def test_noise_has_the_asked_scale_and_repeats_with_its_seed():
    env = MazeVecEnv("square_a", 80)
    rollouts = collect_rollouts(Compass(), env, noise_std=0.3, seed=0)
    assert 0.02 < maze_coverage(rollouts.per_state()[0], env.layout) < 0.5
    assert np.array_equal(collect_rollouts(Compass(), env, noise_std=0.3, seed=0).states, rollouts.states)
    # A standard deviation of 0.2 is a tenth of the range of an action
    space = gym.spaces.Box(np.float32([-2.0, 0.0]), np.float32([2.0, 100.0]))
    noise = gaussian_noise(space, 0.2, np.random.default_rng(0))(np.full((5000, 2), [0.0, 50.0], np.float32)) - [0.0, 50.0]
    assert noise.std(axis=0) == pytest.approx([0.4, 10.0], rel=0.05) and noise.mean(axis=0) == pytest.approx(0, abs=0.5)
    assert np.abs(gaussian_noise(space, 9.0, np.random.default_rng(0))(np.zeros((99, 2), np.float32))[:, 0]).max() == 2
    with pytest.raises(ValueError, match="n_rollouts"):
        collect_rollouts(Compass(), env, n_rollouts=0)


class Countdown(gym.Env):
    """Ends after as many steps as its action tells, with a reward of 1 each; an image tells the step."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"
    observation_space = gym.spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Box(0.0, 10.0, (1,), np.float32)
    position = property(lambda self: np.array([self.step_count, 0.0, 0.0]))
    step_count, says = 0, "at the door"

    def reset(self, *, seed=None, options=None):
        self.step_count = 0
        return np.float32([0.0]), {}

    def step(self, action):
        self.step_count += 1
        info = {"position": self.position if self.says is None else self.says}
        return np.float32([self.step_count]), 1.0, bool(self.step_count >= action[0]), False, info

    def render(self):
        return np.full((2, 3, 3), self.step_count, dtype=np.uint8)


class Patience:
    n_skills = 3

    def predict(self, observation, *, deterministic, skill):
        return np.float32([[2.0], [4.0], [6.0]])[skill], None


def test_episodes_that_end_early_are_not_continued(monkeypatch):
    env = DummyVecEnv([Countdown] * 2)
    rollouts = collect_rollouts(Patience(), env, n_rollouts=1, n_steps=5)
    assert rollouts.lengths.tolist() == [[2], [4], [5]] and rollouts.returns.tolist() == [[2.0], [4.0], [5.0]]
    assert rollouts.states[:, 0, :, 0].tolist() == [[0, 1, 2, 2, 2, 2], [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4, 5]]
    states, skills = rollouts.per_state()
    assert states[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5]
    assert skills.tolist() == [0] * 3 + [1] * 5 + [2] * 6
    # Positions can't be seen any more once the environment has been reset, unless info tells them
    assert rollouts.positions[:, 0, :, 0].tolist() == [[0, 1, 1, 1, 1, 1], [0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 4, 5]]
    monkeypatch.setattr(Countdown, "says", None)
    told = collect_rollouts(Patience(), env, n_rollouts=1, n_steps=5)
    assert (told.positions[..., 0] == rollouts.states[..., 0]).all()


@pytest.mark.parametrize("env_id", ["Ant-v5", "HalfCheetah-v5", "Humanoid-v5", "Walker2d-v5"])
def test_robots_of_gymnasium_have_places(env_id):
    env = make_vec_env(env_id, 2, seed=0)
    env.reset()
    by_infos = find_positions(env, env.reset_infos)
    assert find_positions(env, [{}, {}]) is None
    for step in range(40):
        _, _, dones, infos = env.step([env.action_space.sample() for _ in range(2)])
        expected = [each.unwrapped.data.qpos[:2] * (1, env_id[0] in "AH" and env_id[1] in "nu") for each in env.envs]
        assert by_infos(dones, infos) == pytest.approx(np.array(expected)), (step, dones)
    rollouts = collect_rollouts(RandomActions(env.action_space), env, 1, 40)
    assert rollouts.positions.shape == (2, 1, 41, 2) and np.ptp(rollouts.positions[..., 0]) > 0


def test_playing_stops_once_all_episodes_have_ended_and_so_do_images():
    env = DummyVecEnv([Countdown] * 3)
    n_steps = []
    env.step_async = lambda actions, step=env.step_async: [n_steps.append(1), step(actions)]
    recording = record(Patience(), env, np.arange(3), 500, frame_steps={0, 2, 3, 5})
    assert len(n_steps) == 6 and recording.lengths.tolist() == [2, 4, 6]
    assert recording.observations.shape == (3, 501, 1) and recording.observations[:, -1, 0].tolist() == [2, 4, 6]
    assert [[image[0, 0, 0] for image in frames] for frames in recording.frames] == [[0], [0, 2, 3], [0, 2, 3, 5]]


def test_a_maze_is_played_once_and_measured_to_the_end_of_its_episodes():
    class Clustered(Compass):
        cluster_window, n_calls = 4, 0

        def predict(self, *args, **kwargs):
            self.n_calls += 1
            return super().predict(*args, **kwargs)

        def predict_clusters(self, observations):
            self.asked = observations
            return np.zeros(len(observations), dtype=np.int64)

    env, model = MazeVecEnv("square_a", 8), Clustered()
    metrics, rollouts = play_and_measure(model, env, n_rollouts=2, n_steps=50)
    assert model.n_calls == 50 and metrics["on_cluster_share"] == 0.25
    # Against a wall, too, a step changes something
    assert (rollouts.states[:, :, -1] != rollouts.states[:, :, -2]).any(axis=-1).all()
    assert metrics["policy_coverage"] == maze_coverage(rollouts.per_state()[0], env.layout)
    # Clusters are those of moving averages of each rollout
    asked = model.asked.reshape(4, 2, 51, 2)
    assert asked[:, :, 20] == pytest.approx(rollouts.states[:, :, 17:21].mean(axis=2), abs=1e-6)


def test_positions_that_a_reset_brings_and_others():
    rollouts = play_places(Compass(), DummyVecEnv([Placed]), n_rollouts=2, n_steps=40)
    assert rollouts.states.shape == (4, 2, 41, 2) and (rollouts.states == rollouts.positions[..., :2]).all()
    assert (zero_shot_goals(Compass(), DummyVecEnv([Placed]), np.array([[0.0, 1.0]]), n_steps=5).skills == [1]).all()
    env = DummyVecEnv([Plane])
    for env.envs[0].position in (None, 0.0, np.zeros((1, 3))):
        metrics, rollouts = play_and_measure(Compass(), env, n_rollouts=2, n_steps=5)
        assert rollouts.positions is None and "policy_coverage" not in metrics
        for measure in (policy_coverage, zero_shot_goals):
            with pytest.raises(ValueError, match="position"):
                measure(Compass(), env, np.ones((2, 2)) if measure is zero_shot_goals else 4)
    env.envs[0].position = np.array([np.nan, 0.0])
    with pytest.raises(ValueError, match="not finite"):
        env_positions(env)


in_every_way = pytest.mark.parametrize(
    "play_in",
    [
        lambda model, env: play_and_measure(model, env, n_rollouts=2, n_steps=3),
        lambda model, env: play_and_score(model, env, n_episodes=8, n_steps=3),
        lambda model, env: policy_coverage(model, env, 4, 3),
    ],
    ids=["metrics", "score", "coverage"],
)


@in_every_way
def test_environments_are_normalised_as_the_model_expects_and_statistics_stay(play_in):
    statistics = VecNormalize(DummyVecEnv([Placed] * 2))
    normalized, plain = make_small(APT, statistics).learn(50), make_small(APT, Placed()).learn(50)
    for env in (DummyVecEnv([Placed]), VecNormalize(DummyVecEnv([Placed]))):
        with pytest.raises(ValueError, match="statistics of the training"):
            play_in(normalized, env)
    with pytest.raises(ValueError, match="without VecNormalize"):
        play_in(plain, statistics)
    before = copy.deepcopy(vars(statistics.obs_rms))
    play_in(normalized, normalized.get_env()), play_in(plain, DummyVecEnv([Placed]))
    assert repr(vars(statistics.obs_rms)) == repr(before)
    normalized.learn(50, reset_num_timesteps=False)
    assert statistics.obs_rms.count > before["count"] + 49, "training goes on to change them"


@in_every_way
def test_environments_have_the_spaces_of_the_model(play_in):
    model = make_small(APT, make_vec_env("MazeSquareA-v0", 2))
    other = {"wrapper_class": RescaleAction, "wrapper_kwargs": {"min_action": -0.5, "max_action": 0.5}}
    with pytest.raises(ValueError, match="wrapped as that of training"):
        play_in(model, make_vec_env("MazeSquareA-v0", 2, **other))
    play_in(model, VecSkillObservation(make_vec_env("MazeTree-v0", 2), model.skill_space))


@pytest.mark.parametrize(("n_skills", "n_rollouts"), [(4, 16), (10, 7), (50, 2)])
def test_scores_are_of_as_many_episodes_whatever_the_number_of_skills(n_skills, n_rollouts):
    class Few(Compass):
        def predict(self, observation, *, deterministic, skill):
            return super().predict(observation, deterministic=deterministic, skill=skill % 4)

    few = Few()
    few.n_skills = n_skills
    metrics, rollouts = play_and_score(few, DummyVecEnv([Plane] * 8), n_steps=20)
    assert rollouts.lengths.shape == (n_skills, n_rollouts)
    assert metrics["skill_score"] == skill_score(metrics["knn_accuracy"], metrics["coarse_coverage"], n_skills)


def score(env, step=1.0, alike=False):
    class Steps(Compass):
        def predict(self, observation, *, deterministic, skill):
            skill = 0 * skill if alike else skill
            return step * super().predict(observation, deterministic=deterministic, skill=skill)[0], None

    return play_and_score(Steps(), env, n_steps=20)[0]["skill_score"]


def test_skills_that_go_further_and_apart_score_more_in_any_unit():
    env = DummyVecEnv([Plane] * 8)
    apart = score(env, 18.0)
    assert apart > 1.2 * score(env, 4.0) > 0 and score(env, 18.0, alike=True) < 0.1 * apart
    statistics = VecNormalize(env, training=False, norm_reward=False)
    statistics.obs_rms.mean, statistics.obs_rms.var = np.array([3.0, -2.0]), np.array([25.0, 25.0])
    assert score(statistics, 18.0) == pytest.approx(apart, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_trained_model_beats_an_untrained_one(seed):
    """Of mean rewards by coverage, 7 of 8 preferred the untrained one."""
    model = CeSD(
        "MlpPolicy", MazeVecEnv("square_a", 20), n_skills=8, skill_duration=None, learning_rate=1e-3, learning_starts=400,
        batch_size=128, buffer_size=10_000, train_freq=10, exploration_noise=0.3, noise_correlation=0.85, seed=seed,
        policy_kwargs={"net_arch": [32, 32]}, intrinsic_kwargs={"encoder": "fourier", "entropy_kwargs": {"k": 4}},
        device="cpu",
    )  # fmt: skip
    env = MazeVecEnv("square_a", 64)
    untrained, _ = play_and_score(model, env)
    trained, _ = play_and_score(model.learn(6000), env)
    assert trained["skill_score"] > untrained["skill_score"]
