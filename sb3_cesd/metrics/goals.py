"""How far the skills of a robot go: METRA's policy coverage, goals and returns in tasks, without further training."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sb3_cesd.common.arguments import Positive, PositiveInt, checked
from sb3_cesd.common.observations import entries_of, plain_form
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.common.vec_normalize import check_statistics_fit, frozen_statistics, normalize_like_training
from sb3_cesd.envs.registration import HORIZONS, ROBOTS, TASK_IDS
from sb3_cesd.envs.robots.vec_env import make_batched
from sb3_cesd.metrics.environments import env_layout, has_wrappers, normalize, robot_name, unnormalize
from sb3_cesd.metrics.measures import torso_coverage
from sb3_cesd.metrics.rollouts import collect_rollouts, play_paths, prepare_to_play

#: Number of trajectories as in METRA, and steps of each
N_TRAJECTORIES, N_STEPS = 48, 200
#: Entries of the observation that are the position
PLACES = {"ant": [0, 1], "half_cheetah": [0]}
#: Number of goals
N_GOALS = 50
#: Largest distance of goals along each axis [m], as in Zheng et al. (2025)
GOAL_RANGES = {"ant": 50.0, "half_cheetah": 100.0, "quadruped": 15.0}
#: Returns of experts, by which the Unsupervised Reinforcement Learning Benchmark normalises scores, in the order of the tasks
EXPERT_RETURNS = dict(zip(TASK_IDS, (984, 971, 796, 799, 920, 866, 888, 888, 191, 223, 193, 203), strict=True))


@checked
def policy_coverage(
    model: SkillModel,
    env: VecEnv,
    n_trajectories: PositiveInt = N_TRAJECTORIES,
    n_steps: PositiveInt = N_STEPS,
    bin_size: Positive = 1.0,
    seed: int = 0,
) -> int:
    """
    Measure the policy coverage of a robot as METRA (Park et al., 2024) does.

    :param model: a model; its actions are deterministic
    :param env: environments with a ``position``, without skill observations, normalised as the model expects
    :param n_trajectories: number of trajectories, each with a random continuous skill, or shared evenly by discrete ones
    :param n_steps: length of a trajectory, shorter if the episode ends
    :param bin_size: side of the bins [m]
    :param seed: seed of the skills and the starts
    :return: number of bins of (x, y) that were visited
    """
    paths = play_paths(model, env, trajectory_skills(model, n_trajectories, seed), n_steps, seed)
    return torso_coverage(paths[..., :2].reshape(-1, 2), bin_size)


def trajectory_skills(model: Any, n_trajectories: int, seed: int = 0) -> np.ndarray:
    """Draw continuous skills, shape ``(n_trajectories, skill_dim)``, or distribute discrete ones evenly."""
    space = getattr(model, "skill_space", None)
    if space is not None and not space.discrete:
        return space.draw(n_trajectories, np.random.default_rng(seed))
    return np.sort(np.arange(n_trajectories) % model.n_skills)


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
        Summarise the distances, for each radius r [m]: ``goal_hit_r`` (share of goals that were within r at some step),
        ``goal_end_r`` (at the last step) and ``goal_stay_r`` (share of steps within r, without the initial state); and
        ``goal_distance``, the mean final distance [m].
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
    """A model that follows, at each step, the skill that leads to a goal; its skills are the goals that it observes."""

    def __init__(self, model: Any, goals: np.ndarray) -> None:
        self._model = model
        self._goals = goals
        self.n_skills = len(goals)

    def predict(self, observation: np.ndarray, *, deterministic: bool, skill: np.ndarray) -> tuple[np.ndarray, Any]:
        skills = self._model.goal_skill(observation, self._goals[skill])
        return self._model.predict(observation, deterministic=deterministic, skill=skills)


@checked
def draw_goals(env: VecEnv, n_goals: PositiveInt = N_GOALS, goal_range: Positive | None = None, seed: int = 0) -> np.ndarray:
    """
    Draw goals uniformly.

    :param env: environments of a robot
    :param n_goals: number of goals
    :param goal_range: largest distance along each axis [m]; ``None`` for the value of the literature: ant 50, half-cheetah
        100, quadruped 15
    :param seed: seed of the goals
    :return: positions, shape ``(n_goals, 2)``, for the half-cheetah and the walker ``(n_goals, 1)``
    :raises ValueError: if the literature has no value for these environments
    """
    robot = robot_name(env)
    limit = GOAL_RANGES.get(robot or "") if goal_range is None else goal_range
    if limit is None:
        raise ValueError(f"There is a default range of goals only for {', '.join(GOAL_RANGES)}: pass goal_range.")
    return np.random.default_rng(seed).uniform(-limit, limit, (n_goals, 1 if robot in ("half_cheetah", "walker") else 2))


@checked
def zero_shot_goals(
    model: SkillModel, env: VecEnv, goals: np.ndarray, n_steps: PositiveInt = N_STEPS, seed: int = 0
) -> GoalResults:
    """
    Measure how well skills reach goals, as METRA (Park et al., 2024) and CSF (Zheng et al., 2025) do.

    If the method can infer the skill that leads to an observation (``model.goal_skill``, for METRA the direction of
    ``phi(goal) - phi(s)``), it does so at each step; the goal is the initial observation with the position of the goal. This
    requires that the position is part of the observation, as for the ant, the half-cheetah and in mazes. Any other model plays
    each of its skills once, and then follows to each goal the skill that ended nearest.

    :param model: a model
    :param env: see :func:`policy_coverage`
    :param goals: positions [m], (x, y) or x alone, see :func:`draw_goals`
    :param n_steps: length of an episode
    :param seed: seed of the starts
    :return: distances to the goals
    """
    prepare_to_play(model, env)
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
    """Compute the observations of goals, shape ``(n_goals, obs_dim)``; ``None`` if the model can't infer skills for them."""
    places = [0, 1] if env_layout(env) is not None else PLACES.get(robot_name(env) or "")
    if places is None or len(places) != goals.shape[1] or has_wrappers(env) or is_image_space(env.observation_space):
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


def tasks_of(env_id: str) -> dict[str, str]:
    """List the tasks of a robot: task -> id of the environment."""
    env_id = env_id.rpartition(":")[2]  # without the module that registers it
    if env_id not in ROBOTS:
        known = ", ".join(name for name in ROBOTS if name not in TASK_IDS)
        raise ValueError(f"The environment {env_id!r} is not a robot with tasks: pass one of {known}.")
    domain, _ = ROBOTS[env_id]
    return {task: name for name, (of_domain, task) in TASK_IDS.items() if of_domain == domain}


@checked
def task_returns(
    model: SkillModel,
    env_id: str,
    n_episodes: PositiveInt = 2,
    seed: int = 0,
    vec_normalize: VecNormalize | None = None,
    n_threads: PositiveInt | None = None,
) -> dict[str, np.ndarray]:
    """
    Play all skills of a robot in all of its tasks, without learning.

    :param model: a model that was pre-trained on this robot; its actions are deterministic
    :param env_id: id of the robot
    :param n_episodes: number of whole episodes per skill and task
    :param seed: seed of the episodes, the same for all tasks
    :param vec_normalize: training statistics, if observations were normalised
    :param n_threads: threads of the simulation; ``None`` for one per core
    :return: task -> returns of the skills, shape ``(n_skills, n_episodes)``
    :raises ValueError: if the environment is not a robot with tasks, or the statistics are missing
    """
    check_statistics_fit(model, vec_normalize, "pass its statistics as vec_normalize.")
    returns = {}
    for task, task_id in tasks_of(env_id).items():
        plain = make_batched(task_id, model.n_skills * n_episodes, n_threads=n_threads)
        env = normalize_like_training(plain, vec_normalize)
        returns[task] = collect_rollouts(model, env, n_episodes, HORIZONS[ROBOTS[task_id][0]], seed=seed).returns
        env.close()
    return returns


def score_best_skills(returns: Mapping[str, np.ndarray], env_id: str) -> dict[str, float]:
    """
    Score the best skill in each task of a robot, without further training.

    The best skill of a task is the one with the largest return in the first half of the episodes. Its score is its mean return
    in the second half, so that it is not chosen by luck.

    :param returns: what :func:`task_returns` found, of at least 2 episodes per skill
    :param env_id: id of the robot
    :return: ``best_skill_<task>`` by name: the return as a share of an expert's (URLB's normalisation)
    """
    experts = {task: EXPERT_RETURNS[task_id] for task, task_id in tasks_of(env_id).items()}
    return {f"best_skill_{task}": held_out_best(of_task) / experts[task] for task, of_task in returns.items()}


def held_out_best(returns: np.ndarray) -> float:
    """Choose the best skill by the first half of the episodes, ``(n_skills, n_episodes)``, and measure it in the second."""
    if returns.shape[1] < 2:
        raise ValueError("One episode can't both choose and measure a skill: pass n_episodes of at least 2 to task_returns.")
    chosen, measured = np.split(returns, [returns.shape[1] // 2], axis=1)
    return float(measured[chosen.mean(axis=1).argmax()].mean())
