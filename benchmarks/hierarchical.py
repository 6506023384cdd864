"""
The benchmark of goals: an algorithm of SB3 chooses among pre-trained skills, each of which acts for 25 steps.

    python benchmarks/urlb.py --methods metra diayn --domains SkillAnt-v0 --save-at 1000000             # learns the skills
    python benchmarks/hierarchical.py --methods metra diayn scratch random --tasks AntMultiGoal
    python benchmarks/hierarchical.py --methods metra --tasks AntMultiGoal --controller dqn --pretrain-steps 1000000

The tasks are those of METRA and CSF, with 8 choices in an episode of 200 steps. Writes ``hierarchical.csv`` and
``hierarchical_evaluations``. Runs that are in the CSV file are not repeated: stop at any time, and continue with the same
command. Steps are those of the environment, 25 per choice.
"""

import argparse
import os
from functools import partial
from pathlib import Path

from arguments import at_least, check_eval_freq, existing, make_folder, output_folder, seeds_of
from hierarchical_run import CONTROLLERS, DURATION, learn_goals
from runs import Row, read_rows, run_missing, runs_left
from urlb import estimate
from urlb_methods import METHODS, SCALES, entry_steps
from urlb_run import model_file

from sb3_cesd.envs.goals import GOAL_TASKS

#: Methods without skills: the same algorithm acts in every step, or random actions
WITHOUT_SKILLS = ("scratch", "random")
#: Assumed steps per second until a run is finished (one core of an AMD EPYC)
STEPS_PER_SECOND = 1000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    methods = [name for name, method in METHODS.items() if method.pretrained or name in WITHOUT_SKILLS]
    parser.add_argument("--methods", nargs="+", choices=methods, default=["metra", "scratch", "random"])
    parser.add_argument("--tasks", nargs="+", choices=list(GOAL_TASKS), default=["AntMultiGoal"])
    parser.add_argument(
        "--seeds", type=at_least(0, 10_000), nargs="+", default=[3], help="number of seeds, or the first and one past the last"
    )
    parser.add_argument("--scale", choices=list(SCALES), default="laptop", help="scale of the pre-trained models")
    parser.add_argument("--pretrain-steps", type=at_least(1), help="steps of the pre-trained models (default: as in urlb.py)")
    parser.add_argument("--controller", choices=list(CONTROLLERS), default="ppo", help="algorithm that chooses the skills")
    parser.add_argument(
        "--steps", type=at_least(DURATION), default=400_000, help="environment steps of learning to choose, at least"
    )
    parser.add_argument("--eval-freq", type=at_least(DURATION), default=50_000, help="steps between two evaluations")
    parser.add_argument("--n-eval-episodes", type=at_least(1), default=20, help="episodes per evaluation")
    parser.add_argument("--jobs", type=at_least(1), default=2, help="number of parallel runs")
    parser.add_argument("--models", type=existing, help="folder of the pre-trained models (default: models in --output)")
    parser.add_argument("--output", type=output_folder, default=Path("results/urlb"), help="folder of the results")
    parser.add_argument("--dry-run", action="store_true", help="list the missing runs, and how long they will take")
    args = parser.parse_args()
    seeds = seeds_of(parser, args.seeds)
    check_eval_freq(parser, args.eval_freq, args.steps, "learning ends")
    if args.eval_freq % DURATION:
        parser.error(f"--eval-freq {args.eval_freq}: a skill takes {DURATION} steps, pass a multiple of that")
    if args.controller == "dqn" and "scratch" in args.methods:
        parser.error("--controller dqn: it takes no continuous actions, leave scratch out or pass --controller ppo")
    output = args.output.resolve()
    models = output / "models" if args.models is None else args.models.resolve()
    runs: list[Row] = []
    for seed in seeds:
        for task in args.tasks:
            domain = GOAL_TASKS[task].env_id
            steps = args.pretrain_steps or entry_steps(args.scale, domain)
            for method in args.methods:
                run = {"method": method, "domain": domain, "task": task, "scale": args.scale, "seed": seed}
                learns = method not in WITHOUT_SKILLS
                runs.append(
                    {
                        **run,
                        "pretrain_steps": steps if learns else 0,
                        "controller": args.controller if method != "random" else 0,
                        "n_timesteps": args.steps,
                        "eval_freq": args.eval_freq if method != "random" else 0,
                        "n_eval_episodes": args.n_eval_episodes,
                    }
                )
    for run in [] if args.dry_run else runs_left(runs, read_rows(output / "hierarchical.csv"), {}):
        file = model_file(models, run, run["pretrain_steps"])
        if run["method"] not in WITHOUT_SKILLS and not file.is_file():
            option = f" --pretrain-steps {args.pretrain_steps}" if args.pretrain_steps else ""
            parser.error(
                f"there is no {file}: train it with python benchmarks/urlb.py --methods {run['method']} "
                f"--domains {run['domain']} --scale {args.scale} --seeds {run['seed']} {run['seed'] + 1} --tasks{option} "
                f"--output {models.parent if models.name == 'models' else f'FOLDER, and pass --models FOLDER{os.sep}models'}"
            )
    if not args.dry_run:
        make_folder(parser, args.output)
    run_missing(
        runs,
        partial(learn_goals, models=models, evaluations=output / "hierarchical_evaluations"),
        output / "hierarchical.csv",
        args.jobs,
        args.dry_run,
        partial(estimate, steps="n_timesteps", steps_per_second=STEPS_PER_SECOND),
    )


if __name__ == "__main__":
    main()
