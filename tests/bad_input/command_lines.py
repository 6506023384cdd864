"""The command lines that users type: their arguments, which values of these make sense, and where the work would begin."""

import contextlib
import importlib
import io
import os
import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pandas as pd
from outcomes import REMEDY

from sb3_cesd.zoo.hyperparams import configs

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
#: A model of CeSD
MODEL = Path(__file__).parents[1] / "data/0.1.0/model.zip"
#: What argparse says by itself, and what its own remedies are
OF_ARGPARSE = ("invalid choice", "are required", "unrecognized arguments", "expected")


class Begun(BaseException):
    """The arguments were taken: the work would begin now."""


class Command(NamedTuple):
    """
    A command line.

    :param module: module with a ``main``
    :param work: functions of it, or of the package by their full names, that are replaced by the end of the trial
    :param options: option, or name of a positional argument -> whether a text makes sense as its value
    :param others: arguments that are given besides
    """

    module: str
    work: tuple[str, ...]
    options: dict
    others: tuple[str, ...] = ()


def whole(least, text):
    """Whether a text is an integer from a number on."""
    try:
        return least <= int(text) < 2**31
    except ValueError:
        return False


def one_of(*words):
    return lambda text: text in words


def anything(text):
    return True


def folder(text):
    """Whether results can be written to a folder."""
    path = Path(text)
    try:
        while not path.exists():
            path = path.parent
    except OSError:
        return False
    return bool(text) and path.is_dir() and path != Path("/proc")


def nothing(text):
    return False


def importable(text):
    """Whether there is a module of this name."""
    return text.isidentifier() and find_spec(text) is not None


natural, positive, two, five = (partial(whole, least) for least in (0, 1, 2, 5))
METHODS_THAT_SHIP = set(pd.read_csv(BENCHMARKS / "results/urlb/one_robot/runs.csv").method)
ROBOTS = ("walker", "quadruped", "jaco")
COMMANDS = {
    "maze.py": Command(
        "maze",
        ("run_missing", "maze_report.write"),
        {
            "--methods": one_of("cesd", "apt", "diayn"),
            "--mazes": one_of("square_a", "square_b", "tree"),
            "--seeds": lambda text: positive(text) and int(text) <= 10_000,
            "--first-seed": natural,
            "--jobs": positive,
            "--steps": partial(whole, 20),
            "--mine-iterations": positive,
            "--output": folder,
        },
    ),
    "urlb.py": Command(
        "urlb",
        ("run_missing",),
        {
            "--methods": one_of("cesd", "apt", "diayn", "scratch", "random"),
            "--domains": one_of("Walker-v0", "Quadruped-v0", "SkillAnt-v0"),
            "--tasks": one_of("WalkerRun-v0"),
            "--seeds": lambda text: positive(text) and int(text) <= 10_000,
            "--scale": one_of("laptop", "published"),
            "--pretrain-steps": positive,
            "--finetune-steps": lambda text: whole(10_000, text),
            "--from-steps": nothing,
            "--save-at": lambda text: positive(text) and int(text) <= 300_000,
            "--skill": lambda text: text in ("random", "best") or (text.isdecimal() and int(text) < 8),
            "--skill-episodes": positive,
            "--warm-up": one_of("random", "policy", "skills"),
            "--transfer": one_of("actor", "critic_trunk", "critic_head", "optimizers", "no_target"),
            "--eval-freq": lambda text: positive(text) and int(text) <= 50_000,
            "--n-eval-episodes": positive,
            "--jobs": positive,
            "--backend": one_of("loky"),
            "--output": folder,
        },
    ),
    "hierarchical.py": Command(
        "hierarchical",
        ("run_missing",),
        {
            "--methods": one_of("scratch", "random"),
            "--tasks": one_of("AntMultiGoal", "HalfCheetahGoal", "QuadrupedGoal"),
            "--seeds": lambda text: positive(text) and int(text) <= 10_000,
            "--scale": one_of("laptop", "published"),
            "--pretrain-steps": positive,
            "--controller": one_of("ppo", "dqn"),
            "--steps": partial(whole, 50_000),
            "--eval-freq": lambda text: whole(25, text) and int(text) <= 400_000,
            "--n-eval-episodes": positive,
            "--jobs": positive,
            "--models": os.path.exists,
            "--output": folder,
        },
        ("--methods", "random"),
    ),
    "speed.py": Command(
        "speed",
        ("measure", "speed_methods.report"),
        {
            "--parts": nothing,
            "--methods": one_of("apt", "cesd", "diayn"),
            "--robot": one_of(*ROBOTS),
            "--sizes": nothing,
            "--threads": positive,
            "--repeats": positive,
            "--device": one_of("cpu"),
            "--n-envs": positive,
            "--env-steps": positive,
            "--training-steps": positive,
            "--n-skills": two,
            "--batch-sizes": two,
            "--width": positive,
            "--output": folder,
        },
    ),
    "speed_memory.py": Command(
        "speed_memory", ("peak_of_updates",), {"device": one_of("cpu")}, ("walker", "published", "routed")
    ),
    "load.py": Command(
        "load",
        ("CeSD",),
        {
            "--env": one_of("Pendulum-v1", "Walker-v0"),
            "--n-envs": positive,
            "--minutes": five,
            "--output": folder,
        },
        ("--env", "Pendulum-v1"),
    ),
    "checkpoint_costs.py": Command(
        "checkpoint_costs",
        ("CeSD",),
        {
            "--folder": lambda text: folder(text) and not Path(text).exists(),
            "--n-transitions": positive,
            "--n-new": positive,
        },
    ),
    "costs.py": Command(
        "costs",
        ("measure",),
        {"--trainings": one_of("cesd/laptop/Walker-v0"), "--n-updates": positive, "--n-threads": positive},
    ),
    "compare_commits.py": Command(
        "compare_commits",
        ("compare",),
        {
            "other": nothing,
            "--methods": one_of("DIAYN", "APT"),
            "--sizes": nothing,
            "--rounds": positive,
            "--updates": positive,
        },
        (str(BENCHMARKS.parent),),
    ),
    "curves.py": Command("curves", ("draw",), {"tensorboard": nothing}, (str(BENCHMARKS), "--output", "x")),
    "report.py": Command(
        "report",
        ("report",),
        {"runs": nothing, "--methods": one_of(*METHODS_THAT_SHIP), "--where": nothing, "--output": folder},
        (str(BENCHMARKS / "results/urlb/one_robot/runs.csv"),),
    ),
    "faults.py": Command(
        "faults",
        ("make_model",),
        {"--kills": natural, "--flips": natural, "--full": positive, "--seed": natural, "--output": folder},
    ),
    "python -m sb3_cesd.show": Command(
        "sb3_cesd.show.__main__",
        ("sb3_cesd.show.skills.play_all",),
        {
            "model": nothing,
            "--compare": nothing,
            "--algo": one_of("cesd"),
            "--env": one_of("Pendulum-v1"),
            "--gym-packages": importable,
            "--vec-normalize": nothing,
            # That nothing can be made in /proc turns out in the end, and is told in one line
            "--output": lambda text: folder(text) or text == "/proc/x",
            "--skill": lambda text: text.isdecimal() and int(text) < 3,
            "--steps": positive,
            "--rollouts": natural,
            "--untrained": natural,
            "--frames": natural,
            "--video": one_of("gif", "mp4", "none"),
            "--seed": natural,
        },
        (str(MODEL), "--env", "Pendulum-v1"),
    ),
    "python -m sb3_cesd.zoo.hyperparams": Command(
        "sb3_cesd.zoo.hyperparams.__main__", (), {"config": lambda text: text in configs(), "env": anything}, ("cesd",)
    ),
}


def run(command, option, text):
    """
    Run a command line with one argument in this process, to where its work begins.

    :return: "begun", "over", or what it said before it ended with an error
    """
    arguments = [*command.others, f"{option}={text}"] if option.startswith("--") else [*_without(command, option), "--", text]
    said = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "path", [str(BENCHMARKS), *sys.path]))
        stack.enter_context(mock.patch.object(sys, "argv", [command.module, *arguments]))
        module = importlib.import_module(command.module)
        for name in command.work:
            full_name = name if name.startswith("sb3_cesd.") else f"{command.module}.{name}"
            stack.enter_context(mock.patch(full_name, side_effect=Begun))
        stack.enter_context(contextlib.redirect_stderr(said))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        try:
            module.main()
        except Begun:
            return "begun"
        except SystemExit as end:
            if end.code in (0, None):
                return "over"
            return said.getvalue() + (end.code if isinstance(end.code, str) else "")
    return "over"


@contextlib.contextmanager
def empty_folder():
    """Work in a folder that is deleted afterwards."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _without(command, option):
    """The other arguments; the one that is tried is the last of those without a name."""
    return command.others if option in ("device", "env", "tensorboard") else command.others[1:]


def outcome_of_command(name, option, text):
    """As :func:`outcomes.outcome`, of a command line."""
    command = COMMANDS[name]
    with empty_folder():
        Path("a_file").touch()
        makes_sense = command.options[option](text)
        try:
            said = run(command, option, text)
        except Exception as error:
            return f"obscure: {type(error).__name__}: {error}"
        if said in ("begun", "over"):
            return "sensible" if makes_sense else "nonsense"
        if os.listdir() != ["a_file"]:
            return "obscure: something was written"
    message = said.rpartition("error: ")[2]
    is_named = option.removeprefix("--") in message or text.split("=")[0] in message
    clear = REMEDY.search(message) or any(part in message for part in OF_ARGPARSE) or "write it like" in message
    return "clear" if is_named and clear else f"obscure: {said}"
