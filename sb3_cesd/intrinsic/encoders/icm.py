import torch as th

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.torch_layers import create_normalized_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.dynamics import DynamicsPredictors
from sb3_cesd.intrinsic.encoders.base import Encoder


class ICMEncoder(Encoder):
    """
    Features learned by predicting the dynamics forward and backward (the intrinsic curiosity module of Pathak et al., 2017,
    in the form URLB gives APT): Linear, LayerNorm and Tanh, trained on the mean Euclidean error of f(s') from (f(s), a) and
    that of a from (f(s), f(s')).

    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param skill_space: not used
    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of both predictors
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: int = 512,
        net_arch: list[int] | None = None,
    ) -> None:
        check_arguments("ICMEncoder", locals())
        super().__init__(features_dim)
        net_arch = [1024] if net_arch is None else net_arch
        self.state_net = create_normalized_mlp(obs_dim, -1, [features_dim])
        self.dynamics = DynamicsPredictors(features_dim, action_dim, net_arch)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return self.state_net(observations)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        features, next_features = self.state_net(samples.observations), self.state_net(samples.next_observations)
        return self.dynamics.loss(features, samples.actions, next_features)
