"""Tables and figures of skills pre-trained on robots: coverage, goals without learning, and goals by choosing among skills."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from estimates import cell, draw_band, head, line, ratio
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from runs import filled, made_with, save_figure_whole, write_text_whole
from scores import name_variants, select
from urlb_methods import OF_GOALS, OF_PRETRAINING

from sb3_cesd.show.figures import skill_colors

#: Column -> heading and decimals. Policy coverage is that of 48 paths for robots with goals
COVERAGE = {
    "policy_coverage_48": ("policy coverage", 0),
    "policy_coverage": ("policy coverage", 0),
    "queue_coverage": ("queue coverage", 0),
    "total_coverage": ("total coverage", 0),
}
SKILLS = {"knn_accuracy": ("k-NN accuracy", 2), "moving_share": ("moving share", 2), "skill_score": ("skill score", 0)}
GOALS = {
    **{f"goal_{kind}_{radius}": (f"{kind} {radius} m", 2) for radius in (3, 1) for kind in ("hit", "end", "stay")},
    "goal_distance": ("end distance [m]", 1),
}
#: Columns of curves over steps, as JSON
CURVES = ("total_coverage_curve", "queue_coverage_curve")
EXPLANATION = (
    "Coverage counts bins of 1 m (of the arm, .1 m of its hand): *policy* of the paths of the skills, *queue* of the last "
    "100,000 steps of training, *total* of all its steps. *k-NN accuracy*: how well observations identify the skill. *Moving "
    "share*: share of the skills that move. *Skill score*: what a study maximises, accuracy beyond chance times coverage of "
    "the observations."
)
GOAL_EXPLANATION = (
    "Goals without learning: share of the goals that a skill comes within 3 or 1 m of (*hit*) and is within at the last step "
    "(*end*), share of the steps within (*stay*), and the mean distance at the last step."
)
Columns = Mapping[str, tuple[str, int]]


def known_columns(rows: pd.DataFrame, columns: Columns) -> dict[str, tuple[str, int]]:
    """Leave out columns without a value, and the second column of policy coverage."""
    known = {name: heading for name, heading in columns.items() if name in rows and rows[name].notna().any()}
    if "policy_coverage_48" in known:
        known.pop("policy_coverage", None)
    return known


def table(rows: pd.DataFrame, columns: Columns) -> list[str]:
    """Tabulate the measures of methods, a line per method."""
    known = known_columns(rows, columns)
    lines = head("method", "seeds", *(heading for heading, _ in known.values()))
    for method, of_method in rows.groupby("method", sort=False):
        cells = (cell(of_method[name], decimals) for name, (_, decimals) in known.items())
        lines.append(line(str(method), str(len(of_method)), *cells))
    return lines


def ratios(rows: pd.DataFrame, reference: str) -> list[str]:
    """Tabulate ratios of the coverage of methods to that of a reference; empty if it has no runs, or there are no others."""
    of_reference = rows[rows.method == reference]
    columns = known_columns(of_reference, COVERAGE)
    others = [method for method in rows.method.unique() if method != reference]
    if not columns or not others:
        return []
    lines = [f"Times the coverage of {reference} (ratio of geometric means, Welch's 95 % interval of the logarithms):", ""]
    lines += head("method", *(heading for heading, _ in columns.values()))
    for method in others:
        ours = rows[rows.method == method]
        values = [(ours[name].dropna(), of_reference[name].dropna()) for name in columns]
        lines.append(line(method, *(ratio(*both).text() if len(both[0]) else "-" for both in values)))
    return [*lines, ""]


def mean_of_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Average the runs of a method with the same seed, in other numbers of environments: they must not count as seeds."""
    if not rows.duplicated(["method", "seed"]).any():
        return rows
    groups = rows.groupby(["method", "seed"], sort=False)
    numbers = [name for name in rows.select_dtypes("number") if name != "seed"]
    curves = {name: groups[name].agg(_mean_curve) for name in CURVES if name in rows}
    return groups.first().assign(**groups[numbers].mean(), **curves).reset_index()


def _mean_curve(texts: pd.Series) -> str | None:
    """Average curves, as JSON, up to the end of the shortest."""
    curves = [json.loads(text) for text in texts.dropna()]
    return json.dumps([sum(points) / len(points) for points in zip(*curves, strict=False)]) if curves else None


def draw_over_steps(panels: Mapping[str, pd.DataFrame], steps: str, values: Mapping[str, str]) -> Figure:
    """
    Draw curves of methods over environment steps, with t-intervals over seeds.

    :param panels: title -> runs, each with a row of panels
    :param steps: column of the steps, as JSON
    :param values: column of the curves, as JSON, each with a column of panels -> label
    :return: the figure
    """
    figure = Figure(figsize=(4.2 * len(values), 3.2 * len(panels)), layout="constrained")
    methods = list(dict.fromkeys(method for rows in panels.values() for method in rows.method))
    colors = dict(zip(methods, skill_colors(len(methods)), strict=True))
    lines = {}
    all_axes = figure.subplots(len(panels), len(values), squeeze=False)
    for row_of_axes, (title, rows) in zip(all_axes, panels.items(), strict=True):
        for axes, (column, label) in zip(row_of_axes, values.items(), strict=True):
            for method, of_method in rows.groupby("method", sort=False):
                curves = [json.loads(text) for text in of_method[column]]
                lines[method] = draw_band(axes, json.loads(of_method[steps].iloc[0]), curves, colors[str(method)])
            axes.set(title=title, xlabel="environment step", ylabel=label, ylim=(0, None))
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.legend(list(lines.values()), list(map(str, lines)), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def _of_pretraining(rows: pd.DataFrame, reference: str, output: Path) -> list[str]:
    """Report coverage and goals without learning."""
    lines, curves = [EXPLANATION, ""], {}
    if "goal_distance" in rows:
        lines += [GOAL_EXPLANATION, ""]
    for domain, of_domain in filled(rows, OF_PRETRAINING).groupby("domain", sort=False):
        of_domain = name_variants(of_domain, ["scale", "pretrain_steps"])
        steps = " or ".join(f"{number:,}" for number in sorted(of_domain.pretrain_steps.unique()))
        envs = sorted(of_domain.n_envs.unique())
        in_envs = "" if len(envs) == 1 else f", in {' or '.join(map(str, envs))} environments (pooled)"
        of_domain = mean_of_seeds(of_domain)
        lines += [f"## {domain}", "", f"{steps} steps of pre-training{in_envs}.", ""]
        lines += [*table(of_domain, {**COVERAGE, **SKILLS}), "", *ratios(of_domain, reference)]
        if known_columns(of_domain, GOALS):
            lines += [*table(of_domain, GOALS), ""]
        if "coverage_steps" in of_domain and of_domain.coverage_steps.notna().any():
            curves[str(domain)] = of_domain[of_domain.coverage_steps.notna()]
    if curves:
        labels = {column: column.removesuffix("_curve").replace("_", " ") for column in CURVES}
        save_figure_whole(draw_over_steps(curves, "coverage_steps", labels), output / "coverage.png")
    return [*lines, f"{rows.seconds.sum() / 3600:.1f} hours of pre-training in all: {made_with(rows)}.", ""]


def _of_goals(rows: pd.DataFrame, output: Path) -> list[str]:
    """Report goals that an algorithm reaches by choosing among skills."""
    told = "Steps within the radius of a goal, of 200 an episode, after learning to choose; each skill acts for 25 steps."
    lines, curves = ["## Goals by choosing among skills", "", told, ""], {}
    settings = [name for name in OF_GOALS if name not in ("method", "domain", "task", "seed")]
    for task, of_task in rows.groupby("task", sort=False):
        of_task = name_variants(of_task, settings)
        steps = " or ".join(f"{number:,}" for number in sorted(of_task.n_timesteps.unique()))
        lines += [f"### {task}", "", f"{steps} steps of learning.", "", *table(of_task, {"final_return": ("return", 1)}), ""]
        curves[str(task)] = of_task
    figure = draw_over_steps(curves, "steps", {"returns": "steps at the goal, of 200"})
    save_figure_whole(figure, output / "goals.png")
    return [*lines, f"{rows.seconds.sum() / 3600:.1f} hours of learning in all: {made_with(rows)}.", ""]


def report_skills(
    pretraining: pd.DataFrame,
    goals: pd.DataFrame,
    output: Path,
    domains: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    reference: str = "diayn",
) -> str:
    """
    Write ``skills.md`` and its figures.

    :param pretraining: rows of ``pretraining.csv``
    :param goals: rows of ``hierarchical.csv``
    :param output: folder to write to
    :param domains: robots to report; ``None`` for all
    :param methods: methods to report, in this order; ``None`` for all
    :param reference: the method that coverage is compared with
    :return: the report, in Markdown
    """
    output.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    for rows, write in (
        (pretraining, lambda rows: _of_pretraining(rows, reference, output)),
        (goals, lambda rows: _of_goals(rows, output)),
    ):
        for column, wanted in (("method", methods), ("domain", domains)):
            if wanted is not None and len(rows):
                rows = select(rows, column, wanted)
        lines += write(rows) if len(rows) else []
    text = "\n".join([*lines, "Mean and 95 % t-interval over seeds."]) + "\n"
    write_text_whole(output / "skills.md", text)
    return text
