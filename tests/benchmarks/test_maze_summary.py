"""The table and the figures of all methods in mazes, from rows made by hand."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


def of_method(method, maze, coverage, accuracy):
    rows = [
        {"total_coverage_coarse": x, "knn_accuracy": y, "seed": seed}
        for seed, (x, y) in enumerate(zip(coverage, accuracy, strict=True))
    ]
    return pd.DataFrame(rows).assign(method=method, maze=maze)


def hand_made():
    return pd.concat(
        [
            of_method("released", "tree", [0.9, 0.9], [0.5, 0.5]),
            of_method("metra", "tree", [0.3, 0.5], [0.6, 0.8]),
            of_method("metra", "square_a", [0.4, 0.4], [0.7, 0.7]),
            of_method("apt", "tree", [0.8, 0.8], [0.4, 0.4]),
            of_method("cesd", "tree", [0.2, 0.2], [0.9, 0.9]),
            of_method("cesd", "square_a", [0.5], [0.2]),
        ],
        ignore_index=True,
    )


def test_summary_has_all_methods_and_mazes():
    from maze_summary import in_order, summary

    rows = hand_made()
    methods = in_order(rows, ["released", "metra", "apt", "cesd"])
    assert methods == ["cesd", "apt", "metra", "released"], "CeSD, by coverage, and CeSD as released"
    lines = summary(rows, methods).splitlines()
    assert lines[0] == "| | square_a: coverage | square_a: k-NN accuracy | tree: coverage | tree: k-NN accuracy |"
    assert lines[2] == "| CeSD | **0.500** | 0.20 | 0.200 ± 0.000 | **0.90 ± 0.00** |"
    assert lines[3] == "| APT | - | - | 0.800 ± 0.000 | 0.40 ± 0.00 |"
    # 12.706 * 0.1 of two seeds that are 0.2 apart
    assert lines[4] == "| METRA | 0.400 ± 0.000 | **0.70 ± 0.00** | 0.400 ± 1.271 | 0.70 ± 1.27 |"
    assert lines[5] == "| CeSD, released setting | - | - | **0.900 ± 0.000** | 0.50 ± 0.00 |"
    assert lines[7].startswith("Means over 2 seeds (CeSD: 1, 2; APT: 0, 2; CeSD, released setting: 0, 2)")


def boxes_of(axes):
    axes.figure.draw_without_rendering()
    renderer = axes.figure.canvas.get_renderer()
    # Without the lines to the points
    return {text.get_text(): Text.get_window_extent(text, renderer) for text in axes.texts}


def test_ranking_labels_every_method_and_no_label_hides_another(tmp_path):
    from maze_methods import MAIN
    from maze_summary import draw_ranking, name_of

    rng = np.random.default_rng(0)
    centers = {method: rng.choice([[0.4, 0.7], [0.98, 0.6]]) + rng.normal(0, [0.02, 0.1]) for method in MAIN}
    rows = pd.concat([of_method(name, "tree", [x] * 2, [y, y + 0.02]) for name, (x, y) in centers.items()])
    figure = draw_ranking(rows, list(MAIN))
    figure.savefig(tmp_path / "ranking.png")
    (axes,) = figure.axes
    boxes = boxes_of(axes)
    assert set(boxes) == {name_of(method) for method in MAIN} and len(MAIN) >= 17
    labels = list(boxes.values())
    assert not any(box.overlaps(other) for index, box in enumerate(labels) for other in labels[:index])
    frame = axes.get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in labels)
    points = [container.lines[0].get_xydata()[0] for container in axes.containers]
    assert points == [pytest.approx((x, y + 0.01)) for x, y in centers.values()]
    for method, (x, y) in centers.items():
        place = axes.transData.transform((x, y + 0.01))
        box = boxes[name_of(method)]
        away = np.maximum(np.maximum(box.min - place, place - box.max), 0)
        assert 0 < np.linalg.norm(away) < 80, "beside its point, not on it"

    again = boxes_of(draw_ranking(rows.sample(frac=1, random_state=0), list(MAIN)[::-1]).axes[0])
    assert all(box.bounds == pytest.approx(boxes[name].bounds) for name, box in again.items()), "whatever the order of rows"


def test_report_tells_what_it_has_no_rollouts_of(tmp_path, monkeypatch, capsys):
    columns = {"n_timesteps": 1200, "n_updates": 40, "versions": '{"torch": "2", "processor": "A"}'}
    hand_made().assign(**columns).to_csv(tmp_path / "runs.csv", index=False)
    (tmp_path / "rollouts").mkdir()
    for seed in range(2):
        drawn, curve = np.zeros((10, 2, 5, 2)), np.linspace(0.1, 0.3 + seed / 10, 20)
        file = tmp_path / f"rollouts/metra_tree_{seed}_1200.npz"
        np.savez(file, drawn=drawn, many=drawn, steps=np.arange(20), coverage=curve)
    monkeypatch.setattr(sys, "argv", ["maze", "--report-only", "--steps", "1200", "--output", str(tmp_path)])
    __import__("maze").main()
    printed = capsys.readouterr().out
    assert "There are no rollouts of cesd, apt, released in tree: pictures and curves are without them." in printed
    assert "There are no rollouts of cesd, metra in square_a" in printed
    assert {file.name for file in tmp_path.glob("*.png")} == {"ranking.png", "skills_tree.png", "coverage.png"}
    assert "| CeSD | **0.500** |" in (tmp_path / "summary.md").read_text()
    assert "1200 steps and 40 updates a run, `python benchmarks/maze.py`, one thread of A, torch 2." in printed


def test_rows_of_another_benchmark_are_refused(tmp_path, monkeypatch, capsys):
    shutil.copy(RESULTS / "urlb/runs.csv", tmp_path)
    monkeypatch.setattr(sys, "argv", ["maze", "--report-only", "--output", str(tmp_path)])
    with pytest.raises(SystemExit):
        __import__("maze").main()
    assert "runs.csv is of another benchmark: pass a folder that maze.py wrote to." in capsys.readouterr().err


def test_curves_have_the_colours_of_the_ranking(tmp_path):
    from maze_report import draw_curves
    from maze_summary import draw_ranking, method_colors

    np.savez(tmp_path / "a.npz", steps=[1, 2], coverage=[0.1, 0.2])
    curves = draw_curves({"tree": {"metra": [tmp_path / "a.npz"]}})
    rows = hand_made()
    ranking = draw_ranking(rows[rows.maze == "tree"], ["cesd", "metra"])
    colors = [axes.lines[index].get_color() for axes, index in ((curves.axes[0], 0),)]
    assert colors == [ranking.axes[0].containers[1].lines[0].get_color()] == [method_colors()["metra"]]
    assert [text.get_text() for text in curves.legends[0].get_texts()] == ["METRA"]


def test_estimates_of_fewer_iterations_are_left_out(capsys):
    from maze_report import with_mine

    rows = hand_made().assign(n_timesteps=100)
    run = {"method": "metra", "maze": "tree", "n_timesteps": 100}
    estimates = pd.DataFrame(
        [
            {**run, "seed": 0, "n_iterations": 20, "mi_mine": 0.1},
            {**run, "seed": 0, "n_iterations": 40, "mi_mine": 0.2},
            {**run, "seed": 1, "n_iterations": 20, "mi_mine": 0.3},
            {**run, "seed": 0, "n_iterations": 80, "mi_mine": 0.4, "n_timesteps": 200},
        ]
    )
    joined = with_mine(rows, estimates)
    assert len(joined) == len(rows) and joined.mi_mine.dropna().tolist() == [0.2]
    assert joined[joined.mi_mine.notna()].seed.tolist() == [0] and "mi_mine_shuffled" not in joined
    with_shuffled = with_mine(rows, estimates.assign(mi_mine_shuffled=[0.01, 0.02, 0.03, 0.04]))
    assert with_shuffled.mi_mine_shuffled.dropna().tolist() == [0.02]
    assert "fewer than 40 iterations are left out" in capsys.readouterr().out
    assert with_mine(rows, pd.DataFrame()).columns.equals(rows.columns)
