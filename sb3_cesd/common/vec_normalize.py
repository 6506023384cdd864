"""Statistics of ``VecNormalize``, their files, and environments that are normalised as those of training."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, VecTransposeImage, unwrap_vec_normalize

from sb3_cesd.common.files import AnyPath, dump_whole, load_pickle
from sb3_cesd.common.observations import OBSERVATION, Observation, channels_first, entries_of, plain_form, shapes_of

#: What :func:`normalize_like_training` changes of a ``VecNormalize``
NORMALIZATION = ("training", "norm_obs", "norm_obs_keys", "obs_rms", "clip_obs", "epsilon")


def normalize_like_training(env: VecEnv, statistics: VecNormalize | None) -> VecEnv:
    """
    Normalise the observations of other environments as in training.

    The statistics of training are shared, so that they are always the latest, and never changed.

    :param env: environments without skill observations, with a ``VecNormalize`` of their own (which is changed) or without
    :param statistics: ``VecNormalize`` of training, ``None`` if there was none
    :return: the environments, normalised
    :raises ValueError: if the statistics are of other observations
    """
    normalizer = unwrap_vec_normalize(env)
    if normalizer is None:
        if statistics is None:
            return env
        keys = None
        if isinstance(env.observation_space, spaces.Dict) and statistics.norm_obs:
            # Not all entries, as the space describes images that are normalised as other arrays
            keys = [name for name in observation_statistics(statistics) if name in env.observation_space.spaces]
        env = normalizer = VecNormalize(env, norm_obs=statistics.norm_obs, norm_reward=False, norm_obs_keys=keys)
    normalizer.training = False
    normalizer.norm_obs = statistics is not None and statistics.norm_obs
    if statistics is not None and statistics.norm_obs:
        # The normalizer has none of its own if it did not normalise observations
        known, trained = shapes_of(normalizer.observation_space), observation_statistics(statistics)
        shapes = {name: rms.mean.shape for name, rms in trained.items()}
        if {name: known.get(name) for name in shapes} != shapes:
            raise ValueError(
                f"The statistics of VecNormalize are of observations of shape {_shapes(shapes)}, those to "
                f"normalise are of shape {_shapes(known)}: pass environments wrapped as those of training."
            )
        if isinstance(normalizer.observation_space, spaces.Dict):
            normalizer.obs_rms, normalizer.norm_obs_keys = trained, list(trained)
        else:
            normalizer.obs_rms = trained[OBSERVATION]
        normalizer.clip_obs, normalizer.epsilon = statistics.clip_obs, statistics.epsilon
    return env


@contextmanager
def frozen_statistics(env: VecEnv) -> Iterator[None]:
    """
    Keep the statistics of ``VecNormalize`` as they are while something else than training plays.

    :param env: environments, with or without ``VecNormalize``
    :return: context in which they play
    """
    normalizer = unwrap_vec_normalize(env)
    if normalizer is None:
        yield
        return
    was_training, normalizer.training = normalizer.training, False
    try:
        yield
    finally:
        normalizer.training = was_training


def transpose_like_training(env: VecEnv, space: spaces.Space) -> VecEnv:
    """
    Put the channels of images first where the model observes them so: Stable-Baselines3 transposes only the environments of
    training.

    :param env: environments
    :param space: space that the model observes
    :return: the environments, in a ``VecTransposeImage`` if that makes their observations those of the model
    """
    given, observed = shapes_of(env.observation_space), shapes_of(space)
    if given == observed or shapes_of(channels_first(env.observation_space)) != observed:
        return env
    return VecTransposeImage(env)


def normalizes_observations(vec_normalize: VecNormalize | None) -> TypeGuard[VecNormalize]:
    """
    Return whether observations are normalised.

    :param vec_normalize: ``VecNormalize`` of an environment, if there is one
    :return: whether there is one, and it normalises them
    """
    return vec_normalize is not None and vec_normalize.norm_obs


def lacks_statistics(model: Any, vec_normalize: VecNormalize | None) -> bool:
    """
    Return whether observations are not normalised for a model, although ``VecNormalize`` normalised them in training.

    :param model: a model, or an exported policy, which holds its statistics itself
    :param vec_normalize: ``VecNormalize`` of its environment, if there is one
    :return: whether the statistics of training are missing; those of a model that has learned have seen observations
    """
    if not getattr(model, "trained_normalized", False):
        return False
    has_learned = getattr(model, "num_timesteps", 0) > 0
    return not (normalizes_observations(vec_normalize) and (has_seen_observations(vec_normalize) or not has_learned))


def what_lacks(vec_normalize: VecNormalize | None, place: str) -> str:
    """
    Describe what an environment lacks, see :func:`lacks_statistics`.

    :param vec_normalize: its ``VecNormalize``, if there is one
    :param place: what to call the environment
    :return: a clause
    """
    is_new = normalizes_observations(vec_normalize)
    return f"the statistics of {place} are new" if is_new else f"those of {place} are not normalised"


def check_needs_statistics(model: Any, vec_normalize: VecNormalize | None) -> None:
    """
    Check that given statistics do not distort what a model observes.

    :param model: anything with skills; a model that has not learned yet takes any statistics
    :param vec_normalize: the statistics; ``None`` for none
    :raises ValueError: if the model takes observations as they are
    """
    takes_plain = not getattr(model, "trained_normalized", False) and getattr(model, "num_timesteps", 0) > 0
    if normalizes_observations(vec_normalize) and takes_plain:
        raise ValueError(
            "The model takes observations as they are, since it learned without VecNormalize, or is an exported policy, which "
            "holds its statistics itself: leave vec_normalize out, or pass environments without VecNormalize."
        )


def check_statistics_fit(model: Any, vec_normalize: VecNormalize | None, remedy: str) -> None:
    """
    Check that observations are normalised for a model as in training.

    :param model: anything with skills
    :param vec_normalize: the statistics that normalise them; ``None`` for none
    :param remedy: what to pass if the statistics are missing
    :raises ValueError: if they are missing or new, or the model takes observations as they are
    """
    check_needs_statistics(model, vec_normalize)
    if lacks_statistics(model, vec_normalize):
        raise ValueError(f"The model was trained with VecNormalize: {remedy}")


def observation_statistics(normalize: VecNormalize) -> dict[str, Any]:
    """
    Read the statistics of observations.

    :param normalize: the ``VecNormalize``
    :return: mean and variance by the name of the entry, which is ``"observation"`` for a Box space
    """
    return normalize.obs_rms if isinstance(normalize.obs_rms, dict) else {OBSERVATION: normalize.obs_rms}


def has_seen_observations(normalize: VecNormalize) -> bool:
    """
    Return whether the statistics of observations include any, or are as initialised.

    :param normalize: the ``VecNormalize``
    :return: whether each entry has been seen once at least, or its statistics were set by hand
    """
    return not any(
        each.count < 1.0 and (each.mean == 0).all() and (each.var == 1).all()
        for each in observation_statistics(normalize).values()
    )


def save_statistics(statistics: VecNormalize, path: AnyPath) -> None:
    """
    Save statistics as models are saved: a killed process leaves the previous file.

    :param statistics: the statistics
    :param path: the file, which ``VecNormalize.load`` can load
    :raises OSError: if it can't be written
    """
    dump_whole(statistics, path)


def load_statistics(path: AnyPath) -> VecNormalize:
    """
    Load the statistics of a ``VecNormalize``, without environments. A pickle can run any code.

    :param path: what ``VecNormalize.save`` wrote
    :return: the statistics
    :raises ValueError: if the file is damaged, or holds something else
    """
    return load_pickle(path, VecNormalize)


def normalize_entries(vec_normalize: VecNormalize, entries: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    Normalise observations, whether ``VecNormalize`` is inside the skill wrapper or around it.

    :param vec_normalize: the ``VecNormalize``
    :param entries: entries of observations, without a skill
    :return: the entries as a model sees them
    """
    return entries_of(vec_normalize.normalize_obs(_in_layout_of(vec_normalize, entries)))


def unnormalize_entries(vec_normalize: VecNormalize, entries: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    Undo :func:`normalize_entries`.

    :param vec_normalize: the ``VecNormalize``
    :param entries: entries of observations as a model sees them, without a skill
    :return: the entries as environments return them
    """
    return entries_of(vec_normalize.unnormalize_obs(_in_layout_of(vec_normalize, entries)))


def _in_layout_of(vec_normalize: VecNormalize, entries: dict[str, np.ndarray]) -> Observation:
    """Convert entries to the form that ``VecNormalize`` takes: always dictionaries if it is around the skill wrapper."""
    return entries if isinstance(vec_normalize.observation_space, spaces.Dict) else plain_form(entries)  # type: ignore[return-value]


def _shapes(shapes: dict[str, tuple[int, ...] | None]) -> str:
    return str(shapes[OBSERVATION]) if list(shapes) == [OBSERVATION] else str(shapes)
