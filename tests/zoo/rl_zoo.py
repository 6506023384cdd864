"""Commands of RL Zoo, in this process."""

import io
import runpy
import sys
from contextlib import redirect_stdout
from importlib import import_module

import pytest

from sb3_cesd.registry import ALGORITHMS
from sb3_cesd.zoo import register

register()

MAZE = "MazeSquareC-v0"
#: A CeSD model that trains in a second
SMALL = [
    "n_skills:4",
    "learning_starts:100",
    "batch_size:32",
    "buffer_size:2000",
    "policy_kwargs:dict(net_arch=[16,16])",
    "intrinsic_kwargs:dict(encoder='contrastive',encoder_kwargs=dict(net_arch=[16]),entropy_kwargs=dict(k=3))",
]
CHECKPOINTS = "callback:[{'sb3_cesd.callbacks.ResumableCheckpoint':{'save_freq':150}}]"


def run(folder, *words, module="rl_zoo3.train", algo="cesd", env=MAZE):
    """Run a command in a folder, and return what it prints."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output):
        patch.chdir(folder)
        patch.setattr(sys, "argv", [module, "--algo", algo, "--env", env, *map(str, words)])
        name = module.rpartition(".")[2]
        if name in ("train", "enjoy"):
            getattr(import_module(module), name if module != "sb3_cesd.train" else "main")()
        else:
            runpy.run_module(module, run_name="__main__")
    return output.getvalue()


def train(folder, *words, params=(), **kwargs):
    """Train a small model."""
    return run(folder, "--eval-freq", -1, "--seed", 1, *words, "-params", *SMALL, "n_envs:1", *params, **kwargs)


def folder_of(folder, number=1, algo="cesd", env=MAZE, logs="logs"):
    return folder / logs / algo / f"{env}_{number}"


def model_of(folder, number=1, algo="cesd", env=MAZE, logs="logs"):
    return ALGORITHMS[algo].load(folder_of(folder, number, algo, env, logs) / f"{env}.zip", device="cpu")
