import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from sb3_cesd.envs.mazes.layouts import LAYOUTS
from sb3_cesd.metrics.plots import draw_maze_panels, draw_torso_panels


def paths_of(axes):
    return axes.collections[0]


@pytest.mark.parametrize("name", LAYOUTS)
def test_maze_panels(tmp_path, name):
    layout, rng = LAYOUTS[name], np.random.default_rng(0)
    panels = {title: rng.uniform(-0.4, 0.4, (10, 20, 51, 2)) for title in ("CeSD", "DIAYN", "CIC")}
    figure = draw_maze_panels(layout, panels)
    assert [axes.get_title() for axes in figure.axes] == list(panels) and figure.legends == []
    for axes, states in zip(figure.axes, panels.values(), strict=True):
        paths, walls = [artist for artist in axes.collections if isinstance(artist, LineCollection)]
        assert len(paths.get_segments()) == 200 and len(walls.get_segments()) == len(layout.segments)
        assert paths.get_alpha() == 0.2 and paths.get_linewidth() == [2]
        # Rollouts of all skills in turn, each in the colour of its skill
        assert np.array_equal(paths.get_segments()[13], states[3, 1])
        assert tuple(paths.get_colors()[13][:3]) == to_rgb("tab:red")
        (start,) = axes.lines
        assert np.ravel(start.get_data()) == pytest.approx(states[:, :, 0].mean(axis=(0, 1)))
        assert start.get_color() == "black" and start.get_zorder() > walls.get_zorder() > paths.get_zorder()
    figure.savefig(tmp_path / "maze.png")
    assert (tmp_path / "maze.png").stat().st_size > 5000


def test_many_panels_take_several_rows(tmp_path):
    figure = draw_maze_panels(LAYOUTS["tree"], {f"method {index}": np.zeros((2, 2, 5, 2)) for index in range(17)})
    figure.savefig(tmp_path / "maze.png")
    assert [axes.get_title() for axes in figure.axes] == [f"method {index}" for index in range(17)]
    tops = [round(axes.get_position().y1, 2) for axes in figure.axes]
    assert len(set(tops)) == 3 and tops == sorted(tops, reverse=True) and tops.count(tops[0]) == 6


def test_legend_tells_skills():
    states = np.zeros((12, 2, 5, 2))
    (legend,) = draw_maze_panels(LAYOUTS["tree"], {"CeSD": states}, legend=True).legends
    assert [text.get_text() for text in legend.get_texts()] == [str(skill) for skill in range(12)]
    assert len({line.get_color() for line in legend.get_lines()}) == 12


def test_legend_calls_skills_by_their_vectors(tmp_path):
    labels = [f"({x:.2f}, -0.71)" for x in range(16)]
    figure = draw_maze_panels(LAYOUTS["tree"], {"APT": np.zeros((16, 2, 5, 2))}, legend=True, panel_width=4.5, labels=labels)
    figure.savefig(tmp_path / "maze.png")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == labels
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0, "all of them fit"


def test_torso_panels_on_the_ground_and_on_a_line(tmp_path):
    positions = np.random.default_rng(0).normal(size=(4, 3, 30, 3)).cumsum(axis=2)
    figure = draw_torso_panels({"a": positions, "b": 2 * positions}, legend=True)
    assert np.array_equal(paths_of(figure.axes[1]).get_segments()[0], 2 * positions[0, 0, :, :2])
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim() and figure.axes[0].get_xlabel() == "x [m]"
    figure.savefig(tmp_path / "ground.png")

    figure = draw_torso_panels({"walker": positions * (1, 0, 1)}, alpha=0.7)
    assert paths_of(figure.axes[0]).get_alpha() == 0.7
    expected = np.stack([np.arange(30), positions[1, 0, :, 0]], axis=1)
    assert np.array_equal(paths_of(figure.axes[0]).get_segments()[1], expected) and figure.axes[0].get_xlabel() == "step"
    figure.savefig(tmp_path / "line.png")
