"""A self-contained page about the skills of a model, or of several models side by side."""

import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path

from sb3_cesd.common.files import AnyPath, write_text_whole
from sb3_cesd.common.versions import installed_versions
from sb3_cesd.show import html
from sb3_cesd.show.comparison import mark_of
from sb3_cesd.show.curves import draw_curves, find_curves
from sb3_cesd.show.labels import meaning
from sb3_cesd.show.result import SkillShow
from sb3_cesd.show.tables import cell


def write_report(
    path: AnyPath, shows: Sequence[SkillShow], model_paths: Sequence[Path] = (), command: Sequence[str] = ()
) -> None:
    """
    Write a page that contains all images. It loads nothing and runs nothing.

    :param path: file to write, ``.html``
    :param shows: results of the models, which are shown side by side
    :param model_paths: files of the models, next to which there may be logs of their training
    :param command: words of the command that made the page
    """
    title = shows[0].title if len(shows) == 1 else f"Skills of {len(shows)} models"
    body = []
    if len(shows) > 1:
        body += ["<h2>Metrics</h2>", _comparison(shows)]
    curves = [_curves(model_path) for model_path in model_paths] or [""] * len(shows)
    sections = []
    for index, (shown, of_training) in enumerate(zip(shows, curves, strict=True)):
        name = f"<p><code>{escape(str(model_paths[index]))}</code></p>" if model_paths else ""
        heading = f"<h2>{escape(shown.title)}</h2>" if len(shows) > 1 else ""
        sections.append(f"<section>{heading}{name}{shown.html()}{of_training}</section>")
    body.append(f'<div class="models">{"".join(sections)}</div>')
    body.append(_origin(command))
    write_text_whole(path, html.document(title, "\n".join(body), mark_of(model_paths)))


def _comparison(shows: Sequence[SkillShow]) -> str:
    """
    Tabulate the metrics of models side by side.

    :param shows: results of the models
    :return: HTML
    """
    names = list(dict.fromkeys(name for shown in shows for name in shown.metrics))
    columns = {f"{index + 1}: {shown.title}": shown.metrics for index, shown in enumerate(shows)}
    rows = []
    for name in names:
        meanings = dict.fromkeys(meaning(name, shown.n_skills, shown.kind) for shown in shows if name in shown.metrics)
        rows.append([name, *(cell(metrics, name) for metrics in columns.values()), "; or ".join(meanings)])
    return html.table(["metric", *columns, "meaning"], rows, (0, len(columns) + 1))


def _curves(model_path: Path) -> str:
    """
    Draw the logs next to a model.

    :param model_path: file of the model
    :return: HTML; empty if there are no logs
    """
    curves = find_curves(model_path.resolve().parent)
    if not curves:
        return ""
    return f"<h2>Training</h2>{html.figure_image(draw_curves(curves), 'Training curves')}"


def _origin(command: Sequence[str]) -> str:
    """
    Describe how the page was made.

    :param command: words of the command
    :return: HTML
    """
    versions = ", ".join(f"{name} {version}" for name, version in installed_versions().items())
    made_by = f"<pre>{escape(shlex.join(command))}</pre>" if command else ""
    return f"<h2>How this page was made</h2>{made_by}<p>{escape(versions)}</p>"
