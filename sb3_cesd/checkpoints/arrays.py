"""Pickles whose large arrays are stored separately, in pieces that are only written again if they changed."""

import hashlib
import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from sb3_cesd.common.files import dump_with_checksum, explain_missing_class, load_with_checksum, sync_folder

#: Arrays of at least this size are cut into pieces of about this size [bytes]
PIECE = 1 << 20
REMEDY = "Resume from the checkpoint before this one."


def write_with_arrays(folder: Path, value: object, previous: Path | None = None) -> None:
    """
    Pickle an object. Unchanged pieces of its arrays are hard links to those of the previous call.

    :param folder: a new folder
    :param value: any object
    :param previous: folder of the previous call, on the same disk
    """
    folder.mkdir()
    content = io.BytesIO()
    _ArrayPickler(content, folder, previous).dump(value)
    with open(folder / "object.pkl", "wb") as file:
        dump_with_checksum(content.getvalue(), file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def read_with_arrays(folder: Path) -> Any:
    """
    Read what :func:`write_with_arrays` wrote.

    :param folder: the folder
    :return: the object
    :raises ValueError: if any byte is missing or has changed, or a class can't be imported
    """
    with open(folder / "object.pkl", "rb") as file:
        content = load_with_checksum(file, folder / "object.pkl", REMEDY)
    with explain_missing_class(folder):
        return _ArrayUnpickler(io.BytesIO(content), folder).load()


class _ArrayPickler(pickle.Pickler):
    """
    Pickle an object, and write its large arrays in pieces.

    :param file: where to write the rest
    :param folder: folder of the pieces
    :param previous: folder with the pieces of the previous call
    """

    def __init__(self, file: io.BytesIO, folder: Path, previous: Path | None) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.folder = folder
        self.previous = previous
        self._n_arrays = 0

    def persistent_id(self, obj: Any) -> tuple[str, tuple[int, ...], list[tuple[str, str]]] | None:
        """
        Write an object if it is a large array of numbers.

        :param obj: any object
        :return: its type, shape, and the names and SHA-256 of its pieces; ``None`` for an object that is pickled
        """
        if not isinstance(obj, np.ndarray) or obj.ndim == 0 or obj.nbytes < PIECE or obj.dtype.hasobject:
            return None
        rows = max(PIECE * len(obj) // obj.nbytes, 1)
        number = self._n_arrays
        self._n_arrays += 1
        pieces = [
            self._put_piece(f"{number:03d}_{idx:05d}.bin", obj[start : start + rows])
            for idx, start in enumerate(range(0, len(obj), rows))
        ]
        return obj.dtype.str, obj.shape, pieces

    def _put_piece(self, name: str, rows: np.ndarray) -> tuple[str, str]:
        content = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
        if self.previous is None or not _linked(self.previous / name, self.folder / name, content):
            with open(self.folder / name, "wb") as file:
                file.write(content.data)
                file.flush()
                os.fsync(file.fileno())
        return name, hashlib.sha256(content.data).hexdigest()


class _ArrayUnpickler(pickle.Unpickler):
    """
    Read what :class:`_ArrayPickler` wrote.

    :param file: where to read the rest
    :param folder: where the arrays are
    """

    def __init__(self, file: io.BytesIO, folder: Path) -> None:
        super().__init__(file)
        self._folder = folder

    def persistent_load(self, pid: Any) -> np.ndarray:
        """Read an array."""
        return _read_array(self._folder, *pid)


def _linked(source: Path, target: Path, content: np.ndarray) -> bool:
    """
    Link a piece if its file still has the same content, so that damage does not spread to all checkpoints.

    :param source: the piece of the previous call
    :param target: name of the link
    :param content: bytes of the piece
    :return: whether it is linked
    """
    try:
        if not np.array_equal(np.fromfile(source, np.uint8), content):
            return False
        os.link(source, target)
    except OSError:  # a disk without hard links, or a piece that is gone
        return False
    return True


def _read_array(folder: Path, dtype: str, shape: tuple[int, ...], pieces: list[tuple[str, str]]) -> np.ndarray:
    """
    Join the pieces of an array.

    :param folder: where they are
    :param dtype: type of the array
    :param shape: shape of the array
    :param pieces: names and SHA-256
    :return: the array
    :raises ValueError: if one is missing or damaged
    """
    array = np.empty(shape, dtype)
    target, place = array.reshape(-1).view(np.uint8), 0
    for name, digest in pieces:
        path = folder / name
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"{path} is missing or damaged: its content does not match its checksum. {REMEDY}")
        target[place : place + len(content)] = np.frombuffer(content, np.uint8)
        place += len(content)
    return array
