"""Goal-reaching tasks, to be solved with skills."""

from typing import Annotated, Any, Literal, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from sb3_cesd.common.arguments import Positive, PositiveInt, Range, checked
from sb3_cesd.common.observations import Observation, check_plain_space, entries_of

#: Key of the goal in the observations
GOAL = "goal"
#: Separates the random numbers of goals from those that the environment draws with the same seed
OWN_STREAM = 1
#: Length of an episode of the tasks from the literature, in steps
HORIZON = 200


#: The tasks of METRA (Park et al., 2024) and CSF (Zheng et al., 2025) by name: robot, and arguments of :class:`GoalTask`
GOAL_TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "AntMultiGoal": ("SkillAnt-v0", {"goal_range": 7.5, "radius": 3.0, "goal_duration": 50}),
    "HalfCheetahGoal": ("SkillHalfCheetah-v0", {"goal_range": 100.0, "radius": 3.0, "n_axes": 1}),
    "QuadrupedGoal": ("Quadruped-v0", {"goal_range": 7.5, "radius": 1.5}),
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

    :param env: an environment with a ``position`` (x, y, z), as robots and mazes have
    :param goal_range: largest distance of a goal along each axis [m]
    :param radius: distance within which a goal counts as reached [m]
    :param goal_duration: steps until the next goal; ``None`` for one goal per episode
    :param n_axes: number of coordinates of a goal: 1 for x, 2 for x and y, 3 for all
    """

    @checked
    def __init__(
        self,
        env: gym.Env,
        goal_range: Positive,
        radius: Positive,
        goal_duration: PositiveInt | None = None,
        n_axes: Annotated[int, Range(1, 3)] = 2,
    ) -> None:
        RecordConstructorArgs.__init__(self, goal_range=goal_range, radius=radius, goal_duration=goal_duration, n_axes=n_axes)
        super().__init__(env)
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
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            # Independent of the initial state, which is drawn with the same seed
            self._random_state = np.random.default_rng([seed, OWN_STREAM])
        self._n_steps = 0
        self.goal = self._draw(np.zeros_like(self.goal))
        return self._with_goal(observation), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = self.env.step(action)
        distance = float(np.linalg.norm(self._way()))
        is_within = distance <= self.radius
        self._n_steps += 1
        if self.goal_duration is not None and self._n_steps % self.goal_duration == 0:
            self.goal = self._draw(self.goal)
        info = {**info, "goal_distance": distance, "is_success": is_within}
        return self._with_goal(observation), float(is_within), terminated, truncated, info

    def _draw(self, center: np.ndarray) -> np.ndarray:
        return center + self._random_state.uniform(-self.goal_range, self.goal_range, center.shape)

    def _way(self) -> np.ndarray:
        return self.goal - self.env.get_wrapper_attr("position")[: len(self.goal)]

    def _with_goal(self, observation: Observation) -> dict[str, np.ndarray]:
        return {**entries_of(observation), GOAL: self._way().astype(np.float32)}


@checked
def make_goal_task(name: Literal["AntMultiGoal", "HalfCheetahGoal", "QuadrupedGoal"]) -> gym.Env:
    """
    Create a task of METRA (Park et al., 2024) and CSF (Zheng et al., 2025), with episodes of 200 steps.

    =============== =============== ====== =========================
    name            range of a goal radius goals
    =============== =============== ====== =========================
    AntMultiGoal    7.5 m           3 m    (x, y), one each 50 steps
    HalfCheetahGoal 100 m           3 m    x, one per episode
    QuadrupedGoal   7.5 m           1.5 m  (x, y), one per episode
    =============== =============== ====== =========================
    """
    env_id, settings = GOAL_TASKS[name]
    return GoalTask(gym.make(env_id, max_episode_steps=HORIZON), **settings)
