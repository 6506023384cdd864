"""
Measure how good the skill is that ``from_pretrained(..., skill="best")`` chooses in a warm-up with all skills: by the rewards
of the warm-up in the states that each skill visits, or by the mean reward of each skill, as without saved states.

    python benchmarks/skill_choice.py results/urlb/models/cesd_Quadruped-v0_laptop_0_300000.zip --algo cesd --env Quadruped-v0

Plays each skill for many episodes, then lets many warm-ups choose one. Prints the returns of skills in each task, and the gain
of the choice, from 0 for a random skill to 1 for the best one.
"""

import argparse
import math
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

#: Seeds of the episodes that measure the returns of skills, and of warm-ups
OF_EPISODES, OF_WARM_UPS = 0, 1


class WarmUp(NamedTuple):
    """
    A warm-up in which all skills act in turn, as at the start of a task.

    :param states: shape ``(n_steps, obs_dim)``
    :param rewards: shape ``(n_steps,)``
    :param turns: rewards of the skills
    """

    states: np.ndarray
    rewards: np.ndarray
    turns: SkillTurns


def warm_up(model: Any, task_id: str, n_steps: int, n_warm_ups: int) -> list[WarmUp]:
    """
    Play warm-ups in which all skills act in turn.

    :param model: a pre-trained model
    :param task_id: id of the task
    :param n_steps: steps of a warm-up
    :param n_warm_ups: number of warm-ups, which differ in the starts of episodes and in the action noise
    :return: the warm-ups
    """
    env = make_batched(task_id, n_warm_ups, seed=OF_WARM_UPS, n_threads=1)
    add_noise = gaussian_noise(env.action_space, model.exploration_noise, np.random.default_rng(OF_WARM_UPS))
    turns = [SkillTurns(model.n_skills, n_steps) for _ in range(n_warm_ups)]
    # The skill that acts, changed in place from step to step
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
    Compute the gain of a choice.

    :param values: mean return of each skill, shape ``(n_skills,)``
    :param chosen: chosen skills, shape ``(n,)``
    :return: 0 if it is as good as a random choice, 1 if it is always the best skill; NaN if all skills are equal
    """
    if values.max() == values.min():
        return math.nan
    return float((values[chosen].mean() - values.mean()) / (values.max() - values.mean()))


def report(model: Any, env_id: str, steps: Sequence[int], n_episodes: int, n_warm_ups: int) -> str:
    """
    Compare warm-ups of several lengths in all tasks of a robot.

    :param model: a pre-trained model
    :param env_id: id of the robot
    :param steps: lengths of warm-ups
    :param n_episodes: episodes per skill
    :param n_warm_ups: warm-ups per length
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
        cells = [
            task,
            of_skills,
            f"{returns.std(axis=1).mean():.0f}",
            *("" if math.isnan(value) else f"{value:.2f}" for value in gains),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=existing, help="zip file of a pre-trained model")
    parser.add_argument("--algo", choices=list(registry.METHODS), default="cesd", help="method of the model")
    robots = [domain for domain, tasks in DOMAINS.items() if tasks]
    parser.add_argument("--env", choices=robots, required=True, help="the robot it was pre-trained on")
    parser.add_argument("--steps", type=at_least(1), nargs="+", default=[2000, 8000], help="lengths of warm-ups")
    parser.add_argument("--episodes", type=at_least(2), default=20, help="episodes per skill to measure its return")
    parser.add_argument("--warm-ups", type=at_least(2), default=20, help="warm-ups per length")
    args = parser.parse_args()
    try:
        model = registry.METHODS[args.algo].load(args.model, device="cpu")
        if model.reward == "extrinsic":
            parser.error(f"{args.model} has learned a task: pass the pre-trained model.")
        print(report(model, args.env, args.steps, args.episodes, args.warm_ups))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
