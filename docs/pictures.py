"""
Make the moving pictures of the README.

    python docs/pictures.py maze demo/logs/cesd/MazeSquareA-v0_1/MazeSquareA-v0.zip     # after `make demo`
    python docs/pictures.py robot skills.gif                                            # what sb3_cesd.show wrote
    python docs/pictures.py robot skills.gif --name quadruped

The arm's skills are those of

    python benchmarks/urlb.py --domains Jaco-v0 --pretrain-steps 100000 --methods cesd --seeds 1 --tasks

with the laptop entry of commit 5349cf1, those of the walker of seed 0 of

    python benchmarks/urlb.py --domains Walker-v0 --methods cesd --seeds 1 --tasks

and those of the quadruped of seed 0 in benchmarks/results/urlb/README.md ("The table").
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image, ImageSequence

from sb3_cesd import CeSD
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import collect_rollouts
from sb3_cesd.show.figures import draw_maze_panels

STATIC = Path(__file__).parent / "_static"
#: Milliseconds per frame, and how long the last one stays
FRAME, PAUSE = 80, 1500


def maze_frames(model_path: Path, n_rollouts: int = 20, every: int = 2) -> list[Image.Image]:
    """Draw how the paths of all skills grow from one start in square_a."""
    env = MazeVecEnv("square_a", n_envs=100)
    start = {"position": (0.0, 0.0)}
    rollouts = collect_rollouts(CeSD.load(model_path), env, n_rollouts, noise_std=0.2, seed=0, reset_options=start)
    frames = []
    for end in range(1, rollouts.states.shape[2] + 1, every):
        canvas = FigureCanvasAgg(draw_maze_panels(env.layout, {"": rollouts.states[:, :, :end]}, panel_width=3.6))
        canvas.draw()
        frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]))
    return frames


def robot_frames(gif: Path, width: int = 640) -> list[Image.Image]:
    """Read the video of a robot and shrink it."""
    with Image.open(gif) as image:
        size = width, round(image.height * width / image.width)
        return [frame.convert("RGB").resize(size, Image.Resampling.LANCZOS) for frame in ImageSequence.Iterator(image)]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["maze", "robot"])
    parser.add_argument("source", type=Path, help="model of a maze, or GIF of a robot")
    parser.add_argument("--name", help="name of the picture (default: what it shows)")
    args = parser.parse_args()
    frames = maze_frames(args.source) if args.what == "maze" else robot_frames(args.source)
    # The last one first, for who sees no more than one
    first, *others = [frames[-1], *frames[:-1]]
    durations = [PAUSE] + [FRAME] * len(others)
    path = STATIC / f"{args.name or args.what}.webp"
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, quality=60, method=4)
    print(f"Saved {path}, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
