"""
Draw the figures and print the tables of the CeSD paper from our runs, beside the published values where there are any.

    python benchmarks/paper.py --figure alpha --output figures                      # runs what is missing, at laptop scale
    python benchmarks/paper.py --table lsd_csd_metra --output figures --dry-run     # tells what that would cost
    python benchmarks/paper.py --figure urlb --output figures --report-only         # of the rows that there are

Rows that ship count as done and are copied to the output folder, which gets the others, models and rollouts, too.
"""

import argparse
import json
import shlex
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from estimates import AGGREGATES, Estimate, estimate, head, line
from join import NAMES, join
from matplotlib.figure import Figure
from maze_report import draw_ranking, draw_skills, name_of, table, with_mine
from report import draw_aggregates
from runs import positive, read_rows, save_figure_whole, write_rows, write_text_whole
from scores import mean_and_spread, normalise, published, read_runs, scores_of
from urlb_methods import DOMAINS

from sb3_cesd.show.figures import make_panels, skill_colors

RESULTS = Path(__file__).parent / "results"
#: In mazes with seeds on which nothing was chosen, on robots with the settings of the main table
MAZE = "maze --first-seed 200 --mazes"
URLB = "urlb --warm-up skills --skill best --seeds 5 --domains"
IN_MAZE = "--methods cesd released paper diayn dads cic"
LEGS = "Walker-v0 Quadruped-v0"
#: Figure or table -> commands of its runs
RUNS = {
    "maze": [f"{MAZE} square_a --seeds 1 {IN_MAZE}"],
    "tree": [f"{MAZE} tree --seeds 1 {IN_MAZE}"],
    "mine": [f"{MAZE} square_a --seeds 5 --mine {IN_MAZE}"],
    "alpha": [
        f"{MAZE} square_a --seeds 5 --methods 'start=0, alpha=0.1' 'start=0, alpha=1' 'start=0, alpha=2' 'start=0, alpha=10'"
    ],
    "entropy": [f"{MAZE} square_a --seeds 5 --methods cesd 'start=0, alpha=1' paper released"],
    "urlb": [f"{URLB} {LEGS} Jaco-v0 --methods scratch icm disagreement rnd apt protorl smm diayn aps cic becl cesd"],
    "ensemble": [
        f"{URLB} Quadruped-v0 --tasks QuadrupedStand-v0 QuadrupedWalk-v0 "
        "--methods ensemble_size=1 ensemble_size=2 ensemble_size=4 cesd"
    ],
    "lsd_csd_metra": [f"{URLB} {LEGS} --methods lsd csd metra cesd"],
    "moe": [
        f"urlb --domains {LEGS} --seeds 3 --tasks --methods cesd",
        "hierarchical --controller dqn --steps 50000 --eval-freq 10000 --n-eval-episodes 10 --tasks "
        + " ".join(task for domain in LEGS.split() for task in DOMAINS[domain])
        + " --methods cesd",
    ],
}
TABLES = ("urlb", "lsd_csd_metra", "moe")
GATES = ["CeSD+MoE, frozen", "CeSD+MoE, fine-tuned"]


def draw_entropies(rows: pd.DataFrame, methods: list[str]) -> tuple[Figure, str]:
    """Draw the entropy of each skill of the first seed, and the mean of all; tabulate how many skills end higher."""
    methods = [method for method in methods if (rows.method == method).any()]
    figure, all_axes = make_panels(len(methods), 3.0, 2.6, share=True)
    lines = head("", "seeds", "first", "last", "skills that end higher", "largest fall of a skill")
    for axes, method in zip(all_axes, methods, strict=True):
        of_method = rows[rows.method == method]
        curves = np.array([json.loads(text) for text in of_method.skill_entropies])  # (n_seeds, n_points, n_skills)
        steps = json.loads(of_method.curve_steps.iloc[0])
        for of_skill, color in zip(curves[0].T, skill_colors(curves.shape[2]), strict=True):
            axes.plot(steps, of_skill, color=color, linewidth=0.8)
        axes.plot(steps, curves.mean(axis=(0, 2)), color="black", linewidth=2)
        axes.set(title=name_of(method), xlabel="environment step", ylabel="entropy of a skill [nats]")
        axes.label_outer()
        first, last = curves[:, :3].mean(axis=1), curves[:, -3:].mean(axis=1)
        falls = (np.maximum.accumulate(curves, axis=1) - curves).max(axis=1)
        means = (f"{values.mean():.2f}" for values in (first, last, last > first, falls))
        lines.append(line(name_of(method), str(len(curves)), *means))
    return figure, "\n".join(lines)


def draw_scores(rows: pd.DataFrame, methods: list[str], tasks: list[str]) -> Figure:
    """Draw the aggregates of methods over tasks, and those of the published means as diamonds."""
    known = published()
    known = known[known.task.isin(tasks)]
    estimates = {}
    for method in methods:
        scores = scores_of(rows, method, tasks)
        for name, statistic in AGGREGATES.items():
            estimates[method, name] = estimate(statistic, scores) if len(scores) else Estimate(np.nan)
    figure = draw_aggregates(estimates, methods)
    figure.axes[0].set_yticklabels([name_of(method) for method in methods])
    for axes, statistic in zip(figure.axes, AGGREGATES.values(), strict=True):
        for row, method in enumerate(methods):
            theirs = known[known.method == name_of(method)]
            if len(theirs):
                axes.plot([statistic((theirs.return_mean / theirs.expert_return).to_numpy()[None])], [row], "kD", markersize=5)
    return figure


def table_of_tasks(rows: pd.DataFrame, methods: list[str], tasks: list[str]) -> str:
    """Tabulate returns, published and ours."""
    known = published().set_index(["method", "task"])
    lines = head("published ± SE / ours ± SD", *map(name_of, methods))
    for task in tasks:
        cells = [task.removesuffix("-v0")]
        for method in methods:
            theirs, ours = known.loc[(name_of(method), task)], rows[(rows.method == method) & (rows.task == task)]
            cells.append(f"{theirs.return_mean} ± {theirs.return_spread} / {mean_and_spread(ours.final_return)}")
        lines.append(line(*cells))
    return "\n".join(lines)


def draw(name: str, is_figure: bool, output: Path) -> tuple[Figure | None, str]:
    """Draw a figure, or write a table, of the rows in the output folder."""
    words = shlex.split(RUNS[name][-1])
    methods = words[words.index("--methods") + 1 :]
    if words[0] == "maze":
        maze, folders = words[words.index("--mazes") + 1], (RESULTS / "maze", output / "maze")
        rows = pd.concat([join([folder / "runs.csv"]) for folder in folders], ignore_index=True)
        rows = rows[(rows.maze == maze) & rows.method.isin(methods)]
        if rows.empty:
            raise SystemExit(f"There are no runs of {name} yet: leave out --report-only.")
        if name == "entropy":
            return draw_entropies(rows[rows.skill_entropies.notna()], methods)
        if name == "mine":
            rows = with_mine(rows, pd.concat([join([folder / "mine.csv"]) for folder in folders])).dropna(subset="mi_mine")
            return draw_ranking(rows, methods, "particle_entropy", "mi_mine"), table(rows, methods)
        return draw_skills(output / "maze" / "rollouts", maze, methods, RESULTS / "paper" / "skills.npz"), table(rows, methods)
    tasks = [word for word in words if word in sum(DOMAINS.values(), ())]
    tasks = tasks or [task for word in words for task in DOMAINS.get(word, ())]
    rows = normalise(read_runs([(RESULTS if name == "moe" else output) / "urlb" / "runs.csv"]))
    if name == "moe":
        methods = [*GATES, "cesd"]
        rows = pd.concat([rows, read_rows(output / name / "hierarchical.csv").assign(method=GATES[0])])
    if is_figure:
        # As many seeds of each robot
        return draw_scores(rows[rows.seed < 5], methods, tasks), ""
    return None, table_of_tasks(rows, methods, tasks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--figure", choices=[name for name in RUNS if name not in TABLES[1:]])
    what.add_argument("--table", choices=TABLES)
    parser.add_argument("--output", type=Path, required=True, help="folder of the figure or table, of rows and models")
    parser.add_argument("--jobs", type=positive, default=1, help="number of parallel runs")
    parser.add_argument("--dry-run", action="store_true", help="only list the missing runs, and tell what they would cost")
    parser.add_argument("--report-only", action="store_true", help="run nothing")
    args = parser.parse_args()
    name = args.figure or args.table
    for script, *words in map(shlex.split, RUNS[name]):
        part = "moe" if name == "moe" else script  # the models of gates are not those of the main table
        folder, shipped = args.output / part, RESULTS / {"maze": "paper", "moe": "paper/moe"}.get(part, part)
        for file in NAMES:
            if len(rows := join([shipped / file, folder / file])):
                folder.mkdir(parents=True, exist_ok=True)
                write_rows(folder / file, rows)
        if not args.report_only:
            how = ["--output", str(folder), "--jobs", str(args.jobs), *["--dry-run"] * args.dry_run]
            import_module(script).main([*how, *words])
    if not args.dry_run:
        figure, text = draw(name, args.figure is not None, args.output)
        if figure is not None:
            save_figure_whole(figure, args.output / f"{name}.png")
        if text:
            write_text_whole(args.output / f"{name}.md", text + "\n")
            print(text)


if __name__ == "__main__":
    main()
