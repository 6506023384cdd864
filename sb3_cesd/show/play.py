"""Playing the skills of a model, one after another from the same start."""

from typing import NamedTuple

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.playing import SkillModel
from sb3_cesd.metrics import env_positions
from sb3_cesd.metrics.rollouts import record


class SkillRollout(NamedTuple):
    """
    One episode of one skill.

    :param skill: index of the skill
    :param episode_return: sum of the rewards of the environment
    :param observations: what the model saw, shape ``(n_steps + 1, obs_dim)``
    :param positions: place of the robot in the world [m], shape ``(n_steps + 1, 3)``; ``None`` if the environment has no
        ``position``
    :param frames: images at equal distances in time, each of shape ``(height, width, 3)``; empty if it can't render
    """

    skill: int
    episode_return: float
    observations: np.ndarray
    positions: np.ndarray | None
    frames: list[np.ndarray]


def play_skill(model: SkillModel, env: VecEnv, skill: int, n_steps: int, seed: int = 0, n_frames: int = 0) -> SkillRollout:
    """
    Play one skill.

    :param model: a trained model
    :param env: one environment without skill observations, normalised as the model expects it
    :param skill: index of the skill
    :param n_steps: number of steps, at most; shorter if the episode ends
    :param seed: seed of the reset
    :param n_frames: number of images
    :return: what happened
    """
    env.seed(seed)
    recording = record(
        model,
        env,
        skill,
        n_steps,
        position_fn=env_positions if env.has_attr("position") else None,
        frame_steps=set(np.linspace(0, n_steps, n_frames, dtype=int).tolist()),
    )
    n_states = recording.lengths[0] + 1
    positions = None if recording.places is None else recording.places[0, :n_states]
    return SkillRollout(
        skill, float(recording.returns[0]), recording.observations[0, :n_states], positions, recording.frames[0]
    )
