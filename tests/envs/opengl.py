import os

import pytest

from sb3_cesd.envs.robots.gl import egl_works

BACKEND = os.environ.get("MUJOCO_GL")
NEEDS_GL = pytest.mark.skipif(
    BACKEND == "off" or (not egl_works() and "DISPLAY" not in os.environ and BACKEND != "osmesa"),
    reason="this machine has no OpenGL (install libegl1 libegl-mesa0 libgl1-mesa-dri), or MUJOCO_GL=off",
)
