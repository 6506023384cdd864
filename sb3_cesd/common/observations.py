"""Layout of observations with a skill: dictionaries, as in HER."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

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
    """
    Check the observation space of an environment, before the skill is added.

    :param observation_space: the space
    :return: the same space
    :raises ValueError: if a skill can't be added to it
    """
    if isinstance(observation_space, spaces.Dict):
        _check_names(list(observation_space.spaces))
        if SKILL in observation_space.spaces:
            raise ValueError(
                f"The observation space has a key {SKILL!r} of its own, but the skill needs that key: rename it, for instance "
                "with gymnasium.wrappers.TransformObservation."
            )
        others = [name for name, space in observation_space.spaces.items() if not isinstance(space, spaces.Box)]
        if others:
            raise ValueError(
                f"A Dict must consist of Box spaces, but {', '.join(map(repr, others))} is none: convert it, for instance "
                "with gymnasium.wrappers.TransformObservation, or leave it out with gymnasium.wrappers.FilterObservation."
            )
        for name, space in observation_space.spaces.items():
            _check_shape(repr(name), space)
        return observation_space
    if not isinstance(observation_space, spaces.Box):
        raise ValueError(
            f"A skill can only be added to a Box or a Dict of Boxes, but the observation space is {short(observation_space)}: "
            "flatten it first, for instance with gymnasium.wrappers.FlattenObservation(env)."
        )
    _check_shape("The observation", observation_space)
    return observation_space


def _check_names(names: Sequence[Any]) -> None:
    """
    Check names of entries, which become those of modules of PyTorch.

    :param names: the names
    :raises ValueError: if one can't be the name of a module
    """
    remedy = "rename them, for instance with gymnasium.wrappers.TransformObservation."
    odd = [name for name in names if not isinstance(name, str) or name == ""]
    if odd:
        raise ValueError(f"Names of entries must be strings that are not empty, unlike {', '.join(map(repr, odd))}: {remedy}")
    dotted = [name for name in names if "." in name]
    if dotted:
        raise ValueError(f"Names of entries must not contain a dot, as those of {', '.join(map(repr, dotted))} do: {remedy}")
    taken = [name for name in names if hasattr(nn.ModuleDict(), name)]
    if taken:
        raise ValueError(
            f"Names of entries must not be those of methods of PyTorch modules, as {', '.join(map(repr, taken))} are: {remedy}"
        )


def _check_shape(name: str, space: spaces.Space) -> None:
    if space.shape == ():
        raise ValueError(
            f"{name} has the shape (), but needs at least one axis: give it the shape (1,), for instance with "
            "gymnasium.wrappers.ReshapeObservation(env, (1,))."
        )
    if space.shape is not None and 0 in space.shape:
        raise ValueError(
            f"{name} has the shape {space.shape}, which holds no numbers: give it some with "
            "gymnasium.wrappers.TransformObservation, or leave an entry out with gymnasium.wrappers.FilterObservation."
        )


def skill_observation_space(observation_space: spaces.Space, skill_space: SkillSpace) -> spaces.Dict:
    """
    Add a skill to the observation space of an environment.

    :param observation_space: a Box, or a Dict of Boxes
    :param skill_space: space of the skills
    :return: ``Dict(observation, skill)``; a Dict keeps its keys
    :raises ValueError: if a skill can't be added to it
    """
    plain = check_plain_space(observation_space)
    entries = dict(plain.spaces) if isinstance(plain, spaces.Dict) else {OBSERVATION: plain}
    return spaces.Dict({**entries, SKILL: skill_space.box})


def plain_space(observation_space: spaces.Dict) -> spaces.Box | spaces.Dict:
    """
    Remove the skill from an observation space, the inverse of :func:`skill_observation_space`.

    :param observation_space: a space with a skill
    :return: the space without it
    """
    entries = {name: space for name, space in observation_space.spaces.items() if name != SKILL}
    if list(entries) == [OBSERVATION]:
        return entries[OBSERVATION]  # type: ignore[return-value]
    return spaces.Dict(entries)


def short(space: spaces.Space) -> str:
    """
    Describe a space briefly, as the bounds of long vectors fill pages.

    :param space: any space
    :return: its kind and shapes
    """
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(f'{name}: {short(child)}' for name, child in space.spaces.items())})"
    if isinstance(space, spaces.Tuple):
        return f"Tuple({', '.join(map(short, space.spaces))})"
    if not isinstance(space, spaces.Box):
        return str(space)
    low, high = np.unique(space.low), np.unique(space.high)
    bounds = f"{low[0]:g}, {high[0]:g}, " if len(low) == len(high) == 1 else ""
    return f"Box({bounds}{space.shape}, {space.dtype})"


def is_channels_last(space: spaces.Space) -> bool:
    """
    Return whether observations are images that Stable-Baselines3 transposes.

    :param space: their space
    :return: whether channels come last
    """
    return is_image_space(space) and not is_image_space_channels_first(space)  # type: ignore[arg-type]


def channels_first(space: spaces.Space) -> spaces.Space:
    """
    Get the space that a model observes, as Stable-Baselines3 puts the channels of images first.

    :param space: space of an environment
    :return: space of a model that is trained in it
    """
    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: channels_first(child) for name, child in space.spaces.items()})
    if is_channels_last(space):
        return VecTransposeImage.transpose_space(space)  # type: ignore[arg-type]
    return space


def shapes_of(space: spaces.Space) -> dict[str, tuple[int, ...] | None]:
    """
    Get the shapes of observations, whatever their bounds.

    :param space: their space
    :return: shapes of the entries by name
    """
    entries = space.spaces if isinstance(space, spaces.Dict) else {OBSERVATION: space}
    return {name: child.shape for name, child in entries.items()}


def entries_of(observation: Observation) -> dict[str, np.ndarray]:
    """
    Convert an observation to a dictionary without a skill.

    :param observation: an array, or a dictionary with or without a skill
    :return: its entries by name
    """
    if isinstance(observation, dict):
        return {name: value for name, value in observation.items() if name != SKILL}
    return {OBSERVATION: observation}


def plain_form(entries: dict) -> "np.ndarray | th.Tensor | dict":
    """
    Undo :func:`entries_of`.

    :param entries: entries of an observation without a skill
    :return: the only entry, for an environment whose observations are not dictionaries; otherwise the entries
    """
    return entries[OBSERVATION] if list(entries) == [OBSERVATION] else entries


def add_skill(observation: Observation, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """
    Add skills to observations, in place of those that they may already contain.

    :param observation: one or several
    :param vectors: vector of the skill of each
    :return: observations with skills
    """
    return {**entries_of(observation), SKILL: vectors}


def to_features(observation: TensorObservation, space: spaces.Space, normalize_images: bool = True) -> TensorObservation:
    """
    Convert observations to floating-point numbers, and scale images to [0, 1], as SB3 does.

    :param observation: shape ``(n, *shape)``, or a dictionary of such tensors
    :param space: their space
    :param normalize_images: whether to scale images
    :return: the same layout
    """
    if isinstance(observation, dict):
        assert isinstance(space, spaces.Dict)
        return {name: to_features(value, space[name], normalize_images) for name, value in observation.items()}  # type: ignore[misc]
    if is_image_space(space):
        return preprocess_obs(observation, space, normalize_images)  # type: ignore[return-value]
    return observation if observation.is_floating_point() else observation.float()


def to_states(observation: TensorObservation, space: spaces.Space) -> th.Tensor:
    """
    Flatten observations to state vectors, from which intrinsic rewards are computed.

    :param observation: shape ``(n, *shape)``, or a dictionary of such tensors
    :param space: their space
    :return: shape ``(n, obs_dim)``
    """
    features = to_features(observation, space)
    if isinstance(features, dict):
        assert isinstance(space, spaces.Dict)
        return th.cat([features[name].flatten(1) for name in space.spaces], dim=1)
    return features.flatten(1) if features.dim() != 2 else features


def joined(observations: Mapping[str, np.ndarray]) -> np.ndarray:
    """
    Join the entries of observations as they are, without scaling images.

    :param observations: entries of shape ``(n, *shape)``
    :return: shape ``(n, obs_dim)``
    """
    return np.concatenate([values.reshape(len(values), -1) for values in observations.values()], axis=1)


def moving_averages(paths: np.ndarray, window: int) -> np.ndarray:
    """
    Average observations over the last steps, as the replay buffer does over its episodes.

    :param paths: observations in the order of time, each path from the start of an episode, shape ``(..., n_states, d)``
    :param window: number of observations to average, fewer at the start
    :return: means of up to ``window`` observations, ending with the one at the same index, same shape, float32
    """
    if window == 1:
        return paths
    sums = np.cumsum(paths, axis=-2, dtype=np.float64)
    sums[..., window:, :] -= sums[..., :-window, :].copy()
    counts = np.minimum(np.arange(paths.shape[-2]) + 1, window)[:, None]
    return (sums / counts).astype(np.float32)
