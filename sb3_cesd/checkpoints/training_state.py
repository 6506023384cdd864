"""State of a run of ``learn`` that is neither in the saved model nor in the replay buffer."""

import time
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd.checkpoints.callback_states import get_callback_states, set_callback_states
from sb3_cesd.checkpoints.environments import get_env_state, set_env_state, unreadable_state
from sb3_cesd.common.logging import LOGGED
from sb3_cesd.common.rng import get_random_states, set_random_states
from sb3_cesd.skill_ddpg import SkillDDPG


def get_training_state(model: SkillDDPG, callback: BaseCallback, n_calls: int) -> dict[str, Any]:
    """
    Read the state of a run between two rollouts.

    :param model: a model in ``learn``
    :param callback: callback passed to ``learn``
    :param n_calls: number of steps that callbacks have seen
    :return: state for :func:`set_training_state`
    """
    assert model.env is not None
    env_state, whole = get_env_state(model.env)
    # Drawn before the states of the generators are read
    reset_seed = None if whole else int(np.random.randint(2**31))
    return {
        "env_state": env_state,
        "reset_seed": reset_seed,
        "random_states": get_random_states(),
        "action_space": model.action_space.np_random,
        "noise": (model.action_noise, model._unit_noise),
        "mean_logs": model._mean_logs.get_state(),
        "skill_rewards": (model._skill_rewards.rewards, model._skill_rewards.steps),
        "logger": {name: dict(getattr(model.logger, name)) for name in LOGGED},
        "learns_later_by": model._learns_later_by,
        "elapsed": time.time_ns() - model.start_time,
        "num_timesteps_at_start": model._num_timesteps_at_start,
        "n_calls": n_calls,
        "callbacks": get_callback_states(callback),
    }


def set_training_state(model: SkillDDPG, callback: BaseCallback, state: dict[str, Any], changed: Collection[str] = ()) -> None:
    """
    Continue a run from the state of another one.

    :param model: a loaded model at the start of ``learn``
    :param callback: callback passed to ``learn``
    :param state: state that :func:`get_training_state` returned
    :param changed: ``"action_noise"`` and ``"noise_correlation"``, if they were changed when the model was loaded
    :raises ValueError: if the environments differ
    """
    assert model.env is not None
    set_env_state(model.env, state["env_state"], state["reset_seed"] is None)
    model.action_space._np_random = state["action_space"]
    action_noise, unit_noise = state["noise"]
    if "action_noise" not in changed:
        model.action_noise = action_noise
    if "noise_correlation" not in changed:
        model._unit_noise = unit_noise
    model._mean_logs.set_state(state["mean_logs"])
    model._skill_rewards.rewards, model._skill_rewards.steps = state["skill_rewards"]
    for name in LOGGED:
        getattr(model.logger, name).update(state["logger"][name])
    model.until_learned.enter_context(model.learning_later(state["learns_later_by"]))
    # Time and speed are those of the whole run, without the pause
    model.start_time = time.time_ns() - state["elapsed"]
    model._num_timesteps_at_start = state["num_timesteps_at_start"]
    set_callback_states(callback, state["callbacks"], state["n_calls"])
    set_random_states(state["random_states"])
    restart_episodes(model, state["reset_seed"])


def restart_episodes(model: SkillDDPG, seed: int | None) -> None:
    """
    Reset environments whose state can't be read, so that they continue from a known state.

    :param model: a model in ``learn``, between two rollouts
    :param seed: seed of the environments; ``None`` for those whose state was read, which are left alone
    """
    if seed is None:
        return
    assert model.env is not None and model.replay_buffer is not None
    model.env.unwrapped.seed(seed)
    model.replay_buffer.end_trajectories()
    model._observe(model.env.reset())  # type: ignore[arg-type]
    model._last_episode_starts = np.ones(model.n_envs, dtype=bool)
    if model._vec_normalize_env is not None:
        model._last_original_obs = model._vec_normalize_env.get_original_obs()  # type: ignore[assignment]
    model._unit_noise.reset()
    if model.action_noise is not None:
        model.action_noise.reset()


def warn_of_restarts(model: SkillDDPG) -> None:
    """
    Warn that episodes end at checkpoints.

    :param model: a model whose environments have no state that can be read
    """
    assert model.env is not None
    here = "" if isinstance(model.env.unwrapped, DummyVecEnv) else "use DummyVecEnv, and "
    warnings.warn(
        f"The state of {unreadable_state(model.env)} can't be read during an episode: all episodes end at each checkpoint, so "
        f"that the run can be resumed from there. To avoid this, {here}give the environment get_state() and set_state(state), "
        "or attributes that can be pickled."
    )
