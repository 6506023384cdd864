"""Links of the pages that GitHub and PyPI show; those within the documentation are checked when it is built."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from blocks import DOCS, ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
SHOWN = [*ROOT.glob("*.md"), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "benchmarks").rglob("*.md"))]
SHOWN = [page for page in SHOWN if "_build" not in page.parts]


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors_of(text):
    """The anchors that GitHub gives headings, and those that MyST names."""
    headings = re.findall(r"^#+ (.*)$", without_code(text), re.M)
    slugs = {re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "]", heading)).lower().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(page):
    for link in LINK.findall(without_code(page.read_text())):
        path, _, anchor = link.partition("#")
        if path.startswith(("https:", "../../actions/", "<")):
            continue
        target = (page.parent / path).resolve() if path else page
        name = os.path.relpath(target, ROOT)
        assert target.exists(), f"{link}: there is no {name}"
        assert not anchor or anchor in anchors_of(target.read_text()), f"{link}: no such heading"


def long_description(**environment):
    """What PyPI would show, and the URLs beside it."""
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("SB3_CESD_")}
    code = "import setuptools; setuptools.setup = lambda **kwargs: print(kwargs['long_description'], kwargs['project_urls'])"
    result = subprocess.run(
        [sys.executable, "-c", f"{code}; exec(open('setup.py').read(), {{'__file__': 'setup.py', '__name__': '__main__'}})"],
        cwd=ROOT,
        env={**hidden, **environment},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_links_on_pypi_lead_to_the_repository():
    shown = long_description(SB3_CESD_REPOSITORY="https://host.example/owner/name", SB3_CESD_TAG="v9.8.7")
    links = LINK.findall(without_code(shown))
    assert len(links) > 30 and all(link.startswith(("https:", "#")) for link in links)
    assert "https://host.example/owner/name/blob/v9.8.7/docs/quickstart.md" in links
    assert "https://host.example/owner/name/raw/v9.8.7/docs/_static/maze.webp" in links
    assert "https://host.example/owner/name/actions/workflows/ci.yml" in links
    assert "'Issues': 'https://host.example/owner/name/issues'" in shown


def test_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150 and text.count("docs/_static/") == 1
    for picture in (DOCS / "_static").iterdir():
        assert picture.stat().st_size < 1.5e6


@pytest.mark.parametrize("hosted", [False, True])
def test_pages_link_to_the_files_of_their_commit(hosted, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    from repository_links import rewrite

    for name in os.environ:
        if name.startswith(("GITHUB_", "READTHEDOCS_")):
            monkeypatch.delenv(name)
    if hosted:
        monkeypatch.setenv("READTHEDOCS_GIT_CLONE_URL", "https://host.example/o/n.git")
        monkeypatch.setenv("READTHEDOCS_GIT_COMMIT_HASH", "abc")
    base = "https://host.example/o/n/blob/abc" if hosted else ROOT.as_uri()
    app = SimpleNamespace(srcdir=DOCS)
    text = "[a](../LICENSE) [b](cesd.md) [c](../../sb3_cesd/cesd/cesd.py) ![d](../../benchmarks/results/maze/ranking.png)"
    source = [text]
    rewrite(app, "methods/page", source)
    file = f'<a class="reference external" href="{base}/sb3_cesd/cesd/cesd.py">c</a>'
    assert source == [text.replace("[c](../../sb3_cesd/cesd/cesd.py)", file)]
    source = ["```{include} ../CONTRIBUTING.md\n```\n"]
    rewrite(app, "contributing", source)
    assert f'href="{base}/LICENSE"' in source[0] and "](own_reward.md)" in source[0]
    with pytest.raises(FileNotFoundError, match="not in the repository"):
        rewrite(app, "page", ["[x](../nowhere.md)"])


def test_workflows_test_the_versions_that_are_promised():
    ci, setup = (ROOT / ".github/workflows/ci.yml").read_text(), (ROOT / "setup.py").read_text()
    promised = re.findall(r"Python :: (3\.\d+)", setup)
    assert yaml.safe_load(ci)["jobs"]["tests"]["strategy"]["matrix"]["python-version"] == promised
    publish = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text())
    assert publish["jobs"]["ci"]["uses"] == "./.github/workflows/ci.yml"
    assert publish["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    targets = set(re.findall(r"run: make (\w+)", ci))
    known = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    assert targets == {"lint", "type", "docs", "test"} <= known
