"""
Dreamers in a maze that they see in pictures: how far the world model foresees, and where skills go.

    python benchmarks/dreamer.py --methods cesd_dreamer apt_dreamer --seeds 3

Writes a row per 4,000 steps of a run to ``METHOD.csv`` in the folder ``--output``.
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from maze import HORIZON, N_ROLLOUTS, ROLLOUT_NOISE
from runs import add_seeds, seeds_of
from stable_baselines3.common.callbacks import BaseCallback

from sb3_cesd import SkillDreamer, preset
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.dreamer.world_model import Latent
from sb3_cesd.envs.mazes.dynamics import MAX_ACTION
from sb3_cesd.envs.mazes.pictures import WALL_WIDTH
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import knn_accuracy, maze_coverage, play_places
from sb3_cesd.registry import ALGORITHMS

MAZE = {"layout": "square_a", "image_size": 32}
#: Steps that the world model sees, steps that it then predicts, and number of predictions
N_SEEN, N_FORESEEN, N_PREDICTIONS = 20, 15, 400
RESULTS = Path(__file__).parent / "results" / "dreamer"
#: Environment steps between two rows
EVERY = 4000


def find_points(pictures: th.Tensor, empty: th.Tensor) -> th.Tensor:
    """Locate the point in pictures (n, height, width) [pixel]: the centre of what is brighter than the empty maze, squared."""
    weights = (pictures - empty).clamp(min=0).square()
    weights = weights / weights.sum(dim=(1, 2), keepdim=True).clamp(min=1e-9)
    places = th.arange(pictures.shape[1], dtype=weights.dtype)
    return th.stack([weights.sum(dim=2) @ places, weights.sum(dim=1) @ places], dim=1)


@th.no_grad()
def foresee(model: SkillDreamer) -> dict[str, float]:
    """
    Predict pictures from actions alone, in new episodes with all skills and noise. Distances of the decoded point to the true
    one are in cells of the maze; ``still_...`` are those of a prediction that nothing moves.
    """
    env, rng, world_model = MazeVecEnv(n_envs=N_PREDICTIONS, **MAZE), np.random.default_rng(1), model.policy.world_model  # type: ignore
    env.seed(1)
    skills, begins, state = np.arange(N_PREDICTIONS) % model.n_skills, np.ones(N_PREDICTIONS, dtype=bool), None
    pictures, taken = [env.reset()], []
    for step in range(N_SEEN + N_FORESEEN - 1):
        actions, state = model.predict(pictures[-1], state, begins & (step == 0), skill=skills)
        noise = ROLLOUT_NOISE * MAX_ACTION * rng.standard_normal(actions.shape)
        actions = np.clip(actions + noise, -MAX_ACTION, MAX_ACTION).astype(np.float32)
        taken.append(th.from_numpy(actions / MAX_ACTION))
        pictures.append(env.step(actions)[0])  # type: ignore[arg-type]
    frames = th.from_numpy(np.stack(pictures)).permute(0, 1, 4, 2, 3)  # (n_steps, n, 1, height, width)
    seen = frames[:N_SEEN].transpose(0, 1)
    is_first = th.arange(N_SEEN).expand(N_PREDICTIONS, -1) == 0
    observed = world_model.observe(seen, th.stack(taken[:N_SEEN], dim=1), is_first)
    to_take = iter(taken[N_SEEN - 1 :])
    start = observed.latents.map(lambda part: part[:, -1])
    latents, _ = world_model.imagine(start, lambda _: next(to_take), N_FORESEEN)
    empty = th.from_numpy(env._observe._walls) / 255
    decoded = [world_model.decode(Latent(*parts))[:, 0] for parts in zip(*latents, strict=True)]
    true = th.stack([find_points(each[:, 0] / 255, empty) for each in frames[N_SEEN - 1 :]])
    found = th.stack([find_points(each, empty) for each in decoded])
    cell = (env.image_size - WALL_WIDTH) / float((env.layout.high - env.layout.low).max())  # type: ignore[operator]
    values = {}
    for name, predicted in (("error", found[1:]), ("still", true[:1])):
        distances = (predicted - true[1:]).norm(dim=2) / cell  # (N_FORESEEN, N_PREDICTIONS)
        values[f"{name}_mean"], values[f"{name}_last"] = float(distances.mean()), float(distances[-1].mean())
        values[f"{name}_within_half"] = float((distances < 0.5).float().mean())
        values[f"{name}_last_within_half"] = float((distances[-1] < 0.5).float().mean())
    return values


class Rows(BaseCallback):
    """Writes rows of a run."""

    def __init__(self, path: Path, run: dict[str, Any]) -> None:
        super().__init__()
        self.path, self.run, self.begin = path, run, time.process_time()

    def _on_step(self) -> bool:
        if self.num_timesteps % EVERY == 0:
            with preserve_random_state():
                self.write()
        return True

    def write(self) -> None:
        """Measure, and append a row; the CPU time is that of training."""
        model, measuring = self.model, time.process_time()
        assert isinstance(model, SkillDreamer)
        env = MazeVecEnv(n_envs=N_ROLLOUTS * model.n_skills, **MAZE)  # type: ignore[arg-type]
        rollouts = play_places(model, env, n_rollouts=N_ROLLOUTS, n_steps=HORIZON, noise_std=ROLLOUT_NOISE)
        coverage = maze_coverage(rollouts.per_state()[0], env.layout)
        values = {"knn_accuracy": knn_accuracy(rollouts.states, rollouts.lengths), "policy_coverage": coverage}
        row = {**self.run, "n_timesteps": self.num_timesteps, "n_updates": model._n_updates}
        row |= {
            "cpu_seconds": round(measuring - self.begin),
            **{name: round(value, 4) for name, value in {**values, **foresee(model)}.items()},
        }
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(row)
        self.begin += time.process_time() - measuring


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["cesd_dreamer", "apt_dreamer"], help="names of Dreamers")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the rows")
    add_seeds(parser, default=1)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    th.set_num_threads(1)
    for seed in seeds_of(parser, args.seeds):
        for method in args.methods:
            settings = preset("laptop", "MazeSquareAPixels-v0", method)
            env = MazeVecEnv(n_envs=settings.n_envs, **MAZE)  # type: ignore[arg-type]
            model = ALGORITHMS[method](settings.policy, env, seed=seed, device="cpu", **settings)
            rows = Rows(args.output / f"{method}.csv", {"method": method, "seed": seed})
            model.learn(settings.n_timesteps, rows)


if __name__ == "__main__":
    main()
