"""
Draw the paths of all skills of robots, a panel per method at the same scale, as in METRA's paper.

    python benchmarks/skill_paths.py results/urlb --domain SkillAnt-v0                                # seen from above
    python benchmarks/skill_paths.py results/urlb --domain SkillHalfCheetah-v0 --methods metra diayn   # x over time

Plays the models that ``urlb.py`` saved and writes ``paths_<domain>.png``: 48 deterministic trajectories per method, of random
continuous skills (ordered by direction, as colours are), or of all discrete ones. The paths are stored in
``paths_<domain>.npz``, which is used for methods whose model is gone.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from runs import positive, save_figure_whole
from urlb_methods import DOMAINS, METHODS, SCALES, entry_steps
from urlb_run import make_envs, model_file

from sb3_cesd import registry
from sb3_cesd.common.files import written_whole
from sb3_cesd.metrics import play_paths
from sb3_cesd.metrics.goals import trajectory_skills
from sb3_cesd.show.figures import draw_paths, make_panels
from sb3_cesd.skill_ddpg import SkillDDPG

N_TRAJECTORIES, N_STEPS = 48, 200


def paths_of_skills(model: SkillDDPG, domain: str, seed: int) -> np.ndarray:
    """
    Play skills from the start.

    :param model: a pre-trained model
    :param domain: its environment
    :param seed: seed of continuous skills and of the starts
    :return: positions [m], shape ``(n_skills, n_trajectories, n_steps + 1, 3)``: one trajectory of each continuous skill,
        ordered by direction, or :data:`N_TRAJECTORIES` trajectories in all, as many of each discrete skill
    """
    env = make_envs(domain, N_TRAJECTORIES, 1, seed)
    if model.skill_space.discrete:
        n_skills = model.n_skills
        skills = trajectory_skills(model, n_skills * max(1, N_TRAJECTORIES // n_skills))
    else:
        skills = trajectory_skills(model, N_TRAJECTORIES, seed)
        n_skills = len(skills)
        skills = skills[np.argsort(np.arctan2(skills[:, 1], skills[:, 0]))] if skills.shape[1] > 1 else np.sort(skills, axis=0)
    paths = play_paths(model, env, skills, N_STEPS)
    env.close()
    return paths.reshape(n_skills, -1, *paths.shape[1:])


def draw_torso_panels(panels: Mapping[str, np.ndarray]) -> Figure:
    """
    Draw the paths of the skills of robots on the ground; x over time for a robot that stays on a line, as the walker does.

    :param panels: title (the method) -> positions of the torso [m], of which x and y are drawn, shape
        ``(n_skills, n_rollouts, n_steps + 1, d)``
    :return: one panel per method, all to the same scale
    """
    figure, all_axes = make_panels(len(panels), 3.0, 3.0, share=True)
    on_a_line = all(np.ptp(positions[..., 1]) < 1e-6 for positions in panels.values())
    for axes, (title, positions) in zip(all_axes, panels.items(), strict=True):
        if on_a_line:
            steps = np.broadcast_to(np.arange(positions.shape[2]), positions.shape[:3])
            paths = np.stack([steps, positions[..., 0]], axis=-1)
            axes.set(xlabel="step", ylabel="x [m]")
        else:
            paths = positions[..., :2]
            axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
        draw_paths(axes, paths, 0.6)
        axes.plot(*paths[:, :, 0].mean(axis=(0, 1)), "o", color="black", markersize=5, zorder=4)
        axes.set_title(title)
        axes.label_outer()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="results of urlb.py, with models")
    parser.add_argument("--domain", choices=[name for name in DOMAINS if name != "Jaco-v0"], default="SkillAnt-v0")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), metavar="METHOD", help="default: all with a model")
    parser.add_argument("--scale", choices=SCALES, default="laptop", help="scale of the models")
    parser.add_argument("--seed", type=int, default=0, help="seed of the models")
    parser.add_argument("--pretrain-steps", type=positive, help="steps of the models (default: as in urlb.py)")
    parser.add_argument("--output", type=Path, help="folder of the picture (default: that of the results)")
    args = parser.parse_args()
    steps = args.pretrain_steps or entry_steps(args.scale, args.domain)
    output = args.output or args.folder
    picture, stored = output / f"paths_{args.domain}.png", output / f"paths_{args.domain}.npz"
    kept: dict[str, np.ndarray] = dict(np.load(stored)) if stored.is_file() else {}
    panels = {}
    for method in args.methods or METHODS:
        run = {"method": method, "domain": args.domain, "scale": args.scale, "seed": args.seed}
        file = model_file(args.folder / "models", run, steps)
        if file.is_file():
            model = registry.METHODS[METHODS[method].algo].load(file, device="cpu", buffer_size=1)
            # Precise to 6 cm at a distance of 100 m, which is less than a pixel
            kept[file.stem] = paths_of_skills(model, args.domain, args.seed).astype(np.float16)
        if file.stem in kept:
            panels[method] = kept[file.stem].astype(np.float32)
        elif args.methods:
            parser.error(f"there is no {file}: train it with urlb.py, or pass other --methods, --seed or --pretrain-steps")
    if not panels:
        parser.error(f"{args.folder / 'models'} has no such model: train some with urlb.py, or pass another --seed")
    with written_whole(stored) as whole:
        np.savez_compressed(whole, **kept)  # type: ignore[arg-type]
    save_figure_whole(draw_torso_panels(panels), picture, dpi=110)
    print(f"Wrote {picture}")


if __name__ == "__main__":
    main()
