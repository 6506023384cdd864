"""Versions of what a saved model depends on."""

import platform
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

#: Packages that a saved model names
PACKAGES = ("stable_baselines3", "torch", "mujoco")

#: Each call of ``version`` reads a file of a hundred kilobytes
version_of = cache(version)


def installed_versions() -> dict[str, str]:
    """
    Get the versions of this package, of what it depends on, and of Python.

    :return: versions by name; without those of packages that are not installed
    """
    versions = {"sb3_cesd": (Path(__file__).parents[1] / "version.txt").read_text().strip()}
    for package in PACKAGES:
        try:
            versions[package] = version_of(package)
        except PackageNotFoundError:
            continue
    return {**versions, "python": platform.python_version()}


def warn_of_other_versions(name: object, saved_with: Mapping[str, str]) -> None:
    """
    Warn where the major version of a package differs from the one a file was saved with.

    :param name: what the file is called in the message
    :param saved_with: what :func:`installed_versions` returned when it was saved
    """
    here = installed_versions()
    others = [
        f"{package} {theirs} (here {here[package]})"
        for package, theirs in saved_with.items()
        if package in here and theirs.split(".")[0] != here[package].split(".")[0]
    ]
    if others:
        warnings.warn(
            f"{name} was saved with {', '.join(others)}: check that the model behaves as before, or install these versions."
        )
