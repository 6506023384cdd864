"""
The page of refusals: each argument with bad values and what is said of them, found by passing them.

    python tests/bad_input/refusals.py docs/refusals.md
"""

import contextlib
import io
import os
import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from cases import CASES  # noqa: E402
from command_lines import COMMANDS, empty_folder, run  # noqa: E402
from targets import ARGUMENTS, TARGETS  # noqa: E402

from sb3_cesd import METHODS  # noqa: E402
from sb3_cesd.common.rules import shown  # noqa: E402

#: Tried on every argument; the first refusals of a kind are listed
VALUES = ("x", -1, 0, 1.5, float("nan"), True, None, [1], {"x": 1})
TEXTS = ("x", "-1", "0", "")
#: What is called by another name than its key
TITLES = {
    "load, arguments of the constructor": "load(), arguments of the constructor",
    "from_pretrained, arguments of the constructor": "from_pretrained(), arguments of the constructor",
}
#: Refuses what the one beside it refuses
LIKE_OTHERS = {method.__name__: "CeSD" for method in METHODS.values() if method.__name__ != "CeSD"} | {"SkillDDPG": "CeSD"}
INTRODUCTION = """# What is refused

Arguments are checked before anything is made of them. Every message names the argument and ends in the remedy. This page lists
what is said of some bad values; it is made by passing them.

All methods refuse what `CeSD` refuses, and `from_pretrained` and `load` the same of the constructor's arguments.
"""


def message_of(call, name, value):
    """
    Provoke a refusal.

    :param call: what is called
    :param name: the argument
    :param value: its value
    :return: the message, without what differs from one machine or run to another; ``None`` if the value is taken
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(**{name: value})
    except (ValueError, TypeError, FileNotFoundError) as error:
        return _anywhere(str(error))
    return None


def refusals():
    """
    List refusals of functions and classes.

    :return: argument, value and message, by what is called
    """
    listed = {}
    for owner, argument, value, _ in CASES:
        listed.setdefault((owner, argument), []).append(value)
    found = {}
    for owner, (_, call) in TARGETS.items():
        rows = {}
        names = [name for known, name in ARGUMENTS if known == owner and not LIKE_OTHERS.get(owner)]
        names += [name for known, name in listed if known == owner and name not in names]
        if owner.endswith("of the constructor"):
            names = [name for known, name in listed if known == owner]
        for name in names:
            for value in (*listed.get((owner, name), ()), *VALUES):
                message = message_of(call, name, value)
                if message is not None:
                    # The same rule, of another value, is listed once
                    kind = name, message.replace(shown(value), "").replace(str(value), "")
                    rows.setdefault(kind, (name, shown(value), message))
        if rows:
            found[TITLES.get(owner, owner)] = list(rows.values())
    return found


def refusals_of_commands():
    """
    List refusals of command lines.

    :return: option, text and message, by the command
    """
    found = {}
    for name, command in COMMANDS.items():
        rows = {}
        for option in command.options:
            for text in TEXTS:
                said = run(command, option, text)
                if said not in ("begun", "over"):
                    message = _anywhere(said.rpartition("error: ")[2])
                    rows.setdefault((option, message.replace(repr(text), "")), (option, text, message))
        found[name if " " in name else f"python benchmarks/{name}"] = list(rows.values())
    return found


def all_refusals():
    """
    List refusals of whatever users call.

    :return: argument, value and message, by what is called
    """
    with empty_folder():
        return {**refusals(), **refusals_of_commands()}


def page(found):
    """
    Write the page.

    :param found: the refusals
    :return: the page, in Markdown
    """
    lines = [INTRODUCTION]
    for owner, rows in found.items():
        lines += [f"## `{owner}`", "", "| Argument | Value | Message |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {_code(value)} | {_text(message)} |" for name, value, message in rows]
        lines.append("")
    return "\n".join(lines)


def _anywhere(message):
    """Leave out what differs from one machine or run to another."""
    message = re.sub(r" object at 0x[0-9a-f]+", "", message).replace(f"{HERE.parent}{os.sep}", "")
    return re.sub(r"\s+", " ", message).strip()


def _code(text):
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`" if text else "(empty)"


def _text(message):
    return re.sub(r"([|<>*_`\[\]{}$\\])", r"\\\1", message)


def write_refusals(path):
    """
    Write the page to a file, unless it is there as it should be.

    :param path: the file
    """
    text = page(all_refusals())
    if not Path(path).is_file() or Path(path).read_text() != text:
        Path(path).write_text(text)


if __name__ == "__main__":
    write_refusals(Path(sys.argv[1]).absolute())
