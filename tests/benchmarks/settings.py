"""What a model was made with, whatever way its arguments took: read from its parts, and so with all defaults."""

from contextlib import suppress
from operator import attrgetter

#: Settings of CeSD in mazes
CESD_IN_MAZES = {
    "n_skills": 10,
    "skill_type": "discrete",
    "skill_duration": None,
    "n_envs": 20,
    "gradient_steps": 20,
    "learning_rate": 3e-4,
    "buffer_size": 36000,
    "learning_starts": 1000,
    "batch_size": 256,
    "tau": 0.01,
    "gamma": 0.99,
    "n_steps": 3,
    "exploration_noise": 0.3,
    "noise_correlation": 0.85,
    "target_policy_noise": 0.2,
    "target_noise_clip": 0.3,
    "warm_up": "random",
    "train_freq": 5,
    "actor_arch": [128, 128],
    "critic_arch": [128, 128],
    "n_critics": 2,
    "ensemble_size": None,
    "shared_value": True,
    "encoder": "FourierEncoder",
    "distance_encoder": None,
    "average_window": 1,
    "features_dim": 64,
    "entropy.k": 4,
    "entropy.scale": "std",
    "entropy.clip": 0.0005,
    "entropy.aggregate": "mean",
    "entropy.log1p": False,
    "alpha": 1.0,
    "prototype_learning_rate": 3e-4,
    "prototypes.temperature": 0.1,
    "prototypes.sinkhorn_temperature": 0.03,
    "prototypes.sinkhorn_iterations": 5,
    "prototypes.swap": "self",
    "constraint.lambda_": 1.0,
    "constraint.count": "paper",
    "constraint.start": 0.8,
    "constraint.freeze_clusters": False,
    "relabelling.critic": "hindsight",
    "relabelling.n_random_heads": 2,
    "relabelling.kappa": 0.0,
    "relabelling.actor": "random",
    "relabelling.actor_probability": 0.5,
}
#: Those that only CeSD has
OF_CESD = ("ensemble_size", "shared_value", "distance_encoder", "alpha", "prototype", "constraint", "relabelling")
WHITE = {"exploration_noise": 0.2, "noise_correlation": 0.0}
#: What makes CeSD the released code's method
RELEASED = {
    "shared_value": False,
    "encoder.objective": "released",
    "entropy.scale": "variance",
    "entropy.log1p": True,
    "prototypes.sinkhorn_temperature": 0.1,
    "prototypes.swap": "next",
    "constraint.count": "released",
    "constraint.start": 0.0,
    "relabelling.critic": "cluster",
    "relabelling.actor": "skill",
}


def settings_of(model):
    """Read the settings named above, as far as the model has them."""
    read = {}
    for name in {**CESD_IN_MAZES, **RELEASED}:
        for place in (model, model.policy, model.intrinsic):
            with suppress(AttributeError):
                read.setdefault(name, attrgetter(name)(place))
    if "encoder" in read:
        read["encoder"] = type(model.intrinsic.encoder).__name__
        read["features_dim"] = model.intrinsic.encoder.features_dim
    if read.get("distance_encoder") is not None:
        read["distance_encoder"] = type(model.intrinsic.distance_encoder).__name__
    read["train_freq"] = model.train_freq.frequency
    return read
