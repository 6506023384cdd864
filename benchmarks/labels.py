"""Labels of points in a figure that do not overlap."""

from collections.abc import Mapping
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox

#: Distances [points] and directions [degrees] that are tried for a label; the first free place is used
DISTANCES, DIRECTIONS = (6, 12, 20, 30, 42, 56), (0, 30, 330, 60, 300, 90, 270, 120, 240, 150, 210, 180)
#: Room around a label and half the side of a point [pixels]
MARGIN, POINT = 1.0, 5.0


def add_labels(axes: Axes, points: Mapping[str, tuple[float, float]], font_size: float = 7.5) -> None:
    """
    Label points, with a line to labels that are not next to their point.

    :param axes: axes of the points, with final limits, in a figure with a final layout
    :param points: label -> x and y
    :param font_size: size of the labels [points]
    """
    figure = axes.figure
    assert figure is not None
    renderer = FigureCanvasAgg(figure.figure).get_renderer()
    scale = figure.figure.dpi / 72
    places = {label: axes.transData.transform(point) for label, point in points.items()}
    taken = [Bbox([place - POINT, place + POINT]) for place in places.values()]
    frame = axes.get_window_extent(renderer)
    # From top to bottom, whatever the order of the points
    for label in sorted(places, key=lambda name: (-places[name][1], places[name][0], name)):
        place = places[label]
        text = axes.text(*points[label], label, fontsize=font_size)
        width, height = text.get_window_extent(renderer).size
        text.remove()
        boxes = []
        for distance, direction in product(DISTANCES, np.deg2rad(DIRECTIONS)):
            x, y = place + distance * scale * np.array([np.cos(direction), np.sin(direction)])
            # The nearest point of the label has this distance: its left end if it is on the right, its middle if it is above
            left = x - width * (1 - np.cos(direction)) / 2
            boxes.append(Bbox([[left, y - height / 2], [left + width, y + height / 2]]).padded(MARGIN))
        overlaps = [box.count_overlaps(taken) + 100 * (not _inside(box, frame)) for box in boxes]
        chosen = int(np.argmin(overlaps))
        box = boxes[chosen]
        taken.append(box)
        x, y = ((box.x0 + box.x1) / 2 - place[0]) / scale, ((box.y0 + box.y1) / 2 - place[1]) / scale
        axes.annotate(
            label,
            points[label],
            (x, y),
            textcoords="offset points",
            fontsize=font_size,
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "color": "grey", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
            if chosen >= len(DIRECTIONS)
            else None,
        ).set_in_layout(False)


def _inside(box: Bbox, frame: Bbox) -> bool:
    return bool(box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1)
