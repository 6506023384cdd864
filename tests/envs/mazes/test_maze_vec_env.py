import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.envs.mazes.ids import MAZES
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv


@pytest.mark.parametrize("reward", ["none", "coverage"])
@pytest.mark.parametrize("env_id", MAZES)
def test_one_env_does_what_sb3_makes_of_the_gymnasium_env(env_id, reward):
    reference = make_vec_env(env_id, 1, env_kwargs={"reward": reward})
    env = MazeVecEnv(MAZES[env_id], 1, reward=reward)
    assert env.observation_space == reference.observation_space and env.action_space == reference.action_space
    reference.seed(7)
    env.seed(7)
    assert np.array_equal(env.reset(), reference.reset())
    rng = np.random.default_rng(0)
    for _ in range(120):
        actions = rng.uniform(-0.95, 0.95, (1, 2)).astype(np.float32)
        observations, rewards, dones, infos = env.step(actions)
        expected = reference.step(actions)
        assert np.array_equal(observations, expected[0]) and observations.dtype == expected[0].dtype
        assert np.array_equal(rewards, expected[1]) and rewards.dtype == expected[1].dtype
        assert np.array_equal(dones, expected[2]) and dones.dtype == expected[2].dtype
        for info in (infos[0], expected[3][0]):
            if "episode" in info:
                assert info["episode"].pop("t") > 0
                info["terminal_observation"] = info["terminal_observation"].tolist()
                info["episode"]["r"] = round(info["episode"]["r"], 5)
        assert infos == expected[3]
        assert np.array_equal(env.get_attr("position"), reference.get_attr("position"))


def test_episodes_of_many():
    env = MazeVecEnv("square_a", 500, max_episode_steps=3, reward="coverage")
    env.seed(0)
    start = env.reset()
    assert start.shape == (500, 2) and start.dtype == np.float32 and len(np.unique(start, axis=0)) == 500
    returns = np.zeros(500)
    for step in range(1, 4):
        observations, rewards, dones, infos = env.step(np.full((500, 2), (0.0, -0.9), dtype=np.float32))
        returns += rewards
        assert dones.all() if step == 3 else not dones.any()
    # A new episode has begun in the start cell; the old one ended below
    assert (observations[:, 1] > -0.5).all()
    assert all(info["terminal_observation"][1] < -1.5 and info["TimeLimit.truncated"] for info in infos)
    assert [info["episode"]["r"] for info in infos] == pytest.approx(returns, abs=1e-6)
    assert {info["episode"]["l"] for info in infos} == {3}


def test_returned_arrays_and_infos_stay_as_they_are():
    env = MazeVecEnv("square_a", 4, max_episode_steps=2)
    kept = env.reset()
    steps = [env.step(np.full((4, 2), 0.1, dtype=np.float32)) for _ in range(2)]
    copies = [kept.copy(), steps[0][0].copy(), steps[1][3][0]["terminal_observation"].copy()]
    for _ in range(5):
        env.step(np.full((4, 2), -0.5, dtype=np.float32))
    for array, copy in zip((kept, steps[0][0], steps[1][3][0]["terminal_observation"]), copies, strict=True):
        assert np.array_equal(array, copy)


def test_seed_is_used_once():
    env = MazeVecEnv("tree", 3)
    env.seed(1)
    first, second = env.reset(), env.reset()
    env.seed(1)
    assert np.array_equal(env.reset(), first) and not np.array_equal(second, first)


def test_reset_after_close_goes_on_as_if_not_closed():
    closed, expected = (MazeVecEnv("tree", 3, render_mode="rgb_array") for _ in range(2))
    for env in (closed, expected):
        env.seed(1)
        env.reset()
    closed.close()
    assert np.array_equal(closed.reset(), expected.reset())
    actions = np.full((3, 2), 0.3, dtype=np.float32)
    assert np.array_equal(closed.step(actions)[0], expected.step(actions)[0])
    assert np.array_equal(closed.render(), expected.render())


def test_starts_can_be_chosen_for_one_reset():
    env = MazeVecEnv("corridor", 2, max_episode_steps=1)
    env.set_options([{"position": (3.0, 0.0)}, {}])
    observations = env.reset()
    assert observations[0] == pytest.approx([3.0, 0.0], abs=1e-5) and observations[1, 0] < -4.0
    assert (env.step(np.zeros((2, 2), dtype=np.float32))[0][:, 0] < -4.0).all()


def test_attributes_and_methods():
    env = MazeVecEnv("square_a", 3)
    env.reset()
    assert [position.shape for position in env.get_attr("position")] == [(3,)] * 3
    assert env.get_attr("layout", 1) == [env.layout]
    env.set_attr("tag", 5)
    assert env.get_attr("tag", [0, 2]) == [5, 5] and env.has_attr("tag") and not env.has_attr("tags")
    with pytest.raises(ValueError, match=r"share 'tag': set it for all of them, or use DummyVecEnv with MazeEnv\.$"):
        env.set_attr("tag", 6, indices=0)
    with pytest.raises(AttributeError, match="use DummyVecEnv with MazeEnv"):
        env.env_method("compute_reward")
    assert env.env_method("render", indices=[0, 1]) == [None, None]
    assert env.env_is_wrapped(Monitor) == [True] * 3 and env.env_is_wrapped(TimeLimit, 0) == [False]
    env.close()


@pytest.mark.parametrize("name", ["layout", "reward", "render_mode"])
def test_what_it_is_made_of_stays(name):
    env = MazeVecEnv("square_a", 3)
    with pytest.raises(ValueError, match=rf"^'{name}' of a MazeVecEnv can't be changed: make another one\.$"):
        env.set_attr(name, "coverage")


def test_a_limit_that_was_passed_ends_the_episode():
    env = MazeVecEnv("square_a", 2)
    env.reset()
    for _ in range(6):
        env.step(np.zeros((2, 2)))
    env.set_attr("max_episode_steps", 5)
    assert env.step(np.zeros((2, 2)))[2].all()


@pytest.mark.parametrize("shape", [(2,), (3, 1), (1, 2), (), (3,), (3, 3)])
def test_actions_of_another_shape(shape):
    env = MazeVecEnv("square_a", 3)
    env.reset()
    with pytest.raises(ValueError, match=r"^The actions have shape \(.*\): pass some of shape \(3, 2\)\.$"):
        env.step(np.zeros(shape))


def test_no_step_before_the_first_reset():
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        MazeVecEnv("square_a", 3).step(np.zeros((3, 2)))


def test_images():
    env = MazeVecEnv("corridor", 2, render_mode="rgb_array")
    env.reset()
    env.step(np.full((2, 2), 0.5, dtype=np.float32))
    images = env.get_images()
    assert len(images) == 2 and (images[0] != images[1]).any()
    assert env.render().shape == (2 * 62, 542, 3)


@pytest.mark.parametrize("kwargs", [{"n_envs": 0}, {"n_envs": 1, "max_episode_steps": 0}])
def test_bad_numbers(kwargs):
    with pytest.raises(ValueError, match=r"=0: pass at least 1\.$"):
        MazeVecEnv("tree", **kwargs)


def test_sb3_trains_on_it():
    env = VecNormalize(MazeVecEnv("square_a", 8))
    model = SAC("MlpPolicy", env, learning_starts=100, gradient_steps=1, policy_kwargs={"net_arch": [8]}, seed=0, device="cpu")
    model.learn(600)
    assert model.num_timesteps == 600 and len(model.ep_info_buffer) == 8 and model.ep_info_buffer[0]["l"] == 50


def test_cesd_trains_on_it(make_model):
    model = make_model(MazeVecEnv("square_a", 16)).learn(800)
    assert model.num_timesteps == 800 and model._n_updates > 0 and model.ep_info_buffer[0]["l"] == 50
