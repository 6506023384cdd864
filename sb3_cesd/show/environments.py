"""Environments in which a model is shown, like those it was trained in."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers.utils import RunningMeanStd
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecFrameStack,
    VecNormalize,
    VecTransposeImage,
    unwrap_vec_normalize,
)
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_cesd.common.env_specs import arguments_of, env_name, env_spec
from sb3_cesd.common.observations import channels_first
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.common.vec_normalize import NORMALIZATION, normalize_like_training, transpose_like_training
from sb3_cesd.envs.robots.gl import choose_gl_backend
from sb3_cesd.metrics.environments import (
    VEC_RECORDERS,
    changing_wrappers,
    env_layout,
    make_env,
    make_env_like_training,
    make_frozen,
    make_play_env,
    robot_name,
    wrapper_statistics,
)
from sb3_cesd.show.choice import ShownModel
from sb3_cesd.show.labels import ARM, MAZE, OTHER

#: An id, an environment, or a vectorized environment
ShownEnv = str | gym.Env | VecEnv


class PlayEnvs:
    """
    Factory of environments to play skills in, as the model expects them.

    :param name: name of the environment in titles
    :param make: creates an environment with its wrappers, taking arguments of ``gym.make``; ``None`` to play in vectorized
        environments
    :param venv: environments of the caller, which are not closed
    :param make_venv: creates vectorized environments without rendering, if there is no ``venv``
    :param statistics: training statistics, by which observations are normalised
    :param batched: id and arguments of an environment without wrappers, of which many can be stepped at a time
    :param vec_env_wrapper: wraps vectorized environments before normalisation
    :param frame_stack: number of observations that are stacked after normalisation, 0 for none
    """

    def __init__(
        self,
        name: str,
        make: Callable[..., gym.Env] | None = None,
        venv: VecEnv | None = None,
        make_venv: Callable[[], VecEnv] | None = None,
        statistics: VecNormalize | None = None,
        batched: tuple[str, dict[str, Any]] | None = None,
        vec_env_wrapper: Callable[[VecEnv], VecEnv] | None = None,
        frame_stack: int = 0,
    ) -> None:
        # Must come before any environment imports MuJoCo
        choose_gl_backend()
        self.name = name
        self._make = make
        self._venv = venv
        self._make_venv = make_venv
        self._statistics = statistics
        self._batched = batched
        self._vec_env_wrapper = vec_env_wrapper
        self._frame_stack = frame_stack

    def one(self, render: bool = False) -> VecEnv:
        """
        Create one environment.

        :param render: whether it should render images
        :return: the environment, to be closed by the caller
        """
        if self._make is not None:
            # Not all environments take the argument
            rendering = {"render_mode": "rgb_array"} if render else {}
            return self._finished(DummyVecEnv([functools.partial(self._make, **rendering)]))
        if self._venv is not None:
            return self._finished(_Kept(self._venv))
        assert self._make_venv is not None
        return self._finished(self._make_venv())

    def many(self, n_skills: int, n_rollouts: int) -> VecEnv:
        """
        Create environments in which many rollouts are fast.

        :param n_skills: number of skills
        :param n_rollouts: number of rollouts per skill
        :return: the environments, to be closed by the caller
        """
        if self._batched is None:
            return self.one()
        env_id, env_kwargs = self._batched
        return self._finished(make_play_env(env_id, n_skills, n_rollouts, env_kwargs))

    def _finished(self, env: VecEnv) -> VecEnv:
        """
        Wrap environments as in training.

        :param env: environments, which are closed if wrapping fails
        :return: the wrapped environments
        """
        try:
            return self._wrapped(env)
        except Exception:
            env.close()
            raise

    def _wrapped(self, env: VecEnv) -> VecEnv:
        if self._vec_env_wrapper is not None:
            env = self._vec_env_wrapper(env)
        env = normalize_like_training(env, self._statistics or unwrap_vec_normalize(env))
        if self._frame_stack > 0:
            env = VecFrameStack(env, self._frame_stack)
        return transpose_like_training(env, channels_first(env.observation_space))


def kind_of(env: VecEnv) -> str:
    """
    Return the kind of environments, which determines the meanings of metrics.

    :param env: any environments
    :return: kind of the environment, see ``sb3_cesd.show.labels``
    """
    if env_layout(env) is not None:
        return MAZE
    return ARM if robot_name(env) == "jaco" else OTHER


class _Kept(VecEnvWrapper):
    """
    Environments of the caller, which :meth:`close` leaves open, with their previous normalisation.

    :param venv: the environments
    """

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self._normalize = unwrap_vec_normalize(venv)
        # Without normalised observations there is no obs_rms
        attributes = {} if self._normalize is None else vars(self._normalize)
        self._before = {name: value for name, value in attributes.items() if name in NORMALIZATION}

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        return self.venv.step_wait()

    def close(self) -> None:
        if self._normalize is not None:
            for name in NORMALIZATION:
                vars(self._normalize).pop(name, None)
            vars(self._normalize).update(self._before)


def envs_to_play(env: ShownEnv | None, model: ShownModel, statistics: VecNormalize | None) -> PlayEnvs:
    """
    Prepare environments to play in.

    :param env: id of an environment, an environment, or a vectorized one; ``None`` for that of training
    :param model: the model
    :param statistics: training statistics; ``None`` for those of ``env``, or of the training environment
    :return: factory that creates them from their id and wrappers if possible, or else uses ``env`` itself
    :raises ValueError: if ``env`` is missing, and the model has none
    """
    choose_gl_backend()
    if env is None:
        training_env = getattr(model, "env", None)
        if training_env is None:
            raise ValueError("The model was loaded without an environment: pass env, e.g. show_skills(model, 'Walker-v0').")
        return _like_training(training_env, statistics)
    if isinstance(env, str):
        return PlayEnvs(env, functools.partial(make_env, env), statistics=statistics, batched=(env, {}))
    if isinstance(env, VecEnv):
        return PlayEnvs(env_name(env), venv=env.venv if isinstance(env, VecSkillObservation) else env, statistics=statistics)
    spec = _spec_of(env.spec)
    if spec is not None:
        return _from_spec(spec, wrapper_statistics(DummyVecEnv([lambda: env]))[0], statistics)
    name = type(env.unwrapped).__name__ if env.spec is None else env.spec.id
    return PlayEnvs(name, venv=DummyVecEnv([lambda: env]), statistics=statistics)


def _like_training(training_env: VecEnv, statistics: VecNormalize | None) -> PlayEnvs:
    """
    Prepare environments like those of training.

    :param training_env: environments of training
    :param statistics: training statistics; ``None`` for those of ``training_env``
    :return: factory that creates them from their id and wrappers if possible, or else as copies without rendering
    """
    spec = _spec_of(env_spec(training_env))
    outer = training_env
    while isinstance(outer, (VecNormalize, VecSkillObservation, VecTransposeImage, *VEC_RECORDERS)):
        outer = outer.venv
    if spec is not None and not isinstance(outer, VecEnvWrapper):
        return _from_spec(spec, wrapper_statistics(outer)[0], statistics or unwrap_vec_normalize(training_env))
    make_venv = functools.partial(make_env_like_training, training_env, 1, 1)
    return PlayEnvs(env_name(training_env), make_venv=make_venv, statistics=statistics)


def _spec_of(spec: EnvSpec | None) -> EnvSpec | None:
    """
    Return the specification from which an environment can be recreated.

    :param spec: specification of the environment
    :return: the specification without recorders; ``None`` if a wrapper did not record its arguments
    """
    if spec is None:
        return None
    spec = copy.deepcopy(spec)
    spec.additional_wrappers = changing_wrappers(spec)
    return spec if all(wrapper.kwargs is not None for wrapper in spec.additional_wrappers) else None


def _from_spec(spec: EnvSpec, obs_rms: RunningMeanStd | None, statistics: VecNormalize | None) -> PlayEnvs:
    """
    Prepare environments from a specification.

    :param spec: specification of an environment
    :param obs_rms: statistics of their ``NormalizeObservation``, if there is one
    :param statistics: training statistics
    :return: factory of the environments
    """
    batched = None
    if not spec.additional_wrappers:
        batched = (spec.id, arguments_of(spec))
    return PlayEnvs(spec.id, functools.partial(make_frozen, spec, obs_rms), statistics=statistics, batched=batched)
