"""Recording what each skill of a model does."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv


class SkillModel(Protocol):
    """What is needed of a model: a number of skills, and actions of given skills for observations without a skill."""

    n_skills: int

    def predict(self, observation: np.ndarray, *, deterministic: bool, skill: int | np.ndarray) -> tuple[np.ndarray, Any]:
        """
        :param observation: shape ``(n_envs, obs_dim)``
        :param deterministic: take the mean action of a stochastic policy
        :param skill: one for all, or one for each, shape ``(n_envs,)``
        :return: actions, shape ``(n_envs, action_dim)``, and anything
        """


class SkillRollouts(NamedTuple):
    """
    Rollouts of all skills of a model, each from the start.

    :param states: shape ``(n_skills, n_rollouts, n_steps + 1, d)``; after the end of an episode the last one is repeated
    :param skills: shape ``(n_skills, n_rollouts)``
    :param returns: sums of the rewards of the environment, shape ``(n_skills, n_rollouts)``
    :param lengths: number of steps until the end of the episode or the recording, shape ``(n_skills, n_rollouts)``
    :param observations: what the model saw in these states, shape ``(n_skills, n_rollouts, n_steps + 1, obs_dim)``
    """

    states: np.ndarray
    skills: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    observations: np.ndarray | None = None

    def per_state(self) -> tuple[np.ndarray, np.ndarray]:
        """
        :return: all states but repeated ones, shape ``(n, d)``, and their skills, shape ``(n,)``
        """
        visited = np.arange(self.states.shape[2]) <= self.lengths[..., None]  # (n_skills, n_rollouts, n_steps + 1)
        return self.states[visited], np.broadcast_to(self.skills[..., None], visited.shape)[visited]

    def per_rollout(self) -> tuple[np.ndarray, np.ndarray]:
        """
        :return: whole rollouts as rows, shape ``(n_skills * n_rollouts, (n_steps + 1) * d)``, and their skills, shape
            ``(n_skills * n_rollouts,)``
        """
        return self.states.reshape(self.skills.size, -1), self.skills.ravel()


def env_positions(env: VecEnv) -> np.ndarray:
    """
    :param env: environments with a ``position``, such as the robots (torso; jaco: hand) and mazes of this package
    :return: shape ``(n_envs, 3)``
    """
    return np.stack(env.get_attr("position"))


def collect_rollouts(
    model: SkillModel,
    env: VecEnv,
    n_rollouts: int = 20,
    n_steps: int = 50,
    noise_std: float = 0.0,
    deterministic: bool = True,
    seed: int | None = None,
    reset_options: dict[str, Any] | None = None,
    position_fn: Callable[[VecEnv], np.ndarray] | None = None,
) -> SkillRollouts:
    """
    Play all skills, as many rollouts at a time as there are environments.

    :param model: the model
    :param env: environments without skill observations, normalised as the model expects them
    :param n_rollouts: number of rollouts of each skill
    :param n_steps: length of a rollout; shorter if the episode ends
    :param noise_std: standard deviation of Gaussian noise on the actions, as a share of half their range, for stochastic
        rollouts of a deterministic policy
    :param deterministic: take the mean action of a stochastic policy
    :param seed: seed of the first reset and the noise
    :param reset_options: options of every reset, e.g. ``{"position": (0.0, 0.0)}`` to start at one point of a maze
    :param position_fn: what to record, as an array of shape ``(n_envs, d)``, e.g. :func:`env_positions`; ``None`` for the
        observations. It sees environments that have been reset at the end of an episode: the position before is repeated
    :return: the rollouts
    """
    rng = np.random.default_rng(seed)
    if seed is not None:
        env.seed(seed)
    skills = np.repeat(np.arange(model.n_skills), n_rollouts)
    batches = []
    for batch in np.split(skills, range(env.num_envs, len(skills), env.num_envs)):
        env.set_options(reset_options)
        # Environments left over in the last batch play along and are not recorded
        played = np.pad(batch, (0, env.num_envs - len(batch)), mode="edge")
        batches.append(
            [values[: len(batch)] for values in _play(model, env, played, n_steps, noise_std, deterministic, rng, position_fn)]
        )
    shape = (model.n_skills, n_rollouts)
    values = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    states, observations, returns, lengths = (array.reshape(*shape, *array.shape[1:]) for array in values)
    return SkillRollouts(states, skills.reshape(shape), returns, lengths, observations)


def _play(
    model: SkillModel,
    env: VecEnv,
    skills: np.ndarray,
    n_steps: int,
    noise_std: float,
    deterministic: bool,
    rng: np.random.Generator,
    position_fn: Callable[[VecEnv], np.ndarray] | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """
    Play one episode in each environment.

    :param skills: skill of each environment, shape ``(n_envs,)``
    :return: states, observations, returns and lengths
    """
    assert isinstance(env.action_space, spaces.Box)
    low, high = env.action_space.low, env.action_space.high
    observations = env.reset()
    seen = [np.array(observations)]
    places = None if position_fn is None else [np.array(position_fn(env))]
    returns, lengths = np.zeros(env.num_envs), np.zeros(env.num_envs, dtype=np.int64)
    over = np.zeros(env.num_envs, dtype=bool)
    for _ in range(n_steps):
        assert isinstance(observations, np.ndarray), "skills are for flat observations"
        actions, _ = model.predict(observations, deterministic=deterministic, skill=skills)
        noise = noise_std * (high - low) / 2 * rng.standard_normal(actions.shape)
        observations, rewards, dones, infos = env.step(np.clip(actions + noise, low, high).astype(actions.dtype))
        reached = np.array(observations)
        for idx in np.flatnonzero(dones):
            reached[idx] = infos[idx]["terminal_observation"]
        seen.append(np.where(over[:, None], seen[-1], reached))
        if position_fn is not None and places is not None:
            # Where an episode has ended, the place is that of the next one already
            places.append(np.where((over | dones)[:, None], places[-1], position_fn(env)))
        returns += np.where(over, 0.0, rewards)
        lengths += ~over
        over |= dones
    all_seen = np.stack(seen, axis=1)
    return all_seen if places is None else np.stack(places, axis=1), all_seen, returns, lengths
