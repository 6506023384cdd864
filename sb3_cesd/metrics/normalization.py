"""Conversion between normalised observations and those of the simulation."""

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_cesd.envs.robots.observation_scale import ObservationScale
from sb3_cesd.metrics.rollouts import SkillRollouts
from sb3_cesd.metrics.training_env import has_wrappers


def unnormalize(env: VecEnv, observations: np.ndarray) -> np.ndarray:
    """
    Undo the normalisation of observations, by ``VecNormalize`` and by a robot's fixed statistics.

    :param env: environments of the observations
    :param observations: observations as a policy sees them, shape ``(..., obs_dim)``
    :return: observations of the simulation, same shape; changes by other wrappers, and dictionaries, are left as they are
    """
    statistics = _statistics(env)
    if statistics is not None:
        shaped = observations.reshape(*observations.shape[:-1], *statistics.observation_space.shape)  # type: ignore[misc]
        observations = np.asarray(statistics.unnormalize_obs(shaped)).reshape(observations.shape)
    scale = _scale(env)
    return observations if scale is None else scale.unnormalize(observations)


def normalize(env: VecEnv, observations: np.ndarray) -> np.ndarray:
    """
    Undo :func:`unnormalize`.

    :param env: environments of the observations
    :param observations: observations of the simulation, shape ``(..., obs_dim)``
    :return: observations as a policy sees them, same shape
    """
    scale = _scale(env)
    if scale is not None:
        observations = scale.normalize(observations)
    statistics = _statistics(env)
    if statistics is not None:
        shaped = observations.reshape(*observations.shape[:-1], *statistics.observation_space.shape)  # type: ignore[misc]
        observations = np.asarray(statistics.normalize_obs(shaped)).reshape(observations.shape)
    return observations


def raw_observations(env: VecEnv, rollouts: SkillRollouts) -> SkillRollouts:
    """
    Undo the normalisation of observations in rollouts.

    :param env: environments that the rollouts were played in
    :param rollouts: rollouts with ``observations``
    :return: the rollouts with observations of the simulation, see :func:`unnormalize`
    """
    if rollouts.observations is None:
        return rollouts
    return rollouts._replace(observations=unnormalize(env, rollouts.observations))


def _statistics(env: VecEnv) -> VecNormalize | None:
    """
    Find the statistics of observations.

    :param env: environments
    :return: ``VecNormalize``; ``None`` if it does not normalise observations, or they are dictionaries
    """
    found = unwrap_vec_normalize(env)
    return None if found is None or not found.norm_obs or isinstance(found.obs_rms, dict) else found


def _scale(env: VecEnv) -> ObservationScale | None:
    """
    Find the statistics by which a robot normalises its observations.

    :param env: environments
    :return: the statistics; ``None`` if there are none
    """
    if has_wrappers(env) or not env.has_attr("observation_scale"):
        return None
    scale = env.get_attr("observation_scale", indices=0)[0]
    return scale if isinstance(scale, ObservationScale) else None
