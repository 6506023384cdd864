"""Measure how far the skills of a robot go: coverage as METRA counts it, and goals that they reach."""

from contextlib import closing
from typing import Any, NamedTuple

from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.envs.robots.ids import LOCOMOTION
from sb3_cesd.metrics import draw_goals, policy_coverage, zero_shot_goals
from sb3_cesd.metrics.environments import check_positions, env_layout, has_positions_to_play, robot_name
from sb3_cesd.metrics.goals import GOAL_RANGES, N_GOALS, N_STEPS, N_TRAJECTORIES
from sb3_cesd.show.environments import PlayEnvs

#: METRA's robots, for which this is measured by default
FAR_ROBOTS = tuple(LOCOMOTION.values())


class Reach(NamedTuple):
    """
    How to measure how far skills go.

    :param n_trajectories: number of trajectories for the policy coverage, 0 for none
    :param goal_range: largest distance of a goal along each axis [m], 0 for no goals
    :param n_steps: length of a trajectory and of the way to a goal, shorter if the episode ends
    """

    n_trajectories: int
    goal_range: float
    n_steps: int = N_STEPS

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to measure."""
        return self.n_trajectories > 0 or self.goal_range > 0


def choose_reach(
    env: VecEnv, n_trajectories: int | None, goal_range: float | None, n_steps: int | None, by_default: bool
) -> Reach:
    """
    Choose what to measure.

    :param env: environments
    :param n_trajectories: number of trajectories; ``None`` for 48 with METRA's robots, and none elsewhere
    :param goal_range: largest distance of a goal along each axis [m]; ``None`` for the value of the literature with METRA's
        robots, and no goals elsewhere
    :param n_steps: length of both; ``None`` for 200
    :param by_default: whether ``None`` means these defaults; if not, it means none
    :return: what to measure
    :raises ValueError: if trajectories or goals are requested for an environment that is not a robot with a position
    """
    if n_trajectories or goal_range:
        check_positions(env_layout(env) is None and has_positions_to_play(env), "n_trajectories or goal_range")
    robot = robot_name(env)
    is_far = by_default and robot in FAR_ROBOTS
    if n_trajectories is None:
        n_trajectories = N_TRAJECTORIES if is_far else 0
    if goal_range is None:
        goal_range = GOAL_RANGES[robot] if is_far else 0.0  # type: ignore[index]
    return Reach(n_trajectories, goal_range, n_steps or N_STEPS)


def measure_reach(envs: PlayEnvs, model: Any, reach: Reach, seed: int) -> dict[str, float]:
    """
    Measure how far skills go.

    :param envs: environments to play in
    :param model: a model with skills
    :param reach: what to measure
    :param seed: seed of skills, goals and starts
    :return: ``policy_coverage_<n_trajectories>`` and the metrics of
        :class:`~sb3_cesd.metrics.goals.GoalResults`, as far as requested
    """
    metrics: dict[str, float] = {}
    if not reach.is_wanted:
        return metrics
    # Enough environments to play all trajectories, or all goals, at once
    with closing(envs.many(max(reach.n_trajectories, N_GOALS if reach.goal_range else 0), 1)) as env:
        if reach.n_trajectories:
            coverage = policy_coverage(model, env, reach.n_trajectories, reach.n_steps, seed=seed)
            metrics[f"policy_coverage_{reach.n_trajectories}"] = float(coverage)
        if reach.goal_range:
            goals = draw_goals(env, N_GOALS, reach.goal_range, seed)
            metrics |= zero_shot_goals(model, env, goals, reach.n_steps, seed).metrics()
    return metrics
