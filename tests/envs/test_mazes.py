import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor

from sb3_cesd.envs.mazes.env import MazeEnv
from sb3_cesd.envs.mazes.layouts import LAYOUTS, MAZES
from sb3_cesd.envs.mazes.pictures import MazeObserver
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.registration import pixels_id

#: Published denominators: free cells, and the bounding box
CELLS = {
    "square_a": (17, (-0.5, -4.5, 4.5, 0.5)),
    "square_b": (17, (-0.5, -4.5, 4.5, 0.5)),
    "square_c": (17, (-0.5, -4.5, 4.5, 0.5)),
    "square_d": (22, (-3.5, -3.5, 3.5, 0.5)),
    "tree": (31, (-6.5, -6.5, 6.5, 0.5)),
    "bottleneck": (100, (-0.5, -0.5, 9.5, 9.5)),
    "corridor": (11, (-5.5, -0.5, 5.5, 0.5)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    layout = LAYOUTS[name]
    n_free, box = CELLS[name]
    assert layout.n_free_cells == n_free and (*layout.low, *layout.high) == box
    # Each free bin has one index
    corners = [np.arange(low, high, 1 / layout.bins_per_cell) for low, high in zip(layout.low, layout.high, strict=True)]
    centers = np.stack(np.meshgrid(*corners), axis=-1).reshape(-1, 2) + 0.5 / layout.bins_per_cell
    n_bins = n_free * (100 if name == "bottleneck" else 400)
    assert sorted(layout.bin_indices(centers[layout.is_free(centers)])) == list(range(n_bins)) and layout.n_free_bins == n_bins
    # There is one object of each, also after a way through another process
    assert pickle.loads(pickle.dumps(layout)) is layout and copy.deepcopy(layout) is layout


@pytest.mark.parametrize("env_id", ["MazeTree-v0", "MazeTreePixels-v0"])
def test_checkers_have_nothing_to_say(env_id):
    env = gym.make(env_id, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The actions are those of the original; SB3 rescales them itself
        warnings.filterwarnings("ignore", message=".*symmetric and normalized Box action space")
        # That size is of SB3's own convolutions
        warnings.filterwarnings("ignore", message="The minimal resolution for an image is 36x36")
        gymnasium_check_env(env.unwrapped)
        check_env(env, skip_render_check=False)
    assert env.action_space == gym.spaces.Box(-0.95, 0.95, (2,), np.float32)


def test_bad_arguments():
    for make in (MazeEnv, lambda layout: MazeVecEnv(layout, 2)):
        with pytest.raises(ValueError, match="layout"):
            make("cube")


@pytest.mark.parametrize(("actions", "message"), [(np.zeros((3, 1)), "reshape"), (np.full((3, 2), np.nan), "not finite")])
def test_bad_actions(actions, message):
    single, env = MazeEnv("square_a"), MazeVecEnv("square_a", 3)
    single.reset()
    env.reset()
    with pytest.raises(ValueError, match=message):
        env.step(actions)
    with pytest.raises(ValueError, match=message):
        single.step(actions[0])


def test_start_can_be_chosen():
    observation, _ = gym.make("MazeBottleneck-v0").reset(options={"position": (9.0, 2.0)})
    assert observation == pytest.approx([9.0, 2.0], abs=1e-5)
    env = MazeVecEnv("corridor", 2, max_episode_steps=1)
    env.set_options([{"position": (3.0, 0.0)}, {}])
    observations = env.reset()
    assert observations[0] == pytest.approx([3.0, 0.0], abs=1e-5) and observations[1, 0] < -4.0
    assert (env.step(np.zeros((2, 2), dtype=np.float32))[0][:, 0] < -4.0).all(), "for one reset"


def test_image_shows_walls_trail_and_agent():
    env = MazeEnv("corridor", render_mode="rgb_array")
    env.reset(options={"position": (-5.0, 0.0)})
    still = env.render()
    for _ in range(5):
        env.step(np.array([0.9, 0.0]))
    moved = env.render()
    assert still.shape == moved.shape == (62, 542, 3) and still.dtype == np.uint8  # (1 + .3) x (11 + .3) cells of 48 pixels

    def columns(image, red, blue):
        """Column of each pixel with much or little of the two colours."""
        return np.flatnonzero(((image[..., 0] > 150) == red) & ((image[..., 2] > 150) == blue)) % image.shape[1]

    agent, trail, walls = (True, False), (False, True), (False, False)
    assert columns(moved, *agent).mean() - columns(still, *agent).mean() == pytest.approx(4.5 * 48, abs=1)
    assert len(columns(still, *trail)) == 0 and len(set(columns(moved, *trail))) > 150
    assert len(set(columns(moved, *walls))) > 500
    assert MazeEnv("corridor").render() is None


@pytest.mark.parametrize("arguments", [{}, {"image_size": 16}])
@pytest.mark.parametrize("env_id", MAZES)
def test_one_env_does_what_sb3_makes_of_the_gymnasium_env(env_id, arguments):
    reference = make_vec_env(env_id, 1, env_kwargs=arguments)
    env = MazeVecEnv(MAZES[env_id], 1, **arguments)
    assert env.observation_space == reference.observation_space and env.action_space == reference.action_space
    reference.seed(7)
    env.seed(7)
    assert np.array_equal(env.reset(), reference.reset())
    rng = np.random.default_rng(0)
    for step in range(1, 121):
        actions = rng.uniform(-0.95, 0.95, (1, 2)).astype(np.float32)
        observations, rewards, dones, infos = env.step(actions)
        expected = reference.step(actions)
        assert observations[0] in env.observation_space and dones.all() == (step % 50 == 0)
        for value, expected_value in zip((observations, rewards, dones), expected[:3], strict=True):
            assert np.array_equal(value, expected_value) and value.dtype == expected_value.dtype
        position = expected[3][0].pop("position")
        for info in (infos[0], expected[3][0]):
            if "episode" in info:
                assert (infos[0].pop("position", position) == position).all()
                assert info["episode"].pop("t") > 0
                info["terminal_observation"] = info["terminal_observation"].tolist()
        assert infos == expected[3]
        assert np.array_equal(env.get_attr("position"), reference.get_attr("position"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_pictures_show_walls_and_where_the_point_is(name):
    layout = LAYOUTS[name]
    env = gym.make(pixels_id(f"Maze{name.title().replace('_', '')}-v0"))
    assert env.observation_space == gym.spaces.Box(0, 255, (32, 32, 1), np.uint8)
    centers = np.argwhere(layout.free_cells) + layout.origin
    pictures = MazeObserver(layout, 32)(centers.astype(np.float64)).astype(float)[..., 0]
    assert (env.reset(options={"position": centers[0]})[0][..., 0] == pictures[0]).all()
    walls = pictures.min(axis=0)
    assert walls.max() == 96 and 0.02 < (walls > 0).mean() < 0.5
    # Cells are equal steps apart, x to the right, y upwards, and the middle of the maze is that of the picture
    points = np.where(pictures > 97, pictures, 0)
    brightness = points.sum(axis=(1, 2))
    columns, rows = ((each @ np.arange(32)).sum(axis=1) / brightness for each in (points, points.transpose(0, 2, 1)))
    expected = 15.5 + (centers - (layout.low + layout.high) / 2) * [1, -1] * 31 / max(layout.high - layout.low)
    np.testing.assert_allclose(np.stack([columns, rows], axis=1), expected, atol=0.35)


def test_pictures_show_steps_below_a_pixel():
    moved = MazeObserver(LAYOUTS["square_a"], 32)(np.array([[0.1, 0.2], [0.11, 0.2], [0.1, 0.2]]))
    assert (moved[0] == moved[2]).all() and np.abs(moved[0].astype(int) - moved[1]).max() > 3


def test_episodes_of_many():
    env = MazeVecEnv("square_a", 500, max_episode_steps=3)
    env.seed(0)
    start = env.reset()
    assert start.shape == (500, 2) and start.dtype == np.float32 and len(np.unique(start, axis=0)) == 500
    kept = start.copy()
    for step in range(1, 4):
        observations, _, dones, infos = env.step(np.full((500, 2), (0.0, -0.9), dtype=np.float32))
        assert dones.all() if step == 3 else not dones.any()
    # A new episode has begun in the start cell; the old one ended below
    assert (observations[:, 1] > -0.5).all() and np.array_equal(start, kept)
    assert all(info["terminal_observation"][1] < -1.5 and info["TimeLimit.truncated"] for info in infos)
    assert {(info["episode"]["r"], info["episode"]["l"]) for info in infos} == {(0.0, 3)}
    env.seed(0)
    assert np.array_equal(env.reset(), start) and not np.array_equal(env.reset(), start), "a seed is used once"


def test_attributes_and_methods():
    env = MazeVecEnv("square_a", 3)
    env.reset()
    env.set_attr("tag", 5)
    assert env.get_attr("tag", [0, 2]) == [5, 5] and env.has_attr("layout") and not env.has_attr("tags")
    with pytest.raises(AttributeError, match="DummyVecEnv"):
        env.env_method("compute_reward")
    assert env.env_is_wrapped(Monitor) == [True] * 3
