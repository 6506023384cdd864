"""The code blocks of Markdown pages."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^>]+) -->\n+)?(?P<fence>```+)(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=fence)$", re.M | re.S
)


class Block(NamedTuple):
    """
    A code block.

    :param page: path of the page, relative to the repository
    :param line: its first line in the page, counted from 1
    :param language: what stands after the fence
    :param code: its text
    :param reason: why it is not run, ``None`` if it is
    """

    page: str
    line: int
    language: str
    code: str
    reason: str | None


def blocks_of(path: Path) -> list[Block]:
    """Find the blocks of a page."""
    text = path.read_text()
    page = path.relative_to(ROOT).as_posix()
    return [
        Block(page, text.count("\n", 0, found.start("code")) + 1, found["language"], found["code"], found["reason"])
        for found in BLOCK.finditer(text)
    ]


def commands_of(code: str) -> list[list[str]]:
    """Split a shell block into commands, without comments and environment variables."""
    commands = [shlex.split(line, comments=True) for line in code.replace("\\\n", " ").splitlines()]
    for words in commands:
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
    return [words for words in commands if words]
