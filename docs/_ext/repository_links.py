"""Lead links to files of the repository to where it is hosted; on GitHub itself they work as they stand."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: ``](../`` up to a file that is not one of the pages; pictures are copied by Sphinx
LINK = re.compile(r"(?<!!)(\[[^\]\[]*\])\(((?:\.\./)+)([^)\s]+)\)")
#: A page that is a file at the root of the repository
INCLUDE = re.compile(r"```\{include\} \.\./(\w+\.md)\n```\n")


def repository_url(root: Path) -> str:
    """Tell where the repository is hosted, from what Read the Docs and GitHub say in a build."""
    if clone_url := os.environ.get("READTHEDOCS_GIT_CLONE_URL"):
        return f"{clone_url.removesuffix('.git')}/blob/{os.environ['READTHEDOCS_GIT_COMMIT_HASH']}"
    if repository := os.environ.get("GITHUB_REPOSITORY"):
        return f"{os.environ['GITHUB_SERVER_URL']}/{repository}/blob/{os.environ['GITHUB_SHA']}"
    return root.as_uri()


def include(root: Path, name: str) -> str:
    """Read a file at the root of the repository, as a page."""
    text = re.sub(r"\]\((?!https:|#)", "](../", (root / name).read_text())
    return text.replace("](../docs/", "](")


def rewrite(app: "Sphinx", page: str, source: list[str]) -> None:
    """Rewrite the links of a page that leave the documentation."""
    depth, root = page.count("/"), Path(app.srcdir).parent

    def replace(match: re.Match[str]) -> str:
        text, up, path = match.groups()
        if up.count("../") <= depth:
            return match[0]
        if not (root / path.partition("#")[0]).exists():
            raise FileNotFoundError(f"{page}.md links to {path}, which is not in the repository.")
        # As HTML: Markdown does not take the URLs of files
        return f'<a class="reference external" href="{repository_url(root)}/{path}">{text[1:-1]}</a>'

    source[0] = INCLUDE.sub(lambda match: include(root, match[1]), source[0])
    source[0] = LINK.sub(replace, source[0])


def setup(app: "Sphinx") -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True}
