"""A model of the world, in which skills are imagined."""

from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import NonNegative, PositiveInt, Share, checked
from sb3_cesd.common.observations import to_features
from sb3_cesd.dreamer.sequences import Sequences

#: Uniform share of all categorical distributions, as in DreamerV3
UNIMIX = 0.01
#: Side of the pictures after the last convolution, at most
SMALLEST = 4


def torchrl(module: str) -> ModuleType:
    """Import a module of TorchRL, which comes with an extra."""
    try:
        return import_module(f"torchrl.{module}")
    except ImportError as error:
        raise ImportError(f"Dreamers need TorchRL ({error}): pip install 'sb3_cesd[dreamer]'") from error


class Latent(NamedTuple):
    """
    Latent states.

    :param deter: their deterministic part, which remembers, shape ``(..., deter_dim)``
    :param stoch: their stochastic part, one-hot vectors side by side, shape ``(..., n_categoricals * n_classes)``
    """

    deter: th.Tensor
    stoch: th.Tensor

    @property
    def features(self) -> th.Tensor:
        """Both parts side by side, shape ``(..., features_dim)``."""
        return th.cat(self, dim=-1)

    def map(self, function: Callable[[th.Tensor], th.Tensor]) -> "Latent":
        """Apply a function to both parts."""
        return Latent(*map(function, self))


class Observed(NamedTuple):
    """
    Sequences as the model sees them.

    :param latents: latent states that know the observations up to theirs, ``(batch_size, n_steps, ...)``
    :param logits: logits of their stochastic parts, shape ``(batch_size, n_steps, n_categoricals, n_classes)``
    :param prior_logits: the same as predicted without the observation
    :param reached: deterministic parts that each action leads to, shape ``(batch_size, n_steps, deter_dim)``
    """

    latents: Latent
    logits: th.Tensor
    prior_logits: th.Tensor
    reached: th.Tensor


def kl_loss(logits: th.Tensor, prior_logits: th.Tensor, balance: float, free_nats: float) -> th.Tensor:
    """
    Compute ``balance KL(sg(q) || p) + (1 - balance) KL(q || sg(p))`` of the stochastic parts of latent states, where each
    divergence is at least ``free_nats``: below that it costs nothing.

    :param logits: those of the posterior q, shape ``(..., n_categoricals, n_classes)``
    :param prior_logits: those of the prior p, same shape
    :return: the mean, a scalar
    """
    terms = torchrl("objectives.dreamer_v3").categorical_kl_terms(logits, prior_logits, free_nats, UNIMIX)
    return balance * terms[0] + (1 - balance) * terms[1]


class WorldModel(nn.Module):
    """
    The recurrent state space model of DreamerV2 (Hafner et al., "Mastering Atari with Discrete World Models", 2021), with
    networks of DreamerV3 (TorchRL's), for observations that are an image or a vector.

    ``h_t = GRU(h_{t-1}, z_{t-1}, a_{t-1})`` is the deterministic part of a latent state. The stochastic part z_t is drawn
    given h_t alone (prior), or given h_t and the observation (posterior). Before an episode, or a sequence, there are zeros.

    Observations are standardised: their squared errors would otherwise tell nothing of what is small in a picture, which would
    then not be worth its nats.

    Rewards and ends of episodes are predicted from the h that an action leads to, as sequences lack the last observations of
    episodes.

    :param observation_space: space of the observations
    :param action_dim: size of an action
    :param deter_dim: size of the deterministic part
    :param n_categoricals: number of one-hot vectors of the stochastic part
    :param n_classes: size of each
    :param hidden_dim: width of the hidden layers
    :param depth: channels of the first convolution; each of the next ones, as many as bring the side to 4, has twice as many
    :param kl_balance: share of the KL divergence that trains the prior; the rest trains the posterior
    :param free_nats: KL divergence [nats] that costs nothing
    :raises ImportError: without the extra ``dreamer``
    :raises ValueError: if an observation is neither an image nor a vector
    """

    optimizer: th.optim.Optimizer
    mean: th.Tensor
    std: th.Tensor
    has_scale: th.Tensor

    @checked
    def __init__(
        self,
        observation_space: spaces.Space,
        action_dim: int,
        deter_dim: PositiveInt = 128,
        n_categoricals: PositiveInt = 16,
        n_classes: PositiveInt = 16,
        hidden_dim: PositiveInt = 128,
        depth: PositiveInt = 8,
        kl_balance: Share = 0.8,
        free_nats: NonNegative = 1.0,
    ) -> None:
        super().__init__()
        nets: Any = torchrl("modules")
        self.observation_space, self.action_dim, self.deter_dim = observation_space, action_dim, deter_dim
        self.stoch_dim = n_categoricals * n_classes
        self.kl_balance, self.free_nats = kl_balance, free_nats
        shape: Any = getattr(observation_space, "shape", None) or ()
        mults: list[int] = []
        is_image = is_image_space(observation_space)
        if is_image:
            side = shape[1:]
            while max(side) > SMALLEST and not any(size % 2 for size in side):
                side, mults = [size // 2 for size in side], [*mults, 2 ** len(mults)]
            if max(side) > 2 * SMALLEST:
                raise ValueError(
                    f"Images of {shape[1]}x{shape[2]} can't be halved down to {SMALLEST}x{SMALLEST}: pass such of 16, 32, 64 "
                    "or 96 pixels, for instance with gymnasium.wrappers.ResizeObservation."
                )
            self.encoder = nets.DreamerV3ImageEncoder(shape[0], depth, tuple(mults))
            embedding_dim = self.encoder.output_features(shape)
            self.decoder = nets.DreamerV3ImageDecoder(self.features_dim, shape, depth, tuple(mults), num_blocks=1)
        elif len(shape) == 1:
            embedding_dim = hidden_dim
            self.encoder = nets.DreamerV3MLP(shape[0], hidden_dim, depth=1, num_cells=hidden_dim)
            self.decoder = nets.DreamerV3MLP(self.features_dim, shape[0], depth=2, num_cells=hidden_dim)
        else:
            raise ValueError(
                f"Dreamers observe an image or a vector, not {observation_space}: convert it, for instance with "
                "gymnasium.wrappers.FlattenObservation."
            )
        sizes = {"hidden_dim": hidden_dim, "num_categoricals": n_categoricals, "num_classes": n_classes, "unimix": UNIMIX}
        self.prior = nets.RSSMPriorV3(rnn_hidden_dim=deter_dim, action_shape=(action_dim,), action_dim=action_dim, **sizes)
        self.posterior = nets.RSSMPosteriorV3(
            rnn_hidden_dim=deter_dim, obs_embed_dim=embedding_dim, use_rms_norm=True, **sizes
        )
        #: Mean observation and standard deviation around it, one for all pixels, see :meth:`fit_scale`
        self.register_buffer("mean", th.zeros(shape))
        self.register_buffer("std", th.ones(() if is_image else shape))
        self.register_buffer("has_scale", th.tensor(False))
        self.reward_net = nets.DreamerV3MLP(deter_dim, 1, depth=2, num_cells=hidden_dim, outscale=0.0)
        self.continue_net = nets.DreamerV3MLP(deter_dim, 1, depth=1, num_cells=hidden_dim)

    @property
    def features_dim(self) -> int:
        """Size of the features of a latent state."""
        return self.deter_dim + self.stoch_dim

    def zeros(self, n: int) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """What comes before an episode: parts of a latent state, and an action."""
        weight = next(self.parameters())
        return tuple(weight.new_zeros(n, size) for size in (self.deter_dim, self.stoch_dim, self.action_dim))  # type: ignore

    @th.no_grad()
    def fit_scale(self, observations: th.Tensor) -> None:
        """Standardise by some observations from now on, shape ``(n, *obs_shape)``, as stored."""
        features = to_features(observations, self.observation_space)
        assert isinstance(features, th.Tensor)
        self.mean.copy_(features.mean(dim=0))
        errors = features - self.mean
        std = (errors.square().mean() if self.std.ndim == 0 else errors.square().mean(dim=0)).sqrt()
        # What has not changed yet may change later
        same = features == features[:1]
        self.std.copy_(th.where(same.all() if std.ndim == 0 else same.all(dim=0), 1.0, std.clamp(min=1e-3)))
        self.has_scale.fill_(True)

    def standardized(self, observations: th.Tensor) -> th.Tensor:
        """Standardise observations of shape ``(n, *obs_shape)``, as stored."""
        features = to_features(observations, self.observation_space).to(self.mean.dtype)  # type: ignore[union-attr]
        return (features - self.mean) / self.std

    def embed(self, observations: th.Tensor) -> th.Tensor:
        """Encode observations of shape ``(n, *obs_shape)``, as stored."""
        standardized = self.standardized(observations)
        # Of images, TorchRL's encoder subtracts one half
        return self.encoder(standardized + 0.5 if self.std.ndim == 0 else standardized)

    def observe(self, observations: th.Tensor, actions: th.Tensor, is_first: th.Tensor) -> Observed:
        """
        Follow sequences of observations.

        :param observations: shape ``(batch_size, n_steps, *obs_shape)``, as stored
        :param actions: those taken there, shape ``(batch_size, n_steps, action_dim)``
        :param is_first: whether an episode begins at an observation, shape ``(batch_size, n_steps)``
        :return: latent states, and what they were predicted to be
        """
        batch_shape = is_first.shape
        embedded = self.embed(observations.flatten(0, 1)).unflatten(0, batch_shape)
        deter, stoch, action = self.zeros(1)
        start_logits, _, start = self.prior(stoch, deter, action)
        deter, prior_logits = start.expand(batch_shape[0], -1), start_logits.expand(batch_shape[0], -1, -1)
        steps: list[tuple[th.Tensor, ...]] = []
        for step in range(batch_shape[1]):
            logits, stoch = self.posterior(deter, embedded[:, step])
            next_logits, _, reached = self.prior(stoch, deter, actions[:, step])
            steps.append((deter, stoch, logits, prior_logits, reached))
            if step + 1 < batch_shape[1]:
                begins = is_first[:, step + 1, None]
                deter = th.where(begins, start, reached)
                prior_logits = th.where(begins[..., None], start_logits, next_logits)
        deters, stochs, *others = (th.stack(each, dim=1) for each in zip(*steps, strict=True))
        return Observed(Latent(deters, stochs), *others)

    def step(
        self, before: Sequence[th.Tensor], observations: th.Tensor, is_first: th.Tensor, deterministic: bool = False
    ) -> Latent:
        """
        Follow one more observation.

        :param before: both parts of the latent states before it, and the actions taken there
        :param observations: shape ``(n, *obs_shape)``, as stored
        :param is_first: whether an episode begins here, shape ``(n,)``
        :param deterministic: take the most likely stochastic part instead of drawing it
        :return: the latent states
        """
        deter, stoch, action = (th.where(is_first[:, None], 0.0, each) for each in before)
        deter = self.prior(stoch, deter, action)[2]
        logits, stoch = self.posterior(deter, self.embed(observations))
        if deterministic:
            stoch = F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(stoch.dtype).flatten(1)
        return Latent(deter, stoch)

    def imagine(self, start: Latent, act: Callable[[th.Tensor], th.Tensor], horizon: int) -> tuple[Latent, th.Tensor]:
        """
        Imagine steps without observations.

        :param start: latent states to start from, ``(n, ...)``
        :param act: chooses actions for features of latent states
        :param horizon: number of steps
        :return: latent states, ``(horizon + 1, n, ...)``, and the actions between them, shape ``(horizon, n, action_dim)``
        """
        latents, actions = [start], []
        for _ in range(horizon):
            actions.append(act(latents[-1].features))
            _, stoch, deter = self.prior(latents[-1].stoch, latents[-1].deter, actions[-1])
            latents.append(Latent(deter, stoch))
        return Latent(*(th.stack(each) for each in zip(*latents, strict=True))), th.stack(actions)

    def decode(self, latents: Latent) -> th.Tensor:
        """Predict observations of latent states, ``(n, ...)``: vectors, or images with values from 0 to 1."""
        return self.mean + self.std * self.decode_standardized(latents)

    def decode_standardized(self, latents: Latent) -> th.Tensor:
        """Predict the standardised observations of latent states, ``(n, ...)``."""
        decoded = self.decoder(latents.features)
        return decoded - 0.5 if self.std.ndim == 0 else decoded

    def loss(self, sequences: Sequences, learns_reward: bool) -> tuple[dict[str, th.Tensor], Observed]:
        """
        Compute the losses of the model, of which it minimises the sum.

        :param sequences: a batch of sequences
        :param learns_reward: whether it learns the rewards of the environment, too
        :return: losses by name, and the sequences as the model sees them
        """
        observed = self.observe(sequences.observations, sequences.actions, sequences.is_first)
        decoded = self.decode_standardized(observed.latents.map(lambda part: part.flatten(0, 1)))
        errors = decoded - self.standardized(sequences.observations.flatten(0, 1))
        goes_on = self.continue_net(observed.reached).squeeze(-1)
        losses = {
            "observation": errors.square().flatten(1).sum(dim=1).mean() / 2,
            "kl": kl_loss(observed.logits, observed.prior_logits, self.kl_balance, self.free_nats),
            "continue": F.binary_cross_entropy_with_logits(goes_on, 1.0 - sequences.terminated),
        }
        if learns_reward:
            losses["reward"] = (self.reward_net(observed.reached).squeeze(-1) - sequences.rewards).square().mean() / 2
        return losses, observed
