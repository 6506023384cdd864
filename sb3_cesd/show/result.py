"""Result of showing skills."""

import base64
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Template
from matplotlib.figure import Figure
from PIL import Image

from sb3_cesd.common.files import installed_versions
from sb3_cesd.show.figures import grid_frames
from sb3_cesd.show.play import SkillRollout

#: Images per second
FPS = 12.5
#: Quality of animated images, from 0 to 100
QUALITY = 60
#: What metrics mean; N stands for a number in the name
MEANINGS = {
    "knn_accuracy": "share of states whose observation identifies the skill",
    "knn_accuracy_standardized": "the same, each entry divided by its standard deviation",
    "knn_accuracy_places": "share of states whose position identifies the skill",
    "policy_coverage": "share of a maze, or number of bins of 1 m (arm: 0.1 m), that these rollouts visit",
    "policy_coverage_N": "number of bins of 1 m on N trajectories without noise",
    "goal_hit_N": "share of the goals that were within N m at some step",
    "goal_end_N": "share of the goals that were within N m at the end",
    "goal_stay_N": "share of the steps within N m of the goal",
    "goal_distance": "to the goal at the end, mean over goals [m]",
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
    def has_films(self) -> bool:
        """Whether there are images of every skill for a video."""
        return self.filmed and all(rollout.frames for rollout in self.rollouts)

    def skill_rows(self) -> list[list[str]]:
        """Tabulate the episodes: return, number of steps, and for a robot how far it moved and its mean height."""
        paths = [rollout.positions for rollout in self.rollouts if rollout.positions is not None]
        has_height = any(path[:, 2].any() for path in paths)
        unit = " [m]" if has_height else ""
        moved = [f"moved x{unit}", f"moved y{unit}"] if paths else []
        rows = [["skill", "return", "steps", *moved, *(["mean z [m]"] if has_height else [])]]
        for rollout in self.rollouts:
            row = [rollout.label, f"{rollout.episode_return:.1f}", f"{rollout.n_steps}"]
            if rollout.positions is not None:
                row += [f"{value:.2f}" for value in (rollout.positions[-1] - rollout.positions[0])[:2]]
                row += [f"{rollout.positions[:, 2].mean():.2f}"] if has_height else []
            rows.append(row)
        return rows

    def __str__(self) -> str:
        tables = [aligned(self.skill_rows()), *([aligned(metric_rows(self.columns), n_texts=1)] if self.metrics else [])]
        return "\n".join([*tables, *self.notes])

    # A notebook stores it beside the HTML
    __repr__ = __str__

    def _repr_html_(self) -> str:
        return make_page([self])

    def save(self, folder: str | Path, video: str | None = "gif") -> list[Path]:
        """
        Write ``skills.png``, ``metrics.json`` and, if there are images, a video of all skills side by side.

        :param folder: folder to write to, created if needed
        :param video: ``"gif"``, ``"mp4"`` (which needs moviepy), or ``None`` for no video
        :return: the files
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "skills.png", folder / "metrics.json"]
        self.figure.savefig(files[0], dpi=110)
        files[1].write_text(json.dumps(self.columns, indent=2) + "\n", encoding="utf-8")
        if video is not None and self.has_films:
            files.append(folder / f"skills.{video}")
            images = grid_frames(self.rollouts)
            if video == "gif":
                files[-1].write_bytes(_animated([Image.fromarray(image).quantize(128) for image in images], "GIF"))
            else:
                from moviepy.video.io.ImageSequenceClip import ImageSequenceClip

                ImageSequenceClip(images, fps=FPS).write_videofile(str(files[-1]), logger=None)
        return files


def metric_rows(columns: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """Tabulate metrics by the title of a column: a header, and a row per metric, which ends in its meaning."""
    rows = [["metric", *columns, "meaning"]]
    for name in dict.fromkeys(name for metrics in columns.values() for name in metrics):
        cells = [f"{metrics[name]:.3f}" if name in metrics else "-" for metrics in columns.values()]
        prefix, _, number = name.rpartition("_")
        meaning = MEANINGS.get(name) or re.sub(r"\bN\b", number, MEANINGS.get(f"{prefix}_N", ""))
        rows.append([name, *cells, meaning])
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
    compared = metric_rows({f"{index}: {shown.title}": shown.metrics for index, shown in enumerate(shows, start=1)})
    images = []
    for shown in shows:
        buffer, film = io.BytesIO(), b""
        shown.figure.savefig(buffer, format="png", dpi=100)
        if shown.has_films:
            film = _animated([Image.fromarray(image) for image in grid_frames(shown.rollouts)], "WEBP", quality=QUALITY)
        images.append([base64.b64encode(each).decode() for each in (buffer.getvalue(), film)])
    settings = {"title": title, "command": command, "versions": installed_versions(), "metric_rows": metric_rows}
    return template.render(shows=shows, compared=compared, images=images, **settings)


def _animated(images: Sequence[Image.Image], kind: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    duration = round(1000 / FPS)
    images[0].save(buffer, kind, save_all=True, append_images=images[1:], duration=duration, loop=0, **options)
    return buffer.getvalue()
