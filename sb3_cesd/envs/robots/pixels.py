"""Robots that observe pictures of themselves."""

from collections.abc import Callable
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.envs.robots.env import RobotEnv
from sb3_cesd.envs.robots.gl import draw_plainly, explain_rendering, import_physics
from sb3_cesd.envs.robots.locomotion import SkillAnt

#: URLB's cameras: at the side of the walker, following the quadruped, in front of the arm
CAMERAS = {"walker": 0, "quadruped": 2, "jaco": 0}
#: The ant is seen from this distance [m], halfway between from above and from the side
DISTANCE = 4.0
#: Red along x and green along y run from 0 to this brightness across the floor, on blue, as in METRA's code
FLOOR_COLOR, FLOOR_BLUE = 192, 128


class Pixels(gym.Env[np.ndarray, np.ndarray]):
    """Observes pictures, ``(image_size, image_size, 3)``, uint8, and repeats actions; comes before a robot's class."""

    image_size: int
    action_repeat: int
    take_picture: Callable[[], np.ndarray]
    _picture: np.ndarray

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        _, info = super().reset(seed=seed, options=options)
        with explain_rendering():
            self._picture = self.take_picture()
        return self._picture.copy(), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for _ in range(self.action_repeat):
            _, reward, terminated, truncated, info = super().step(action)  # type: ignore[safe-super]
            total += float(reward)
            if terminated or truncated:
                break
        if not terminated:  # a simulation that has diverged can't be drawn
            self._picture = self.take_picture()
        return self._picture.copy(), total, terminated, truncated, info


class RobotPixelsEnv(Pixels, RobotEnv):
    """
    A :class:`~sb3_cesd.envs.robots.env.RobotEnv` that observes pictures of itself, by the cameras of URLB.

    There are no shadows, reflections and smooth edges, which take most of the time where no GPU draws. An action is repeated,
    and its rewards are added, so an episode has half as many steps. Stack pictures for velocities: ``VecFrameStack(env, 3)``,
    or ``frame_stack: 3`` in RL Zoo.

    :param domain: see ``RobotEnv``
    :param task: see ``RobotEnv``
    :param image_size: height and width of the pictures [pixel]
    :param action_repeat: number of steps of the simulation with each action
    :param kwargs: other arguments of ``RobotEnv``; those of images concern :meth:`render`, but for the camera
    :raises ValueError: see ``RobotEnv``
    :raises RuntimeError: see ``RobotEnv``, or if MuJoCo can't render here
    """

    @checked
    def __init__(
        self,
        domain: Literal["walker", "quadruped", "jaco"],
        task: str,
        image_size: PositiveInt = 84,
        action_repeat: PositiveInt = 2,
        **kwargs: Any,
    ) -> None:
        self.image_size, self.action_repeat = image_size, action_repeat
        super().__init__(domain, task, **{"camera": CAMERAS[domain], **kwargs})
        EzPickle.__init__(self, domain, task, image_size, action_repeat, **kwargs)
        self.observation_space = spaces.Box(0, 255, (image_size, image_size, 3), np.uint8)
        self._camera: Any = None

    @property
    def dt(self) -> float:
        """Duration of a step, with its repetitions [s]."""
        return self.action_repeat * super().dt

    def take_picture(self) -> np.ndarray:
        if self._camera is None:  # not earlier, since the first reset compiles jaco's model again
            draw_plainly(self.physics.model)
            self.fit_buffer(self.image_size)
            [engine] = import_physics("dm_control.mujoco.engine")
            self._camera = engine.Camera(self.physics, self.image_size, self.image_size, self._camera_id)
        return self._camera.render().copy()

    def close(self) -> None:
        super().close()
        self._camera = None


class SkillAntPixels(Pixels, SkillAnt):  # type: ignore[misc]
    """
    A :class:`~sb3_cesd.envs.robots.locomotion.SkillAnt` that observes pictures of itself.

    The colour of the floor tells where the ant is, as METRA (Park et al., 2024) does with a quadruped and a humanoid.

    :param image_size: height and width of the pictures [pixel]
    :param action_repeat: number of steps with each action
    :param kwargs: other arguments of Gymnasium's class
    :raises RuntimeError: if MuJoCo can't render here
    """

    @checked
    def __init__(self, image_size: PositiveInt = 64, action_repeat: PositiveInt = 1, **kwargs: Any) -> None:
        self.image_size, self.action_repeat = image_size, action_repeat
        super().__init__(**{**kwargs, "normalize": False, "width": image_size, "height": image_size})
        EzPickle.__init__(self, image_size, action_repeat, **kwargs)
        self.observation_space = spaces.Box(0, 255, (image_size, image_size, 3), np.uint8)
        draw_plainly(self.model)
        # Gymnasium's camera hardly sees the floor
        camera = self.model.camera("track").id
        axes = np.array([[1, 0, 0], [0, 1, 1], [0, -1, 1]]) * [[1], [0.5**0.5], [0.5**0.5]]
        self.model.cam_poscom0[camera], self.model.cam_mat0[camera] = DISTANCE * axes[2], axes.T.ravel()
        texture = self.model.texture("texplane")
        (height,), (width,) = texture.height, texture.width
        colors = np.full((height, width, 3), FLOOR_BLUE, dtype=np.uint8)
        colors[..., 0] = FLOOR_COLOR * np.arange(height)[:, None] / height
        colors[..., 1] = FLOOR_COLOR * np.arange(width) / width
        self.model.tex_data[texture.adr[0] : texture.adr[0] + colors.size] = colors.ravel()
        self.model.mat_texrepeat[:] = 1

    def take_picture(self) -> np.ndarray:
        return self.mujoco_renderer.render("rgb_array").copy()
