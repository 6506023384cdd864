"""Environments like those of training, with all of their wrappers, to play skills in."""

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, WrapperSpec
from gymnasium.wrappers import AddRenderObservation, HumanRendering, NormalizeObservation, RecordVideo, RenderCollection
from gymnasium.wrappers.utils import RunningMeanStd
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
    VecVideoRecorder,
)

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.env_specs import arguments_of, env_spec, without_rendering
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.common.vec_normalize import normalize_like_training
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.robots.vec_env import PLAIN_WRAPPERS, RobotVecEnv, batch_envs
from sb3_cesd.metrics.environments import make_env, make_play_env

#: Wrappers that only record or render, which are left out
RECORDERS = (Monitor, RecordVideo, RenderCollection, HumanRendering)
#: The same for vectorized environments
VEC_RECORDERS = (VecMonitor, VecVideoRecorder)


def make_env_like_training(training_env: VecEnv, n_skills: int, n_rollouts: int) -> VecEnv:
    """
    Create environments like those of training, without skills.

    Mazes and robots without wrappers are created anew, in a number that is fast to play. With wrappers, of single or
    vectorized environments, there are as many environments as in training: the base environments are created from their id,
    and the wrappers are copied in their current state. Wrappers that only record or render are left out.

    :param training_env: environments of training, with or without skill observations
    :param n_skills: number of skills
    :param n_rollouts: number of rollouts per skill
    :return: the environments; they share the statistics of ``VecNormalize``, but don't update them
    :raises ValueError: if an environment has no id, or can't be recreated
    """
    check_arguments("make_env_like_training", locals())
    wrappers = list(_vec_wrappers(training_env))
    base = training_env.unwrapped
    keeps_number = has_wrappers(training_env)
    if isinstance(base, MazeVecEnv):
        n_envs = base.num_envs if keeps_number else n_skills * n_rollouts
        env: VecEnv = MazeVecEnv(base.layout.name, n_envs, base.max_episode_steps, base.reward)
    elif not keeps_number:
        spec = _spec(base)
        env = make_play_env(spec.id, n_skills, n_rollouts, arguments_of(spec))
    elif isinstance(base, RobotVecEnv):
        spec = _spec(base)
        env = batch_envs([lambda: make_env(spec.id, **arguments_of(spec))] * base.num_envs)
    elif isinstance(base, DummyVecEnv):
        copies = [copy_env(env) for env in base.envs]
        env = DummyVecEnv([lambda made=made: made for made in copies])  # type: ignore[misc]
    else:
        spec = _recorded(_spec(base))
        env = DummyVecEnv([partial(make_frozen, spec, obs_rms) for obs_rms in wrapper_statistics(base)])
    for wrapper in wrappers:
        env = normalize_like_training(env, wrapper) if isinstance(wrapper, VecNormalize) else _copy_around(wrapper, env)
    return env


def has_wrappers(training_env: VecEnv) -> bool:
    """
    Check whether environments have wrappers that may change observations or actions, apart from ``VecNormalize``.

    :param training_env: environments of training
    :return: whether there are such wrappers, of single or vectorized environments
    """
    base = training_env.unwrapped
    if any(not isinstance(wrapper, VecNormalize) for wrapper in _vec_wrappers(training_env)):
        return True
    if isinstance(base, DummyVecEnv):
        return any(_is_wrapper(layer) for layer in _layers(base.envs[0]))
    if isinstance(base, MazeVecEnv | RobotVecEnv):
        return False
    spec = env_spec(base)
    return spec is not None and bool(changing_wrappers(spec))


def copy_env(env: gym.Env) -> gym.Env:
    """
    Create an environment like another one.

    :param env: an environment with an id, in any wrappers
    :return: a new environment in copies of the wrappers, which keep their statistics and no longer update them
    :raises ValueError: if it has no id, or a wrapper can't be copied
    """
    layers = list(_layers(env))
    base = layers.pop()
    spec = base.spec
    if spec is None:
        raise ValueError(_no_id())
    # References of the wrappers to the original are replaced by the new environment
    copied = make_env(spec.id, **arguments_of(spec), **_images(spec)).unwrapped
    memo: dict[int, Any] = {id(base): copied}
    for layer in reversed(layers):
        if isinstance(layer, RECORDERS):
            memo[id(layer)] = copied
            continue
        if isinstance(layer, AddRenderObservation):
            # A copy of its function would render the training environment
            copied = memo[id(layer)] = AddRenderObservation(copied, **layer._saved_kwargs)
            continue
        try:
            copied = copy.deepcopy(layer, memo)
        except Exception as error:  # wrappers may have any attributes
            raise ValueError(
                f"The wrapper {type(layer).__name__} of the training environment can't be copied ({type(error).__name__}: "
                f"{error}): pass an eval_env wrapped as that of training."
            ) from error
        if isinstance(copied, NormalizeObservation):
            copied.update_running_mean = False
    return copied


def wrapper_statistics(env: VecEnv) -> list[RunningMeanStd | None]:
    """
    Read the statistics of ``NormalizeObservation`` of each environment, also in other processes.

    :param env: environments
    :return: statistics of each; ``None`` where there are none
    """
    found = env.get_attr("obs_rms") if env.has_attr("obs_rms") else [None] * env.num_envs
    return [each if isinstance(each, RunningMeanStd) else None for each in found]


def has_new_statistics(env: VecEnv) -> bool:
    """
    Check for a ``NormalizeObservation`` that has not seen anything.

    :param env: environments
    :return: whether one of them has one
    """
    return any(each is not None and each.count < 1 for each in wrapper_statistics(env))


def make_frozen(spec: EnvSpec, obs_rms: RunningMeanStd | None, **kwargs: Any) -> gym.Env:
    """
    Create an environment with its wrappers.

    :param spec: its specification
    :param obs_rms: statistics for its ``NormalizeObservation``, which are no longer updated; ``None`` for new ones
    :param kwargs: more arguments of ``gym.make``
    :return: the environment
    """
    env = gym.make(spec, **kwargs)
    normalizer = next((layer for layer in _layers(env) if isinstance(layer, NormalizeObservation)), None)
    if normalizer is not None and obs_rms is not None:
        normalizer.obs_rms, normalizer.update_running_mean = obs_rms, False
    return env


def _copy_around(wrapper: VecEnvWrapper, env: VecEnv) -> VecEnvWrapper:
    """
    Copy a wrapper of vectorized environments.

    :param wrapper: the wrapper
    :param env: environments for the copy to wrap
    :return: the copy
    """
    copied = object.__new__(type(wrapper))
    memo = {id(wrapper.venv): env}
    # SB3 looks up missing attributes in these; they hold a mappingproxy, which can't be copied
    copied.__dict__["class_attributes"] = wrapper.class_attributes
    for name, value in wrapper.__dict__.items():
        if name != "class_attributes":
            copied.__dict__[name] = copy.deepcopy(value, memo)
    return copied


def _layers(env: gym.Env) -> Iterator[gym.Env]:
    """List an environment's wrappers from the outside, then the environment itself."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def _is_wrapper(layer: gym.Env) -> bool:
    return isinstance(layer, gym.Wrapper) and not isinstance(layer, (*PLAIN_WRAPPERS, *RECORDERS))


def _vec_wrappers(env: VecEnv) -> Iterator[VecEnvWrapper]:
    """List the wrappers of vectorized environments that may change observations or actions, from the inside."""
    wrappers = []
    while isinstance(env, VecEnvWrapper):
        wrappers.append(env)
        env = env.venv
    return (wrapper for wrapper in reversed(wrappers) if not isinstance(wrapper, (VecSkillObservation, *VEC_RECORDERS)))


def _spec(base: VecEnv) -> EnvSpec:
    spec = env_spec(base)
    if spec is None:
        raise ValueError(_no_id())
    return spec


def _no_id() -> str:
    return "The training environment has no id to make another one from: pass eval_env to the callback, env to show_skills."


def changing_wrappers(spec: EnvSpec) -> tuple[WrapperSpec, ...]:
    """
    List the wrappers that may change observations or actions.

    :param spec: specification of an environment
    :return: its wrappers, apart from those of ``gym.make`` and recorders
    """
    names = {recorder.__name__ for recorder in RECORDERS}
    return tuple(wrapper for wrapper in spec.additional_wrappers if wrapper.name not in names)


def _images(spec: EnvSpec) -> dict[str, Any]:
    """Keep a ``render_mode`` that observations may depend on, as those of ``AddRenderObservation``."""
    return {name: mode for name, mode in spec.kwargs.items() if name == "render_mode" and mode == "rgb_array"}


def _recorded(spec: EnvSpec) -> EnvSpec:
    """
    Remove recorders from the specification of an environment.

    :param spec: specification of the environment
    :return: the specification without recorders
    :raises ValueError: if the arguments of a wrapper are unknown
    """
    wrappers = changing_wrappers(spec)
    unknown = [wrapper.name for wrapper in wrappers if wrapper.kwargs is None]
    if unknown:
        raise ValueError(
            f"The wrapper {unknown[0]} is in another process and did not record its arguments: pass an eval_env wrapped as "
            "that of training, use DummyVecEnv, or also derive the wrapper from gymnasium.utils.RecordConstructorArgs."
        )
    kwargs = {**without_rendering(spec.kwargs), **_images(spec)}
    made = copy.deepcopy(spec)
    made.additional_wrappers, made.kwargs = wrappers, kwargs
    return made
