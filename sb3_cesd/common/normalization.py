"""Normalisation of observations and rewards as by ``VecNormalize``, on tensors."""

import numpy as np
import torch as th
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.cuda import DeviceArrays
from sb3_cesd.common.vec_normalize import observation_statistics


class TensorNormalization:
    """
    Normalise tensors by the statistics of a ``VecNormalize``, kept on a device, at addresses that stay the same.

    :param env: the ``VecNormalize``; :meth:`update` copies its statistics
    :param device: where the tensors are
    """

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
        """Copy the statistics of the environment."""
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
