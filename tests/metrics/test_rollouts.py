import copy
from itertools import islice

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation, RescaleAction
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd import APT, METRA, CeSD, VecSkillObservation
from sb3_cesd.common.playing import gaussian_noise, play
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import (
    collect_rollouts,
    env_positions,
    maze_coverage,
    play_and_measure,
    play_and_score,
    play_places,
    policy_coverage,
    skill_metrics,
    zero_shot_goals,
)
from sb3_cesd.metrics.rollouts import SkillRollouts, play_paths, record


class Compass:
    """Skill i goes in the i-th of four directions."""

    n_skills = 4

    def predict(self, observation, *, deterministic, skill):
        assert len(observation) == len(skill) and observation.shape[1] == 2
        directions = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)
        return 0.05 * directions[skill], None


class Plane(gym.Env):
    """A point that starts at the origin, or where it is told, and goes where its actions lead for 50 steps."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-0.95, 0.95, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        self.n_steps, self.state = 0, np.array((options or {}).get("position", (0.0, 0.0)), dtype=np.float32)
        return self.state, {}

    def step(self, action):
        self.state, self.n_steps = self.state + action, self.n_steps + 1
        return self.state, 0.5, False, self.n_steps == 50, {}


@pytest.mark.parametrize("n_envs", [1, 5, 12, 40])
def test_all_skills_are_played_from_the_start(n_envs):
    env = DummyVecEnv([Plane] * n_envs)
    rollouts = collect_rollouts(Compass(), env, n_rollouts=3, n_steps=50, reset_options={"position": (2.0, 1.0)})
    assert rollouts.states.shape == (4, 3, 51, 2) and rollouts.states.dtype == np.float32
    assert rollouts.skills.tolist() == [[skill] * 3 for skill in range(4)]
    assert (rollouts.states[:, :, 0] == (2.0, 1.0)).all()
    # The last state is that before the automatic reset
    ends = [[4.5, 1.0], [2.0, 3.5], [-0.5, 1.0], [2.0, -1.5]]
    assert rollouts.states[:, :, 50].swapaxes(0, 1) == pytest.approx(np.array([ends] * 3), abs=1e-4)
    assert (rollouts.lengths == 50).all() and (rollouts.returns == 25.0).all()


def test_a_maze_is_played_in_one_batch():
    env = MazeVecEnv("square_a", 80)
    rollouts = collect_rollouts(Compass(), env, noise_std=0.3, seed=0)
    assert rollouts.states.shape == (4, 20, 51, 2)
    assert env.observation_space.contains(rollouts.states.max(axis=(0, 1, 2)))
    assert 0.02 < maze_coverage(rollouts.per_state()[0], env.layout) < 0.5
    assert np.array_equal(collect_rollouts(Compass(), env, noise_std=0.3, seed=0).states, rollouts.states)


def test_noise_has_the_asked_scale_and_actions_stay_in_bounds():
    env = DummyVecEnv([Plane] * 10)
    steps = np.diff(collect_rollouts(Compass(), env, 50, n_steps=1, noise_std=0.2, seed=0).states[0], axis=1)
    assert steps[..., 0].mean() == pytest.approx(0.05, abs=0.05) and steps.std() == pytest.approx(0.2 * 0.95, rel=0.2)
    steps = np.diff(collect_rollouts(Compass(), env, 50, n_steps=1, noise_std=5.0, seed=0).states, axis=2)
    assert np.abs(steps).max() == pytest.approx(0.95)


class Countdown(gym.Env):
    """Ends after as many steps as its action tells, with a reward of 1 each."""

    observation_space = gym.spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Box(0.0, 10.0, (1,), np.float32)
    position = property(lambda self: np.array([self.step_count, 0.0, 0.0]))

    def reset(self, *, seed=None, options=None):
        self.step_count = 0
        return np.float32([0.0]), {}

    def step(self, action):
        self.step_count += 1
        return np.float32([self.step_count]), 1.0, bool(self.step_count >= action[0]), False, {}


class Patience:
    n_skills = 3

    def predict(self, observation, *, deterministic, skill):
        return np.float32([[2.0], [4.0], [6.0]])[skill], None


def test_episodes_that_end_early_are_not_continued():
    env = DummyVecEnv([Countdown] * 2)
    rollouts = collect_rollouts(Patience(), env, n_rollouts=1, n_steps=5)
    assert rollouts.lengths.tolist() == [[2], [4], [5]] and rollouts.returns.tolist() == [[2.0], [4.0], [5.0]]
    assert rollouts.states[:, 0, :, 0].tolist() == [[0, 1, 2, 2, 2, 2], [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4, 5]]
    states, skills = rollouts.per_state()
    assert (
        states[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5] and skills.tolist() == [0] * 3 + [1] * 5 + [2] * 6
    )
    # Positions can't be seen any more once the environment has been reset
    rollouts = collect_rollouts(Patience(), env, n_rollouts=1, n_steps=5, position_fn=env_positions)
    assert rollouts.states.shape == (3, 1, 6, 3)
    assert rollouts.states[:, 0, :, 0].tolist() == [[0, 1, 1, 1, 1, 1], [0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 4, 5]]


def test_playing_stops_once_all_episodes_have_ended():
    env = DummyVecEnv([Countdown] * 3)
    n_steps = []
    env.step_async = lambda actions, step=env.step_async: [n_steps.append(1), step(actions)]
    recording = record(Patience(), env, np.arange(3), 500, position_fn=env_positions)
    assert len(n_steps) == 6 and recording.lengths.tolist() == [2, 4, 6]
    assert recording.observations.shape == (3, 501, 1) and recording.places.shape == (3, 501, 3)
    assert recording.observations[:, -1, 0].tolist() == [2, 4, 6] and recording.places[:, -1, 0].tolist() == [1, 3, 5]


def test_rows_of_whole_rollouts():
    rollouts = collect_rollouts(Compass(), MazeVecEnv("square_a", 8), n_rollouts=2, n_steps=10, seed=0)
    rows, skills = rollouts.per_rollout()
    assert rows.shape == (8, 22) and skills.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert np.array_equal(rows[3].reshape(11, 2), rollouts.states[1, 1])


def test_model_of_this_package(tiny):
    model = CeSD("MlpPolicy", "MazeSquareA-v0", seed=0, **tiny)
    for env in (MazeVecEnv("square_a", 16), make_vec_env("MazeSquareA-v0", 3)):
        rollouts = collect_rollouts(model, env, n_rollouts=2, n_steps=5, noise_std=0.1, seed=0)
        assert rollouts.states.shape == (4, 2, 6, 2)


def test_robot_positions():
    env = make_vec_env("Walker-v0", 2)

    class Still:
        n_skills = 2

        def predict(self, observation, *, deterministic, skill):
            return np.zeros((2, 6), dtype=np.float32), None

    rollouts = collect_rollouts(Still(), env, n_rollouts=1, n_steps=3, position_fn=env_positions)
    assert rollouts.states.shape == (2, 1, 4, 3)
    assert rollouts.states[1, 0, -1] == pytest.approx(env.envs[1].unwrapped.physics.named.data.xpos["torso"])


def test_a_maze_is_played_from_a_chosen_start():
    rollouts = collect_rollouts(Compass(), MazeVecEnv("bottleneck", 12), n_rollouts=3, reset_options={"position": (2.0, 2.0)})
    assert rollouts.states[:, :, 0] == pytest.approx(2.0, abs=1e-5)
    ends = np.array([[4.5, 2.0], [2.0, 4.49], [-0.49, 2.0], [2.0, -0.49]])
    assert rollouts.states[:, 1, 50] == pytest.approx(ends, abs=0.02)
    positions = collect_rollouts(Compass(), MazeVecEnv("tree", 4), n_rollouts=1, n_steps=3, position_fn=env_positions)
    assert positions.states.shape == (4, 1, 4, 3)


def test_observations_come_with_the_places_of_the_same_rollouts():
    """The end of an episode is among the observations, though its place can't be seen any more."""
    env = DummyVecEnv([Countdown] * 2)
    rollouts = collect_rollouts(Patience(), env, n_rollouts=1, n_steps=5, position_fn=env_positions)
    assert rollouts.states.shape == (3, 1, 6, 3) and rollouts.observations.shape == (3, 1, 6, 1)
    assert rollouts.observations[:, 0, :, 0].tolist() == [[0, 1, 2, 2, 2, 2], [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4, 5]]


class Described(Plane):
    """The plane, seen as a dictionary whose keys are not in the order of the space."""

    observation_space = gym.spaces.Dict(
        {"y": gym.spaces.Box(-9, 9, (1, 1), np.float32), "x": gym.spaces.Box(-9, 9, (1,), np.float32)}
    )

    def reset(self, **kwargs):
        state, info = super().reset(**kwargs)
        return self.described(state), info

    def step(self, action):
        state, *rest = super().step(action)
        return self.described(state), *rest

    def described(self, state):
        return {"x": state[:1], "y": state[None, 1:]}


def test_dictionaries_are_recorded_as_rows():
    class DictCompass(Compass):
        def predict(self, observation, *, deterministic, skill):
            return super().predict(
                np.concatenate([observation["x"], observation["y"][:, 0]], axis=1), deterministic=True, skill=skill
            )

    env = DummyVecEnv([Described] * 5)
    rollouts = collect_rollouts(DictCompass(), env, n_rollouts=3, reset_options={"position": (2.0, 1.0)})
    plain = collect_rollouts(Compass(), DummyVecEnv([Plane] * 5), n_rollouts=3, reset_options={"position": (2.0, 1.0)})
    # As the space orders them, the ends of episodes included
    order = [["x", "y"].index(name) for name in env.observation_space.spaces]
    assert np.array_equal(rollouts.states, plain.states[..., order]) and rollouts.states.dtype == np.float32
    assert rollouts.states[0, 0, 50, order.index(0)] == pytest.approx(4.5, abs=1e-4)
    with_skill = collect_rollouts(DictCompass(), VecSkillObservation(env, 4), 3, reset_options={"position": (2.0, 1.0)})
    assert np.array_equal(with_skill.states, rollouts.states), "a skill that is observed is no state"


BOX = gym.spaces.Box(-9, 9, (1,))


@pytest.mark.parametrize(
    "space", [gym.spaces.Dict({"a": BOX, "b": BOX}), gym.spaces.Dict(b=BOX, a=BOX), gym.spaces.Dict([("b", BOX), ("a", BOX)])]
)
def test_clusters_of_dictionaries_are_those_of_the_model(make_model, space):
    class Places(gym.ObservationWrapper):
        observation_space = space

        def observation(self, observation):
            return {"a": observation[:1], "b": observation[1:]}

    model = make_model(make_vec_env("MazeSquareA-v0", wrapper_class=Places))
    metrics, rollouts = play_and_measure(model, make_vec_env("MazeSquareA-v0", wrapper_class=Places), n_rollouts=2, n_steps=9)
    states, skills = rollouts._replace(states=rollouts.observations).per_state()
    clusters = model.predict_clusters({"a": states[:, :1], "b": states[:, 1:]})
    assert metrics["on_cluster_share"] == np.mean(clusters == skills)
    assert np.unique(rollouts.observations[..., 0]).size > 9, "and the entries differ"
    assert rollouts.observations[..., 0] == pytest.approx(rollouts.positions[..., 0]), "whatever the order of the space"


def test_observations_and_actions_of_any_shape():
    class Grid(Plane):
        observation_space = gym.spaces.Box(-np.inf, np.inf, (2, 1), np.float32)
        action_space = gym.spaces.Box(-0.95, 0.95, (1, 2), np.float32)

        def reset(self, **kwargs):
            state, info = super().reset(**kwargs)
            return state[:, None], info

        def step(self, action):
            state, *rest = super().step(action[0])
            return state[:, None], *rest

    class GridCompass(Compass):
        def predict(self, observation, *, deterministic, skill):
            actions, _ = super().predict(observation[..., 0], deterministic=deterministic, skill=skill)
            return actions[:, None], None

    rollouts = collect_rollouts(GridCompass(), DummyVecEnv([Grid] * 4), n_rollouts=1, noise_std=0.1, seed=0)
    plain = collect_rollouts(Compass(), DummyVecEnv([Plane] * 4), n_rollouts=1, noise_std=0.1, seed=0)
    assert np.array_equal(rollouts.states, plain.states)


def test_continuous_skills_are_those_that_an_index_stands_for(tiny):
    arguments = {**tiny, "intrinsic_kwargs": {"encoder": "identity"}}
    model = APT("MlpPolicy", "MazeSquareA-v0", seed=0, skill_type="sphere", skill_dim=2, **arguments)
    env = MazeVecEnv("square_a", 4)
    metrics, rollouts = play_and_measure(model, env, n_rollouts=2, n_steps=10)
    assert set(metrics) == {
        "policy_coverage", "mutual_information", "knn_accuracy", "particle_entropy", "knn_accuracy_places",
        "particle_entropy_places",
    }  # fmt: skip
    assert rollouts.skills.tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]

    class Vectors:
        """The same skills, by their vectors."""

        n_skills = 4

        def predict(self, observation, *, deterministic, skill):
            angles = np.pi / 2 * skill
            return model.predict(observation, skill=np.stack([np.cos(angles), np.sin(angles)], axis=-1))

    by_vectors = collect_rollouts(Vectors(), env, n_rollouts=2, n_steps=10, seed=0)
    assert by_vectors.states == pytest.approx(rollouts.states, abs=1e-5)
    assert np.abs(rollouts.states[0, :, -1] - rollouts.states[2, :, -1]).max() > 1e-3


class Film(Countdown):
    """An image tells the step."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"

    def render(self):
        return np.full((2, 3, 3), self.step_count, dtype=np.uint8)


def test_images_end_with_the_episode():
    recording = record(Patience(), DummyVecEnv([Film] * 3), np.arange(3), n_steps=5, frame_steps={0, 2, 3, 5})
    assert [[image[0, 0, 0] for image in frames] for frames in recording.frames] == [[0], [0, 2, 3], [0, 2, 3, 5]]
    assert recording.lengths.tolist() == [2, 4, 5] and recording.places is None
    assert record(Patience(), DummyVecEnv([Film] * 3), np.arange(3), n_steps=5).frames == [[], [], []]


def test_moments_of_playing():
    """Rewards are those of the environment, and the end of an episode is seen before the next one begins."""
    env = VecNormalize(DummyVecEnv([Countdown] * 3), norm_obs=False)
    moments = list(islice(play(Patience(), env, np.arange(3)), 7))
    assert [moment.observations[:, 0].tolist() for moment in moments] == [
        [0, 0, 0], [1, 1, 1], [2, 2, 2], [1, 3, 3], [2, 4, 4], [1, 1, 5], [2, 2, 6],
    ]  # fmt: skip
    assert [moment.rewards.tolist() for moment in moments] == [[0, 0, 0]] + [[1, 1, 1]] * 6
    assert [moment.dones.tolist() for moment in moments[1:5]] == [
        [False, False, False], [True, False, False], [False, False, False], [True, True, False],
    ]  # fmt: skip


def test_clusters_of_averages_are_those_of_each_rollout():
    class Averaging(Compass):
        cluster_window = 4

        def predict_clusters(self, observations):
            self.asked = observations
            return np.zeros(len(observations), dtype=np.int64)

    env, model = MazeVecEnv("square_a", 8), Averaging()
    _, rollouts = play_and_measure(model, env, n_rollouts=2, n_steps=30)
    paths, asked = rollouts.states, model.asked.reshape(4, 2, 31, 2)
    for time in range(31):
        assert asked[:, :, time] == pytest.approx(paths[:, :, max(time - 3, 0) : time + 1].mean(axis=2), abs=1e-6)


def test_a_model_is_played_once_and_measured_to_the_end_of_its_episodes():
    class Clustered(Compass):
        n_calls = 0

        def predict(self, *args, **kwargs):
            self.n_calls += 1
            return super().predict(*args, **kwargs)

        def predict_clusters(self, observations):
            return np.zeros(len(observations), dtype=np.int64)

    env, model = MazeVecEnv("square_a", 8), Clustered()
    metrics, rollouts = play_and_measure(model, env, n_rollouts=2, n_steps=50)
    assert model.n_calls == 50 and metrics["on_cluster_share"] == 0.25
    # Against a wall, too, a step changes something
    assert (rollouts.states[:, :, -1] != rollouts.states[:, :, -2]).any(axis=-1).all()
    assert metrics["policy_coverage"] == maze_coverage(rollouts.per_state()[0], env.layout)


@pytest.mark.parametrize(
    ("position_fn", "message"),
    [
        (print, r"returned an array of object of shape \(\): pass a function of a VecEnv .* shape \(2, d\)"),
        (lambda env: np.zeros((3, 2)), r"returned an array of float64 of shape \(3, 2\)"),
        (lambda env: np.zeros(2), r"of shape \(2,\)"),
        (lambda env: np.array([["a"], ["b"]]), "returned an array of <U1"),
        (int, "failed with .*: pass a function of a VecEnv"),
    ],
)
def test_what_is_no_place_is_refused(position_fn, message):
    env = DummyVecEnv([Plane] * 2)
    with pytest.raises(ValueError, match=message):
        collect_rollouts(Compass(), env, 1, 2, position_fn=position_fn)


class Late(Plane):
    """Has a position once it has been reset, which stays where it is."""

    def reset(self, **kwargs):
        self.position = np.array([0.5, 0.5, 0.0])
        return super().reset(**kwargs)


class Unclustered(Compass):
    def predict_clusters(self, observations):
        return None


def test_a_position_that_a_reset_brings():
    rollouts = play_places(Compass(), DummyVecEnv([Late]), n_rollouts=2, n_steps=40)
    assert (rollouts.states == 0.5).all() and rollouts.positions.shape == (4, 2, 41, 3)
    metrics, _ = play_and_measure(Unclustered(), DummyVecEnv([Late]), n_rollouts=2, n_steps=40)
    assert metrics["policy_coverage"] == 1 and metrics["mutual_information"] == pytest.approx(0)
    reached = zero_shot_goals(Compass(), DummyVecEnv([Late]), np.array([[0.5, 1.5]]), n_steps=5)
    assert (reached.distances == 1).all()


@pytest.mark.parametrize(
    "play_in",
    [
        lambda model, env: play_and_measure(model, env, n_rollouts=2, n_steps=3),
        lambda model, env: play_and_score(model, env, n_episodes=8, n_steps=3),
        lambda model, env: play_places(model, env, n_rollouts=2, n_steps=3),
        lambda model, env: zero_shot_goals(model, env, np.ones((2, 2)), 3),
    ],
    ids=["metrics", "score", "places", "goals"],
)
def test_a_reset_that_brings_a_position_does_not_fill_new_statistics(play_in):
    def make():
        return VecNormalize(DummyVecEnv([Late] * 2))

    statistics = make()
    model, new = make_small(APT, statistics).learn(50), make()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"trained with VecNormalize: pass environments with the statistics of the train"):
            play_in(model, new)
    play_in(model, statistics)


@pytest.mark.parametrize(
    "play_in",
    [
        lambda model, env: play_and_measure(model, env, n_rollouts=2, n_steps=3),
        lambda model, env: play_and_score(model, env, n_episodes=8, n_steps=3),
        lambda model, env: collect_rollouts(model, env, n_rollouts=2, n_steps=3),
        lambda model, env: policy_coverage(model, env, 2, 3),
        lambda model, env: zero_shot_goals(model, env, np.ones((2, 2)), 3),
    ],
    ids=["metrics", "score", "rollouts", "coverage", "goals"],
)
def test_measuring_leaves_the_statistics_of_training_as_they_are(play_in):
    model = make_small(APT, VecNormalize(DummyVecEnv([Late] * 2))).learn(50)
    env = model.get_vec_normalize_env()
    before = copy.deepcopy((env.obs_rms.mean, env.obs_rms.var, env.obs_rms.count, env.ret_rms.count))
    play_in(model, model.get_env())
    assert repr((env.obs_rms.mean, env.obs_rms.var, env.obs_rms.count, env.ret_rms.count)) == repr(before)
    model.learn(50, reset_num_timesteps=False)
    assert env.obs_rms.count > before[2] + 49, "training goes on to change them"


@pytest.mark.parametrize(
    ("measure", "what"),
    [
        (lambda env: policy_coverage(Compass(), env, 4, 3), "coverage"),
        (lambda env: play_paths(Compass(), env, np.arange(4), 3), "paths"),
        (lambda env: zero_shot_goals(Compass(), env, np.ones((2, 2)), 3), "goals"),
    ],
)
def test_what_needs_a_position_says_so(measure, what):
    with pytest.raises(ValueError, match=rf"have no position to measure {what} by: give them a property position \(x, y, z\)"):
        measure(DummyVecEnv([Plane]))


class Switches(Plane):
    """Observes booleans."""

    observation_space = gym.spaces.Box(0, 1, (3,), bool)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return np.array([True, False, True]), {}

    def step(self, action):
        _, reward, terminated, truncated, info = super().step(action[:2])
        return np.array([*(self.state > 0), True]), reward, terminated, truncated, info


def test_booleans_are_measured_as_numbers():
    model = make_small(APT, Switches()).learn(60)
    metrics, rollouts = play_and_measure(model, DummyVecEnv([Switches]), n_rollouts=2, n_steps=9)
    assert rollouts.observations.dtype == np.float32 and set(rollouts.observations.ravel()) == {0, 1}
    assert np.isfinite(list(metrics.values())).all()


class Diverging(Plane):
    """Its position is not a number from the third step on."""

    @property
    def position(self):
        return np.array([0.0, np.nan if self.n_steps >= 3 else 0.0, 0.0])


def test_a_position_that_is_not_finite_is_told_with_its_step():
    message = (
        r"^Diverging, environment 0, step 3 of a rollout: the position is not finite \(\[1\] = nan\): let it be finite, or"
    )
    env = DummyVecEnv([Diverging] * 2)
    for play_in in (play_places, play_and_measure):
        with pytest.raises(ValueError, match=message):
            play_in(Unclustered(), env, n_rollouts=2, n_steps=5)
    assert np.isfinite(play_places(Compass(), env, n_rollouts=2, n_steps=2).states).all()


class Later(Plane):
    """Has a position once it has made a step."""

    def step(self, action):
        self.position = np.zeros(3)
        return super().step(action)


def test_observations_stay_observations_where_a_position_comes_too_late():
    metrics, rollouts = play_and_measure(Unclustered(), DummyVecEnv([Later]), n_rollouts=2, n_steps=5)
    assert rollouts.positions is None and "policy_coverage" not in metrics and "knn_accuracy_places" not in metrics


class Nowhere(Plane):
    """Has a position that is never known."""

    position = None


def test_a_position_that_stays_unknown_is_ignored():
    with pytest.warns(UserWarning, match=r"position of the environment is None, so it is ignored: let it be \(x, y\)"):
        metrics, rollouts = play_and_measure(Unclustered(), DummyVecEnv([Nowhere]), n_rollouts=2, n_steps=5)
    assert rollouts.positions is None and "policy_coverage" not in metrics
    with pytest.raises(ValueError, match=r"position of the environment is None: let it be \(x, y\)"):
        env_positions(DummyVecEnv([Nowhere]))


def test_thinned_rollouts_hold_the_start_and_every_mth_state_up_to_their_ends():
    states = np.minimum(np.arange(9.0), np.array([[8], [5], [3]])[..., None])[..., None]  # (3, 1, 9, 1), repeated at the end
    rollouts = SkillRollouts(
        states, np.arange(3)[:, None], np.zeros((3, 1)), np.array([[8], [5], [3]]), 2 * states, 3 * states
    )
    thinned = rollouts.thinned(5)  # every second of 9 states
    assert thinned.states[:, 0, :, 0].tolist() == [[0, 2, 4, 6, 8], [0, 2, 4, 5, 5], [0, 2, 3, 3, 3]]
    assert thinned.lengths.tolist() == [[4], [2], [1]]
    seen, skills = thinned.per_state()
    assert seen[:, 0].tolist() == [0, 2, 4, 6, 8, 0, 2, 4, 0, 2] and skills.tolist() == [0] * 5 + [1] * 3 + [2] * 2
    assert (thinned.observations == 2 * thinned.states).all() and (thinned.positions == 3 * thinned.states).all()
    assert rollouts.thinned(9).states.shape == states.shape and rollouts.thinned(8).states.shape[2] == 5


def test_noise_is_that_of_actions_scaled_to_one():
    """A standard deviation of 0.2 is a tenth of the range of an action, whatever that is."""
    space = gym.spaces.Box(np.float32([-2.0, 0.0]), np.float32([2.0, 100.0]))
    noise = gaussian_noise(space, 0.2, np.random.default_rng(0))(np.full((5000, 2), [0.0, 50.0], np.float32)) - [0.0, 50.0]
    assert noise.std(axis=0) == pytest.approx([0.4, 10.0], rel=0.05) and noise.mean(axis=0) == pytest.approx(0, abs=0.5)


def test_places_are_thinned_whether_or_not_they_are_the_observations():
    states = np.random.default_rng(0).normal(size=(2, 3, 121, 2)).cumsum(axis=2)
    zeros, full = np.zeros((2, 3)), np.full((2, 3), 120)
    rollouts = SkillRollouts(states, np.repeat(np.arange(2)[:, None], 3, axis=1), zeros, full)
    same, other = (
        skill_metrics(each, clusters=None, in_the_plane=True, layout=None)
        for each in (rollouts, rollouts._replace(observations=2 * states))
    )
    assert same["particle_entropy_places"] == pytest.approx(other["particle_entropy_places"])
    assert set(same) == set(other), "names are the same, too"


in_every_way = pytest.mark.parametrize(
    "play_in",
    [
        lambda model, env: collect_rollouts(model, env, 1, 3),
        lambda model, env: play_and_measure(model, env, n_rollouts=2, n_steps=3),
        lambda model, env: zero_shot_goals(model, env, np.ones((2, 2)), 3),
        lambda model, env: policy_coverage(model, env, 4, 3),
    ],
    ids=["rollouts", "metrics", "goals", "coverage"],
)


@in_every_way
def test_environments_are_normalised_as_the_model_expects(play_in):
    def make():
        return make_vec_env("MazeSquareA-v0", 2)

    statistics = VecNormalize(make())
    normalized, plain = make_small(APT, statistics).learn(50), make_small(APT, make()).learn(50)
    for env in (make(), VecNormalize(make())):
        with pytest.raises(ValueError, match=r"trained with VecNormalize: pass environments with the statistics of the train"):
            play_in(normalized, env)
    with pytest.raises(ValueError, match=r"takes observations as they are, .*, or pass environments without VecNorm"):
        play_in(plain, statistics)
    play_in(normalized, statistics), play_in(plain, make())
    play_in(make_small(APT, make()), statistics)  # has learned nothing yet


@in_every_way
def test_environments_have_the_spaces_of_the_model(play_in):
    model, seeker = (make_small(method, make_vec_env("MazeSquareA-v0", 2)) for method in (APT, METRA))
    other_actions = {"wrapper_class": RescaleAction, "wrapper_kwargs": {"min_action": -0.5, "max_action": 0.5}}
    other_observations = {"wrapper_class": FrameStackObservation, "wrapper_kwargs": {"stack_size": 2}}
    for wrapped in (other_actions, other_observations):
        with pytest.raises(ValueError, match=r"env has the observation space .*: pass env wrapped as that of training"):
            play_in(model, make_vec_env("MazeSquareA-v0", 2, **wrapped))
    play_in(model, make_vec_env("MazeTree-v0", 2))  # other walls, the same spaces
    # A skill that is observed is not that which plays
    play_in(model, VecSkillObservation(make_vec_env("MazeSquareA-v0", 2), model.skill_space))
    play_in(seeker, VecSkillObservation(make_vec_env("MazeSquareA-v0", 2), seeker.skill_space))
