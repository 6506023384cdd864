from typing import Any

from sb3_cesd.common.checks import build
from sb3_cesd.common.rules import shown
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.intrinsic.encoders.base import Encoder
from sb3_cesd.intrinsic.encoders.contrastive import ContrastiveEncoder
from sb3_cesd.intrinsic.encoders.fixed import FourierEncoder, IdentityEncoder
from sb3_cesd.intrinsic.encoders.icm import ICMEncoder
from sb3_cesd.intrinsic.encoders.temporal import TemporalEncoder

#: Name of an encoder -> its class
ENCODERS: dict[str, type[Encoder]] = {
    "contrastive": ContrastiveEncoder,
    "fourier": FourierEncoder,
    "icm": ICMEncoder,
    "identity": IdentityEncoder,
    "temporal": TemporalEncoder,
}


def make_encoder(
    name: str,
    obs_dim: int,
    action_dim: int,
    skill_space: SkillSpace,
    kwargs: dict[str, Any],
    argument: str = "encoder",
) -> Encoder:
    """
    Make an encoder by its name.

    :param name: ``"contrastive"``, ``"fourier"``, ``"icm"``, ``"identity"`` or ``"temporal"``
    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param skill_space: space of the skills
    :param kwargs: arguments of the encoder
    :param argument: name of the argument that chose it, for messages
    :return: the encoder
    :raises ValueError: if there is no such encoder or argument
    """
    if not isinstance(name, str) or name not in ENCODERS:
        raise ValueError(f"Unknown {argument} {shown(name)}: choose one of {', '.join(map(repr, ENCODERS))}.")
    given = {"obs_dim": obs_dim, "action_dim": action_dim, "skill_space": skill_space}
    return build(f"{argument}_kwargs", ENCODERS[name], kwargs, given)
