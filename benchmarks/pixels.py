"""
Skills from pictures of mazes, beside the same methods from positions after equal steps.

    python benchmarks/pixels.py --seeds 5 --jobs 2
    python benchmarks/pixels.py --methods cesd --observations pixels --encoder-learns-from reward both none --seeds 3
    python benchmarks/pixels.py --methods cesd --observations pixels --shift 1 2 --seeds 3
    python benchmarks/pixels.py --report                          # only the tables of the finished runs

Writes to ``results/pixels``. Runs that are in ``runs.csv`` are not repeated. Each run has one thread and the arguments of the
maze's entry in the yml file.
"""

import argparse
import json
import time

import gymnasium as gym
import numpy as np
import pandas as pd
import torch as th
from estimates import estimate, head, line, mean
from maze import HORIZON, N_ROLLOUTS, ROLLOUT_NOISE
from maze_methods import N_TIMESTEPS, with_defaults
from runs import Row, add_run_options, add_seeds, made_with, read_rows, run_missing, seeds_of, write_text_whole
from stable_baselines3.common.callbacks import BaseCallback

from sb3_cesd import preset, registry
from sb3_cesd.common.arguments import merge
from sb3_cesd.envs.mazes.layouts import LAYOUTS, MAZES
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.registration import pixels_id
from sb3_cesd.metrics import knn_accuracy, maze_coverage, play_places

COMPARED = ("cesd", "apt", "diayn", "cic", "metra", "rnd")
#: Settings of pictures, and their value for positions, which have none
OF_PICTURES, NONE = ("encoder_learns_from", "shift"), "-"
#: What runs of different seeds have in common
SETTING = ["maze", "method", "observation", *OF_PICTURES, "n_timesteps"]
#: Column -> heading and decimals
MEASURES = {
    "knn_accuracy": ("k-NN accuracy by place", 3),
    "policy_coverage": ("coverage of the skills", 3),
    "total_coverage": ("coverage of training", 3),
    "seconds": ("seconds", 0),
}


class Visited(BaseCallback):
    """Positions that training visits."""

    def __init__(self) -> None:
        super().__init__()
        self.positions: list[np.ndarray] = []

    def _on_step(self) -> bool:
        self.positions += [info["position"] for info in self.locals["infos"] if "position" in info]
        self.positions += self.training_env.get_attr("position")
        return True


def run_one(run: Row) -> Row:
    """Train a method in a maze, then measure by places where its skills go."""
    th.set_num_threads(1)
    layout, from_pixels = LAYOUTS[run["maze"]], run["observation"] == "pixels"
    env_id = next(env_id for env_id, name in MAZES.items() if name == run["maze"])
    env_id = pixels_id(env_id) if from_pixels else env_id
    settings = preset("laptop", env_id, run["method"])
    arguments = with_defaults(run["method"], settings)
    if from_pixels:
        encoder = {"encoder_learns_from": run["encoder_learns_from"], "encoder_kwargs": {"shift": run["shift"]}}
        arguments = merge(arguments, {"policy_kwargs": encoder})
    arguments["buffer_size"] = max(int(arguments["buffer_size"]), run["n_timesteps"])
    env = MazeVecEnv(n_envs=settings.n_envs, **gym.spec(env_id).kwargs)
    model = registry.METHODS[run["method"]](settings.policy, env, seed=run["seed"], device="cpu", **arguments)
    visited, start = Visited(), time.perf_counter()
    model.learn(run["n_timesteps"], visited, log_interval=None)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start

    env = MazeVecEnv(n_envs=N_ROLLOUTS * model.n_skills, **gym.spec(env_id).kwargs)
    rollouts = play_places(model, env, run["seed"], n_rollouts=N_ROLLOUTS, n_steps=HORIZON, noise_std=ROLLOUT_NOISE)
    return {
        "n_updates": model._n_updates,
        "seconds": round(seconds, 1),
        "knn_accuracy": knn_accuracy(rollouts.states, rollouts.lengths),
        "policy_coverage": maze_coverage(rollouts.per_state()[0], layout),
        "total_coverage": maze_coverage(np.stack(visited.positions)[:, :2], layout),
        "arguments": json.dumps({"n_envs": settings.n_envs, **arguments}),
    }


def report(rows: pd.DataFrame) -> str:
    """Tabulate means over seeds, and of pictures as a share of positions, with 95 % bootstrap intervals over seeds."""
    lines = head(*SETTING, "seeds", "updates", *(heading for heading, _ in MEASURES.values()))
    for setting, of_setting in rows.groupby(SETTING, sort=False):
        cells = [estimate(mean, of_setting[[name]].to_numpy(float)).text(digits) for name, (_, digits) in MEASURES.items()]
        counts = [of_setting.seed.nunique(), f"{of_setting.n_updates.mean():.0f}"]
        lines.append(line(*map(str, [*setting, *counts, *cells])))
    shared = ["maze", "method", "n_timesteps"]
    lines += ["", "Pictures as a share of positions:", "", *head(*shared, *OF_PICTURES, *MEASURES)]
    positions = dict(list(rows[rows.observation == "positions"].groupby(shared)))
    for setting, of_setting in rows[rows.observation == "pixels"].groupby([*shared, *OF_PICTURES], sort=False):
        if setting[:3] in positions:
            both = of_setting, positions[setting[:3]]
            pairs = [[each[[name]].to_numpy(float) for each in both] for name in MEASURES]
            cells = [estimate(lambda ours, theirs: mean(ours) / mean(theirs), *pair).text() for pair in pairs]
            lines.append(line(*map(str, [*setting, *cells])))
    lines += ["", f"Means with 95 % bootstrap intervals over seeds; `python benchmarks/pixels.py`, {made_with(rows)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=list(registry.METHODS), metavar="METHOD", default=list(COMPARED))
    parser.add_argument("--mazes", nargs="+", choices=list(LAYOUTS), default=["square_a", "square_b", "tree"])
    parser.add_argument("--observations", nargs="+", choices=["pixels", "positions"], default=["pixels", "positions"])
    choices = ["critic", "reward", "both", "none"]
    parser.add_argument("--encoder-learns-from", nargs="+", choices=choices, default=["critic"], help="which losses")
    parser.add_argument("--shift", nargs="+", type=int, default=[0], help="largest random shift of pictures [pixel]")
    parser.add_argument("--steps", type=int, default=N_TIMESTEPS, help="environment steps of a run")
    parser.add_argument("--report", action="store_true", help="only write the tables of the finished runs")
    add_seeds(parser, default=5)
    add_run_options(parser, "results/pixels")
    args = parser.parse_args()
    variants = [("pixels", source, shift) for source in args.encoder_learns_from for shift in args.shift]
    variants = [*variants, ("positions", NONE, NONE)]
    # Seed by seed, so that an unfinished benchmark covers all methods and mazes
    runs: list[Row] = [
        {**dict(zip(SETTING, (maze, method, *variant, args.steps), strict=True)), "seed": seed}
        for seed in seeds_of(parser, args.seeds)
        for maze in args.mazes
        for method in args.methods
        for variant in variants
        if variant[0] in args.observations
    ]
    path = args.output / "runs.csv"
    if not args.report:
        run_missing(runs, run_one, path, n_jobs=args.jobs, dry_run=args.dry_run)
    rows = read_rows(path)
    if len(rows) and not args.dry_run:
        text = report(rows)
        write_text_whole(args.output / "table.md", text)
        print(text)


if __name__ == "__main__":
    main()
