from typing import Any

from sb3_cesd.intrinsic.apt import APTReward


class CICReward(APTReward):
    """
    Particle entropy of features that tell which skill was followed (Laskin et al., "Unsupervised Reinforcement Learning with
    Contrastive Intrinsic Control", 2022).

    As in the released code, the reward is the entropy alone; skills matter through the contrastive representation. There the
    skills are vectors, drawn uniformly from [0, 1]^64; here they are one-hot, as for all methods of this package.

    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param n_skills: number of skills
    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of the encoder and both heads, ``[1024, 1024]`` by default
    :param temperature: softmax temperature of the contrastive loss
    :param entropy_kwargs: arguments of :class:`~sb3_cesd.intrinsic.particle_entropy.ParticleEntropy`; here ``k`` is 16
        and ``clip`` 0.0005 by default, the rest as in APT
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        n_skills: int,
        features_dim: int = 64,
        net_arch: list[int] | None = None,
        temperature: float = 0.5,
        entropy_kwargs: dict[str, Any] | None = None,
    ) -> None:
        encoder_kwargs = {"features_dim": features_dim, "net_arch": net_arch, "temperature": temperature}
        entropy_kwargs = {"k": 16, "clip": 0.0005, **(entropy_kwargs or {})}
        super().__init__(obs_dim, action_dim, n_skills, "contrastive", encoder_kwargs, entropy_kwargs)
