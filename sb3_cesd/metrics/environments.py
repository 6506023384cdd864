"""Environments to play skills in, separate from those of training, and what they tell of a maze or a robot."""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import AddRenderObservation, HumanRendering, NormalizeObservation, RecordVideo, RenderCollection
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
    VecVideoRecorder,
    unwrap_vec_normalize,
)

from sb3_cesd.common.vec_env import VecSkillObservation, arguments_of, attribute, attributes, env_spec
from sb3_cesd.common.vec_normalize import normalize_like_training
from sb3_cesd.envs.mazes.env import MazeEnv
from sb3_cesd.envs.mazes.layouts import HORIZON, MazeLayout
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.registration import HORIZONS
from sb3_cesd.envs.robots.env import RobotEnv
from sb3_cesd.envs.robots.vec_env import PLAIN_WRAPPERS, RobotVecEnv, batch_envs

#: Reads the positions of environments after a step from its dones and infos
Positions: TypeAlias = Callable[[np.ndarray, Sequence[dict[str, Any]]], np.ndarray]
#: Wrappers that only record or render, which are left out
RECORDERS = (Monitor, RecordVideo, RenderCollection, HumanRendering)
RECORDER_NAMES = [recorder.__name__ for recorder in RECORDERS]
#: Wrappers of vectorized environments that are left out, or made anew
KNOWN_VEC_WRAPPERS = (VecNormalize, VecSkillObservation, VecTransposeImage, VecMonitor, VecVideoRecorder)
#: Length of the episodes of a maze without a time limit, in steps
NO_LIMIT = 2**31 - 1
NOT_REMADE = "The training environment can't be made again ({}): pass eval_env (env of show_skills), wrapped as in training."


def make_play_env(env_id: str | EnvSpec, n_skills: int, n_rollouts: int, env_kwargs: dict[str, Any] | None = None) -> VecEnv:
    """Make one maze per rollout, or one environment of another kind per skill: what is fast to play."""
    make = partial(gym.make, env_id, **(env_kwargs or {}))
    env = make()
    plain, spec = env.unwrapped, env.spec
    env.close()
    is_plain = spec is None or not spec.additional_wrappers
    if isinstance(plain, MazeEnv) and is_plain:
        horizon = HORIZON if spec is None else spec.max_episode_steps or NO_LIMIT
        return MazeVecEnv(plain.layout.name, n_skills * n_rollouts, horizon, plain.image_size)
    return (batch_envs if type(plain) is RobotEnv and is_plain else DummyVecEnv)([make] * n_skills)


def make_env_like_training(training_env: VecEnv, n_skills: int, n_rollouts: int) -> VecEnv:
    """
    Make environments like those of training, without skills.

    Without wrappers, as many are created as are fast to play. With Gymnasium's wrappers, there are as many as in training: new
    environments in copies of the wrappers, in their current state, without those that only record or render. Statistics of
    ``VecNormalize`` are shared, and not updated. Other wrappers of vectorized environments can't be made again.
    """
    base = training_env.unwrapped
    if _changing_vec_wrapper(training_env) is not None:
        raise ValueError(NOT_REMADE.format(f"it is in a {_changing_vec_wrapper(training_env)}"))
    if isinstance(base, MazeVecEnv):
        env: VecEnv = MazeVecEnv(base.layout.name, n_skills * n_rollouts, base.max_episode_steps, base.image_size)
    elif isinstance(base, DummyVecEnv) and has_wrappers(base):
        env = DummyVecEnv([partial(_copy_env, each) for each in base.envs])
    else:
        spec = env_spec(base)
        if spec is None or has_wrappers(base):
            raise ValueError(NOT_REMADE.format("it has no id" if spec is None else "its wrappers are in other processes"))
        env = make_play_env(spec.id, n_skills, n_rollouts, arguments_of(spec))
    return normalize_like_training(env, unwrap_vec_normalize(training_env))


def has_wrappers(env: VecEnv) -> bool:
    """Check for wrappers that may change observations or actions, apart from ``VecNormalize``."""
    base = env.unwrapped
    if _changing_vec_wrapper(env) is not None:
        return True
    if isinstance(base, DummyVecEnv):
        return any(not isinstance(layer, (*PLAIN_WRAPPERS, *RECORDERS)) for layer in _layers(base.envs[0])[:-1])
    spec = None if isinstance(base, MazeVecEnv | RobotVecEnv) else env_spec(base)
    return spec is not None and any(wrapper.name not in RECORDER_NAMES for wrapper in spec.additional_wrappers)


def _changing_vec_wrapper(env: VecEnv) -> str | None:
    while isinstance(env, VecEnvWrapper):
        # Frames of images are stacked again where they are to be observed
        stacks_images = isinstance(env, VecFrameStack) and is_image_space(env.observation_space)
        if not stacks_images and not isinstance(env, KNOWN_VEC_WRAPPERS):
            return type(env).__name__
        env = env.venv
    return None


def _copy_env(env: gym.Env) -> gym.Env:
    """Make a new environment in copies of the wrappers, which keep their statistics and no longer update them."""
    *layers, base = _layers(env)
    if base.spec is None:
        raise ValueError(NOT_REMADE.format("it has no id"))
    renders = any(isinstance(layer, AddRenderObservation) for layer in layers)
    render: dict[str, Any] = {"render_mode": base.render_mode} if renders else {}
    copied = gym.make(base.spec.id, **arguments_of(base.spec), **render).unwrapped
    # References of the wrappers to the original are replaced by the new environment
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
            raise ValueError(NOT_REMADE.format(f"{type(layer).__name__}: {error}")) from error
        if isinstance(copied, NormalizeObservation):
            copied.update_running_mean = False
    return copied


def _layers(env: gym.Env) -> list[gym.Env]:
    """List an environment's wrappers from the outside, then the environment itself."""
    return [env, *_layers(env.env)] if isinstance(env, gym.Wrapper) else [env]


def env_layout(env: VecEnv) -> MazeLayout | None:
    """Return the layout of environments that are mazes."""
    layout = attribute(env, "layout")
    return layout if isinstance(layout, MazeLayout) else None


def robot_name(env: VecEnv) -> str | None:
    """Return the name of the robot of environments: walker, quadruped, jaco, ant or half_cheetah; ``None`` for others."""
    name = attribute(env, "robot_name")
    return name if isinstance(name, str) and name in HORIZONS else None


def find_positions(env: VecEnv, infos: Sequence[dict[str, Any]]) -> Positions | None:
    """
    Find where environments tell their positions after a reset or a step: in the property ``position``, else in
    ``info["x_position"]`` and ``info["y_position"]``, as Gymnasium's robots do.

    :return: reads the positions after a step, shape ``(n_envs, 3)``, or 2 in a plane, from its dones and infos
    """
    told: list[Any] = [None] * env.num_envs

    def of_infos(dones: np.ndarray, infos: Sequence[dict[str, Any]]) -> np.ndarray:
        for idx, (done, info, of_reset) in enumerate(zip(dones, infos, env.unwrapped.reset_infos, strict=True)):
            places = place_in(of_reset) if done else None, place_in(info), told[idx]
            told[idx] = next(place for place in places if place is not None)
        return np.stack(told)

    own = attributes(env, "position")
    if own and all(np.shape(place) in ((2,), (3,)) for place in own):
        return lambda *_: env_positions(env)
    return of_infos if all(place_in(info) is not None for info in infos) else None


def env_positions(env: VecEnv) -> np.ndarray:
    """Return the property ``position`` of environments (robots: torso; jaco: hand), ``(n_envs, 3)``, or 2 in a plane."""
    positions = np.stack(env.get_attr("position"))
    if not np.isfinite(positions).all():
        raise ValueError("The position of an environment is not finite: end the episode before it diverges.")
    return positions


def place_in(info: dict[str, Any]) -> np.ndarray | None:
    """Read (x, y) from the info of a robot of Gymnasium; y = 0 for one that moves in a plane."""
    try:
        place = np.array([np.asarray(info.get(f"{axis}_position", 0.0), np.float64).item() for axis in "xy"])
    except (TypeError, ValueError):  # info of other environments may hold anything by these names
        return None
    return place if "x_position" in info and np.isfinite(place).all() else None


def end_positions(dones: np.ndarray, infos: Sequence[dict[str, Any]], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Read indices, ``(n,)``, and positions, ``(n, dim)``, of the episodes that ended, where infos tell the positions:
    ``info["position"]``, or by :func:`place_in`. Their environments have been reset since.
    """
    ends = {idx: infos[idx].get("position", place_in(infos[idx])) for idx in np.flatnonzero(dones).tolist()}
    # Info of other environments may hold anything by this name
    ends = {idx: end for idx, end in ends.items() if getattr(end, "shape", None) == (dim,)}
    return np.array(list(ends), dtype=np.int64), np.array(list(ends.values())).reshape(-1, dim)


def unnormalize(env: VecEnv, observations: np.ndarray) -> np.ndarray:
    """Undo the normalisation of flattened observations, shape ``(..., obs_dim)``, by ``VecNormalize`` and of METRA."""
    statistics, scale = _statistics(env)
    if statistics is not None:
        shaped = observations.reshape(-1, *(statistics.observation_space.shape or ()))
        observations = np.asarray(statistics.unnormalize_obs(shaped)).reshape(observations.shape)
    return observations if scale is None else scale.unnormalize(observations)


def normalize(env: VecEnv, observations: np.ndarray) -> np.ndarray:
    """Undo :func:`unnormalize`."""
    statistics, scale = _statistics(env)
    if scale is not None:
        observations = scale.normalize(observations)
    if statistics is None:
        return observations
    shaped = observations.reshape(-1, *(statistics.observation_space.shape or ()))
    return np.asarray(statistics.normalize_obs(shaped)).reshape(observations.shape)


def _statistics(env: VecEnv) -> tuple[VecNormalize | None, Any]:
    """Find the statistics of ``VecNormalize``, and those by which METRA's robots normalise their observations."""
    found = unwrap_vec_normalize(env)
    if found is not None and (not found.norm_obs or isinstance(found.obs_rms, dict)):
        found = None
    scale = None if has_wrappers(env) else attribute(env, "observation_scale")
    return found, scale if hasattr(scale, "unnormalize") else None
