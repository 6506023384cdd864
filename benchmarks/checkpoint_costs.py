"""
Measure time and size of checkpoints with a replay buffer of 1M transitions of the quadruped's shape::

    python benchmarks/checkpoint_costs.py --folder /tmp/checkpoints
"""

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
from arguments import at_least, make_folder, output_folder
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd import CeSD
from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.envs.robots.env import RobotEnv

#: Steps of an episode
HORIZON = 1000


def make_env() -> DummyVecEnv:
    """
    Create the environment.

    :return: a single quadruped
    """
    return DummyVecEnv([lambda: RobotEnv("quadruped", "run")])


def fill(model: CeSD, n_steps: int) -> None:
    """
    Add random transitions.

    :param model: a model with a single environment
    :param n_steps: number of transitions
    """
    buffer, rng = model.replay_buffer, np.random.default_rng(model.num_timesteps)
    assert buffer is not None and isinstance(model.plain_space, spaces.Box)
    observations = rng.normal(size=(n_steps + 1, 1, model.obs_dim)).astype(np.float32)
    skills = np.zeros((n_steps + 1, 1, model.n_skills), np.float32)
    skills[:, 0, 3] = 1
    actions = rng.uniform(-1, 1, (n_steps, 1, model.action_dim)).astype(np.float32)
    for idx in range(n_steps):
        obs, following = ({"observation": observations[at], "skill": skills[at]} for at in (idx, idx + 1))
        done = np.array([(model.num_timesteps + idx) % HORIZON == HORIZON - 1])
        buffer.add(obs, following, actions[idx], rng.random(1), done, [{"TimeLimit.truncated": bool(done[0])}])
    model.num_timesteps += n_steps


def size_on_disk(folder: Path, known: set[int]) -> int:
    """
    Sum up the sizes of files, counting hard links once.

    :param folder: a folder
    :param known: inodes of files that were counted before; those of the folder are added
    :return: size [bytes]
    """
    total = 0
    for path in folder.rglob("*"):
        status = path.stat()
        if path.is_file() and status.st_ino not in known:
            known.add(status.st_ino)
            total += status.st_size
    return total


class Timer:
    """Measures wall-clock time, and processor time, which depends little on other work on the machine."""

    def __init__(self) -> None:
        self.start, self.processor_start = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        seconds, processor = time.perf_counter() - self.start, time.process_time() - self.processor_start
        return f"{seconds:.2f} s ({processor:.2f} s of the processor)"


def main() -> None:
    """Write checkpoints, and print their costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=output_folder, default=Path("checkpoint_costs"), help="deleted afterwards")
    parser.add_argument("--n-transitions", type=at_least(1), default=1_000_000, help="size of the replay buffer")
    parser.add_argument("--n-new", type=at_least(1), default=50_000, help="transitions between two checkpoints")
    args = parser.parse_args()
    if args.folder.exists():
        parser.error(f"--folder {args.folder} already exists and would be deleted: pass another one")
    make_folder(parser, args.folder)
    model = CeSD("MlpPolicy", make_env(), buffer_size=args.n_transitions, seed=0, device="cpu")
    callback = ResumableCheckpoint(args.folder, keep=3)
    model.learn(1)
    model.num_timesteps = 0
    callback.init_callback(model)
    callback.update_locals({"callback": callback})
    fill(model, args.n_transitions - 1)
    assert model.replay_buffer is not None
    print(f"Replay buffer: {model.replay_buffer.nbytes / 1e6:.0f} MB")
    known: set[int] = set()
    for name, n_new in (("first", 0), ("full, next", args.n_new), ("full, next", args.n_new)):
        fill(model, n_new)
        timer = Timer()
        callback.write()
        written = str(timer)
        latest = checkpoints_in(args.folder)[-1]
        model_size = (latest / "model.zip").stat().st_size
        new = size_on_disk(latest, known) - model_size
        print(f"{name}: {written}, {new / 1e6:.1f} MB of the buffer written, model {model_size / 1e6:.1f} MB")
    timer = Timer()
    callback_folder = checkpoints_in(args.folder)[-1]
    resume(callback_folder, make_env(), device="cpu")
    print(f"resume: {timer}")
    timer = Timer()
    model.save_replay_buffer(args.folder / "whole")
    print(f"save_replay_buffer: {timer}")
    shutil.rmtree(args.folder)


if __name__ == "__main__":
    main()
