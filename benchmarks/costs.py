"""
Measure the costs of training with the settings of the yml files: processor time of a step and of an update, memory of the
replay buffer, size of a saved model. The processor time of one thread hardly depends on other work on the machine::

    python benchmarks/costs.py --trainings cesd/laptop/Walker-v0 cesd/published/Quadruped-v0
"""

import argparse
import io
import time
from typing import Any, NamedTuple

import gymnasium as gym
import torch as th
from arguments import at_least
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import METHODS, preset
from sb3_cesd.presets import Preset
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.estimate import CostPhase, duration, n_updates_to_come, remaining_time, size

#: Trainings that are measured by default
TRAININGS = (
    "cesd/laptop/MazeSquareA-v0",
    "cesd/laptop/Walker-v0",
    "cesd/laptop/Quadruped-v0",
    "cesd/laptop/Jaco-v0",
    "cesd/laptop/WalkerRun-v0",
    "diayn/laptop/Walker-v0",
    "apt/laptop/Walker-v0",
    "cesd/published/Walker-v0",
    "cesd/published/Quadruped-v0",
    "diayn/published/Walker-v0",
)
#: Environment steps of a measurement, after as many for warm-up; size of the replay buffer
N_STEPS, ROOM = 500, 4000


class Cost(NamedTuple):
    """
    Costs of a training.

    :param step: processor time of an environment step with its action [s]
    :param updates: processor time of an update in each phase, starting with exploration [s]
    :param total: processor time of the whole training, extrapolated [s]
    :param buffer: memory of the full replay buffer [bytes]
    :param files: size of the saved model in each phase [bytes]
    """

    step: float
    updates: list[float]
    total: float
    buffer: int
    files: list[int]


def processor_time(function: Any, repeats: int) -> float:
    """
    Measure the processor time of a call.

    :param function: function to call
    :param repeats: number of calls
    :return: mean time [s]
    """
    start = time.process_time()
    for _ in range(repeats):
        function()
    return (time.process_time() - start) / repeats


def make_model(method: str, settings: Preset, env_id: str) -> SkillDDPG:
    """
    Create a model with a small replay buffer that has collected transitions, but not learned yet.

    :param method: name of the method
    :param settings: its arguments
    :param env_id: id of the environment
    :return: the model
    """
    env = make_vec_env(env_id, settings.n_envs, seed=0)
    arguments = {**settings, "buffer_size": ROOM, "learning_starts": 10 * ROOM, "warm_up": "policy"}
    return METHODS[method]("MlpPolicy", env, seed=0, device="cpu", **arguments).learn(N_STEPS, log_interval=None)


def measure(method: str, scale: str, env_id: str, n_updates: int) -> Cost:
    """
    Measure a training.

    :param method: name of the method
    :param scale: "laptop" or "published"
    :param env_id: id of the environment
    :param n_updates: number of updates that are measured in each phase
    :return: its costs
    """
    settings = preset(scale, env_id, method)  # type: ignore[arg-type]
    model = make_model(method, settings, env_id)
    step = processor_time(lambda: model.learn(N_STEPS, log_interval=None), 1) / N_STEPS
    # As in the middle of the training that is extrapolated
    model._total_timesteps, model.learning_starts = settings.n_timesteps, settings["learning_starts"]
    phases = model.cost_phases()
    updates, files = [], []
    for start in [model.learning_starts, *(phase.start for phase in phases)]:
        model.num_timesteps = start
        model._update_current_progress_remaining(start, settings.n_timesteps)
        model.train(3, model.batch_size)  # from the third update on, all heads have learned
        updates.append(processor_time(lambda: model.train(1, model.batch_size), n_updates))
        file = io.BytesIO()
        model.save(file)
        files.append(len(file.getvalue()))
    assert model.replay_buffer is not None
    buffer = model.replay_buffer.nbytes * settings["buffer_size"] // ROOM
    model.num_timesteps = 0
    n_total = n_updates_to_come(model) or 0
    step_time = updates[0] * n_total / settings.n_timesteps
    known = [CostPhase(phase.start, updates[1] / updates[0], phase.name) for phase in phases]
    total = remaining_time(0, settings.n_timesteps, step_time, known) + step * settings.n_timesteps
    return Cost(step, updates, total, buffer, files)


def main() -> None:
    """Measure trainings and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = [f"{name}/{scale}" for name in METHODS for scale in ("laptop", "published")]
    parser.add_argument("--trainings", nargs="+", default=TRAININGS, metavar="METHOD/SCALE/ENV")
    parser.add_argument("--n-updates", type=at_least(1), default=10, help="updates that are measured in each phase")
    parser.add_argument("--n-threads", type=at_least(1), default=1, help="threads of PyTorch")
    args = parser.parse_args()
    trainings = [text.split("/", 2) for text in args.trainings]
    for text, parts in zip(args.trainings, trainings, strict=True):
        if len(parts) != 3 or "/".join(parts[:2]) not in known or not parts[2]:
            parser.error(f"--trainings {text!r}: pass such as cesd/laptop/Walker-v0, with a method of {', '.join(METHODS)}")
        try:
            gym.spec(parts[2])
        except gym.error.Error as error:
            parser.error(f"--trainings {text!r}: {error} Pass an environment such as Walker-v0")
    th.set_num_threads(args.n_threads)
    print("| training | a step | an update | processor time, extrapolated | replay buffer | saved model |")
    print("|---|---|---|---|---|---|")
    for method, scale, env_id in trainings:
        cost = measure(method, scale, env_id, args.n_updates)
        updates = ", then ".join(f"{update:.2f} s" if update >= 0.2 else f"{1e3 * update:.3g} ms" for update in cost.updates)
        files = ", then ".join(map(size, cost.files))
        row = [
            f"{method}, {scale}, {env_id}",
            f"{1e3 * cost.step:.2g} ms",
            updates,
            duration(cost.total),
            size(cost.buffer),
            files,
        ]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
