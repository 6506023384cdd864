"""Files that are written completely or not at all, and one error for those that can't be read."""

import os
import pickle
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

AnyPath: TypeAlias = str | Path
T = TypeVar("T")


@contextmanager
def written_whole(path: AnyPath) -> Iterator[BinaryIO]:
    """Write a temporary file, and move it to its place once it is complete: the previous file or the new one stays."""
    # Replace the file that a link points to, not the link
    path = Path(os.path.realpath(path))
    # Of this process, as others may write the same file
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(unfinished, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        # PyTorch hides the error of the disk behind "unexpected pos"
        for cause in (error, error.__cause__, error.__context__):
            if isinstance(cause, OSError) and cause.errno is not None:
                raise OSError(
                    cause.errno,
                    f"{path} could not be written ({cause.strerror}); what was there before is untouched. Free some space, or "
                    "write to another place",
                ) from error
        raise


def with_suffix(path: AnyPath, suffix: str) -> Path:
    """Add a suffix to a path without one, as SB3 does."""
    path = Path(path)
    return path if path.suffix else path.with_name(path.name + suffix)


def dump_whole(value: object, path: AnyPath) -> None:
    with written_whole(path) as file:
        pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)


def load_pickle(path: AnyPath, kind: type[T]) -> T:
    """Unpickle an object of a class. A pickle can run any code: load only files that you trust."""
    with explained(path, kind.__name__), open(path, "rb") as file:
        loaded = pickle.load(file)
        if not isinstance(loaded, kind):
            raise TypeError(f"it holds a {type(loaded).__name__}")
    return loaded


@contextmanager
def explained(path: object, kind: str) -> Iterator[None]:
    """Raise ValueErrors that name the file and the remedy in place of whatever a damaged or foreign file leads to."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # a changed byte may stand for any instruction of a pickle, or compression of a zip file
        raise ValueError(
            f"{path} does not hold a {kind} that can be loaded here, or is damaged ({type(error).__name__}: {error}): save it "
            "again, or use another one."
        ) from error


@cache
def installed_versions() -> dict[str, str]:
    """Versions of this package, of what it depends on, and of Python, by name."""
    versions = {package: version(package) for package in ("stable_baselines3", "torch", "mujoco")}
    own = (Path(__file__).parents[1] / "version.txt").read_text().strip()
    return {"sb3_cesd": own, **versions, "python": platform.python_version()}
