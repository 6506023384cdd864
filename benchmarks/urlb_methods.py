"""Methods, scales and tasks of the benchmark of robots."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from entries import UNDONE

#: What makes CeSD the released code's method, at any scale
RELEASED: dict[str, Any] = {
    "prototype_kwargs": {"sinkhorn_temperature": 0.1, "swap": "next"},
    "entropy_kwargs": UNDONE["entropy=released"]["entropy_kwargs"],
    "constraint_kwargs": {"count": "released", "start": 0.0},
    "relabel_kwargs": {"critic": "cluster", "actor": "skill"},
    "policy_kwargs": {"shared_value": False},
}


class Method(NamedTuple):
    """
    :param algo: name in RL Zoo
    :param overrides: arguments of the constructor that differ from its yml file
    :param pretrained: whether skills are learned first
    """

    algo: str
    overrides: Mapping[str, Any] = MappingProxyType({})
    pretrained: bool = True


METHODS: dict[str, Method] = {
    "cesd": Method("cesd"),
    "released": Method("cesd", RELEASED),
    **{name: Method(name) for name in ("apt", "diayn", "cic", "dads")},
    "scratch": Method("cesd", pretrained=False),
    "random": Method("", pretrained=False),
    **{name: Method("cesd", overrides) for name, overrides in UNDONE.items()},
}
#: Scale -> what the name of the yml file ends in
SCALES = {"laptop": "_laptop", "published": ""}
#: Pre-training id -> its tasks
DOMAINS = {
    "Walker-v0": ("WalkerStand-v0", "WalkerWalk-v0", "WalkerRun-v0", "WalkerFlip-v0"),
    "Quadruped-v0": ("QuadrupedStand-v0", "QuadrupedWalk-v0", "QuadrupedRun-v0", "QuadrupedJump-v0"),
    "Jaco-v0": (
        "JacoReachTopLeft-v0", "JacoReachTopRight-v0", "JacoReachBottomLeft-v0", "JacoReachBottomRight-v0",
    ),
}  # fmt: skip
