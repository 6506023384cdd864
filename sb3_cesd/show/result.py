"""Result of showing skills."""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from jinja2 import Template
from matplotlib.figure import Figure
from PIL import Image

from sb3_cesd.common.files import installed_versions
from sb3_cesd.show.figures import grid_frames
from sb3_cesd.show.play import SkillRollout

#: Images per second
FPS = 10
#: Quality of animated images, from 0 to 100
QUALITY = 60
#: What metrics mean
MEANINGS = {
    "knn_accuracy": "share of states whose observation identifies the skill",
    "knn_accuracy_standardized": "as knn_accuracy, each entry divided by its standard deviation",
    "knn_accuracy_places": "share of states whose position identifies the skill",
    "policy_coverage": "share of a maze, or number of bins of 1 m (arm: 0.1 m), that these rollouts visit",
    "mutual_information": "of position and skill [nats], at most log(n_skills)",
    "particle_entropy": "spread of observations, from the distances to the nearest ones",
    "moving_share": "share of the skills that move",
    "torso_speed": "of the torso, median over skills [m/s]",
    "hand_speed": "of the hand, median over skills [m/s]",
    "on_cluster_share": "share of states in the cluster of their skill",
    "cluster_size_entropy": "of the sizes of the clusters [nats], at most log(n_skills)",
    "mean_return": "sum of the rewards of the environment until the end of an episode or of the recording",
    "mean_length": "steps until the end of an episode or of the recording",
}


@dataclass(repr=False)
class SkillShow:
    """
    What skills do. Notebooks display it, and :meth:`save` writes it to files.

    :param rollouts: one episode of each skill, all from the same start
    :param metrics: metrics of all skills of the model, by name
    :param baselines: the same metrics of ``"untrained"`` skills and by ``"chance"``, as far as they are known
    :param filmed: whether images were recorded for a video, not just for film strips
    :param notes: remarks, such as why there are no images
    """

    title: str
    rollouts: list[SkillRollout]
    figure: Figure
    metrics: dict[str, float]
    baselines: dict[str, dict[str, float]]
    filmed: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, dict[str, float]]:
        """Metrics of the skills and of the baselines."""
        return {"skills": self.metrics, **self.baselines}

    @property
    def summary(self) -> str:
        """How well the skills can be told apart, in a sentence; empty if that was not measured."""
        shares = {name: metrics["knn_accuracy"] for name, metrics in self.columns.items() if "knn_accuracy" in metrics}
        said = ", ".join(f"{'' if name == 'skills' else name} {100 * share:.0f} %".strip() for name, share in shares.items())
        return said and f"Skills can be told apart: {said}."

    @cached_property
    def picture(self) -> bytes:
        """The figure as PNG."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()

    @cached_property
    def film(self) -> list[Image.Image]:
        """Images of all skills side by side, over time; none if no video was to be recorded."""
        return grid_frames(self.rollouts) if self.filmed and all(rollout.frames for rollout in self.rollouts) else []

    def sources(self) -> list[str]:
        """What a page shows: the figure, and the film if there is one."""
        images = {"png": self.picture}
        if self.film:
            images["webp"] = _animated(self.film, "WEBP", quality=QUALITY, method=0)
        return [f"data:image/{kind};base64,{base64.b64encode(image).decode()}" for kind, image in images.items()]

    def skill_rows(self) -> list[list[str]]:
        """Tabulate the episodes: return, number of steps, and for a robot how far it moved and its mean height."""
        rows = []
        for rollout in self.rollouts:
            row = [rollout.label, f"{rollout.episode_return:.1f}", f"{rollout.n_steps}"]
            if rollout.positions is not None:
                row += [f"{value:.2f}" for value in (rollout.positions[-1] - rollout.positions[0])[:2]]
                row.append(f"{rollout.positions[:, 2].mean():.2f}")
            rows.append(row)
        header = ["skill", "return", "steps", "moved x [m]", "moved y [m]", "mean z [m]"]
        # Without what is always 0: the return of a maze, the way of a walker to the side, heights in a plane
        kept = [idx for idx, column in enumerate(zip(*rows, strict=True)) if idx == 0 or any(map(float, column))]
        return [[row[idx] for idx in kept] for row in [header, *rows]]

    def __str__(self) -> str:
        metrics = aligned(metric_rows(self.columns), n_texts=1) if self.metrics else ""
        return "\n".join(filter(None, [self.summary, aligned(self.skill_rows()), metrics, *self.notes]))

    # A notebook stores it beside the HTML
    __repr__ = __str__

    def _repr_html_(self) -> str:
        return make_page([self])

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``skills.png``, ``metrics.json`` and, for a video, ``skills.gif`` to a folder, which is created if needed."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        contents = {"skills.png": self.picture, "metrics.json": f"{json.dumps(self.columns, indent=2)}\n".encode()}
        if self.film:
            colors = [image.quantize(128, Image.Quantize.FASTOCTREE) for image in self.film]
            contents["skills.gif"] = _animated(colors, "GIF")
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        return [folder / name for name in contents]


def metric_rows(columns: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """Tabulate metrics by the title of a column: a header, and a row per metric, which ends in its meaning."""
    rows = [["metric", *columns, ""]]
    for name in dict.fromkeys(name for metrics in columns.values() for name in metrics):
        cells = [f"{metrics[name]:.3f}" if name in metrics else "-" for metrics in columns.values()]
        rows.append([name, *cells, MEANINGS[name]])
    return rows


def aligned(rows: Sequence[Sequence[str]], n_texts: int = 0) -> str:
    """Format a table for a terminal; the last ``n_texts`` columns are aligned at the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">"] * (len(widths) - n_texts) + ["<"] * n_texts
    lines = ("  ".join(f"{text:{side}{width}}" for text, side, width in zip(row, sides, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def make_page(shows: Sequence[SkillShow], title: str = "", command: str = "") -> str:
    """Make a page of models side by side, with all images in it, or without a title a part of a page for a notebook."""
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"), autoescape=True)
    versions = installed_versions()
    return template.render(shows=shows, title=title, command=command, versions=versions, metric_rows=metric_rows)


def _animated(images: Sequence[Image.Image], kind: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    duration = round(1000 / FPS)
    images[0].save(buffer, kind, save_all=True, append_images=images[1:], duration=duration, loop=0, **options)
    return buffer.getvalue()
