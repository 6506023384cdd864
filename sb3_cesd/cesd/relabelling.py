import torch as th

from sb3_cesd.cesd.type_aliases import SkillPairs
from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import ActorSkills, CriticPairs
from sb3_cesd.common.cuda import shapes_may_vary


class CriticRelabelling:
    """
    Choose which critic heads learn from a transition, and with which reward.

    - ``"cluster"``: only the head of its cluster, target action by the skill that collected it (the released code).
      A head never sees a low reward for leaving its cluster.
    - ``"union"``: the head of its cluster, and the head of the collecting skill with ``kappa`` times the entropy reward if
      that is another one (with ``kappa = 0``: a reward of 0 outside the cluster, as the paper's desired policy requires).
    - ``"hindsight"``: these two and ``n_random_heads`` heads drawn uniformly, which is possible because rewards are computed
      when sampling.

    In the last two, the target action is that of the skill whose head learns.

    :param critic: one of the three
    :param n_random_heads: random heads per transition in ``"hindsight"``
    :param kappa: fraction of the entropy reward for heads other than that of the cluster
    :param actor: skill for which the actor is improved: the ``"skill"`` that collected the state (the released code), a
        ``"random"`` one, or that of its ``"cluster"``
    :param actor_probability: probability with which ``actor`` replaces the collecting skill
    """

    def __init__(
        self,
        critic: CriticPairs = "hindsight",
        n_random_heads: int = 2,
        kappa: float = 0.0,
        actor: ActorSkills = "random",
        actor_probability: float = 0.5,
    ) -> None:
        check_arguments("CriticRelabelling", locals())
        self.critic = critic
        self.n_random_heads = n_random_heads
        self.kappa = kappa
        self.actor = actor
        self.actor_probability = actor_probability

    def pairs(
        self,
        skills: th.Tensor,
        clusters: th.Tensor,
        entropy: th.Tensor,
        bonus: th.Tensor,
        n_skills: int,
    ) -> SkillPairs:
        """
        Choose the (transition, skill) pairs that the critic learns from.

        :param skills: skill that collected each transition, shape ``(batch_size,)``
        :param clusters: cluster of each transition, shape ``(batch_size,)``
        :param entropy: entropy reward of each transition, shape ``(batch_size,)``
        :param bonus: constraint reward of each transition for its own cluster, shape ``(batch_size,)``
        :param n_skills: number of skills
        :return: the critic's (transition, skill) pairs
        """
        on_cluster = (entropy + bonus)[:, None]  # (batch_size, 1)
        if self.critic == "cluster":
            return SkillPairs.one_per_transition(clusters, skills, on_cluster)

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
        pairs = SkillPairs(rows, trained, trained, rewards.reshape(-1, 1), weights.reshape(-1, 1))
        if shapes_may_vary(skills.device):
            # Drop the padding, which costs as much as pairs that count
            counts = pairs.weights.squeeze(1) > 0
            pairs = SkillPairs(*(entry[counts] for entry in pairs))
        return pairs

    def actor_skills(self, skills: th.Tensor, clusters: th.Tensor, n_skills: int) -> th.Tensor:
        """
        Choose the skills for which the actor is improved.

        :param skills: skill that collected each transition, shape ``(batch_size,)``
        :param clusters: cluster of each transition, shape ``(batch_size,)``
        :param n_skills: number of skills
        :return: skill for which the actor is improved, shape ``(batch_size,)``
        """
        if self.actor == "skill":
            return skills
        other = clusters if self.actor == "cluster" else th.randint_like(skills, n_skills)
        replace = th.rand(skills.shape, device=skills.device) < self.actor_probability
        return th.where(replace, other, skills)
