"""What ``VecNormalize`` does to observations and rewards, on tensors."""

import numpy as np
import torch as th
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.device_arrays import DeviceArrays


class TensorNormalization:
    """
    The statistics of a ``VecNormalize`` on a device, at addresses that stay the same.

    :param env: its statistics are those of the last :meth:`update`
    :param device: where the tensors are
    """

    def __init__(self, env: VecNormalize, device: th.device) -> None:
        self.env = env
        self._statistics = self._read()
        self._tensors = DeviceArrays(device)
        self._tensors.set(**self._statistics)

    def _read(self) -> dict[str, np.ndarray]:
        statistics = {"reward_std": np.sqrt(np.atleast_1d(self.env.ret_rms.var) + self.env.epsilon)}
        if self.env.norm_obs:
            assert isinstance(self.env.obs_rms, RunningMeanStd)
            statistics["obs_mean"] = self.env.obs_rms.mean.copy()
            statistics["obs_std"] = np.sqrt(self.env.obs_rms.var + self.env.epsilon)
        return statistics

    def update(self) -> None:
        """Take over the statistics of the environment."""
        for name, values in self._read().items():
            self._statistics[name][...] = values
            self._tensors.mark([name], range(len(values)))
        self._tensors.update()

    def observations(self, observations: th.Tensor) -> th.Tensor:
        """
        :param observations: shape ``(n, obs_dim)``
        :return: normalised, float32
        """
        if self.env.norm_obs:
            # In float64, as the statistics are
            observations = (observations - self._tensors["obs_mean"]) / self._tensors["obs_std"]
            observations = observations.clamp(-self.env.clip_obs, self.env.clip_obs)
        return observations.float()

    def rewards(self, rewards: th.Tensor) -> th.Tensor:
        """
        :param rewards: any shape
        :return: normalised, float32
        """
        if self.env.norm_reward:
            rewards = (rewards / self._tensors["reward_std"]).clamp(-self.env.clip_reward, self.env.clip_reward)
        return rewards.float()
