"""
Show what each skill of a model does: pictures, a video, metrics compared with untrained skills, and a page with all of them.

    python -m sb3_cesd.show logs/cesd/MazeSquareA-v0_1/MazeSquareA-v0.zip
    python -m sb3_cesd.show logs/cesd/Walker-v0_1/Walker-v0.zip --skill 3 7 --video mp4
    python -m sb3_cesd.show --compare logs/cesd/Walker-v0_1/Walker-v0.zip logs/diayn/Walker-v0_1/Walker-v0.zip

Writes skills.html (which needs no other file), skills.png, metrics.json and skills.gif (or .mp4) to a folder next to the
model, e.g. Walker-v0_skills. In mazes, a video is only made if --video is given. --compare writes one page next to the first
model, e.g. Walker-v0_cesd_diayn_compared.html.
"""

import argparse
import math
import re
import sys
from pathlib import Path
from typing import Any

from sb3_cesd.common.command_line import at_least, output_folder
from sb3_cesd.registry import METHODS
from sb3_cesd.show.comparison import comparison_page
from sb3_cesd.show.page_names import folder_of_pages, page_name
from sb3_cesd.show.report import write_report
from sb3_cesd.show.result import SkillShow
from sb3_cesd.show.saved import show_saved


def main() -> None:
    """Run the command."""
    parser = make_parser()
    args = parser.parse_args([as_value(word) for word in sys.argv[1:]])
    if (args.model is None) == (args.compare is None):
        parser.error("no model is given, or --compare in addition to one: pass one model, or several after --compare")
    try:
        if args.compare is None:
            show_one(args)
        else:
            compare(args)
    except (ValueError, ImportError) as error:  # e.g. of dm_control
        sys.exit(f"{error}")
    except OSError as error:  # e.g. a name that is too long, a folder that can't be created, a full disk
        sys.exit(f"{error}: pass another path, or make room.")


def make_parser() -> argparse.ArgumentParser:
    """
    Create the parser of the arguments.

    :return: the parser
    """
    parser = argparse.ArgumentParser(
        prog="python -m sb3_cesd.show", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?", help="model saved by RL Zoo, model.save or export_policy")
    parser.add_argument("--compare", type=Path, nargs="+", metavar="MODEL", help="write a page with these models side by side")
    parser.add_argument("--algo", choices=list(METHODS), help="method of the model (default: found from the file)")
    parser.add_argument("--env", help="environment id (default: found from the name of the file or its folder)")
    parser.add_argument("--gym-packages", nargs="+", default=[], metavar="PACKAGE", help="packages that register environments")
    parser.add_argument(
        "--vec-normalize", type=Path, metavar="PKL", help="statistics of VecNormalize (default: found next to the model)"
    )
    parser.add_argument("--output", type=output_folder, help="folder to write to (default: <model>_skills next to the model)")
    parser.add_argument("--skill", type=skill, nargs="+", help="skills to draw and film: indices, or vectors such as 0.6,0.8")
    parser.add_argument(
        "--steps",
        type=at_least(1),
        help="steps per skill (default: 50 in a maze, else 250; whole episodes for the metrics of a task)",
    )
    parser.add_argument("--rollouts", type=at_least(0), help="rollouts per skill for metrics (default: 20 in a maze, else 4)")
    parser.add_argument("--untrained", type=at_least(0), default=1, help="untrained networks to compare with (default: 1)")
    parser.add_argument(
        "--frames", type=at_least(0), default=6, help="images per skill in film strips, 0 for none (default: 6)"
    )
    parser.add_argument(
        "--video", choices=["gif", "mp4", "none"], help="video of all skills side by side (default: gif, none in mazes)"
    )
    parser.add_argument(
        "--trajectories",
        type=at_least(0),
        help="for a robot, trajectories for the policy coverage (default: 48 for METRA's ant and half-cheetah, else 0)",
    )
    parser.add_argument(
        "--goal-range",
        type=distance,
        metavar="METRES",
        help="for a robot, follow skills to 50 goals within +- METRES along each axis, 0 for none (default: 50 for METRA's "
        "ant, 100 for its half-cheetah, else 0)",
    )
    parser.add_argument("--seed", type=at_least(0), default=0, help="seed of the start, the same for all skills")
    return parser


def as_value(word: str) -> str:
    """
    Keep argparse from taking a vector such as ``-0.6,0.8`` as an option.

    :param word: a word of the command line
    :return: the word, with a space before a vector
    """
    return f" {word}" if re.fullmatch(r"-[\d.][^,]*,.*", word) else word


def skill(text: str) -> int | list[float]:
    """
    Read a skill.

    :param text: an argument
    :return: its index, or its vector
    :raises argparse.ArgumentTypeError: if it is neither
    """
    if text.isdecimal():
        return int(text)
    try:
        vector = [float(number) for number in text.split(",")]
    except ValueError:
        vector = [math.nan]
    if not all(map(math.isfinite, vector)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a skill: pass the index of one, or a vector such as 0.6,0.8")
    return vector


def distance(text: str) -> float:
    """
    Read a distance.

    :param text: an argument
    :return: the distance [m]
    :raises argparse.ArgumentTypeError: if it is not a number, or negative
    """
    try:
        metres = float(text)
    except ValueError:
        metres = math.nan
    if not (math.isfinite(metres) and metres >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a distance: pass a number of metres, 0 for none")
    return metres


def show_one(args: argparse.Namespace) -> None:
    """
    Show one model.

    :param args: arguments of the command
    :raises ValueError: if something is missing or does not fit
    """
    shown = show_model(args, args.model)
    folder = args.output or folder_of_pages(args.model) / f"{page_name(args.model)}_skills"
    files = shown.save(folder, None if args.video == "none" else args.video or "gif")
    files.insert(0, folder / "skills.html")
    write_report(files[0], [shown], [args.model], command())
    print(shown)
    print(f"Saved {', '.join(map(str, files))}")


def compare(args: argparse.Namespace) -> None:
    """
    Show models side by side.

    :param args: arguments of the command
    :raises ValueError: if there is only one model, or something is missing or does not fit
    """
    paths = args.compare
    if len(paths) < 2:
        raise ValueError("--compare takes at least two models: pass another one.")
    shows = []
    for path in paths:
        shows.append(show_model(args, path))
        print(f"{path}: {shows[-1].title}\n{shows[-1]}\n")
    target = comparison_page(args.output or folder_of_pages(paths[0]), paths, [shown.method for shown in shows])
    write_report(target, shows, paths, command())
    print(f"Saved {target}")


def show_model(args: argparse.Namespace, path: Path) -> SkillShow:
    """
    Play and measure the skills of a model.

    :param args: arguments of the command
    :param path: file of the model
    :return: figure, metrics and rollouts
    :raises ValueError: if something is missing or does not fit
    """
    options: dict[str, Any] = {
        "skills": args.skill,
        "n_steps": args.steps,
        "n_rollouts": args.rollouts,
        "n_untrained": args.untrained,
        "n_frames": args.frames,
        "video": None if args.video is None else args.video != "none",
        "n_trajectories": args.trajectories,
        "goal_range": args.goal_range,
        "seed": args.seed,
    }
    return show_saved(path, args.algo, args.env, args.gym_packages, args.vec_normalize, **options)


def command() -> list[str]:
    """
    Return the command that was run.

    :return: its words
    """
    return ["python", "-m", "sb3_cesd.show", *sys.argv[1:]]


if __name__ == "__main__":
    main()
