"""
The benchmark of robots: learn skills without a reward, then tasks from them, and the same tasks from scratch.

    python benchmarks/urlb.py --dry-run                                            # what would be done
    python benchmarks/urlb.py --methods cesd apt diayn scratch --seeds 3 --jobs 2  # Walker, laptop scale: 300k + 50k steps
    python benchmarks/urlb.py --scale published --domains Walker-v0 Quadruped-v0 --jobs 16
    python benchmarks/urlb.py --methods metra diayn --domains SkillAnt-v0 SkillHalfCheetah-v0  # coverage and goals

Writes ``pretraining.csv``, ``runs.csv``, ``models`` and ``evaluations``. Runs that are in a CSV file are not repeated: stop at
any time, and continue with the same command. Each run has one thread, unless told otherwise. Runs with other steps or
evaluations are other runs.
"""

import argparse
import json
from collections.abc import Sequence
from functools import cache, partial
from typing import get_args

from costs import Costs, measure_costs
from rl_zoo3.utils import StoreDict
from runs import (
    Row,
    add_run_options,
    add_seeds,
    check_eval_freq,
    positive,
    run_missing,
    seeds_of,
)
from urlb_methods import DOMAINS, HORIZONS, METHODS, SCALES, TASK_STEPS, entry_steps
from urlb_run import FIXED, learn_task, make_envs, model_file, pretrain

from sb3_cesd import registry
from sb3_cesd.skill_ddpg.finetuning import Part


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=["cesd", "apt", "diayn", "scratch", "random"])
    parser.add_argument("--domains", nargs="+", choices=list(DOMAINS), default=["Walker-v0"])
    parser.add_argument("--tasks", nargs="*", help="default: all tasks of the domains; pass none for pre-training alone")
    add_seeds(parser, 3)
    parser.add_argument("--repeats", type=positive, default=1, help="how often a task is learned from the same model")
    parser.add_argument("--scale", choices=SCALES, default="laptop", help="sizes of networks and batches, and steps")
    parser.add_argument("--pretrain-steps", type=positive, help="environment steps of pre-training (default: of the scale)")
    parser.add_argument("--finetune-steps", type=positive, help="environment steps of a task (default: of the scale)")
    parser.add_argument("--save-at", type=positive, nargs="*", default=[], help="also save models at these steps")
    parser.add_argument(
        "--from-steps", type=positive, help="start tasks from the model saved at this step (default: the last)"
    )
    parser.add_argument("--skill", default="random", help="skill of a task: random, best or an index")
    parser.add_argument(
        "--warm-up", choices=("random", "policy", "skills"), default="random", help="what acts before a task is learned"
    )
    parser.add_argument(
        "--transfer", nargs="+", choices=get_args(Part), help="parts of the model for tasks (default: as published)"
    )
    parser.add_argument(
        "--task-params", action=StoreDict, nargs="+", default={}, metavar="NAME:VALUE", help="arguments to change for tasks"
    )
    parser.add_argument("--eval-freq", type=positive, default=10_000, help="steps between two evaluations of a task")
    parser.add_argument(
        "--n-eval-episodes", type=positive, default=10, help="episodes per evaluation, and per skill to score the best"
    )
    parser.add_argument("--device", default="cpu", help="device of the models: cpu, or cuda for updates as graphs")
    parser.add_argument("--env-threads", type=positive, default=1, help="threads of a run that step parallel environments")
    add_run_options(parser, "results/urlb")
    return parser


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with a message if arguments don't fit together, before anything is learned."""
    tasks = [task for domain in args.domains for task in DOMAINS[domain]]
    args.tasks = tasks if args.tasks is None else args.tasks
    if unknown := set(args.tasks) - set(tasks):
        parser.error(f"unknown tasks {', '.join(unknown)}: choose some of {', '.join(tasks)}, or add their domain")
    if args.tasks:
        check_eval_freq(parser, args.eval_freq, args.finetune_steps or TASK_STEPS[args.scale])
    ends = {args.pretrain_steps or entry_steps(args.scale, domain) for domain in args.domains}
    if args.from_steps not in (None, *args.save_at, *ends):
        parser.error(f"--from-steps {args.from_steps}: pass --save-at {args.from_steps} as well")
    if args.skill == "best" and args.warm_up != "skills":
        parser.error("--skill best: the warm-up tells which it is, pass --warm-up skills as well")
    if args.skill not in ("random", "best"):
        if not args.skill.isdecimal():
            parser.error(f"--skill {args.skill}: pass random, best or the index of a skill")
        args.skill = int(args.skill)
    kept = set(args.task_params) & set(FIXED)
    if kept and any(METHODS[name].pretrained for name in args.methods):
        parser.error(f"--task-params {', '.join(kept)}: tasks keep this from their pre-trained model, leave it out")


def pretraining_of(args: argparse.Namespace, seeds: range) -> list[Row]:
    """List the runs of pre-training, seed by seed, so that an unfinished benchmark covers all methods."""
    return [
        {
            "method": name,
            "domain": domain,
            "scale": args.scale,
            "seed": seed,
            "pretrain_steps": args.pretrain_steps or entry_steps(args.scale, domain),
            "n_envs": METHODS[name].n_envs(args.scale, domain),
        }
        for seed in seeds
        for domain in args.domains
        for name in args.methods
        if METHODS[name].pretrained
    ]


def tasks_of(args: argparse.Namespace, seeds: range) -> list[Row]:
    """List the runs of tasks. 0 means as in the yml file, or that a column does not apply."""
    task_params = json.dumps(args.task_params, sort_keys=True) if args.task_params else 0
    runs = []
    for seed in seeds:
        for repeat in range(args.repeats):
            for domain in args.domains:
                for task in [task for task in DOMAINS[domain] if task in args.tasks]:
                    for name in args.methods:
                        method = METHODS[name]
                        run: Row = {"method": name, "domain": domain, "task": task, "scale": args.scale, "seed": seed}
                        run["pretrain_steps"], run["pretrain_envs"] = 0, method.n_envs(args.scale, domain)
                        run["finetune_steps"] = args.finetune_steps or TASK_STEPS[args.scale]
                        run |= {"skill_choice": 0, "warm_up": 0, "transfer": 0}
                        if method.pretrained:
                            ends = args.pretrain_steps or entry_steps(args.scale, domain)
                            parts = args.transfer or registry.METHODS[method.algo].published_transfer
                            run |= {"pretrain_steps": args.from_steps or ends, "skill_choice": args.skill}
                            run |= {"warm_up": args.warm_up, "transfer": "+".join(sorted(set(parts)))}
                        run["eval_freq"] = args.eval_freq if method.algo else 0
                        run["n_eval_episodes"] = args.n_eval_episodes
                        run |= {"repeat": repeat, "task_params": task_params if method.algo else 0}
                        runs.append(run)
    return runs


@cache
def costs_of(name: str, scale: str, env_id: str, n_envs: int) -> Costs:
    """Measure the costs of a method with a robot, or with a task if there is a single environment."""
    kind, arguments = registry.METHODS[METHODS[name].algo], METHODS[name].arguments(scale, env_id)
    return measure_costs(kind, make_envs(env_id, n_envs, 1), arguments, entry_steps(scale, env_id))[1]


def seconds_of(run: Row) -> float:
    """Estimate how long a run takes, with the evaluations of a task; all tasks of a robot take as long."""
    if "task" not in run:
        return costs_of(run["method"], run["scale"], run["domain"], run["n_envs"]).of_training(run["pretrain_steps"])
    if not run["eval_freq"]:
        return 0.0
    costs = costs_of(run["method"], run["scale"], DOMAINS[run["domain"]][0], 1)
    n_evaluated = run["finetune_steps"] // run["eval_freq"] * run["n_eval_episodes"] * HORIZONS[run["domain"]]
    return costs.of_training(run["finetune_steps"]) + n_evaluated * costs.step


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser()
    args = parser.parse_args(argv)
    seeds = seeds_of(parser, args.seeds)
    check(parser, args)
    output = args.output.resolve()
    pretraining, learning = pretraining_of(args, seeds), tasks_of(args, seeds)
    how = {"n_jobs": args.jobs, "dry_run": args.dry_run, "seconds_of": seconds_of}
    where = {"models": output / "models", "device": args.device, "n_env_threads": args.env_threads}
    failure = None
    if pretraining:
        print("Pre-training: ", end="")
        n_episodes = max(2, args.n_eval_episodes)
        try:
            run_one = partial(pretrain, save_at=args.save_at, n_task_episodes=n_episodes, **where)
            run_missing(pretraining, run_one, output / "pretraining.csv", **how)
        except RuntimeError as error:
            failure = error
            print(f"{error}\nGoing on with the tasks of the other models.")
            learning = [
                run
                for run in learning
                if not run["warm_up"] or model_file(output / "models", run, run["pretrain_steps"]).is_file()
            ]
    if learning:
        print("Tasks: ", end="")
        run_missing(learning, partial(learn_task, evaluations=output / "evaluations", **where), output / "runs.csv", **how)
    if failure is not None:
        raise failure


if __name__ == "__main__":
    main()
