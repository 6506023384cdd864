"""
Write tables and figures of skills pre-trained on robots: coverage, zero-shot goals, and goals by choosing among skills.

    python benchmarks/skills_report.py results/urlb --domains SkillAnt-v0 --output results/urlb/ant
    python benchmarks/skills_report.py results/seed_*                                     # folders of several machines

Reads ``pretraining.csv`` of ``urlb.py`` and ``hierarchical.csv`` of ``hierarchical.py``. Writes ``skills.md`` and, if rows
contain curves, ``coverage.png`` (coverage over steps of training) and ``goals.png`` (returns over steps of learning).
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from arguments import existing, make_folder, output_folder
from bands import draw_band
from identities import OF_OLD_PRETRAINING
from intervals import cell, ratio
from join import join_files
from made_with import made_with
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter
from runs import fill
from urlb_scores import check_have_runs, name_variants

from sb3_cesd.common.files import save_figure_whole, write_text_whole
from sb3_cesd.metrics.plots import skill_colors

#: Columns of policy coverage -> heading and decimals; the first one for robots with goals, the second one for others
POLICY_COVERAGE = {"policy_coverage_48": ("policy coverage", 0), "policy_coverage": ("policy coverage", 0)}
#: Other columns of coverage
COVERAGE = {"queue_coverage": ("queue coverage", 0), "total_coverage": ("total coverage", 0)}
SKILLS = {"knn_accuracy": ("k-NN accuracy", 2), "moving_share": ("moving share", 2), "skill_score": ("skill score", 0)}
GOALS = {
    **{f"goal_{kind}_{radius}": (f"{kind} {radius} m", 2) for radius in (3, 1) for kind in ("hit", "end", "stay")},
    "goal_distance": ("end distance [m]", 1),
}
#: Settings of runs of ``hierarchical.py`` that are part of a method's name where they vary
SETTINGS_OF_GOALS = ("scale", "pretrain_steps", "controller", "n_timesteps", "eval_freq", "n_eval_episodes")
#: Columns of curves over steps, as JSON
CURVES = ("total_coverage_curve", "queue_coverage_curve")
#: Method that others are compared with by default
REFERENCE = "diayn"
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


def table(rows: pd.DataFrame, columns: Mapping[str, tuple[str, int]]) -> list[str]:
    """
    Tabulate the measures of methods.

    :param rows: runs
    :param columns: column -> heading and decimals; columns without a value are left out
    :return: lines of Markdown, a line per method
    """
    known = known_columns(rows, columns)
    lines = [
        "| method | seeds | " + " | ".join(heading for heading, _ in known.values()) + " |",
        "|---" * (len(known) + 2) + "|",
    ]
    for method, of_method in rows.groupby("method", sort=False):
        cells = " | ".join(cell(of_method[name], decimals) for name, (_, decimals) in known.items())
        lines.append(f"| {method} | {len(of_method)} | {cells} |")
    return lines


def mean_of_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """
    Average the runs of a method with the same seed, in other numbers of environments: they must not count as seeds.

    :param rows: runs of a robot, after :func:`~urlb_scores.name_variants`
    :return: one row per method and seed, with the means of numbers and curves; the same rows if no seed is there twice
    """
    identity = ["method", "seed"]
    if not rows.duplicated(identity).any():
        return rows
    groups = rows.groupby(identity, sort=False)
    numbers = [name for name in rows.select_dtypes("number") if name not in identity]
    curves = {name: groups[name].agg(mean_curve) for name in CURVES if name in rows}
    return groups.first().assign(**groups[numbers].mean(), **curves).reset_index()


def mean_curve(texts: pd.Series) -> str | None:
    """
    Average curves.

    :param texts: curves as JSON, NaN for a run without
    :return: their mean up to the end of the shortest, as JSON; ``None`` if there is none
    """
    curves = [json.loads(text) for text in texts.dropna()]
    return json.dumps([sum(points) / len(points) for points in zip(*curves, strict=False)]) if curves else None


def known_columns(rows: pd.DataFrame, columns: Mapping[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """
    Leave out columns without a value.

    :param rows: runs
    :param columns: column -> heading and decimals
    :return: columns with a value
    """
    return {name: heading for name, heading in columns.items() if name in rows and rows[name].notna().any()}


def coverage_columns(rows: pd.DataFrame) -> dict[str, tuple[str, int]]:
    """
    Choose the columns of coverage.

    :param rows: runs of a robot
    :return: column -> heading and decimals
    """
    policy = next(iter(known_columns(rows, POLICY_COVERAGE)), None)
    return {**({} if policy is None else {policy: POLICY_COVERAGE[policy]}), **COVERAGE}


def ratios(rows: pd.DataFrame, reference: str) -> list[str]:
    """
    Tabulate ratios of the coverage of methods to that of a reference.

    :param rows: runs of a robot
    :param reference: the method that others are compared with
    :return: lines of Markdown; empty if it has no runs, or there are no others
    """
    of_reference = rows[rows.method == reference]
    columns = known_columns(of_reference, coverage_columns(rows))
    others = [method for method in rows.method.unique() if method != reference]
    if not columns or not others:
        return []
    headings = " | ".join(heading for heading, _ in columns.values())
    lines = [f"Times the coverage of {reference} (ratio of geometric means, Welch's 95 % interval of the logarithms):", ""]
    lines += [f"| method | {headings} |", "|---" * (len(columns) + 1) + "|"]
    for method in others:
        ours = rows[rows.method == method]
        values = [(ours[name].dropna(), of_reference[name].dropna()) for name in columns]
        cells = [ratio(*both).text() if len(both[0]) else "-" for both in values]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return [*lines, ""]


def draw_over_steps(
    panels: Mapping[str, pd.DataFrame], steps: str, values: Sequence[str], label: Callable[[str], str]
) -> Figure:
    """
    Draw curves of methods over environment steps.

    :param panels: title -> runs, each with a row of panels
    :param steps: column of the steps, as JSON
    :param values: columns of the curves, as JSON, each with a column of panels
    :param label: returns the label of the y axis for a column
    :return: mean and 95 % t-interval over seeds
    """
    figure = Figure(figsize=(4.2 * len(values), 3.2 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    methods = list(dict.fromkeys(method for rows in panels.values() for method in rows.method))
    colors = dict(zip(methods, skill_colors(len(methods)), strict=True))
    lines: dict[str, Line2D] = {}
    for row_of_axes, (title, rows) in zip(
        figure.subplots(len(panels), len(values), squeeze=False), panels.items(), strict=True
    ):
        for axes, column in zip(row_of_axes, values, strict=True):
            for method, of_method in rows.groupby("method", sort=False):
                curves = [json.loads(text) for text in of_method[column]]
                lines[str(method)] = draw_band(axes, json.loads(of_method[steps].iloc[0]), curves, colors[str(method)])
            axes.set(title=title, xlabel="environment step", ylim=(0, None))
            axes.set_ylabel(label(column))
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def report_pretraining(rows: pd.DataFrame, reference: str, output: Path) -> list[str]:
    """
    Report coverage and goals without learning.

    :param rows: runs of ``pretraining.csv``
    :param reference: the method that coverage is compared with
    :param output: folder of the figure
    :return: lines of Markdown
    """
    lines, curves = [EXPLANATION, ""], {}
    if "goal_distance" in rows:
        lines += [GOAL_EXPLANATION, ""]
    for domain, of_domain in rows.groupby("domain", sort=False):
        of_domain = name_variants(of_domain)
        steps = " or ".join(f"{number:,}" for number in sorted(of_domain.pretrain_steps.unique()))
        envs = sorted(fill(of_domain, OF_OLD_PRETRAINING).n_envs.astype(int).unique()) if "n_envs" in of_domain else [1]
        in_envs = "" if len(envs) == 1 else f", in {' or '.join(map(str, envs))} environments (pooled)"
        of_domain = mean_of_seeds(of_domain)
        lines += [f"## {domain}", "", f"{steps} steps of pre-training{in_envs}.", ""]
        lines += [*table(of_domain, {**coverage_columns(of_domain), **SKILLS}), "", *ratios(of_domain, reference)]
        if "goal_distance" in of_domain and of_domain.goal_distance.notna().any():
            lines += [*table(of_domain, GOALS), ""]
        if "coverage_steps" in of_domain and of_domain.coverage_steps.notna().any():
            curves[str(domain)] = of_domain[of_domain.coverage_steps.notna()]
    if curves:
        figure = draw_over_steps(
            curves,
            "coverage_steps",
            CURVES,
            lambda column: column.removesuffix("_curve").replace("_", " "),
        )
        save_figure_whole(figure, output / "coverage.png", dpi=110)
    hours = rows.seconds.sum() / 3600
    return [*lines, f"{hours:.1f} hours of pre-training in all: {made_with(rows)}.", ""]


def report_goals(rows: pd.DataFrame, output: Path) -> list[str]:
    """
    Report goals that an algorithm reaches by choosing among skills.

    :param rows: runs of ``hierarchical.csv``
    :param output: folder of the figure
    :return: lines of Markdown
    """
    lines, curves = ["## Goals by choosing among skills", ""], {}
    lines += [
        "Steps within the radius of a goal, of 200 an episode, after learning to choose; each skill acts for 25 steps.",
        "",
    ]
    for task, of_task in rows.groupby("task", sort=False):
        of_task = name_variants(of_task, SETTINGS_OF_GOALS)
        steps = " or ".join(f"{number:,}" for number in sorted(of_task.n_timesteps.unique()))
        lines += [f"### {task}", "", f"{steps} steps of learning.", "", *table(of_task, {"final_return": ("return", 1)}), ""]
        curves[str(task)] = of_task
    figure = draw_over_steps(curves, "steps", ["returns"], lambda _: "steps at the goal, of 200")
    save_figure_whole(figure, output / "goals.png", dpi=110)
    hours = rows.seconds.sum() / 3600
    return [*lines, f"{hours:.1f} hours of learning in all: {made_with(rows)}.", ""]


def report(
    folders: Sequence[Path],
    output: Path,
    domains: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    reference: str = REFERENCE,
) -> str:
    """
    Write the report and its figures.

    :param folders: folders with ``pretraining.csv`` or ``hierarchical.csv``
    :param output: folder to write to
    :param domains: robots to report; ``None`` for all
    :param methods: methods to report, in this order; ``None`` for all
    :param reference: the method that coverage is compared with
    :return: the report, in Markdown
    :raises ValueError: if there is nothing to report, or a robot or method has no runs
    """
    tables = {name: join_files(folders, name) for name in ("pretraining.csv", "hierarchical.csv")}
    if all(rows.empty for rows in tables.values()):
        raise ValueError(f"No file has rows in {', '.join(map(str, folders))}: pass folders with {' or '.join(tables)}.")
    named = [*(methods or []), *([] if reference == REFERENCE else [reference])]
    for column, chosen in (("domain", domains or []), ("method", named)):
        check_have_runs(chosen, [value for rows in tables.values() if len(rows) for value in rows[column]])
    for name, rows in tables.items():
        for column, wanted in (("domain", domains), ("method", methods)):
            if wanted is not None and len(rows):
                rows = rows[rows[column].isin(wanted)].sort_values(
                    column, key=lambda values: values.map(wanted.index), kind="stable"
                )
        tables[name] = rows
    if all(rows.empty for rows in tables.values()):
        raise ValueError("There are no runs of these methods on these robots: pass other --domains or --methods.")
    output.mkdir(parents=True, exist_ok=True)
    lines = [] if tables["pretraining.csv"].empty else report_pretraining(tables["pretraining.csv"], reference, output)
    lines += [] if tables["hierarchical.csv"].empty else report_goals(tables["hierarchical.csv"], output)
    text = "\n".join([*lines, "Mean and 95 % t-interval over seeds."]) + "\n"
    write_text_whole(output / "skills.md", text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="+", type=existing, help="results of urlb.py and hierarchical.py (several are joined)"
    )
    parser.add_argument("--domains", nargs="+", help="robots to report (default: all)")
    parser.add_argument("--methods", nargs="+", help="methods to report, in this order (default: all)")
    parser.add_argument("--reference", default=REFERENCE, help="method with which coverage is compared")
    parser.add_argument("--output", type=output_folder, default=Path("report"), help="folder of the report")
    args = parser.parse_args()
    make_folder(parser, args.output)
    try:
        print(report(args.folders, args.output, args.domains, args.methods, args.reference))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
