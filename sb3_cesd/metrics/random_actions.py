from typing import Any

import numpy as np
from gymnasium import spaces


class RandomActions:
    """
    A model whose skills draw actions uniformly.

    :param action_space: space of the actions
    :param seed: seed of the actions
    """

    #: Arbitrary, but metrics need at least two
    n_skills = 2

    def __init__(self, action_space: spaces.Space, seed: int = 0) -> None:
        assert isinstance(action_space, spaces.Box)
        self._space = action_space
        self._rng = np.random.default_rng(seed)

    def predict(self, observation: Any, *, deterministic: bool, skill: Any) -> tuple[np.ndarray, None]:
        """
        Draw actions.

        :param observation: not used
        :param deterministic: not used
        :param skill: one per environment, shape ``(n_envs,)``
        :return: uniform actions, shape ``(n_envs, *action_shape)``, and nothing
        """
        actions = self._rng.uniform(self._space.low, self._space.high, (len(skill), *self._space.shape))
        return actions.astype(self._space.dtype), None
