"""Show a saved model in the environment it was trained in."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from stable_baselines3.common.vec_env import VecEnvWrapper

from sb3_cesd.envs.robots.gl import choose_gl_backend
from sb3_cesd.metrics import make_env
from sb3_cesd.show.curves import logged_coverage
from sb3_cesd.show.environments import PlayEnvs
from sb3_cesd.show.find import find_env_id, find_env_kwargs, find_wrappers, import_packages, load_model, load_vec_normalize
from sb3_cesd.show.result import SkillShow
from sb3_cesd.show.skills import show_in
from sb3_cesd.show.wrappers import find_wrapper


def show_saved(
    model_path: Path,
    algorithm: str | None = None,
    env_id: str | None = None,
    gym_packages: Sequence[str] = (),
    vec_normalize: Path | None = None,
    **kwargs: Any,
) -> SkillShow:
    """
    Show the skills of a saved model.

    :param model_path: file of a model, or of an exported policy
    :param algorithm: name of its method; ``None`` to find it from the file
    :param env_id: its environment; ``None`` to find it from the path
    :param gym_packages: packages that register environments, besides those in ``args.yml``
    :param vec_normalize: statistics of ``VecNormalize``; ``None`` to look for them next to the model
    :param kwargs: arguments of :func:`~sb3_cesd.show.skills.show_in`
    :return: figure, metrics and rollouts
    :raises ValueError: if something is missing or does not fit
    """
    # Must come before a package imports MuJoCo
    choose_gl_backend()
    model = load_model(model_path, algorithm)
    import_packages(model_path, gym_packages)
    env_id = env_id or find_env_id(model_path)
    # Statistics beside a model that learned without any belong to another one
    takes_statistics = getattr(model, "trained_normalized", False) or model.num_timesteps == 0
    statistics = load_vec_normalize(model_path, env_id, vec_normalize) if vec_normalize or takes_statistics else None
    envs = envs_of_run(model_path, env_id, statistics and statistics[0])
    shown = show_in(envs, model, **kwargs)
    if model.reward == "intrinsic":
        shown.metrics |= logged_coverage(model_path.resolve().parent, model.num_timesteps)
    if statistics is not None:
        shown.notes.append(f"Observations are normalised by {statistics[1]}.")
    return shown


def envs_of_run(model_path: Path, env_id: str, statistics: Any) -> PlayEnvs:
    """
    Prepare environments like those of a run of RL Zoo.

    :param model_path: a model
    :param env_id: its environment
    :param statistics: statistics of its observations, or ``None``
    :return: factory of the environments
    :raises ValueError: if a file of the run is damaged, or names something that is not a wrapper
    """
    env_kwargs = find_env_kwargs(model_path, env_id)
    wrappers = find_wrappers(model_path, env_id)
    env_wrapper = find_wrapper(wrappers, "env_wrapper", gym.Wrapper)
    make = functools.partial(_make_wrapped, env_id, env_wrapper, env_kwargs)
    return PlayEnvs(
        env_id,
        make,
        statistics=statistics,
        batched=(env_id, env_kwargs) if env_wrapper is None else None,
        vec_env_wrapper=find_wrapper(wrappers, "vec_env_wrapper", VecEnvWrapper),
        frame_stack=wrappers.get("frame_stack", 0),
    )


def _make_wrapped(env_id: str, env_wrapper: Callable | None, env_kwargs: dict[str, Any], **kwargs: Any) -> gym.Env:
    env = make_env(env_id, **env_kwargs, **kwargs)
    return env if env_wrapper is None else env_wrapper(env)
