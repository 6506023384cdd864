import ctypes
import os
import sys
from importlib import import_module
from types import ModuleType

#: What to do where rendering fails; ends an error message
REMEDY = (
    "Without a display, install EGL (libegl1 libegl-mesa0 libgl1-mesa-dri) and set MUJOCO_GL=egl, "
    "or OSMesa (libosmesa6) and set MUJOCO_GL=osmesa."
)
EGL_PLATFORM_DEVICE_EXT = 0x313F
MAX_DEVICES = 10


def choose_gl_backend() -> None:
    """
    Let a machine without a display render off screen; call it before MuJoCo or dm_control is imported.

    Sets ``MUJOCO_GL`` to ``egl`` where EGL works and to ``off`` where it doesn't, as both libraries would look for a display,
    and warn. Does nothing if ``MUJOCO_GL`` is set, if there is a display, or on another system than Linux.
    """
    if sys.platform != "linux" or {"MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        return
    os.environ["MUJOCO_GL"] = "egl" if egl_works() else "off"


def import_physics(*names: str) -> list[ModuleType]:
    """
    Import modules that need MuJoCo, with a backend to render; not before one is needed, as it takes a second.

    :param names: modules to import
    :return: the modules
    :raises RuntimeError: if the backend that ``MUJOCO_GL`` asks for is not there
    """
    choose_gl_backend()
    try:
        return [import_module(name) for name in names]
    except ModuleNotFoundError:
        raise
    except (AttributeError, ImportError, RuntimeError) as error:  # MuJoCo, dm_control and PyOpenGL each raise their own
        if "MUJOCO_GL" not in os.environ:
            raise
        raise RuntimeError(
            f"MuJoCo can't be loaded with MUJOCO_GL={os.environ['MUJOCO_GL']} ({type(error).__name__}: {error}). "
            f"Without rendering, set MUJOCO_GL=off. {REMEDY}"
        ) from error


def egl_works() -> bool:
    """
    :return: whether a device can be initialised, which is what MuJoCo requires of EGL when it is imported
    """
    try:
        egl = ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    egl.eglGetProcAddress.argtypes = [ctypes.c_char_p]
    egl.eglInitialize.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    query_devices_address = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
    get_display_address = egl.eglGetProcAddress(b"eglGetPlatformDisplayEXT")
    if not query_devices_address or not get_display_address:
        return False
    query_devices = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(query_devices_address)
    get_display = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(get_display_address)

    devices = (ctypes.c_void_p * MAX_DEVICES)()
    n_devices = ctypes.c_int(0)
    if not query_devices(MAX_DEVICES, devices, ctypes.byref(n_devices)):
        return False
    displays = [get_display(EGL_PLATFORM_DEVICE_EXT, device, None) for device in devices[: n_devices.value]]
    return any(display and egl.eglInitialize(display, None, None) for display in displays)
