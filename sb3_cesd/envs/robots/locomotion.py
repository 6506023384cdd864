"""The robots of METRA and its successors: Gymnasium's Ant and HalfCheetah, which observe their position."""

import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle

from sb3_cesd.common.arguments import finite_actions
from sb3_cesd.envs.robots.env import named_warnings
from sb3_cesd.envs.robots.gl import check_display, explain_rendering, import_physics

mujoco, mujoco_env, ant_v5, half_cheetah_v5 = import_physics(
    "mujoco", *(f"gymnasium.envs.mujoco.{name}" for name in ("mujoco_env", "ant_v5", "half_cheetah_v5"))
)

# MuJoCo's default handler writes a file to the working directory; warnings of a simulation are in ``info``
if mujoco.get_mju_user_warning() is None:
    mujoco.set_mju_user_warning(logging.getLogger(__name__).info)


class ObservationScale(NamedTuple):
    """Mean and standard deviation of each entry of the observations, shape ``(obs_dim,)`` each."""

    mean: np.ndarray
    std: np.ndarray

    def normalize(self, raw: np.ndarray) -> np.ndarray:
        """Subtract the means, and divide by the standard deviations, shape ``(..., obs_dim)``."""
        return (raw - self.mean) / self.std

    def unnormalize(self, normalized: np.ndarray) -> np.ndarray:
        """Undo :meth:`normalize`."""
        return normalized * self.std + self.mean


#: METRA's statistics by robot, from 10,000 rollouts of 50 random actions
SCALES = {
    name: ObservationScale(*(np.array(statistics[moment]) for moment in ObservationScale._fields))
    for name, statistics in json.loads(Path(__file__).with_name("scales.json").read_text()).items()
}


class SkillRobot(mujoco_env.MujocoEnv):  # type: ignore[name-defined, misc]
    """
    What METRA (Park et al., 2024) and its successors change in Gymnasium's robots: x and y are among the observations, which
    are float32 and normalised by METRA's fixed statistics, and no episode ends early. Comes before Gymnasium's class.

    Actions are clipped to [-1, 1]. If the simulation diverges, the episode terminates, with the previous observation and zero
    reward, and the number of each warning of MuJoCo in ``info["physics_warnings"]``.

    :param normalize: normalise each entry of the observations by its mean and standard deviation under random actions;
        ``False`` for Gymnasium's observations
    :param kwargs: arguments of Gymnasium's class, e.g. ``render_mode``, ``width`` or ``camera_name``
    :raises RuntimeError: if there is no display for ``render_mode="human"``
    """

    observation_space: spaces.Box
    #: ``"ant"`` or ``"half_cheetah"``
    robot_name: str
    #: Arguments of Gymnasium's class
    settings: dict[str, Any] = {"exclude_current_positions_from_observation": False}  # noqa: RUF012

    def __init__(self, normalize: bool = True, **kwargs: Any) -> None:
        if kwargs.get("render_mode") == "human":
            check_display()
        #: Statistics by which observations are normalised, ``None`` if they are not
        self.observation_scale: ObservationScale | None = SCALES[self.robot_name] if normalize else None
        # Gymnasium's default camera stays where the robot starts
        image = {"width": 320, "height": 240, **({} if "camera_id" in kwargs else {"camera_name": "track"})}
        super().__init__(**{**self.settings, **image, **kwargs})
        EzPickle.__init__(self, normalize, **kwargs)
        self.observation_space = spaces.Box(-np.inf, np.inf, self.observation_space.shape, np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        before, info_before = self._get_obs(), self._get_reset_info()
        action = np.clip(finite_actions(action, self.action_space.shape), -1.0, 1.0)
        observation, reward, _, _, info = super().step(action)
        if self.data.warning.number.any():
            return before, 0.0, True, False, {**info_before, "physics_warnings": named_warnings(self.data.warning.number)}
        return observation, float(reward), False, False, info

    def render(self) -> np.ndarray | None:
        with explain_rendering():
            return super().render()

    def _get_obs(self) -> np.ndarray:
        state = super()._get_obs()
        scale = self.observation_scale
        return (state if scale is None else scale.normalize(state)).astype(np.float32)


class SkillAnt(SkillRobot, ant_v5.AntEnv):  # type: ignore[name-defined, misc]
    """
    The ant: 29 observations (position 3, orientation 4, joints 8, velocities 14), 8 actions.

    The reward is Gymnasium's without the contact cost: (x velocity [m/s]) - 0.5 ``|a|^2`` + 1 while the ant is upright.
    """

    robot_name = "ant"
    settings = {  # noqa: RUF012
        **SkillRobot.settings,
        "include_cfrc_ext_in_observation": False,
        "terminate_when_unhealthy": False,
        "contact_cost_weight": 0.0,
    }

    @property
    def position(self) -> np.ndarray:
        """Return the position of the torso in the world [m], shape ``(3,)``."""
        return self.data.qpos[:3].copy()


class SkillHalfCheetah(SkillRobot, half_cheetah_v5.HalfCheetahEnv):  # type: ignore[name-defined, misc]
    """
    The half-cheetah: 18 observations (x, z, pitch, joints 6, velocities 9), 6 actions.

    The reward is Gymnasium's: (x velocity [m/s]) - 0.1 ``|a|^2``.
    """

    robot_name = "half_cheetah"

    @property
    def position(self) -> np.ndarray:
        """Return the position of the torso in the world [m], shape ``(3,)``."""
        x, z = self.data.qpos[:2]  # z from the height of the torso in the model
        return np.array([x, 0.0, z + self.model.body("torso").pos[2]])
