"""
Show what each skill of a model does: pictures, a video, metrics compared with untrained skills, and a page with all of them.

    python -m sb3_cesd.show maze.zip
    python -m sb3_cesd.show --algo cesd --env Walker-v0 -f logs --skill 3 7
    python -m sb3_cesd.show logs/cesd/Walker-v0_1 logs/diayn/Walker-v0_1

Writes skills.html (which needs no other file), skills.png, metrics.json and skills.gif to a folder next to the model, e.g.
Walker-v0_skills. In mazes, a film is only made with --video gif. Several models stand on one page next to the first, e.g. in
Walker-v0_cesd_diayn_skills.
"""

import argparse
import logging
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import gymnasium as gym

from sb3_cesd.checkpoints import is_checkpoint
from sb3_cesd.envs.robots.gl import choose_gl_backend
from sb3_cesd.show.environments import envs_of_run, find_model, load_model, read_run
from sb3_cesd.show.result import SkillShow, make_page
from sb3_cesd.show.skills import show_skills


def main() -> None:
    # A vector may begin with a minus, as arguments do
    args = make_parser().parse_intermixed_args([re.sub(r"^(?=-[\d.]+,)", " ", each) for each in sys.argv[1:]])
    logging.basicConfig(format="%(message)s")
    logging.getLogger("sb3_cesd.show").setLevel(logging.INFO)
    try:
        if not args.models:
            # The run tells its environment, with arguments and wrappers
            args.models, args.env = [run_of(args)], None
        paths = [find_model(path) for path in args.models]
        if args.output is not None:
            args.output.mkdir(parents=True, exist_ok=True)
        shows = [show_saved(path, args) for path in paths]
        # Checkpoints are deleted: what shows one stands beside it
        first = paths[0].resolve().parent if is_checkpoint(paths[0].parent) else paths[0]
        methods = [shown.title.partition(" ")[0].lower() for shown in shows] if len(shows) > 1 else []
        folder = args.output or first.parent / "_".join([first.name.removesuffix(".zip"), *methods, "skills"])
        folder.mkdir(parents=True, exist_ok=True)
        title = shows[0].title if len(shows) == 1 else f"Skills of {len(shows)} models"
        command = shlex.join(["python", "-m", "sb3_cesd.show", *sys.argv[1:]])
        page = folder / "skills.html"
        page.write_text(make_page(shows, title, command), encoding="utf-8")
        files = [page, *(shows[0].save(folder) if len(shows) == 1 else [])]
        print("\n\n".join(f"{shown.title}\n{shown}" for shown in shows), f"\nSaved {', '.join(map(str, files))}")
    except gym.error.UnregisteredEnv as error:
        sys.exit(f"{error} If a package registers it, name that: --gym-packages PACKAGE.")
    except (ValueError, ImportError, OSError, gym.error.Error) as error:
        sys.exit(f"{error}")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_cesd.show", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("models", type=Path, nargs="*", metavar="MODEL", help="file of a model, or folder of a run; several for one page")
    add("--env", help="environment id (default: that of the training)")
    add("--algo", help="without MODEL: method of a run of RL Zoo, found by --env, -f and --exp-id as enjoy does")
    add("-f", "--folder", type=Path, default="logs", help="log folder of RL Zoo (default: logs)")
    add("--exp-id", type=int, default=0, help="number of the run (default: 0, the latest; -1: no folder of a run)")
    add("--gym-packages", nargs="+", default=[], metavar="PACKAGE", help="packages that register environments")
    add("--vec-normalize", type=Path, metavar="PKL", help="statistics of VecNormalize (default: those of the run)")
    add("--output", type=Path, help="folder to write to (default: MODEL_skills next to the model)")
    add("--skill", dest="skills", type=skill, nargs="+", help="skills to draw and film: indices, or vectors such as 0.6,0.8")
    add("--steps", dest="n_steps", type=int, help="steps per skill (default: 50 in a maze, else 250; a task: whole episodes)")
    add("--rollouts", dest="n_rollouts", type=int, help="rollouts per skill for metrics (default: 20 in a maze, else 4)")
    add("--untrained", dest="n_untrained", type=int, default=1, help="untrained networks to compare with (default: 1)")
    add("--frames", dest="n_frames", type=int, default=6, help="images per skill in film strips, 0 for none (default: 6)")
    add("--video", choices=["gif", "none"], help="film of all skills side by side (default: gif, none in mazes)")
    add("--seed", type=int, default=0, help="seed of the start, the same for all skills")
    return parser


def run_of(args: argparse.Namespace) -> Path:
    if args.algo is None or args.env is None:
        raise ValueError("Pass a model (its file, or the folder of its run), or --algo and --env of a run of RL Zoo.")
    from rl_zoo3.utils import get_latest_run_id

    folder, name = args.folder / args.algo, args.env.replace("/", "-")
    number = args.exp_id or get_latest_run_id(str(folder), name)
    return folder / (f"{name}_{number}" if number > 0 else name)


def skill(text: str) -> int | list[float]:
    return [float(number) for number in text.split(",")] if "," in text else int(text)


def show_saved(path: Path, args: argparse.Namespace) -> SkillShow:
    # Must come before a package imports MuJoCo
    choose_gl_backend()
    model = load_model(path)
    for name in [*args.gym_packages, *(read_run(path)[1].get("gym_packages") or [])]:
        import_module(name)
    names = ("skills", "n_steps", "n_rollouts", "n_untrained", "n_frames", "seed")
    options = {name: getattr(args, name) for name in names}
    video = None if args.video is None else args.video == "gif"
    return show_skills(model, envs_of_run(path, model, args.env, args.vec_normalize), video=video, **options)


if __name__ == "__main__":
    main()
