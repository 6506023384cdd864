"""Import of MuJoCo and dm_control, with a backend for OpenGL that works on this machine."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

#: Last sentences of error messages about rendering
REMEDY = (
    "On Linux without a display, install EGL (libegl1 libegl-mesa0 libgl1-mesa-dri) and set MUJOCO_GL=egl, "
    "or OSMesa (libosmesa6) and set MUJOCO_GL=osmesa."
)
WITHOUT_DM_CONTROL = (
    "The robots (Walker, Quadruped, Jaco) need dm_control, which is not installed: from Python 3.13 on pip leaves it out, "
    "since it requires labmaze, for which there is no wheel. The robots don't need labmaze, so install dm_control without it: "
    "'pip install --no-deps \"dm_control>=1.0.50\"'. Mazes and Gymnasium's environments work without dm_control."
)


def choose_gl_backend() -> None:
    """
    Make a machine without a display render off screen, before MuJoCo or dm_control is imported: ``MUJOCO_GL`` becomes ``egl``
    if EGL works, else ``off``. Without it, both look for a display and warn. If it is set, or there is a display, it stays.
    """
    load_triton()  # before the backend is imported, even if MUJOCO_GL is set
    if sys.platform != "linux" or {"MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        return
    platform = os.environ.get("PYOPENGL_PLATFORM")
    os.environ["MUJOCO_GL"] = "egl"
    if not egl_works():
        os.environ["MUJOCO_GL"] = "off"
        if platform is None:
            os.environ.pop("PYOPENGL_PLATFORM", None)  # MuJoCo has set it


def load_triton() -> None:
    """
    Import Triton if it is installed, as with PyTorch for CUDA, even without a GPU; PyTorch does so for an optimizer.

    After dm_control has loaded EGL, with Mesa's LLVM, Triton 3.7 crashes: both define the same symbols
    (tensorflow/tensorflow#124205 is the same clash).
    """
    if sys.platform == "linux" and "triton" not in sys.modules and find_spec("triton") is not None:
        import_module("triton")


def import_physics(*names: str) -> list[ModuleType]:
    """Import modules that need MuJoCo, after choosing a rendering backend. This takes a second, so do it only when needed."""
    choose_gl_backend()
    try:
        return [import_module(name) for name in names]
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "dm_control":
            raise
        raise ModuleNotFoundError(WITHOUT_DM_CONTROL, name="dm_control") from error
    except (AttributeError, ImportError, RuntimeError) as error:  # MuJoCo, dm_control and PyOpenGL raise different ones
        raise RuntimeError(
            f"MuJoCo can't be loaded ({type(error).__name__}: {error}). Without rendering, set MUJOCO_GL=off. {REMEDY}"
        ) from error


@contextmanager
def explain_rendering() -> Iterator[None]:
    """Add the remedy to an error of drawing; each backend raises its own."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(f"MuJoCo can't render here ({type(error).__name__}: {error}). {REMEDY}") from error


def draw_plainly(model: Any) -> None:
    """Let MuJoCo draw without shadows, reflections and smooth edges, which take most of the time where no GPU draws."""
    model.vis.quality.offsamples = model.vis.quality.shadowsize = 0
    model.light_castshadow[:] = False
    model.mat_reflectance[:] = 0.0


def check_display() -> None:
    """Check that a window can be opened: without a display, GLFW ends the process of Gymnasium's viewer."""
    import glfw

    if not (glfw.init() and glfw.get_primary_monitor()):
        raise RuntimeError("There is no display: pass render_mode='rgb_array' (with RL Zoo: record_video, or --no-render).")


def egl_works() -> bool:
    """Return whether EGL can initialise a device, which MuJoCo requires when it is imported."""
    load_triton()
    try:
        return bool(import_module("mujoco.egl").create_initialized_egl_device_display())
    except Exception:  # MuJoCo and PyOpenGL raise different ones
        return False
