"""Small models of any method."""

import inspect

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
    arguments = {
        "n_skills": 4,
        "learning_starts": 40,
        "batch_size": 32,
        "train_freq": 2,
        "buffer_size": 1000,
        "policy_kwargs": {"net_arch": [16, 16]},
        "intrinsic_kwargs": small_reward(method.reward_class),
        "seed": 0,
        "device": "cpu",
    }
    return method(policy, env, **{**arguments, **kwargs})
