import warnings
from typing import Annotated, Any, ClassVar, Literal

import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback

from sb3_cesd.cesd.constraint import ClusterConstraint, CriticRelabelling
from sb3_cesd.cesd.policies import CeSDCnnPolicy, CeSDPolicy, EnsembleCritic, MlpPolicy
from sb3_cesd.common.arguments import NonNegative, PositiveInt, Range, build, check_value, checked
from sb3_cesd.common.torch_layers import one_hot
from sb3_cesd.common.type_aliases import SkillPairs, SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import ExtrinsicReward, IntrinsicReward, MakeOptimizer
from sb3_cesd.intrinsic.encoders import Encoder, make_encoder
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.intrinsic.prototypes import Prototypes
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import ENCODER, Interval, encoder_kwargs


class CeSDReward(IntrinsicReward):
    """
    Particle entropy within clusters of states, and a constraint that keeps each skill in its cluster (section 3 of the paper).

    Until the constraint starts, skills explore with the particle entropy of all states, while clusters form. Transitions are
    relabelled, so that those of the exploration then serve all skills.

    :param alpha: weight of the constraint reward
    :param encoder: state representation: ``"contrastive"``, ``"fourier"`` (random Fourier features), ``"icm"`` (intrinsic
        curiosity module), ``"identity"`` or ``"temporal"`` (distances measure time)
    :param encoder_kwargs: arguments of the encoder, see :data:`~sb3_cesd.intrinsic.encoders.ENCODERS`; for
        ``"contrastive"`` ``features_dim`` (16), ``net_arch`` ([256, 256]), ``temperature`` (0.5) and ``objective``
        ("infonce")
    :param distance_encoder: state representation in which the distances of the entropy are measured: ``"same"`` for that of
        the clusters, as published, or one of the above
    :param distance_encoder_kwargs: its arguments, not used with ``"same"``; for ``"temporal"`` ``features_dim`` (4),
        ``net_arch`` ([256, 256]), ``lambda_init`` (30), ``slack`` (0.001) and ``horizon`` (500)
    :param cluster_window: if above 1, moving averages are clustered instead of states: the cluster of a state is that of the
        mean observation over up to this many steps of its episode, ending with the state. All states of a gait then lie in
        one cluster, so that a skill can stay in it without standing still
    :param prototype_kwargs: arguments of :class:`~sb3_cesd.intrinsic.prototypes.Prototypes`: ``temperature`` (0.1),
        ``sinkhorn_temperature`` (0.03), ``sinkhorn_iterations`` (5), ``swap`` ("self"); and ``learning_rate``, a constant
        learning rate of their own
    :param entropy_kwargs: arguments of :class:`~sb3_cesd.intrinsic.particle_entropy.ParticleEntropy`: ``k`` (8),
        ``scale`` ("std"), ``clip`` (0.0005), ``aggregate`` ("mean"), ``log1p`` (False)
    :param constraint_kwargs: arguments of :class:`~sb3_cesd.cesd.constraint.ClusterConstraint`: ``lambda_`` (1), ``count``
        ("paper"), ``start`` (0.5, a fraction of the training budget; above 1 a number of environment steps),
        ``freeze_clusters`` (False)
    :param relabel_kwargs: arguments of :class:`~sb3_cesd.cesd.constraint.CriticRelabelling`: ``critic`` ("hindsight"),
        ``n_random_heads`` (2), ``kappa`` (0), ``actor`` ("random"), ``actor_probability`` (0.5)
    """

    fixed_by_save = ("encoder", "encoder_kwargs", "distance_encoder", "distance_encoder_kwargs", "cluster_window")

    encoder_optimizer: th.optim.Optimizer
    distance_optimizer: th.optim.Optimizer
    prototype_optimizer: th.optim.Optimizer

    @checked
    def __init__(
        self,
        *sizes: Any,
        alpha: NonNegative = 1.0,
        encoder: Literal["contrastive", "fourier", "icm", "identity", "temporal"] = "contrastive",
        encoder_kwargs: dict[str, Any] | None = None,
        distance_encoder: Literal["same", "contrastive", "fourier", "icm", "identity", "temporal"] = "same",
        distance_encoder_kwargs: dict[str, Any] | None = None,
        cluster_window: PositiveInt = 1,
        prototype_kwargs: Annotated[dict[str, Any] | None, Prototypes] = None,
        entropy_kwargs: Annotated[dict[str, Any] | None, ParticleEntropy] = None,
        constraint_kwargs: Annotated[dict[str, Any] | None, ClusterConstraint] = None,
        relabel_kwargs: Annotated[dict[str, Any] | None, CriticRelabelling] = None,
    ) -> None:
        super().__init__(*sizes)
        self.alpha = alpha
        self.average_window = cluster_window
        self.n_skills = self.skill_space.n_skills
        self.encoder = make_encoder("encoder", encoder, encoder_kwargs, *sizes)
        self.distance_encoder: Encoder | None = None
        if distance_encoder != "same":
            self.distance_encoder = make_encoder("distance_encoder", distance_encoder, distance_encoder_kwargs, *sizes)
        prototype_kwargs = dict(prototype_kwargs or {})
        self.prototype_learning_rate = prototype_kwargs.pop("learning_rate", None)
        check_value("learning_rate", self.prototype_learning_rate, Range(0, without=0), or_none=True)
        shapes = {"n_prototypes": self.n_skills, "features_dim": self.encoder.features_dim}
        self.prototypes = build("prototype_kwargs", Prototypes, prototype_kwargs, **shapes)
        self.entropy = build("entropy_kwargs", ParticleEntropy, entropy_kwargs)
        self.constraint = build("constraint_kwargs", ClusterConstraint, constraint_kwargs)
        self.relabelling = build("relabel_kwargs", CriticRelabelling, relabel_kwargs)
        #: Whether skills are already constrained to their clusters; set by the algorithm
        self.is_constrained = self.constraint.is_on(1.0, 0)

    def set_optimizers(self, make_optimizer: MakeOptimizer) -> None:
        for name, part in (("encoder", self.encoder), ("distance", self.distance_encoder), ("prototype", self.prototypes)):
            parameters = [] if part is None else list(part.parameters())
            if parameters:
                setattr(self, f"{name}_optimizer", make_optimizer(parameters))

    def own_learning_rates(self) -> dict[str, float]:
        return {} if self.prototype_learning_rate is None else {"prototype_optimizer": self.prototype_learning_rate}

    @property
    def clusters_learn(self) -> bool:
        return not (self.constraint.freeze_clusters and self.is_constrained)

    def update(self, samples: SkillReplayBufferSamples) -> None:
        loss = self.encoder.loss(self._clustered(samples)) if self.clusters_learn else None
        if loss is not None:
            self.step(self.encoder_optimizer, loss)
            self.logs["train/encoder_loss"] = loss.detach()
        loss = None if self.distance_encoder is None else self.distance_encoder.loss(samples)
        if loss is not None:
            self.step(self.distance_optimizer, loss)
            self.logs["train/distance_encoder_loss"] = loss.detach()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return self.relabel(samples).rewards.squeeze(1)

    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """Assign clusters and rewards to transitions; in training mode, also update the running statistics of distances."""
        skills = samples.skills  # S_pe, by the skill that collected each state
        with th.no_grad():
            # u, shape (batch_size, features_dim)
            clustered = self._clustered(samples)
            next_features = self.encoder(clustered.next_observations)
            predicts_next = self.clusters_learn and self.prototypes.swap == "next"
            features = self.encoder(clustered.observations) if predicts_next else next_features
            # z_clu ~ Categorical(p) with p_i = exp(u . c_i / tau) / sum_j exp(u . c_j / tau) (eq. 3)
            clusters = self.prototypes.sample(self.prototypes.similarities(next_features))  # S_clu
            positions = next_features if self.distance_encoder is None else self.distance_encoder(samples.next_observations)

        if self.is_constrained:
            # Entropy of each cluster (eq. 5), from distances ||u - NN_k(u)|| within it (eq. 6), u by the distance encoder
            entropy, large = self.entropy(positions, clusters, self.n_skills)
            # 1 / (|S_pe_i - S_clu_i| + lambda) for cluster i (eq. 9)
            constraint = self.constraint(clusters, skills, self.n_skills)[clusters]
            # r_cesd + alpha r_reg; clusters of k members or fewer get neither
            bonus = self.alpha * constraint * large
            pairs = self.relabelling.pairs(skills, clusters, entropy, bonus, self.n_skills)
            actor_skills = self.relabelling.actor_skills(skills, clusters, self.n_skills)
        else:
            # Exploration, before the constraint: each skill on its own transitions, with the entropy of the whole batch
            entropy, _ = self.entropy(positions)
            bonus = th.zeros_like(entropy)
            pairs = SkillPairs(None, skills, skills, entropy[:, None])
            actor_skills = skills

        self._log_rewards(skills, clusters, entropy, bonus)
        return samples._replace(
            rewards=(entropy + bonus)[:, None],
            pairs=pairs,
            actor_skills=actor_skills,
            clusters=clusters,
            features=features,
            next_features=next_features,
        )

    def update_clusters(self, samples: SkillReplayBufferSamples) -> None:
        """Update the prototypes by swapped prediction (eq. 4), unless they are frozen; the encoder does not learn from it."""
        if not self.clusters_learn:
            for name in ("train/encoder_loss", "train/prototype_loss"):
                self.logs.pop(name, None)
            return
        assert samples.features is not None and samples.next_features is not None
        self.prototypes.normalize()
        # L_proto = -sum_t sum_i q_i log p_i, with q of s' by Sinkhorn-Knopp (eq. 4)
        scores = self.prototypes.scores(samples.features)
        next_scores = scores if samples.next_features is samples.features else self.prototypes.scores(samples.next_features)
        loss = self.prototypes.loss(scores, next_scores)
        self.step(self.prototype_optimizer, loss)
        self.logs["train/prototype_loss"] = loss.detach()

    @th.no_grad()
    def predict_clusters(self, observations: th.Tensor) -> th.Tensor:
        return self.prototypes.predict(self.encoder(observations))

    def _clustered(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """Replace observations by their moving averages, if these are clustered."""
        if self.average_window == 1:
            return samples
        assert samples.average_observations is not None and samples.average_next_observations is not None
        return samples._replace(observations=samples.average_observations, next_observations=samples.average_next_observations)

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


class ConstrainedSkills(SkillDDPG):
    """What is learned with :class:`CeSDReward`, and an ensemble of critics: when the constraint starts, and heads with it."""

    critic: EnsembleCritic
    critic_target: EnsembleCritic
    intrinsic: CeSDReward | ExtrinsicReward
    #: Whether the constraint has started; it stays on when training continues, whatever the progress of the next ``learn``
    is_constrained: bool = False

    reward_class = CeSDReward
    discrete_because = "as each has a cluster and a critic head of its own"

    def _own_policy_kwargs(self) -> dict[str, Any]:
        return {**super()._own_policy_kwargs(), "is_task": self.reward == "extrinsic"}

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        if isinstance(self.intrinsic, CeSDReward):
            if self.intrinsic.constraint.is_on(self._current_progress_remaining, self.num_timesteps):
                self.is_constrained = True
            if self.is_constrained != self.intrinsic.is_constrained:
                self.intrinsic.is_constrained = self.is_constrained
                # A captured graph would go on as before
                self._update_runner.forget()
            if self.policy.encoder is not None:
                # Clusters dissolve when the features that they are made of change under the skills that keep to them
                self.policy.encoder.is_frozen = self.is_constrained and self.intrinsic.constraint.start > 0
            # Skills explore with the shared value; heads learn to differ from it once the constraint has started
            for critic in (self.critic, self.critic_target):
                critic.use_heads = self.is_constrained or not critic.shared_value
        super().train(gradient_steps, batch_size)

    def _setup_learn(  # type: ignore[override]
        self, total_timesteps: int, callback: MaybeCallback = None, reset_num_timesteps: bool = True, *args: Any
    ) -> tuple[int, BaseCallback]:
        self.is_constrained = self.is_constrained and not reset_num_timesteps
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *args)


class CeSD(ConstrainedSkills):
    """
    Constrained Ensemble exploration for Skill Discovery (CeSD).

    Learns ``n_skills`` distinct behaviours without rewards: prototypes cluster the states, each skill has its own value
    function and maximises the entropy within its cluster, and a constraint keeps skills in their clusters.

    Paper: Bai et al., "Constrained Ensemble Exploration for Unsupervised Skill Discovery", 2024,
    https://arxiv.org/abs/2405.16030; equations and Algorithm 1 below are those of the paper. The method departs from the
    released code (https://github.com/Baichenjia/CeSD) where this performed better: skills first explore with a shared value
    function, and are constrained to their clusters later. docs/departures.md lists all departures and how to undo them.

    For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`; ``intrinsic_kwargs`` are those of
    :class:`CeSDReward`, and ``policy_kwargs`` those of :class:`~sb3_cesd.cesd.policies.CeSDPolicy`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "MultiInputPolicy": MlpPolicy,
        "CnnPolicy": CeSDCnnPolicy,
        "CeSDPolicy": CeSDPolicy,
    }
    policy: CeSDPolicy
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {
            **ENCODER,
            "distance_encoder": ["same", "temporal"],
            "distance_encoder_kwargs": lambda drawn: encoder_kwargs(drawn, "distance_encoder"),
            "alpha": Interval(0.01, 10.0),
            "cluster_window": [1, 50],
            "prototype_kwargs": {
                "temperature": Interval(0.05, 0.2),
                "sinkhorn_temperature": Interval(0.02, 0.1),
                "sinkhorn_iterations": Interval(3, 6, log=False),
                "swap": ["next", "self"],
            },
            "relabel_kwargs": {
                "critic": ["cluster", "union", "hindsight"],
                "kappa": [0.0, 0.3],
                "actor": ["skill", "random", "cluster"],
            },
            "constraint_kwargs": {"count": ["released", "paper"], "start": [0.0, 0.5], "freeze_clusters": [False, True]},
        }
    }

    def _make_intrinsic(self) -> IntrinsicReward:
        intrinsic = super()._make_intrinsic()
        if isinstance(intrinsic, CeSDReward) and intrinsic.entropy.k * self.n_skills >= self.batch_size:
            warnings.warn(
                f"Clusters of k={intrinsic.entropy.k} states of a batch or fewer get no reward, and batch_size / n_skills = "
                f"{self.batch_size // self.n_skills}: raise batch_size, or lower n_skills, or k in entropy_kwargs."
            )
        return intrinsic

    @classmethod
    def convert_hyperparams(cls, drawn: dict[str, Any]) -> dict[str, Any]:
        # Clusters have to learn before they are frozen
        return super().convert_hyperparams({**drawn, "freeze_clusters": drawn["start"] > 0 and drawn["freeze_clusters"]})
