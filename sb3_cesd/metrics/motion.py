"""Whether skills move, or hold a pose."""

from typing import NamedTuple

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.rules import shown
from sb3_cesd.metrics.normalization import raw_observations
from sb3_cesd.metrics.places import env_positions
from sb3_cesd.metrics.random_actions import RandomActions
from sb3_cesd.metrics.rollouts import SkillRollouts, collect_rollouts
from sb3_cesd.metrics.standardization import scales
from sb3_cesd.metrics.training_env import has_wrappers

#: Entries of a robot's observation that are the velocities of its joints [rad/s]
JOINT_VELOCITIES = {
    "walker": slice(18, 24),
    "quadruped": slice(16, 32),
    "jaco": slice(18, 24),
    "ant": slice(21, 29),
    "half_cheetah": slice(12, 18),
}
#: Entries of the arm's observation that are the velocities of its fingers [rad/s], positive if they close
FINGER_VELOCITIES = slice(27, 30)
#: Number of initial steps that are ignored, in which robots fall into their pose, and of steps over which speed is measured
SETTLE, WINDOW = 50, 10
#: A skill moves if its speeds are at least these shares of those of random actions, which swing joints more than a gait does
MOVING = {"joints": 0.25, "torso": 0.5, "hand": 0.5, "observation": 0.5}
#: Number of rollouts of random actions, whose speeds vary a lot
N_RANDOM = 16
#: Speed from which on fingers count as moving [rad/s]
FINGER_SPEED = 0.1


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


def robot_name(env: VecEnv) -> str | None:
    """
    Return the name of the robot of environments.

    :param env: any environments
    :return: ``"walker"``, ``"quadruped"``, ``"jaco"``, ``"ant"`` or ``"half_cheetah"``; ``None`` for other environments
    """
    return env.get_attr("robot_name", indices=0)[0] if env.has_attr("robot_name") else None


def mean_speeds(paths: np.ndarray, lengths: np.ndarray, dt: float = 1.0, settle: int = SETTLE) -> np.ndarray:
    """
    Measure the speed of skills over windows of 10 steps, in which trembling cancels out; fewer in rollouts of less than 20.

    :param paths: shape ``(n_skills, n_rollouts, n_states, d)``
    :param lengths: number of steps of each rollout, shape ``(n_skills, n_rollouts)``
    :param dt: duration of a step
    :param settle: number of initial steps that are ignored, at most half of a rollout
    :return: mean over time and rollouts of ``|x_{t + 10} - x_t| / (10 dt)``, shape ``(n_skills,)``
    """
    check_arguments("mean_speeds", locals())
    first = np.minimum(settle, lengths // 2)
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
    """
    Determine which skills move.

    A skill moves if its torso (or hand, or observation) is at least half as fast as with random actions, and its joints at
    least a quarter as fast, after the first 50 steps and over windows of 10 steps (see :func:`mean_speeds`). A robot that
    holds a pose, even if it trembles, does not move; nor does one that lies on its back and kicks, as its torso stays.

    :param rollouts: rollouts of all skills, with ``observations`` that are not normalised
    :param random_rollouts: rollouts of random actions in the same environment
    :param robot: name of the robot, see :func:`robot_name`; the rollouts must then have ``positions``
    :param dt: duration of a step of the robot [s]
    :return: speeds, and which skills move
    :raises ValueError: if the robot is unknown, or rollouts lack its positions
    """
    check_arguments("skill_motion", locals())
    if robot is not None and not (isinstance(robot, str) and robot in JOINT_VELOCITIES):
        raise ValueError(f"Unknown robot {shown(robot)}: choose one of {', '.join(JOINT_VELOCITIES)}, or None.")
    both = rollouts, random_rollouts
    if robot is not None and any(each.positions is None for each in both):
        raise ValueError("The rollouts lack positions, which the speed of a robot is measured by: record them by play_places.")
    lengths = [each.lengths for each in both]
    if robot is None:
        # Entries that random actions don't change are ignored
        scale = scales(random_rollouts.as_seen().per_state()[0])
        paths = {"observation": [each.observations / scale for each in both]}  # type: ignore[operator]
        dt = 1.0
    else:
        joints = JOINT_VELOCITIES[robot]
        torso = "hand" if robot == "jaco" else "torso"
        paths = {
            torso: [each.positions for each in both],  # type: ignore[misc]
            "joints": [np.cumsum(each.observations[..., joints], axis=2) * dt for each in both],  # type: ignore[index]
        }
    speeds, random_speeds = {}, {}
    for name, (of_skills, at_random) in paths.items():
        speeds[name] = mean_speeds(of_skills, lengths[0], dt)
        random_speeds[name] = float(mean_speeds(at_random, lengths[1], dt).mean())
    fast = [speeds[name] >= MOVING[name] * random_speeds[name] for name in speeds]
    # If random actions move nothing, a skill still has to move something
    return SkillMotion(speeds, random_speeds, np.logical_and.reduce(fast) & (sum(speeds.values()) > 0))


def measure_motion(env: VecEnv, rollouts: SkillRollouts, seed: int = 0) -> SkillMotion:
    """
    Determine which skills move, compared with random actions that are played for as many steps.

    :param env: environments that the skills were played in
    :param rollouts: rollouts of all skills, with ``observations`` and, for a robot, ``positions``
    :param seed: seed of the random actions and their starts
    :return: see :func:`skill_motion`
    """
    check_arguments("measure_motion", locals())
    # Wrappers may change observations in unknown ways
    robot = None if has_wrappers(env) else robot_name(env)
    n_rollouts, n_steps = -(-N_RANDOM // RandomActions.n_skills), rollouts.states.shape[2] - 1
    position_fn = None if robot is None else env_positions
    model = RandomActions(env.action_space, seed)
    random = collect_rollouts(model, env, n_rollouts, n_steps, seed=seed, position_fn=position_fn)
    random = random._replace(positions=None if robot is None else random.states)
    dt = 1.0 if robot is None else float(env.get_attr("dt", indices=0)[0])
    return skill_motion(raw_observations(env, rollouts), raw_observations(env, random), robot, dt)


def gripper_shares(rollouts: SkillRollouts) -> dict[str, float]:
    """
    Measure how much the arm uses its gripper.

    :param rollouts: rollouts of the arm, with ``observations`` that are not normalised
    :return: ``gripper_closing`` and ``gripper_opening``, shares of the steps in which the fingers close or open faster than
        0.1 rad/s on average, each from 0 to 1
    """
    fingers = rollouts.as_seen().per_state()[0][:, FINGER_VELOCITIES].mean(axis=1)
    return {
        "gripper_closing": float((fingers > FINGER_SPEED).mean()),
        "gripper_opening": float((fingers < -FINGER_SPEED).mean()),
    }
