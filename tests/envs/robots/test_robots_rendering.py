import os
import subprocess
import sys

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env as gym_check_env
from opengl import NEEDS_GL

import sb3_cesd  # noqa: F401
from sb3_cesd.envs.robots.env import CAMERAS, RobotEnv
from sb3_cesd.envs.robots.gl import REMEDY

IDS = {"walker": "Walker-v0", "quadruped": "Quadruped-v0", "jaco": "Jaco-v0"}
#: Variables that tell where to draw
PLACES = ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY", "PYOPENGL_PLATFORM")


def run_elsewhere(code, **variables):
    """Run code on a machine without display, in a process of its own: the backend is chosen once."""
    environment = {name: value for name, value in os.environ.items() if name not in PLACES}
    return subprocess.run(
        [sys.executable, "-c", "import gymnasium as gym, sb3_cesd\n" + code],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


@NEEDS_GL
@pytest.mark.parametrize("domain", IDS)
def test_checker_has_nothing_to_say_of_images(domain):
    env = gym.make(IDS[domain], render_mode="rgb_array")
    with pytest.warns(UserWarning) as record:  # those of the unbounded space, see test_robots.py
        gym_check_env(env.unwrapped)
    assert [str(warning.message) for warning in record if "Box observation space" not in str(warning.message)] == []


@NEEDS_GL
@pytest.mark.parametrize("domain", IDS)
def test_image_larger_than_the_buffer_of_the_model(domain):
    env = RobotEnv(domain, {"jaco": "reach_top_left"}.get(domain, "stand"), render_mode="rgb_array", width=1280, height=720)
    env.reset(seed=0)
    image = env.render()
    assert image.shape == (720, 1280, 3) and image.std() > 10
    env.close()


@NEEDS_GL
def test_cameras_by_name_and_by_index():
    images = {}
    for camera in (None, "side", 0, "back", 1, -1):
        env = RobotEnv("walker", "stand", render_mode="rgb_array", camera=camera)
        env.reset(seed=0)
        images[camera] = env.render()
        env.close()
    assert (images[None] == images["side"]).all() and (images["side"] == images[0]).all()
    assert (images["back"] == images[1]).all()
    assert (images["back"] != images["side"]).any() and (images[-1] != images["side"]).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"camera": "front"}, "There is no camera 'front': choose one of side, back, or an index from -1 to 1"),
        ({"camera": 2}, "There is no camera 2: choose one of side, back, or an index from -1 to 1"),
        ({"width": 0}, "not 0 x 240: pass a positive width and height"),
        ({"height": -1}, "not 320 x -1: pass a positive width and height"),
    ],
)
def test_bad_image(arguments, message):
    with pytest.raises(ValueError, match=message):
        RobotEnv("walker", "stand", **arguments)


@NEEDS_GL
@pytest.mark.parametrize("domain", IDS)
def test_closed_after_an_image(domain):
    env = gym.make(IDS[domain], render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    env.render()
    env.close()
    env.close()
    for use in (env.render, lambda: env.step(env.action_space.sample())):
        with pytest.raises(
            gym.error.ClosedEnvironmentError, match=r"This environment is closed: call reset\(\) to open it again"
        ):
            use()


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
    RobotEnv("walker", "stand").close()  # chooses a backend, before the window imports MuJoCo
    from sb3_cesd.envs.robots import window

    monkeypatch.setattr(window, "MujocoRenderer", Window)
    monkeypatch.setattr(window, "has_display", lambda: True)
    env = gym.make(IDS[domain], render_mode="human")
    for _ in range(2):
        env.reset(seed=0)
        env.step(env.action_space.sample())
        assert env.render() is None
    shown, physics = env.unwrapped._window, env.unwrapped.physics
    assert shown.calls == ["human"] * 3  # the first step, the second reset and step
    assert physics.model.id2name(shown.camera["fixedcamid"], "camera") == CAMERAS[domain]
    # jaco compiles its model again with the first reset: the window shows the one that moves
    assert shown.model is physics.model.ptr and shown.data is physics.data.ptr
    env.close()
    env.close()
    assert shown.calls[3:] == ["close"]
    # Opened again, it shows the state in another window
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert env.unwrapped._window is not shown and env.unwrapped._window.calls == ["human"]
    assert env.unwrapped._window.data is env.unwrapped.physics.data.ptr
    env.close()
    assert env.unwrapped._window.calls == ["human", "close"] and shown.calls[3:] == ["close"]


@pytest.mark.skipif("DISPLAY" not in os.environ, reason="this machine has no display")
def test_window_on_a_display():
    env = gym.make("Jaco-v0", render_mode="human")
    for _ in range(2):
        env.reset(seed=0)
        env.step(env.action_space.sample())
    env.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
@pytest.mark.parametrize(("env_id", "when_made"), [("Walker-v0", False), ("SkillAnt-v0", True)])
def test_window_without_a_display_is_refused(env_id, when_made):
    result = run_elsewhere(
        f"env = gym.make('{env_id}', render_mode='human'); env.reset(); print('reset'); env.step(env.action_space.sample())"
    )
    assert result.returncode == 1, "the process was ended from within"
    # On Python 3.13 dm_control tells that labmaze is missing
    assert result.stdout.endswith("reset\n") != when_made
    last = result.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: There is no display to open a window on: make the environment with render_mode=")
    assert "GLFWError" not in result.stderr


def test_backend_that_is_not_there_says_what_to_do():
    result = run_elsewhere("gym.make('Walker-v0')", MUJOCO_GL="vulkan")
    last = result.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: MuJoCo can't be loaded with MUJOCO_GL=vulkan (")
    assert last.endswith(REMEDY) and REMEDY.endswith("or OSMesa (libosmesa6) and set MUJOCO_GL=osmesa.")


def test_error_of_an_import_is_not_taken_for_one_of_the_backend(monkeypatch):
    from sb3_cesd.envs.robots.gl import import_physics

    monkeypatch.setenv("MUJOCO_GL", "egl")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'sb3_cesd\.envs\.robots\.cheetah'"):
        import_physics("sb3_cesd.envs.robots.cheetah")


@pytest.mark.parametrize("domain", IDS)
def test_images_are_optional(domain):
    env = gym.make(IDS[domain])
    env.reset(seed=0)
    assert env.unwrapped.render() is None
    env.close()


@pytest.mark.parametrize("variables", [{}, {"MUJOCO_GL": "off"}], ids=["chosen", "given"])
def test_triton_is_loaded_before_opengl(variables, tmp_path):
    """As it comes with PyTorch for CUDA: the LLVM of Mesa before it is a crash."""
    (tmp_path / "triton.py").write_text(
        "import sys\nprint('Triton after', [m for m in ('OpenGL', 'mujoco') if m in sys.modules])"
    )
    made = run_elsewhere("gym.make('Walker-v0').reset(seed=0); print('made')", PYTHONPATH=str(tmp_path), **variables)
    said = [line for line in made.stdout.splitlines() if line.startswith(("Triton", "made"))]
    assert said == ["Triton after []", "made"], made.stderr
