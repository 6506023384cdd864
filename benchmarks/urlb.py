"""
The benchmark of robots: learn skills without a reward, then tasks from them, and the same tasks from scratch.

    python benchmarks/urlb.py --dry-run                                            # what would be done, and how long it takes
    python benchmarks/urlb.py --methods cesd apt diayn scratch --seeds 3 --jobs 2  # Walker, laptop scale: 200k + 50k steps
    python benchmarks/urlb.py --scale published --domains Walker-v0 Quadruped-v0 --backend ray --address auto

Writes ``pretraining.csv``, ``runs.csv``, ``models`` and ``evaluations``. A run that is in a CSV file is not done again: stop
it at any time and go on with the same command. Each run has one thread.
"""

import argparse
from functools import partial
from pathlib import Path

import pandas as pd
from cluster import use_backend
from runs import Row, run_missing
from urlb_methods import DOMAINS, METHODS, SCALES
from urlb_run import learn_task, pretrain

from sb3_cesd.skill_ddpg.checks import WARM_UPS
from sb3_cesd.skill_ddpg.finetuning import PARTS, PUBLISHED_PARTS

#: Steps of pre-training and of a task
STEPS = {"laptop": (200_000, 50_000), "published": (2_000_000, 100_000)}
#: Steps in a second before any run is finished (one core of an AMD EPYC): of pre-training and of a task
STEPS_PER_SECOND = {"laptop": (90.0, 200.0), "published": (3.0, 6.0)}


def skill_choice(text: str) -> int | str:
    """
    Parse the choice of a skill.

    :param text: an argument
    :return: index of a skill, or a word
    :raises argparse.ArgumentTypeError: if it is neither
    """
    if text in ("random", "best"):
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: pass random, best or the index of a skill")
    return int(text)


def estimate(run: Row, rows: pd.DataFrame, steps: str, steps_per_second: float) -> float:
    """
    Estimate how long a run will take.

    :param run: a run to be done
    :param rows: finished ones, with ``seconds``
    :param steps: column of the number of environment steps
    :param steps_per_second: as long as none is finished
    :return: how long it will take [s], at the speed of those of the same method and scale, else of any
    """
    if rows.empty:
        return run[steps] / steps_per_second
    same = rows[(rows.method == run["method"]) & (rows.scale == run["scale"])]
    finished = rows if same.empty else same
    return float(run[steps] * finished.seconds.sum() / finished[steps].sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=["cesd", "apt", "diayn", "scratch", "random"])
    parser.add_argument("--domains", nargs="+", choices=list(DOMAINS), default=["Walker-v0"])
    parser.add_argument("--tasks", nargs="*", help="default: all tasks of the domains; none for pre-training alone")
    parser.add_argument("--seeds", type=int, nargs="+", default=[3], help="how many, or from which to before which")
    parser.add_argument("--scale", choices=list(SCALES), default="laptop", help="sizes of networks and batches, and steps")
    parser.add_argument("--pretrain-steps", type=int)
    parser.add_argument("--finetune-steps", type=int)
    parser.add_argument("--from-steps", type=int, help="start tasks from the model saved at this step (default: the last)")
    parser.add_argument("--save-at", type=int, nargs="*", default=[], help="save models at these steps, too")
    parser.add_argument("--skill", type=skill_choice, default="random", help="random, best or an index")
    parser.add_argument("--skill-episodes", type=int, default=1, help="episodes of each skill to tell the best")
    parser.add_argument("--warm-up", choices=WARM_UPS, default="random", help="who acts before a task is learned")
    parser.add_argument("--transfer", nargs="+", choices=PARTS, default=PUBLISHED_PARTS, help="what tasks take from the model")
    parser.add_argument("--eval-freq", type=int, default=10_000)
    parser.add_argument("--n-eval-episodes", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")
    parser.add_argument("--backend", choices=["loky", "ray"], default="loky", help="processes, or a Ray cluster")
    parser.add_argument("--address", help="of the Ray cluster, e.g. auto (default: start one on this machine)")
    parser.add_argument("--output", type=Path, default=Path("results/urlb"), help="a folder all machines share")
    parser.add_argument("--dry-run", action="store_true", help="list the runs that are left, and how long they will take")
    args = parser.parse_args()
    pretrain_steps, finetune_steps = (
        given or default for given, default in zip((args.pretrain_steps, args.finetune_steps), STEPS[args.scale], strict=True)
    )
    tasks = [task for domain in args.domains for task in DOMAINS[domain]]
    if args.tasks is not None:
        unknown = sorted(set(args.tasks) - set(tasks))
        if unknown:
            parser.error(f"unknown tasks {', '.join(unknown)}: choose some of {', '.join(tasks)}, or add their domain")
        tasks = args.tasks
    if len(args.seeds) > 2:
        parser.error("--seeds: pass how many, or the first and the one after the last")
    seeds = range(*args.seeds)
    from_steps = args.from_steps or pretrain_steps
    if from_steps not in (*args.save_at, pretrain_steps):
        parser.error(f"--from-steps {from_steps}: pass --save-at {from_steps} as well")
    output = args.output.resolve()
    models = output / "models"
    pretraining = [
        {"method": method, "domain": domain, "scale": args.scale, "seed": seed, "pretrain_steps": pretrain_steps}
        for seed in seeds
        for domain in args.domains
        for method in args.methods
        if METHODS[method].pretrained
    ]
    way = {"skill_choice": args.skill, "warm_up": args.warm_up, "transfer": "+".join(sorted(args.transfer))}
    learning = [
        {
            "method": method,
            "domain": domain,
            "task": task,
            "scale": args.scale,
            "seed": seed,
            "pretrain_steps": from_steps if METHODS[method].pretrained else 0,
            "finetune_steps": finetune_steps,
            **(way if METHODS[method].pretrained else dict.fromkeys(way, 0)),
        }
        for seed in seeds
        for domain in args.domains
        for task in DOMAINS[domain]
        if task in tasks
        for method in args.methods
    ]
    speeds = STEPS_PER_SECOND[args.scale]
    with use_backend(args.backend, args.address):
        if pretraining:
            print("Pre-training: ", end="")
            run_missing(
                pretraining,
                partial(pretrain, models=models, save_at=args.save_at),
                output / "pretraining.csv",
                args.jobs,
                args.dry_run,
                partial(estimate, steps="pretrain_steps", steps_per_second=speeds[0]),
            )
        if learning:
            print("Tasks: ", end="")
            run_missing(
                learning,
                partial(
                    learn_task,
                    models=models,
                    evaluations=output / "evaluations",
                    eval_freq=args.eval_freq,
                    n_eval_episodes=args.n_eval_episodes,
                    n_skill_episodes=args.skill_episodes,
                ),
                output / "runs.csv",
                args.jobs,
                args.dry_run,
                partial(estimate, steps="finetune_steps", steps_per_second=speeds[1]),
            )


if __name__ == "__main__":
    main()
