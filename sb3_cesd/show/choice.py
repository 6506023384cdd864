"""Selected skills of a model, and its skills before training."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch as th

from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.skills import SkillName
from sb3_cesd.export import ExportedPolicy
from sb3_cesd.skill_ddpg import SkillDDPG

ShownModel = SkillDDPG | ExportedPolicy


class ChosenSkills:
    """
    Selected skills of a model, renumbered from 0.

    :param model: a model
    :param skills: indices or vectors of its skills
    :raises ValueError: if a skill does not exist
    """

    def __init__(self, model: Any, skills: Sequence[SkillName]) -> None:
        self.model, self.skill_space = model, model.skill_space
        self.skills = [model.skill_space.name_of(skill) for skill in skills]
        self._names = np.asarray(self.skills)

    @property
    def n_skills(self) -> int:
        """Number of selected skills."""
        return len(self.skills)

    def predict(self, observation: Any, *, deterministic: bool, skill: Any) -> tuple[np.ndarray, Any]:
        """
        Get the actions of skills.

        :param observation: one per environment, shape ``(n_envs, *shape)``, or a dictionary of such
        :param deterministic: take the mean action of a stochastic policy
        :param skill: index among the selected skills, one for all environments, or one each, shape ``(n_envs,)``
        :return: actions, shape ``(n_envs, *action_shape)``, and the state of the model
        """
        return self.model.predict(observation, deterministic=deterministic, skill=self._names[skill])


class UntrainedSkills:
    """
    The skills of a model as they were before training: the same networks with new weights.

    :param model: a model
    :param seed: seed of the weights
    """

    def __init__(self, model: ShownModel, seed: int = 0) -> None:
        policy = model if isinstance(model, ExportedPolicy) else model.policy
        # Networks are shared with the model instead of copied, except for those that are replaced
        self.policy = copy.deepcopy(policy, {id(child): child for child in policy.children()})
        self._model = None if isinstance(model, ExportedPolicy) else copy.copy(model)
        with preserve_random_state():
            th.manual_seed(seed)
            if self._model is None:
                self.policy.actor = self.policy.make_actor()
            else:
                # The critics as well, since features are drawn after them
                self.policy._build(self._model.lr_schedule)
                self._model.intrinsic = self._model._make_intrinsic().to(self._model.device).eval()
        self.policy.actor.set_training_mode(False)
        self.n_skills, self.skill_space = policy.n_skills, policy.skill_space

    def predict(self, observation: Any, *, deterministic: bool, skill: Any) -> tuple[np.ndarray, Any]:
        """
        Get the actions of skills.

        :param observation: one per environment, shape ``(n_envs, *shape)``, or a dictionary of such
        :param deterministic: not used, the policy is deterministic
        :param skill: index of the skill of all environments, or one per environment, shape ``(n_envs,)``
        :return: actions, shape ``(n_envs, *action_shape)``, and the state of the policy
        """
        return self.policy.predict(observation, deterministic=deterministic, skill=skill)

    def goal_skill(self, observations: Any, goals: Any) -> np.ndarray | None:
        """
        Find the skills that lead from states to goals by features that have not learned either.

        :param observations: see :meth:`~sb3_cesd.skill_ddpg.acting.ActingSkillModel.goal_skill`
        :param goals: observation to reach from each
        :return: the skills; ``None`` if the trained model does not know them
        """
        return None if self._model is None else self._model.goal_skill(observations, goals)


def method_name(model: ShownModel) -> str:
    """
    Return the name of the method of a model.

    :param model: a model
    :return: name of its class
    """
    return model.algorithm if isinstance(model, ExportedPolicy) else type(model).__name__
