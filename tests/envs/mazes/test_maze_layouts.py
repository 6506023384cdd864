import copy
import pickle

import numpy as np
import pytest

from sb3_cesd.envs.mazes.coverage import bin_indices
from sb3_cesd.envs.mazes.layouts import LAYOUTS, get_layout

#: Published denominators: free cells, cells of the bounding box
CELLS = {
    "square_a": (17, 25),
    "square_b": (17, 25),
    "square_c": (17, 25),
    "square_d": (22, 28),
    "tree": (31, 91),
    "bottleneck": (100, 100),
    "corridor": (11, 11),
}
BOXES = {
    "square_a": (-0.5, -4.5, 4.5, 0.5),
    "square_b": (-0.5, -4.5, 4.5, 0.5),
    "square_c": (-0.5, -4.5, 4.5, 0.5),
    "square_d": (-3.5, -3.5, 3.5, 0.5),
    "tree": (-6.5, -6.5, 6.5, 0.5),
    "bottleneck": (-0.5, -0.5, 9.5, 9.5),
    "corridor": (-5.5, -0.5, 5.5, 0.5),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_free_cells_and_box(name):
    layout = LAYOUTS[name]
    free, total = CELLS[name]
    assert layout.n_free_cells == free
    assert np.prod(layout.high - layout.low) == total
    assert (*layout.low, *layout.high) == BOXES[name]
    assert layout.n_free_bins == free * (100 if name == "bottleneck" else 400)


def flood_by_hand(layout):
    """Cells reached from the start; a step is free if its middle is on no wall."""
    reached, frontier = {layout.start_cell}, [layout.start_cell]
    while frontier:
        x, y = frontier.pop()
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            middle = (x + dx / 2, y + dy / 2)
            on_wall = any(
                min(x0, x1) <= middle[0] <= max(x0, x1) and min(y0, y1) <= middle[1] <= max(y0, y1)
                for (x0, y0), (x1, y1) in layout.segments
            )
            if not on_wall and (x + dx, y + dy) not in reached:
                reached.add((x + dx, y + dy))
                frontier.append((x + dx, y + dy))
    return reached


@pytest.mark.parametrize("name", LAYOUTS)
def test_flood_fill(name):
    layout = LAYOUTS[name]
    assert {tuple(cell) for cell in np.argwhere(layout.free_cells) + layout.origin} == flood_by_hand(layout)


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_free_bin_has_one_index(name):
    layout = LAYOUTS[name]
    corners = [np.arange(low, high, 1 / layout.bins_per_cell) for low, high in zip(layout.low, layout.high, strict=True)]
    centers = np.stack(np.meshgrid(*corners), axis=-1).reshape(-1, 2) + 0.5 / layout.bins_per_cell
    free = layout.is_free(centers)
    assert sorted(bin_indices(layout, centers[free])) == list(range(layout.n_free_bins))


def test_positions_outside_the_box_are_not_free():
    positions = np.array([[0.0, 0.0], [-0.6, 0.0], [1e9, 0.0], [np.nan, 0.0], [1.0, 0.0]])
    assert get_layout("square_a").is_free(positions).tolist() == [True, False, False, False, False]


def test_unknown_maze():
    with pytest.raises(ValueError, match=r"Unknown maze 'square_e': choose one of square_a, .*corridor\.$"):
        get_layout("square_e")


@pytest.mark.parametrize("name", LAYOUTS)
def test_there_is_one_object_of_each(name):
    """Also after a way through another process, so that layouts can be told apart by identity."""
    layout = LAYOUTS[name]
    assert layout.name == name
    assert pickle.loads(pickle.dumps(layout)) is layout and copy.deepcopy(layout) is layout
