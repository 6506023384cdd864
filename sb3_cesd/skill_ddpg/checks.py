"""Bad input, found before it can do harm; every message ends in the remedy."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.checks import check_correlation, check_not_negative, check_positive_integer, check_share
from sb3_cesd.common.observations import SKILL, check_plain_space, plain_space, shapes_of, short

#: Who acts in the first steps
WARM_UPS = ("random", "policy", "skills")
REWARDS = ("intrinsic", "extrinsic")


def check_arguments(model: Any) -> None:
    """
    Check the arguments of an algorithm.

    :param model: a model, with its arguments as attributes
    :raises ValueError: if one is out of its range
    """
    check_positive_integer(buffer_size=model.buffer_size, batch_size=model.batch_size, n_steps=model.n_steps)
    check_share(tau=model.tau, gamma=model.gamma)
    for name in ("exploration_noise", "target_policy_noise", "target_noise_clip"):
        check_not_negative(**{name: getattr(model, name)})
    check_correlation(noise_correlation=model.noise_correlation)
    for name, choices in {"reward": REWARDS, "warm_up": WARM_UPS}.items():
        if getattr(model, name) not in choices:
            *others, last = map(repr, choices)
            raise ValueError(f"Unknown {name} {getattr(model, name)!r}: choose {', '.join(others)} or {last}.")
    if model.reward == "intrinsic" and not hasattr(model, "reward_class"):
        raise ValueError(
            f"{type(model).__name__} has no intrinsic reward: use a method that has one, such as CeSD, or pass "
            "reward='extrinsic'."
        )


def check_buffer_class(buffer_class: type[ReplayBuffer], cuda_graph: bool) -> type[SkillReplayBuffer]:
    """
    Check that training can use a replay buffer.

    :param buffer_class: class of the replay buffer
    :param cuda_graph: whether updates are to be captured
    :return: the same class
    :raises ValueError: if it does not know skills, or overrides what training does not call
    """
    if not issubclass(buffer_class, SkillReplayBuffer):
        raise ValueError(
            f"{buffer_class.__name__} does not know skills: leave replay_buffer_class out, or subclass SkillReplayBuffer."
        )
    if buffer_class._get_samples is not SkillReplayBuffer._get_samples:
        raise ValueError(
            f"{buffer_class.__name__} overrides _get_samples(), which is never called: override sample(), or draw() and "
            "gather()."
        )
    if cuda_graph and buffer_class.sample is not SkillReplayBuffer.sample:
        raise ValueError(
            f"{buffer_class.__name__} overrides sample(), which can't be captured in a CUDA graph: override draw() and "
            "gather(), or leave cuda_graph out."
        )
    return buffer_class


def check_env_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """
    Check that a method can learn in an environment.

    :param observation_space: of the environment, with or without the skill
    :param action_space: of the environment
    :raises ValueError: unless observations are arrays (or a dictionary of them) and actions continuous
    """
    has_skill = isinstance(observation_space, spaces.Dict) and SKILL in observation_space.spaces
    check_plain_space(plain_space(observation_space) if has_skill else observation_space)  # type: ignore[arg-type]
    if not isinstance(action_space, spaces.Box):
        raise ValueError(
            f"Actions are continuous in this algorithm, but the action space is {action_space}: "
            "use an environment with a Box action space."
        )


def check_play_spaces(observation_space: spaces.Space, action_space: spaces.Space, model: Any, name: str) -> None:
    """
    Check that a model can act in environments.

    :param observation_space: of environments to play in, without the skill
    :param action_space: of these
    :param model: the model
    :param name: what the environments are called in the message
    :raises ValueError: if it can't
    """
    if shapes_of(observation_space) != shapes_of(model.plain_space) or action_space != model.action_space:
        known, action = short(model.plain_space), short(model.action_space)
        raise ValueError(
            f"The model observes {known} and acts in {action}, but {name} has the observation space "
            f"{short(observation_space)} and the action space {short(action_space)}: pass {name} wrapped as that of training, "
            "without the skill."
        )


def env_name(env: VecEnv | None) -> str:
    """
    Name an environment for a message.

    :param env: environments of training
    :return: their id, or their class
    """
    assert env is not None
    spec = env.get_attr("spec", indices=0)[0] if env.has_attr("spec") else None
    if spec is not None:
        return spec.id
    unwrapped = env.unwrapped
    return type(unwrapped.envs[0].unwrapped if isinstance(unwrapped, DummyVecEnv) else unwrapped).__name__


def check_finite(env_name: str, kind: str, values: np.ndarray | dict[str, np.ndarray], step: int) -> None:
    """
    Check that an environment returned finite numbers.

    :param env_name: name of the environment
    :param kind: what the values are, e.g. "observation"
    :param values: one row for each environment, shape ``(n_envs, ...)``, or a dictionary of such
    :param step: time step of the training
    :raises ValueError: if there is NaN or infinity
    """
    if isinstance(values, dict):
        for name, entry in values.items():
            check_finite(env_name, kind if len(values) == 1 else f"{kind} {name!r}", entry, step)
        return
    if np.isfinite(values).all():
        return
    env_idx = int(np.nonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0][0])
    row = np.atleast_1d(values[env_idx]).ravel()
    entries = np.nonzero(~np.isfinite(row))[0]
    listed = ", ".join(f"[{entry}] = {row[entry]}" for entry in entries[:8]) + (", ..." if len(entries) > 8 else "")
    raise ValueError(
        f"{env_name}, environment {env_idx}, time step {step}: the {kind} is not finite ({listed}). It was not stored. "
        f"Make the environment return finite values, e.g. clip the {kind} or end the episode before it diverges."
    )


def check_finite_action(actions: np.ndarray, step: int) -> None:
    """
    Check that a policy returned finite numbers.

    :param actions: any shape
    :param step: time step of the training
    :raises ValueError: if there is NaN or infinity
    """
    if not np.isfinite(actions).all():
        raise ValueError(
            f"The policy returned actions that are not finite at time step {step}: training has diverged. "
            "Lower learning_rate, or normalise the observations with VecNormalize."
        )
