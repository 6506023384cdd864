"""Reading files of RL Zoo without running code in them."""

import io
import pickle
from pathlib import Path
from typing import Any

import yaml
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.files import DIGEST_SIZE, MARK, check_sum

#: Tags of Python objects that RL Zoo writes to its yml files
ORDERED_DICT = "tag:yaml.org,2002:python/object/apply:collections.OrderedDict"
TUPLE = "tag:yaml.org,2002:python/tuple"
#: All classes and functions in the pickled statistics of a VecNormalize
OF_STATISTICS = {
    "stable_baselines3.common.vec_env.vec_normalize": ("VecNormalize",),
    "stable_baselines3.common.running_mean_std": ("RunningMeanStd",),
    "collections": ("OrderedDict",),
    "gymnasium.spaces.box": ("Box",),
    "gymnasium.spaces.dict": ("Dict",),
    "numpy": ("dtype", "ndarray"),
    "numpy._core.multiarray": ("_reconstruct", "scalar"),
    "numpy.core.multiarray": ("_reconstruct", "scalar"),
    "numpy._core.numeric": ("_frombuffer",),
    "numpy.core.numeric": ("_frombuffer",),
    "numpy.random._pickle": ("__generator_ctor", "__bit_generator_ctor"),
    "numpy.random._pcg64": ("PCG64",),
    "numpy.random.bit_generator": ("SeedSequence", "__pyx_unpickle_SeedSequence"),
}


class _DataLoader(yaml.SafeLoader):
    """Load plain data, and tuples."""


_DataLoader.add_constructor(TUPLE, lambda loader, node: tuple(loader.construct_sequence(node, deep=True)))  # type: ignore[arg-type]


def read_entry(path: Path, name: str) -> Any:
    """
    Read one entry of a yml file of RL Zoo; the others are not constructed.

    :param path: ``args.yml`` or ``config.yml``
    :param name: name of the entry
    :return: plain data; ``None`` if there is no such entry
    :raises ValueError: if the file is damaged, or the entry is made of other objects
    """
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=_DataLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a yml file, or is damaged: restore or remove it.") from error
    loader = _DataLoader("")
    for key, value in _pairs(path, root):
        if key.value == name:
            try:
                return loader.construct_document(value)
            except yaml.constructor.ConstructorError as error:
                raise ValueError(
                    f"{path} makes Python objects of {name} ({error.problem}), which could run arbitrary code: write {name} "
                    "with plain numbers, strings, lists and dictionaries."
                ) from error
    return None


def _pairs(path: Path, root: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    """
    List the entries of a yml file that holds a dictionary, or an OrderedDict as RL Zoo writes it.

    :param path: the file
    :param root: its content
    :return: keys and values
    :raises ValueError: if it holds something else
    """
    if isinstance(root, yaml.MappingNode):
        return root.value
    if isinstance(root, yaml.SequenceNode) and root.tag == ORDERED_DICT and len(root.value) == 1:
        pairs = root.value[0].value
        if isinstance(pairs, list) and all(isinstance(pair, yaml.SequenceNode) and len(pair.value) == 2 for pair in pairs):
            return [(pair.value[0], pair.value[1]) for pair in pairs]
    raise ValueError(f"{path} does not hold a dictionary, as RL Zoo writes it: restore or remove it.")


class _StatisticsUnpickler(pickle.Unpickler):
    """Unpickle only what statistics consist of."""

    def find_class(self, module: str, name: str) -> Any:
        """
        Look up what a pickle names.

        :param module: a module
        :param name: what it names in there
        :return: the class or function
        :raises pickle.UnpicklingError: if statistics do not contain it
        """
        if name not in OF_STATISTICS.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of them")
        return super().find_class(module, name)


def load_statistics(path: Path) -> VecNormalize:
    """
    Load the statistics of a ``VecNormalize``, without environments.

    :param path: what ``VecNormalize.save`` wrote
    :return: the statistics
    :raises ValueError: if the file is damaged, or makes other objects
    :raises FileNotFoundError: if there is none
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file at the path {path}: pass the path of what VecNormalize.save wrote.")
    content = path.read_bytes()
    try:
        # SB3 writes no checksum, our extension of RL Zoo does
        if MARK in content[-len(MARK) - DIGEST_SIZE :]:
            check_sum(io.BytesIO(content), "it", "Take another.")
        statistics = _StatisticsUnpickler(io.BytesIO(content)).load()
        if not isinstance(statistics, VecNormalize):
            raise TypeError(f"a {type(statistics).__name__}")
        _ = statistics.obs_rms, statistics.clip_obs, statistics.epsilon, statistics.norm_obs
    except Exception as error:  # a changed byte may be taken for any instruction of the pickle
        raise ValueError(
            f"{path} does not hold the statistics of a VecNormalize, or is damaged ({error}): restore it, or remove it if the "
            "model was trained without."
        ) from error
    return statistics
