"""Goal-reaching tasks, to be solved with skills."""

from typing import Any, NamedTuple, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from sb3_cesd.common.observations import Observation, check_plain_space, entries_of
from sb3_cesd.envs.allowed import check_env_arguments

#: Key of the goal in the observations
GOAL = "goal"
#: Separates the random numbers of goals from those that the environment draws with the same seed
OWN_STREAM = 1


class GoalSettings(NamedTuple):
    """
    Settings of a task from the literature.

    :param env_id: the robot
    :param goal_range: see :class:`GoalTask`
    :param radius: see :class:`GoalTask`
    :param goal_duration: see :class:`GoalTask`
    :param n_axes: see :class:`GoalTask`
    """

    env_id: str
    goal_range: float
    radius: float
    goal_duration: int | None
    n_axes: int


#: Length of an episode, in steps
HORIZON = 200
#: The tasks of METRA (Park et al., 2024) and CSF (Zheng et al., 2025), by name
GOAL_TASKS = {
    "AntMultiGoal": GoalSettings("SkillAnt-v0", 7.5, 3.0, goal_duration=50, n_axes=2),
    "HalfCheetahGoal": GoalSettings("SkillHalfCheetah-v0", 100.0, 3.0, goal_duration=None, n_axes=1),
    "QuadrupedGoal": GoalSettings("Quadruped-v0", 7.5, 1.5, goal_duration=None, n_axes=2),
}


class GoalTask(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """
    Reach goals: the reward is 1 in each step that ends within the radius of the goal, else 0.

    The first goal of an episode is drawn uniformly around the origin, each later one around the previous goal, as in CSF's
    code. The observation becomes a dictionary with the entries ``"observation"`` and ``"goal"``, the vector to the goal (a
    dictionary observation keeps its keys). :class:`~sb3_cesd.options.SkillOptions` only shows skills the entries they were
    trained with, and leaves the goal to the algorithm on top.

    ``info`` holds ``goal_distance`` [m], the distance to the goal that the reward refers to, and ``is_success``, whether it is
    within the radius. In the released code of the papers, the observation holds the position of the goal instead of the vector
    to it; in CSF's, all goals of the ant but the first are drawn only once, when the environment is created, and the first
    step is never rewarded.

    :param env: an environment with a ``position`` (x, y, z), as robots and mazes have. One without it is reset, since some
        only have a ``position`` after a reset
    :param goal_range: largest distance of a goal along each axis [m]
    :param radius: distance within which a goal counts as reached [m]
    :param goal_duration: steps until the next goal; ``None`` for one goal per episode
    :param n_axes: number of coordinates of a goal: 1 for x, 2 for x and y, 3 for all
    :raises ValueError: if the environment has no position, or already has an observation ``"goal"``
    """

    def __init__(
        self, env: gym.Env, goal_range: float, radius: float, goal_duration: int | None = None, n_axes: int = 2
    ) -> None:
        check_env_arguments("GoalTask", locals())
        RecordConstructorArgs.__init__(self, goal_range=goal_range, radius=radius, goal_duration=goal_duration, n_axes=n_axes)
        super().__init__(env)
        if not env.has_wrapper_attr("position"):
            # Some only have one after a reset
            env.reset()
        if not env.has_wrapper_attr("position"):
            raise ValueError("The environment has no position to measure goals by: give it a property position (x, y, z).")
        plain = check_plain_space(env.observation_space)
        entries = entries_of(dict(plain.spaces) if isinstance(plain, spaces.Dict) else plain)  # type: ignore[arg-type]
        if GOAL in entries:
            raise ValueError(f"The observation has a key {GOAL!r} already: rename it, or leave GoalTask out.")
        way = spaces.Box(-np.inf, np.inf, (n_axes,), np.float32)
        self.observation_space = spaces.Dict({**entries, GOAL: way})  # type: ignore[dict-item]
        self.goal_range = goal_range
        self.radius = radius
        self.goal_duration = goal_duration
        #: Position of the current goal [m], shape ``(n_axes,)``
        self.goal = np.zeros(n_axes)
        self._n_steps = 0
        # Separate from the environment's, so that initial states are the same as without goals
        self._random_state = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """
        Start an episode, with a new goal.

        :param seed: seed of the goals and of the environment; ``None`` continues the current streams
        :param options: passed to the environment
        :return: observation and info
        """
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            # Independent of the initial state, which is drawn with the same seed
            self._random_state = np.random.default_rng([seed, OWN_STREAM])
        self._n_steps = 0
        self.goal = self._draw(np.zeros_like(self.goal))
        return self._with_goal(observation), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """
        Step the environment.

        :param action: action of the environment
        :return: observation, reward, terminated, truncated and info, as usual
        """
        observation, _, terminated, truncated, info = self.env.step(action)
        distance = float(np.linalg.norm(self._way()))
        is_within = distance <= self.radius
        self._n_steps += 1
        if self.goal_duration is not None and self._n_steps % self.goal_duration == 0:
            self.goal = self._draw(self.goal)
        info = {**info, "goal_distance": distance, "is_success": is_within}
        return self._with_goal(observation), float(is_within), terminated, truncated, info

    def _draw(self, center: np.ndarray) -> np.ndarray:
        """
        Draw a goal.

        :param center: center of the range, shape ``(n_axes,)``
        :return: position of the goal, shape ``(n_axes,)``
        """
        return center + self._random_state.uniform(-self.goal_range, self.goal_range, center.shape)

    def _way(self) -> np.ndarray:
        """Return the vector from the robot to the goal [m], shape ``(n_axes,)``."""
        position = np.asarray(self.env.get_wrapper_attr("position"))
        if position.ndim != 1:
            raise ValueError(f"The position of the environment has shape {position.shape}: let it be (x, y, z).")
        position = position[: len(self.goal)]
        if position.shape != self.goal.shape:
            raise ValueError(
                f"A goal of {len(self.goal)} coordinates can't be compared with a position of {len(position)}: pass "
                f"n_axes={len(position)}, or return (x, y, z)."
            )
        return self.goal - position

    def _with_goal(self, observation: Observation) -> dict[str, np.ndarray]:
        """
        Add the goal to an observation.

        :param observation: observation of the environment
        :return: observation with the vector to the goal
        """
        return {**entries_of(observation), GOAL: self._way().astype(np.float32)}


def make_goal_task(name: str) -> gym.Env:
    """
    Create a task of METRA (Park et al., 2024) and CSF (Zheng et al., 2025), with episodes of 200 steps.

    =============== =============== ====== =========================
    name            range of a goal radius goals
    =============== =============== ====== =========================
    AntMultiGoal    7.5 m           3 m    (x, y), one each 50 steps
    HalfCheetahGoal 100 m           3 m    x, one per episode
    QuadrupedGoal   7.5 m           1.5 m  (x, y), one per episode
    =============== =============== ====== =========================

    :param name: name of the task
    :return: the task
    :raises ValueError: if there is no such task
    """
    check_env_arguments("make_goal_task", locals())
    if name not in GOAL_TASKS:
        raise ValueError(f"Unknown task name {name!r}: choose one of {', '.join(GOAL_TASKS)}.")
    env_id, goal_range, radius, goal_duration, n_axes = GOAL_TASKS[name]
    return GoalTask(gym.make(env_id, max_episode_steps=HORIZON), goal_range, radius, goal_duration, n_axes)
