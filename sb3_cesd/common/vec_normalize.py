"""Statistics of ``VecNormalize``, and environments that are normalised as those of training."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, maybe_transpose
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecNormalize, VecTransposeImage, unwrap_vec_normalize

from sb3_cesd.common.cuda import DeviceArrays
from sb3_cesd.common.observations import OBSERVATION, Observation, arrays_of, channels_first, entries_of, plain_form, shapes_of


def normalize_like_training(env: VecEnv, statistics: VecNormalize | None) -> VecEnv:
    """
    Normalise the observations of other environments as in training, by a ``VecNormalize`` of their own, if there is one.

    The statistics of training are shared, so that they are always the latest, and never changed.
    """
    normalizer = unwrap_vec_normalize(env)
    if normalizer is None:
        if statistics is None:
            return env
        keys = None
        if isinstance(env.observation_space, spaces.Dict) and statistics.norm_obs:
            # Not all entries, as the space describes images that are normalised as other arrays
            keys = [name for name in observation_statistics(statistics) if name in env.observation_space.spaces]
        env = normalizer = VecNormalize(env, norm_obs=statistics.norm_obs, norm_reward=False, norm_obs_keys=keys)
    normalizer.training = False
    normalizer.norm_obs = statistics is not None and statistics.norm_obs
    if statistics is not None and statistics.norm_obs:
        # The normalizer has none of its own if it did not normalise observations
        known, trained = shapes_of(normalizer.observation_space), observation_statistics(statistics)
        shapes = {name: rms.mean.shape for name, rms in trained.items()}
        if {name: known.get(name) for name in shapes} != shapes:
            raise ValueError(f"The statistics are of shapes {shapes}, not {known}: wrap environments as in training.")
        if isinstance(normalizer.observation_space, spaces.Dict):
            normalizer.obs_rms, normalizer.norm_obs_keys = trained, list(trained)
        else:
            normalizer.obs_rms = trained[OBSERVATION]
        normalizer.clip_obs, normalizer.epsilon = statistics.clip_obs, statistics.epsilon
    return env


@contextmanager
def frozen_statistics(env: VecEnv) -> Iterator[None]:
    """Keep the statistics of ``VecNormalize``, if there is one, while something else than training plays."""
    normalizer = unwrap_vec_normalize(env)
    if normalizer is None:
        yield
        return
    was_training, normalizer.training = normalizer.training, False
    try:
        yield
    finally:
        normalizer.training = was_training


def transpose_like_training(env: VecEnv, space: spaces.Space) -> VecEnv:
    """
    Stack frames of images as in training, and put their channels first where the model observes them so, as SB3 does with
    environments of training only.
    """
    frame = channels_first(env.observation_space)
    if is_image_space(frame) and is_image_space(space) and frame.shape[1:] == space.shape[1:]:  # type: ignore[index]
        n_stack, rest = divmod(space.shape[0], frame.shape[0])  # type: ignore[index]
        env = VecFrameStack(env, n_stack) if n_stack > 1 and rest == 0 else env
    given, observed = shapes_of(env.observation_space), shapes_of(space)
    if given == observed or shapes_of(channels_first(env.observation_space)) != observed:
        return env
    return VecTransposeImage(env)


def normalizes_observations(vec_normalize: VecNormalize | None) -> TypeGuard[VecNormalize]:
    """Return whether there is a ``VecNormalize`` that normalises observations."""
    return vec_normalize is not None and vec_normalize.norm_obs


def lacks_statistics(model: Any, vec_normalize: VecNormalize | None) -> bool:
    """Return whether observations are not normalised for a model as in its training, or by statistics that saw nothing yet."""
    if not getattr(model, "trained_normalized", False):
        return False
    if not normalizes_observations(vec_normalize):
        return True
    seen = [each for each in observation_statistics(vec_normalize).values() if each.count >= 1 or (each.mean != 0).any()]
    return getattr(model, "num_timesteps", 0) > 0 and not seen


def takes_plain_observations(model: Any) -> bool:
    """Return whether a model has learned from observations as they are, or is an exported policy with own statistics."""
    return not getattr(model, "trained_normalized", False) and getattr(model, "num_timesteps", 0) > 0


def check_statistics_fit(model: Any, vec_normalize: VecNormalize | None, remedy: str) -> None:
    """Check that observations are normalised for a model as in training; ``remedy`` is what to pass if they are not."""
    if normalizes_observations(vec_normalize) and takes_plain_observations(model):
        raise ValueError("The model learned without VecNormalize (an exported policy holds its statistics): leave it out.")
    if lacks_statistics(model, vec_normalize):
        raise ValueError(f"The model was trained with VecNormalize: {remedy}")


def statistics_of_training(model: Any, vec_normalize: VecNormalize | None = None) -> VecNormalize | None:
    """Find the statistics that normalised the observations of a model in training, by default those of its environment."""
    found = vec_normalize or (model.get_vec_normalize_env() if hasattr(model, "get_vec_normalize_env") else None)
    check_statistics_fit(model, found, "pass vec_normalize, e.g. VecNormalize.load(path, venv).")
    if not normalizes_observations(found):
        return None
    known = shapes_of(model.plain_space)
    for name, rms in observation_statistics(found).items():
        shape = known.get(name)
        # Channels of an image may come last: SB3 puts them first
        if shape is None or rms.mean.shape not in (shape, (*shape[1:], *shape[:1])):
            raise ValueError(f"The statistics of {name} have shape {rms.mean.shape}, not {known}: pass those of training.")
    return found


def observation_statistics(normalize: VecNormalize) -> dict[str, Any]:
    """Read mean and variance by the name of the entry, which is ``"observation"`` for a Box space."""
    return normalize.obs_rms if isinstance(normalize.obs_rms, dict) else {OBSERVATION: normalize.obs_rms}


def normalize_entries(vec_normalize: VecNormalize, entries: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Normalise the entries of observations, whether ``VecNormalize`` is inside the skill wrapper or around it."""
    return entries_of(vec_normalize.normalize_obs(_in_layout_of(vec_normalize, entries)))


def unnormalize_entries(vec_normalize: VecNormalize | None, observation: Observation) -> dict[str, np.ndarray]:
    """Undo what ``VecNormalize`` did to an observation, if there is one, and remove the skill."""
    entries = arrays_of(observation)
    if vec_normalize is None:
        return entries
    return entries_of(vec_normalize.unnormalize_obs(_in_layout_of(vec_normalize, entries)))


def original_entries(observations: Observation, space: spaces.Dict) -> dict[str, np.ndarray]:
    """Put the channels of images first in observations from before ``VecNormalize``, as SB3 does around it."""
    entries = {name: maybe_transpose(value, space[name]) for name, value in arrays_of(observations).items()}
    if any(values.shape[1:] != space[name].shape for name, values in entries.items()):
        raise ValueError(
            "A wrapper around VecNormalize reshapes observations: put it inside, VecNormalize(VecFrameStack(env)). "
            "RL Zoo stacks last: leave normalize or frame_stack out."
        )
    return entries


def _in_layout_of(vec_normalize: VecNormalize, entries: dict[str, np.ndarray]) -> Observation:
    """Convert entries to the form that ``VecNormalize`` takes: always dictionaries if it is around the skill wrapper."""
    return entries if isinstance(vec_normalize.observation_space, spaces.Dict) else plain_form(entries)  # type: ignore


class TensorNormalization:
    """Normalise tensors by the statistics of a ``VecNormalize``, kept on a device, at addresses that stay the same."""

    def __init__(self, env: VecNormalize, device: th.device) -> None:
        self.env = env
        self._statistics = self._read()
        self._tensors = DeviceArrays(device)
        self._tensors.set(**self._statistics)

    def _read(self) -> dict[str, np.ndarray]:
        statistics = {"reward_std": np.sqrt(np.atleast_1d(self.env.ret_rms.var) + self.env.epsilon)}
        # Without normalised observations from the start there is no obs_rms
        if "obs_rms" in vars(self.env):
            for name, rms in observation_statistics(self.env).items():
                statistics[f"mean of {name}"] = np.array(rms.mean)
                statistics[f"std of {name}"] = np.sqrt(rms.var + self.env.epsilon)
        return statistics

    def update(self) -> None:
        for name, values in self._read().items():
            self._statistics[name][...] = values
            self._tensors.mark([name], range(len(values)))
        self._tensors.update()

    def observations(self, name: str, observations: th.Tensor) -> th.Tensor:
        """Normalise an entry to float32; one that ``VecNormalize`` does not normalise stays as it is."""
        if not self.env.norm_obs or f"mean of {name}" not in self._statistics:
            return observations
        # In float64, as the statistics are
        observations = (observations - self._tensors[f"mean of {name}"]) / self._tensors[f"std of {name}"]
        return observations.clamp(-self.env.clip_obs, self.env.clip_obs).float()

    def rewards(self, rewards: th.Tensor) -> th.Tensor:
        if self.env.norm_reward:
            rewards = (rewards / self._tensors["reward_std"]).clamp(-self.env.clip_reward, self.env.clip_reward)
        return rewards.float()
