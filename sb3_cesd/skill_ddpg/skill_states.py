"""States that skills visit, and the rewards to expect there in a task."""

import numpy as np
import torch as th

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import joined

#: Number of newest transitions of each skill from which states are taken, and number of states to keep
N_RECENT, N_KEPT = 8000, 1000
#: Maximum total size of the states: fewer are kept of large observations such as images
MAX_NUMBERS = 4_000_000
#: Maximum number of transitions of a warm-up from which rewards are predicted
N_REWARDS = 4000
#: Standardised entries of states are clipped to this
CLIP = 5.0
#: Variance of the noise of rewards, relative to that of the function
NOISE = 0.2


def recent_states(buffer: SkillReplayBuffer, skill_duration: int | None) -> np.ndarray | None:
    """
    Collect states that skills have visited recently, shape ``(n_skills, n, obs_dim)``.

    ``None`` if skills change within an episode, as the states of a skill then depend on where the previous one left off, for
    continuous skills, and for few transitions.
    """
    if not buffer.skill_space.discrete or skill_duration is not None:
        return None
    n_skills = buffer.skill_space.n_skills
    obs_dim = sum(int(np.prod(values.shape[2:])) for values in buffer.observations.values())
    n_kept = min(N_KEPT, max(MAX_NUMBERS // (n_skills * obs_dim), 1))
    # From the oldest to the newest
    rows = (buffer.pos + np.arange(buffer.size())) % max(buffer.size(), 1)
    skills = buffer.skills[rows].ravel()
    states = []
    for skill in range(n_skills):
        recent = np.flatnonzero(skills == skill)[-N_RECENT:]
        if len(recent) < N_KEPT:
            return None
        kept = recent[np.linspace(0, len(recent) - 1, n_kept).astype(np.int64)]
        states.append(joined(buffer.observations_of(rows[kept // buffer.n_envs], kept % buffer.n_envs)))
    return np.stack(states).astype(np.float32)


def expected_rewards(buffer: SkillReplayBuffer, skill_states: np.ndarray) -> np.ndarray:
    """
    Predict the mean reward per step of skills in a task, from the transitions of a warm-up.

    A Gaussian process with the sum of a linear and a squared exponential kernel predicts the rewards of the states that skills
    visit (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, equation 2.25). A few steps in a task show
    which states are rewarded, but not which skill reaches them: that depends on how an episode starts.

    :param buffer: a replay buffer with transitions of the task
    :param skill_states: states of each skill, shape ``(n_skills, n, obs_dim)``
    :return: expected rewards, shape ``(n_skills,)``
    """
    size = buffer.size()
    chosen = np.linspace(0, size * buffer.n_envs - 1, min(size * buffer.n_envs, N_REWARDS)).astype(np.int64)
    rows, envs = chosen // buffer.n_envs, chosen % buffer.n_envs
    reached = joined(buffer.observations_of(rows, envs, following=True))
    return predict_mean_rewards(reached, buffer.rewards[rows, envs], skill_states)


def predict_mean_rewards(states: np.ndarray, rewards: np.ndarray, skill_states: np.ndarray) -> np.ndarray:
    """Predict the mean reward of skills in ``skill_states``, given rewards of other states; see :func:`expected_rewards`."""
    mean, std = states.mean(axis=0, dtype=np.float64), states.std(axis=0, dtype=np.float64)
    # Entries that never changed in the task carry no information
    scale = np.divide(1.0, std * np.sqrt(len(mean)), out=np.zeros_like(std), where=std > 1e-6)
    limit = CLIP / np.sqrt(len(mean))

    def standardized(values: np.ndarray) -> th.Tensor:
        return th.from_numpy(np.clip((values - mean) * scale, -limit, limit))

    known = standardized(states)
    centred = th.from_numpy(rewards - rewards.mean(dtype=np.float64))
    weights = th.linalg.solve(
        _kernel(known, known) + NOISE * th.eye(len(known), dtype=known.dtype, device=known.device), centred
    )
    values = [float((_kernel(standardized(of_skill), known) @ weights).mean()) for of_skill in skill_states]
    return np.array(values) + rewards.mean(dtype=np.float64)


def _kernel(first: th.Tensor, second: th.Tensor) -> th.Tensor:
    """Compute the sum of a linear and a squared exponential kernel, shape ``(n, m)``."""
    return first @ second.T + (-th.cdist(first, second).square() / 2).exp()
