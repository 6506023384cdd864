"""Table of the values that arguments may have, for all constructors, loaders, wrappers and functions that users call."""

from collections.abc import Mapping
from typing import Any, get_args

import gymnasium as gym
import torch as th
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common import choices
from sb3_cesd.common.argument_rules import (
    BUFFER_CLASS,
    CALLBACK,
    DEVICE,
    ENT_COEF,
    ENV,
    FILE,
    FOLDER,
    GRADIENT_STEPS,
    LEARNING_RATE,
    LOG_INTERVAL,
    NAMES,
    NET_ARCH,
    NOT_SUPPORTED,
    PARAMETERS,
    PARTS_OF_A_MODEL,
    POLICY,
    SKILL,
    SKILL_DIM,
    SKILL_TYPE,
    SKILLS,
    TRAIN_FREQ,
    named,
)
from sb3_cesd.common.rules import (
    ARGUMENTS,
    BOOLEAN,
    CORRELATION,
    N_SKILLS,
    NOT_NEGATIVE,
    NOT_NEGATIVE_INTEGER,
    POSITIVE,
    POSITIVE_INTEGER,
    POSITIVE_WHOLE,
    SEED,
    SHARE,
    SHARE_OR_STEPS,
    TEXT,
    WHOLE,
    Choice,
    Rule,
    check_by,
    instance,
    is_integer,
    optional,
    subclass,
)

#: How to act in the first steps
WARM_UPS: tuple[str, ...] = get_args(choices.WarmUp)
REWARDS: tuple[str, ...] = get_args(choices.Reward)
#: What to do when a loss or a gradient is not finite
ON_NON_FINITE: tuple[str, ...] = get_args(choices.OnNonFinite)


def check_arguments(owner: str, values: Mapping[str, Any]) -> None:
    """
    Check arguments by the table.

    :param owner: the class or function, a key of :data:`ALLOWED`
    :param values: arguments by name; names that are not in the table are ignored, as :func:`locals` holds some
    :raises ValueError: if an argument is not allowed
    """
    check_by(ALLOWED[owner], values)


#: Arguments of the constructors of all methods
_ALGORITHM: dict[str, Rule | Choice] = {
    "policy": POLICY,
    "env": optional(ENV, "pass an environment of Gymnasium, a VecEnv of Stable-Baselines3, or a registered id"),
    "n_skills": N_SKILLS,
    "skill_duration": optional(POSITIVE_WHOLE),
    "skill_type": SKILL_TYPE,
    "skill_dim": SKILL_DIM,
    "intrinsic_kwargs": optional(ARGUMENTS),
    "learning_rate": LEARNING_RATE,
    "buffer_size": POSITIVE_INTEGER,
    "learning_starts": WHOLE,
    "actor_learning_starts": SHARE_OR_STEPS,
    "bc_coef": NOT_NEGATIVE,
    "batch_size": POSITIVE_INTEGER,
    "tau": SHARE,
    "gamma": SHARE,
    "train_freq": TRAIN_FREQ,
    "gradient_steps": GRADIENT_STEPS,
    "n_steps": POSITIVE_INTEGER,
    "action_noise": optional(
        instance(ActionNoise, "a Stable-Baselines3 action noise", "pass an ActionNoise, e.g. NormalActionNoise")
    ),
    "exploration_noise": NOT_NEGATIVE,
    "noise_correlation": CORRELATION,
    "target_policy_noise": NOT_NEGATIVE,
    "target_noise_clip": NOT_NEGATIVE,
    "ent_coef": optional(ENT_COEF),
    "reward": Choice(REWARDS),
    "on_non_finite": Choice(ON_NON_FINITE),
    "warm_up": Choice(WARM_UPS),
    "replay_buffer_class": BUFFER_CLASS,
    "replay_buffer_kwargs": optional(ARGUMENTS),
    "optimize_memory_usage": NOT_SUPPORTED,
    "cuda_graph": BOOLEAN,
    "stats_window_size": POSITIVE_INTEGER,
    "tensorboard_log": optional(FOLDER),
    "policy_kwargs": optional(ARGUMENTS),
    "verbose": NOT_NEGATIVE_INTEGER,
    "seed": optional(SEED),
    "device": DEVICE,
    "_init_setup_model": BOOLEAN,
}
_POLICY: dict[str, Rule | Choice] = {
    "skill_space": optional(named("SkillSpace")),
    "net_arch": optional(NET_ARCH),
    "activation_fn": subclass(th.nn.Module, "a class of PyTorch modules", "pass an activation, e.g. torch.nn.ReLU"),
    "features_extractor_class": optional(
        subclass(BaseFeaturesExtractor, "a features extractor class", "pass a subclass of BaseFeaturesExtractor")
    ),
    "features_extractor_kwargs": optional(ARGUMENTS),
    "normalize_images": BOOLEAN,
    "optimizer_class": subclass(th.optim.Optimizer, "an optimizer class", "pass one, e.g. torch.optim.Adam"),
    "optimizer_kwargs": optional(ARGUMENTS),
    "n_critics": POSITIVE_INTEGER,
    "layer_norm": BOOLEAN,
    "share_features_extractor": BOOLEAN,
    "ent_coef": optional(ENT_COEF),
}
#: Arguments of rewards and encoders that the algorithm sets
_KNOWN: dict[str, Rule | Choice] = {
    "obs_dim": POSITIVE_INTEGER,
    "action_dim": POSITIVE_INTEGER,
    "skill_space": named("SkillSpace"),
}

#: Rules of the arguments, by the class or function that takes them
ALLOWED: dict[str, dict[str, Rule | Choice]] = {
    "SkillDDPG": _ALGORITHM,
    "learn": {
        "total_timesteps": WHOLE,
        "callback": CALLBACK,
        "log_interval": LOG_INTERVAL,
        "tb_log_name": optional(TEXT),
        "reset_num_timesteps": BOOLEAN,
        "progress_bar": BOOLEAN,
    },
    "load": {
        "path": FILE,
        "env": _ALGORITHM["env"],
        "device": DEVICE,
        "custom_objects": optional(ARGUMENTS),
        "print_system_info": BOOLEAN,
        "force_reset": BOOLEAN,
    },
    "from_pretrained": {
        "path": FILE,
        "env": ENV,
        "transfer": PARTS_OF_A_MODEL,
        "n_eval_episodes": POSITIVE_INTEGER,
        "device": DEVICE,
        "custom_objects": optional(ARGUMENTS),
    },
    "save": {"path": FILE, "exclude": NAMES, "include": NAMES},
    "save_replay_buffer": {"path": FILE},
    "load_replay_buffer": {"path": FILE, "truncate_last_traj": BOOLEAN},
    "set_parameters": {
        "load_path_or_dict": PARAMETERS,
        "exact_match": BOOLEAN,
        "device": DEVICE,
    },
    "set_random_seed": {"seed": optional(SEED)},
    "set_env": {
        "env": instance((gym.Env, VecEnv), "an environment", "pass an environment of Gymnasium, or make_vec_env(id)"),
        "force_reset": BOOLEAN,
    },
    "CeSDPolicy": {
        **_POLICY,
        "ensemble_size": optional(POSITIVE_INTEGER, "set {name} above 0, or leave it out"),
        "task_ensemble_size": POSITIVE_INTEGER,
        "shared_value": BOOLEAN,
    },
    # Rewards and their components
    "CeSDReward": {
        **_KNOWN,
        "alpha": NOT_NEGATIVE,
        "encoder_kwargs": optional(ARGUMENTS),
        "distance_encoder": Choice(get_args(choices.DistanceEncoderName)),
        "distance_encoder_kwargs": optional(ARGUMENTS),
        "cluster_window": POSITIVE_INTEGER,
        "prototype_kwargs": optional(ARGUMENTS),
        "entropy_kwargs": optional(ARGUMENTS),
        "constraint_kwargs": optional(ARGUMENTS),
        "relabel_kwargs": optional(ARGUMENTS),
    },
    "prototype_kwargs": {"learning_rate": optional(POSITIVE, "set {name} above 0, or to None")},
    "ClusterConstraint": {
        "lambda_": POSITIVE,
        "count": Choice(get_args(choices.Count)),
        "start": SHARE_OR_STEPS,
        "freeze_clusters": BOOLEAN,
    },
    "CriticRelabelling": {
        "critic": Choice(get_args(choices.CriticPairs)),
        "n_random_heads": Rule(
            "zero or a positive integer",
            "pass 0 or a positive integer, e.g. {name}={example}",
            lambda value: is_integer(value) and value >= 0,
        ),
        "kappa": NOT_NEGATIVE,
        "actor": Choice(get_args(choices.ActorSkills)),
        "actor_probability": SHARE,
    },
    # Skills and where they are kept
    "VecSkillObservation": {
        "venv": instance(VecEnv, "a vectorized environment", "pass a VecEnv, e.g. make_vec_env(id)"),
        "skill_space": SKILLS,
    },
    "SkillClock": {
        "n_envs": POSITIVE_INTEGER,
        "skill_space": named("SkillSpace"),
        "skill_duration": optional(POSITIVE_WHOLE),
        "order": Choice(get_args(choices.SkillOrder)),
    },
    "SkillTurns": {
        "n_skills": N_SKILLS,
        "n_timesteps": WHOLE,
        "then": optional(SKILL),
    },
    "ResumableCheckpoint": {
        "path": optional(FOLDER),
        "save_freq": POSITIVE_INTEGER,
        "keep": POSITIVE_INTEGER,
        "verbose": NOT_NEGATIVE_INTEGER,
    },
    "resume": {
        "path": FOLDER,
        "env": ENV,
        "device": DEVICE,
        "model_class": optional(subclass(OffPolicyAlgorithm, "a class of models", "pass that of the model, e.g. CeSD")),
    },
    # Metrics
}
