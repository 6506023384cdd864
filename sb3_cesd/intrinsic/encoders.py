"""State representations."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import NonNegative, Positive, PositiveInt, build, check_value, checked
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.torch_layers import create_normalized_mlp, create_orthogonal_mlp, create_xavier_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.dynamics import DynamicsPredictors


class Encoder(nn.Module):
    """
    A map from states to features.

    An encoder by its name in :data:`ENCODERS` is made with ``obs_dim``, ``action_dim`` and ``skill_space``, and arguments of
    its own.

    :param features_dim: size of the features
    """

    state_net: nn.Module

    def __init__(self, features_dim: int) -> None:
        super().__init__()
        self.features_dim = features_dim

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """
        Compute the features of states.

        :param observations: shape ``(n, obs_dim)``
        :return: features, shape ``(n, features_dim)``
        """
        return self.state_net(observations)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor | None:
        """
        Compute the loss of the encoder.

        :param samples: transitions from s to s' with the skill that was followed
        :return: a scalar; ``None`` if it does not learn
        """
        return None


class IdentityEncoder(Encoder):
    """The state itself."""

    def __init__(self, obs_dim: int, action_dim: int, skill_space: SkillSpace) -> None:
        super().__init__(obs_dim)
        self.state_net = nn.Identity()


class FourierEncoder(Encoder):
    """
    Random Fourier features of a Gaussian kernel (Rahimi and Recht, 2007): ``sqrt(2 / m) cos(W s / length_scale + b)`` with
    ``W ~ N(0, 1)`` and ``b ~ U(0, 2 pi)``, drawn once. Nothing is learned.

    :param features_dim: m
    :param length_scale: distance over which states become dissimilar, in the units of the observation
    """

    weight: th.Tensor
    phase: th.Tensor

    @checked
    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: PositiveInt = 64,
        length_scale: Positive = 1.0,
    ) -> None:
        super().__init__(features_dim)
        self.register_buffer("weight", th.randn(features_dim, obs_dim) / length_scale)
        self.register_buffer("phase", th.rand(features_dim) * 2 * math.pi)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return math.sqrt(2 / self.features_dim) * th.cos(F.linear(observations, self.weight, self.phase))


class ICMEncoder(Encoder):
    """
    Features learned by predicting the dynamics forward and backward (the intrinsic curiosity module of Pathak et al., 2017,
    in the form URLB gives APT): Linear, LayerNorm and Tanh, trained on the mean Euclidean error of f(s') from (f(s), a) and
    that of a from (f(s), f(s')).

    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of both predictors
    """

    @checked
    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: PositiveInt = 256,
        net_arch: Sequence[int] = (256,),
    ) -> None:
        super().__init__(features_dim)
        self.state_net = create_normalized_mlp(obs_dim, -1, [features_dim])
        self.dynamics = DynamicsPredictors(features_dim, action_dim, net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        features, next_features = self.state_net(samples.observations), self.state_net(samples.next_observations)
        return self.dynamics.loss(features, samples.actions, next_features)


class ContrastiveEncoder(Encoder):
    """
    Features learned by identifying the skill that led from s to s' (the contrastive encoder of CIC, also used in CeSD's
    released code).

    With query ``= skill_net(z)``, key ``= pred_net([f(s), f(s')])``, both normalised, and ``S = query key^T / temperature``
    the loss is the mean of ``-log(exp S_jj / sum_l exp S_jl)`` (InfoNCE, van den Oord et al., 2018).

    The released code subtracts ``e^(1 / temperature)``, the maximum of a positive, from that sum: it has
    ``max(sum_l exp S_jl - e^(1 / temperature), 1e-6) + 1e-6``. While skills differ little, its minimum is where all cosines
    are -1, and the features collapse to a point.

    :param features_dim: m, size of the features
    :param net_arch: sizes of the hidden layers of the encoder and of both heads
    :param temperature: softmax temperature of the loss
    :param objective: ``"infonce"`` or ``"released"``, that of the released code
    """

    @checked
    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: PositiveInt = 16,
        net_arch: Sequence[int] = (256, 256),
        temperature: Positive = 0.5,
        objective: Literal["infonce", "released"] = "infonce",
    ) -> None:
        super().__init__(features_dim)
        self.skill_space = skill_space
        self.temperature = temperature
        self.objective = objective
        self.state_net = create_orthogonal_mlp(obs_dim, features_dim, net_arch)
        self.skill_net = create_orthogonal_mlp(skill_space.dim, features_dim, net_arch)
        self.pred_net = create_orthogonal_mlp(2 * features_dim, features_dim, net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        batch_size = len(samples.observations)
        features = self.state_net(th.cat([samples.observations, samples.next_observations]))
        keys = self.pred_net(th.cat(features.split(batch_size), dim=1))
        if self.skill_space.discrete:
            # There are only n_skills different queries, whatever the batch size
            skills, vectors = samples.skills, th.eye(self.skill_space.dim, dtype=features.dtype, device=features.device)
        else:
            skills, vectors = th.arange(batch_size, device=features.device), samples.skills
        queries = self.skill_net(vectors)  # (n_queries, features_dim)
        similarity = F.normalize(queries, dim=1) @ F.normalize(keys, dim=1).T / self.temperature  # (n_queries, batch_size)
        positives = similarity.gather(0, skills[None]).squeeze(0)  # (batch_size,)
        if self.objective == "infonce":
            log_denominators = similarity.logsumexp(dim=1)  # (n_queries,)
        else:
            sums = similarity.exp().sum(dim=1) - math.exp(1 / self.temperature)
            log_denominators = (sums.clamp(min=1e-6) + 1e-6).log()
        return (log_denominators[skills] - positives).mean()


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

    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of f
    :param lambda_init: initial value of lambda
    :param slack: slack of the constraint: a squared transition gains nothing by staying further than this below its bound
    :param horizon: distance [transitions] up to which states are driven apart
    """

    @checked
    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: PositiveInt = 4,
        net_arch: Sequence[int] = (256, 256),
        lambda_init: Positive = 30.0,
        slack: NonNegative = 1e-3,
        horizon: Positive = 500.0,
    ) -> None:
        super().__init__(features_dim)
        self.slack = slack
        self.horizon = horizon
        self.state_net = create_xavier_mlp(obs_dim, features_dim, net_arch)
        self.log_lambda = nn.Parameter(th.tensor(math.log(lambda_init)))

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        features, next_features = self.state_net(th.cat([samples.observations, samples.next_observations])).chunk(2)
        # mean[softplus(horizon - |f(s) - f(g)|)] with g of another transition. The square root has no gradient at 0
        distances = (features - next_features.roll(1, 0)).square().sum(dim=1).clamp(min=1e-6).sqrt()
        closeness = F.softplus(self.horizon - distances, beta=5 / self.horizon).mean()
        # mean[min(1 - |f(s') - f(s)|^2, slack)], negative where transitions exceed their bound
        penalty = (1 - (next_features - features).square().sum(dim=1)).clamp(max=self.slack).mean()
        # Each learns from its own: f from the first two terms, log(lambda) from the last
        return closeness - self.log_lambda.detach().exp() * penalty + self.log_lambda * penalty.detach()


#: Name of an encoder -> its class
ENCODERS: dict[str, type[Encoder]] = {
    "contrastive": ContrastiveEncoder,
    "fourier": FourierEncoder,
    "icm": ICMEncoder,
    "identity": IdentityEncoder,
    "temporal": TemporalEncoder,
}


def make_encoder(argument: str, name: str, kwargs: Mapping[str, Any] | None, *sizes: Any) -> Encoder:
    """Make an encoder by its name in :data:`ENCODERS`, from the argument that holds it, and that with its arguments."""
    check_value(argument, name, tuple(ENCODERS))
    return build(f"{argument}_kwargs", ENCODERS[name], kwargs, *sizes)
