import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from sb3_cesd.common.torch_layers import create_normalized_mlp, create_orthogonal_mlp, one_hot
from sb3_cesd.skill_ddpg.policies import SkillCritic, SkillPolicy


class SkillConditionedCritic(SkillCritic):
    """
    One value function for all skills, which takes the skill as an input: [features(s), one-hot z, a] -> Linear, LayerNorm,
    Tanh -> MLP (URLB's DDPG).

    :param observation_space: plain observation space
    :param action_space: action space
    :param n_skills: number of skills
    :param net_arch: size of the trunk, then sizes of the hidden layers of each critic
    :param features_extractor: network that extracts features of the plain observation
    :param activation_fn: activation within the critics
    :param n_critics: critics on the same trunk
    :param share_features_extractor: see :class:`SkillCritic`
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Box,
        n_skills: int,
        net_arch: list[int],
        features_extractor: BaseFeaturesExtractor,
        activation_fn: type[nn.Module] = nn.ReLU,
        n_critics: int = 2,
        share_features_extractor: bool = False,
    ) -> None:
        super().__init__(observation_space, action_space, features_extractor, share_features_extractor)
        self.n_skills = n_skills
        input_dim = features_extractor.features_dim + n_skills + get_action_dim(action_space)
        self.trunk = create_normalized_mlp(input_dim, -1, net_arch[:1])
        trunk_dim = net_arch[0] if net_arch else input_dim
        self.q_networks = nn.ModuleList(
            create_orthogonal_mlp(trunk_dim, 1, net_arch[1:], activation_fn) for _ in range(n_critics)
        )

    def q_values(
        self,
        observations: th.Tensor,
        actions: th.Tensor,
        skills: th.Tensor,
        rows: th.Tensor | None = None,
    ) -> list[th.Tensor]:
        inputs = th.cat([self.extract(observations), actions], dim=1)
        if rows is not None:
            inputs = inputs.index_select(0, rows)
        hidden = self.trunk(th.cat([inputs, one_hot(skills, self.n_skills, inputs.dtype)], dim=1))
        return [q_network(hidden) for q_network in self.q_networks]


class SkillConditionedPolicy(SkillPolicy):
    """
    Policy class (with skill-conditioned actor and critic) for DIAYN, DADS, CIC and APT. Its arguments are those of
    :class:`~sb3_cesd.skill_ddpg.policies.SkillPolicy`.
    """

    critic: SkillConditionedCritic
    critic_target: SkillConditionedCritic

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> SkillConditionedCritic:
        return SkillConditionedCritic(
            self.plain_space,
            self.action_space,  # type: ignore[arg-type]
            self.n_skills,
            self.critic_arch,
            self.make_plain_features_extractor() if features_extractor is None else features_extractor,
            self.activation_fn,
            self.n_critics,
            self.share_features_extractor,
        ).to(self.device)


MlpPolicy = SkillConditionedPolicy
