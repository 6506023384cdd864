"""
The benchmark of mazes: all methods x mazes x seeds in one command, then figures and tables as in the paper.

    python benchmarks/maze.py --seeds 5 --jobs 2                  # the methods
    python benchmarks/maze.py --seeds 5 --jobs 2 --ablations      # and ablations of CeSD
    python benchmarks/maze.py --seeds 5 --jobs 2 --mine           # and mutual information by MINE

Writes to ``results/maze``. Runs that are in ``runs.csv`` are not repeated: stop at any time, and continue with the same
command. Each run has one thread. Runs with another number of steps are other runs.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import maze_report
import numpy as np
import torch as th
from costs import Costs, measure_costs
from maze_methods import ABLATIONS, MAIN, METHODS, N_TIMESTEPS
from mine import mine_mutual_information
from runs import Row, add_run_options, positive, run_missing, visited_observations
from scipy import stats
from stable_baselines3.common.callbacks import BaseCallback

from sb3_cesd import registry
from sb3_cesd.common.files import written_whole
from sb3_cesd.envs.mazes.layouts import LAYOUTS, MazeLayout
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import (
    SkillRollouts,
    collect_rollouts,
    maze_coverage,
    on_cluster_share,
    particle_entropy,
    plug_in_mutual_information,
    skill_metrics,
)
from sb3_cesd.metrics.measures import torso_coverage
from sb3_cesd.skill_ddpg import SkillDDPG

HORIZON = 50
#: Rollouts of each skill: for the measures, for MINE and for the particle entropy (the latter two as published)
N_ROLLOUTS, N_MINE_ROLLOUTS, N_ENTROPY_ROLLOUTS = 20, 100, 10
#: Standard deviation of the white noise on actions in rollouts, the same for all methods
ROLLOUT_NOISE = 0.2
#: Points of the curves over training
N_CURVE = 20
#: Side of the bins of the entropy of a skill, as of the mutual information
ENTROPY_BIN = 0.25
#: Side of the coarse bins; a short training can't visit all of the finer ones (0.05)
COARSE_BIN = 0.1


class Entropies(BaseCallback):
    """
    The entropy of each skill during training.

    :param every: environment steps between two points
    :param play: plays the model
    """

    def __init__(self, every: int, play: Callable[..., SkillRollouts]) -> None:
        super().__init__()
        self.every, self.play = every, play
        self.steps: list[int] = []
        self.entropies: list[list[float]] = []

    def _on_step(self) -> bool:
        if self.num_timesteps // self.every > len(self.steps):
            self.steps.append(self.num_timesteps)
            self.entropies.append(skill_entropies(self.play(self.model)))
        return True


def skill_entropies(rollouts: SkillRollouts) -> list[float]:
    """Compute the entropy of the places of each skill [nats], from frequencies in bins of side :data:`ENTROPY_BIN`."""
    bins = np.floor(rollouts.states.reshape(len(rollouts.states), -1, 2) / ENTROPY_BIN)
    return [round(float(stats.entropy(np.unique(each, axis=0, return_counts=True)[1])), 3) for each in bins]


def coarse_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """Compute the share of the free bins of side :data:`COARSE_BIN` that states of shape ``(n, 2)`` visit."""
    return torso_coverage(states - layout.low, COARSE_BIN) / (layout.n_free_cells * round(1 / COARSE_BIN) ** 2)


def entropy_of_published_size(rollouts: SkillRollouts) -> float:
    """Measure the particle entropy of as many states as published, as only sets of equal size can be compared."""
    return particle_entropy(rollouts.states[:, :N_ENTROPY_ROLLOUTS].reshape(-1, 2))


def rollouts_file(folder: Path, run: Row) -> Path:
    """Return the file of the rollouts of a run."""
    return folder / "{method}_{maze}_{seed}_{n_timesteps}.npz".format(**run)


def run_one(run: Row, rollouts_folder: Path) -> Row:
    """Train a method in a maze, then measure its skills; their rollouts become a file."""
    th.set_num_threads(1)
    layout, seed, steps = LAYOUTS[run["maze"]], run["seed"], run["n_timesteps"]
    method = METHODS[run["method"]]
    arguments = method.arguments()
    used = json.dumps(arguments)
    # Coverage is that of all transitions
    arguments["buffer_size"] = max(int(arguments["buffer_size"]), steps)
    env = MazeVecEnv(run["maze"], arguments.pop("n_envs"), max_episode_steps=HORIZON)
    model = registry.METHODS[method.algo]("MlpPolicy", env, seed=seed, device="cpu", **arguments)
    n_skills = arguments["n_skills"]
    play_env = MazeVecEnv(run["maze"], N_ROLLOUTS * n_skills, max_episode_steps=HORIZON)
    play = partial(collect_rollouts, env=play_env, n_rollouts=N_ROLLOUTS, n_steps=HORIZON, noise_std=ROLLOUT_NOISE, seed=seed)
    curves = Entropies(steps // N_CURVE, play)
    start = time.perf_counter()
    model.learn(steps, callback=curves, log_interval=None)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start

    rollouts = play(model)
    drawn = play(model, reset_options={"position": layout.start_cell}).states.astype(np.float16)
    many = play(model, n_rollouts=N_MINE_ROLLOUTS).states.astype(np.float16)
    with written_whole(rollouts_file(rollouts_folder, run)) as file:
        np.savez_compressed(file, drawn=drawn, many=many)
    measures = measure(model, layout, rollouts)
    told = {"curve_steps": json.dumps(curves.steps), "skill_entropies": json.dumps(curves.entropies), "arguments": used}
    return {"n_updates": model._n_updates, "seconds": round(seconds, 1), **measures, **told}


def measure(model: SkillDDPG, layout: MazeLayout, rollouts: SkillRollouts) -> dict[str, float]:
    """Measure the skills of a trained model by stochastic rollouts."""
    states, _ = rollouts.per_state()
    clusters = model.predict_clusters(states.astype(np.float32))
    metrics = skill_metrics(rollouts, clusters, layout=layout)
    # Observations are positions
    metrics = {name: value for name, value in metrics.items() if not name.endswith("_places")}
    assert model.replay_buffer is not None
    visited = visited_observations(model.replay_buffer)
    late_states = rollouts.states[:, :, HORIZON // 2 :]
    late_skills = np.broadcast_to(rollouts.skills[..., None], late_states.shape[:3]).ravel()
    late_states = late_states.reshape(-1, 2)
    measures = {
        "total_coverage": maze_coverage(visited, layout),
        "total_coverage_coarse": coarse_coverage(visited, layout),
        "policy_coverage": metrics.pop("policy_coverage"),
        "policy_coverage_coarse": coarse_coverage(states, layout),
        "mi_plug_in": metrics.pop("mutual_information"),
        "mi_late": plug_in_mutual_information(late_states, late_skills),
        **metrics,
        "particle_entropy": entropy_of_published_size(rollouts),
    }
    late_clusters = model.predict_clusters(late_states.astype(np.float32))
    if late_clusters is not None:
        measures["on_cluster_share_late"] = on_cluster_share(late_clusters, late_skills)
    return measures


def mine_one(run: Row, rollouts_folder: Path) -> Row:
    """Estimate the mutual information of a run by MINE, and that with shuffled skills, which can only be memorised."""
    th.set_num_threads(1)
    file = rollouts_file(rollouts_folder, run)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not there: copy it there, or delete the row of its run in runs.csv to repeat it.")
    states = np.load(file)["many"].astype(np.float32)  # (n_skills, n_rollouts, n_steps + 1, 2)
    n_skills, n_rollouts = states.shape[:2]
    paths = states.reshape(n_skills * n_rollouts, -1)
    skills = np.repeat(np.arange(n_skills), n_rollouts)
    shuffled = np.random.default_rng(run["seed"]).permutation(skills)
    estimate = partial(mine_mutual_information, paths, n_iterations=run["n_iterations"], seed=run["seed"])
    return {"mi_mine": estimate(skills=skills), "mi_mine_shuffled": estimate(skills=shuffled)}


@cache
def costs_of(name: str) -> Costs:
    """Measure the costs of a method, the same in all mazes."""
    arguments = METHODS[name].arguments()
    env = MazeVecEnv("square_a", arguments.pop("n_envs"), max_episode_steps=HORIZON)
    return measure_costs(registry.METHODS[METHODS[name].algo], env, arguments, N_TIMESTEPS)[1]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), metavar="METHOD", help="default: all but the ablations")
    parser.add_argument("--ablations", action="store_true", help=f"also run the ablations: {', '.join(ABLATIONS)}")
    parser.add_argument("--mazes", nargs="+", choices=list(LAYOUTS), default=["square_a", "square_b", "tree"])
    parser.add_argument("--seeds", type=positive, default=5, help="number of seeds, from --first-seed on")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=positive, default=N_TIMESTEPS, help=f"environment steps of a run, at least {N_CURVE}")
    parser.add_argument("--mine", action="store_true", help="also estimate MINE, which takes longer than the training")
    parser.add_argument("--mine-iterations", type=positive, default=20_000, help="iterations of MINE")
    parser.add_argument("--report-only", action="store_true", help="only write figures and tables of the finished runs")
    add_run_options(parser, "results/maze")
    args = parser.parse_args(argv)
    methods = [*(args.methods or MAIN), *(ABLATIONS if args.ablations else [])]
    rollouts = args.output.resolve() / "rollouts"
    if not args.report_only:
        # Seed by seed, so that an unfinished benchmark covers all methods and mazes
        runs: list[Row] = [
            {"method": method, "maze": maze, "seed": seed, "n_timesteps": args.steps}
            for seed in range(args.first_seed, args.first_seed + args.seeds)
            for maze in args.mazes
            for method in methods
        ]
        how = {"n_jobs": args.jobs, "dry_run": args.dry_run}
        do = partial(run_one, rollouts_folder=rollouts)
        cost = lambda run: costs_of(run["method"]).of_training(run["n_timesteps"])  # noqa: E731
        run_missing(runs, do, args.output / "runs.csv", seconds_of=cost, **how)
        if args.mine:
            estimates = [{**run, "n_iterations": args.mine_iterations} for run in runs]
            run_missing(estimates, partial(mine_one, rollouts_folder=rollouts), args.output / "mine.csv", **how)
    if not args.dry_run:
        maze_report.write(args.output, args.steps)


if __name__ == "__main__":
    main()
