"""Play the skills of a model, one after another from the same start."""

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch as th
from PIL import Image

from sb3_cesd.common.playing import SkillModel
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.skills import SkillName
from sb3_cesd.export import ExportedPolicy
from sb3_cesd.metrics.rollouts import as_model_observes, policy_of, record
from sb3_cesd.show.environments import PlayEnvs
from sb3_cesd.skill_ddpg import SkillDDPG

#: Longest side of an image [pixels] for up to 16 skills, and for more
LONGEST_SIDE, LONGEST_SIDE_OF_MANY, MANY = 320, 160, 16


class ChosenSkills:
    """Some skills of a model, renumbered from 0."""

    def __init__(self, model: Any, skills: Sequence[SkillName]) -> None:
        self.model, self.n_skills, self.policy = model, len(skills), policy_of(model)
        self._names = np.asarray([model.skill_space.name_of(skill) for skill in skills])

    def predict(self, observation: Any, *, deterministic: bool, skill: Any, **memory: Any) -> tuple[np.ndarray, Any]:
        return self.model.predict(observation, deterministic=deterministic, skill=self._names[skill], **memory)


class UntrainedSkills:
    """The skills of a model with an untrained actor; from images, it sees the features of the trained encoder."""

    def __init__(self, model: SkillDDPG | ExportedPolicy, seed: int = 0) -> None:
        policy = model if isinstance(model, ExportedPolicy) else model.policy
        # Networks are shared with the model instead of copied, except for those that are replaced
        self.policy = copy.deepcopy(policy, {id(child): child for child in policy.children()})
        with preserve_random_state():
            th.manual_seed(seed)
            self.policy.actor = self.policy.make_actor().to(policy.device)
        self.policy.actor.set_training_mode(False)
        self.n_skills, self.skill_space = policy.n_skills, policy.skill_space

    def predict(self, observation: Any, *, deterministic: bool, skill: Any, **memory: Any) -> tuple[np.ndarray, Any]:
        return self.policy.predict(observation, deterministic=deterministic, skill=skill, **memory)


class SkillRollout(NamedTuple):
    """
    One episode of one skill.

    :param label: name of the skill
    :param episode_return: sum of the rewards of the environment
    :param observations: observations of the model, shape ``(n_steps + 1, obs_dim)``
    :param positions: positions in the world [m], shape ``(n_steps + 1, 3)``, with z = 0 in the plane; ``None`` if the
        environment tells none
    :param frames: images, equally spaced in time, each of shape ``(height, width, 3)``; empty if it can't render
    """

    label: str
    episode_return: float
    observations: np.ndarray
    positions: np.ndarray | None
    frames: list[np.ndarray]

    @property
    def n_steps(self) -> int:
        """Number of steps until the episode or the recording ended."""
        return len(self.observations) - 1


def play_all(
    model: SkillModel,
    envs: PlayEnvs,
    labels: Sequence[str],
    n_steps: int,
    seed: int = 0,
    n_frames: int = 0,
    in_maze: bool = False,
) -> tuple[list[SkillRollout], str | None]:
    """Play skills, each from the same start: a rollout per skill, and why images are missing, if they are."""
    problem = why_no_images(envs) if n_frames > 0 else None
    n_frames = 0 if problem else n_frames
    frame_steps = set(np.linspace(0, n_steps, n_frames, dtype=int).tolist())
    shrink = partial(shrunk, side=LONGEST_SIDE if len(labels) <= MANY else LONGEST_SIDE_OF_MANY)
    rollouts = []
    # Many mazes share one generator of starts, and draw nothing
    with envs.opened(1 if in_maze else len(labels), render=n_frames > 0) as env:
        env = as_model_observes(env, model)
        n_together = 1 if in_maze else env.num_envs
        for batch in np.array_split(np.arange(len(labels)), range(n_together, len(labels), n_together)):
            # Surplus environments in the last batch are played, but not shown
            skills = np.concatenate([batch, np.repeat(batch[-1:], env.num_envs - len(batch))])
            env.seed(seed)
            # SB3 counts up from it
            env.unwrapped._seeds = [seed] * env.num_envs
            recording = record(model, env, skills, n_steps, frame_steps=frame_steps, shrink=shrink)
            for idx, skill in enumerate(batch.tolist()):
                n_states, places = recording.lengths[idx] + 1, recording.positions
                # Positions in the plane have no height
                positions = None if places is None else np.pad(places[idx, :n_states], ((0, 0), (0, 3 - places.shape[2])))
                seen, episode_return = recording.observations[idx, :n_states], float(recording.returns[idx])
                rollouts.append(SkillRollout(labels[skill], episode_return, seen, positions, recording.frames[idx]))
    return rollouts, problem


def shrunk(frame: np.ndarray, side: int) -> np.ndarray:
    """Average squares of pixels, so that the sides of an image are not above a length."""
    return np.asarray(Image.fromarray(frame).reduce(max(1, -(-max(frame.shape) // side))))


def why_no_images(envs: PlayEnvs) -> str | None:
    """Find out why environments don't render; ``None`` if they do."""
    try:
        with envs.opened(render=True) as env:
            env.reset()
            image = env.get_images()[0] if env.render_mode == "rgb_array" else None
    except Exception as error:  # graphics libraries raise various errors, e.g. MuJoCo its FatalError
        return f"{error}" or f"drawing an image raised {type(error).__name__} without a message."
    if image is None or np.ndim(image) != 3:
        return "the environment returned no image: make it with render_mode='rgb_array'."
    return None
