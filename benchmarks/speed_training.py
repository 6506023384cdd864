"""
Training steps per second from end to end: CeSD compared with SB3's TD3 and sb3_contrib's TQC, with equal networks, batches and
updates per step.
"""

from collections.abc import Callable
from typing import Any

import torch as th
from entries import of_constructor, read_entry
from sb3_contrib import TQC
from stable_baselines3 import TD3
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from timing import PHASES, Figure, interleaved_medians

from sb3_cesd import CeSD
from sb3_cesd.common.merging import merge

#: Share of training in which CeSD explores; afterwards it is constrained, which costs more
EXPLORING = 0.8
WARM_UP = 300
#: Size -> name of the yml file
SIZES = {"laptop": "cesd_laptop", "published": "cesd"}


def make_models(env_id: str, size: str, buffer_size: int, device: str = "cpu") -> dict[str, OffPolicyAlgorithm]:
    """
    Create the algorithms that are compared, with equal networks and batches.

    :param env_id: a pre-training id
    :param size: one of ``SIZES``
    :param buffer_size: size of the replay buffers
    :param device: device of the models
    :return: models by name, with the sizes of the yml file; CeSD once per phase of its training, on a GPU also with graphs
    """
    # One environment and an update per two steps, whatever the entry has
    changed = {"buffer_size": buffer_size, "learning_starts": WARM_UP, "train_freq": 2}
    entry = of_constructor(read_entry(SIZES[size], env_id, changed))
    models: dict[str, OffPolicyAlgorithm] = {}
    for phase, start in PHASES.items():
        arguments = merge(entry, {"intrinsic_kwargs": {"constraint_kwargs": {"start": start, "freeze_clusters": False}}})
        models[f"CeSD, {phase}"] = CeSD(env=env_id, seed=0, device=device, **arguments)
        if device.startswith("cuda"):
            models[f"CeSD, {phase}, cuda_graph"] = CeSD(env=env_id, seed=0, device=device, cuda_graph=True, **arguments)
    cesd = models["CeSD, exploring"]
    assert isinstance(cesd, CeSD)
    shared: dict[str, Any] = {
        "batch_size": cesd.batch_size,
        "train_freq": entry.get("train_freq", 2),
        "gradient_steps": 1,
        "buffer_size": buffer_size,
        "learning_starts": WARM_UP,
        "n_steps": entry.get("n_steps", 3),
        "policy_kwargs": {"net_arch": cesd.policy.actor_arch},
        "seed": 0,
        "device": device,
    }
    # Every update is for actor and critic, as in CeSD
    models["TD3"] = TD3("MlpPolicy", env_id, policy_delay=1, **shared)
    models["TQC"] = TQC("MlpPolicy", env_id, **shared)
    return models


def learn_of(model: OffPolicyAlgorithm, n_steps: int) -> Callable[[], None]:
    """
    Make a function that trains a model for a turn.

    :param model: a model
    :param n_steps: environment steps per turn
    :return: the function
    """

    def learn() -> None:
        model.learn(n_steps, reset_num_timesteps=False, log_interval=10**9)

    return learn


def measure(env_id: str, size: str, threads: int, repeats: int, n_steps: int, device: str) -> list[Figure]:
    """
    Measure the training speed of algorithms.

    :param env_id: a pre-training id
    :param size: one of ``SIZES``
    :param threads: number of threads
    :param repeats: timed turns
    :param n_steps: environment steps per turn
    :param device: device of the models
    :return: steps per second
    """
    th.set_num_threads(threads)
    models = make_models(env_id, size, WARM_UP + n_steps * (repeats + 2), device)
    for model in models.values():
        model.learn(WARM_UP, log_interval=10**9)
    seconds = interleaved_medians({name: learn_of(model, n_steps) for name, model in models.items()}, repeats)
    for graph in [", cuda_graph", ""] if device.startswith("cuda") else [""]:
        exploring, constrained = (seconds[f"CeSD, {phase}{graph}"] for phase in PHASES)
        seconds[f"CeSD{graph}"] = EXPLORING * exploring + (1 - EXPLORING) * constrained
    return [
        {
            "part": "training", "setting": f"{env_id}, {size}", "threads": threads, "variant": name, "value": n_steps / value,
            "unit": "steps/s", "ratio": seconds["TD3"] / value, "reference": "TD3",
        }
        for name, value in seconds.items()
    ]  # fmt: skip
