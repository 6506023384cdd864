"""One encoder of images, whose features actor, critics and rewards share (DrQ-v2: Yarats et al., 2021)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from torch import nn

from sb3_cesd.common.arguments import NonNegativeInt, PositiveInt, checked
from sb3_cesd.common.torch_layers import create_normalized_mlp, orthogonal_init
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples

#: Whose losses train the encoder: those of the critic, of the intrinsic reward, of both or of none
LearnsFrom = Literal["critic", "reward", "both", "none"]
#: Shorter side of images from which on strides are those of DrQ-v2 [pixels]
LARGE_SIDE = 64
#: Number of images that are encoded at a time where nothing is learned
CHUNK = 256


def check_images(space: spaces.Space) -> None:
    """Check that observations are images, as ``CnnPolicy`` takes them."""
    if isinstance(space, spaces.Dict):
        raise ValueError(
            f"CnnPolicy takes an image alone, not a dictionary ({list(space.spaces)}): keep only the image, for instance with "
            "gymnasium.wrappers.AddRenderObservation(env, render_only=True), or pass 'MultiInputPolicy' (from 36x36 on)."
        )
    if not is_image_space(space):
        raise ValueError(
            f"CnnPolicy takes images of bytes (three axes, uint8, from 0 to 255), but observations are {space}: pass "
            "'MlpPolicy' for vectors; leave images as they are, with GrayscaleObservation(env, keep_dim=True), VecFrameStack "
            "and VecNormalize(env, norm_obs=False), if at all."
        )


def shift_images(images: th.Tensor, shift: int) -> th.Tensor:
    """
    Shift each image at random by up to ``shift`` pixels along both axes, and repeat the pixels of its border (DrQ-v2).

    :param images: shape ``(n, channels, height, width)``
    :param shift: largest shift [pixels]
    :return: as ``images``
    """
    n, channels, height, width = images.shape
    offsets = th.randint(-shift, shift + 1, (2, n, 1), device=images.device)
    rows = (th.arange(height, device=images.device) + offsets[0]).clamp(0, height - 1)  # (n, height)
    columns = (th.arange(width, device=images.device) + offsets[1]).clamp(0, width - 1)  # (n, width)
    pixels = (rows[:, :, None] * width + columns[:, None]).flatten(1)  # (n, height * width)
    return images.flatten(2).gather(2, pixels[:, None].expand(-1, channels, -1)).view(images.shape)


class ImageEncoder(nn.Module):
    """
    Encoder of DrQ-v2: 3x3 convolutions, then Linear, LayerNorm and Tanh (its "trunk").

    :param space: space of the images, channels first
    :param learns_from: whose losses train it: ``"critic"`` as in DrQ-v2, ``"reward"`` (that of the intrinsic reward) as URLB's
        ICM-APT and DIAYN, ``"both"``, or ``"none"``, which keeps it as it is
    :param features_dim: size of the features
    :param n_channels: channels of each convolution
    :param strides: stride of each convolution; ``None`` for (2, 1, 1, 1) as in DrQ-v2, and (2, 2, 2) for images with a side
        below 64 pixels
    :param shift: largest random shift of the images that training samples [pixels]; ``None`` for a 21st of their height, 0
        for none
    :param subtract_mean: whether pixels lose the mean of all images that the encoder has learned from, rather than 0.5 as in
        DrQ-v2. Where most of an image never changes, that part else reaches the LayerNorm as an offset that grows in training,
        until the features of all images are alike
    :raises ValueError: if the images are too small for the convolutions
    """

    optimizer: th.optim.Optimizer
    #: What is subtracted from pixels between 0 and 1
    mean_image: th.Tensor | float
    n_averaged: th.Tensor
    #: Whether it has stopped learning, whatever ``learns_from`` is
    is_frozen: bool = False

    @checked
    def __init__(
        self,
        space: spaces.Box,
        learns_from: LearnsFrom = "critic",
        features_dim: PositiveInt = 50,
        n_channels: PositiveInt = 32,
        strides: Sequence[int] | None = None,
        shift: NonNegativeInt | None = None,
        subtract_mean: bool = False,
    ) -> None:
        super().__init__()
        self.learns_from = learns_from
        self.features_dim = features_dim
        self.subtract_mean = subtract_mean
        if subtract_mean:
            self.register_buffer("mean_image", th.full(space.shape, 0.5))
            self.register_buffer("n_averaged", th.zeros(()))
        else:
            self.mean_image = 0.5
        channels, height, width = space.shape
        self.shift = height // 21 if shift is None else shift
        self.strides = tuple(strides or ((2, 1, 1, 1) if min(height, width) >= LARGE_SIDE else (2, 2, 2)))
        layers: list[nn.Module] = []
        for stride in self.strides:
            layers += [nn.Conv2d(channels, n_channels, 3, stride), nn.ReLU(inplace=True)]
            channels, height, width = n_channels, (height - 3) // stride + 1, (width - 3) // stride + 1
        if min(height, width) < 1:
            raise ValueError(
                f"Images of shape {space.shape} are too small for convolutions with strides {self.strides}: pass others in "
                "policy_kwargs=dict(encoder_kwargs=dict(strides=...)), or resize the images."
            )
        init = partial(orthogonal_init, gain=nn.init.calculate_gain("relu"))
        self.convolutions = nn.Sequential(*layers, nn.Flatten()).apply(init)
        self.trunk = create_normalized_mlp(channels * height * width, -1, [features_dim])

    def forward(self, images: th.Tensor) -> th.Tensor:
        """
        Compute the features of images.

        :param images: pixels from 0 to 255, shape ``(n, channels, height, width)``
        :return: features, shape ``(n, features_dim)``
        """
        # In the precision and on the device of the weights; with channels last in memory, a CPU takes a quarter less time
        pixels = images.to(next(self.parameters())).contiguous(memory_format=th.channels_last)
        return self.trunk(self.convolutions(pixels / 255 - self.mean_image))

    def update_mean(self, images: th.Tensor) -> None:
        """Merge a batch of images that it learns from into their mean."""
        self.n_averaged += 1
        assert isinstance(self.mean_image, th.Tensor)
        self.mean_image.lerp_(images.to(self.mean_image).mean(dim=0) / 255, 1 / self.n_averaged)

    @th.no_grad()
    def features(self, images: np.ndarray | th.Tensor) -> th.Tensor:
        """Compute the features of any number of images, where nothing is learned; see :meth:`forward`."""
        return th.cat([self(chunk) for chunk in th.as_tensor(images).split(CHUNK)])


class SharedFeatures:
    """
    Batches of an update whose images were shifted and encoded once, for all losses.

    Losses that train the encoder leave their gradients at the features; :meth:`update_encoder` passes them on to the
    convolutions in one backward pass. The critic learns from the last batch. Without an encoder, nothing is done.
    """

    def __init__(self, encoder: ImageEncoder | None, batches: list[SkillReplayBufferSamples]) -> None:
        self.encoder = encoder
        #: Features with the graph that leads to them, and leaves of the same values, where losses leave their gradients
        self._learned: list[tuple[th.Tensor, th.Tensor]] = []
        #: The batches, with features in place of images
        self.batches = batches if encoder is None else [self._encode(encoder, each, each is batches[-1]) for each in batches]

    def _learns_from(self, loss: str) -> bool:
        return self.encoder is not None and not self.encoder.is_frozen and self.encoder.learns_from in (loss, "both")

    def _encode(self, encoder: ImageEncoder, samples: SkillReplayBufferSamples, trains_critic: bool) -> Any:
        encoded: dict[str, th.Tensor] = {}
        for name, images in samples.all_observations().items():
            if name == "one_step_observations" and images is samples.next_observations:
                encoded[name] = encoded["next_observations"]
                continue
            # The critic's loss has no gradient with respect to s'
            of_critic = trains_critic and name == "observations" and self._learns_from("critic")
            is_learned = of_critic or self._learns_from("reward")
            if encoder.subtract_mean and is_learned and name == "observations":
                encoder.update_mean(images)
            with th.set_grad_enabled(is_learned):
                features = encoder(shift_images(images, encoder.shift))
            encoded[name] = features.detach().requires_grad_(is_learned)
            if is_learned:
                self._learned.append((features, encoded[name]))
        return samples._replace(**encoded)  # type: ignore[arg-type]

    def seen_by(self, loss: str, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """Detach the features in a batch, unless the encoder learns from a loss: ``"critic"``, ``"reward"`` or ``"actor"``."""
        if self.encoder is None or (loss != "actor" and self._learns_from(loss)):
            return samples
        return samples._replace(**{name: features.detach() for name, features in samples.all_observations().items()})

    def update_encoder(self) -> None:
        """Pass the gradients that losses left at the features on to the encoder, and take a step."""
        gathered = [(features, leaf.grad) for features, leaf in self._learned if leaf.grad is not None]
        if self.encoder is not None and gathered:
            self.encoder.optimizer.zero_grad()
            th.autograd.backward([features for features, _ in gathered], [gradient for _, gradient in gathered])
            self.encoder.optimizer.step()
