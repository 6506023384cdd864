"""Images of a maze, drawn with Pillow."""

import numpy as np
from PIL import Image, ImageDraw

from sb3_cesd.envs.mazes.layouts import MazeLayout

WALL_COLOR, TRAIL_COLOR, AGENT_COLOR = (0, 0, 0), (31, 119, 180), (214, 39, 40)
#: Size of a cell [pixels]
PIXELS_PER_CELL = 48
#: Images are drawn this many times larger and scaled down, for smooth lines
OVERSAMPLING = 3
#: Margin around the maze, and sizes of what is drawn [cells]
MARGIN, WALL_WIDTH, TRAIL_WIDTH, START_RADIUS, AGENT_RADIUS = 0.15, 0.06, 0.04, 0.06, 0.1


def draw_trail(layout: MazeLayout, trail: np.ndarray) -> np.ndarray:
    """
    Draw the walls, the trail of an episode, its start (black) and the agent (red).

    :param layout: the maze
    :param trail: positions in the episode, from the start to the current one, shape ``(n, 2)``
    :return: the image, shape ``(height, width, 3)``, uint8
    """
    scale = PIXELS_PER_CELL * OVERSAMPLING
    size = np.rint((layout.high - layout.low + 2 * MARGIN) * PIXELS_PER_CELL).astype(int)
    image = Image.new("RGB", (int(size[0]) * OVERSAMPLING, int(size[1]) * OVERSAMPLING), "white")
    draw = ImageDraw.Draw(image)

    def pixels(points: np.ndarray) -> list[tuple[float, float]]:
        x, y = ((points - layout.low + MARGIN) * scale).T
        return list(zip(x.tolist(), (image.height - y).tolist(), strict=True))

    draw.line(pixels(trail), fill=TRAIL_COLOR, width=round(TRAIL_WIDTH * scale), joint="curve")
    for segment in layout.segments:
        draw.line(pixels(segment), fill=WALL_COLOR, width=round(WALL_WIDTH * scale))
    for end in pixels(layout.segments.reshape(-1, 2)):
        draw.circle(end, WALL_WIDTH / 2 * scale, fill=WALL_COLOR)
    draw.circle(pixels(trail[:1])[0], START_RADIUS * scale, fill=WALL_COLOR)
    draw.circle(pixels(trail[-1:])[0], AGENT_RADIUS * scale, fill=AGENT_COLOR)
    return np.asarray(image.resize((int(size[0]), int(size[1])), Image.Resampling.BOX))
