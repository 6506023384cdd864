"""
The update as computed by the released code, for comparison: every head on every transition, with most values masked.

The losses are equal to those of :class:`sb3_cesd.CeSD`, so both forms learn the same.
"""

import torch as th
from stable_baselines3.common.utils import polyak_update
from torch.nn import functional as F

from sb3_cesd import CeSD
from sb3_cesd.cesd.policies import EnsembleCritic
from sb3_cesd.common.torch_layers import minimum
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples


def q_values_dense(critic: EnsembleCritic, observations: th.Tensor, actions: th.Tensor) -> list[th.Tensor]:
    """Evaluate every head on every transition, a tensor of shape ``(ensemble_size, batch_size, 1)`` per critic."""
    assert not critic.shared_value, "heads do not see the same hidden features"
    hidden = critic.trunk(th.cat([critic.extract(observations), actions], dim=1))
    return [q_network.forward_dense(hidden) for q_network in critic.q_networks]  # type: ignore[operator]


class DenseCeSD(CeSD):
    """CeSD in its released setting with the dense, masked ensemble critic; arguments as for CeSD."""

    def critic_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        mask = self._mask(replay_data.clusters)  # (n_skills, batch_size, 1)
        with th.no_grad():
            next_actions, _ = self._sample_actions(replay_data.next_observations, replay_data.skills)
            next_q_values = minimum(q_values_dense(self.critic_target, replay_data.next_observations, next_actions))
            target_q_values = replay_data.rewards + (1 - replay_data.dones) * replay_data.discounts * next_q_values
        q_values = q_values_dense(self.critic, replay_data.observations, replay_data.actions)
        return sum(F.mse_loss(q * mask, target_q_values * mask) for q in q_values)  # type: ignore[return-value]

    def actor_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        assert replay_data.actor_skills is not None
        actions, _ = self._sample_actions(replay_data.observations, replay_data.actor_skills)
        q_values = q_values_dense(self.critic, replay_data.observations, actions)
        return -(minimum(q_values) * self._mask(replay_data.actor_skills)).mean()

    def _mask(self, skills: th.Tensor | None) -> th.Tensor:
        assert skills is not None
        return F.one_hot(skills, self.n_skills).T[:, :, None].float()


class ReleasedCeSD(DenseCeSD):
    """The dense form with the actor gradient and the Polyak update of the released code."""

    def _update(self, batches: list[SkillReplayBufferSamples]) -> None:
        self.intrinsic.update(batches[-1])
        batch = self.intrinsic.relabel(batches[-1])
        for loss_fn, module in ((self.critic_loss, self.critic), (self.actor_loss, self.actor)):
            loss = loss_fn(batch)
            module.optimizer.zero_grad()  # type: ignore[union-attr, operator]
            loss.backward()  # the actor loss fills the gradients of the critic too
            module.optimizer.step()  # type: ignore[union-attr, operator]
        self.intrinsic.update_clusters(batch)
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
