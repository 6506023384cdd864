"""The file of a comparison, which no comparison of other models shares."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from sb3_cesd.show.page_names import page_name

#: Longest name of a page that lists all models [characters]
LONGEST_NAME = 200


def comparison_page(folder: Path, paths: Sequence[Path], methods: Sequence[str]) -> Path:
    """
    Choose the file of a comparison. Its name has the methods of the models; if these do not tell the models apart, or name a
    page about other models, also the folders of the runs; and if that is not enough, a checksum in place of both.

    :param folder: folder to write to
    :param paths: files of the models
    :param methods: names of their methods
    :return: a file that does not exist yet, or a page about the same models
    """
    # The file of an exported policy may call its method anything
    methods = [re.sub(r"\W", "", method).lower() for method in methods]
    runs = [f"{method}_{_run(path)}" for method, path in zip(methods, paths, strict=True)]
    models = list(zip((page_name(path) for path in paths), methods, strict=True))
    for labels in (methods, runs) if len(set(models)) == len(models) else (runs,):
        page = folder / f"{_joined(paths, labels)}_compared.html"
        if len(page.name) <= LONGEST_NAME and (not page.exists() or mark_of(paths).encode() in page.read_bytes()):
            return page
    return folder / f"{page_name(paths[0])}_{mark_of(paths)}_compared.html"


def mark_of(paths: Sequence[Path]) -> str:
    """
    Return what marks the page of models, without telling where they are.

    :param paths: files of the models
    :return: a checksum of their absolute paths
    """
    return hashlib.sha256("\n".join(str(path.resolve()) for path in paths).encode()).hexdigest()[:16]


def _run(path: Path) -> str:
    """Return the name of a model's folder, as far as the name of the model does not tell it: of RL Zoo, the number."""
    return path.resolve().parent.name.removeprefix(f"{page_name(path)}_")


def _joined(paths: Sequence[Path], labels: Sequence[str]) -> str:
    """Join names of models and their labels; a name that all models have stands there once."""
    if len({page_name(path) for path in paths}) == 1:
        return "_".join([page_name(paths[0]), *labels])
    return "_vs_".join(f"{page_name(path)}_{label}" for path, label in zip(paths, labels, strict=True))
