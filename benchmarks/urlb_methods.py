"""Methods, scales and tasks of the benchmark of robots."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from entries import UNDONE, read_entry
from urlb_arms import ARMS
from urlb_sizes import APT_SIZES, CESD_SIZES

from sb3_cesd import registry
from sb3_cesd.common.merging import merge
from sb3_cesd.envs.robots.ids import LOCOMOTION

#: Clusters of single states, distances in their features, and a long exploration
CONTRASTIVE_DISTANCE: dict[str, Any] = {
    "skill_duration": 50,
    "ent_coef": None,
    "policy_kwargs": {"layer_norm": True},
    "intrinsic_kwargs": {
        "distance_encoder": "same",
        "cluster_window": 1,
        "constraint_kwargs": {"start": 0.8, "freeze_clusters": False},
    },
}
#: The same with the released loss of the encoder; the encoder of mazes does not learn
RELEASED_OBJECTIVE: dict[str, Any] = merge(
    CONTRASTIVE_DISTANCE, {"intrinsic_kwargs": {"encoder_kwargs": {"objective": "released"}}}
)
#: Arguments that turn CeSD into the method of the released code, at any scale
RELEASED: dict[str, Any] = merge(
    merge(UNDONE["entropy=released"], RELEASED_OBJECTIVE),
    {
        "intrinsic_kwargs": {
            "prototype_kwargs": {"sinkhorn_temperature": 0.1, "swap": "next"},
            "constraint_kwargs": {"count": "released", "start": 0.0},
            "relabel_kwargs": {"critic": "cluster", "actor": "skill"},
        },
        "policy_kwargs": {"shared_value": False},
    },
)


#: Scale -> suffix of the name of the config
SCALES = {"laptop": "_laptop", "published": ""}


class Method(NamedTuple):
    """
    An algorithm with its arguments.

    :param algo: name in RL Zoo
    :param overrides: arguments of the constructor that differ from its yml file, see :func:`~entries.read_entry`
    :param pretrained: whether skills are learned first
    :param all_heads: whether all heads of CeSD learn a task, instead of only one
    :param of_pretraining: more such arguments, only for pre-training
    """

    algo: str
    overrides: Mapping[str, Any] = MappingProxyType({})
    pretrained: bool = True
    all_heads: bool = False
    of_pretraining: Mapping[str, Any] = MappingProxyType({})

    def arguments(self, scale: str, env_id: str) -> dict[str, Any]:
        """
        Read the yml file.

        :param scale: one of ``SCALES``
        :param env_id: id of the environment
        :return: arguments of the constructor, ``n_timesteps``, and ``n_envs`` if it is not 1
        """
        overrides = merge(self.overrides, self.of_pretraining) if env_id in DOMAINS else self.overrides
        arguments = read_entry(f"{self.algo}{SCALES[scale]}", env_id, overrides)
        if self.all_heads:
            arguments = merge(arguments, {"policy_kwargs": {"task_ensemble_size": arguments["n_skills"]}})
        return arguments

    def n_envs(self, scale: str, domain: str) -> int:
        """
        Return the number of parallel environments in pre-training.

        :param scale: one of ``SCALES``
        :param domain: one of ``DOMAINS``
        :return: number of environments; 1 without pre-training
        """
        return self.arguments(scale, domain).get("n_envs", 1) if self.pretrained else 1


METHODS: dict[str, Method] = {
    "cesd": Method("cesd"),
    "released": Method("cesd", RELEASED, all_heads=True),
    **{name: Method(name) for name in registry.METHODS if name != "cesd"},
    "scratch": Method("cesd", pretrained=False),
    "random": Method("", pretrained=False),
    **{name: Method("cesd", overrides) for name, overrides in UNDONE.items()},
    **{name: Method("cesd", arm.overrides, of_pretraining=arm.of_pretraining) for name, arm in ARMS.items()},
    "distance=contrastive": Method("cesd", CONTRASTIVE_DISTANCE),
    "objective=released": Method("cesd", RELEASED_OBJECTIVE),
    **{name: Method("cesd", overrides) for name, overrides in CESD_SIZES.items()},
    "batch=1024,train_freq=32": Method("cesd", CESD_SIZES["batch=1024"], of_pretraining={"train_freq": 32}),
    **{name: Method("apt", overrides) for name, overrides in APT_SIZES.items()},
}
#: Pre-training id -> its tasks
DOMAINS: dict[str, tuple[str, ...]] = {
    "Walker-v0": ("WalkerStand-v0", "WalkerWalk-v0", "WalkerRun-v0", "WalkerFlip-v0"),
    "Quadruped-v0": ("QuadrupedStand-v0", "QuadrupedWalk-v0", "QuadrupedRun-v0", "QuadrupedJump-v0"),
    "Jaco-v0": (
        "JacoReachTopLeft-v0", "JacoReachTopRight-v0", "JacoReachBottomLeft-v0", "JacoReachBottomRight-v0",
    ),
    # METRA's robots have goals instead of tasks, see hierarchical.py
    **{env_id: () for env_id in LOCOMOTION},
}  # fmt: skip


def entry_steps(scale: str, env_id: str) -> int:
    """
    Return the default number of environment steps of a domain or task.

    :param scale: one of ``SCALES``
    :param env_id: a domain, or a task
    :return: number of environment steps of the yml file, the same for all methods
    """
    return int(read_entry(f"cesd{SCALES[scale]}", env_id)["n_timesteps"])
