"""
How good the skill is that ``from_pretrained(..., skill="best")`` finds in a warm-up with all skills: by what it rewards in the
states that skills visit, and by the mean reward of each alone, as where no states were saved.

    python benchmarks/skill_choice.py results/urlb/models/cesd_Quadruped-v0_laptop_0_300000.zip --algo cesd --env Quadruped-v0

Plays each skill as it is for many episodes, then lets warm-ups choose one, again and again. Prints what skills are worth in
each task, and what the chosen ones are, as a share of the way from a skill drawn at random (0) to the best one (1).
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from arguments import at_least, existing
from urlb_methods import DOMAINS

from sb3_cesd import make_batched, registry
from sb3_cesd.common.playing import gaussian_noise, play
from sb3_cesd.common.skill_clock import SkillTurns
from sb3_cesd.metrics import task_returns
from sb3_cesd.metrics.tasks import tasks_of
from sb3_cesd.skill_ddpg.skill_states import predict_mean_rewards

#: Seeds of the episodes that tell what skills are worth, and of warm-ups
OF_EPISODES, OF_WARM_UPS = 0, 1


class WarmUp(NamedTuple):
    """
    What happened while all skills acted in turn, as at the start of a task.

    :param states: shape ``(n_steps, obs_dim)``
    :param rewards: shape ``(n_steps,)``
    :param turns: what skills got
    """

    states: np.ndarray
    rewards: np.ndarray
    turns: SkillTurns


def warm_up(model: Any, task_id: str, n_steps: int, n_warm_ups: int) -> list[WarmUp]:
    """
    Let all skills act in turn.

    :param model: a pre-trained model
    :param task_id: id of the task
    :param n_steps: steps of a warm-up
    :param n_warm_ups: number of warm-ups, which differ in how episodes start and in the noise of the actions
    :return: the warm-ups
    """
    env = make_batched(task_id, n_warm_ups, seed=OF_WARM_UPS, n_threads=1)
    add_noise = gaussian_noise(env.action_space, model.exploration_noise, np.random.default_rng(OF_WARM_UPS))
    turns = [SkillTurns(model.n_skills, n_steps) for _ in range(n_warm_ups)]
    # The one who acts, changed in place from step to step
    skills = np.zeros(n_warm_ups, dtype=np.int64)
    states, rewards = [], []
    for moment in islice(play(model, env, skills, perturb=add_noise), 1, n_steps + 1):
        states.append(np.array(moment.observations))
        rewards.append(moment.rewards.copy())
        for index, of_warm_up in enumerate(turns):
            of_warm_up.add(moment.rewards[index : index + 1])
            skills[index] = of_warm_up.skills(1)[0]
    env.close()
    return [WarmUp(*happened) for happened in zip(np.stack(states, axis=1), np.stack(rewards, axis=1), turns, strict=True)]


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
    by: dict[str, Callable[[WarmUp], int]] = {"rewards": lambda warm_up: warm_up.turns.best()}
    if len(model.skill_states) > 0:
        known = model.skill_states.numpy()
        by["states"] = lambda warm_up: int(predict_mean_rewards(warm_up.states, warm_up.rewards, known).argmax())
    header += [f"by {name}, {n} steps" for n in steps for name in by]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for task, returns in task_returns(model, env_id, n_episodes, OF_EPISODES, n_threads=1).items():
        values = returns.mean(axis=1)
        of_skills = f"{values.min():.0f}, {values.mean():.0f}, {values.max():.0f}"
        warm_ups = [warm_up(model, tasks_of(env_id)[task], n, n_warm_ups) for n in steps]
        gains = [
            gain(values, np.array([choose(each) for each in of_length])) for of_length in warm_ups for choose in by.values()
        ]
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
