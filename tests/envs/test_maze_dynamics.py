"""All checks of crossings are in exact integer arithmetic, in units of the resolution."""

import numpy as np
import pytest

from sb3_cesd.envs.mazes.dynamics import MAX_ACTION, MAX_BACK_OFF, RESOLUTION, move, place, sample_starts, snap
from sb3_cesd.envs.mazes.layouts import LAYOUTS


def to_integers(coordinates):
    integers = np.asarray(coordinates, dtype=np.float64) / RESOLUTION
    assert (integers == np.rint(integers)).all()
    return integers.astype(np.int64)


def touches_wall(layout, old, new):
    """Whether the straight segments from old to new, (n, 2), have a point in common with a wall (its ends included)."""
    old, new = to_integers(old), to_integers(new)
    touched = np.zeros(len(old), dtype=bool)
    for start, end in to_integers(layout.segments):
        normal = 0 if start[0] == end[0] else 1
        run = new[:, normal] - old[:, normal]
        to_wall = start[normal] - old[:, normal]
        # Coordinate along the wall where the segment meets its line, times the run
        along = old[:, 1 - normal] * run + to_wall * (new[:, 1 - normal] - old[:, 1 - normal])
        low, high = sorted((start[1 - normal], end[1 - normal]))
        inside = np.where(run > 0, (along >= low * run) & (along <= high * run), (along <= low * run) & (along >= high * run))
        touched |= (to_wall * (start[normal] - new[:, normal]) < 0) & inside
    return touched


def assert_sound(layout, old, new):
    assert layout.is_free(new).all()
    assert (to_integers(new) % 2 == 1).all() and (new.astype(np.float32) == new).all()
    assert not touches_wall(layout, old, new).any()


def anywhere(layout, n, rng):
    cells = np.argwhere(layout.free_cells)[rng.integers(layout.n_free_cells, size=n)] + layout.origin
    return snap(cells + rng.uniform(-0.5, 0.5, size=(n, 2)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_random_steps_never_cross_a_wall(name):
    """800,000 steps in each maze."""
    layout, rng = LAYOUTS[name], np.random.default_rng(0)
    positions = anywhere(layout, 8000, rng)
    for step in range(100):
        # Small, large, diagonal and axis-parallel ones
        actions = rng.uniform(-1, 1, size=positions.shape) * (0.01, MAX_ACTION, 2.0)[step % 3]
        if step % 5 == 3:
            actions[:, 1] = actions[:, 0] * rng.choice((-1, 1), size=len(actions))
        if step % 5 == 4:
            actions[np.arange(len(actions)), rng.integers(2, size=len(actions))] = 0.0
        reached = move(layout, positions, actions.astype(np.float32), rng)
        assert_sound(layout, positions, reached)
        positions = reached


@pytest.mark.parametrize("name", LAYOUTS)
def test_steps_aimed_at_corners_never_cross_a_wall(name):
    """From all around each grid corner (the ends of walls are among them) to all around it, exactly through it included."""
    layout, rng = LAYOUTS[name], np.random.default_rng(0)
    unit = RESOLUTION
    offsets = np.array([unit, 3 * unit, 2001 * unit, 300_001 * unit])
    offsets = np.concatenate([-offsets, offsets])
    around = np.stack(np.meshgrid(offsets, offsets), axis=-1).reshape(-1, 2)  # (64, 2)
    starts, targets = (
        grid.reshape(-1, 2) for grid in (np.repeat(around, len(around), axis=0), np.tile(around, (len(around), 1)))
    )
    n_steps = 0
    for x in np.arange(layout.low[0], layout.high[0] + 1):
        for y in np.arange(layout.low[1], layout.high[1] + 1):
            free = layout.is_free(starts + (x, y))
            old, actions = starts[free] + (x, y), (targets - starts)[free]
            assert_sound(layout, old, move(layout, old, actions, rng))
            n_steps += len(old)
    assert n_steps > 40_000


def test_points_slide_along_walls():
    """For the rest of the step, after backing off from the wall; actions are clipped."""
    layout = LAYOUTS["bottleneck"]
    position = place(layout, (2.0, 2.0))[None]
    moved = move(layout, position, np.array([[7.0, -7.0]]), np.random.default_rng(0)) - position
    assert moved[0] == pytest.approx([0.95, -0.95], abs=1e-5)
    layout = LAYOUTS["square_b"]
    position = place(layout, (0.2, 0.3))[None]
    for action, along, ahead in (((-0.2, 0.9), 0, 1), ((0.9, -0.9), 1, 0), ((-0.9, 0.1), 1, 0)):
        moved = move(layout, position, np.array([action]), np.random.default_rng(0))[0]
        assert moved[along] == pytest.approx(position[0, along] + action[along], abs=1e-5)
        assert 0 < 0.5 - abs(moved[ahead]) <= MAX_BACK_OFF


@pytest.mark.parametrize(
    "name, low, high",
    [
        ("square_a", (-0.45, -0.5), (0.45, 0.45)),
        ("corridor", (-5.45, -0.45), (-4.5, 0.45)),
        ("bottleneck", (-0.45, -0.45), (0.5, 0.5)),
    ],
)
def test_starts_are_uniform_but_for_strips_along_walls(name, low, high):
    starts = sample_starts(LAYOUTS[name], 20_000, np.random.default_rng(0))
    assert starts.min(axis=0) == pytest.approx(low, abs=1e-3) and starts.max(axis=0) == pytest.approx(high, abs=1e-3)
    for column, lowest, highest in zip(starts.T, low, high, strict=True):
        quantiles = (np.quantile(column, [0.25, 0.5, 0.75]) - lowest) / (highest - lowest)
        assert quantiles == pytest.approx([0.25, 0.5, 0.75], abs=0.02)


@pytest.mark.parametrize("position", [(1.0, 0.0), (0.0, 7.0), (np.nan, 0.0), (0.0, 0.0, 0.0)])
def test_impossible_starts(position):
    with pytest.raises(ValueError, match="free cells"):
        place(LAYOUTS["square_a"], position)
