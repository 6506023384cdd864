"""The window of ``render_mode="human"``: Gymnasium's viewer, with a camera of the robot."""

import warnings
from typing import Any

import glfw
import mujoco
from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer


def open_window(physics: Any, camera_id: int) -> MujocoRenderer:
    """
    Open a window, half as wide and high as the screen.

    :param physics: dm_control's Physics
    :param camera_id: index of the camera to look through, -1 for one moved by the mouse
    :return: a viewer, whose ``render("human")`` shows the state of ``physics``
    :raises RuntimeError: if there is no display
    """
    check_display()
    camera = {"type": mujoco.mjtCamera.mjCAMERA_FIXED, "fixedcamid": camera_id} if camera_id >= 0 else None
    return MujocoRenderer(physics.model.ptr, physics.data.ptr, default_cam_config=camera)


def check_display() -> None:
    """
    Check that a window can be opened.

    :raises RuntimeError: if there is no display
    """
    if not has_display():
        raise RuntimeError(
            "There is no display to open a window on: make the environment with render_mode='rgb_array', or without rendering "
            "(with RL Zoo: record_video instead of enjoy, or --no-render)."
        )


def has_display() -> bool:
    """
    Check whether a window can be opened. Gymnasium's viewer does not, and without a display GLFW ends the process.

    :return: whether it can
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfw.GLFWError)
        return bool(glfw.init()) and glfw.get_primary_monitor() is not None
