"""Result of showing skills."""

import json
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from sb3_cesd.common.files import AnyPath, save_figure_whole, write_text_whole
from sb3_cesd.metrics.plots import skill_colors
from sb3_cesd.show import html
from sb3_cesd.show.labels import OTHER, TRAINED, meaning
from sb3_cesd.show.play import SkillRollout
from sb3_cesd.show.tables import cell, metrics_table, skill_rows, skill_table
from sb3_cesd.show.video import grid_frames, write_video

#: Images per second
FPS = 12.5
#: Explanation of the columns of metrics
COMPARED = (
    "Metrics of all skills, from rollouts with Gaussian action noise. Untrained: the same networks with new weights. "
    "Chance: skills that all do the same."
)
COMPARED_TASK = (
    "Metrics of the skill that learned the task, from episodes without noise on the actions. Untrained: the same network with "
    "new weights."
)


@dataclass
class SkillShow:
    """
    What skills do. Notebooks display it, and :meth:`save` writes it to files.

    :param title: the model and its environment
    :param labels: names of the skills
    :param rollouts: one episode of each skill, all from the same start
    :param figure: film strips and paths
    :param metrics: metrics of all skills of the model, by name
    :param baselines: the same metrics of ``"untrained"`` skills and by ``"chance"``, as far as they are known
    :param n_skills: number of skills that were measured
    :param kind: kind of the environment, see ``sb3_cesd.show.labels``
    :param filmed: whether images were recorded for a video, not just for film strips
    :param notes: remarks, such as why there are no images
    :param method: name of the method of the model
    """

    title: str
    labels: list[str]
    rollouts: list[SkillRollout]
    figure: Figure
    metrics: dict[str, float]
    baselines: dict[str, dict[str, float]]
    n_skills: int
    kind: str = OTHER
    filmed: bool = True
    notes: list[str] = field(default_factory=list)
    method: str = ""

    @property
    def columns(self) -> dict[str, dict[str, float]]:
        """Metrics of the skills and of the baselines."""
        return {TRAINED: self.metrics, **self.baselines}

    @property
    def compared(self) -> str:
        """Explanation of the columns of metrics."""
        return COMPARED_TASK if "mean_return" in self.metrics else COMPARED

    @property
    def colors(self) -> list[str]:
        """Colour of each skill in the figure."""
        return skill_colors(len(self.labels))

    @property
    def has_films(self) -> bool:
        """Whether there are images of every skill for a video."""
        return self.filmed and all(rollout.frames for rollout in self.rollouts)

    def __str__(self) -> str:
        parts = [skill_table(self.rollouts, self.labels)]
        if self.metrics:
            parts.append(metrics_table(self.columns, self.n_skills, self.kind))
        return "\n".join([*parts, *self.notes])

    # A notebook stores it beside the HTML
    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """
        Return the content of a page, including all images.

        :return: HTML
        """
        parts = [html.figure_image(self.figure, f"What each skill does: {self.title}")]
        parts += [f"<p>{escape(note)}</p>" for note in self.notes]
        if self.has_films:
            frames = [rollout.frames for rollout in self.rollouts]
            parts.append(html.films(frames, self._captions(), self.colors, FPS))
        parts.append("<h2>An episode of each skill</h2>")
        header, *rows = skill_rows(self.rollouts, self.labels)
        parts.append(html.table(header, rows, ()))
        if self.metrics:
            header = ["metric", *self.columns, "meaning"]
            cells = {name: [cell(column, name) for column in self.columns.values()] for name in self.metrics}
            rows = [[name, *values, meaning(name, self.n_skills, self.kind)] for name, values in cells.items()]
            parts += ["<h2>Metrics</h2>", f"<p>{escape(self.compared)}</p>", html.table(header, rows, (0, len(header) - 1))]
        return "\n".join(parts)

    def save(self, folder: AnyPath, video: str | None = "gif") -> list[Path]:
        """
        Write ``skills.png`` and ``metrics.json`` and, if there are images, a video of all skills side by side.

        :param folder: folder to write to, created if needed
        :param video: ``"gif"``, ``"mp4"``, or ``None`` for no video
        :return: the files
        :raises ValueError: if mp4 can't be written on this machine
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "skills.png", folder / "metrics.json"]
        save_figure_whole(self.figure, files[0], dpi=110)
        write_text_whole(files[1], json.dumps(self.columns, indent=2) + "\n")
        if video is not None and self.has_films:
            files.append(folder / f"skills.{video}")
            frames = [rollout.frames for rollout in self.rollouts]
            write_video(grid_frames(frames, [f"skill {label}" for label in self.labels]), files[-1], FPS)
        return files

    def _captions(self) -> list[str]:
        """Captions below the films of the skills."""
        return [
            f"skill {label}: return {rollout.episode_return:.1f}, {rollout.n_steps} steps"
            for label, rollout in zip(self.labels, self.rollouts, strict=True)
        ]
