from collections.abc import Sequence
from typing import Annotated, Any

from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.methods.apt import APTReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import ENTROPY, Interval, hidden_sizes


class CICReward(APTReward):
    """
    Particle entropy of features that identify the skill (Laskin et al., "Unsupervised Reinforcement Learning with Contrastive
    Intrinsic Control", 2022).

    As in the released code, the reward is the entropy alone; skills matter through the contrastive representation.

    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of the encoder and both heads
    :param temperature: softmax temperature of the contrastive loss
    :param objective: form of that loss, ``"released"`` or ``"infonce"``, see
        :class:`~sb3_cesd.intrinsic.encoders.ContrastiveEncoder`
    :param entropy_kwargs: arguments of :class:`~sb3_cesd.intrinsic.particle_entropy.ParticleEntropy`; here ``k`` is 8,
        ``scale`` "variance" and ``clip`` 0.0005 by default, the rest as in APT
    """

    def __init__(
        self,
        *sizes: Any,
        features_dim: int = 64,
        net_arch: Sequence[int] = (256, 256),
        temperature: float = 0.5,
        objective: str = "released",
        entropy_kwargs: Annotated[dict[str, Any] | None, ParticleEntropy] = None,
    ) -> None:
        encoder_kwargs = dict(features_dim=features_dim, net_arch=net_arch, temperature=temperature, objective=objective)
        entropy_kwargs = {"k": 8, "scale": "variance", "clip": 0.0005, **(entropy_kwargs or {})}
        super().__init__(*sizes, encoder="contrastive", encoder_kwargs=encoder_kwargs, entropy_kwargs=entropy_kwargs)


class CIC(SkillDDPG):
    """
    Contrastive Intrinsic Control (Laskin et al., 2022): particle entropy of features that identify the skill.

    As in the released code, skills are vectors drawn uniformly from [0, 1]^64; ``skill_type="discrete"`` makes them one-hot.

    Paper: https://arxiv.org/abs/2202.00161. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`CICReward`.
    """

    reward_class = CICReward
    defaults = {"skill_type": "unit_cube", "skill_dim": 64}  # noqa: RUF012
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {
            "net_arch": hidden_sizes,
            "features_dim": [16, 32, 64],
            "temperature": Interval(0.1, 1.0),
            "entropy_kwargs": ENTROPY,
        }
    }
