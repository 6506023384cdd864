import math
from collections.abc import Sequence
from typing import Any, Literal

import torch as th
from torch import nn

from sb3_cesd.common.arguments import NonNegative, Positive, checked
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import MakeOptimizer
from sb3_cesd.intrinsic.dynamics import DisplacementReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes

#: Arguments of METRA (Park et al., 2024) and its relatives
METRA_DEFAULTS: dict[str, Any] = {
    "skill_duration": None,
    "skill_type": "sphere",
    "skill_dim": 2,
    "tau": 0.005,
    "n_steps": 1,
    "ent_coef": "auto_0.01",
}


class METRAReward(DisplacementReward):
    """
    ``(phi(s') - phi(s)) . z`` with features phi in which an environment step has a length of at most 1 (Park et al., "METRA:
    Scalable Unsupervised RL with Metric-Aware Abstraction", 2024, Algorithm 1).

    The features maximise ``mean[(phi(s') - phi(s)) . z + lambda min(1 - |phi(s') - phi(s)|^2, slack)]`` over single steps, and
    the dual variable lambda follows the constraint by gradient descent on ``log(lambda) mean[min(..., slack)]``. Distances
    between features thus count the steps between states, and skills go as far as they can in different directions.

    :param net_arch: sizes of the hidden layers of phi
    :param lambda_init: initial value of lambda
    :param slack: slack of the constraint: a squared step gains nothing by staying further than this below its bound
    :param norm: ``"mean"`` averages the squared displacement over the dimensions of phi, as in the released code; ``"sum"`` is
        the formula of the paper
    :param scale: factor of the reward
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        net_arch: Sequence[int] = (256, 256),
        lambda_init: Positive = 30.0,
        slack: NonNegative = 1e-3,
        norm: Literal["mean", "sum"] = "mean",
        scale: Positive = 1.0,
    ) -> None:
        super().__init__(*sizes, net_arch=net_arch, scale=scale)
        self.slack = slack
        self.norm = norm
        self.log_lambda = nn.Parameter(th.tensor(math.log(lambda_init)))

    def set_optimizers(self, make_optimizer: MakeOptimizer) -> None:
        self.optimizer = make_optimizer(list(self.features.parameters()))
        self.dual_optimizer = make_optimizer([self.log_lambda])

    def bounds(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        """Compute the bounds of squared steps in feature space, shape ``(batch_size,)`` or a scalar."""
        return samples.observations.new_ones(())

    def losses(self, samples: SkillReplayBufferSamples) -> tuple[th.Tensor, th.Tensor]:
        """Compute the loss of the features and that of the dual variable."""
        displacements = self.step_displacements(samples)
        squares = displacements.square()
        squares = squares.mean(dim=1) if self.norm == "mean" else squares.sum(dim=1)
        # min(bound - |phi(s') - phi(s)|^2, slack), negative where steps exceed their bound
        penalties = (self.bounds(samples) - squares).clamp(max=self.slack)
        gains = self.progress(displacements, samples.skills) + self.log_lambda.detach().exp() * penalties
        mean_penalty = penalties.detach().mean()
        self.logs["intrinsic/penalty"] = mean_penalty
        return -gains.mean(), self.log_lambda * mean_penalty

    def update(self, samples: SkillReplayBufferSamples) -> None:
        loss, dual_loss = self.losses(samples)
        self.step(self.optimizer, loss)
        self.step(self.dual_optimizer, dual_loss)
        self.logs["train/intrinsic_loss"] = loss.detach()
        self.logs["intrinsic/lambda"] = self.log_lambda.detach().exp()


class METRA(SkillDDPG):
    """
    METRA, metric-aware abstraction (Park et al., 2024): skills that lead far apart, where distance is measured in steps.

    Its skills cover more of the state space than those of methods that only make skills distinguishable (in locomotion in
    particular). ``goal_skill`` finds the skill that leads to a goal: the direction from the features of a state to those of
    the goal.

    As published, skills are directions in two dimensions kept for an episode, and the policy is SAC's (``ent_coef``). The
    paper has 4 dimensions for the quadruped, 16 discrete skills for the half-cheetah, and one update per 32 steps (the
    released code makes 50 after 8 episodes of 200 steps): so does ``preset("published", ...)``, where they are spread evenly.

    Unlike in the released code, actions are uniformly random in the first ``learning_starts`` steps, and values are
    bootstrapped at time limits. To undo this, pass ``warm_up="policy"`` and
    ``replay_buffer_kwargs=dict(handle_timeout_termination=False)``.

    Paper: https://arxiv.org/abs/2310.08887. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`METRAReward`.
    """

    reward_class = METRAReward
    defaults = METRA_DEFAULTS
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {
            "net_arch": hidden_sizes,
            "lambda_init": Interval(1.0, 1000.0),
            "slack": Interval(1e-6, 1e-2),
            "norm": ["mean", "sum"],
        }
    }
