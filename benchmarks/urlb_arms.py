"""
Variants ("arms") of CeSD in the benchmark of robots, which were tried to choose the entries of quadruped and jaco.

Each sets everything in which they differ, so that the meaning of a name does not change with the entry.
"""

from typing import Any, NamedTuple

from sb3_cesd.common.merging import merge

#: Common starting point, the laptop entry: clusters and distances in the same contrastive features, and exploration for half
#: of the training
SAME: dict[str, Any] = {
    "encoder": "contrastive",
    "distance_encoder": "same",
    "distance_encoder_kwargs": None,
    "constraint_kwargs": {"start": 0.5, "freeze_clusters": False},
    "relabel_kwargs": {"kappa": 0.0},
}
#: Features of the dynamics, with the size of APT's
OF_DYNAMICS: dict[str, Any] = {"features_dim": 256, "net_arch": [256]}
ICM: dict[str, Any] = {"distance_encoder": "icm", "distance_encoder_kwargs": OF_DYNAMICS}
CLUSTERS_IN_ICM: dict[str, Any] = {"encoder": "icm", "encoder_kwargs": OF_DYNAMICS}
#: Clusters and distances of single states, also for a walker, whose entry has clusters of averages
STATES_FROM_200K: dict[str, Any] = {
    "distance_encoder": "identity",
    "cluster_window": 1,
    "constraint_kwargs": {"start": 200_000},
}
NEVER: dict[str, Any] = {"constraint_kwargs": {"start": 1.0}}
#: The logarithm and the scale of APT
ENTROPY_OF_APT: dict[str, Any] = {"log1p": True, "scale": "mean", "clip": 0.0}


class Arm(NamedTuple):
    """
    A variant.

    :param own: entries of ``intrinsic_kwargs`` that differ from :data:`SAME`
    :param train_freq: environment steps per update in pre-training; tasks are not affected
    :param skill_duration: steps for which a skill is kept in pre-training, ``None`` for whole episodes
    """

    own: dict[str, Any]
    train_freq: int = 16
    skill_duration: int | None = 50

    @property
    def overrides(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {"intrinsic_kwargs": merge(SAME, self.own)}

    @property
    def of_pretraining(self) -> dict[str, Any]:
        """Arguments of the constructor for pre-training alone."""
        return {"train_freq": self.train_freq, "skill_duration": self.skill_duration}


ARMS: dict[str, Arm] = {
    "distance=same": Arm({}),
    "distance=same,start=1": Arm(NEVER),
    "distance=same,train_freq=2": Arm({}, train_freq=2),
    "distance=same,train_freq=8": Arm({}, train_freq=8),
    "distance=identity": Arm({"distance_encoder": "identity"}),
    "distance=icm": Arm(ICM),
    "distance=icm,start=1": Arm({**ICM, **NEVER}),
    "distance=icm,start=1,entropy=apt": Arm({**ICM, **NEVER, "entropy_kwargs": ENTROPY_OF_APT}),
    "distance=icm,entropy=apt": Arm({**ICM, "entropy_kwargs": ENTROPY_OF_APT}),
    "distance=icm,frozen": Arm({**ICM, "constraint_kwargs": {"freeze_clusters": True}}),
    "distance=icm,kappa=0.5": Arm({**ICM, "relabel_kwargs": {"kappa": 0.5}}),
    "distance=icm,train_freq=8": Arm(ICM, train_freq=8),
    "distance=icm,skill_duration=None": Arm(ICM, skill_duration=None),
    "distance=icm,train_freq=8,skill_duration=None": Arm(ICM, train_freq=8, skill_duration=None),
    "distance=icm,window=50,skill_duration=None": Arm(
        {**ICM, "cluster_window": 50, "constraint_kwargs": {"start": 0.5, "freeze_clusters": True}}, skill_duration=None
    ),
    "distance=icm64": Arm({"distance_encoder": "icm", "distance_encoder_kwargs": {**OF_DYNAMICS, "features_dim": 64}}),
    "distance=identity,start=200k": Arm(STATES_FROM_200K),
    "distance=identity,start=200k,skill_duration=200": Arm(STATES_FROM_200K, skill_duration=200),
    "encoder=icm": Arm(CLUSTERS_IN_ICM),
    "encoder=icm,kappa=0.3": Arm({**CLUSTERS_IN_ICM, "relabel_kwargs": {"kappa": 0.3}}),
}
