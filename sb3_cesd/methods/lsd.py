from collections.abc import Sequence

import torch as th
from torch import nn

from sb3_cesd.common.torch_layers import create_spectral_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.dynamics import DisplacementReward
from sb3_cesd.methods.metra import METRA_DEFAULTS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes


class LSDReward(DisplacementReward):
    """
    ``(phi(s') - phi(s)) . z`` with 1-Lipschitz features phi (Park et al., "Lipschitz-constrained Unsupervised Skill
    Discovery", 2022).

    The features maximise its mean over single steps, and spectral normalisation of every layer keeps them from moving further
    than the state does, ``|phi(s') - phi(s)| <= |s' - s|``. A skill therefore has to change the state a lot, as measured on
    the scale of the observations.

    :param net_arch: sizes of the hidden layers of phi
    :param scale: factor of the reward
    """

    def make_features(self, net_arch: Sequence[int]) -> nn.Sequential:
        return create_spectral_mlp(self.obs_dim, self.skill_space.dim, net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return -self.progress(self.step_displacements(samples), samples.skills).mean()


class LSD(SkillDDPG):
    """
    Lipschitz-constrained unsupervised Skill Discovery (Park et al., 2022): skills that change the state as much as they can,
    in different directions.

    It finds dynamic skills where those of methods that only make skills distinguishable stand still. As with METRA,
    ``goal_skill`` finds the skill that leads to a goal. Distances are those between observations, so normalise them.

    Skills and policy are those of :class:`~sb3_cesd.methods.metra.METRA`, whose code its authors use to compare both; the
    first release learned on-policy, from hundreds of millions of steps.

    Paper: https://arxiv.org/abs/2202.00914. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`LSDReward`.
    """

    reward_class = LSDReward
    defaults = METRA_DEFAULTS
    search_space = {"intrinsic_kwargs": {"net_arch": hidden_sizes, "scale": Interval(0.1, 100.0)}}  # noqa: RUF012
