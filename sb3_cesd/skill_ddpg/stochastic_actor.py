"""Skill-conditioned actor of SAC."""

import math
from typing import Any

import torch as th
from stable_baselines3.common.preprocessing import get_action_dim
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.observations import TensorObservation
from sb3_cesd.skill_ddpg.networks import SkillActor

#: Bounds of the logarithm of the standard deviation, before tanh
LOG_STD_MIN, LOG_STD_MAX = -5.0, 2.0


def initial_ent_coef(ent_coef: float | str) -> float:
    """Get the initial entropy coefficient: a number, ``"auto"`` for 1, or e.g. ``"auto_0.1"``, as in SB3's SAC."""
    if not isinstance(ent_coef, str):
        return float(ent_coef)
    return float(ent_coef.removeprefix("auto_")) if "_" in ent_coef else 1.0


class StochasticSkillActor(SkillActor):
    """
    Skill-conditioned squashed Gaussian policy of SAC (Haarnoja et al., 2018): [features(s), z] -> MLP -> mean and log standard
    deviation, before tanh.

    :meth:`act` and deterministic predictions take the mean. The entropy coefficient belongs to the actor, so that one
    optimizer updates both: with ``"auto"`` it keeps the entropy at ``-action_dim / 2``, METRA's target (half of
    Stable-Baselines3's). For the other arguments see :class:`~sb3_cesd.skill_ddpg.networks.SkillActor`.

    :param ent_coef: the entropy coefficient: a number, ``"auto"`` or, with an initial value, e.g. ``"auto_0.1"``
    """

    def __init__(self, *args: Any, ent_coef: float | str = "auto", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ent_coef = ent_coef
        log_ent_coef = th.tensor(math.log(initial_ent_coef(ent_coef)))
        self.log_ent_coef = nn.Parameter(log_ent_coef, requires_grad=isinstance(ent_coef, str))
        self.target_entropy = -get_action_dim(self.action_space) / 2

    @property
    def n_outputs(self) -> int:
        return 2 * super().n_outputs

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "ent_coef": self.ent_coef}

    def act(self, observations: TensorObservation, skills: th.Tensor) -> th.Tensor:
        return self.outputs(observations, skills).chunk(2, dim=1)[0].tanh()

    def sample(self, observations: TensorObservation, skills: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """
        Sample actions of skills, with the reparametrisation trick.

        :param observations: observations without skills
        :param skills: indices, shape ``(n,)``, or vectors, shape ``(n, skill_dim)``
        :return: actions in [-1, 1], shape ``(n, action_dim)``, and their log-density, shape ``(n, 1)``
        """
        means, log_stds = self.outputs(observations, skills).chunk(2, dim=1)
        log_stds = log_stds.clamp(LOG_STD_MIN, LOG_STD_MAX)
        noise = th.randn_like(means)
        unsquashed = means + log_stds.exp() * noise
        log_densities = -0.5 * noise.square() - log_stds - 0.5 * math.log(2 * math.pi)
        # log(1 - tanh(u)^2), without cancellation
        log_slopes = 2 * (math.log(2) - unsquashed - F.softplus(-2 * unsquashed))
        return unsquashed.tanh(), (log_densities - log_slopes).sum(dim=1, keepdim=True)

    def entropy_bonus(self, log_densities: th.Tensor) -> th.Tensor:
        """Compute the entropy bonus of Q-values, ``-alpha log pi``, shape ``(n, 1)``; alpha does not learn from it."""
        return -self.log_ent_coef.detach().exp() * log_densities

    def ent_coef_loss(self, log_densities: th.Tensor) -> th.Tensor:
        """Compute ``-mean[log alpha (log pi + target)]``: alpha rises while the entropy is below its target."""
        return -(self.log_ent_coef * (log_densities.detach() + self.target_entropy)).mean()

    def mean_state_dict(self) -> dict[str, th.Tensor]:
        """Get the weights of a :class:`~sb3_cesd.skill_ddpg.networks.SkillActor` that takes the mean action."""
        state = {name: value for name, value in self.state_dict().items() if name != "log_ent_coef"}
        last = f"mu.{len(self.mu) - 1}."
        return {name: value.chunk(2)[0] if name.startswith(last) else value for name, value in state.items()}
