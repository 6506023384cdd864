import math

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.torch_layers import create_xavier_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.encoders.base import Encoder


class TemporalEncoder(Encoder):
    """
    Features f whose distances measure how long it takes from one state to another (Bae et al., "TLDR: Unsupervised
    Goal-Conditioned RL via Temporal Distance-Aware Representations", 2024, after Wang et al., "Optimal Goal-Reaching
    Reinforcement Learning via Quasimetric Learning", 2023).

    States are driven far apart, while no transition may be longer than 1: f minimises
    ``mean[softplus(horizon - |f(s) - f(g)|)] - lambda mean[min(1 - |f(s') - f(s)|^2, slack)]`` with g a state of another
    transition of the batch and a softplus with ``beta = 5 / horizon``. The dual variable lambda minimises
    ``log(lambda) mean[min(..., slack)]``. A transition is a window of ``n_steps``, so distances count windows.

    This is the formula of TLDR's paper, with lambda and slack of METRA. TLDR's code averages ``|f(s') - f(s)|^2`` over the
    dimensions instead of summing it up, so that a step may be 2 long in 4 dimensions. It starts with lambda 3000, and learns
    from batches of 1024 at a learning rate of 5e-4; here both are those of the algorithm.

    :param obs_dim: size of the state
    :param action_dim: not used
    :param skill_space: not used
    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of f, ``[1024, 1024]`` by default
    :param lambda_init: initial value of lambda
    :param slack: slack of the constraint: a squared transition gains nothing by staying further than this below its bound
    :param horizon: distance [transitions] up to which states are driven apart
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: int = 4,
        net_arch: list[int] | None = None,
        lambda_init: float = 30.0,
        slack: float = 1e-3,
        horizon: float = 500.0,
    ) -> None:
        check_arguments("TemporalEncoder", locals())
        super().__init__(features_dim)
        self.slack = slack
        self.horizon = horizon
        self.state_net = create_xavier_mlp(obs_dim, features_dim, [1024, 1024] if net_arch is None else net_arch)
        self.log_lambda = nn.Parameter(th.tensor(math.log(lambda_init)))

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return self.state_net(observations)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        features, next_features = self.state_net(th.cat([samples.observations, samples.next_observations])).chunk(2)
        penalty = self.penalty(features, next_features)
        # Each learns from its own: f from the first two terms, log(lambda) from the last
        return (
            self.closeness(features, next_features.roll(1, 0))
            - self.log_lambda.detach().exp() * penalty
            + self.log_lambda * penalty.detach()
        )

    def closeness(self, features: th.Tensor, other_features: th.Tensor) -> th.Tensor:
        """
        Compute how close states of different transitions are.

        :param features: f(s), shape ``(batch_size, features_dim)``
        :param other_features: f(g), shape ``(batch_size, features_dim)``
        :return: ``mean[softplus(horizon - |f(s) - f(g)|)]``, a scalar
        """
        # The square root has no gradient at 0
        distances = (features - other_features).square().sum(dim=1).clamp(min=1e-6).sqrt()
        return F.softplus(self.horizon - distances, beta=5 / self.horizon).mean()

    def penalty(self, features: th.Tensor, next_features: th.Tensor) -> th.Tensor:
        """
        Compute how far transitions stay below their bound, at most ``slack``; negative where they exceed it.

        :param features: f(s), shape ``(batch_size, features_dim)``
        :param next_features: f(s'), shape ``(batch_size, features_dim)``
        :return: ``mean[min(1 - |f(s') - f(s)|^2, slack)]``, a scalar
        """
        return (1 - (next_features - features).square().sum(dim=1)).clamp(max=self.slack).mean()
