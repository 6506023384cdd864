"""Atomic writing of files, and checksums that detect damage."""

import glob
import hashlib
import os
import pickle
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AnyPath: TypeAlias = str | Path

#: What stands between a pickled object and its SHA-256
MARK = b"sb3_cesd:sha256:"
DIGEST_SIZE = hashlib.sha256().digest_size
#: Suffix of files that are not complete
UNFINISHED = ".unfinished"
#: Bytes that are read at once
CHUNK = 1 << 20
#: Seconds that another program, such as a virus scanner, gets to close a file on Windows, which moves no open files
PATIENCE = 2.0
#: Seconds after which an unfinished file is taken for abandoned where files can't be locked
ABANDONED_AFTER = 60.0


@contextmanager
def written_whole(path: AnyPath) -> Iterator[BinaryIO]:
    """
    Write a temporary file, and move it to its place once it is complete and on the disk.

    Whatever happens meanwhile (an exception, a full disk, ``kill -9``), the file is the previous one or the new one. Of
    several processes that write it at the same time, the last one to finish wins.

    :param path: the file; its folder is created if it does not exist
    :return: file object to write to
    :raises OSError: if it can't be written; what was there before is untouched
    """
    # Replace the file that a link points to, not the link
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: pass the name of a file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    # An error that is already being handled did not come from here
    before = sys.exc_info()[1]
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*{UNFINISHED}"):
        _delete_if_abandoned(leftover)
    file = _new_unfinished(path)
    unfinished = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            # As if it was written in place; there may be no file yet, or no such modes
            with suppress(OSError):
                unfinished.chmod(stat.S_IMODE(path.stat().st_mode))
            if fcntl is not None:
                move(unfinished, path)  # while it is locked
        if fcntl is None:
            move(unfinished, path)  # Windows moves no open files
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        full = _disk_error(error, before)
        if full is None:
            raise
        remedy = "free some space, or write to another disk"
        if isinstance(full, PermissionError):
            remedy = "close the programs that have it open, or write to a folder that you may write to"
        raise OSError(
            full.errno, f"{path} could not be written ({full.strerror}). What was there before is untouched: {remedy}"
        ) from error
    sync_folder(path.parent)


def move(source: Path, target: Path) -> None:
    """
    Move a file or folder. On Windows, wait a moment for other programs to close it.

    :param source: the file or folder
    :param target: where it goes; a file there is replaced
    :raises PermissionError: if it can't be moved; on Windows also if another program has it or the target open
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if fcntl is not None or time.monotonic() > until:
                raise
        time.sleep(0.05)


def lock(descriptor: int, wait: bool = True) -> bool | None:
    """
    Lock a file or folder until it is closed, or its process ends.

    :param descriptor: of the open file
    :param wait: whether to wait while another process has locked it
    :return: whether it is locked now; ``False`` if another process has locked it, ``None`` if locks are not supported here
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _new_unfinished(path: Path) -> BinaryIO:
    """
    Open a new file next to another one, locked and with a unique name.

    :param path: the other file
    :return: the new one
    """
    while True:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
        file = open(unfinished, "xb")
        lock(file.fileno())
        if unfinished.exists():
            return file
        file.close()  # deleted by another process before it was locked


def _delete_if_abandoned(unfinished: Path) -> None:
    """
    Delete a file that a killed process left behind, but not one that is being written.

    :param unfinished: a file of :func:`written_whole`, which is locked while it is written
    """
    if fcntl is None:
        # Windows deletes no open files; between being closed and being moved, it is only moments old
        with suppress(OSError):
            if time.time() - unfinished.stat().st_mtime > ABANDONED_AFTER:
                unfinished.unlink()
        return
    with suppress(FileNotFoundError), open(unfinished, "rb") as file:
        if lock(file.fileno(), wait=False):
            unfinished.unlink()


def _disk_error(error: BaseException | None, before: BaseException | None) -> OSError | None:
    """
    Find the disk error behind the error of a library, which may hide it: PyTorch says "unexpected pos".

    :param error: the error that was raised
    :param before: the error that was already being handled before the file was written
    :return: the disk error among its causes since then
    """
    while error is not None and error is not before:
        if isinstance(error, OSError) and error.errno is not None:
            return error
        error = error.__cause__ or error.__context__
    return None


def sync_folder(folder: Path) -> None:
    """Flush the renaming of a file to the disk, where folders can be opened."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text_whole(path: AnyPath, text: str) -> None:
    """
    Write a text file atomically, see :func:`written_whole`.

    :param path: the file
    :param text: what it is to hold
    """
    with written_whole(path) as file:
        file.write(text.encode())


def save_figure_whole(figure: Any, path: AnyPath, **kwargs: Any) -> None:
    """
    Save a figure atomically, see :func:`written_whole`.

    :param figure: Matplotlib figure
    :param path: the file; its suffix determines the format
    :param kwargs: further arguments of ``Figure.savefig``, such as ``dpi``
    """
    with written_whole(path) as file:
        figure.savefig(file, format=Path(path).suffix.removeprefix("."), **kwargs)


def with_suffix(path: AnyPath, suffix: str) -> Path:
    """
    Add a suffix to a path without one, as SB3 does.

    :param path: path that the user passed
    :param suffix: the suffix, with the dot
    :return: path with a suffix
    """
    path = Path(path)
    return path if path.suffix else path.with_name(path.name + suffix)


class _HashingWriter:
    """
    Pass on what is written, and compute its SHA-256.

    :param file: where it goes
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        """
        Write and hash.

        :param data: bytes or a buffer
        :return: number of bytes
        """
        self.sha256.update(data)
        return self.file.write(data)


def dump_with_checksum(value: object, file: BinaryIO) -> None:
    """
    Pickle an object, followed by a checksum. Other programs read it as any pickle.

    :param value: any object
    :param file: where to write
    """
    writer = _HashingWriter(file)
    pickle.dump(value, writer, protocol=pickle.HIGHEST_PROTOCOL)  # type: ignore[arg-type]
    file.write(MARK + writer.sha256.digest())


def load_with_checksum(file: BinaryIO, name: object, remedy: str) -> Any:
    """
    Load what :func:`dump_with_checksum` wrote. The checksum detects damage, but does not tell who wrote the file: an untrusted
    pickle can run arbitrary code.

    :param file: file to read, from its current position to its end
    :param name: what the file is called in a message
    :param remedy: what to do if it is damaged, a sentence
    :return: the object
    :raises ValueError: if a byte of it is missing or changed; nothing of it is unpickled then
    """
    start = file.tell()
    check_sum(file, name, remedy)
    file.seek(start)
    with explain_missing_class(name):
        return pickle.load(file)


@contextmanager
def explain_missing_class(name: object) -> Iterator[None]:
    """
    Explain that what a pickle holds can't be imported.

    :param name: what the file is called in a message
    :raises ValueError: in place of the error of pickle
    """
    try:
        yield
    except (AttributeError, ImportError) as error:
        raise ValueError(
            f"{name} needs a module or class that can't be imported here ({error}): install it, or define it where it was."
        ) from error


def check_sum(file: BinaryIO, name: object, remedy: str) -> None:
    """
    Check what :func:`dump_with_checksum` wrote, without unpickling it.

    :param file: file to read, from its current position to its end
    :param name: what the file is called in a message
    :param remedy: what to do if it is damaged, a sentence
    :raises ValueError: if a byte of it is missing or changed
    """
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start - len(MARK) - DIGEST_SIZE
    file.seek(start + max(size, 0))
    mark, digest = file.read(len(MARK)), file.read()
    if size < 0 or mark != MARK:
        raise ValueError(f"{name} is not complete, or was written by another program. {remedy}")
    file.seek(start)
    if _sha256(file, size) != digest:
        raise ValueError(f"{name} is damaged: its content does not match its checksum. {remedy}")


def _sha256(file: BinaryIO, size: int) -> bytes:
    """
    Hash a part of a file without holding it in memory.

    :param file: file to read, from its current position on
    :param size: number of bytes
    :return: their SHA-256
    """
    sha256 = hashlib.sha256()
    while size > 0:
        chunk = file.read(min(CHUNK, size))
        sha256.update(chunk)
        size -= len(chunk)
    return sha256.digest()
