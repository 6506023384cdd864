import ctypes
import os
import sys

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
