"""Some of the skills of a model, and what its skills were before training."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch as th

from sb3_cesd.common.observations import Observation
from sb3_cesd.common.skills import SkillName
from sb3_cesd.export import ExportedPolicy
from sb3_cesd.skill_ddpg import SkillDDPG

ShownModel = SkillDDPG | ExportedPolicy


class ChosenSkills:
    """
    Some skills of a model, numbered anew from 0.

    :param model: a model
    :param skills: indices or vectors of its skills
    :raises ValueError: if there is no such skill
    """

    def __init__(self, model: Any, skills: Sequence[SkillName]) -> None:
        self.model, self.skill_space = model, model.skill_space
        self.skills = [model.skill_space.name_of(skill) for skill in skills]
        self._names = np.asarray(self.skills)

    @property
    def n_skills(self) -> int:
        """Number of the skills that were chosen."""
        return len(self.skills)

    def predict(self, observation: Any, *, deterministic: bool, skill: Any) -> tuple[np.ndarray, Any]:
        """
        Get the actions of skills.

        :param observation: one per environment, shape ``(n_envs, *shape)``, or a dictionary of such
        :param deterministic: take the mean action of a stochastic policy
        :param skill: which of those that were chosen: one for all environments, or one each, shape ``(n_envs,)``
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
        # Networks of the model are shared rather than copied, but for the actor that is replaced
        self.policy = copy.deepcopy(policy, {id(child): child for child in policy.children()})
        with th.random.fork_rng():
            th.manual_seed(seed)
            self.policy.actor = self.policy.make_actor()
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

    def predict_clusters(self, observations: Observation) -> None:
        """
        Tell that clusters mean nothing before training.

        :param observations: several observations without skills
        :return: nothing
        """
        return None


def method_name(model: ShownModel) -> str:
    """
    Name the method of a model.

    :param model: a model
    :return: name of its class
    """
    return model.algorithm if isinstance(model, ExportedPolicy) else type(model).__name__
