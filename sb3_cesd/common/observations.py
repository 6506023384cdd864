"""Layout of observations with a skill: dictionaries, as in HER."""

from typing import Any, TypeAlias, TypeGuard

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first, preprocess_obs
from stable_baselines3.common.vec_env import VecTransposeImage
from torch import nn

from sb3_cesd.common.skills import SkillSpace

#: Keys of the skill, and of the observation of an environment whose observations are not dictionaries
SKILL, OBSERVATION = "skill", "observation"

Observation: TypeAlias = np.ndarray | dict[str, np.ndarray]
TensorObservation: TypeAlias = th.Tensor | dict[str, th.Tensor]


def check_plain_space(observation_space: spaces.Space) -> spaces.Box | spaces.Dict:
    """Check that a skill can be added to the observation space of an environment, and return it."""
    is_dict = isinstance(observation_space, spaces.Dict)
    for name, space in observation_space.spaces.items() if is_dict else [(OBSERVATION, observation_space)]:  # type: ignore
        if not isinstance(space, spaces.Box) or 0 in space.shape or space.shape == ():
            raise ValueError(f"{name!r} is {space}, no Box with an axis: use gymnasium.wrappers.FlattenObservation.")
        # Names of entries become those of modules of PyTorch
        if is_dict and (not isinstance(name, str) or name in ("", SKILL) or "." in name or hasattr(nn.ModuleDict(), name)):
            raise ValueError(f"An entry of observations can't have the name {name!r}: rename it.")
    return observation_space  # type: ignore[return-value]


def skill_observation_space(observation_space: spaces.Space, skill_space: SkillSpace) -> spaces.Dict:
    """Add a skill to a Box or a Dict of Boxes: ``Dict(observation, skill)``; a Dict keeps its keys."""
    plain = check_plain_space(observation_space)
    entries = dict(plain.spaces) if isinstance(plain, spaces.Dict) else {OBSERVATION: plain}
    return spaces.Dict({**entries, SKILL: skill_space.box})


def plain_space(observation_space: spaces.Dict) -> spaces.Box | spaces.Dict:
    """Remove the skill from an observation space, the inverse of :func:`skill_observation_space`."""
    entries = {name: space for name, space in observation_space.spaces.items() if name != SKILL}
    return entries[OBSERVATION] if list(entries) == [OBSERVATION] else spaces.Dict(entries)  # type: ignore[return-value]


def channels_first(space: spaces.Space) -> spaces.Space:
    """Get the space that a model observes, as Stable-Baselines3 puts the channels of images first."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: channels_first(child) for name, child in space.spaces.items()})
    is_channels_last = is_image_space(space) and not is_image_space_channels_first(space)  # type: ignore[arg-type]
    return VecTransposeImage.transpose_space(space) if is_channels_last else space  # type: ignore[arg-type]


def shapes_of(space: spaces.Space) -> dict[str, tuple[int, ...] | None]:
    """Get the shapes of the entries of observations by name, whatever their bounds."""
    entries = space.spaces if isinstance(space, spaces.Dict) else {OBSERVATION: space}
    return {name: child.shape for name, child in entries.items()}


def has_skill(observation: Observation) -> TypeGuard[dict[str, np.ndarray]]:
    """Whether an observation is one with a skill."""
    return isinstance(observation, dict) and SKILL in observation


def check_has_skill(observation: Observation) -> None:
    """Check that an observation is one with a skill."""
    if not has_skill(observation):
        raise ValueError("The observation has no skill: pass a dictionary with its vector, as model.get_env() returns them.")


def entries_of(observation: Observation) -> dict[str, np.ndarray]:
    """Convert an observation, an array or a dictionary, to a dictionary without a skill."""
    if isinstance(observation, dict):
        return {name: value for name, value in observation.items() if name != SKILL}
    return {OBSERVATION: observation}


def plain_form(entries: dict) -> "np.ndarray | th.Tensor | dict":
    """Undo :func:`entries_of`: the only entry, for an environment whose observations are not dictionaries."""
    return entries[OBSERVATION] if list(entries) == [OBSERVATION] else entries


def arrays_of(observation: Any) -> dict[str, np.ndarray]:
    """Convert an observation, an array or a dictionary, or lists or tuples in their place, to arrays without a skill."""
    return {name: np.asarray(value) for name, value in entries_of(observation).items()}


def add_skill(observation: Observation, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """Add the vectors of skills to observations, in place of those that they may already contain."""
    return {**entries_of(observation), SKILL: vectors}


def to_features(observation: TensorObservation, space: spaces.Space, normalize_images: bool = True) -> TensorObservation:
    """Convert observations to floating-point numbers, and scale images to [0, 1], as SB3 does."""
    if isinstance(observation, dict):
        return {name: to_features(value, space[name], normalize_images) for name, value in observation.items()}  # type: ignore
    if is_image_space(space):
        return preprocess_obs(observation, space, normalize_images)  # type: ignore[return-value]
    return observation if observation.is_floating_point() else observation.float()


def to_states(observation: TensorObservation, space: spaces.Space) -> th.Tensor:
    """Flatten observations, of shape ``(n, *shape)``, to the states that intrinsic rewards take, shape ``(n, obs_dim)``."""
    features = to_features(observation, space)
    if isinstance(features, dict):
        return th.cat([features[name].flatten(1) for name in space.spaces], dim=1)  # type: ignore[attr-defined]
    return features.flatten(1)


def moving_averages(paths: np.ndarray, window: int) -> np.ndarray:
    """Average paths, ``(..., n_states, d)``, over up to ``window`` states that end with each, as the replay buffer does."""
    if window == 1:
        return paths
    sums = np.cumsum(paths, axis=-2, dtype=np.float64)
    sums[..., window:, :] -= sums[..., :-window, :].copy()
    counts = np.minimum(np.arange(paths.shape[-2]) + 1, window)[:, None]
    return (sums / counts).astype(np.float32)
