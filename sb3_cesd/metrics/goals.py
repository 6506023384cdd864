"""Zero-shot goal reaching: skills reach goals without learning."""

from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.observations import entries_of, plain_form
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.common.vec_normalize import frozen_statistics
from sb3_cesd.metrics.motion import robot_name
from sb3_cesd.metrics.normalization import normalize, unnormalize
from sb3_cesd.metrics.places import check_places_to_play
from sb3_cesd.metrics.policy_coverage import N_STEPS
from sb3_cesd.metrics.rollouts import play_paths, prepare_to_play
from sb3_cesd.metrics.summary import env_layout
from sb3_cesd.metrics.training_env import has_wrappers

#: Entries of the observation that are the position
PLACES = {"ant": [0, 1], "half_cheetah": [0]}
#: Number of goals
N_GOALS = 50
#: Largest distance of goals along each axis [m], as in Zheng et al. (2025)
GOAL_RANGES = {"ant": 50.0, "half_cheetah": 100.0, "quadruped": 15.0}


class GoalResults(NamedTuple):
    """
    Distances of skills from their goals.

    :param distances: distance to the goal of each episode [m], shape ``(n_goals, n_steps + 1)``; after the end of an episode
        the last one is repeated
    :param skills: index of the skill of each goal, shape ``(n_goals,)``; ``None`` if it was chosen at each step
    """

    distances: np.ndarray
    skills: np.ndarray | None

    def metrics(self, radii: tuple[float, ...] = (3.0, 1.0)) -> dict[str, float]:
        """
        Summarise the distances.

        :param radii: distances within which a goal counts as reached [m]
        :return: for each radius r ``goal_hit_r`` (share of goals that were within r at some step), ``goal_end_r`` (share of
            goals within r at the last step) and ``goal_stay_r`` (share of steps within r, without the initial state); and
            ``goal_distance``, the mean final distance [m]
        """
        metrics = {}
        for radius in radii:
            within = self.distances[:, 1:] <= radius  # (n_goals, n_steps)
            metrics[f"goal_hit_{radius:g}"] = float(within.any(axis=1).mean())
            metrics[f"goal_end_{radius:g}"] = float(within[:, -1].mean())
            metrics[f"goal_stay_{radius:g}"] = float(within.mean())
        metrics["goal_distance"] = float(self.distances[:, -1].mean())
        return metrics


class GoalSeeker:
    """
    A model that follows, at each step, the skill that leads to a goal.

    :param model: a model with ``goal_skill``
    :param goals: observations to reach, as the model sees them, shape ``(n_goals, obs_dim)``
    """

    def __init__(self, model: Any, goals: np.ndarray) -> None:
        self._model = model
        self._goals = goals
        self.n_skills = len(goals)

    def predict(self, observation: np.ndarray, *, deterministic: bool, skill: np.ndarray) -> tuple[np.ndarray, Any]:
        """
        Act towards goals.

        :param observation: one per environment, shape ``(n_envs, obs_dim)``
        :param deterministic: take the mean action of a stochastic policy
        :param skill: index of the goal of each environment, shape ``(n_envs,)``
        :return: actions, and the state of the model
        """
        skills = self._model.goal_skill(observation, self._goals[skill])
        return self._model.predict(observation, deterministic=deterministic, skill=skills)


def draw_goals(env: VecEnv, n_goals: int = N_GOALS, goal_range: float | None = None, seed: int = 0) -> np.ndarray:
    """
    Draw goals uniformly.

    :param env: environments with a ``position``
    :param n_goals: number of goals
    :param goal_range: largest distance along each axis [m]; ``None`` for the value of the literature: ant 50, half-cheetah
        100, quadruped 15
    :param seed: seed of the goals
    :return: positions, shape ``(n_goals, 2)``, for the half-cheetah and the walker ``(n_goals, 1)``
    :raises ValueError: if the literature has no value for these environments
    """
    check_arguments("draw_goals", locals())
    robot = robot_name(env)
    if goal_range is None and robot not in GOAL_RANGES:
        raise ValueError(f"There is a default range of goals only for {', '.join(GOAL_RANGES)}: pass goal_range.")
    limit = GOAL_RANGES[robot] if goal_range is None else goal_range  # type: ignore[index]
    return np.random.default_rng(seed).uniform(-limit, limit, (n_goals, 1 if robot in ("half_cheetah", "walker") else 2))


def zero_shot_goals(model: SkillModel, env: VecEnv, goals: np.ndarray, n_steps: int = N_STEPS, seed: int = 0) -> GoalResults:
    """
    Measure how well skills reach goals, as METRA (Park et al., 2024) and CSF (Zheng et al., 2025) do.

    If the method can infer the skill that leads to an observation (``model.goal_skill``, for METRA the direction of
    ``phi(goal) - phi(s)``), it does so at each step; the goal is the initial observation with the position of the goal. This
    requires that the position is part of the observation, as for the ant, the half-cheetah and in mazes. Any other model plays
    each of its skills once, and then follows to each goal the skill that ended nearest.

    :param model: a model
    :param env: environments with a ``position``, without skill observations, normalised as the model expects
    :param goals: positions [m], (x, y) or x alone, shape ``(n_goals, 2)`` or ``(n_goals, 1)``, see :func:`draw_goals`
    :param n_steps: length of an episode
    :param seed: seed of the starts
    :return: distances to the goals
    :raises ValueError: if the environments have no ``position`` or other spaces than those of the model, or are not normalised
        as it expects
    """
    check_arguments("zero_shot_goals", locals())
    prepare_to_play(model, env)
    check_places_to_play(env, "goals")
    env.seed(int(seed))
    goal_observations = _goal_observations(model, env, goals)
    if goal_observations is None:
        ends = play_paths(model, env, np.arange(model.n_skills), n_steps)[:, -1, : goals.shape[1]]
        skills = np.linalg.norm(goals[:, None] - ends, axis=-1).argmin(axis=1)
        paths = play_paths(model, env, skills, n_steps)
    else:
        skills = None
        paths = play_paths(GoalSeeker(model, goal_observations), env, np.arange(len(goals)), n_steps)
    return GoalResults(np.linalg.norm(paths[..., : goals.shape[1]] - goals[:, None], axis=-1), skills)


def _goal_observations(model: Any, env: VecEnv, goals: np.ndarray) -> np.ndarray | None:
    """
    Compute observations of goals.

    :param model: a model
    :param env: environments
    :param goals: positions, shape ``(n_goals, d)``
    :return: observations as the model sees them, shape ``(n_goals, obs_dim)``; ``None`` if it can't infer skills for them
    """
    places = [0, 1] if env_layout(env) is not None else PLACES.get(robot_name(env) or "")
    if places is None or len(places) != goals.shape[1] or has_wrappers(env):
        return None
    with frozen_statistics(env):
        # Also for a model that can't, so that others with the same weights have the same starts
        first: Any = plain_form(entries_of(env.reset()))  # type: ignore[arg-type]
    if not hasattr(model, "goal_skill"):
        return None
    starts = np.repeat(first[:1], len(goals), axis=0)
    observations = unnormalize(env, starts.copy())
    observations[:, places] = goals
    observations = normalize(env, observations)
    return None if model.goal_skill(starts, observations) is None else observations
