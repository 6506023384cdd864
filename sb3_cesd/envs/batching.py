from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

if TYPE_CHECKING:
    from sb3_cesd.envs.robot_vec_env import RobotVecEnv

#: Of ``gym.make``; they change nothing that a batch does not do itself
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
    Make many environments of a robot that are stepped together by threads: what ``make_vec_env`` makes, but faster.

    :param env_id: id of an environment of a robot
    :param n_envs: number of environments
    :param seed: environment i is seeded with ``seed + i``
    :param n_threads: number of threads; ``None`` for as many as there are cores
    :param env_kwargs: arguments of the environments
    :param monitor_dir: folder for files with the returns of each environment
    :return: the vectorized environment
    :raises ValueError: if such an environment can't be batched
    """
    from stable_baselines3.common.env_util import make_vec_env

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
    For the argument ``vec_env_cls`` of SB3's ``make_vec_env``, in place of ``DummyVecEnv``.

    :param env_fns: each makes the same environment, in ``Monitor`` or not
    :param n_threads: number of threads; ``None`` for as many as there are cores
    :return: as many environments as there are functions
    :raises ValueError: if such an environment can't be batched
    """
    from sb3_cesd.envs.robot_vec_env import RobotVecEnv

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
    :param env: an environment, in ``Monitor`` or not
    :return: the environment without ``Monitor``, and what writes its file or ``None``
    :raises ValueError: if there is a wrapper, or an argument of ``Monitor``, that a batch would pass over
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
                f"Batched environments can't be wrapped one by one, as with {type(layer).__name__}: "
                "wrap the vectorized environment (RL Zoo: vec_env_wrapper), or use DummyVecEnv."
            )
        layer = layer.env
    return env, writer
