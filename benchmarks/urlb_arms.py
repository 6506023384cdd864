"""
Arms of CeSD in the benchmark of robots, which were tried to choose the entries of quadruped and arm.

Each states all that arms differ in: what a name means does not change with the entry.
"""

from typing import Any

from sb3_cesd.zoo.hyperparams import merge

#: What all of them depart from, the laptop entry: clusters and distances in the same contrastive features, and half of the
#: training to explore
SAME: dict[str, Any] = {
    "train_freq": 16,
    "intrinsic_kwargs": {
        "encoder": "contrastive",
        "distance_encoder": "same",
        "distance_encoder_kwargs": None,
        "constraint_kwargs": {"start": 0.5, "freeze_clusters": False},
        "relabel_kwargs": {"kappa": 0.0},
    },
}
#: Features of the dynamics, of the size that APT has
OF_DYNAMICS: dict[str, Any] = {"features_dim": 256, "net_arch": [256]}
ICM: dict[str, Any] = {"distance_encoder": "icm", "distance_encoder_kwargs": OF_DYNAMICS}
CLUSTERS_IN_ICM: dict[str, Any] = {"encoder": "icm", "encoder_kwargs": OF_DYNAMICS}
NEVER: dict[str, Any] = {"constraint_kwargs": {"start": 1.0}}
#: The logarithm and the scale of APT
ENTROPY_OF_APT: dict[str, Any] = {"log1p": True, "scale": "mean", "clip": 0.0}

_INTRINSIC: dict[str, dict[str, Any]] = {
    "distance=same": {},
    "distance=same,start=1": NEVER,
    "distance=identity": {"distance_encoder": "identity"},
    "distance=icm": ICM,
    "distance=icm,start=1": {**ICM, **NEVER},
    "distance=icm,start=1,entropy=apt": {**ICM, **NEVER, "entropy_kwargs": ENTROPY_OF_APT},
    "distance=icm,frozen": {**ICM, "constraint_kwargs": {"freeze_clusters": True}},
    "distance=icm,kappa=0.5": {**ICM, "relabel_kwargs": {"kappa": 0.5}},
    "distance=icm64": {"distance_encoder": "icm", "distance_encoder_kwargs": {**OF_DYNAMICS, "features_dim": 64}},
    "encoder=icm": CLUSTERS_IN_ICM,
    "encoder=icm,kappa=0.3": {**CLUSTERS_IN_ICM, "relabel_kwargs": {"kappa": 0.3}},
}
#: Name -> arguments of the constructor that differ from the entry
ARMS: dict[str, dict[str, Any]] = {name: merge(SAME, {"intrinsic_kwargs": own}) for name, own in _INTRINSIC.items()}
#: Twice the updates
OFTEN: dict[str, Any] = {"train_freq": 8}
ARMS["distance=same,train_freq=8"] = merge(SAME, OFTEN)
ARMS["distance=icm,kappa=0.25,train_freq=8"] = merge(
    ARMS["distance=icm,kappa=0.5"], {**OFTEN, "intrinsic_kwargs": {"relabel_kwargs": {"kappa": 0.25}}}
)
