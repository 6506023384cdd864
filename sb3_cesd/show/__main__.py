"""
What each skill of a model does: pictures, a video and a table of metrics.

    python -m sb3_cesd.show logs/cesd/MazeSquareA-v0_1/MazeSquareA-v0.zip
    python -m sb3_cesd.show logs/cesd/Walker-v0_1/Walker-v0.zip --video mp4

Writes skills.png and metrics.json, and for a robot skills.gif (or .mp4), beside the model.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from matplotlib.figure import Figure
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sb3_cesd.common.vec_env import normalize_like_training
from sb3_cesd.envs.mazes.layouts import MazeLayout
from sb3_cesd.export import ExportedPolicy
from sb3_cesd.metrics import make_env, make_play_env, mine_mutual_information, play_and_measure, play_places
from sb3_cesd.metrics.plots import draw_maze_panels
from sb3_cesd.registry import METHODS
from sb3_cesd.show.find import find_algorithm, find_env_id, find_env_kwargs, load_model, load_vec_normalize
from sb3_cesd.show.labels import skill_labels
from sb3_cesd.show.robots import draw, play_all, table
from sb3_cesd.show.video import grid_frames, write_video
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.checks import check_play_spaces

#: Images per skill in the video, and per second
N_VIDEO_FRAMES, FPS = 50, 12.5
#: Rollouts per skill for picture and metrics of a maze, and for the metrics of a robot
N_MAZE_ROLLOUTS, N_ROBOT_ROLLOUTS = 20, 4
#: Rollouts per skill for MINE, as in the published comparison
N_MINE_ROLLOUTS = 100
MEANINGS = {
    "coverage": "share of the maze that the skills visit (bins of 0.05), or bins of 1 m",
    "mutual_information": "of place and skill [nats], at most log(n_skills) = {log_n:.2f}",
    "mutual_information_mine": "of path and skill by MINE [nats], at most log(n_skills) = {log_n:.2f}",
    "knn_accuracy": "of telling the skill by the place, by chance {chance:.2f}",
    "particle_entropy": "of the places",
    "on_cluster_share": "share of states on the cluster of their skill, by chance {chance:.2f}",
    "cluster_size_entropy": "of the sizes of the clusters [nats], at most {log_n:.2f}",
}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m sb3_cesd.show", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="model saved by RL Zoo, model.save or export_policy")
    parser.add_argument("--algo", choices=list(METHODS), help="default: told by the folders, else cesd")
    parser.add_argument("--env", help="environment id (default: told by the name of the file or its folder)")
    parser.add_argument("--output", type=Path, help="folder to write to (default: the folder of the model)")
    parser.add_argument("--steps", type=positive, help="steps to play per skill (default: 50 in a maze, else 250)")
    parser.add_argument("--frames", type=not_negative, default=6, help="images per skill of a robot, 0 for none")
    parser.add_argument("--video", choices=["gif", "mp4", "none"], default="gif", help="of all skills of a robot side by side")
    parser.add_argument("--mine", action="store_true", help="in a maze, mutual information by MINE too (about a minute)")
    parser.add_argument("--seed", type=not_negative, default=0, help="seed of the start, the same for all skills")
    args = parser.parse_args()

    try:
        model = load_model(args.model, args.algo or find_algorithm(args.model))
        env_id = args.env or find_env_id(args.model)
        show(args, model, env_id)
    except ValueError as error:
        sys.exit(f"{error}")


def positive(text: str) -> int:
    """
    Read a positive integer.

    :param text: an argument
    :return: the number it stands for
    :raises argparse.ArgumentTypeError: if that is not an integer above zero
    """
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: pass an integer above 0")
    return int(text)


def not_negative(text: str) -> int:
    """
    Read an integer from zero on.

    :param text: an argument
    :return: the number it stands for
    :raises argparse.ArgumentTypeError: if that is not an integer from zero on
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: pass 0 or an integer above")
    return int(text)


def show(args: argparse.Namespace, model: SkillDDPG | ExportedPolicy, env_id: str) -> None:
    """
    Draw, film and measure the skills of a model.

    :param args: arguments of the command
    :param model: the model
    :param env_id: its environment
    :raises ValueError: if the model does not fit the environment
    """
    env_kwargs = find_env_kwargs(args.model, env_id)
    probe = make_env(env_id, **env_kwargs)
    check_play_spaces(probe.observation_space, probe.action_space, model, env_id)
    layout = getattr(probe.unwrapped, "layout", None)
    probe.close()
    if args.mine and layout is None:
        raise ValueError("--mine is for mazes: robots would need many more rollouts. Leave it out.")
    output = args.output or args.model.parent
    output.mkdir(parents=True, exist_ok=True)
    vec_normalize = load_vec_normalize(args.model, env_id)
    if layout is not None:
        env = make_play_env(env_id, model.n_skills, N_MAZE_ROLLOUTS, env_kwargs)
        figure, metrics = show_maze(args, model, env_id, normalize_like_training(env, vec_normalize), layout)
    else:
        make = partial(make_env, env_id, **env_kwargs)
        figure = show_robot(args, model, env_id, make, vec_normalize, output)
        env = make_play_env(env_id, model.n_skills, N_ROBOT_ROLLOUTS, env_kwargs)
        play = {**play_arguments(args, model, 250), "n_rollouts": N_ROBOT_ROLLOUTS}
        metrics, _ = play_and_measure(model, normalize_like_training(env, vec_normalize), **play)
    env.close()
    print(metrics_table(metrics, model.n_skills))
    figure.savefig(output / "skills.png", dpi=110)
    (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    print(f"Saved {output / 'skills.png'} and {output / 'metrics.json'}")


def play_arguments(args: argparse.Namespace, model: SkillDDPG | ExportedPolicy, default_steps: int) -> dict[str, Any]:
    """
    Choose the arguments of stochastic rollouts.

    :param args: arguments of the command
    :param model: the model
    :param default_steps: steps per skill if the command says nothing
    :return: arguments of :func:`~sb3_cesd.metrics.rollouts.collect_rollouts`
    """
    return {"n_steps": args.steps or default_steps, "noise_std": model.exploration_noise, "seed": args.seed}


def show_maze(
    args: argparse.Namespace, model: SkillDDPG | ExportedPolicy, env_id: str, env: VecEnv, layout: MazeLayout
) -> tuple[Figure, dict[str, float]]:
    """
    Draw and measure skills in a maze.

    :param args: arguments of the command
    :param model: the model
    :param env_id: the maze
    :param env: as many mazes as there are rollouts, as the model sees them
    :param layout: layout of the maze
    :return: the picture of the paper (stochastic rollouts from one start), and metrics
    """
    play = {**play_arguments(args, model, 50), "n_rollouts": N_MAZE_ROLLOUTS}
    metrics, _ = play_and_measure(model, env, **play)
    if args.mine:
        rollouts = play_places(model, env, **{**play, "n_rollouts": N_MINE_ROLLOUTS})
        metrics["mutual_information_mine"] = mine_mutual_information(*rollouts.per_rollout()).mutual_information
    drawn = play_places(model, env, reset_options={"position": layout.start_cell}, **play)
    method = model.algorithm if isinstance(model, ExportedPolicy) else type(model).__name__
    title = f"{method}, {env_id}, {model.num_timesteps} steps"
    labels = skill_labels(model.skill_space)
    return draw_maze_panels(layout, {title: drawn.states}, legend=True, panel_width=4.5, labels=labels), metrics


def show_robot(
    args: argparse.Namespace,
    model: SkillDDPG | ExportedPolicy,
    env_id: str,
    make: Callable[..., gym.Env],
    vec_normalize: VecNormalize | None,
    output: Path,
) -> Figure:
    """
    Draw and film the skills of a robot.

    :param args: arguments of the command
    :param model: the model
    :param env_id: the robot, or any other environment
    :param make: makes it
    :param vec_normalize: statistics of training
    :param output: where to write the video
    :return: film strips and paths
    """
    n_steps = args.steps or 250
    n_frames = max(args.frames, N_VIDEO_FRAMES) if args.video != "none" else args.frames
    rollouts = play_all(model, make, n_steps, args.seed, n_frames, vec_normalize)
    labels = skill_labels(model.skill_space)
    print(table(rollouts, labels))
    if args.video != "none" and rollouts[0].frames:
        path = output / f"skills.{args.video}"
        write_video(grid_frames([rollout.frames for rollout in rollouts], [f"skill {label}" for label in labels]), path, FPS)
        print(f"Saved {path}")
    title = f"{env_id}: {n_steps} steps per skill, {model.num_timesteps} steps of training"
    return draw(rollouts, labels, title, args.frames)


def metrics_table(metrics: dict[str, float], n_skills: int) -> str:
    """
    Tabulate metrics, with what they mean.

    :param metrics: by name
    :param n_skills: number of skills
    :return: a line per metric
    """
    facts = {"chance": 1 / n_skills, "log_n": math.log(n_skills)}
    return "\n".join(f"{name:>22} {value:8.3f}   {MEANINGS[name].format(**facts)}" for name, value in metrics.items())


if __name__ == "__main__":
    main()
