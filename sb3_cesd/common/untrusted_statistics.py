"""Reading the statistics of a ``VecNormalize`` without running code in their file."""

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.files import DIGEST_SIZE, MARK, check_sum

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
    check_statistics(path)
    try:
        statistics = _StatisticsUnpickler(io.BytesIO(path.read_bytes())).load()
        if not isinstance(statistics, VecNormalize):
            raise TypeError(f"a {type(statistics).__name__}")
        _ = statistics.obs_rms, statistics.clip_obs, statistics.epsilon, statistics.norm_obs
    except Exception as error:  # a changed byte may be taken for any instruction of the pickle
        raise ValueError(_damaged(path, error)) from error
    return statistics


def check_statistics(path: Path) -> None:
    """
    Check that the file of statistics is complete, and that no byte of it changed if it has a checksum: SB3 writes none, our
    extension of RL Zoo does.

    :param path: a file
    :raises ValueError: if it is damaged; nothing of it is unpickled
    """
    content = path.read_bytes()
    try:
        if MARK in content[-len(MARK) - DIGEST_SIZE :]:
            check_sum(io.BytesIO(content), "it", "Take another.")
        for _ in pickletools.genops(content):
            pass  # an incomplete pickle has no end
    except Exception as error:  # as above
        raise ValueError(_damaged(path, error)) from error


def _damaged(path: Path, error: Exception) -> str:
    return (
        f"{path} does not hold the statistics of a VecNormalize, or is damaged ({error}): restore it, or remove it if the "
        "model was trained without."
    )
