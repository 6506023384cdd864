from typing import Any

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import ContrastiveObjective
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.methods.apt import APTReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import draw_entropy, hidden_sizes, pop


class CICReward(APTReward):
    """
    Particle entropy of features that identify the skill (Laskin et al., "Unsupervised Reinforcement Learning with Contrastive
    Intrinsic Control", 2022).

    As in the released code, the reward is the entropy alone; skills matter through the contrastive representation.

    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param skill_space: space of the skills
    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of the encoder and both heads, ``[1024, 1024]`` by default
    :param temperature: softmax temperature of the contrastive loss
    :param objective: form of that loss, ``"released"`` or ``"infonce"``, see
        :class:`~sb3_cesd.intrinsic.encoders.ContrastiveEncoder`
    :param entropy_kwargs: arguments of :class:`~sb3_cesd.intrinsic.particle_entropy.ParticleEntropy`; here ``k`` is 16,
        ``scale`` "variance" and ``clip`` 0.0005 by default, the rest as in APT
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: int = 64,
        net_arch: list[int] | None = None,
        temperature: float = 0.5,
        objective: ContrastiveObjective = "released",
        entropy_kwargs: dict[str, Any] | None = None,
    ) -> None:
        check_arguments("CICReward", locals())
        encoder_kwargs = {
            "features_dim": features_dim,
            "net_arch": net_arch,
            "temperature": temperature,
            "objective": objective,
        }
        entropy_kwargs = {"k": 16, "scale": "variance", "clip": 0.0005, **(entropy_kwargs or {})}
        super().__init__(obs_dim, action_dim, skill_space, "contrastive", encoder_kwargs, entropy_kwargs)


class CIC(SkillDDPG):
    """
    Contrastive Intrinsic Control (Laskin et al., 2022): particle entropy of features that identify the skill.

    As in the released code, skills are vectors drawn uniformly from [0, 1]^64; ``skill_type="discrete"`` makes them one-hot.

    Paper: https://arxiv.org/abs/2202.00161. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`CICReward`: ``features_dim`` (64), ``net_arch`` ([1024, 1024]), ``temperature``
    (0.5), ``objective`` ("released") and ``entropy_kwargs``.
    """

    reward_class = CICReward
    defaults = {"skill_type": "unit_cube", "skill_dim": 64}  # noqa: RUF012

    @classmethod
    def draw_hyperparams(cls, trial: Any) -> dict[str, Any]:
        return {
            **super().draw_hyperparams(trial),
            **draw_entropy(trial),
            "features_dim": trial.suggest_categorical("features_dim", [16, 32, 64]),
            "temperature": trial.suggest_float("temperature", 0.1, 1.0, log=True),
        }

    @classmethod
    def convert_hyperparams(cls, drawn: dict[str, Any]) -> dict[str, Any]:
        params = super().convert_hyperparams(drawn)
        own = {
            "net_arch": hidden_sizes(params),
            **pop(params, "features_dim", "temperature"),
            "entropy_kwargs": pop(params, "k", "scale", "log1p"),
        }
        return {"intrinsic_kwargs": own, **params}
