"""Every Python and shell block of README and documentation is run as it stands, in the order of its page, at small scale."""

import ast
import contextlib
import re
from pathlib import Path

import pytest
import yaml
from blocks import DOCS, ROOT, blocks_of, commands_of
from shrink import parse_arguments, run_module, shrink

from sb3_cesd import METHODS, preset

#: Written when the documentation is built
PAGES = sorted({*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"} - {*(DOCS / "_build").rglob("*")})
LANGUAGES = {"python", "sh", "yaml", "text", "bibtex"}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def run_python(block, namespace):
    exec(compile("\n" * (block.line - 1) + block.code, block.page, "exec"), namespace)


def run_command(words, monkeypatch):
    match words:
        case [*command, ">", target]:
            with open(target, "w") as file, contextlib.redirect_stdout(file):
                run_command(command, monkeypatch)
        case ["python", "-m", module, *arguments]:
            run_module(module, arguments, monkeypatch)
        case ["python", script, *arguments] if (ROOT / script).is_file():
            parse_arguments(ROOT / script, arguments, monkeypatch)
        case ["make", *targets]:
            makefile = (ROOT / "Makefile").read_text()
            assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets), words
        case _:
            pytest.fail(f"How to run {' '.join(words)}? Mark the block: <!-- not run: reason -->")


def run_page(blocks, monkeypatch):
    namespace = {"__name__": "__main__"}
    for block in blocks:
        if block.reason is not None:
            continue
        if block.language == "python":
            run_python(block, namespace)
        elif block.language == "sh":
            for words in commands_of(block.code):
                run_command(words, monkeypatch)
        elif block.language == "yaml":
            assert yaml.safe_load(block.code)
            if file := re.match(r"# (\S+\.yml)\n", block.code):  # which the next command reads
                Path(file[1]).write_text(block.code)


@pytest.fixture
def small_scale(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    shrink(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("path", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_blocks_run(path, small_scale, monkeypatch):
    blocks = blocks_of(path)
    if "# of the quick start" in path.read_text():
        blocks = [blocks_of(DOCS / "quickstart.md")[0], *blocks]
    run_page(blocks, monkeypatch)


@pytest.mark.slow
def test_generated_blocks_of_a_method_run(small_scale, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    from method_pages import page

    path = tmp_path / "cesd.md"
    path.write_text(page("cesd", METHODS["cesd"]))
    monkeypatch.setattr("blocks.ROOT", tmp_path)
    blocks = blocks_of(path)
    assert {"python", "sh", "yaml"} <= {block.language for block in blocks}
    run_page(blocks, monkeypatch)


def test_every_method_has_a_page(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    from method_pages import FOLDER, page

    for key, method in METHODS.items():
        text = page(key, method)
        assert text.count(f"# {method.__name__}\n") == 1 and f"from sb3_cesd import {method.__name__}, preset" in text
        # The example is of a size that one can wait for
        assert preset("laptop", "MazeSquareA-v0", key).n_timesteps <= 36_000
        assert f"--algo {key} " in text and f"autoclass:: {method.__module__}.{method.__name__}\n" in text
        for block in re.findall(r"```python\n(.*?)```", text, re.S):
            ast.parse(block)
        assert f"# {method.__name__}\n" in (FOLDER / f"{key}.md").read_text(), "run make docs, which begins the page"
    # None of a method that is gone
    assert {path.stem for path in FOLDER.glob("*.md")} == {"index", *METHODS}


def test_few_blocks_are_left_out_and_all_say_what_they_are():
    blocks = [block for page in PAGES for block in blocks_of(page)]
    named = [block for block in blocks if not block.language.startswith("{")]
    assert not [block[:3] for block in named if block.language not in LANGUAGES]
    code = [block for block in named if block.language in ("python", "sh")]
    assert sum(block.reason is not None for block in code) <= len(code) / 8
