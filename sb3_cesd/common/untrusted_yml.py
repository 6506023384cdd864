"""Reading yml files of RL Zoo without running code in them."""

from pathlib import Path
from typing import Any

import yaml

#: Tags of Python objects that RL Zoo writes
PYTHON = "tag:yaml.org,2002:python/"
ORDERED_DICT, TUPLE = f"{PYTHON}object/apply:collections.OrderedDict", f"{PYTHON}tuple"
DAMAGED = "{path} is not a yml file of RL Zoo, or is damaged: restore or remove it."


class _DataLoader(yaml.SafeLoader):
    """Load plain data, and tuples."""


class _TextLoader(_DataLoader):
    """Load plain data, tuples and ordered dictionaries, and other Python objects as text."""


def _ordered_dict(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> dict[Any, Any]:
    (pairs,) = loader.construct_sequence(node, deep=True)
    return dict(pairs)


def _text(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> str:
    return name if isinstance(node, yaml.ScalarNode) else " ".join(yaml.serialize(node).split())


_DataLoader.add_constructor(TUPLE, lambda loader, node: tuple(loader.construct_sequence(node, deep=True)))  # type: ignore[arg-type]
_TextLoader.add_constructor(TUPLE, _DataLoader.yaml_constructors[TUPLE])
_TextLoader.add_constructor(ORDERED_DICT, _ordered_dict)
_TextLoader.add_multi_constructor(PYTHON, _text)


def read_entry(path: Path, name: str) -> Any:
    """
    Read one entry of a yml file of RL Zoo; the others are not constructed.

    :param path: ``args.yml`` or ``config.yml``
    :param name: name of the entry
    :return: plain data; ``None`` if there is no such entry
    :raises ValueError: if the file is damaged, or the entry is made of other objects
    """
    for key, value in _nodes(path):
        if key.value == name:
            try:
                return _DataLoader("").construct_document(value)
            except yaml.constructor.ConstructorError as error:
                raise ValueError(
                    f"{path} makes Python objects of {name} ({error.problem}), which could run arbitrary code: write {name} "
                    "with plain numbers, strings, lists and dictionaries."
                ) from error
    return None


def read_as_text(path: Path) -> dict[str, Any]:
    """
    Read all entries of a yml file of RL Zoo, with Python objects in them as text.

    :param path: ``args.yml`` or ``config.yml``
    :return: entries by name
    :raises ValueError: if the file is damaged
    """
    try:
        return {str(key.value): _TextLoader("").construct_document(value) for key, value in _nodes(path)}
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise ValueError(DAMAGED.format(path=path)) from error


def _nodes(path: Path) -> list[tuple[yaml.Node, yaml.Node]]:
    """
    List the entries of a yml file that holds a dictionary, or an OrderedDict as RL Zoo writes it.

    :param path: the file
    :return: keys and values
    :raises ValueError: if it is damaged, or holds something else
    """
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=_DataLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(DAMAGED.format(path=path)) from error
    if isinstance(root, yaml.MappingNode):
        return root.value
    if isinstance(root, yaml.SequenceNode) and root.tag == ORDERED_DICT and len(root.value) == 1:
        pairs = root.value[0].value
        if isinstance(pairs, list) and all(isinstance(pair, yaml.SequenceNode) and len(pair.value) == 2 for pair in pairs):
            return [(pair.value[0], pair.value[1]) for pair in pairs]
    raise ValueError(DAMAGED.format(path=path))
