from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from sb3_cesd.common.arguments import PositiveInt, checked, finite_actions
from sb3_cesd.envs.mazes.dynamics import MAX_ACTION, move, place, sample_starts
from sb3_cesd.envs.mazes.layouts import MazeLayout, get_layout
from sb3_cesd.envs.mazes.pictures import MazeObserver

#: (dx, dy)
ACTION_SPACE = spaces.Box(-MAX_ACTION, MAX_ACTION, (2,), np.float32)
WALL_COLOR, TRAIL_COLOR, AGENT_COLOR = (0, 0, 0), (31, 119, 180), (214, 39, 40)
#: Size of a cell [pixels]
PIXELS_PER_CELL = 48
#: Images are drawn this many times larger and scaled down, for smooth lines
OVERSAMPLING = 3
#: Margin around the maze, and sizes of what is drawn [cells]
MARGIN, WALL_WIDTH, TRAIL_WIDTH, START_RADIUS, AGENT_RADIUS = 0.15, 0.06, 0.04, 0.06, 0.1


def draw_trail(layout: MazeLayout, trail: np.ndarray) -> np.ndarray:
    """Draw the walls, the trail of an episode, shape ``(n, 2)``, its start (black) and the agent (red)."""
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


class MazeEnv(gym.Env[np.ndarray, np.ndarray]):
    """
    A point in a maze (Campos et al., 2020). It observes its position (x, y), or a picture, and moves by (dx, dy), each in
    ±0.95. There is no reward.

    Episodes never terminate; the registered ids truncate them after 50 steps. They start at a random position in the start
    cell, or at the one passed as ``reset(options={"position": (x, y)})``. ``info["position"]`` is (x, y, 0) after a step.

    :param layout: square_a, square_b, square_c, square_d, tree, bottleneck or corridor
    :param image_size: height and width of the pictures to observe [pixel]; ``None`` for positions
    :param render_mode: ``"rgb_array"`` for images of the maze and the trail of the episode, or ``None``
    :raises ValueError: if the layout or render mode is unknown, or pictures have no pixels
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    @checked
    def __init__(
        self,
        layout: str,
        image_size: PositiveInt | None = None,
        render_mode: Literal["rgb_array"] | None = None,
    ) -> None:
        self.layout = get_layout(layout)
        self.render_mode = render_mode
        self.image_size = image_size
        self._observe = MazeObserver(self.layout, image_size)
        self.observation_space, self.action_space = self._observe.space, ACTION_SPACE
        # Positions in this episode, (1, 2) each
        self._trail = [np.array(self.layout.start_cell, dtype=np.float64)[None]]

    @property
    def position(self) -> np.ndarray:
        """Return the position (x, y, 0), shape ``(3,)`` as for robots."""
        return np.append(self._trail[-1], 0.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        wanted = (options or {}).get("position")
        start = sample_starts(self.layout, 1, self.np_random) if wanted is None else place(self.layout, wanted)[None]
        self._trail = [start]
        return self._observe(start)[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        positions = move(self.layout, self._trail[-1], finite_actions(action, (1, 2)), self.np_random)
        self._trail.append(positions)
        return self._observe(positions)[0], 0.0, False, False, {"position": self.position}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        return None if self.render_mode is None else draw_trail(self.layout, np.concatenate(self._trail))
