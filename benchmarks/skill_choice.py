"""
How good the skill is that ``from_pretrained(..., skill="best")`` finds in a warm-up with all skills.

    python benchmarks/skill_choice.py results/urlb/models/cesd_Quadruped-v0_laptop_0_300000.zip --algo cesd --env Quadruped-v0

Plays each skill as it is for many episodes, then lets warm-ups choose one, again and again. Prints what skills are worth in
each task, and what the chosen ones are, as a share of the way from a skill drawn at random (0) to the best one (1).
"""

import argparse
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from arguments import at_least, existing
from urlb_methods import DOMAINS

from sb3_cesd import make_batched, registry
from sb3_cesd.common.playing import play
from sb3_cesd.common.skill_clock import SkillTurns
from sb3_cesd.metrics import task_returns
from sb3_cesd.metrics.tasks import tasks_of

#: Seeds of the episodes that tell what skills are worth, and of warm-ups
OF_EPISODES, OF_WARM_UPS = 0, 1


def warm_up(model: Any, task_id: str, n_steps: int, n_warm_ups: int) -> list[SkillTurns]:
    """
    Let all skills act in turn, as at the start of a task.

    :param model: a pre-trained model
    :param task_id: id of the task
    :param n_steps: steps of a warm-up
    :param n_warm_ups: number of warm-ups, which differ in how episodes start and in the noise of the actions
    :return: what skills got in each
    """
    rng = np.random.default_rng(OF_WARM_UPS)
    env = make_batched(task_id, n_warm_ups, seed=OF_WARM_UPS, n_threads=1)
    warm_ups = [SkillTurns(model.n_skills, n_steps) for _ in range(n_warm_ups)]
    # The one who acts, changed in place from step to step
    skills = np.zeros(n_warm_ups, dtype=np.int64)

    def perturb(actions: np.ndarray) -> np.ndarray:
        return np.clip(actions + model.exploration_noise * rng.standard_normal(actions.shape), -1.0, 1.0)

    for moment in islice(play(model, env, skills, perturb=perturb), 1, n_steps + 1):
        for index, turns in enumerate(warm_ups):
            turns.add(moment.rewards[index : index + 1])
            skills[index] = turns.skills(1)[0]
    env.close()
    return warm_ups


def gain(values: np.ndarray, chosen: np.ndarray) -> float:
    """
    Tell what a choice brings.

    :param values: what each skill is worth, shape ``(n_skills,)``
    :param chosen: chosen skills, shape ``(n,)``
    :return: 0 for as much as drawing one at random, 1 for always the best
    """
    return float((values[chosen].mean() - values.mean()) / (values.max() - values.mean()))


def report(model: Any, env_id: str, steps: Sequence[int], n_episodes: int, n_warm_ups: int) -> str:
    """
    Compare warm-ups of several lengths in all tasks of a robot.

    :param model: a pre-trained model
    :param env_id: id of the robot
    :param steps: lengths of warm-ups
    :param n_episodes: episodes of each skill
    :param n_warm_ups: warm-ups of each length
    :return: a table in Markdown
    """
    header = ["task", "returns of skills: least, mean, greatest", "spread between episodes"]
    lines = ["| " + " | ".join([*header, *(f"chosen in {n} steps" for n in steps)]) + " |"]
    lines.append("|---" * (len(header) + len(steps)) + "|")
    for task, returns in task_returns(model, env_id, n_episodes, OF_EPISODES, n_threads=1).items():
        values = returns.mean(axis=1)
        of_skills = f"{values.min():.0f}, {values.mean():.0f}, {values.max():.0f}"
        warm_ups = [warm_up(model, tasks_of(env_id)[task], n, n_warm_ups) for n in steps]
        gains = [gain(values, np.array([turns.best() for turns in of_length])) for of_length in warm_ups]
        cells = [task, of_skills, f"{returns.std(axis=1).mean():.0f}", *(f"{value:.2f}" for value in gains)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=existing, help="zip file of a pre-trained model")
    parser.add_argument("--algo", choices=list(registry.METHODS), default="cesd")
    robots = [domain for domain, tasks in DOMAINS.items() if tasks]
    parser.add_argument("--env", choices=robots, required=True, help="the robot it was pre-trained on")
    parser.add_argument("--steps", type=at_least(1), nargs="+", default=[2000, 8000], help="lengths of warm-ups")
    parser.add_argument("--episodes", type=at_least(2), default=20, help="of each skill, to tell what it is worth")
    parser.add_argument("--warm-ups", type=at_least(2), default=20, help="of each length")
    args = parser.parse_args()
    model = registry.METHODS[args.algo].load(args.model, device="cpu")
    print(report(model, args.env, args.steps, args.episodes, args.warm_ups))


if __name__ == "__main__":
    main()
