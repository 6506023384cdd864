import torch as th
from stable_baselines3.common.type_aliases import Schedule

from sb3_cesd.cesd.constraint import ClusterConstraint
from sb3_cesd.cesd.prototypes import Prototypes
from sb3_cesd.cesd.relabelling import CriticRelabelling
from sb3_cesd.common.torch_layers import one_hot
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples, one_pair_per_transition
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.encoders import Encoder
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy


class CeSDReward(IntrinsicReward):
    """
    Particle entropy within clusters of states, and the constraint that keeps skills and clusters together (paper, section 3).

    Until the constraint starts, skills explore with the particle entropy of all states, while clusters form. What they have
    seen then serves all skills, as transitions are relabelled.

    :param encoder: maps states to features
    :param prototypes: the clusters, one for each skill
    :param entropy: entropy reward within clusters
    :param constraint: constraint reward of each cluster
    :param relabelling: which critic heads learn from a transition
    :param n_skills: number of skills
    :param alpha: weight of the constraint reward
    :param lr_schedule: learning rate of encoder and prototypes
    :param prototype_learning_rate: constant learning rate of the prototypes instead
    :param optimizer_class: optimizer of both
    :param optimizer_kwargs: its arguments, excluding the learning rate
    """

    def __init__(
        self,
        encoder: Encoder,
        prototypes: Prototypes,
        entropy: ParticleEntropy,
        constraint: ClusterConstraint,
        relabelling: CriticRelabelling,
        n_skills: int,
        alpha: float,
        lr_schedule: Schedule,
        prototype_learning_rate: float | None,
        optimizer_class: type[th.optim.Optimizer],
        optimizer_kwargs: dict,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.prototypes = prototypes
        self.entropy = entropy
        self.constraint = constraint
        self.relabelling = relabelling
        self.n_skills = n_skills
        self.alpha = alpha
        self.prototype_learning_rate = prototype_learning_rate
        if any(True for _ in encoder.parameters()):
            self.encoder_optimizer = optimizer_class(encoder.parameters(), lr=lr_schedule(1), **optimizer_kwargs)  # type: ignore[call-arg]
        self.prototype_optimizer = optimizer_class(
            prototypes.parameters(),
            lr=lr_schedule(1) if prototype_learning_rate is None else prototype_learning_rate,  # type: ignore[call-arg]
            **optimizer_kwargs,
        )

    @property
    def phase(self) -> bool:
        """Whether skills are constrained to their clusters by now."""
        return self.constraint.is_on(self.progress_remaining, self.num_timesteps)

    def scheduled_optimizers(self) -> list[th.optim.Optimizer]:
        optimizers = super().scheduled_optimizers()
        if self.prototype_learning_rate is not None:
            optimizers.remove(self.prototype_optimizer)
        return optimizers

    def check_batch_size(self, batch_size: int) -> None:
        self.entropy.check_batch_size(batch_size)

    @th.no_grad()
    def predict_clusters(self, observations: th.Tensor) -> th.Tensor:
        return self.prototypes.predict(self.encoder(observations))

    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        if self.training:
            self._train_encoder(samples)

        with th.no_grad():
            features = self.encoder(samples.next_observations)  # (batch_size, features_dim)
        self.prototypes.normalize()
        scores = self.prototypes.scores(features)  # (batch_size, n_skills)
        clusters = self.prototypes.sample(scores)
        if self.phase:
            entropy, large = self.entropy(features, clusters, self.n_skills)
            bonus = self.alpha * self.constraint(clusters, samples.skills, self.n_skills)[clusters] * large
            pairs = self.relabelling.pairs(samples.skills, clusters, entropy, bonus, self.n_skills)
            actor_skills = self.relabelling.actor_skills(samples.skills, clusters, self.n_skills)
        else:
            # Exploration: each skill on its own transitions, with the entropy of the whole batch (as APT)
            entropy, _ = self.entropy(features, th.zeros_like(clusters), self.n_skills)
            bonus = th.zeros_like(entropy)
            pairs = one_pair_per_transition(samples.skills, samples.skills, entropy[:, None])
            actor_skills = samples.skills
        if self.training:
            self._train_prototypes(samples, scores)

        self._log_rewards(samples.skills, clusters, entropy, bonus)
        return samples._replace(
            rewards=(entropy + bonus)[:, None],
            clusters=clusters,
            actor_skills=actor_skills,
            pairs=pairs,
        )

    def _train_encoder(self, samples: SkillReplayBufferSamples) -> None:
        loss = self.encoder.loss(samples)
        if loss is None:
            return
        self.encoder_optimizer.zero_grad()
        loss.backward()
        self.encoder_optimizer.step()
        self.logs["train/encoder_loss"] = loss.detach()

    def _train_prototypes(self, samples: SkillReplayBufferSamples, scores: th.Tensor) -> None:
        predicted = scores
        if self.prototypes.swap == "next":
            with th.no_grad():
                features = self.encoder(samples.observations)
            predicted = self.prototypes.scores(features)
        loss = self.prototypes.loss(predicted, scores)
        self.prototype_optimizer.zero_grad()
        loss.backward()
        self.prototype_optimizer.step()
        self.logs["train/prototype_loss"] = loss.detach()

    def _log_rewards(self, skills: th.Tensor, clusters: th.Tensor, entropy: th.Tensor, bonus: th.Tensor) -> None:
        cluster_shares = one_hot(clusters, self.n_skills, th.float32).mean(dim=0)
        skill_shares = one_hot(skills, self.n_skills, th.float32).mean(dim=0)
        self.logs["intrinsic/reward"] = (entropy + bonus).mean()
        self.logs["intrinsic/entropy"] = entropy.mean()
        self.logs["intrinsic/constraint"] = bonus.mean()
        self.logs["intrinsic/empty_clusters"] = (cluster_shares == 0).sum().float()
        self.logs["intrinsic/agreement"] = (skills == clusters).float().mean()
        self.logs["clusters/share"] = cluster_shares
        self.logs["skills/share"] = skill_shares
