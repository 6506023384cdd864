"""
Measure the metrics without learning: random actions, none, constant ones, and untrained networks.

    python benchmarks/metric_baselines.py MazeSquareA-v0
    python benchmarks/metric_baselines.py Walker-v0 --best-skills

Prints the table of docs/metrics.md: means over seeds.
"""

import argparse
from typing import Any

import numpy as np
from gymnasium import spaces
from maze import entropy_of_published_size
from maze_methods import with_defaults
from runs import positive

from sb3_cesd import CeSD, preset
from sb3_cesd.envs.mazes.layouts import MAZES
from sb3_cesd.metrics import make_play_env, play_and_measure, score_best_skills, task_returns

#: Rollouts per skill and steps of each, in a maze and elsewhere
IN_MAZE, ELSEWHERE = {"n_rollouts": 20, "n_steps": 50}, {"n_rollouts": 8, "n_steps": 250}
#: Seed of constant and random actions, not one of the environments: mazes draw starts by the same generator
ACTION_SEED = 1000


class Unlearned:
    """Skills that learned nothing: random actions (``"random"``), zeros, or one action for each skill (``"constant"``)."""

    def __init__(self, kind: str, n_skills: int, action_space: spaces.Box) -> None:
        self.n_skills = n_skills
        self._kind = kind
        self._space, self._rng = action_space, np.random.default_rng(ACTION_SEED)
        self._constant = self._draw(n_skills)

    def _draw(self, n: int) -> np.ndarray:
        return self._rng.uniform(self._space.low, self._space.high, (n, *self._space.shape)).astype(np.float32)

    def predict(self, observation: Any, *, deterministic: bool, skill: np.ndarray) -> tuple[np.ndarray, None]:
        """Return an action for each skill."""
        if self._kind == "random":
            return self._draw(len(skill)), None
        return self._constant[skill] * (self._kind == "constant"), None


def baselines(env_id: str, n_seeds: int, best_skills: bool) -> dict[str, dict[str, float]]:
    """Return the metrics of each kind of skills that learned nothing, as means over seeds."""
    arguments = {**with_defaults("cesd", preset("laptop", env_id)), "buffer_size": 1000}
    play = IN_MAZE if env_id in MAZES else ELSEWHERE
    env = make_play_env(env_id, arguments["n_skills"], play["n_rollouts"])
    means = {}
    for kind in ("random", "none", "constant", "untrained", "untrained, with noise"):
        rows = []
        for seed in range(n_seeds):
            if kind.startswith("untrained"):
                model: Any = CeSD("MlpPolicy", env_id, seed=seed, device="cpu", **arguments)
            else:
                model = Unlearned(kind, arguments["n_skills"], env.action_space)  # type: ignore[arg-type]
            noise_std = model.exploration_noise if "noise" in kind else 0.0
            row, rollouts = play_and_measure(model, env, seed=seed, noise_std=noise_std, **play)
            if env_id in MAZES:
                row["particle_entropy"] = entropy_of_published_size(rollouts)
            # Tasks are played without noise
            plays_tasks = best_skills and "noise" not in kind
            rows.append({**row, **(score_best_skills(task_returns(model, env_id), env_id) if plays_tasks else {})})
        means[kind] = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return means


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", help="id of a maze or a robot")
    parser.add_argument("--seeds", type=positive, default=3, help="number of seeds")
    parser.add_argument("--best-skills", action="store_true", help="also play the tasks of the robot (minutes)")
    args = parser.parse_args()
    means = baselines(args.env, args.seeds, args.best_skills)
    names = list(dict.fromkeys(name for row in means.values() for name in row))
    print("| | " + " | ".join(means) + " |\n|" + "---|" * (len(means) + 1))
    for name in names:
        print(f"| `{name}` | " + " | ".join(f"{row[name]:.3g}" if name in row else "" for row in means.values()) + " |")


if __name__ == "__main__":
    main()
