"""Methods, scales and tasks of the benchmark of robots."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from maze_methods import UNDONE, with_defaults

from sb3_cesd import preset, registry
from sb3_cesd.common.arguments import merge
from sb3_cesd.envs.registration import LOCOMOTION, TASK_IDS, TASKS

#: Columns that identify a run: of pre-training, of a task, and of goals
OF_PRETRAINING = ("method", "domain", "scale", "seed", "pretrain_steps", "n_envs")
OF_TASK = (
    "method", "domain", "task", "scale", "seed", "pretrain_steps", "pretrain_envs", "finetune_steps", "skill_choice",
    "warm_up", "transfer", "eval_freq", "n_eval_episodes", "repeat", "task_params",
)  # fmt: skip
OF_GOALS = (
    "method", "domain", "task", "scale", "seed", "pretrain_steps", "controller", "n_timesteps", "eval_freq",
    "n_eval_episodes",
)  # fmt: skip
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
#: The same with the released loss of the encoder
RELEASED_OBJECTIVE = merge(CONTRASTIVE_DISTANCE, {"intrinsic_kwargs": {"encoder_kwargs": {"objective": "released"}}})
#: Arguments that turn CeSD into the method of the released code, at any scale
RELEASED = merge(
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


class Method(NamedTuple):
    """
    An algorithm with its arguments.

    :param algo: name in RL Zoo
    :param overrides: arguments of the constructor that differ from its yml file; dictionaries are merged
    :param pretrained: whether skills are learned first
    :param all_heads: whether all heads of CeSD learn a task, instead of only one
    """

    algo: str
    overrides: Mapping[str, Any] = {}
    pretrained: bool = True
    all_heads: bool = False

    def arguments(self, scale: str, env_id: str) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        arguments = merge(with_defaults(self.algo, preset(scale, env_id, self.algo)), self.overrides)  # type: ignore[arg-type]
        return merge(arguments, {"policy_kwargs": {"task_ensemble_size": None}}) if self.all_heads else arguments

    def n_envs(self, scale: str, domain: str) -> int:
        """Return the number of parallel environments in pre-training; 1 without."""
        return preset(scale, domain, self.algo).n_envs if self.pretrained else 1  # type: ignore[arg-type]


METHODS: dict[str, Method] = {
    "cesd": Method("cesd"),
    "released": Method("cesd", RELEASED, all_heads=True),
    **{name: Method(name) for name in registry.METHODS if name != "cesd"},
    "scratch": Method("cesd", pretrained=False),
    "random": Method("", pretrained=False),
    **{name: Method("cesd", overrides) for name, overrides in UNDONE.items()},
    **{f"ensemble_size={size}": Method("cesd", {"policy_kwargs": {"ensemble_size": size}}) for size in (1, 2, 4)},
    "distance=contrastive": Method("cesd", CONTRASTIVE_DISTANCE),
    "objective=released": Method("cesd", RELEASED_OBJECTIVE),
}
SCALES = ("laptop", "published")
#: Pre-training id -> its tasks
DOMAINS: dict[str, tuple[str, ...]] = {
    **{f"{robot.title()}-v0": tuple(name for name, (of, _) in TASK_IDS.items() if of == robot) for robot in TASKS},
    # METRA's robots have goals instead of tasks, see hierarchical.py
    **{env_id: () for env_id in LOCOMOTION},
}


#: Steps of an episode
HORIZONS = {"Walker-v0": 1000, "Quadruped-v0": 1000, "Jaco-v0": 250}
#: Environment steps of a task: of the committed tables at laptop scale, whose yml files now have as many as published
TASK_STEPS = {"laptop": 50_000, "published": 100_000}


def entry_steps(scale: str, env_id: str) -> int:
    """Return the environment steps of a domain in the yml files, the same for all methods."""
    return preset(scale, env_id, "cesd").n_timesteps  # type: ignore[arg-type]
