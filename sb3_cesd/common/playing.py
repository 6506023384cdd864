"""The loop in which skills act without learning."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_cesd.common.observations import SKILL, Observation, arrays_of, plain_form, shapes_of
from sb3_cesd.common.vec_env import as_arrays, last_observations


class SkillModel(Protocol):
    """Model or policy with skills, which predicts the action of each skill for observations without one."""

    @property
    def n_skills(self) -> int:
        """Number of skills that an index stands for."""

    def predict(self, observation: Any, *, deterministic: bool, skill: Any) -> tuple[np.ndarray, Any]:
        """
        Get the actions of a skill for all environments, or of one per environment; and ``None`` or, of a model that remembers,
        the ``state`` that its next call takes, together with ``episode_start``.
        """


class Moment(NamedTuple):
    """
    Outcome of a reset or a step of environments.

    :param observations: what the model sees, without the skill; at the end of an episode, its last observation
    :param rewards: rewards of the step, not normalised; zero after a reset, shape ``(n_envs,)``
    :param dones: whether an episode ended, shape ``(n_envs,)``
    :param infos: information of each environment
    """

    observations: Observation
    rewards: np.ndarray
    dones: np.ndarray
    infos: list[dict[str, Any]]


def play(
    model: SkillModel,
    env: VecEnv,
    skill: int | np.ndarray,
    deterministic: bool = True,
    perturb: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Iterator[Moment]:
    """
    Let skills act from a reset on, without end: each episode is followed by the next one.

    :param model: the model or policy
    :param env: environments, normalised as the model expects them; a skill that they observe is ignored
    :param skill: index of the skill that acts, or one per environment, shape ``(n_envs,)``
    :param deterministic: take the mean action of a stochastic policy
    :param perturb: changes actions before the environments take them
    :return: the moments, that of the reset first
    """
    normalize = unwrap_vec_normalize(env)
    entries = arrays_of(env.reset())
    nothing, memory = np.zeros(env.num_envs), {}  # type: tuple[np.ndarray, dict[str, Any]]
    yield Moment(plain_form(entries), nothing, nothing.astype(bool), list(env.unwrapped.reset_infos))  # type: ignore[arg-type]
    while True:
        actions, state = model.predict(plain_form(entries), deterministic=deterministic, skill=skill, **memory)
        entries, rewards, dones, infos = as_arrays(*env.step(actions if perturb is None else perturb(actions)))
        if normalize is not None:
            rewards = normalize.get_original_reward()
        memory = {} if state is None else {"state": state, "episode_start": dones}
        yield Moment(plain_form(last_observations(entries, dones, infos)), rewards, dones, infos)  # type: ignore[arg-type]


def check_play_spaces(env: VecEnv, model: Any, name: str) -> None:
    """Check that the spaces of environments are those of a model, whatever skill is in them."""
    shapes = {entry: shape for entry, shape in shapes_of(env.observation_space).items() if entry != SKILL}
    if shapes != shapes_of(model.plain_space) or env.action_space != model.action_space:
        raise ValueError(
            f"The model observes {model.plain_space} and acts in {model.action_space}, but {name} has the observation space "
            f"{env.observation_space} and the action space {env.action_space}: pass {name} wrapped as that of training, "
            "without the skill."
        )


def gaussian_noise(space: spaces.Space, std: float, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """Make noise for :func:`play`, whose standard deviation is a fraction of half the range of actions."""
    assert isinstance(space, spaces.Box)
    low, high = space.low, space.high

    def perturb(actions: np.ndarray) -> np.ndarray:
        noise = std * (high - low) / 2 * rng.standard_normal(actions.shape)
        return np.clip(actions + noise, low, high).astype(actions.dtype)

    return perturb
