"""
Make the moving pictures of the README.

    python docs/pictures.py maze demo/logs/cesd/MazeSquareA-v0_1/MazeSquareA-v0.zip     # after `make demo`
    python docs/pictures.py robot skills.gif                                            # what sb3_cesd.show wrote

The arm's skills are those of

    python benchmarks/urlb.py --domains Jaco-v0 --pretrain-steps 100000 --methods cesd --seeds 1 --tasks
"""

import argparse
import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

from sb3_cesd import CeSD
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import collect_rollouts
from sb3_cesd.metrics.plots import draw_maze_panels

STATIC = Path(__file__).parent / "_static"
#: Milliseconds per frame, and how long the last one stays
FRAME, PAUSE = 80, 1500


def maze_frames(model_path: Path, n_rollouts: int = 20, every: int = 2) -> list[Image.Image]:
    """
    Draw how the paths of all skills grow from one start in square_a.

    :param model_path: a CeSD model of MazeSquareA-v0
    :param n_rollouts: rollouts per skill
    :param every: environment steps per frame
    :return: the frames
    """
    env = MazeVecEnv("square_a", n_envs=100)
    start = {"position": (0.0, 0.0)}
    rollouts = collect_rollouts(CeSD.load(model_path), env, n_rollouts, noise_std=0.2, seed=0, reset_options=start)
    frames = []
    for end in range(1, rollouts.states.shape[2] + 1, every):
        figure = draw_maze_panels(env.layout, {"": rollouts.states[:, :, :end]}, panel_width=3.6)
        figure.canvas.draw()
        frames.append(Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3]))  # type: ignore[attr-defined]
    return frames


def robot_frames(gif: Path, n_skills: int = 8, n_columns: int = 4, width: int = 840) -> list[Image.Image]:
    """
    Read the video of a robot, put its skills into two rows and shrink it.

    :param gif: a video by ``python -m sb3_cesd.show``, a grid that is as square as can be
    :param n_skills: number of skills
    :param n_columns: number of columns afterwards
    :param width: of the frames [pixel]
    :return: the frames
    """
    with Image.open(gif) as image:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
    before = math.ceil(math.sqrt(n_skills))
    cell_width, cell_height = frames[0].width // before, frames[0].height // math.ceil(n_skills / before)
    size = cell_width * n_columns, cell_height * math.ceil(n_skills / n_columns)
    arranged = []
    for frame in frames:
        image = Image.new("RGB", size, "white")
        for skill in range(n_skills):
            x, y = skill % before * cell_width, skill // before * cell_height
            cell = frame.crop((x, y, x + cell_width, y + cell_height))
            image.paste(cell, (skill % n_columns * cell_width, skill // n_columns * cell_height))
        arranged.append(image.resize((width, round(size[1] * width / size[0])), Image.Resampling.LANCZOS))
    return arranged


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["maze", "robot"])
    parser.add_argument("source", type=Path, help="model of a maze, or GIF of a robot")
    args = parser.parse_args()
    frames = maze_frames(args.source) if args.what == "maze" else robot_frames(args.source)
    # The last one first, for who sees no more than one
    first, *others = [frames[-1], *frames[:-1]]
    durations = [PAUSE] + [FRAME] * len(others)
    path = STATIC / f"{args.what}.webp"
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, quality=60, method=4)
    print(f"Saved {path}, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
