"""Arms of CeSD in the benchmark of robots: one or two departures from its entry each, which were tried to choose it."""

from typing import Any

#: Distances between features of the dynamics, of the size that APT has
ICM: dict[str, Any] = {"distance_encoder": "icm", "distance_encoder_kwargs": {"features_dim": 256, "net_arch": [256]}}
#: The logarithm and the scale of APT
ENTROPY_OF_APT: dict[str, Any] = {"log1p": True, "scale": "mean", "clip": 0.0}
NEVER: dict[str, Any] = {"constraint_kwargs": {"start": 1.0}}

_INTRINSIC: dict[str, dict[str, Any]] = {
    "start=1": NEVER,
    "distance=identity": {"distance_encoder": "identity", "distance_encoder_kwargs": None},
    "distance=icm": ICM,
    "distance=icm,start=1": {**ICM, **NEVER},
    "distance=icm,start=1,entropy=apt": {**ICM, **NEVER, "entropy_kwargs": ENTROPY_OF_APT},
    "distance=icm,frozen": {**ICM, "constraint_kwargs": {"freeze_clusters": True}},
    "distance=icm64": {"distance_encoder": "icm", "distance_encoder_kwargs": {"features_dim": 64, "net_arch": [256]}},
    "distance=icm,alpha=0.3": {**ICM, "alpha": 0.3},
    "distance=icm,kappa=0.5": {**ICM, "relabel_kwargs": {"kappa": 0.5}},
    "encoder=icm": {
        "encoder": "icm",
        "encoder_kwargs": ICM["distance_encoder_kwargs"],
        "distance_encoder": "same",
        "distance_encoder_kwargs": None,
    },
}
#: Name -> arguments of the constructor that differ from the entry
ARMS: dict[str, dict[str, Any]] = {name: {"intrinsic_kwargs": own} for name, own in _INTRINSIC.items()}
