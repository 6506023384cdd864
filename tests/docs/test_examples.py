"""Every notebook of the examples is run as it stands, at small scale."""

import ast
import json
import re

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import pytest
from blocks import ROOT
from shrink import N_STEPS, shrink

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
#: The variables at the top of a notebook that say how long it learns
STEPS = re.compile(r"^(N_(?:\w+_)?STEPS) = [\d_]+", re.M)


def code_cells(path):
    notebook = json.loads(path.read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def display(value):
    """Do what a notebook does with the last value of a cell."""
    to_html = getattr(value, "_repr_html_", lambda: repr(value))
    return to_html() if value is not None else ""


def run_cells(cells, name):
    """Run the cells of a notebook in one namespace; return what they display."""
    namespace, displayed = {"__name__": "__main__"}, []
    for number, code in enumerate(cells, start=1):
        place = f"{name}, code cell {number}"
        tree = ast.parse(code, place)
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, place, "exec"), namespace)
        if last is not None:
            displayed.append(display(eval(compile(last, place, "eval"), namespace)))
    return displayed


@pytest.fixture
def small_scale(tmp_path, monkeypatch):
    """Few steps, small networks, short episodes, few rollouts and images."""
    monkeypatch.chdir(tmp_path)
    shrink(monkeypatch)
    for name in ("N_STEPS", "N_MAZE_STEPS"):
        monkeypatch.setattr(f"sb3_cesd.show.skills.{name}", 10)
    for name in ("N_MAZE_ROLLOUTS", "N_ROLLOUTS", "N_VIDEO_FRAMES"):
        monkeypatch.setattr(f"sb3_cesd.show.skills.{name}", 2)
    for env_id in ("Walker-v0", "WalkerRun-v0"):
        monkeypatch.setattr(gym.registry[env_id], "max_episode_steps", 30)
    backend = plt.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, small_scale):
    first, *others = code_cells(path)
    small, n_replaced = STEPS.subn(rf"\1 = {N_STEPS}", first)
    assert n_replaced > 0, "The first code cell says how long the notebook learns"
    displayed = run_cells([small, *others], path.name)
    axes = [axes for number in plt.get_fignums() for axes in plt.figure(number).axes]
    assert axes or any("<img" in shown for shown in displayed), "It shows a picture"
    assert all(np.isfinite(each.dataLim.get_points()).all() for each in axes), "with something in it"


def test_notebooks_are_numbered_and_documented():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{number}_" for number in range(1, len(NOTEBOOKS) + 1)] != []
    page = (ROOT / "docs" / "examples.md").read_text()
    assert all(f"](../examples/{path.name})" in page for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_small_and_its_links_lead_somewhere(path):
    assert path.stat().st_size < 5e5
    notebook = json.loads(path.read_text())
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    text = "".join(line for cell in notebook["cells"] if cell["cell_type"] == "markdown" for line in [*cell["source"], "\n"])
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    assert links and all((path.parent / link).exists() for link in links if not link.startswith("https:"))
