"""Skills that are learned in the imagination of a world model."""

from typing import Any, ClassVar

import numpy as np
import torch as th
from stable_baselines3.common.policies import BasePolicy
from torch import nn

from sb3_cesd.cesd.cesd import ConstrainedSkills
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import Observation
from sb3_cesd.common.torch_layers import frozen, minimum, polyak_update
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.dreamer.policies import DreamerPolicy
from sb3_cesd.dreamer.sequences import SequenceReplayBuffer, Sequences
from sb3_cesd.dreamer.world_model import Latent, Observed
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.methods.apt import APT
from sb3_cesd.methods.diayn import DIAYN
from sb3_cesd.skill_ddpg import SkillDDPG

#: Number of sequences of the warm-up whose observations set the scale
SCALE_SEQUENCES = 64


def lambda_returns(rewards: th.Tensor, values: th.Tensor, discounts: th.Tensor, decay: float) -> th.Tensor:
    """
    Compute the returns of n steps, ``G_t = r_t + d_t ((1 - decay) v_{t+1} + decay G_{t+1})`` with ``G_{n+1} = v_{n+1}``: the
    value of a state includes its own reward, as in DreamerV2.

    :param rewards: rewards of reaching n states, shape ``(n, ...)``
    :param values: values of these, and of the state after them, shape ``(n + 1, ...)``
    :param discounts: discounts of what comes after each of the n, shape ``(n, ...)``
    :param decay: lambda, from 0 (one step) to 1 (all steps)
    :return: shape ``(n, ...)``
    """
    returns = [values[-1]]
    for reward, next_value, discount in zip(rewards.flip(0), values[1:].flip(0), discounts.flip(0), strict=True):
        returns.append(reward + discount * ((1 - decay) * next_value + decay * returns[-1]))
    return th.stack(returns[:0:-1])


def own_rewards(samples: SkillReplayBufferSamples, skills: th.Tensor) -> th.Tensor:
    """
    Look up what relabelled transitions are worth to the skills that acted in them, shape ``(batch_size,)``: nothing where only
    another skill learns from a transition.
    """
    pairs = samples.pairs
    assert pairs is not None
    rows = th.arange(len(skills), device=skills.device) if pairs.rows is None else pairs.rows
    own = (pairs.skills == skills[rows]).reshape(len(rows), -1).all(dim=1)
    nothing = pairs.rewards.new_zeros(len(skills))
    return nothing.index_put((rows[own],), pairs.rewards[own].squeeze(1))


def imagined_rewards(intrinsic: IntrinsicReward, samples: SkillReplayBufferSamples, batch_size: int) -> th.Tensor:
    """
    Compute the intrinsic rewards of imagined steps. Those that compare or count states do so within random subsamples.

    :param intrinsic: the reward
    :param samples: n imagined transitions
    :param batch_size: size of a subsample, at most
    :return: rewards for the skills that act, shape ``(n,)``
    """
    n = len(samples.skills)
    rewards = th.empty(n, device=samples.skills.device)
    for rows in th.randperm(n, device=rewards.device).chunk(-(-n // batch_size)):
        parts: Any = [None if each is None else each[rows] for each in samples]  # type: ignore[index]
        chosen = SkillReplayBufferSamples(*parts)
        rewards[rows] = own_rewards(intrinsic.relabel(chosen), chosen.skills)
    return rewards


class SkillDreamer(SkillDDPG):
    """
    Skills learned in the imagination of a world model, from images or vectors (DreamerV2's agent with continuous actions, as
    in Rajeswar et al., "Mastering the Unsupervised Reinforcement Learning Benchmark from Pixels", 2023).

    The world model learns from sequences of the replay buffer. From some of their latent states, skills that are drawn anew
    act for some imagined steps. A critic V(s, z) learns their lambda-returns, and the actor maximises them by the gradient
    through the world model. The intrinsic reward learns from real transitions, and rewards imagined ones, among as many others
    as in a real batch. Its states are the stochastic parts of latent states: the deterministic ones know the last action, too,
    by which skills could differ that go to the same place.

    A method is a subclass that sets ``reward_class``. For the arguments see
    :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`, for ``policy_kwargs``
    :class:`~sb3_cesd.dreamer.policies.DreamerPolicy`. ``batch_size`` counts sequences, whose length is ``sequence_length`` in
    ``replay_buffer_kwargs``; ``n_steps`` and ``cuda_graph`` have no effect. A task (``reward="extrinsic"``) is learned in
    imagination, too, from predicted rewards.

    :raises ImportError: without the extra, ``pip install sb3_cesd[dreamer]``
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = dict.fromkeys(
        ("CnnPolicy", "MlpPolicy", "DreamerPolicy"), DreamerPolicy
    )
    policy: DreamerPolicy
    replay_buffer: SequenceReplayBuffer | None  # type: ignore[assignment]

    #: Number of critic heads, ``None`` for one per skill
    ensemble_size: ClassVar[int | None] = 1
    #: Whether a reward depends on its own state alone: the actor then follows its gradient, too, not only that of later values
    rewards_single_states: ClassVar[bool] = False
    defaults = {  # noqa: RUF012
        "batch_size": 16,
        "n_steps": 1,
        "train_freq": 10,
        "replay_buffer_class": SequenceReplayBuffer,
    }

    #: Latent states and actions of the training environments
    _memory: tuple[np.ndarray, ...] | None = None

    def _own_policy_kwargs(self) -> dict[str, Any]:
        return {**super()._own_policy_kwargs(), "ensemble_size": self.ensemble_size}

    def _make_intrinsic(self) -> IntrinsicReward:
        if not issubclass(self.replay_buffer_class, SequenceReplayBuffer):  # type: ignore[arg-type]
            raise ValueError(f"{self.replay_buffer_class} does not sample sequences: pass SequenceReplayBuffer or a subclass.")
        intrinsic = super()._make_intrinsic()
        if intrinsic.average_window > 1 or self.ent_coef is not None:
            raise ValueError(
                "Dreamers have deterministic policies, and imagined states no moving averages: leave ent_coef and "
                "cluster_window out."
            )
        return intrinsic

    @property
    def obs_dim(self) -> int:
        """Number of entries of the states that intrinsic rewards see."""
        return self.policy.world_model.stoch_dim

    def _optimizers(self) -> dict[str, th.optim.Optimizer]:
        return {"world_model": self.policy.world_model.optimizer, **super()._optimizers()}

    def train(self, gradient_steps: int, batch_size: int = 16) -> None:
        buffer = self.replay_buffer
        assert buffer is not None
        if buffer.full and buffer.size() < buffer.sequence_length:
            raise ValueError(
                f"The replay buffer has room for {buffer.size()} steps of each of {self.n_envs} environments, but sequences "
                f"have {buffer.sequence_length}: raise buffer_size, or lower sequence_length in replay_buffer_kwargs."
            )
        if self._has_enough() and not self.policy.world_model.has_scale:
            sequences = buffer.sample(SCALE_SEQUENCES, self._vec_normalize_env)
            self.policy.world_model.fit_scale(sequences.observations.flatten(0, 1))
        super().train(gradient_steps, batch_size)

    def _has_enough(self) -> bool:
        assert self.replay_buffer is not None
        return super()._has_enough() and self.replay_buffer.size() >= self.replay_buffer.sequence_length

    def _update(self, batches: list[Sequences]) -> None:  # type: ignore[override]
        """Learn from sequences: the world model, the intrinsic reward, then actor and critic in imagination."""
        sequences, world_model = batches[-1], self.policy.world_model
        losses, observed = world_model.loss(sequences, learns_reward=self.reward == "extrinsic")
        self._step(world_model, th.stack(list(losses.values())).sum())

        if self.reward == "intrinsic":
            transitions = self._real_transitions(sequences, observed)
            self.intrinsic.update(transitions)
            # Running statistics are those of imagined states
            self.intrinsic.eval()
            self.intrinsic.update_clusters(self.intrinsic.relabel(transitions))
            self.intrinsic.train()

        drawn = th.randperm(sequences.is_first.numel(), device=self.device)[: self.policy.n_starts]
        actor_loss, critic_loss = self._imagined_losses(
            observed.latents.map(lambda part: part.detach().flatten(0, 1).index_select(0, drawn)), sequences.is_first.numel()
        )
        self._step(self.actor, actor_loss)
        self._step(self.critic, critic_loss)
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)

        logs: dict[str, Any] = {f"train/{name}_loss": loss for name, loss in losses.items()}
        logs |= {"train/critic_loss": critic_loss, "train/actor_loss": actor_loss, **self.intrinsic.logs}
        self._mean_logs.add({name: th.as_tensor(value, device=self.device).detach() for name, value in logs.items()})

    def _step(self, network: nn.Module, loss: th.Tensor) -> None:
        optimizer, parameters = network.optimizer, list(network.parameters())
        assert isinstance(optimizer, th.optim.Optimizer)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, self.policy.max_grad_norm)
        optimizer.step()

    def _real_transitions(self, sequences: Sequences, observed: Observed) -> SkillReplayBufferSamples:
        """List the transitions between consecutive latent states of an episode."""
        states, within = observed.latents.stoch.detach(), ~sequences.is_first[:, 1:]
        return self._transitions(
            states[:, :-1][within], sequences.actions[:, :-1][within], states[:, 1:][within], sequences.skills[:, :-1][within]
        )

    def _transitions(
        self, states: th.Tensor, actions: th.Tensor, next_states: th.Tensor, skills: th.Tensor
    ) -> SkillReplayBufferSamples:
        """Make a batch of transitions, as intrinsic rewards take them."""
        zeros = states.new_zeros(len(states), 1)
        return SkillReplayBufferSamples(
            states, actions, next_states, zeros, zeros, zeros + self.gamma, skills, one_step_observations=next_states
        )

    def _imagined_losses(self, start: Latent, batch_size: int) -> tuple[th.Tensor, th.Tensor]:
        """
        Compute the losses of actor and critic from steps that are imagined from n latent states.

        :param start: latent states, ``(n, ...)``
        :param batch_size: number of imagined states that rewards compare
        :return: ``-mean w G`` and ``mean w (V - G)^2 / 2``, with the share w of the weight that an imagined step still has
        """
        n, world_model, horizon = len(start.deter), self.policy.world_model, self.policy.horizon
        vectors = self.skill_space.draw_tensor(n, self.device)
        if self.skill is not None and self.reward == "extrinsic":
            vectors = th.as_tensor(self.skill_space.encode(self.skill, (n,)).copy(), device=self.device)
        skills = self.skill_space.decode(vectors)

        with frozen([*world_model.parameters(), *self.critic_target.parameters(), *self.intrinsic.parameters()]):
            # The actor learns where its actions lead, not where it looks
            latents, actions = world_model.imagine(
                start, lambda features: self._sample_actions(features.detach(), skills)[0], horizon
            )
            features, reached = latents.features[1:], latents.deter[1:]
            discounts = self.gamma * world_model.continue_net(reached[:-1]).squeeze(-1).sigmoid()
            if self.reward == "extrinsic":
                rewards = world_model.reward_net(reached).squeeze(-1)
            else:
                states = latents.stoch.flatten(0, 1)
                repeated = skills.repeat(horizon, *(1,) * (skills.ndim - 1))
                transitions = self._transitions(states[:-n], actions.flatten(0, 1), states[n:], repeated)
                if self.rewards_single_states:
                    rewards = self.intrinsic.reward(transitions).view(horizon, n)
                    self.intrinsic.logs["intrinsic/reward"] = rewards.mean().detach()
                else:
                    rewards = imagined_rewards(self.intrinsic, transitions, batch_size).view(horizon, n)
            values = self._values(self.critic_target, features, skills)
            returns = lambda_returns(rewards[:-1], values, discounts, self.policy.trace_decay)
        self.intrinsic.logs["train/imagined_return"] = returns.mean().detach()
        weights = th.cat([th.ones_like(discounts[:1]), discounts[:-1]]).cumprod(dim=0).detach()
        errors = self._values(self.critic, features[:-1].detach(), skills) - returns.detach()
        return -(weights * returns).mean(), (weights * errors.square()).mean() / 2

    def _values(self, critic: Any, features: th.Tensor, skills: th.Tensor) -> th.Tensor:
        """Evaluate V(s, z) for features of shape ``(n_steps, n, features_dim)`` and n skills, each by its own head."""
        flat = features.flatten(0, 1)
        repeated = skills.repeat(len(features), *(1,) * (skills.ndim - 1))
        return minimum(critic.q_values(flat, flat[:, :0], repeated)).view(features.shape[:2])

    def _act(self, observations: dict[str, np.ndarray]) -> np.ndarray:
        buffer = self.replay_buffer
        assert buffer is not None
        if self._memory is not None:
            # The actions that were taken, with noise
            self._memory = (*self._memory[:2], buffer.actions[int(buffer.newest[0])], *self._memory[3:])
        action, self._memory = self.policy.predict(observations, self._memory, buffer.begins())
        return action

    def predict_clusters(self, observations: Observation) -> None:
        """Return ``None``: clusters are those of latent states, which one observation does not tell."""

    def goal_skill(self, observations: Observation, goals: Observation) -> None:
        """Return ``None``, as :meth:`predict_clusters`."""

    def _adopt_buffer(self, loaded: SkillReplayBuffer, path: object) -> None:
        super()._adopt_buffer(loaded, path)
        assert self.replay_buffer is not None
        if "sequence_length" in self.replay_buffer_kwargs:
            self.replay_buffer.sequence_length = self.replay_buffer_kwargs["sequence_length"]

    def _take_over(self, pretrained: SkillDDPG) -> None:
        assert isinstance(pretrained, SkillDreamer)
        # All but the heads of rewards, which the pre-training has not seen
        self.policy.world_model.load_state_dict(pretrained.policy.world_model.state_dict())

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_memory"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        names, tensors = super()._get_torch_save_params()
        return [*names, "policy.world_model.optimizer"], tensors


class CeSDDreamer(SkillDreamer, ConstrainedSkills):
    """
    CeSD in imagination: each skill has a value function of its own, and maximises the entropy of latent states in its cluster.

    The paper reports CeSD-Dreamer, but not how it was made; docs/dreamer.md lists the choices made here. For the arguments see
    :class:`SkillDreamer`; ``intrinsic_kwargs`` are those of :class:`~sb3_cesd.cesd.cesd.CeSDReward`.
    """

    ensemble_size = None


class APTDreamer(SkillDreamer):
    """APT in imagination, see :class:`SkillDreamer` and :class:`~sb3_cesd.methods.apt.APTReward`."""

    reward_class = APT.reward_class


class DIAYNDreamer(SkillDreamer):
    """DIAYN in imagination, see :class:`SkillDreamer` and :class:`~sb3_cesd.methods.diayn.DIAYNReward`."""

    reward_class = DIAYN.reward_class
    discrete_because = DIAYN.discrete_because
    rewards_single_states = True
