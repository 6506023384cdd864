"""The constraint that keeps skills in their clusters, and the (transition, skill) pairs that learn from it."""

from typing import Literal

import torch as th

from sb3_cesd.common.arguments import NonNegative, NonNegativeInt, Positive, Share, checked
from sb3_cesd.common.cuda import shapes_may_vary
from sb3_cesd.common.torch_layers import one_hot
from sb3_cesd.common.type_aliases import SkillPairs


class ClusterConstraint:
    """
    The constraint reward ``1 / (count_i + lambda)`` of cluster i, high when skills stay in their own clusters (eq. 9 of the
    CeSD paper).

    :param lambda_: added to the count
    :param start: when the constraint starts; until then skills explore without it. Up to 1 a fraction of the training budget,
        above 1 a number of environment steps. Once started, it stays on if training is continued
    :param count: ``"paper"`` counts the states that skill i collected outside cluster i, ``|S_pe_i - S_clu_i|``;
        ``"released"`` the members of cluster i that another skill collected, ``|S_clu_i - S_pe_i|`` (the released code)
    :param freeze_clusters: whether encoder and prototypes stop learning when the constraint starts. Clusters then stay those
        of the explored states; otherwise they follow what skills do in them
    :raises ValueError: if clusters are to be frozen before they have learned
    """

    @checked
    def __init__(
        self,
        lambda_: Positive = 1.0,
        count: Literal["paper", "released"] = "paper",
        start: NonNegative = 0.5,
        freeze_clusters: bool = False,
    ) -> None:
        if freeze_clusters and start == 0:
            raise ValueError("freeze_clusters=True with start=0 leaves no time to learn clusters: set start above 0.")
        self.lambda_ = lambda_
        self.count = count
        self.start = start
        self.freeze_clusters = freeze_clusters

    def is_on(self, progress_remaining: float, num_timesteps: int) -> bool:
        """Return whether the constraint has started; the remaining progress falls from 1 to 0 in training."""
        return (1.0 - progress_remaining if self.start <= 1 else num_timesteps) >= self.start

    def __call__(self, clusters: th.Tensor, skills: th.Tensor, n_skills: int) -> th.Tensor:
        """Compute the reward of each cluster, shape ``(n_skills,)``, given cluster and skill of states, ``(batch_size,)``."""
        counted = clusters if self.count == "released" else skills
        foreign = (clusters != skills).float()[:, None]  # (batch_size, 1)
        counts = (one_hot(counted, n_skills, th.float32) * foreign).sum(dim=0)
        return 1.0 / (counts + self.lambda_)


class CriticRelabelling:
    """
    Choose which critic heads learn from a transition, and with which reward.

    - ``"cluster"``: only the head of its cluster, target action by the skill that collected it (the released code).
      A head never sees a low reward for leaving its cluster.
    - ``"paper"``: only the head of its cluster, target action by the skill of that head (eq. 1).
    - ``"union"``: the head of its cluster, and the head of the collecting skill with ``kappa`` times the entropy reward if
      that is another one (with ``kappa = 0``: a reward of 0 outside the cluster, as the paper's desired policy requires).
    - ``"hindsight"``: these two and ``n_random_heads`` heads drawn uniformly, which is possible because rewards are computed
      when sampling.

    In the last two, too, the target action is that of the skill whose head learns.

    :param critic: one of these
    :param n_random_heads: random heads per transition in ``"hindsight"``
    :param kappa: fraction of the entropy reward for heads other than that of the cluster
    :param actor: skill for which the actor is improved: the ``"skill"`` that collected the state (the released code), a
        ``"random"`` one, or that of its ``"cluster"``
    :param actor_probability: probability with which ``actor`` replaces the collecting skill
    """

    @checked
    def __init__(
        self,
        critic: Literal["cluster", "paper", "union", "hindsight"] = "hindsight",
        n_random_heads: NonNegativeInt = 2,
        kappa: NonNegative = 0.0,
        actor: Literal["skill", "random", "cluster"] = "random",
        actor_probability: Share = 0.5,
    ) -> None:
        self.critic = critic
        self.n_random_heads = n_random_heads
        self.kappa = kappa
        self.actor = actor
        self.actor_probability = actor_probability

    def pairs(self, skills: th.Tensor, clusters: th.Tensor, entropy: th.Tensor, bonus: th.Tensor, n_skills: int) -> SkillPairs:
        """Choose the pairs that the critic learns from; ``bonus`` is the constraint reward, all of shape ``(batch_size,)``."""
        on_cluster = (entropy + bonus)[:, None]  # (batch_size, 1)
        if self.critic in ("cluster", "paper"):
            return SkillPairs(None, clusters, skills if self.critic == "cluster" else clusters, on_cluster)

        n_random = self.n_random_heads if self.critic == "hindsight" else 0
        batch_size = len(skills)
        random_skills = th.randint(n_skills, (n_random, batch_size), device=skills.device)
        trained = th.cat([clusters[None], skills[None], random_skills])  # (2 + n_random, batch_size)
        weights = th.ones(trained.shape, device=skills.device)
        weights[1] = (skills != clusters).float()
        off_cluster = self.kappa * entropy
        rewards = th.where(trained == clusters, on_cluster.T, off_cluster)
        rows = th.arange(batch_size, device=skills.device).repeat(len(trained))
        trained = trained.flatten()
        rewards, weights = rewards.reshape(-1, 1), weights.reshape(-1, 1)
        if shapes_may_vary(skills.device):
            # Drop the padding, which costs as much as pairs that count
            counts = weights.squeeze(1).nonzero().squeeze(1)
            trained = trained[counts]
            return SkillPairs(rows[counts], trained, trained, rewards[counts])
        return SkillPairs(rows, trained, trained, rewards, weights)

    def actor_skills(self, skills: th.Tensor, clusters: th.Tensor, n_skills: int) -> th.Tensor:
        """Choose the skill for which the actor is improved, all of shape ``(batch_size,)``."""
        if self.actor == "skill":
            return skills
        other = clusters if self.actor == "cluster" else th.randint_like(skills, n_skills)
        replace = th.rand(skills.shape, device=skills.device) < self.actor_probability
        return th.where(replace, other, skills)
