"""Checks of ``VecNormalize``: whether it normalises observations as in training, and can be trained with."""

import warnings
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_cesd.common.observations import shapes_of, short
from sb3_cesd.common.vec_normalize import (
    check_needs_statistics,
    lacks_statistics,
    normalizes_observations,
    observation_statistics,
    what_lacks,
)


def check_order_of_wrappers(env: VecEnv) -> None:
    """
    Check that no wrapper around ``VecNormalize`` changes observations, as they are stored without normalisation.

    :param env: environments
    :raises ValueError: if a wrapper around it changes the shapes of observations
    """
    normalize = unwrap_vec_normalize(env)
    if normalize is None:
        return
    seen, kept = (shapes_of(space) for space in (env.observation_space, normalize.observation_space))
    if any(seen.get(name) != shape for name, shape in kept.items()):
        raise ValueError(
            f"A wrapper around VecNormalize makes {short(env.observation_space)} of {short(normalize.observation_space)}, but "
            "observations are stored as they were before VecNormalize: stack frames, or put channels first, before "
            "VecNormalize, for instance with a wrapper of the environment."
        )


def statistics_of_training(model: Any, vec_normalize: VecNormalize | None = None) -> VecNormalize | None:
    """
    Find the statistics that normalised the observations of a model in training.

    :param model: the model, or an exported policy, which holds its statistics itself
    :param vec_normalize: the statistics; ``None`` for those of its environment
    :return: the statistics; ``None`` if the model was trained on observations that were not normalised
    :raises ValueError: if they are missing, given for a model that needs none, or of other observations, for instance before
        frames are stacked
    """
    check_needs_statistics(model, vec_normalize)
    found = vec_normalize or (model.get_vec_normalize_env() if hasattr(model, "get_vec_normalize_env") else None)
    if found is not None and not found.norm_obs:
        found = None
    known = shapes_of(model.plain_space)
    for name, rms in ({} if found is None else observation_statistics(found)).items():
        shape = known.get(name)
        # Channels of an image may come last: SB3 puts them first
        if shape is None or rms.mean.shape not in (shape, (*shape[1:], *shape[:1])):
            raise ValueError(
                f"The statistics of VecNormalize are of {name} of shape {rms.mean.shape}, the model observes {known}: pass "
                "those it was trained with, or apply VecNormalize after all other wrappers."
            )
    if lacks_statistics(model, found):
        raise ValueError(
            "The model was trained with VecNormalize, but neither its file nor its environment holds the statistics: pass "
            "vec_normalize, e.g. VecNormalize.load(path, venv)."
        )
    return found


def warn_of_other_statistics(model: Any, vec_normalize: VecNormalize | None) -> None:
    """
    Warn if a model that goes on learning will observe something else than it has learned from so far.

    :param model: the model
    :param vec_normalize: ``VecNormalize`` of its environment, if there is one
    """
    if model.num_timesteps == 0:
        return
    if lacks_statistics(model, vec_normalize):
        lacking = what_lacks(vec_normalize, "its environment")
        warnings.warn(
            f"VecNormalize normalised the observations that the model has learned from, but {lacking}: pass load or set_env "
            "the environment with the statistics of the training, VecNormalize.load(path, env)."
        )
    elif normalizes_observations(vec_normalize) and not model.trained_normalized:
        warnings.warn(
            "The model has learned from observations as they are, but VecNormalize normalises those of its environment: pass "
            "load or set_env the environment without VecNormalize, or with norm_obs=False."
        )


def warn_of_moving_statistics(vec_normalize: VecNormalize | None, what: str, remedy: str) -> None:
    """
    Warn that the inputs of networks that learn no more go on changing.

    :param vec_normalize: ``VecNormalize`` of the environment, if there is one
    :param what: the argument that keeps the networks, and what for
    :param remedy: what to do instead
    """
    if normalizes_observations(vec_normalize) and vec_normalize.training:
        warnings.warn(f"{what}, but what VecNormalize makes of an observation goes on changing: {remedy}")


def check_finite_statistics(normalization: VecNormalize, step: int) -> None:
    """
    Check that the running statistics of ``VecNormalize`` are finite.

    :param normalization: ``VecNormalize`` of the training environment
    :param step: time step of the training
    :raises ValueError: if they have overflowed, because the squares of some values are not finite
    """
    observations = observation_statistics(normalization) if normalization.norm_obs else {}
    statistics = {**{f"observations {name!r}": rms for name, rms in observations.items()}, "returns": normalization.ret_rms}
    for name, rms in statistics.items():
        if not (np.isfinite(rms.mean).all() and np.isfinite(rms.var).all()):
            kind = "rewards" if name == "returns" else "observations"
            raise ValueError(
                f"The running mean or variance of {name} in VecNormalize has overflowed at time step {step}, so that it "
                f"returns zeros or NaN: the {kind} of the environment are finite, but their squares are not. Nothing was "
                f"stored. Scale or clip the {kind} before VecNormalize, and start with new statistics."
            )
