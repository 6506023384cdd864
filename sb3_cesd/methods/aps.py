from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import torch as th
from torch.nn import functional as F

from sb3_cesd.common.arguments import build, checked
from sb3_cesd.common.skill_clock import SkillTurns
from sb3_cesd.common.skills import SkillName
from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import ExtrinsicReward, IntrinsicReward
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.policies import SUCCESSOR_POLICIES, SuccessorPolicy
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes


class APSReward(IntrinsicReward):
    """
    ``log(1 + distance of phi(s') to its neighbours) + z . phi(s') / |phi(s')|``: particle entropy of learned features phi and
    their agreement with the skill (Liu and Abbeel, "APS: Active Pretraining with Successor Features", 2021).

    The features maximise the second term, the likelihood of the skill under a von Mises-Fisher distribution. As in URLB, they
    learn from a batch before its rewards are computed.

    :param net_arch: sizes of the hidden layers of phi
    :param entropy_kwargs: arguments of :class:`~sb3_cesd.intrinsic.particle_entropy.ParticleEntropy`; here ``k`` is 12,
        ``clip`` 0.0001, ``scale`` "mean" and ``log1p`` true by default
    """

    fixed_by_save = ("net_arch",)

    @checked
    def __init__(
        self,
        *sizes: Any,
        net_arch: Sequence[int] = (256, 256),
        entropy_kwargs: Annotated[dict[str, Any] | None, ParticleEntropy] = None,
    ) -> None:
        super().__init__(*sizes)
        self.features = create_orthogonal_mlp(self.obs_dim, self.skill_space.dim, net_arch)
        entropy_kwargs = {"k": 12, "clip": 0.0001, "scale": "mean", "log1p": True, **(entropy_kwargs or {})}
        self.entropy = build("entropy_kwargs", ParticleEntropy, entropy_kwargs)

    def agreement(self, features: th.Tensor, skills: th.Tensor) -> th.Tensor:
        """Compute ``z . phi / |phi|``, shape ``(n,)``."""
        return (F.normalize(features, dim=1) * self.skill_space.directions(skills, features.dtype)).sum(dim=1)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return -self.agreement(self.features(samples.next_observations), samples.skills).mean()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        features = self.features(samples.next_observations)
        entropy, _ = self.entropy(features)
        agreement = self.agreement(features, samples.skills)
        self.logs["intrinsic/entropy"] = entropy.mean()
        self.logs["intrinsic/agreement"] = agreement.mean()
        return entropy + agreement

    def goal_skill(self, observations: th.Tensor, goals: th.Tensor) -> th.Tensor:
        return self.skill_space.along(self.features(goals))

    @th.no_grad()
    def regress(self, samples: SkillReplayBufferSamples) -> th.Tensor | None:
        """Find the skill, as stored, whose features explain the rewards of a task; ``None`` if these are all zero."""
        # In float64 and on the CPU, where the solver allows linearly dependent features
        features = F.normalize(self.features(samples.observations), dim=1).double().cpu()
        rewards = samples.rewards.double().cpu()
        weights = th.linalg.lstsq(features, rewards, driver="gelsd").solution.T
        return self.skill_space.along(weights.float())[0] if weights.any() else None


class APSTask(ExtrinsicReward):
    """
    The reward of a task, along with the features that pre-training learned.

    :param pretrained: the intrinsic reward; its features are frozen
    """

    def __init__(self, pretrained: APSReward) -> None:
        super().__init__(pretrained.obs_dim, pretrained.action_dim, pretrained.skill_space)
        self.pretrained = pretrained.requires_grad_(False)


class APS(SkillDDPG):
    """
    Active Pretraining with Successor features (Liu and Abbeel, 2021): skills explore, each where learned features point in its
    direction.

    The critic predicts the successor features of a skill, whose product with the skill is its value. As the reward is taken to
    be linear in the features, the skill for a task is found without trial and error: in fine-tuning with ``skill="best"``, all
    skills act for the first ``learning_starts`` steps, then a least-squares regression of the reward on the features yields
    the skill that learns the task. (URLB's code repeats that every 5 steps, after 4096.) This works as far as the reward
    depends on the state alone.

    As published, skills are directions in ten dimensions, drawn anew every 5 steps.

    Paper: https://arxiv.org/abs/2108.13956. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`APSReward`.
    """

    policy_aliases = SUCCESSOR_POLICIES
    policy: SuccessorPolicy

    reward_class = APSReward
    defaults = {"skill_duration": 5, "skill_type": "sphere", "skill_dim": 10}  # noqa: RUF012
    search_space = {  # noqa: RUF012
        "skill_dim": [2, 5, 10],
        "intrinsic_kwargs": {"net_arch": hidden_sizes, "entropy_kwargs": {"k": Interval(3, 24)}},
    }
    #: Number of transitions for the regression that finds the skill of a task
    n_regression: ClassVar[int] = 4096

    def _make_intrinsic(self) -> IntrinsicReward:
        if self.reward != "extrinsic":
            return super()._make_intrinsic()
        sizes = (self.obs_dim, self.action_dim, self.skill_space)
        return APSTask(build("intrinsic_kwargs", APSReward, self.intrinsic_kwargs, *sizes))

    def _take_over(self, pretrained: SkillDDPG) -> None:
        assert isinstance(self.intrinsic, APSTask)
        self.intrinsic.pretrained.load_state_dict(pretrained.intrinsic.state_dict())

    def _choose_skill(self, turns: SkillTurns) -> SkillName:
        buffer = self.replay_buffer
        assert isinstance(self.intrinsic, APSTask) and buffer is not None
        if not buffer.full and buffer.size() * buffer.n_envs < turns.n_done:
            return super()._choose_skill(turns)  # of a model that was loaded without the warm-up
        samples = buffer.sample(self.n_regression, self._vec_normalize_env)
        skill = self.intrinsic.pretrained.regress(samples._replace(observations=self._states_of(samples.observations)))
        if skill is None:
            return super()._choose_skill(turns)
        turns.chosen_by = "features"
        return self.skill_space.name_of(skill.cpu().numpy())
