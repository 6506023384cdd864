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
    :param skills_of: the method that learns the skills, if it is another one
    :param task_overrides: arguments of ``from_pretrained`` that differ from its defaults and the yml file
    """

    algo: str
    overrides: Mapping[str, Any] = MappingProxyType({})
    pretrained: bool = True
    skills_of: str | None = None
    task_overrides: Mapping[str, Any] = MappingProxyType({})


#: Other ways from the skills of CeSD to a task
TASK_VARIANTS: dict[str, dict[str, Any]] = {
    "transfer=actor": {"transfer": ("actor",)},
    "transfer=critic_trunk": {"transfer": ("critic_trunk",)},
    "transfer=all": {"transfer": ("actor", "critic_trunk", "critic_head", "optimizers")},
    "warm_up=policy": {"warm_up": "policy"},
}
METHODS: dict[str, Method] = {
    "cesd": Method("cesd"),
    "released": Method("cesd", RELEASED),
    **{name: Method(name) for name in ("apt", "diayn", "cic", "dads")},
    "scratch": Method("cesd", pretrained=False),
    "random": Method("", pretrained=False),
    **{name: Method("cesd", overrides) for name, overrides in UNDONE.items()},
    **{name: Method("cesd", skills_of="cesd", task_overrides=overrides) for name, overrides in TASK_VARIANTS.items()},
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


def skills_of(method: str) -> str:
    """
    :param method: a method that starts from skills
    :return: the method that learns them
    """
    return METHODS[method].skills_of or method
