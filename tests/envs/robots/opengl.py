import os

import pytest

from sb3_cesd.envs.robots.gl import egl_works

NEEDS_GL = pytest.mark.skipif(
    not egl_works() and "DISPLAY" not in os.environ and os.environ.get("MUJOCO_GL") != "osmesa",
    reason="this machine has no OpenGL: install libegl1 libegl-mesa0 libgl1-mesa-dri",
)
