"""Bad input, found before it can do harm; every message ends in the remedy."""

import io
import json
import pathlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.save_util import open_path

from sb3_cesd.common.skills import check_plain_space


def check_env_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """
    :param observation_space: of the environment, with or without the skill
    :param action_space: of the environment
    :raises ValueError: unless both are vectors of real numbers
    """
    check_plain_space(observation_space)
    if not isinstance(action_space, spaces.Box):
        raise ValueError(
            f"Actions are continuous in this algorithm, but the action space is {action_space}: "
            "use an environment with a Box action space."
        )


def check_play_spaces(
    observation_space: spaces.Space, action_space: spaces.Space, obs_dim: int, model_action_space: spaces.Space, name: str
) -> None:
    """
    :param observation_space: of environments to play in, without the skill
    :param action_space: of these
    :param obs_dim: size of a plain observation of the model
    :param model_action_space: action space of the model
    :param name: what the environments are called in the message
    :raises ValueError: if the model can't act in them
    """
    if observation_space.shape != (obs_dim,) or action_space != model_action_space:
        raise ValueError(
            f"The model takes {obs_dim} numbers an observation and acts in {model_action_space}, but {name} has the "
            f"observation space {observation_space} and the action space {action_space}: pass {name} wrapped as that of "
            "training, without the skill."
        )


@contextmanager
def explain_other_spaces() -> Iterator[None]:
    """
    :raises ValueError: SB3's own if the spaces of an environment are not those of the model, ended with the remedy
    """
    try:
        yield
    except ValueError as error:
        if "spaces do not match" not in str(error):
            raise
        raise ValueError(
            f"{error}. Pass the environment the model was trained on, or train a new model for this environment."
        ) from error


@contextmanager
def explain_missing_parameters(path: str | pathlib.Path | io.BufferedIOBase) -> Iterator[None]:
    """
    :param path: the zip file that is loaded within
    :raises ValueError: if a network or an optimizer is missing in it
    """
    try:
        yield
    except KeyError as error:
        # SB3 then takes the file for that of an old DQN, and fails to find its optimizer
        if error.args != ("policy.optimizer",):
            raise
        raise ValueError(
            f"{path} lacks some of the parameters of the model: save it again, or load another checkpoint."
        ) from error


def check_finite(env_name: str, kind: str, values: np.ndarray, step: int) -> None:
    """
    :param env_name: name of the environment
    :param kind: what the values are, e.g. "observation"
    :param values: one row for each environment, shape ``(n_envs, ...)``
    :param step: time step of the training
    :raises ValueError: if there is NaN or infinity
    """
    if np.isfinite(values).all():
        return
    env_idx = int(np.nonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0][0])
    row = np.atleast_1d(values[env_idx])
    entries = np.nonzero(~np.isfinite(row))[0]
    listed = ", ".join(f"[{entry}] = {row[entry]}" for entry in entries[:8]) + (", ..." if len(entries) > 8 else "")
    raise ValueError(
        f"{env_name}, environment {env_idx}, time step {step}: the {kind} is not finite ({listed}). It was not stored. "
        f"Make the environment return finite values, e.g. clip the {kind} or end the episode before it diverges."
    )


def read_saved_data(path: str | pathlib.Path | io.BufferedIOBase) -> dict[str, Any]:
    """
    Read the plain (JSON) attributes of a saved SB3 model without building it.

    :param path: the zip file
    :return: attributes by name; those that JSON can't express are left as SB3 stored them
    :raises ValueError: if it is no saved model
    """
    file = open_path(path, "r", verbose=0, suffix="zip")
    try:
        with zipfile.ZipFile(file) as archive:  # type: ignore[arg-type]
            if archive.testzip() is not None:
                raise zipfile.BadZipFile
            return json.loads(archive.read("data").decode())
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is not a complete saved model (truncated, or not written by model.save): "
            "save it again, or load another checkpoint."
        ) from error
    finally:
        if file is path:
            file.seek(0)  # type: ignore[union-attr]
        else:
            file.close()
