"""Time several functions in turn, so that a slow moment of the machine affects all of them alike."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from sb3_cesd.common.cuda import GraphedFunction

#: A measurement: ``part``, ``setting``, ``threads`` and ``variant``; ``value`` and ``unit``; and ``ratio``, how many times
#: better (faster, smaller) it is than the ``reference``
Figure = dict[str, Any]

#: Sizes of models whose updates are timed
SIZES = {
    "published": {"n_skills": 16, "batch_size": 1024, "width": 1024},
    "small": {"n_skills": 8, "batch_size": 256, "width": 256},
}
#: Phase of CeSD -> environment step at which its constraint starts
PHASES = {"exploring": 10**9, "constrained": 0}


def interleaved_medians(functions: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """
    Time functions in turn.

    :param functions: functions to time, by name
    :param repeats: timed calls of each, after some for warm-up: a CUDA graph is captured in the last of them
    :return: median seconds of a call, by name
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for repeat in range(-GraphedFunction.N_WARM_UP - 1, repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if repeat >= 0:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def figures_of_times(part: str, setting: str, threads: int, seconds: dict[str, float], reference: str) -> list[Figure]:
    """
    Make figures from times.

    :param part: part of the benchmark
    :param setting: sizes, in words
    :param threads: number of threads
    :param seconds: times by variant [s]
    :param reference: the variant that others are compared with
    :return: a figure per variant
    """
    return [
        {
            "part": part, "setting": setting, "threads": threads, "variant": variant,
            "value": value * 1000, "unit": "ms", "ratio": seconds[reference] / value, "reference": reference,
        }
        for variant, value in seconds.items()
    ]  # fmt: skip
