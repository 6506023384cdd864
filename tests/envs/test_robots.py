"""The robots of URLB, one by one."""

import os
import subprocess
import sys
import warnings

import cloudpickle
import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gym_check_env
from opengl import NEEDS_GL
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from sb3_cesd.envs.robots.env import CAMERAS, RobotEnv
from sb3_cesd.envs.robots.gl import REMEDY, import_physics

IDS = {"walker": "Walker-v0", "quadruped": "Quadruped-v0", "jaco": "Jaco-v0"}
LENGTHS = {"walker": 1000, "quadruped": 1000, "jaco": 250}
FPS = {"walker": 40, "quadruped": 50, "jaco": 25}
BOUNDS = {
    "walker": ([-1] * 6, [1] * 6),
    "quadruped": ([-1, -1, -0.8] * 4, [1, 1.1, 0.8] * 4),
    "jaco": ([-0.628319] * 3 + [-0.837758] * 3 + [-5] * 3, [0.628319] * 3 + [0.837758] * 3 + [5] * 3),
}


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


def jaco_observation(model, data):
    """Arm: sines and cosines of joints, torques about them (symlog), velocities; hand; brick."""
    hand = data.site("jaco_arm/jaco_hand/pinchsite")
    arm = np.arange(6)
    torques = np.array([data.sensor(f"jaco_arm/joint_{joint + 1}_torque").data @ model.jnt_axis[joint] for joint in arm])
    return np.concatenate(
        [
            np.stack([np.sin(data.qpos[arm]), np.cos(data.qpos[arm])], axis=1).ravel(),
            np.sign(torques) * np.log1p(np.abs(torques)),
            data.qvel[arm],
            data.qpos[6:9],
            data.qvel[6:9],
            hand.xpos,
            hand.xmat,
            data.sensor("duplo2x4/angular_velocity").data,
            data.sensor("duplo2x4/linear_velocity").data,
            data.sensor("duplo2x4/orientation").data,
            data.sensor("duplo2x4/position").data,
        ]
    )


def test_order_of_observations_of_the_arm(envs):
    env = envs("Jaco-v0")
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    for _ in range(30):
        assert observation.dtype == np.float32
        expected = jaco_observation(env.physics.model.ptr, env.physics.data.ptr)
        np.testing.assert_array_equal(observation, expected.astype(np.float32))
        observation = env.step(rng.uniform(-1, 1, 9))[0]


@pytest.mark.parametrize("domain", IDS)
def test_actions_are_scaled_to_the_actuators(envs, domain):
    env = envs(IDS[domain])
    low, high = map(np.array, BOUNDS[domain])
    assert env.action_space == gym.spaces.Box(-1, 1, (len(low),), np.float32)
    env.reset(seed=0)
    actions = [*(np.full(len(low), each) for each in (-1.0, -0.25, 0.0, 1.0, 3.0)), *np.eye(len(low))]
    for action in actions:
        env.step(action)
        expected = low + (high - low) * (np.minimum(action, 1.0) + 1) / 2
        np.testing.assert_allclose(env.physics.data.ctrl, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("domain", IDS)
def test_episode_is_truncated_at_its_length(domain):
    env = gym.make(IDS[domain])
    env.reset(seed=0)
    for step in range(1, LENGTHS[domain] + 1):
        *_, terminated, truncated, _ = env.step(np.zeros(env.action_space.shape, np.float32))
        assert not terminated and truncated == (step == LENGTHS[domain])
    # dm_control ends it too, without Gymnasium's TimeLimit
    assert env.unwrapped._dm_env._reset_next_step
    assert env.spec.max_episode_steps == LENGTHS[domain]


@pytest.mark.parametrize("render_mode", [None, pytest.param("rgb_array", marks=NEEDS_GL)])
@pytest.mark.parametrize("domain", IDS)
def test_checkers_have_nothing_to_say(domain, render_mode):
    """SB3's closes the environment, and goes on."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Gymnasium says so of every unbounded space, also of its own robots'
        warnings.filterwarnings("ignore", message=".*Box observation space (minimum|maximum) value is -?infinity")
        env = gym.make(IDS[domain], render_mode=render_mode)
        gym_check_env(env.unwrapped, skip_render_check=render_mode is None)
        sb3_check_env(env, skip_render_check=render_mode is None)
        env.close()


@NEEDS_GL
@pytest.mark.parametrize("domain", IDS)
def test_images(domain):
    env = gym.make(IDS[domain], render_mode="rgb_array", width=1280, height=720)  # larger than the buffer of the model
    assert env.metadata["render_fps"] == FPS[domain] == round(1 / env.unwrapped.dt)
    env.reset(seed=0)
    images = [env.render()]
    env.close()
    env.close()
    images.append(env.render())
    for _ in range(15):
        env.step(np.ones(env.action_space.shape, np.float32))
    images.append(env.render())
    assert images[0].shape == (720, 1280, 3) and images[0].dtype == np.uint8 and images[0].std() > 10
    assert (images[0] == images[1]).all() and (images[1] != images[2]).any()
    env.close()
    assert gym.make(IDS[domain]).unwrapped.render() is None


@pytest.mark.parametrize("domain", IDS)
def test_pickled_copy(domain):
    env = gym.make(IDS[domain])
    env.reset(seed=3)
    copied = cloudpickle.loads(cloudpickle.dumps(env))
    np.testing.assert_array_equal(env.reset(seed=5)[0], copied.reset(seed=5)[0])
    env.close()
    copied.step(copied.action_space.sample())


def test_arm_without_recompilation_is_the_same():
    """To the last bit, with seeds given and not, and episodes left before their end; dm_control compiles for each."""
    from dm_control import composer
    from shimmy.dm_control_compatibility import DmControlCompatibilityV0

    from sb3_cesd.envs.robots import jaco

    env = RobotEnv("jaco", "reach_bottom_right")
    recompiling = jaco.make(env.task, lambda task, time_limit: composer.Environment(task, time_limit=time_limit))
    reference = DmControlCompatibilityV0(recompiling)
    rng = np.random.default_rng(0)
    for seed in (3, None, 4, None):
        observation, expected = env.reset(seed=seed)[0], reference.reset(seed=seed)[0]
        for _ in range(10):
            np.testing.assert_array_equal(observation, jaco.flatten(expected).astype(np.float32))
            action = rng.uniform(-1, 1, 9)
            observation, reward, *_ = env.step(action)
            expected, expected_reward, *_ = reference.step(env.scale_action(action))
            assert reward == expected_reward
    np.testing.assert_allclose(env.physics.data.qpos[9:11], (0.09, -0.09), atol=2e-3)


@pytest.mark.parametrize(
    ("domain", "task"), [("walker", "stand"), ("walker", "run"), ("quadruped", "walk"), ("quadruped", "run")]
)
def test_robot_is_that_of_the_suite(domain, task):
    """dm_control's own task, made by its own constructor."""
    [suite] = import_physics(f"dm_control.suite.{domain}")
    env = RobotEnv(domain, task)
    if domain == "walker" or task in ("walk", "run"):
        make = getattr(suite, task)
    expected = make(random=np.random.RandomState(5), environment_kwargs={"flat_observation": True})
    observation, _ = env.reset(seed=5)
    step = expected.reset()
    rng = np.random.default_rng(0)
    for _ in range(40):
        np.testing.assert_array_equal(observation, step.observation["observations"].astype(np.float32))
        action = rng.uniform(-1, 1, env.action_space.shape)
        observation, reward, *_ = env.step(action)
        step = expected.step(env.scale_action(action))
        assert reward == step.reward


def test_initial_states_of_the_quadruped_are_those_of_the_suite():
    """All of what a simulation goes on from, with the start of the solver; ours are found faster."""
    suite, quadruped = import_physics("dm_control.suite.quadruped", "sb3_cesd.envs.robots.quadruped")
    expected, env = suite.run(random=np.random.RandomState(3)), quadruped.make("run")
    env.task._random = np.random.RandomState(3)
    heights = set()
    for _ in range(25):
        expected.reset()
        env.reset()
        states = [each.physics.get_state(mujoco.mjtState.mjSTATE_INTEGRATION) for each in (expected, env)]
        np.testing.assert_array_equal(*states)
        np.testing.assert_array_equal(env.physics.data.sensordata, expected.physics.data.sensordata)
        heights.add(env.physics.data.qpos[2])
    assert len(heights) > 5 and min(heights) > 0.2


def test_bad_actions(envs):
    env = envs("Walker-v0")
    env.reset(seed=0)
    for action in (np.full(6, np.nan), np.zeros(5), np.array(0.0)):
        with pytest.raises(ValueError, match=r"not finite|reshape"):
            env.step(action)


class Window:
    """Stands for Gymnasium's viewer."""

    def __init__(self, model, data, default_cam_config):
        self.model, self.data, self.camera = model, data, default_cam_config
        self.calls = []

    def render(self, mode):
        self.calls.append(mode)

    def close(self):
        self.calls.append("close")


@pytest.mark.parametrize("domain", IDS)
def test_window_shows_each_state_through_the_camera_of_the_robot(monkeypatch, domain):
    [rendering] = import_physics("gymnasium.envs.mujoco.mujoco_rendering")
    monkeypatch.setattr(rendering, "MujocoRenderer", Window)
    monkeypatch.setattr("sb3_cesd.envs.robots.env.check_display", lambda: None)
    env = gym.make(IDS[domain], render_mode="human")
    for _ in range(2):
        env.reset(seed=0)
        env.step(env.action_space.sample())
    window, physics = env.unwrapped._window, env.unwrapped.physics
    assert window.calls == ["human"] * 3  # the first step, the second reset and step
    assert physics.model.id2name(window.camera["fixedcamid"], "camera") == CAMERAS[domain]
    # jaco compiles its model again with the first reset: the window shows the one that moves
    assert window.model is physics.model.ptr and window.data is physics.data.ptr
    env.close()
    env.close()
    assert window.calls[3:] == ["close"]


def run_elsewhere(code, folder=None, **variables):
    """Run code on a machine without display, in a process of its own: the backend is chosen once."""
    places = ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY", "PYOPENGL_PLATFORM")
    environment = {name: value for name, value in os.environ.items() if name not in places}
    result = subprocess.run(
        [sys.executable, "-c", "import gymnasium as gym, sys, sb3_cesd\n" + code],
        env={**environment, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return result.stdout, result.stderr.splitlines()[-1] if result.stderr else ""


def test_physics_engine_is_imported_by_making_a_robot_only_and_triton_before(tmp_path):
    """The LLVM of Mesa before Triton, as it comes with PyTorch for CUDA, is a crash. Warnings of MuJoCo leave no file."""
    (tmp_path / "triton.py").write_text("import sys\nprint('mujoco' in sys.modules)")
    code = (
        "assert not {'mujoco', 'dm_control', 'shimmy'} & set(sys.modules)\n"
        "gym.make('SkillHalfCheetah-v0').reset(); gym.make('Walker-v0').reset(); print('made')\n"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    output, error = run_elsewhere(code, tmp_path, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1")
    assert output.split() == ["False", "made"], error
    assert [file.name for file in tmp_path.iterdir()] == ["triton.py"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_machines_that_can_not_draw_say_what_to_do():
    code = (
        "for env_id in ('Walker-v0', 'SkillAnt-v0'):\n"
        "    for mode in ('rgb_array', 'human'):\n"
        "        try:\n"
        "            env = gym.make(env_id, render_mode=mode)\n"
        "            env.reset(); env.step(env.action_space.sample()); env.render()\n"
        "        except RuntimeError as error: print(error)\n"
    )
    output, _ = run_elsewhere(code, MUJOCO_GL="off")
    assert output.count(REMEDY) == 2 and output.count("There is no display") == 2
    output, error = run_elsewhere("gym.make('Walker-v0')", MUJOCO_GL="vulkan")
    assert error.startswith("RuntimeError") and error.endswith(REMEDY)
