"""Whether skills move, or hold a pose."""

from typing import NamedTuple

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.metrics.distinguishability import scales
from sb3_cesd.metrics.environments import has_wrappers, robot_name, unnormalize
from sb3_cesd.metrics.rollouts import RandomActions, SkillRollouts, collect_rollouts

#: Entries of a robot's observation that are the velocities of its joints [rad/s]
JOINT_VELOCITIES = {
    "walker": slice(18, 24),
    "quadruped": slice(16, 32),
    "jaco": slice(18, 24),
    "ant": slice(21, 29),
    "half_cheetah": slice(12, 18),
}
#: Number of initial steps that are ignored, in which robots fall into their pose, and of steps over which speed is measured
SETTLE, WINDOW = 50, 10
#: A skill moves if its speeds are at least these shares of those of random actions, which swing joints more than a gait does
MOVING = {"joints": 0.25, "torso": 0.5, "hand": 0.5, "observation": 0.5}
#: Number of rollouts of random actions, whose speeds vary a lot
N_RANDOM = 16


class SkillMotion(NamedTuple):
    """
    Speeds of skills.

    :param speeds: speed of each skill by the part that moves, shape ``(n_skills,)`` each: ``"torso"`` [m/s] and ``"joints"``
        [rad/s] of a robot (for an arm ``"hand"`` instead of the torso), otherwise ``"observation"`` [standard deviations under
        random actions per step]
    :param random_speeds: the same for random actions
    :param moves: whether each skill moves, shape ``(n_skills,)``
    """

    speeds: dict[str, np.ndarray]
    random_speeds: dict[str, float]
    moves: np.ndarray

    @property
    def moving_share(self) -> float:
        """Share of the skills that move, from 0 to 1."""
        return float(self.moves.mean())


def mean_speeds(paths: np.ndarray, lengths: np.ndarray, dt: float = 1.0) -> np.ndarray:
    """
    Measure the mean speed of each skill, ``|x_{t + 10} - x_t| / (10 dt)``, after the first 50 steps, or the first half of a
    shorter rollout. Windows are shorter in rollouts of less than 20 steps. Paths have the shape ``(n_skills, n_rollouts,
    n_states, d)``, lengths ``(n_skills, n_rollouts)``.
    """
    first = np.minimum(SETTLE, lengths // 2)
    windows = np.minimum(WINDOW, lengths - first)  # (n_skills, n_rollouts)
    sums, counts = np.zeros(len(paths)), np.zeros(len(paths), dtype=np.int64)
    for window in np.unique(windows[windows > 0]).tolist():
        distances = np.linalg.norm(paths[:, :, window:] - paths[:, :, :-window], axis=-1)
        time = np.arange(distances.shape[2])
        counted = (time >= first[..., None]) & (time + window <= lengths[..., None]) & (windows[..., None] == window)
        sums += (distances * counted).sum(axis=(1, 2)) / window
        counts += counted.sum(axis=(1, 2))
    return sums / np.maximum(counts, 1) / dt


def skill_motion(
    rollouts: SkillRollouts, random_rollouts: SkillRollouts, robot: str | None = None, dt: float = 1.0
) -> SkillMotion:
    """Determine which skills move, from observations that are not normalised; see :func:`measure_motion`."""
    both = rollouts, random_rollouts
    if robot is None:
        # Entries that random actions don't change are ignored
        scale = scales(random_rollouts.as_seen().per_state()[0])
        paths = {"observation": [each.observations / scale for each in both]}
    else:
        joints = JOINT_VELOCITIES[robot]
        paths = {
            "hand" if robot == "jaco" else "torso": [each.positions for each in both],  # type: ignore[misc]
            "joints": [np.cumsum(each.observations[..., joints], axis=2) * dt for each in both],
        }
    speeds, random_speeds = {}, {}
    for name, (of_skills, at_random) in paths.items():
        speeds[name] = mean_speeds(of_skills, rollouts.lengths, dt)
        random_speeds[name] = float(mean_speeds(at_random, random_rollouts.lengths, dt).mean())
    fast = [speeds[name] >= MOVING[name] * random_speeds[name] for name in speeds]
    # If random actions move nothing, a skill still has to move something
    return SkillMotion(speeds, random_speeds, np.logical_and.reduce(fast) & (sum(speeds.values()) > 0))


def measure_motion(env: VecEnv, rollouts: SkillRollouts, seed: int = 0) -> SkillMotion:
    """
    Determine which skills move, compared with random actions that are played for as many steps.

    A skill moves if its torso (or hand, or observation) is at least half as fast as with random actions, and its joints at
    least a quarter as fast, after the first 50 steps and over windows of 10 steps (see :func:`mean_speeds`). A robot that
    holds a pose, even if it trembles, does not move; nor does one that lies on its back and kicks, as its torso stays.

    :param env: environments that the skills were played in
    :param rollouts: rollouts of all skills
    :param seed: seed of the random actions and their starts
    :return: speeds, and which skills move
    """
    # Wrappers may change observations in unknown ways
    robot = None if has_wrappers(env) else robot_name(env)
    model, n_steps = RandomActions(env.action_space, seed), rollouts.states.shape[2] - 1
    random = collect_rollouts(model, env, N_RANDOM // model.n_skills, n_steps, seed=seed)
    raw, raw_random = (each._replace(observations=unnormalize(env, each.observations)) for each in (rollouts, random))
    return skill_motion(raw, raw_random, robot, 1.0 if robot is None else float(env.get_attr("dt", indices=0)[0]))
