from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

if TYPE_CHECKING:
    from sb3_cesd.envs.robots.vec_env import RobotVecEnv

# SB3 is imported where it is used: single environments work without PyTorch

#: Wrappers of ``gym.make``, which a batch does not need
PLAIN_WRAPPERS = (TimeLimit, OrderEnforcing, PassiveEnvChecker)


def make_batched(
    env_id: str,
    n_envs: int,
    seed: int | None = None,
    n_threads: int | None = None,
    env_kwargs: dict[str, Any] | None = None,
    monitor_dir: str | None = None,
) -> "RobotVecEnv":
    """
    Create vectorized environments of a robot, as SB3's ``make_vec_env`` but faster: threads step all environments together.

    :param env_id: id of a robot
    :param n_envs: number of environments
    :param seed: seed of the first environment; environment i is seeded with ``seed + i``
    :param n_threads: number of threads; ``None`` for one per core
    :param env_kwargs: arguments of the environments
    :param monitor_dir: folder for the monitor files of the environments
    :return: the vectorized environment
    :raises ValueError: if the environment can't be batched
    """
    from stable_baselines3.common.env_util import make_vec_env

    from sb3_cesd.common.allowed import check_arguments
    from sb3_cesd.common.checks import explain_arguments, explain_unknown_env

    check_arguments("make_batched", locals())
    with explain_unknown_env(env_id), explain_arguments("env_kwargs", env_kwargs or {}):
        return make_vec_env(  # type: ignore[return-value]
            env_id,
            n_envs,
            seed=seed,
            monitor_dir=monitor_dir,
            env_kwargs=env_kwargs,
            vec_env_cls=batch_envs,  # type: ignore[arg-type]
            vec_env_kwargs={"n_threads": n_threads},
        )


def batch_envs(env_fns: Sequence[Callable[[], gym.Env]], n_threads: int | None = None) -> "RobotVecEnv":
    """
    Batch environments of a robot. Pass it as ``vec_env_cls`` to SB3's ``make_vec_env``, instead of ``DummyVecEnv``.

    :param env_fns: functions that all make the same environment, with or without ``Monitor``
    :param n_threads: number of threads; ``None`` for one per core
    :return: the vectorized environment, with one environment per function
    :raises ValueError: if the environment can't be batched
    """
    from sb3_cesd.envs.robots.vec_env import RobotVecEnv

    env, writer = unwrap_monitor(env_fns[0]())
    writers = []
    if writer is not None:
        writers.append(writer)
        for env_fn in env_fns[1:]:
            other, other_writer = unwrap_monitor(env_fn())
            writers.append(other_writer)
            other.close()
    return RobotVecEnv(env, len(env_fns), n_threads, writers)


def unwrap_monitor(env: gym.Env) -> tuple[gym.Env, Any]:
    """
    Take an environment out of its ``Monitor``.

    :param env: an environment, with or without ``Monitor``
    :return: the environment without ``Monitor``, and the writer of its monitor file or ``None``
    :raises ValueError: if a batch would ignore a wrapper, or an argument of ``Monitor``
    """
    from stable_baselines3.common.monitor import Monitor

    writer = None
    if isinstance(env, Monitor):
        if env.info_keywords or env.reset_keywords or not env.allow_early_resets:
            raise ValueError("Batched environments take no monitor_kwargs: leave them out, or use DummyVecEnv.")
        writer = env.results_writer
        env = env.env
    layer = env
    while isinstance(layer, gym.Wrapper):
        if not isinstance(layer, PLAIN_WRAPPERS):
            raise ValueError(
                f"Batched environments can't be wrapped individually, here in {type(layer).__name__}: "
                "wrap the vectorized environment (RL Zoo: vec_env_wrapper), or use DummyVecEnv."
            )
        layer = layer.env
    return env, writer
