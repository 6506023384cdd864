"""
Dreamers in a maze that they see in pictures: how far the world model foresees, and where skills go.

    python benchmarks/dreamer.py --methods cesd_dreamer apt_dreamer --seeds 3
    python benchmarks/dreamer.py --task --methods cesd_dreamer cesd --seeds 3    # steps until a known reward is learned

Writes a row per 4,000 steps of a run to ``METHOD.csv`` in the folder ``--output``, or one per 200 steps to ``task.csv`` until
the return passes 39.4: four fifths of that of a controller which goes straight to the goal. Standing still returns 7.3.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch as th
from maze import HORIZON, N_ROLLOUTS, ROLLOUT_NOISE
from runs import add_seeds, seeds_of, versions
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sb3_cesd import SkillDDPG, SkillDreamer, preset
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
#: Goal of the task, two cells below the start; return that has to be passed, steps in which it may be, and those per update
GOAL, THRESHOLD, N_TASK_STEPS, TASK_FREQ = (0.0, -2.0), 39.4, 8000, 2


class GoalMaze(MazeVecEnv):
    """A maze with a known reward: exp(-d) at a distance of d cells to the goal."""

    def step_wait(self) -> VecEnvStepReturn:
        observations, _, dones, infos = super().step_wait()
        positions = [info["position"] for info in infos] if dones[0] else self.position
        return observations, np.exp(-np.linalg.norm(np.asarray(positions)[:, :2] - GOAL, axis=1)), dones, infos


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


def explore(model: SkillDreamer) -> dict[str, float]:
    """Measure where skills go, and how far the model foresees."""
    env = MazeVecEnv(n_envs=N_ROLLOUTS * model.n_skills, **MAZE)  # type: ignore[arg-type]
    rollouts = play_places(model, env, n_rollouts=N_ROLLOUTS, n_steps=HORIZON, noise_std=ROLLOUT_NOISE)
    accuracy = knn_accuracy(rollouts.states, rollouts.lengths)
    return {"knn_accuracy": accuracy, "policy_coverage": maze_coverage(rollouts.per_state()[0], env.layout), **foresee(model)}


def mean_return(model: SkillDDPG) -> dict[str, float]:
    """Measure the return of the task over 50 new episodes."""
    env, state, total = GoalMaze(n_envs=50, **MAZE), None, 0.0  # type: ignore[arg-type]
    env.seed(1)
    observations: Any = env.reset()
    for step in range(HORIZON):
        actions, state = model.predict(observations, state, np.full(50, step == 0), deterministic=True)
        observations, rewards, *_ = env.step(actions)
        total += float(rewards.mean())
    return {"mean_return": total}


class Rows(BaseCallback):
    """Writes rows of a run, with the CPU time of training; ends a run that has passed the threshold."""

    def __init__(self, path: Path, run: dict[str, Any], measure: Callable[[Any], dict[str, float]]) -> None:
        super().__init__()
        self.path, self.run, self.measure, self.begin = path, run, measure, time.process_time()

    def _on_step(self) -> bool:
        if self.num_timesteps % (200 if self.measure is mean_return else 4000):
            return True
        measuring = time.process_time()
        row = {**self.run, "n_timesteps": self.num_timesteps, "n_updates": self.model._n_updates}
        row["cpu_seconds"] = round(measuring - self.begin)
        with preserve_random_state():
            values = {name: round(value, 4) for name, value in self.measure(self.model).items()}
        row |= {**values, "arguments": row.pop("arguments"), "versions": json.dumps(versions())}
        pd.DataFrame([row]).to_csv(self.path, mode="a", header=not self.path.exists(), index=False, lineterminator="\n")
        self.begin += time.process_time() - measuring
        return values.get("mean_return", -np.inf) < THRESHOLD


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["cesd_dreamer", "apt_dreamer"], help="names of Dreamers")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the rows")
    parser.add_argument("--task", action="store_true", help="learn a known reward from scratch instead of skills")
    add_seeds(parser, default=1)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    th.set_num_threads(1)
    for seed in seeds_of(parser, args.seeds):
        for method in args.methods:
            settings = preset("laptop", "MazeSquareAPixels-v0", method)
            arguments = {**settings, **({"reward": "extrinsic", "train_freq": TASK_FREQ} if args.task else {})}
            env = (GoalMaze if args.task else MazeVecEnv)(n_envs=settings.n_envs, **MAZE)  # type: ignore[arg-type]
            model = ALGORITHMS[method](settings.policy, env, seed=seed, device="cpu", **arguments)
            run = {"method": method, "seed": seed, "arguments": json.dumps({"n_envs": settings.n_envs, **arguments})}
            path, measure = (f"{method}.csv", explore) if not args.task else ("task.csv", mean_return)
            model.learn(N_TASK_STEPS if args.task else settings.n_timesteps, Rows(args.output / path, run, measure))


if __name__ == "__main__":
    main()
