"""Small models of any method."""

import copy
import inspect

from sb3_cesd.cesd.cesd import CeSDReward

#: A CeSD that trains in a second
TINY = {
    "n_skills": 4,
    "learning_starts": 40,
    "batch_size": 32,
    "buffer_size": 1000,
    "train_freq": 2,
    "policy_kwargs": {"net_arch": [16, 16]},
    "intrinsic_kwargs": {"encoder_kwargs": {"net_arch": [16], "features_dim": 4}, "entropy_kwargs": {"k": 3}},
    "device": "cpu",
}

#: What makes it the released code's method
RELEASED = {
    "encoder_kwargs": {**TINY["intrinsic_kwargs"]["encoder_kwargs"], "objective": "released"},
    "prototype_kwargs": {"sinkhorn_temperature": 0.1, "swap": "next"},
    "entropy_kwargs": {"k": 3, "scale": "variance", "log1p": True},
    "constraint_kwargs": {"count": "released", "start": 0.0},
    "relabel_kwargs": {"critic": "cluster", "actor": "skill"},
}

#: Arguments of the intrinsic reward of CeSD
OWN = tuple(name for name in inspect.signature(CeSDReward).parameters if name not in ("obs_dim", "action_dim", "skill_space"))
#: Arguments that make the networks of a reward small, as far as it has them
SMALL_REWARD = {
    "net_arch": [16],
    "features_dim": 4,
    "vae_net_arch": [16],
    "code_dim": 4,
    "n_prototypes": 8,
    "queue_size": 32,
    "encoder_kwargs": {"net_arch": [16], "features_dim": 4},
    "entropy_kwargs": {"k": 3},
}


def small_reward(reward_class):
    """Arguments of a small intrinsic reward."""
    known = inspect.signature(reward_class).parameters
    return {name: value for name, value in SMALL_REWARD.items() if name in known}


def make_small(method, env="Pendulum-v1", policy="MlpPolicy", **kwargs):
    """Make a model that trains in a second."""
    return method(
        policy, env, **{**copy.deepcopy(TINY), "intrinsic_kwargs": small_reward(method.reward_class), "seed": 0, **kwargs}
    )


def arguments(**kwargs):
    """Arguments of a small CeSD; those of its reward and critic may be named as if they were arguments of the constructor."""
    merged = {**copy.deepcopy(TINY), **kwargs}
    own = {name: merged.pop(name) for name in OWN if name in merged}
    merged["intrinsic_kwargs"] = {**merged["intrinsic_kwargs"], **own}
    heads = {name: merged.pop(name) for name in ("ensemble_size", "shared_value") if name in merged}
    merged["policy_kwargs"] = {**merged["policy_kwargs"], **heads}
    return merged
