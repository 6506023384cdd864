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
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym

from sb3_cesd.checkpoints.resume import is_checkpoint
from sb3_cesd.envs.robots.gl import choose_gl_backend
from sb3_cesd.show.environments import envs_of_run, load_model, read_args
from sb3_cesd.show.result import SkillShow, make_page
from sb3_cesd.show.skills import show_skills


def main() -> None:
    # Intermixed, so that models may stand before and after --compare
    args = make_parser().parse_intermixed_args()
    if args.output is not None and len(args.models) > 1 and not args.compare:
        sys.exit("--output is the folder of one page: pass one model, or --compare for one page of all.")
    command = shlex.join(["python", "-m", "sb3_cesd.show", *sys.argv[1:]])
    # Checkpoints are deleted: what shows one stands beside it
    bases = [path.resolve().parent if is_checkpoint(path.parent) else path for path in args.models]
    names = [base.name.removesuffix(".zip") for base in bases]
    try:
        if args.compare:
            shows = [show_saved(path, args) for path in args.models]
            methods = [shown.title.partition(" ")[0].lower() for shown in shows]
            page = (args.output or bases[0].parent) / f"{'_'.join([names[0], *methods])}_compared.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(make_page(shows, f"Skills of {len(shows)} models", command), encoding="utf-8")
            print("\n\n".join(f"{path}: {shown.title}\n{shown}" for path, shown in zip(args.models, shows, strict=True)))
            print(f"Saved {page}")
            return
        for path, base, name in zip(args.models, bases, names, strict=True):
            folder = args.output or base.parent / f"{name}_skills"
            folder.mkdir(parents=True, exist_ok=True)
            shown = show_saved(path, args)
            files = [folder / "skills.html", *shown.save(folder, None if args.video == "none" else args.video or "gif")]
            files[0].write_text(make_page([shown], shown.title, command), encoding="utf-8")
            print(f"{shown}\nSaved {', '.join(map(str, files))}")
    except (ValueError, ImportError, OSError, gym.error.Error) as error:
        sys.exit(f"{error}")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_cesd.show", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("models", type=Path, nargs="+", metavar="MODEL", help="model saved by RL Zoo, model.save or export_policy")
    add("--compare", action="store_true", help="write one page with the models side by side")
    add("--env", help="environment id (default: that of the run of RL Zoo)")
    add("--gym-packages", nargs="+", default=[], metavar="PACKAGE", help="packages that register environments")
    add("--vec-normalize", type=Path, metavar="PKL", help="statistics of VecNormalize (default: those of the run)")
    add("--output", type=Path, help="folder to write to (default: <model>_skills next to the model)")
    add("--skill", type=skill, nargs="+", help="skills to draw and film: indices, or vectors such as 0.6,0.8")
    add("--steps", type=int, help="steps per skill (default: 50 in a maze, else 250; whole episodes for a task)")
    add("--rollouts", type=int, help="rollouts per skill for metrics (default: 20 in a maze, else 4)")
    add("--untrained", type=int, default=1, help="untrained networks to compare with (default: 1)")
    add("--frames", type=int, default=6, help="images per skill in film strips, 0 for none (default: 6)")
    add("--video", choices=["gif", "mp4", "none"], help="video of all skills side by side (default: gif, none in mazes)")
    help_goals = "for a robot, also measure 48 trajectories, and follow skills to 50 goals within +- METRES along each axis"
    add("--goal-range", type=float, default=0.0, metavar="METRES", help=help_goals)
    add("--seed", type=int, default=0, help="seed of the start, the same for all skills")
    return parser


def skill(text: str) -> int | list[float]:
    """Read the index or vector of a skill."""
    return [float(number) for number in text.split(",")] if "," in text else int(text)


def show_saved(path: Path, args: argparse.Namespace) -> SkillShow:
    """Show the skills of a saved model."""
    # Must come before a package imports MuJoCo
    choose_gl_backend()
    model = load_model(path)
    for name in [*args.gym_packages, *(read_args(path).get("gym_packages") or [])]:
        import_module(name)
    options: dict[str, Any] = {
        "skills": args.skill,
        "n_steps": args.steps,
        "n_rollouts": args.rollouts,
        "n_untrained": args.untrained,
        "n_frames": args.frames,
        "video": None if args.video is None else args.video != "none",
        "goal_range": args.goal_range,
        "seed": args.seed,
    }
    return show_skills(model, envs_of_run(path, args.env, args.vec_normalize), **options)


if __name__ == "__main__":
    main()
