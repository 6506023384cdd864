"""A video of all skills side by side."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from sb3_cesd.common.files import written_whole

LABEL_HEIGHT, GAP = 22, 4  # [pixels]
#: Candidate numbers of films in a row, for up to 16 skills and for more
COLUMNS, COLUMNS_OF_MANY, MANY = (4, 5, 6), (8, 7, 6), 16


def even_columns(n_skills: int) -> int:
    """
    Choose the number of films in a row, so that the last row is as full as possible.

    :param n_skills: number of films
    :return: all of them if they fit, else the number that leaves the fewest gaps: 4 of 8, 5 of 10, 8 of 32
    """
    if n_skills < COLUMNS[-1]:
        return n_skills
    return min(COLUMNS if n_skills <= MANY else COLUMNS_OF_MANY, key=lambda n_columns: -n_skills % n_columns)


def grid_frames(frames: list[list[np.ndarray]], labels: list[str]) -> list[np.ndarray]:
    """
    Put the images of all skills side by side.

    :param frames: images of each skill, each of shape ``(height, width, 3)``; the last one is repeated if there are fewer
    :param labels: text above each skill
    :return: images of all skills in a grid, labelled
    """
    n_columns = even_columns(len(frames))
    n_rows = -(-len(frames) // n_columns)
    height, width = frames[0][0].shape[:2]
    cell_height, cell_width = height + LABEL_HEIGHT + GAP, width + GAP
    font = ImageFont.load_default(size=LABEL_HEIGHT - 6)
    images = []
    for time in range(max(len(of_skill) for of_skill in frames)):
        image = Image.new("RGB", (n_columns * cell_width, n_rows * cell_height), "white")
        draw = ImageDraw.Draw(image)
        for index, (of_skill, label) in enumerate(zip(frames, labels, strict=True)):
            row, column = divmod(index, n_columns)
            x, y = column * cell_width, row * cell_height
            draw.text((x + GAP, y + 2), label, fill="black", font=font)
            image.paste(Image.fromarray(of_skill[min(time, len(of_skill) - 1)]), (x, y + LABEL_HEIGHT))
        images.append(np.asarray(image))
    return images


def write_video(images: list[np.ndarray], path: Path, fps: float) -> None:
    """
    Write a video. If writing fails, a previous file is left as it was.

    :param images: images of equal shape ``(height, width, 3)``
    :param path: file to write, ``.gif`` or ``.mp4``
    :param fps: images per second
    :raises ValueError: if mp4 can't be written on this machine
    """
    if path.suffix == ".gif":
        first, *others = (Image.fromarray(image).quantize(128) for image in images)
        with written_whole(path) as file:
            first.save(file, format="GIF", save_all=True, append_images=others, duration=round(1000 / fps), loop=0)
        return
    try:
        from moviepy.video.io.ImageSequenceClip import ImageSequenceClip
    except ImportError as error:
        raise ValueError("mp4 needs moviepy: pip install moviepy, or pass --video gif.") from error
    # The codec needs even sizes
    even = [image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2] for image in images]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "video.mp4"
        ImageSequenceClip(even, fps=fps).write_videofile(str(made), logger=None)
        with made.open("rb") as video, written_whole(path) as file:
            shutil.copyfileobj(video, file)
