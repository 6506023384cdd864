"""What is refused, and what the message says: one row for each refusal, from which the documentation is written."""

from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """
    A refusal.

    :param owner: what is called, a key of ``targets.TARGETS``
    :param argument: the argument that is wrong
    :param value: its value
    :param message: pattern of the message
    """

    owner: str
    argument: str
    value: Any
    message: str


NAN = float("nan")
CASES = [
    # Truth values and texts are no numbers, and nothing is infinite or not a number
    Case(
        "CeSD", "skill_duration", "3", "skill_duration='3' must be a positive integer or None: pass a positive integer or None"
    ),
    Case("CeSD", "skill_duration", 0, "skill_duration=0 must be a positive integer or None"),
    Case("CeSD", "gamma", True, "gamma=True must be a number from 0 to 1: pass such a number"),
    Case("CeSD", "tau", NAN, "tau=nan must be a number from 0 to 1"),
    Case("CeSD", "buffer_size", NAN, "buffer_size=nan must be an integer: pass a positive integer"),
    Case("CeSD", "batch_size", True, "batch_size=True must be an integer"),
    Case("CeSD", "n_steps", 1.5, "n_steps=1.5 must be an integer: pass a positive integer, e.g. n_steps=2"),
    Case("CeSD", "n_skills", 1, "n_skills=1: at least two skills are needed, pass n_skills >= 2"),
    Case("CeSD", "n_skills", "4", "n_skills='4' must be a whole number: pass an integer from 2 to 65536"),
    Case("CeSD", "n_skills", 2.5, "n_skills=2.5 must be a whole number: pass an integer from 2 to 65536"),
    Case("CeSD", "n_skills", 10**6, "n_skills=1000000: pass at most 65536"),
    Case("CeSD", "learning_starts", NAN, "learning_starts=nan must be a whole number of at least 0: pass 0 or a positive"),
    Case("CeSD", "learning_rate", "1e-4", "learning_rate='1e-4' must be zero or a positive number, or a function"),
    Case("CeSD", "train_freq", (2, "days"), "train_freq=.* pass a positive integer, .*'step'.* or .*'episode'"),
    Case("CeSD", "gradient_steps", -2, "gradient_steps=-2 must be a number of updates: pass 0 or a positive integer, -1"),
    Case("CeSD", "cuda_graph", "x", "cuda_graph='x' must be True or False: pass one of these"),
    Case("CeSD", "seed", -1, "seed=-1 must be an integer from 0 to 4294967295"),
    Case("CeSD", "device", "gpu", "device='gpu' must be a device: pass 'auto', 'cpu' or 'cuda'"),
    Case("CeSD", "reward", "task", "Unknown reward 'task': choose 'intrinsic' or 'extrinsic'"),
    Case("CeSD", "warm_up", ["skills"], "Unknown warm_up .*: choose 'random', 'policy' or 'skills'"),
    Case(
        "CeSD",
        "policy",
        "CnnPolicy",
        "Policy CnnPolicy unknown: choose 'MlpPolicy' or 'MultiInputPolicy', also for dictionaries and images.",
    ),
    Case("CeSD", "env", None, "env=None: pass an environment to learn in, or load a saved model"),
    Case("CeSD", "env", "Pendulums-v1", "There is no environment 'Pendulums-v1' .*: check its spelling"),
    Case("CeSD", "optimize_memory_usage", True, "optimize_memory_usage=True must be False: leave it out"),
    Case("CeSD", "intrinsic_kwargs", [1], "intrinsic_kwargs=.* must be a dictionary of arguments or None"),
    Case(
        "CeSD",
        "intrinsic_kwargs",
        {"Alpha": 1},
        "intrinsic_kwargs has no 'Alpha': use some of alpha, cluster_window, constraint_kwargs",
    ),
    Case("CeSD", "intrinsic_kwargs", {"entropy_kwargs": {"K": 3}}, r"entropy_kwargs has no 'K': use some of .*\bk\b"),
    Case("CeSD", "policy_kwargs", {"net_arch": ""}, "net_arch='' must be sizes of hidden layers"),
    Case("CeSD", "policy_kwargs", {"n_critic": 1}, "policy_kwargs has no 'n_critic': use some of .*n_critics"),
    Case("CeSD", "policy_kwargs", {"skill": 1}, "policy_kwargs has no 'skill'"),
    Case(
        "CeSD", "policy_kwargs", {"net_arch": [8], "optimizer_kwargs": {"beta": 1}}, "optimizer_kwargs has no 'beta': .*betas"
    ),
    Case("CeSD", "replay_buffer_kwargs", {"gamma": 0.5}, "replay_buffer_kwargs has no 'gamma': use some of handle_timeout"),
    Case("load", "device", "gpu", "device='gpu' must be a device"),
    Case("load, arguments of the constructor", "cuda_graph", "x", "cuda_graph='x' must be True or False"),
    Case(
        "from_pretrained", "transfer", "actor", "transfer='actor' must be a list of parts of a model: choose some of 'actor'"
    ),
    Case("from_pretrained", "n_eval_episodes", 0, "set n_eval_episodes above 0"),
    Case(
        "load, arguments of the constructor",
        "policy_kwargs",
        {"net_arch": [9]},
        "policy_kwargs=.* does not fit .*: leave policy_kwargs out",
    ),
    Case(
        "from_pretrained, arguments of the constructor",
        "policy_kwargs",
        {"net_arch": [9]},
        "policy_kwargs=.* makes networks of other shapes than those of .*: leave policy_kwargs out",
    ),
    Case("learn", "total_timesteps", 1e300, "total_timesteps=1e[+]300 must be a whole number"),
    Case("learn", "callback", "x", "callback='x' must be a callback: pass a BaseCallback"),
    Case("learn", "callback", [lambda *_: True], "must be a callback: pass a BaseCallback"),
    Case("learn", "total_timesteps", "100", "total_timesteps='100' must be a whole number"),
    Case("predict", "observation", ["a", "b", "c"], "The observation is not an array of finite numbers .*: pass what the env"),
    Case("predict", "observation", [NAN, 0, 0], "The observation is not an array of finite numbers"),
    Case(
        "goal_skill",
        "observations",
        ["a", "b", "c"],
        "The observations are not an array of finite numbers .*: pass what the env",
    ),
    Case(
        "goal_skill",
        "goals",
        [NAN, 0, 0],
        "The goals are not an array of finite numbers .*: pass what the environment returned",
    ),
    Case("goal_skill", "goals", [0.0, 0.0], r"Goals of shape \(2,\): this model takes shape \(3,\), .*; pass those of the"),
    Case("predict_clusters", "observations", [NAN, 0, 0], "The observations are not an array of finite numbers"),
    Case("predict", "skill", "1", "Unknown skill '1': .*choose an integer from 0 to 3"),
    Case("set_skill", "skill", 4, "Unknown skill 4: .*choose an integer from 0 to 3"),
    Case(
        "predict",
        "episode_start",
        [[1], [2, 3]],
        "episode_start=.* must be an array of True and False: pass one value per env",
    ),
    Case("predict", "episode_start", [True, False], r"shape \(2,\), but there is 1 observation: pass one value for each"),
    Case("predict", "state", (2, "days"), "state=.* must be the state that the previous call returned: pass that"),
    Case("predict", "state", (np.arange(2), np.array(2)), r"\(\(2,\), \(\)\), but there is 1 observation: pass what predict"),
    Case("predict, skills on a circle", "skill", [3.0, 4.0], "a point on the unit sphere, not a vector of length 5: divide"),
    Case("set_env", "env", "Pendulum-v1", "env='Pendulum-v1' must be an environment: pass an environment of Gymnasium"),
    Case("set_parameters", "load_path_or_dict", {"x": 1}, "does not hold the parameters of this model .*: pass what get_"),
    Case("save", "exclude", "policy", "exclude='policy' must be a list of names or None: pass a list"),
    Case("SkillTurns", "then", 4, "Unknown skill 4: .*choose an integer from 0 to 3"),
    Case("SkillTurns", "then", "best", "then='best' must be the index or the vector of a skill or None: pass an index"),
    Case("export_policy", "model", "model.zip", "model='model.zip' must be a SkillDDPG: pass an object"),
    Case("SkillOptions", "gamma", 3, "gamma=3 must be above 0 and at most 1: set gamma above 0, up to 1"),
]
