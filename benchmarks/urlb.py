"""
The benchmark of robots: learn skills without a reward, then tasks from them, and the same tasks from scratch.

    python benchmarks/urlb.py --dry-run                                            # what would be done, and how long it takes
    python benchmarks/urlb.py --methods cesd apt diayn scratch --seeds 3 --jobs 2  # Walker, laptop scale: 300k + 50k steps
    python benchmarks/urlb.py --scale published --domains Walker-v0 Quadruped-v0 --backend ray --address auto
    python benchmarks/urlb.py --methods metra diayn --domains SkillAnt-v0 SkillHalfCheetah-v0  # coverage and goals

Writes ``pretraining.csv``, ``runs.csv``, ``models`` and ``evaluations``. Runs that are in a CSV file are not repeated: stop at
any time, and continue with the same command. Each run has one thread, unless told otherwise. Runs with other steps or
evaluations are other runs.
"""

import argparse
import ast
import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pandas as pd
from arguments import at_least, check_eval_freq, device_name, make_folder, output_folder, seeds_of
from cluster import use_backend
from identities import OF_OLD_PRETRAINING, OF_OLD_TASKS
from runs import Row, read_rows, run_missing, runs_left
from urlb_methods import DOMAINS, METHODS, SCALES, entry_steps
from urlb_run import FIXED, LOST, TAKEN, learn_task, lost_model, model_file, pretrain, total_steps

from sb3_cesd import registry
from sb3_cesd.common.allowed import WARM_UPS
from sb3_cesd.common.arguments import check_names
from sb3_cesd.common.choices import Part
from sb3_cesd.envs.robots.ids import LOCOMOTION
from sb3_cesd.skill_ddpg.finetuning import constructor_names

#: Assumed steps per second until a run is finished (one core of an AMD EPYC): of pre-training, and of a task
STEPS_PER_SECOND = {"laptop": (450.0, 200.0), "published": (3.0, 6.0)}
#: The same for pre-training on METRA's robots, which has fewer updates
LOCOMOTION_STEPS_PER_SECOND = {"laptop": 1000.0, "published": 100.0}
#: Assumed duration of a run of random actions until one is finished [s]: they are only evaluated, whatever the number of steps
RANDOM_SECONDS = 2.0
#: Arguments of tasks that have an option of their own, for all methods, and for those that learn from a pre-trained model
OPTIONS = {
    "env": "--tasks",
    "n_timesteps": "--finetune-steps",
    "seed": "--seeds",
    "device": "--device",
    "cuda_graph": "--device",
}
OPTIONS_OF_PRETRAINED = {
    "path": "--from-steps",
    "skill": "--skill",
    "n_eval_episodes": "--skill-episodes",
    "warm_up": "--warm-up",
    "transfer": "--transfer",
}


def skill_choice(text: str) -> int | str:
    """
    Parse the choice of a skill.

    :param text: an argument
    :return: index of a skill, ``"random"`` or ``"best"``
    :raises argparse.ArgumentTypeError: if it is neither
    """
    if text in ("random", "best"):
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: pass random, best or the index of a skill")
    return int(text)


def argument(text: str) -> tuple[str, Any]:
    """
    Parse an argument of a constructor, written as for RL Zoo.

    :param text: ``NAME:VALUE``
    :return: name and value
    :raises argparse.ArgumentTypeError: if it has another form
    """
    name, _, value = text.partition(":")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} has no name and value: write it like learning_starts:4000") from None


def skill_refused(skill: int | str, methods: Sequence[str], domains: Sequence[str], scale: str) -> str | None:
    """
    Look for a method that lacks the skill which is to learn tasks.

    :param skill: the choice of a skill
    :param methods: names of methods
    :param domains: pre-training ids
    :param scale: one of ``SCALES``
    :return: what is wrong with the first such method, and the remedy; ``None`` if there is none
    """
    if isinstance(skill, str):
        return None
    for method in (METHODS[name] for name in methods if METHODS[name].pretrained):
        n_skills = min(method.arguments(scale, domain)["n_skills"] for domain in domains)
        if skill >= n_skills:
            return f"--skill {skill}: {method.algo} has {n_skills} skills, pass at most {n_skills - 1}"
    return None


def task_params_refused(names: Iterable[str], methods: Sequence[str]) -> str | None:
    """
    Look for arguments of tasks that do not exist, would have no effect, or would clash with an option.

    :param names: names of the arguments
    :param methods: names of methods
    :return: what is wrong with the first such argument, and the remedy; ``None`` if there is none
    """
    pretrained = [method for method in methods if METHODS[method].pretrained]
    options = {**OPTIONS, **OPTIONS_OF_PRETRAINED} if pretrained else OPTIONS
    for name in names:
        if name in options:
            return f"--task-params {name}: there is an option for it, pass {options[name]} instead"
        if pretrained and name in FIXED:
            return (
                f"--task-params {name}: tasks of {pretrained[0]} keep it from their pre-trained model, leave it out or pass "
                "--methods scratch alone"
            )
        for algo in filter(None, (METHODS[method].algo for method in methods)):
            try:
                check_names(algo, [name], constructor_names(registry.METHODS[algo]))
            except ValueError as error:
                return f"--task-params {name}: {error}"
    return None


def estimate(run: Row, rows: pd.DataFrame, steps: str, steps_per_second: float) -> float:
    """
    Estimate how long a run will take.

    :param run: a missing run
    :param rows: finished runs, with ``seconds``
    :param steps: column of the number of environment steps
    :param steps_per_second: speed until a run of the same scale is finished
    :return: how long it will take [s], from the median speed of runs of the same method and scale, or else of the same scale;
        for random actions the median duration of such runs, which no other estimate uses. The duration of a run includes the
        time in which its machine slept
    """
    is_random = run["method"] == "random"
    alike = rows if rows.empty else rows[(rows.scale == run["scale"]) & ((rows.method == "random") == is_random)]
    if is_random:
        return RANDOM_SECONDS if alike.empty else float(alike.seconds.median())
    if alike.empty:
        return run[steps] / steps_per_second
    same = alike[alike.method == run["method"]]
    finished = alike if same.empty else same
    return float(run[steps] * (finished.seconds / finished[steps]).median())


def estimate_pretraining(run: Row, rows: pd.DataFrame) -> float:
    """
    Estimate how long a pre-training will take.

    :param run: a missing run
    :param rows: finished runs; the speeds of METRA's robots and of the others are separate
    :return: how long it will take [s]
    """
    of_metra = run["domain"] in LOCOMOTION
    speed = LOCOMOTION_STEPS_PER_SECOND[run["scale"]] if of_metra else STEPS_PER_SECOND[run["scale"]][0]
    alike = rows if rows.empty else rows[rows.domain.isin(LOCOMOTION) == of_metra]
    return estimate(run, alike, "pretrain_steps", speed)


def first_lost_model(pretraining: list[Row], learning: list[Row], output: Path) -> Path | None:
    """
    Find a model that is lost, before anything is learned.

    :param pretraining: all runs of pre-training
    :param learning: all runs of tasks
    :param output: folder of the results
    :return: the first model that a missing task needs and that is gone, although its pre-training is finished
    """
    to_train = runs_left(pretraining, read_rows(output / "pretraining.csv"), OF_OLD_PRETRAINING)
    coming = {(run["method"], run["domain"], run["seed"]) for run in to_train}
    for run in runs_left(learning, read_rows(output / "runs.csv"), OF_OLD_TASKS):
        if METHODS[run["method"]].pretrained and (run["method"], run["domain"], run["seed"]) not in coming:
            lost = lost_model(run, output / "models", output / "evaluations")
            if lost is not None:
                return lost
    return None


def check_files_are_free(pretraining: list[Row], save_at: Iterable[int], models: Path) -> None:
    """
    Check that no model has the file of one of another training: what is saved after 100k steps of 300k is no model of 100k.

    :param pretraining: all runs of pre-training
    :param save_at: steps at which models are saved before the end
    :param models: folder of the models
    :raises ValueError: if one has
    """
    for run in pretraining:
        wanted = run["pretrain_steps"]
        for step in (*save_at, wanted):
            file = model_file(models, run, step)
            total = total_steps(file)
            if total not in (None, wanted):
                raise ValueError(TAKEN.format(file=file, total=total, wanted=wanted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=["cesd", "apt", "diayn", "scratch", "random"])
    parser.add_argument("--domains", nargs="+", choices=list(DOMAINS), default=["Walker-v0"])
    parser.add_argument("--tasks", nargs="*", help="default: all tasks of the domains; pass none for pre-training alone")
    parser.add_argument(
        "--seeds", type=at_least(0, 10_000), nargs="+", default=[3], help="number of seeds, or the first and one past the last"
    )
    parser.add_argument("--repeats", type=at_least(1), default=1, help="how often a task is learned from the same model")
    parser.add_argument("--scale", choices=list(SCALES), default="laptop", help="sizes of networks and batches, and steps")
    parser.add_argument("--pretrain-steps", type=at_least(1), help="environment steps of pre-training (default: of the scale)")
    parser.add_argument("--finetune-steps", type=at_least(1), help="environment steps of a task (default: of the scale)")
    parser.add_argument(
        "--from-steps", type=at_least(1), help="start tasks from the model saved at this step (default: the last)"
    )
    parser.add_argument("--save-at", type=at_least(1), nargs="*", default=[], help="also save models at these steps")
    parser.add_argument("--skill", type=skill_choice, default="random", help="skill of a task: random, best or an index")
    parser.add_argument("--skill-episodes", type=at_least(1), default=1, help="episodes per skill to find the best")
    parser.add_argument("--warm-up", choices=WARM_UPS, default="random", help="what acts before a task is learned")
    parser.add_argument(
        "--transfer", nargs="+", choices=get_args(Part), help="parts of the model for tasks (default: as published)"
    )
    parser.add_argument(
        "--task-params", type=argument, nargs="+", default=[], metavar="NAME:VALUE", help="arguments to change for tasks"
    )
    parser.add_argument("--eval-freq", type=at_least(1), default=10_000, help="steps between two evaluations of a task")
    parser.add_argument(
        "--n-eval-episodes", type=at_least(1), default=10, help="episodes per evaluation, and per skill to score the best"
    )
    parser.add_argument("--jobs", type=at_least(1), default=2, help="number of parallel runs")
    parser.add_argument(
        "--device", type=device_name, default="cpu", help="device of the models: cpu, or cuda for updates as graphs"
    )
    parser.add_argument("--env-threads", type=at_least(1), default=1, help="threads of a run that step parallel environments")
    parser.add_argument("--backend", choices=["loky", "ray"], default="loky", help="processes, or a Ray cluster")
    parser.add_argument("--address", help="address of the Ray cluster, e.g. auto (default: start one on this machine)")
    parser.add_argument("--output", type=output_folder, default=Path("results/urlb"), help="folder shared by all machines")
    parser.add_argument("--dry-run", action="store_true", help="list the missing runs, and how long they will take")
    args = parser.parse_args()
    pretrain_steps = {domain: args.pretrain_steps or entry_steps(args.scale, domain) for domain in args.domains}
    tasks = [task for domain in args.domains for task in DOMAINS[domain]]
    if args.tasks is not None:
        unknown = sorted(set(args.tasks) - set(tasks))
        if unknown:
            parser.error(f"unknown tasks {', '.join(unknown)}: choose some of {', '.join(tasks)}, or add their domain")
        tasks = args.tasks
    finetune_steps = {task: args.finetune_steps or entry_steps(args.scale, task) for task in tasks}
    seeds = seeds_of(parser, args.seeds)
    shortest = min(pretrain_steps.values())
    if args.from_steps not in (None, *args.save_at, *(pretrain_steps[domain] for domain in args.domains if DOMAINS[domain])):
        parser.error(f"--from-steps {args.from_steps}: pass --save-at {args.from_steps} as well")
    if max(args.save_at, default=0) > shortest:
        parser.error(f"--save-at {max(args.save_at)}: pre-training ends after {shortest} steps, pass no more")
    for steps in sorted(finetune_steps.values()):
        check_eval_freq(parser, args.eval_freq, steps, "tasks end")
    refused = skill_refused(args.skill, args.methods, args.domains, args.scale)
    refused = refused or task_params_refused(dict(args.task_params), args.methods)
    if tasks and refused:
        parser.error(refused)
    if not args.dry_run:
        make_folder(parser, args.output)
    output = args.output.resolve()
    models = output / "models"
    n_envs = {(name, domain): METHODS[name].n_envs(args.scale, domain) for name in args.methods for domain in args.domains}
    pretraining = [
        {
            "method": method,
            "domain": domain,
            "scale": args.scale,
            "seed": seed,
            "pretrain_steps": pretrain_steps[domain],
            "n_envs": n_envs[method, domain],
        }
        for seed in seeds
        for domain in args.domains
        for method in args.methods
        if METHODS[method].pretrained
    ]
    # 0 means as in the yml file, like in other columns that do not apply to a row
    task_params = json.dumps(dict(args.task_params), sort_keys=True) if args.task_params else 0
    plays_skills = args.skill == "best" and args.warm_up != "skills"
    learned = [name for name in args.methods if METHODS[name].pretrained]
    parts = {name: args.transfer or registry.METHODS[METHODS[name].algo].published_transfer for name in learned}
    ways: dict[str, Row] = {
        name: {"skill_choice": args.skill, "warm_up": args.warm_up, "transfer": "+".join(sorted(set(parts[name])))}
        for name in learned
    }
    learning = [
        {
            "method": method,
            "domain": domain,
            "task": task,
            "scale": args.scale,
            "seed": seed,
            "pretrain_steps": (args.from_steps or pretrain_steps[domain]) if method in ways else 0,
            "pretrain_envs": n_envs[method, domain],
            "finetune_steps": finetune_steps[task],
            **ways.get(method, dict.fromkeys(("skill_choice", "warm_up", "transfer"), 0)),
            # Random actions are evaluated once
            "eval_freq": args.eval_freq if METHODS[method].algo else 0,
            "n_eval_episodes": args.n_eval_episodes,
            # Episodes are only played to find the best skill
            "n_skill_episodes": args.skill_episodes if plays_skills and method in ways else 1,
            "repeat": repeat,
            "task_params": task_params if METHODS[method].algo else 0,
        }
        for seed in seeds
        for repeat in range(args.repeats)
        for domain in args.domains
        for task in DOMAINS[domain]
        if task in tasks
        for method in args.methods
    ]
    if not pretraining and not learning:
        parser.error("there is nothing to learn: pass a method that learns skills, or a domain with tasks")
    if not args.dry_run and (lost := first_lost_model(pretraining, learning, output)) is not None:
        parser.error(LOST.format(file=lost))
    try:
        check_files_are_free(pretraining, args.save_at, models)
    except ValueError as error:
        parser.error(str(error))
    failure: RuntimeError | None = None
    with use_backend(args.backend, args.address):
        if pretraining:
            print("Pre-training: ", end="")
            try:
                run_missing(
                    pretraining,
                    partial(
                        pretrain,
                        models=models,
                        save_at=args.save_at,
                        n_task_episodes=max(2, args.n_eval_episodes),
                        device=args.device,
                        n_env_threads=args.env_threads,
                    ),
                    output / "pretraining.csv",
                    args.jobs,
                    args.dry_run,
                    estimate_pretraining,
                    OF_OLD_PRETRAINING,
                )
            except RuntimeError as error:
                failure = error
                print(f"{error}\nGoing on with the tasks of the other models.")
                learning = [
                    run
                    for run in learning
                    if not METHODS[run["method"]].pretrained or lost_model(run, models, output / "evaluations") is None
                ]
        if learning:
            print("Tasks: ", end="")
            run_missing(
                learning,
                partial(
                    learn_task,
                    models=models,
                    evaluations=output / "evaluations",
                    device=args.device,
                    n_env_threads=args.env_threads,
                ),
                output / "runs.csv",
                args.jobs,
                args.dry_run,
                partial(estimate, steps="finetune_steps", steps_per_second=STEPS_PER_SECOND[args.scale][1]),
                OF_OLD_TASKS,
            )
    if failure is not None:
        raise failure


if __name__ == "__main__":
    main()
