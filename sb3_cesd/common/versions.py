"""Versions of what a saved model depends on."""

import platform
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path


@cache
def installed_versions() -> dict[str, str]:
    """Versions of this package, of what it depends on, and of Python, by name."""
    versions = {package: version(package) for package in ("stable_baselines3", "torch", "mujoco")}
    own = (Path(__file__).parents[1] / "version.txt").read_text().strip()
    return {"sb3_cesd": own, **versions, "python": platform.python_version()}


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
