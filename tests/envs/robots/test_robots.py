import os
import subprocess
import sys
import warnings

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from formulas import OBSERVATIONS, REWARDS
from gymnasium.utils.env_checker import check_env as gym_check_env
from opengl import NEEDS_GL
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

import sb3_cesd  # noqa: F401
from sb3_cesd.envs.registration import ENVS
from sb3_cesd.envs.robots.env import RobotEnv

DOMAINS = {"walker": "Walker-v0", "quadruped": "Quadruped-v0", "jaco": "Jaco-v0"}
LENGTHS = {"walker": 1000, "quadruped": 1000, "jaco": 250}
FPS = {"walker": 40, "quadruped": 50, "jaco": 25}
SIZES = {"walker": (24, 6), "quadruped": (78, 12), "jaco": (55, 9)}


@pytest.fixture(scope="module")
def envs():
    """Made once: compiling the arm takes half a second."""
    made = {}

    def get(env_id):
        if env_id not in made:
            made[env_id] = gym.make(env_id).unwrapped
        return made[env_id]

    yield get
    for env in made.values():
        env.close()


def pointers(env):
    return env.physics.model.ptr, env.physics.data.ptr


def states_of(env, n_random=12):
    """States in which the tasks differ: thrown into the air, spinning, upside down, at rest; and those of a random rollout."""
    domain = env.domain
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    for idx in range(n_random):
        with env.physics.reset_context():
            if domain == "walker":
                env.physics.data.qpos[:] = rng.uniform(-1, 1, 9) * [0.3, 3, 3, 1, 1, 1, 1, 1, 1]
                env.physics.data.qvel[:] = rng.normal(size=9) * [3, 8, 10, 3, 3, 3, 3, 3, 3]
            elif domain == "quadruped":
                quaternion = rng.normal(size=4)
                env.physics.data.qpos[2] = rng.uniform(0.3, 2)
                env.physics.data.qpos[3:7] = quaternion / np.linalg.norm(quaternion)
                env.physics.data.qvel[:6] = rng.normal(size=6) * 4
            else:
                # The hand from far away to within the reach of the brick
                hand = env.physics.named.data.site_xpos["jaco_arm/jaco_hand/pinchsite"]
                env.physics.data.qpos[9:12] = hand + rng.normal(size=3) * 0.02 * idx
                env.physics.data.qpos[6:9] = rng.uniform(0, 1, 3)
        yield env._dm_env.task.get_reward(env.physics)
    env.reset(seed=2)
    for _ in range(60):
        yield env.step(rng.uniform(-1, 1, env.action_space.shape))[1]


@pytest.mark.parametrize("env_id", REWARDS)
def test_rewards_follow_the_formula_and_no_wrong_one(envs, env_id):
    env = envs(env_id)
    formula, wrong_formulas = REWARDS[env_id]
    rewards, expected, wrong = [], [], []
    for reward in states_of(env):
        rewards.append(reward)
        expected.append(formula(*pointers(env)))
        wrong.append([wrong_formula(*pointers(env)) for wrong_formula in wrong_formulas])
    np.testing.assert_allclose(rewards, expected, rtol=1e-12, atol=1e-14)
    assert np.ptp(rewards) > 0.1, "the states do not tell rewards apart"
    for column in np.array(wrong).T:
        assert np.abs(column - rewards).max() > 1e-3, "a wrong formula would pass"


def test_every_id_is_tested():
    assert set(REWARDS) == {env_id for env_id, entry in ENVS.items() if entry.entry_point.endswith(":RobotEnv")}
    assert len(REWARDS) == 15


@pytest.mark.parametrize("domain", DOMAINS)
def test_observation_order(envs, domain):
    env = envs(DOMAINS[domain])
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    for _ in range(30):
        assert observation.shape == (SIZES[domain][0],) and observation.dtype == np.float32
        np.testing.assert_array_equal(observation, OBSERVATIONS[domain](*pointers(env)).astype(np.float32))
        observation = env.step(rng.uniform(-1, 1, SIZES[domain][1]))[0]


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_wrong_observation_would_be_caught(envs, domain):
    """The comparison above tells every entry: another order, sign or body does not pass."""
    env = envs(DOMAINS[domain])
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    observations = np.array([env.step(rng.uniform(-1, 1, SIZES[domain][1]))[0] for _ in range(60)])
    # No two entries that change are alike, so none can stand for another
    moving = np.ptp(observations, axis=0) > 0
    assert moving.mean() > 0.9
    columns = observations[:, moving].T
    assert len(np.unique(columns, axis=0)) == len(columns)
    assert (np.abs(columns + columns[:, None]).max(axis=2) > 0).all(), "an entry is the negative of another"
    # Another order
    assert (OBSERVATIONS[domain](*pointers(env))[::-1].astype(np.float32) != observations[-1]).mean() > 0.9


@pytest.mark.parametrize(
    ("domain", "low", "high"),
    [
        ("walker", [-1] * 6, [1] * 6),
        ("quadruped", [-1, -1, -0.8] * 4, [1, 1.1, 0.8] * 4),
        ("jaco", [-0.628319] * 3 + [-0.837758] * 3 + [-5] * 3, [0.628319] * 3 + [0.837758] * 3 + [5] * 3),
    ],
)
def test_actions_are_scaled_to_the_actuators(envs, domain, low, high):
    env = envs(DOMAINS[domain])
    low, high = np.array(low), np.array(high)
    assert env.action_space == gym.spaces.Box(-1, 1, (SIZES[domain][1],), np.float32)
    for action in (-1.0, -0.25, 0.0, 1.0, 3.0):
        env.reset(seed=0)
        env.step(np.full(len(low), action))
        expected = low + (high - low) * (min(action, 1.0) + 1) / 2
        np.testing.assert_allclose(env.physics.data.ctrl, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("domain", DOMAINS)
def test_seed_repeats_the_episode_and_the_stream_goes_on(envs, domain):
    env = envs(DOMAINS[domain])

    def episode(seed):
        observation, _ = env.reset(seed=seed)
        actions = np.random.default_rng(0).uniform(-1, 1, (5, SIZES[domain][1]))
        return np.array([observation, *(env.step(action)[0] for action in actions)])

    first, second, third = episode(7), episode(None), episode(7)
    assert (first == third).all() and (first != second).any()
    assert (episode(None) == second).all()
    assert (episode(8) != first).any()
    episode(2**40 + 3)  # RL Zoo adds the index of the environment to a seed of 32 bits


@pytest.mark.parametrize("domain", DOMAINS)
def test_episode_is_truncated_at_its_length(envs, domain):
    env = gym.make(DOMAINS[domain])
    env.reset(seed=0)
    for step in range(1, LENGTHS[domain] + 1):
        *_, terminated, truncated, _ = env.step(np.zeros(SIZES[domain][1], np.float32))
        assert not terminated and truncated == (step == LENGTHS[domain])
    # dm_control ends it too, without Gymnasium's TimeLimit
    assert env.unwrapped._dm_env._reset_next_step
    assert env.spec.max_episode_steps == LENGTHS[domain]


@pytest.mark.parametrize("env_id", REWARDS)
def test_checkers_have_nothing_to_say(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Gymnasium says so of every unbounded space, also of its own robots'
        warnings.filterwarnings("ignore", message=".*Box observation space (minimum|maximum) value is -?infinity")
        env = gym.make(env_id)
        gym_check_env(env.unwrapped, skip_render_check=True)
        sb3_check_env(env)
        env.close()


@NEEDS_GL
@pytest.mark.parametrize("domain", DOMAINS)
def test_render(domain):
    env = gym.make(DOMAINS[domain], render_mode="rgb_array", width=160, height=120)
    assert env.metadata["render_fps"] == FPS[domain] == round(1 / env.unwrapped.dt)
    env.reset(seed=0)
    images = []
    for _ in range(2):
        images.append(env.render())
        for _ in range(15):
            env.step(np.ones(SIZES[domain][1], np.float32))
    assert images[0].shape == (120, 160, 3) and images[0].dtype == np.uint8
    assert images[0].std() > 10 and (images[0] != images[1]).any()
    env.close()
    env.close()


@NEEDS_GL
def test_camera_follows_the_quadruped():
    env = gym.make("Quadruped-v0", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    images = {}
    for place in (0.0, 4.0):
        with env.physics.reset_context():
            env.physics.data.qpos[:2] = place
        images[place] = env.render().astype(int)
    # The robot stays in the middle of the picture, and skin-coloured
    for image in images.values():
        middle = image[60:180, 90:230]
        assert (middle[..., 0] > middle[..., 2] + 40).mean() > 0.1
    env.close()


@pytest.mark.parametrize("env_id", ["Walker-v0", "SkillAnt-v0"])
def test_render_without_opengl_says_what_to_install(env_id):
    code = (
        "import gymnasium as gym, sb3_cesd\n"
        f"env = gym.make('{env_id}', render_mode='rgb_array'); env.reset()\n"
        "try: env.render()\n"
        "except RuntimeError as error: print(error)\n"
    )
    environment = {**os.environ, "MUJOCO_GL": "off"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert "set MUJOCO_GL=egl, or OSMesa (libosmesa6) and set MUJOCO_GL=osmesa" in result.stdout, result.stderr


def test_fps_is_not_shared():
    walker, jaco = RobotEnv("walker", "stand"), RobotEnv("jaco", "reach_top_left")
    assert (walker.metadata["render_fps"], jaco.metadata["render_fps"]) == (40, 25)
    assert "render_fps" not in RobotEnv.metadata


@pytest.mark.parametrize("domain", DOMAINS)
def test_pickled_copy_works(domain):
    env = gym.make(DOMAINS[domain])
    env.reset(seed=3)
    copy = cloudpickle.loads(cloudpickle.dumps(env))
    first, second = env.reset(seed=5)[0], copy.reset(seed=5)[0]
    assert (first == second).all()
    env.close()
    assert copy.step(copy.action_space.sample())[0].shape == (SIZES[domain][0],)
    copy.close()


@pytest.mark.slow
def test_subproc_vec_env_equals_dummy_vec_env():
    dummy = make_vec_env("sb3_cesd:Jaco-v0", 2, seed=3)
    subproc = make_vec_env("sb3_cesd:Jaco-v0", 2, seed=3, vec_env_cls=SubprocVecEnv)
    actions = np.random.default_rng(0).uniform(-1, 1, (5, 2, 9))
    try:
        assert (dummy.reset() == subproc.reset()).all()
        for action in actions:
            assert (dummy.step(action)[0] == subproc.step(action)[0]).all()
    finally:
        subproc.close()


def test_jaco_without_recompilation_is_the_same():
    from dm_control import composer

    from sb3_cesd.envs.robots import jaco

    def recompiling(task, time_limit):
        return composer.Environment(task, time_limit=time_limit)

    envs = [jaco.make("reach_bottom_right"), jaco.make("reach_bottom_right", recompiling)]
    for env in envs:
        env._random_state = np.random.RandomState(5)
    rng = np.random.default_rng(0)
    for _ in range(3):
        steps = [env.reset() for env in envs]
        for _ in range(4):
            for name in jaco.OBSERVABLES:
                np.testing.assert_array_equal(steps[0].observation[name], steps[1].observation[name])
            action = rng.uniform(-0.5, 0.5, 9)
            steps = [env.step(action) for env in envs]
            assert steps[0].reward == steps[1].reward


@pytest.mark.parametrize(
    ("env_id", "place"),
    [
        ("JacoReachTopLeft-v0", (-0.09, 0.09)),
        ("JacoReachTopRight-v0", (0.09, 0.09)),
        ("JacoReachBottomLeft-v0", (-0.09, -0.09)),
        ("JacoReachBottomRight-v0", (0.09, -0.09)),
        ("Jaco-v0", (-0.09, 0.09)),
    ],
)
def test_place_of_the_brick(envs, env_id, place):
    env = envs(env_id)
    for _ in range(2):
        env.reset()
        np.testing.assert_allclose(env.physics.data.qpos[9:11], place, atol=2e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_action_that_is_not_finite(envs, value):
    env = envs("Walker-v0")
    env.reset(seed=0)
    action = np.zeros(6)
    action[[1, 4]] = value
    with pytest.raises(ValueError, match=r"Entries \[1, 4\] of the action are not finite: pass numbers between -1 and 1"):
        env.step(action)
    env.step(np.zeros(6))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("cheetah", "run"), "choose one of walker, quadruped, jaco"),
        (("walker", "jump"), "choose one of stand, walk, run, flip"),
        (("walker", "run", "ascii"), "choose 'rgb_array', 'human' or None"),
    ],
)
def test_bad_arguments(args, message):
    with pytest.raises(ValueError, match=message):
        RobotEnv(*args)


def test_registration_imports_no_physics_engine():
    code = (
        "import sb3_cesd, sys; sb3_cesd.envs.register_envs(); assert not {'mujoco', 'dm_control', 'shimmy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_position(envs):
    env = envs("Quadruped-v0")
    env.reset(seed=0)
    with env.physics.reset_context():
        env.physics.data.qpos[:3] = (1.0, -2.0, 3.0)
    np.testing.assert_allclose(env.position, (1, -2, 3), atol=1e-9)
