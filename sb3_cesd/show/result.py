"""Result of showing skills."""

import base64
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jinja2 import Template
from matplotlib.figure import Figure
from PIL import Image

from sb3_cesd.common.files import installed_versions
from sb3_cesd.show.figures import grid_frames
from sb3_cesd.show.labels import aligned, metric_rows, skill_rows
from sb3_cesd.show.play import SkillRollout

#: Images per second
FPS = 12.5
#: Quality of animated images, from 0 to 100
QUALITY = 60
#: Explanations of the columns of metrics
COMPARED = (
    "Metrics of all skills, from rollouts with Gaussian action noise. Untrained: the same networks with new weights. "
    "Chance: skills that all do the same."
)
COMPARED_TASK = (
    "Metrics of the skill that learned the task, from episodes without noise on the actions. Untrained: the same network with "
    "new weights."
)


@dataclass(repr=False)
class SkillShow:
    """
    What skills do. Notebooks display it, and :meth:`save` writes it to files.

    :param title: the model and its environment
    :param rollouts: one episode of each skill, all from the same start
    :param figure: film strips and paths
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
    def compared(self) -> str:
        """Explanation of the columns of metrics."""
        return COMPARED_TASK if "mean_return" in self.metrics else COMPARED

    @property
    def has_films(self) -> bool:
        """Whether there are images of every skill for a video."""
        return self.filmed and all(rollout.frames for rollout in self.rollouts)

    def skill_rows(self) -> list[list[str]]:
        """Tabulate the episodes."""
        return skill_rows(self.rollouts)

    def metric_rows(self) -> list[list[str]]:
        """Tabulate the metrics."""
        return metric_rows(self.columns)

    def __str__(self) -> str:
        tables = [aligned(self.skill_rows()), *([aligned(self.metric_rows(), n_texts=1)] if self.metrics else [])]
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


def make_page(shows: Sequence[SkillShow], title: str = "", command: str = "") -> str:
    """
    Make a page of what skills do, with all images in it. It loads nothing and runs nothing.

    :param shows: results of models, which are shown side by side
    :param title: its title; empty for a part of a page, such as a notebook
    :param command: the command that made it
    :return: HTML
    """
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"), autoescape=True)
    compared = metric_rows({f"{index}: {shown.title}": shown.metrics for index, shown in enumerate(shows, start=1)})
    images = [(_figure(shown.figure), _film(grid_frames(shown.rollouts)) if shown.has_films else "") for shown in shows]
    return template.render(
        shows=shows, title=title, command=command, compared=compared, images=images, versions=installed_versions()
    )


def _figure(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _film(images: Sequence[np.ndarray]) -> str:
    film = _animated([Image.fromarray(image) for image in images], "WEBP", quality=QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(film).decode()}"


def _animated(images: Sequence[Image.Image], kind: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    duration = round(1000 / FPS)
    images[0].save(buffer, kind, save_all=True, append_images=images[1:], duration=duration, loop=0, **options)
    return buffer.getvalue()
