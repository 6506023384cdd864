"""Storages of studies."""

from typing import Any

from optuna.storages import JournalStorage, get_storage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.exc import ArgumentError

#: How the path of a storage ends that is a file rather than a database
LOG = ".log"


def open_storage(storage: str) -> Any:
    """
    Open the storage of a study as RL Zoo does.

    :param storage: path that ends in ``.log``, or a URL
    :return: storage for Optuna
    :raises ValueError: if it is neither
    """
    if storage.endswith(LOG):
        return JournalStorage(JournalFileBackend(storage))
    try:
        return get_storage(storage)
    except ArgumentError as error:
        raise ValueError(f"--storage {storage} is neither a file ....log nor a URL of a database: correct it.") from error


def check_storage(storage: str | None) -> None:
    """
    Check that a study can be stored.

    :param storage: value of ``--storage``; ``None`` for a study that is not stored
    :raises ValueError: if it is neither a path that ends in ``.log`` nor a URL
    """
    # RL Zoo makes the folder of a file
    if storage and not storage.endswith(LOG):
        open_storage(storage)
