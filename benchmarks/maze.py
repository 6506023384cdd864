"""
The benchmark of mazes: all methods x mazes x seeds in one command, then figures and tables as in the paper.

    python benchmarks/maze.py --seeds 5 --jobs 2                  # the methods
    python benchmarks/maze.py --seeds 5 --jobs 2 --ablations      # and ablations of CeSD
    python benchmarks/maze.py --seeds 5 --jobs 2 --mine           # and mutual information by MINE

Writes to ``results/maze``. Runs that are in ``runs.csv`` are not repeated: stop at any time, and continue with the same
command. Each run has one thread. Runs with another number of steps are other runs.
"""

import argparse
from functools import partial
from pathlib import Path

import maze_report
from arguments import at_least, make_folder, output_folder
from maze_methods import ABLATIONS, MAIN, METHODS, N_TIMESTEPS
from maze_run import N_CURVE, mine_one, run_one
from runs import run_missing

from sb3_cesd.envs.mazes.layouts import LAYOUTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), metavar="METHOD", help="default: all but the ablations")
    parser.add_argument("--ablations", action="store_true", help=f"also run the ablations: {', '.join(ABLATIONS)}")
    parser.add_argument("--mazes", nargs="+", choices=list(LAYOUTS), default=["square_a", "square_b", "tree"])
    parser.add_argument("--seeds", type=at_least(1, 10_000), default=5, help="number of seeds, from --first-seed on")
    parser.add_argument("--first-seed", type=at_least(0), default=0)
    parser.add_argument("--jobs", type=at_least(1), default=2, help="number of parallel runs")
    parser.add_argument("--steps", type=at_least(N_CURVE), default=N_TIMESTEPS, help="environment steps of a run")
    parser.add_argument("--mine", action="store_true", help="also estimate MINE, which takes longer than the training")
    parser.add_argument("--mine-iterations", type=at_least(1), default=20_000, help="iterations of MINE")
    parser.add_argument("--output", type=output_folder, default=Path("results/maze"), help="folder of the results")
    parser.add_argument("--dry-run", action="store_true", help="list the missing runs")
    parser.add_argument("--report-only", action="store_true", help="only write figures and tables of the finished runs")
    args = parser.parse_args()
    if not args.dry_run:
        make_folder(parser, args.output)

    methods = [*(args.methods or MAIN), *(ABLATIONS if args.ablations else [])]
    path, rollouts_folder = args.output / "runs.csv", args.output / "rollouts"
    if not args.report_only:
        # Seed by seed, so that an unfinished benchmark covers all methods and mazes
        runs = [
            {"method": method, "maze": maze, "seed": seed, "n_timesteps": args.steps}
            for seed in range(args.first_seed, args.first_seed + args.seeds)
            for maze in args.mazes
            for method in methods
        ]
        run_missing(runs, partial(run_one, rollouts_folder=rollouts_folder), path, args.jobs, args.dry_run)
        if args.mine:
            estimates = [{**run, "n_iterations": args.mine_iterations} for run in runs]
            mine, of_old_rows = partial(mine_one, rollouts_folder=rollouts_folder), {"n_timesteps": N_TIMESTEPS}
            run_missing(estimates, mine, args.output / "mine.csv", args.jobs, args.dry_run, defaults=of_old_rows)
    if not args.dry_run:
        try:
            maze_report.write(args.output, args.steps)
        except ValueError as error:
            parser.error(str(error))


if __name__ == "__main__":
    main()
