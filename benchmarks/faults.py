"""
Test saved files against kill -9, flipped bits and a full disk.

    python benchmarks/faults.py --output benchmarks/results/faults

A process that repeatedly overwrites a model and its replay buffer is killed at random times: afterwards each file must load,
and be one that was saved completely. A training that writes checkpoints is killed as well, and must continue from the latest
one. Then single bits are flipped in copies of the files, which must not load with other content. Finally, files are
overwritten on a disk without room for them. Further sections of the page are kept. Linux only, as it forks and limits memory.
"""

import argparse
import hashlib
import itertools
import multiprocessing
import os
import resource
import signal
import subprocess
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from arguments import at_least, make_folder, output_folder
from runs import versions
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import CeSD
from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.common.files import write_text_whole
from sb3_cesd.export import export_policy, import_policy

#: Saved files by the name of their content
FILES = {"model": "model.zip", "replay buffer": "buffer.pkl", "exported policy": "policy.safetensors"}
OBSERVATIONS = np.linspace(-1, 1, 30, dtype=np.float32).reshape(10, 3)


def make_model() -> CeSD:
    """
    Create a small model that has learned.

    :return: the model
    """
    return CeSD(
        "MlpPolicy",
        make_vec_env("Pendulum-v1", seed=0),
        n_skills=4,
        learning_starts=100,
        batch_size=32,
        buffer_size=20_000,
        policy_kwargs={"net_arch": [128, 128]},
        intrinsic_kwargs={"encoder_kwargs": {"net_arch": [32], "features_dim": 8}},
        seed=0,
        device="cpu",
    ).learn(200)


def save(model: CeSD, folder: Path) -> None:
    """
    Save model, replay buffer and exported policy.

    :param model: the model
    :param folder: folder to write to
    """
    model.save(folder / FILES["model"])
    model.save_replay_buffer(folder / FILES["replay buffer"])
    export_policy(model, folder / FILES["exported policy"])


def content(kind: str, path: Path, model: CeSD) -> str:
    """
    Load a file, and hash its content.

    :param kind: one of :data:`FILES`
    :param path: the file
    :param model: model that loads a replay buffer
    :return: hash of all weights, or of all transitions
    :raises ValueError: if it is damaged
    """
    if kind == "model":
        return _hash(_tensors(CeSD.load(path, device="cpu").get_parameters()))
    if kind == "exported policy":
        policy = import_policy(path)
        return _hash([*_tensors(policy.state_dict()), policy.predict(OBSERVATIONS, skill=1)[0]])
    model.load_replay_buffer(path)
    assert model.replay_buffer is not None
    return _hash(model.replay_buffer._arrays().values())


def _tensors(value: Any) -> Iterator[np.ndarray]:
    """List the values in nested dictionaries and lists."""
    if isinstance(value, th.Tensor):
        yield value.detach().numpy()
    elif isinstance(value, dict):
        for child in value.values():
            yield from _tensors(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _tensors(child)
    else:
        yield np.array(repr(value))


def _hash(arrays: Any) -> str:
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(np.ascontiguousarray(array).tobytes())
    return sha256.hexdigest()


def overwrite_forever(model: CeSD, folder: Path, saved: Any) -> None:
    """
    Save a model that changes every time, until the process is killed.

    :param model: the model
    :param folder: folder to write to
    :param saved: number of saves, shared with another process
    """
    assert model.replay_buffer is not None
    model.replay_buffer.full = True  # all rows are saved
    for count in itertools.count(1):
        with th.no_grad():
            for parameter in model.policy.parameters():
                parameter.fill_(count)
        model.replay_buffer.rewards[:] = count
        save(model, folder)
        saved.value = count


def version_of(kind: str, path: Path, model: CeSD) -> int:
    """
    Find which of the saves of :func:`overwrite_forever` is in a file.

    :param kind: one of :data:`FILES`
    :param path: the file
    :param model: model that loads a replay buffer
    :return: its number
    :raises ValueError: if it is damaged, or a mixture of two
    """
    if kind == "replay buffer":
        model.load_replay_buffer(path)
        assert model.replay_buffer is not None
        numbers = np.unique(model.replay_buffer.rewards)
    else:
        policy = CeSD.load(path, device="cpu").policy if kind == "model" else import_policy(path)
        numbers = np.unique(np.concatenate([value.detach().numpy().ravel() for value in policy.actor.parameters()]))
    if len(numbers) != 1:
        raise ValueError(f"{path} is a mixture of {len(numbers)} numbers.")
    return int(numbers[0])


def kills(n: int, folder: Path, model: CeSD, rng: np.random.Generator) -> Counter[str]:
    """
    Kill a process while it overwrites files.

    :param n: number of kills
    :param folder: folder of the files
    :param model: model to save
    :param rng: random number generator of the times
    :return: how often all files were whole, one was not, and an unfinished one was left
    """
    counts: Counter[str] = Counter()
    processes = multiprocessing.get_context("fork")
    saved = processes.Value("i", 0, lock=False)
    for _ in range(n):
        saved.value = 0
        process = processes.Process(target=overwrite_forever, args=(model, folder, saved), daemon=True)
        process.start()
        while saved.value == 0 and process.is_alive():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.25))
        process.kill()
        process.join()
        counts["left aside"] += any(folder.glob(".*.unfinished"))
        try:
            found = {kind: version_of(kind, folder / name, model) for kind, name in FILES.items()}
        except Exception as error:
            counts["damaged"] += 1
            print(error)
            continue
        # The last round may not have finished
        whole = all(saved.value <= number <= saved.value + 1 for number in found.values())
        counts["whole" if whole else "of another time"] += 1
    return counts


class ToldCheckpoint(ResumableCheckpoint):
    """
    Share the time step of checkpoints with another process.

    :param folder: see ``path`` of the base class
    :param written: time step of the last checkpoint, shared with the other process
    """

    def __init__(self, folder: Path, written: Any) -> None:
        super().__init__(folder, save_freq=4, keep=2)
        self.written = written

    def write(self) -> None:
        super().write()
        self.written.value = self.model.num_timesteps


def train_forever(folder: Path, written: Any) -> None:
    """
    Train with checkpoints, starting from the latest one, until the process is killed.

    :param folder: folder of the checkpoints
    :param written: see :class:`ToldCheckpoint`
    """
    env = make_vec_env("Pendulum-v1", seed=0)
    model = resume(folder, env, device="cpu") if checkpoints_in(folder) else make_model()
    model.learn(10**9, ToldCheckpoint(folder, written), reset_num_timesteps=False)


def checkpoint_kills(n: int, folder: Path, rng: np.random.Generator) -> Counter[str]:
    """
    Kill a process while it trains and writes checkpoints, and resume from the latest.

    :param n: number of kills
    :param folder: folder of the checkpoints
    :param rng: random number generator of the times
    :return: how often the run continued from the last checkpoint that was written, from an earlier one or not at all, and how
        often an unfinished one was left
    """
    counts: Counter[str] = Counter()
    processes = multiprocessing.get_context("fork")
    written = processes.Value("q", 0, lock=False)
    for _ in range(n):
        written.value = 0
        process = processes.Process(target=train_forever, args=(folder, written), daemon=True)
        process.start()
        while written.value == 0 and process.is_alive():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.25))
        process.kill()
        process.join()
        counts["left aside"] += any(folder.glob(".*"))
        try:
            model = resume(folder, make_vec_env("Pendulum-v1", seed=0), device="cpu")
            n_timesteps = model.num_timesteps
            model.learn(10, reset_num_timesteps=False)
        except Exception as error:
            counts["damaged"] += 1
            print(error)
            continue
        goes_on = n_timesteps >= written.value > 0 and model.num_timesteps == n_timesteps + 10
        counts["resumed" if goes_on else "of another time"] += 1
    return counts


def flips(kind: str, n: int, folder: Path, model: CeSD, rng: np.random.Generator) -> Counter[str]:
    """
    Flip single bits of a file.

    :param kind: one of :data:`FILES`
    :param n: number of flips, each in a fresh copy
    :param folder: folder of the file
    :param model: model that loads a replay buffer
    :param rng: random number generator of the bits
    :return: how often a copy was refused with a remedy, refused otherwise, loaded the same, and loaded something else
    """
    path = folder / FILES[kind]
    original, expected = path.read_bytes(), content(kind, path, model)
    copy = folder / f"flipped{path.suffix}"
    counts: Counter[str] = Counter()
    for _ in range(n):
        damaged = bytearray(original)
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        copy.write_bytes(damaged)
        try:
            counts["loaded the same" if content(kind, copy, model) == expected else "loaded something else"] += 1
        except ValueError as error:
            counts["refused" if str(copy) in str(error) else "refused without the name"] += 1
        except Exception as error:
            counts[f"refused by a {type(error).__name__}"] += 1
    copy.unlink()
    return counts


@contextmanager
def small_disk(kibibytes: int) -> Iterator[tuple[Path, str]]:
    """
    Create a disk that is soon full: a tmpfs for the superuser, otherwise a limit on the size of files.

    :param kibibytes: its size, or the limit
    :return: a folder on it, and its kind
    """
    with tempfile.TemporaryDirectory() as name:
        mounted = (
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", name], capture_output=True).returncode
            == 0
        )
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            if not mounted:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (kibibytes * 1024, limits[1]))
            yield Path(name), "tmpfs" if mounted else "RLIMIT_FSIZE"
        finally:
            if mounted:
                subprocess.run(["umount", name], check=True)
            else:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def full_disk(n: int) -> tuple[Counter[str], str]:
    """
    Overwrite files on a disk without room for the new ones.

    :param n: number of tries for each kind of file
    :return: how often the previous file stayed and the error named file and remedy, and the kind of disk
    """
    model, counts = make_model(), Counter[str]()
    assert model.replay_buffer is not None
    model.replay_buffer.full = True  # all rows are saved
    writers: dict[str, Callable[[Path], object]] = {
        "model": model.save,
        "replay buffer": model.save_replay_buffer,
        "exported policy": lambda path: export_policy(model, path),
    }
    with tempfile.TemporaryDirectory() as name:
        save(model, Path(name))
        kibibytes = {kind: (Path(name) / file).stat().st_size // 1024 for kind, file in FILES.items()}
    for kind, attempt in itertools.product(FILES, range(n)):
        # Room for the previous file, and for a part of the new one, in pages of 4 KiB
        with small_disk(4 + kibibytes[kind] * attempt // n // 4 * 4) as (folder, disk):
            path = folder / FILES[kind]
            path.write_bytes(b"previous")
            try:
                writers[kind](path)
                counts["there was room"] += 1
            except OSError as error:
                named = str(path) in str(error) and "free some space" in str(error)
                kept = path.read_bytes() == b"previous" and not any(folder.glob(".*"))
                counts["kept and named" if named and kept else f"lost or obscure: {error}"] += 1
    return counts, disk


def report(args: argparse.Namespace, rows: dict[str, Counter[str]], disk: str, seconds: float) -> str:
    """
    Write the page of results.

    :param args: arguments of the command
    :param rows: counts of each trial
    :param disk: kind of the full disk
    :param seconds: duration [s]
    :return: the page
    """
    here = versions()
    lines = [
        "# Saved files against faults",
        "",
        "    "
        + f"python benchmarks/faults.py --kills {args.kills} --flips {args.flips} --full {args.full} --seed {args.seed}",
        "",
        "| Trial | Tries | Outcome |",
        "| --- | ---: | --- |",
    ]
    for trial, counts in rows.items():
        tries = counts.total() - counts["left aside"]
        outcome = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count)
        lines.append(f"| {trial} | {tries} | {outcome} |")
    lines += [
        "",
        "- *whole*: each of model, replay buffer and exported policy loads, and is the last one or the one before.",
        "- *resumed*: the run continued from the last checkpoint that it had written, or from the one it was writing.",
        "- *left aside*: an unfinished file lay beside them, which the next save deletes.",
        "- *refused*: by a ValueError that names the file and the remedy.",
        "- *loaded the same*: zip does not use the bit (a date, say), and all weights are as before.",
        "- *kept and named*: the previous file stayed, and the error names file and remedy.",
        "",
        f"The disk was of the kind {disk}.",
        "",
        f"{os.cpu_count()} cores of {here['processor']}, {seconds:.0f} s; "
        + ", ".join(f"{name} {value}" for name, value in here.items() if name != "processor")
        + ".",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=at_least(0), default=200, help="processes that are killed while they save")
    parser.add_argument("--flips", type=at_least(0), default=200, help="flipped bits per kind of file")
    parser.add_argument("--full", type=at_least(1), default=10, help="full disks per kind of file")
    parser.add_argument("--seed", type=at_least(0), default=0)
    parser.add_argument("--output", type=output_folder, default=Path("results/faults"), help="folder of the page")
    args = parser.parse_args()
    make_folder(parser, args.output)
    th.set_num_threads(1)
    warnings.simplefilter("ignore")
    rng, start = np.random.default_rng(args.seed), time.perf_counter()
    rows: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        model = make_model()
        rows["kill -9 while overwriting"] = kills(args.kills, Path(name), model, rng)
        rows["kill -9 while writing checkpoints"] = checkpoint_kills(args.kills, Path(name) / "checkpoints", rng)
        save(model, Path(name))
        for kind in FILES:
            rows[f"one bit of a {kind}".replace("a ex", "an ex")] = flips(kind, args.flips, Path(name), model, rng)
    rows["full disk"], disk = full_disk(args.full)
    text = report(args, rows, disk, time.perf_counter() - start)
    page = args.output / "README.md"
    _, mark, others = page.read_text(encoding="utf-8").partition("\n## ") if page.is_file() else ("", "", "")
    write_text_whole(page, text + mark + others)
    print(text)


if __name__ == "__main__":
    main()
