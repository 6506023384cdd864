"""Processors and versions of runs."""

import json

import pandas as pd


def made_with(rows: pd.DataFrame) -> str:
    """
    Describe what runs were made with.

    :param rows: runs, with ``versions``; and with ``device``, unless all used the CPU
    :return: processors and versions, with all values that differ between runs
    """
    found: dict[str, dict[str, None]] = {}
    devices = rows.device if "device" in rows else pd.Series("cpu", index=rows.index)
    for text, device in zip(rows.versions, devices.fillna("cpu"), strict=True):
        for name, number in json.loads(text if isinstance(text, str) else "{}").items():
            with_gpu = f" with an {device}" if name == "processor" and device != "cpu" else ""
            found.setdefault(name, {})[number + with_gpu] = None
    processors = " or ".join(found.pop("processor", {"an unknown processor": None}))
    packages = ", ".join(f"{name} {' or '.join(numbers)}" for name, numbers in found.items())
    return f"one thread of {processors}, {packages}"
