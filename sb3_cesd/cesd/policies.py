from collections.abc import Sequence
from typing import Any, ClassVar

import torch as th
from stable_baselines3.common.preprocessing import get_action_dim
from torch import nn

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.common.ensembles import RoutedEnsembleMLP, route
from sb3_cesd.common.observations import TensorObservation
from sb3_cesd.common.torch_layers import create_normalized_mlp, create_orthogonal_mlp, select
from sb3_cesd.skill_ddpg.networks import SkillCritic
from sb3_cesd.skill_ddpg.policies import SkillPolicy


class EnsembleCritic(SkillCritic):
    """
    One value function per skill on a shared trunk: [features(s), a] -> trunk -> heads (section 3.1 of the CeSD paper).

    The skill selects the head and is not an input. With fewer heads than skills, skill z uses head ``z % ensemble_size``.

    With ``shared_value``, the value of a skill is the sum of a skill-conditioned value function, shared by all skills, and the
    output of its head, which is zero at first. What one skill learns about the environment then helps all of them, while the
    heads learn how they differ. The trunk then takes the skill as an input, too. Skills explore with the shared value alone.
    A single head would have nothing to add, so the shared value replaces it.

    ``net_arch`` holds the size of the trunk, then those of the hidden layers of each head. For the other arguments see
    :class:`~sb3_cesd.skill_ddpg.networks.SkillCritic`.

    :param ensemble_size: number of heads
    :param shared_value: add one skill-conditioned value function to all heads
    """

    head_modules: ClassVar[tuple[str, ...]] = ("q_networks", "shared_networks")

    def __init__(self, *args: Any, ensemble_size: int, shared_value: bool = True, **kwargs: Any) -> None:
        self.n_heads = ensemble_size
        self.shared_value = shared_value
        super().__init__(*args, **kwargs)
        #: If false, heads neither add to the shared value nor learn
        self.use_heads = True

    def _make_layers(self, net_arch: Sequence[int], activation_fn: type[nn.Module], n_critics: int, layer_norm: bool) -> None:
        input_dim = self.features_extractor.features_dim + get_action_dim(self.action_space)
        input_dim += self.skill_space.dim if self.shared_value else 0
        self.trunk = create_normalized_mlp(input_dim, -1, net_arch[:1], activation_fn, layer_norm)
        trunk_dim = net_arch[0] if net_arch else input_dim
        self.q_networks, self.shared_networks = nn.ModuleList(), nn.ModuleList()
        if self.n_heads > 1 or not self.shared_value:
            for _ in range(n_critics):
                self.q_networks.append(RoutedEnsembleMLP(self.n_heads, trunk_dim, 1, net_arch[1:], activation_fn))
        if self.shared_value:
            for _ in range(n_critics):
                self.shared_networks.append(create_orthogonal_mlp(trunk_dim, 1, net_arch[1:], activation_fn))
            for q_network in self.q_networks:
                for parameter in q_network.layers[-1].parameters():  # type: ignore[union-attr, index]
                    nn.init.zeros_(parameter)

    def q_values(
        self, observations: TensorObservation, actions: th.Tensor, skills: th.Tensor, rows: th.Tensor | None = None
    ) -> list[th.Tensor]:
        inputs = th.cat([self.extract(observations), actions], dim=1)
        routing = route(skills % self.n_heads, self.n_heads) if self.use_heads and self.q_networks else None
        order = None if routing is None else routing.order
        if order is not None:
            # Before the trunk, as its features are wider than its inputs
            rows, skills = order if rows is None else rows.index_select(0, order), skills.index_select(0, order)
        if self.shared_value:
            inputs = select(inputs, rows)
            hidden = self.trunk(th.cat([inputs, self.skill_space.embed(skills, inputs.dtype)], dim=1))
        else:
            # Once per transition, not per pair: it is the same for all skills
            hidden = select(self.trunk(inputs), rows)
        shared_values = [network(hidden) for network in self.shared_networks]
        if routing is None:
            return shared_values
        q_values = [q_network(hidden, routing) for q_network in self.q_networks]
        if order is not None:
            shared_values = [value.index_select(0, routing.slots) for value in shared_values]
        if self.shared_value:
            q_values = [own + shared for own, shared in zip(q_values, shared_values, strict=True)]
        return q_values

    def of_skill(self, name: str, value: th.Tensor, skill: int) -> th.Tensor:
        head = skill % self.n_heads
        return value[head : head + 1] if name.startswith("q_networks.") else value


class CeSDPolicy(SkillPolicy):
    """
    Policy class (with skill-conditioned actor and ensemble critic) for CeSD.

    In ``net_arch``, ``qf`` holds the size of the trunk, then those of the hidden layers of each head. For the other arguments
    see :class:`~sb3_cesd.skill_ddpg.policies.SkillPolicy`.

    :param ensemble_size: number of critic heads, a divisor of the number of skills; ``None`` for one per skill. With fewer,
        one head serves several skills; with 1 and ``shared_value``, only the shared value is left.
    :param task_ensemble_size: number of critic heads that learn a task: 1 for that of the skill alone (Algorithm 2 of the
        paper), ``None`` for one per skill, which share the trunk, as in the released code.
    :param is_task: whether a task is learned; set by the algorithm
    :param shared_value: add one skill-conditioned value function to all heads
    """

    critic: EnsembleCritic
    critic_target: EnsembleCritic
    critic_class = EnsembleCritic

    @checked
    def __init__(
        self,
        *args: Any,
        ensemble_size: PositiveInt | None = None,
        task_ensemble_size: PositiveInt | None = 1,
        is_task: bool = False,
        shared_value: bool = True,
        **kwargs: Any,
    ) -> None:
        self.shared_value = shared_value
        self.ensemble_size = ensemble_size
        self.task_ensemble_size = task_ensemble_size
        self.is_task = is_task
        super().__init__(*args, **kwargs)

    @property
    def n_heads(self) -> int:
        """Number of critic heads, over which the losses are averaged."""
        return (self.task_ensemble_size if self.is_task else self.ensemble_size) or self.n_skills

    def _critic_kwargs(self) -> dict[str, Any]:
        for name in ("ensemble_size", "task_ensemble_size"):
            heads = getattr(self, name)
            if heads is not None and self.n_skills % heads != 0:
                raise ValueError(f"{name}={heads} does not divide n_skills={self.n_skills}: pass a divisor, or None.")
        return {**super()._critic_kwargs(), "ensemble_size": self.n_heads, "shared_value": self.shared_value}


class CeSDCnnPolicy(CeSDPolicy):
    """As :class:`CeSDPolicy`, for images, see :class:`~sb3_cesd.skill_ddpg.policies.CnnPolicy`."""

    takes_images = True


MlpPolicy = CeSDPolicy
