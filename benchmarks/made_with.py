"""Processors and versions of runs."""

import json

import pandas as pd


def made_with(rows: pd.DataFrame) -> str:
    """
    Describe what runs were made with.

    :param rows: runs, with ``versions``
    :return: processors and versions, with all values that differ between runs
    """
    found: dict[str, dict[str, None]] = {}
    for text in rows.versions.dropna().unique():
        for name, number in json.loads(text).items():
            found.setdefault(name, {})[number] = None
    processors = " or ".join(found.pop("processor", {"an unknown processor": None}))
    packages = ", ".join(f"{name} {' or '.join(numbers)}" for name, numbers in found.items())
    return f"one thread of {processors}, {packages}"
