"""
Measure the metrics without learning: random actions, none, constant ones, and untrained networks.

    python benchmarks/metric_baselines.py MazeSquareA-v0
    python benchmarks/metric_baselines.py Walker-v0 --best-skills

Prints the table of docs/metrics.md: means over seeds.
"""

import argparse
from typing import Any

import numpy as np
from arguments import at_least
from entries import of_constructor, read_entry
from gymnasium import spaces
from maze_run import entropy_of_published_size

from sb3_cesd import CeSD
from sb3_cesd.envs.mazes.ids import MAZES
from sb3_cesd.metrics import best_skill_scores, make_play_env, play_and_measure
from sb3_cesd.metrics.rollouts import RandomActions
from sb3_cesd.metrics.tasks import tasks_of

#: Rollouts per skill and steps of each, in a maze and elsewhere
IN_MAZE, ELSEWHERE = {"n_rollouts": 20, "n_steps": 50}, {"n_rollouts": 8, "n_steps": 250}
#: Seed of constant and random actions; different from those of the environments, since mazes draw starts by the same generator
ACTION_SEED = 1000


class Unlearned:
    """
    Skills that learned nothing. Their actions are the same for all seeds, which only environments differ in.

    :param kind: ``"random"`` for actions drawn at each step, ``"none"`` for zeros, ``"constant"`` for an action per skill
    :param n_skills: number of skills
    :param action_space: space of the actions
    """

    def __init__(self, kind: str, n_skills: int, action_space: spaces.Box) -> None:
        self.n_skills = n_skills
        self._kind = kind
        self._random = RandomActions(action_space, ACTION_SEED)
        shape = (n_skills, *action_space.shape)
        self._constant = np.random.default_rng(ACTION_SEED).uniform(action_space.low, action_space.high, shape)

    def predict(self, observation: Any, *, deterministic: bool, skill: np.ndarray) -> tuple[np.ndarray, None]:
        """Return actions, see :class:`~sb3_cesd.common.playing.SkillModel`."""
        if self._kind == "random":
            return self._random.predict(observation, deterministic=deterministic, skill=skill)
        return self._constant[skill].astype(np.float32) * (self._kind == "constant"), None


def baselines(env_id: str, n_seeds: int, best_skills: bool) -> dict[str, dict[str, float]]:
    """
    Measure skills that learned nothing.

    :param env_id: a maze or a robot
    :param n_seeds: number of seeds
    :param best_skills: also measure the best skills in the tasks of the robot
    :return: kind -> metrics by name, means over seeds
    """
    entry = of_constructor(read_entry("cesd" if env_id in MAZES else "cesd_laptop", env_id))
    entry.pop("buffer_size")
    play = IN_MAZE if env_id in MAZES else ELSEWHERE
    env = make_play_env(env_id, entry["n_skills"], play["n_rollouts"])
    means = {}
    for kind in ("random", "none", "constant", "untrained", "untrained, with noise"):
        rows = []
        for seed in range(n_seeds):
            if kind.startswith("untrained"):
                model: Any = CeSD(env=env_id, seed=seed, device="cpu", buffer_size=1000, **entry)
            else:
                model = Unlearned(kind, entry["n_skills"], env.action_space)  # type: ignore[arg-type]
            noise_std = model.exploration_noise if "noise" in kind else 0.0
            row, rollouts = play_and_measure(model, env, seed=seed, noise_std=noise_std, **play)
            if env_id in MAZES:
                row["particle_entropy"] = entropy_of_published_size(rollouts)
            # Tasks are played without noise
            rows.append({**row, **(best_skill_scores(model, env_id) if best_skills and "noise" not in kind else {})})
        means[kind] = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return means


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", help="id of a maze or a robot")
    parser.add_argument("--seeds", type=at_least(1), default=3, help="number of seeds")
    parser.add_argument("--best-skills", action="store_true", help="also play the tasks of the robot (minutes)")
    args = parser.parse_args()
    try:
        if args.best_skills:
            tasks_of(args.env)
        means = baselines(args.env, args.seeds, args.best_skills)
    except ValueError as error:
        parser.error(str(error))
    names = list(dict.fromkeys(name for row in means.values() for name in row))
    print("| | " + " | ".join(means) + " |\n|" + "---|" * (len(means) + 1))
    for name in names:
        print(f"| `{name}` | " + " | ".join(f"{row[name]:.3g}" if name in row else "" for row in means.values()) + " |")


if __name__ == "__main__":
    main()
