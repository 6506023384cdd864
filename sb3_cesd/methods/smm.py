import math
from collections.abc import Sequence
from typing import Any, Literal

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import NonNegative, Positive, PositiveInt, checked
from sb3_cesd.common.torch_layers import create_orthogonal_mlp, orthogonal_init
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward, MakeOptimizer
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes


class VAE(nn.Module):
    """A variational autoencoder, whose squared error serves as a negative log-density."""

    def __init__(self, input_dim: int, code_dim: int, net_arch: Sequence[int]) -> None:
        super().__init__()
        self.encoder = create_orthogonal_mlp(input_dim, -1, net_arch)
        hidden_dim = net_arch[-1] if net_arch else input_dim
        self.mean = nn.Linear(hidden_dim, code_dim).apply(orthogonal_init)
        self.log_variance = nn.Linear(hidden_dim, code_dim).apply(orthogonal_init)
        self.decoder = create_orthogonal_mlp(code_dim, input_dim, net_arch)

    def forward(self, inputs: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return squared errors, as ``inputs``, and divergences of the codes from a standard normal distribution, (n,)."""
        hidden = self.encoder(inputs)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)  # (n, code_dim)
        codes = mean + (log_variance / 2).exp() * th.randn_like(mean)
        divergences = (mean.square() + log_variance.exp() - log_variance - 1).sum(dim=1) / 2
        return (inputs - self.decoder(codes)).square(), divergences


class SMMReward(IntrinsicReward):
    """
    ``-log rho_z(s) + log q(z | s) - log p(z)`` with a density rho_z of the states of each skill, a discriminator q and uniform
    p (Lee et al., "Efficient Exploration via State Marginal Matching", 2019, with a uniform target distribution): high in
    states that are rare for a skill and identify it.

    As in URLB, ``-log rho_z(s)`` is the squared error of a variational autoencoder of (s, z), summed over both, which
    minimises ``mean squared error + beta * KL``; and the reward is that of s, not of s'. VAE and discriminator have learning
    rates of their own, and learn from a batch before its rewards are computed (URLB's code uses the errors from before that
    update).

    URLB's code adds ``-log q(z | s)`` in place of ``log q(z | s)``, which rewards skills for being alike.

    :param net_arch: sizes of the hidden layers of the discriminator
    :param vae_net_arch: sizes of the hidden layers of the VAE
    :param code_dim: size of the code of the VAE
    :param beta: weight of the divergence in the loss of the VAE
    :param vae_learning_rate: learning rate of the VAE
    :param discriminator_learning_rate: learning rate of the discriminator
    :param state_coef: factor of the VAE's error in the reward
    :param skill_coef: factor of the other two terms; 0 for the density only
    :param skill_term: ``"paper"`` for ``log q(z | s)``, ``"released"`` for ``-log q(z | s)`` (URLB's code)
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        net_arch: Sequence[int] = (256, 256),
        vae_net_arch: Sequence[int] = (150, 150),
        code_dim: PositiveInt = 128,
        beta: NonNegative = 0.5,
        vae_learning_rate: Positive = 1e-2,
        discriminator_learning_rate: Positive = 1e-3,
        state_coef: NonNegative = 1.0,
        skill_coef: NonNegative = 1.0,
        skill_term: Literal["paper", "released"] = "paper",
    ) -> None:
        super().__init__(*sizes)
        self.beta = beta
        self.vae_learning_rate = vae_learning_rate
        self.discriminator_learning_rate = discriminator_learning_rate
        self.state_coef = state_coef
        self.skill_coef = skill_coef
        self.skill_term = skill_term
        self.discriminator = create_orthogonal_mlp(self.obs_dim, self.skill_space.n_skills, net_arch)
        self.vae = VAE(self.obs_dim + self.skill_space.dim, code_dim, vae_net_arch)

    def set_optimizers(self, make_optimizer: MakeOptimizer) -> None:
        self.vae_optimizer = make_optimizer(list(self.vae.parameters()))
        self.discriminator_optimizer = make_optimizer(list(self.discriminator.parameters()))

    def own_learning_rates(self) -> dict[str, float]:
        return {"vae_optimizer": self.vae_learning_rate, "discriminator_optimizer": self.discriminator_learning_rate}

    def update(self, samples: SkillReplayBufferSamples) -> None:
        squared_errors, divergences = self.vae(self._states_and_skills(samples))
        vae_loss = squared_errors.mean() + self.beta * divergences.mean()
        self.step(self.vae_optimizer, vae_loss)
        discriminator_loss = F.cross_entropy(self.discriminator(samples.observations), samples.skills)
        self.step(self.discriminator_optimizer, discriminator_loss)
        self.logs["train/vae_loss"] = vae_loss.detach()
        self.logs["train/discriminator_loss"] = discriminator_loss.detach()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        # -log rho_z(s), up to a constant
        surprise = self.vae(self._states_and_skills(samples))[0].sum(dim=1)
        log_q = -F.cross_entropy(self.discriminator(samples.observations), samples.skills, reduction="none")
        term = log_q if self.skill_term == "paper" else -log_q
        return self.state_coef * surprise + self.skill_coef * (term + math.log(self.skill_space.n_skills))

    def _states_and_skills(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        skills = self.skill_space.embed(samples.skills, samples.observations.dtype)
        return th.cat([samples.observations, skills], dim=1)  # (batch_size, obs_dim + skill_dim)

    @th.no_grad()
    def predict_clusters(self, observations: th.Tensor) -> th.Tensor:
        return self.discriminator(observations).argmax(dim=1)


class SMM(SkillDDPG):
    """
    State Marginal Matching (Lee et al., 2019): each skill visits states that are rare for it and identify it.

    As in URLB, there are 4 skills, each followed for a whole episode. It is good at spreading each skill over many states, as
    far as an autoencoder recognises the rare ones. The reward grows with the square of the observations, so normalise them.

    The defaults follow the paper where URLB's code has the opposite sign; ``skill_term="released"`` restores that.

    Paper: https://arxiv.org/abs/1906.05274. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`SMMReward`.
    """

    reward_class = SMMReward
    defaults = {"n_skills": 4, "skill_duration": None}  # noqa: RUF012
    discrete_because = "as its discriminator classifies skills"
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {
            "net_arch": hidden_sizes,
            "beta": Interval(0.1, 1.0),
            "vae_learning_rate": Interval(1e-4, 1e-2),
            "skill_coef": Interval(0.1, 10.0),
            "skill_term": ["paper", "released"],
        }
    }
