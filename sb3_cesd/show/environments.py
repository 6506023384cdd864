"""Environments in which a model is shown, like those it was trained in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_cesd.common.observations import channels_first
from sb3_cesd.common.vec_env import VecSkillObservation, arguments_of, env_name, env_spec
from sb3_cesd.common.vec_normalize import normalize_like_training, transpose_like_training
from sb3_cesd.metrics import make_env, make_env_like_training, make_play_env
from sb3_cesd.metrics.environments import has_wrappers


class PlayEnvs(NamedTuple):
    """
    Environments to play skills in.

    :param name: name in titles
    :param make_one: creates one environment; its argument says whether it should render
    :param make_many: creates environments in which some rollouts each of some skills are fast
    :param statistics: training statistics, if the environments are not normalised yet
    :param is_kept: whether they are those of the caller, and not to be closed
    """

    name: str
    make_one: Callable[[bool], VecEnv]
    make_many: Callable[[int, int], VecEnv]
    statistics: VecNormalize | None = None
    is_kept: bool = False

    @contextmanager
    def one(self, render: bool = False) -> Iterator[VecEnv]:
        """Open one environment, as the model observes it."""
        yield from self._opened(self.make_one(render))

    @contextmanager
    def many(self, n_skills: int, n_rollouts: int) -> Iterator[VecEnv]:
        """Open environments for some rollouts each of some skills."""
        yield from self._opened(self.make_many(n_skills, n_rollouts))

    def _opened(self, env: VecEnv) -> Iterator[VecEnv]:
        try:
            normalized = env if self.statistics is None else normalize_like_training(env, self.statistics)
            yield transpose_like_training(normalized, channels_first(normalized.observation_space))
        finally:
            if not self.is_kept:
                env.close()


def envs_to_play(env: str | gym.Env | VecEnv | None, model: Any, statistics: VecNormalize | None = None) -> PlayEnvs:
    """
    Prepare environments to play in.

    :param env: id of an environment, an environment, or vectorized ones; ``None`` for some like those of training
    :param model: the model
    :param statistics: training statistics; ``None`` for those of ``env``, or of the training environment
    :return: environments made by the id, if nothing is wrapped around them; otherwise copies, or ``env`` itself
    :raises ValueError: if ``env`` is missing, and the model has none; or if there are two statistics
    """
    if env is None:
        training_env = getattr(model, "env", None)
        if training_env is None:
            raise ValueError("The model was loaded without an environment: pass env, e.g. show_skills(model, 'Walker-v0').")
        statistics = statistics or unwrap_vec_normalize(training_env)
        spec = env_spec(training_env)
        if spec is not None and not has_wrappers(training_env):
            return envs_of_id(spec.id, arguments_of(spec), statistics)
        copies = partial(make_env_like_training, training_env)
        return PlayEnvs(env_name(training_env), lambda render: copies(1, 1), copies, statistics)
    if isinstance(env, str):
        return envs_of_id(env, {}, statistics)
    if isinstance(env, gym.Env):
        if env.spec is not None and not env.spec.additional_wrappers:
            return envs_of_id(env.spec.id, arguments_of(env.spec), statistics)
        env = DummyVecEnv([lambda made=env: made])  # type: ignore[misc]
    venv = env.venv if isinstance(env, VecSkillObservation) else env
    if statistics is not None and unwrap_vec_normalize(venv) is not None:
        raise ValueError("env has a VecNormalize of its own: leave vec_normalize out, or pass env without it.")
    return PlayEnvs(env_name(venv), lambda render: venv, lambda *numbers: venv, statistics, is_kept=True)


def envs_of_id(env_id: str, env_kwargs: dict[str, Any], statistics: VecNormalize | None) -> PlayEnvs:
    """Prepare environments without wrappers."""

    def make_one(render: bool) -> VecEnv:
        # Not all environments take the argument
        rendering = {"render_mode": "rgb_array"} if render else {}
        return DummyVecEnv([partial(make_env, env_id, **env_kwargs, **rendering)])

    return PlayEnvs(env_id, make_one, partial(make_play_env, env_id, env_kwargs=env_kwargs), statistics)
