"""Playing the skills of a model, one after another from the same start."""

from typing import NamedTuple

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.skill_ddpg import SkillDDPG


class SkillRollout(NamedTuple):
    """
    One episode of one skill.

    :param skill: index of the skill
    :param episode_return: sum of the rewards of the environment
    :param observations: shape ``(n_steps + 1, obs_dim)``
    :param positions: place of the robot in the world [m], shape ``(n_steps + 1, 3)``; ``None`` if the environment has no
        ``position``
    :param frames: images at equal distances in time, each of shape ``(height, width, 3)``; empty if it can't render
    """

    skill: int
    episode_return: float
    observations: np.ndarray
    positions: np.ndarray | None
    frames: list[np.ndarray]


def play_skill(
    model: SkillDDPG,
    env: gym.Env,
    skill: int,
    n_steps: int,
    seed: int = 0,
    n_frames: int = 0,
    vec_normalize: VecNormalize | None = None,
) -> SkillRollout:
    """
    :param model: a trained model
    :param env: the environment, without skill observations
    :param skill: index of the skill
    :param n_steps: number of steps, at most; shorter if the episode ends
    :param seed: seed of the reset
    :param n_frames: number of images
    :param vec_normalize: normalises the observations for the model
    :return: what happened
    """
    frame_steps = set(np.linspace(0, n_steps, n_frames, dtype=int).tolist()) if n_frames > 0 else set()
    has_position = hasattr(env.unwrapped, "position")
    observation, _ = env.reset(seed=seed)
    observations, positions, frames, episode_return = [observation], [], [], 0.0
    for step in range(n_steps + 1):
        if has_position:
            positions.append(env.unwrapped.position)  # type: ignore[attr-defined]
        if step in frame_steps:
            frames.append(np.asarray(env.render()))
        if step == n_steps:
            break
        seen = observation if vec_normalize is None else vec_normalize.normalize_obs(observation)
        action, _ = model.predict(seen, deterministic=True, skill=skill)  # type: ignore[arg-type]
        observation, reward, terminated, truncated, _ = env.step(action)
        episode_return += float(reward)
        observations.append(observation)
        if terminated or truncated:
            break
    return SkillRollout(skill, episode_return, np.array(observations), np.array(positions) if has_position else None, frames)
