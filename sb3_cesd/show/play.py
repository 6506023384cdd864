"""Play the skills of a model, one after another from the same start."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
from PIL import Image
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.playing import SkillModel
from sb3_cesd.metrics.environments import has_positions_to_play
from sb3_cesd.metrics.rollouts import record

#: Longest side of an image [pixels] for up to 16 skills, and for more
LONGEST_SIDE, LONGEST_SIDE_OF_MANY, MANY = 320, 160, 16


class SkillRollout(NamedTuple):
    """
    One episode of one skill.

    :param skill: index of the skill
    :param episode_return: sum of the rewards of the environment
    :param observations: observations of the model, shape ``(n_steps + 1, obs_dim)``
    :param positions: positions in the world [m], shape ``(n_steps + 1, 3)``, with z = 0 in the plane; ``None`` if the
        environment has no ``position``
    :param frames: images, equally spaced in time, each of shape ``(height, width, 3)``; empty if it can't render
    """

    skill: int
    episode_return: float
    observations: np.ndarray
    positions: np.ndarray | None
    frames: list[np.ndarray]

    @property
    def n_steps(self) -> int:
        """Number of steps until the episode or the recording ended."""
        return len(self.observations) - 1


def stay_on_a_line(paths: Sequence[np.ndarray]) -> bool:
    """
    Check whether robots only move along x, as a walker does.

    :param paths: positions of each, shape ``(n_steps + 1, 3)``
    :return: whether none of them moves along y
    """
    return all(np.ptp(path[:, 1]) < 1e-6 for path in paths)


def play_skill(
    model: SkillModel, env: VecEnv, skill: int, n_steps: int, seed: int = 0, n_frames: int = 0, has_places: bool = False
) -> SkillRollout:
    """
    Play one skill.

    :param model: a trained model
    :param env: environments without skill observations, normalised as the model expects; the first one is recorded
    :param skill: index of the skill
    :param n_steps: maximum number of steps; fewer if the episode ends
    :param seed: seed of the reset
    :param n_frames: number of images
    :param has_places: whether the environment has a ``position`` to record
    :return: the rollout
    """
    env.seed(seed)
    recording = record(
        model,
        env,
        skill,
        n_steps,
        with_positions=has_places,
        frame_steps=set(np.linspace(0, n_steps, n_frames, dtype=int).tolist()),
    )
    n_states = recording.lengths[0] + 1
    positions = None
    if recording.positions is not None:
        places = recording.positions[0, :n_states]
        # Positions in the plane have no height
        positions = np.pad(places, ((0, 0), (0, 3 - places.shape[1])))
    return SkillRollout(
        skill, float(recording.returns[0]), recording.observations[0, :n_states], positions, recording.frames[0]
    )


def play_all(
    model: SkillModel,
    make: Callable[[bool], VecEnv],
    skills: Sequence[int],
    n_steps: int,
    seed: int = 0,
    n_frames: int = 0,
) -> tuple[list[SkillRollout], str | None]:
    """
    Play skills, each from the same start.

    :param model: a trained model
    :param make: creates environments as for :func:`play_skill`; its argument says whether they should render
    :param skills: indices of the skills
    :param n_steps: maximum number of steps per skill
    :param seed: seed of every reset
    :param n_frames: images per skill
    :return: a rollout per skill, and why requested images are missing, if they are
    """
    problem = why_no_images(make) if n_frames > 0 else None
    if problem is not None:
        n_frames = 0
    side = LONGEST_SIDE if len(skills) <= MANY else LONGEST_SIDE_OF_MANY
    with closing(make(n_frames > 0)) as env:
        rollouts = []
        has_places = has_positions_to_play(env)
        for skill in skills:
            rollout = play_skill(model, env, skill, n_steps, seed, n_frames, has_places)
            rollouts.append(rollout._replace(frames=[shrunk(frame, side) for frame in rollout.frames]))
        return rollouts, problem


def why_no_images(make: Callable[[bool], VecEnv]) -> str | None:
    """
    Find out why environments don't render.

    :param make: creates them; its argument says whether they should render
    :return: the reason; ``None`` if they do render
    """
    with closing(make(False)) as env:
        modes = env.get_attr("metadata", indices=0)[0].get("render_modes") or [] if env.has_attr("metadata") else []
    if "rgb_array" not in modes:
        return f"the environment renders {', '.join(map(str, modes)) or 'nothing'}, not 'rgb_array'."
    try:
        with closing(make(True)) as env:
            env.reset()
            image = env.get_images()[0]
    except Exception as error:  # graphics libraries raise various errors, e.g. MuJoCo its FatalError
        return f"{error}" or f"drawing an image raised {type(error).__name__} without a message."
    if image is None or np.ndim(image) != 3:
        return "the environment returned no image: make it with render_mode='rgb_array'."
    return None


def shrunk(frame: np.ndarray, longest_side: int) -> np.ndarray:
    """
    Make a large image smaller.

    :param frame: shape ``(height, width, 3)``
    :param longest_side: largest allowed side of the result [pixels]
    :return: the image, smaller if it was larger than that
    """
    height, width = frame.shape[:2]
    scale = longest_side / max(height, width)
    if scale >= 1:
        return frame
    return np.asarray(Image.fromarray(frame).resize((round(width * scale), round(height * scale)), Image.Resampling.BOX))
