"""The page of refusals is made, the same every time, and each message in it ends in the remedy."""

import re

import pytest
from command_lines import OF_ARGPARSE
from outcomes import REMEDY
from refusals import all_refusals, page, write_refusals


@pytest.mark.slow
def test_the_page_is_made_the_same_every_time_and_each_message_ends_in_the_remedy(tmp_path):
    found = all_refusals()
    rows = [row for of_one in found.values() for row in of_one]
    known = (*OF_ARGPARSE, "write it like")
    without = [row for row in rows if not REMEDY.search(row[2]) and not any(part in row[2] for part in known)]
    assert not without and len(rows) > 500

    text = page(found)
    assert "| `gamma` | `True` | gamma=True must be a number from 0 to 1: pass such a number. |" in text
    assert "## `python benchmarks/maze.py`" in text and "pass 20 or more" in text
    assert text.count("\n| `") == len(rows)
    assert not re.search(r"0x[0-9a-f]{4}|/tmp|/home|/root|/work", text), "no page is of one machine alone"

    write_refusals(tmp_path / "refusals.md")
    assert (tmp_path / "refusals.md").read_text() == text
