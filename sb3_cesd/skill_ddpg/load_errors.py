"""Errors about saved models that Stable-Baselines3 raises, with the remedy."""

import io
import pathlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sb3_cesd.common.rules import shown


@contextmanager
def explain_no_file(path: object, kind: str) -> Iterator[None]:
    """
    Add the remedy to the error about a folder in place of a file, or a missing file.

    :param path: what is opened within the context
    :param kind: kind of the file in the message, e.g. ``"of a model"``
    :raises ValueError: if it is a folder
    :raises FileNotFoundError: if there is no file
    """
    try:
        yield
    except (IsADirectoryError, PermissionError) as error:
        # Windows has the same error for a folder as for a file that may not be read
        if not (isinstance(path, str | pathlib.Path) and pathlib.Path(path).is_dir()):
            raise
        raise ValueError(f"The path {path} is a folder: pass the file {kind}, with its suffix.") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file at the path {path}: pass the path {kind}.") from error


@contextmanager
def explain_other_spaces() -> Iterator[None]:
    """
    Add the remedy to SB3's error about the spaces of an environment.

    :raises ValueError: if the spaces of an environment are not those of the model
    """
    try:
        yield
    except ValueError as error:
        if "spaces do not match" not in str(error):
            raise
        raise ValueError(
            f"{without_bounds(str(error))}. Pass the environment the model was trained on, or train a new model for this "
            "environment."
        ) from error


@contextmanager
def explain_other_policy(path: object, policy_kwargs: dict[str, Any] | None) -> Iterator[None]:
    """
    Add the remedy to SB3's error about other networks.

    :param path: the file that is loaded within the context
    :param policy_kwargs: what the user passed
    :raises ValueError: if the networks of the file were made with other arguments
    """
    try:
        yield
    except ValueError as error:
        if "policy kwargs do not equal" not in str(error):
            raise
        raise ValueError(
            f"policy_kwargs={shown(policy_kwargs)} does not fit {path}, whose networks were made with other arguments: leave "
            "policy_kwargs out, or train a new model."
        ) from error


@contextmanager
def explain_parameters() -> Iterator[None]:
    """
    Add the remedy to SB3's errors about parameters.

    :raises ValueError: if they are not those of the model
    """
    try:
        yield
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"load_path_or_dict does not hold the parameters of this model ({error}): pass what get_parameters() returned "
            "for such a model, or the file of one."
        ) from error


@contextmanager
def explain_missing_parameters(path: str | pathlib.Path | io.BufferedIOBase) -> Iterator[None]:
    """
    Explain SB3's error about a file without all parameters, or with others.

    :param path: the zip file that is loaded within the context
    :raises ValueError: if a network or an optimizer is missing in it, or of another shape
    """
    try:
        yield
    except KeyError as error:
        # SB3 then takes the file for that of an old DQN, and fails to find its optimizer
        if error.args != ("policy.optimizer",):
            raise
        cause = error.__context__ and error.__context__.__cause__
        if isinstance(cause, RuntimeError):
            raise ValueError(
                f"{path} holds networks of other shapes than the model has here ({cause}): load it with the policy and "
                "features extractor that it was saved with, or train a new model."
            ) from error
        raise ValueError(
            f"{path} lacks some of the parameters of the model: save it again, or load another checkpoint."
        ) from error


def without_bounds(message: str) -> str:
    """
    Leave the bounds of long vectors out of a message: they fill pages, and shapes are enough to distinguish spaces.

    :param message: a message that shows spaces
    :return: the same, with ``[...]`` for long arrays of numbers
    """
    return re.sub(r"\[[-+\d.einfa,\s\[\]]{40,}\]", "[...]", message)
