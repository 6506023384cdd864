import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from sb3_cesd.envs.mazes.layouts import LAYOUTS
from sb3_cesd.show.figures import draw_maze_panels


def test_maze_panels(tmp_path):
    layout, rng = LAYOUTS["square_a"], np.random.default_rng(0)
    panels = {title: rng.uniform(-0.4, 0.4, (10, 20, 51, 2)) for title in ("CeSD", "DIAYN", "CIC")}
    figure = draw_maze_panels(layout, panels)
    assert [axes.get_title() for axes in figure.axes] == list(panels) and figure.legends == []
    for axes, states in zip(figure.axes, panels.values(), strict=True):
        paths, walls = [artist for artist in axes.collections if isinstance(artist, LineCollection)]
        assert len(paths.get_segments()) == 200 and len(walls.get_segments()) == len(layout.segments)
        # Rollouts of all skills in turn, each in the colour of its skill
        assert np.array_equal(paths.get_segments()[13], states[3, 1])
        assert tuple(paths.get_colors()[13][:3]) == to_rgb("tab:red")
        (start,) = axes.lines
        assert np.ravel(start.get_data()) == pytest.approx(states[:, :, 0].mean(axis=(0, 1)))
    figure.savefig(tmp_path / "maze.png")
    assert (tmp_path / "maze.png").stat().st_size > 5000


@pytest.mark.parametrize("labels", [None, [f"({x:.2f}, -0.71)" for x in range(24)]])
def test_legend_tells_skills(labels, tmp_path):
    figure = draw_maze_panels(LAYOUTS["tree"], {"APT": np.zeros((24, 2, 5, 2))}, legend=True, panel_width=4.5, labels=labels)
    figure.savefig(tmp_path / "maze.png")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == (labels or [str(skill) for skill in range(24)])
    assert len({line.get_color() for line in legend.get_lines()}) == 24
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0, "all of them fit"
