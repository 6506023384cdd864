from collections.abc import Sequence
from typing import Annotated, Any

import torch as th

from sb3_cesd.common.arguments import Positive, Range, checked
from sb3_cesd.common.ensembles import RoutedEnsembleMLP
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, one_hidden_size


class DisagreementReward(IntrinsicReward):
    """
    Variance of the predictions of several dynamics models, ``mean_d Var_i g_i(s, a)_d`` (Pathak et al., "Self-Supervised
    Exploration via Disagreement", 2019): high where the models have not seen enough to agree.

    The models predict the state itself, the variance is the unbiased one, and the models learn from a batch before its rewards
    are computed. As in URLB, each model minimises the mean Euclidean error ``||s' - g_i(s, a)||``, and all of them learn from
    the same batches, so that they only differ by their initial weights (PyTorch's default initialisation). The code of the
    paper minimises squared errors, and each model leaves out a fifth of a batch.

    :param n_models: number of models, at least 2
    :param net_arch: sizes of the hidden layers of each model
    :param scale: factor of the reward
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        n_models: Annotated[int, Range(2)] = 5,
        net_arch: Sequence[int] = (256,),
        scale: Positive = 1.0,
    ) -> None:
        super().__init__(*sizes)
        self.scale = scale
        self.models = RoutedEnsembleMLP(n_models, self.obs_dim + self.action_dim, self.obs_dim, net_arch)

    def predictions(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        """Predict the next states by each model, shape ``(n_models, batch_size, obs_dim)``."""
        return self.models.forward_dense(th.cat([samples.observations, samples.actions], dim=1))

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return (samples.next_observations - self.predictions(samples)).norm(dim=2).mean()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return self.scale * self.predictions(samples).var(dim=0).mean(dim=1)


class Disagreement(SkillDDPG):
    """
    Self-supervised exploration via disagreement (Pathak et al., 2019): take actions about whose outcome several models
    disagree.

    The reward is the same for all skills. It explores as :class:`~sb3_cesd.methods.icm.ICM` does, but loses interest in noise:
    once the models have seen enough of it, they all predict the same mean.

    Paper: https://arxiv.org/abs/1906.04161. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`DisagreementReward`.
    """

    reward_class = DisagreementReward
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {"net_arch": one_hidden_size, "n_models": Interval(3, 7, log=False), "scale": Interval(0.1, 100.0)}
    }
