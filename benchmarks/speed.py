"""
Measure the speed of updates, environments and whole trainings, memory, and the costs of trainings with the settings of the
yml files.

    python benchmarks/speed.py                                        # everything, about 30 minutes on 2 quiet cores
    python benchmarks/speed.py --parts update --sizes published --threads 1 --repeats 9
    python benchmarks/speed.py --parts update --sizes 4x1024x1024 16x1024x1024 64x1024x1024   # skills x batch x width
    python benchmarks/speed.py --parts costs --trainings cesd/laptop/Walker-v0
    python benchmarks/speed.py --parts pictures --threads 1           # beside SB3's SAC
    python benchmarks/speed.py --parts update training memory --device cuda

Compared variants take turns in one process, so that a slow moment of the machine affects all alike; medians are reported.
Writes ``speed.csv`` and ``speed.md`` to ``results/speed``; parts that are not measured now keep their figures.
"""

import argparse
import io
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd
import torch as th
from costs import measure_costs as measure_training_costs
from dense_reference import DenseCeSD, ReleasedCeSD
from gymnasium import spaces
from maze_methods import with_defaults
from runs import positive, processor, read_rows, versions, write_rows, write_text_whole
from sb3_contrib import TQC
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack
from urlb_methods import HORIZONS

from sb3_cesd import METHODS, CeSD, make_batched, preset
from sb3_cesd.common.arguments import merge
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import skill_observation_space
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.skill_ddpg.images import ImageEncoder

#: A measurement: ``part``, ``setting``, ``threads`` and ``variant``; ``value`` and ``unit``; and ``ratio``, how many times
#: better (faster, smaller) it is than the ``reference``
Figure = dict[str, Any]
#: Name -> skills, transitions of a batch, and width of the networks
SIZES = {"published": (16, 1024, 1024), "small": (8, 256, 256)}
#: Sizes of observations and actions
ROBOTS = {"walker": (24, 6), "quadruped": (78, 12)}
#: Phase of CeSD -> environment step at which its constraint starts
PHASES = {"exploring": 10**9, "constrained": 0}
#: Calls before those that are timed: a CUDA graph is captured in the last of them
N_WARM_UP = 4
#: Transitions in the replay buffer, and environment steps before training is timed
N_TRANSITIONS, WARM_UP = 5000, 300
#: Sides of pictures [pixel] and sizes of batches
PICTURES = ((48, 128), (84, 256))
TRAININGS = (
    "cesd/laptop/MazeSquareA-v0", "cesd/laptop/Walker-v0", "cesd/laptop/Quadruped-v0", "cesd/laptop/Jaco-v0",
    "cesd/laptop/WalkerRun-v0", "diayn/laptop/Walker-v0", "apt/laptop/Walker-v0",
    "cesd/published/Walker-v0", "cesd/published/Quadruped-v0", "diayn/published/Walker-v0",
)  # fmt: skip


class RandomWalk(gym.Env):
    """A cheap environment with the sizes of a robot, for timing updates without a simulation."""

    def __init__(self, robot: str) -> None:
        obs_dim, action_dim = ROBOTS[robot]
        self.observation_space = spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32)
        self.action_space = spaces.Box(-1, 1, (action_dim,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.position = self.np_random.normal(size=self.observation_space.shape)
        return self.position.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        # It stays near the origin
        self.position = 0.995 * self.position + 0.1 * self.np_random.normal(size=self.position.shape)
        return self.position.astype(np.float32), 0.0, False, False, {}


class Form(NamedTuple):
    """
    A way to compute an update.

    :param model_class: the algorithm
    :param start: environment step at which the constraint starts; ``None`` for the released setting, the only one with a
        dense form
    :param cuda_graph: whether an update is a graph, which needs a GPU
    """

    model_class: type[CeSD] = CeSD
    start: int | None = None
    cuda_graph: bool = False


REFERENCE = "dense"
FORMS = {
    "routed": Form(),
    "dense": Form(DenseCeSD),
    "released": Form(ReleasedCeSD),
    "routed, cuda_graph": Form(cuda_graph=True),
    "default, exploring": Form(start=PHASES["exploring"]),
    "default, constrained": Form(start=PHASES["constrained"]),
    "default, constrained, cuda_graph": Form(start=PHASES["constrained"], cuda_graph=True),
}


def medians_in_turn(
    functions: dict[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> Any:
    """Time functions in turn; return the median milliseconds of a call by name."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for repeat in range(-N_WARM_UP, repeats):
        for name, function in functions.items():
            start = clock()
            function()
            if repeat >= 0:
                seconds[name].append(clock() - start)
    return {name: 1000 * statistics.median(values) for name, values in seconds.items()}


def figures(part: str, setting: str, threads: int, values: dict[str, float], unit: str, reference: str) -> list[Figure]:
    """Make a figure of each variant; larger is better for steps per second alone."""
    common = {"part": part, "setting": setting, "threads": threads, "unit": unit, "reference": reference}
    better = [value / values[reference] for value in values.values()]
    ratios = better if unit == "steps/s" else [1 / ratio for ratio in better]
    return [
        {**common, "variant": variant, "value": value, "ratio": ratio}
        for (variant, value), ratio in zip(values.items(), ratios, strict=True)
    ]


def make_model(form: Form, robot: str, device: str, size: tuple[int, int, int]) -> CeSD:
    """Create a model that is about to learn, with transitions in its replay buffer."""
    n_skills, batch_size, width = size
    of_reward = preset("published", "Quadruped-v0", "cesd_released")["intrinsic_kwargs"] if form.start is None else {}
    own: dict[str, Any] = {"encoder_kwargs": {"net_arch": [width, width]}, "entropy_kwargs": {"k": 16}}
    model = form.model_class(
        "MlpPolicy",
        RandomWalk(robot),
        n_skills=n_skills,
        skill_duration=1,
        learning_starts=N_TRANSITIONS,
        buffer_size=N_TRANSITIONS,
        batch_size=batch_size,
        policy_kwargs={
            "net_arch": {"pi": [width, width], "qf": [width // 2, width]},
            "optimizer_kwargs": {} if form.model_class is ReleasedCeSD else None,
            "shared_value": form.start is not None,
        },
        intrinsic_kwargs=merge(of_reward, own if form.start is None else {**own, "constraint_kwargs": {"start": form.start}}),
        seed=0,
        device=device,
        cuda_graph=form.cuda_graph,
    )
    return model.learn(N_TRANSITIONS, log_interval=None)  # type: ignore[arg-type]


def update_of(model: Any) -> Callable[[], None]:
    """Make a function that does one update and waits for it."""

    def update() -> None:
        model.train(gradient_steps=1, batch_size=model.batch_size)
        if model.device.type == "cuda":
            th.cuda.synchronize(model.device)

    return update


def measure_updates(args: argparse.Namespace) -> list[Figure]:
    """Time a whole update in each form."""
    forms = {name: form for name, form in FORMS.items() if not form.cuda_graph or args.device.startswith("cuda")}
    found = []
    for size in args.sizes:
        updates = {name: update_of(make_model(form, args.robot, args.device, size_of(size))) for name, form in forms.items()}
        for threads in args.threads:
            th.set_num_threads(threads)
            medians = medians_in_turn(updates, args.repeats)
            found += figures("update", f"{args.robot}, {size}", threads, medians, "ms", REFERENCE)
    return found


def measure_methods(args: argparse.Namespace) -> list[Figure]:
    """Time an update of each method with its yml file, and of the same model with the reward of the environment."""
    th.set_num_threads(1)
    found = []
    for scale in ("published", "laptop"):
        for name in args.methods:
            models = {}
            for reward in ("extrinsic", "intrinsic"):
                own = {"skill_duration": 10, "learning_starts": 2000, "buffer_size": 2000, "reward": reward}
                settings = {**preset(scale, f"{args.robot.capitalize()}-v0", name), **own}  # type: ignore[arg-type]
                model = METHODS[name]("MlpPolicy", RandomWalk(args.robot), seed=0, device="cpu", **settings)
                models[reward] = update_of(model.learn(2000, log_interval=None))  # type: ignore[arg-type]
            medians = medians_in_turn(models, args.repeats, time.process_time)
            found += figures("methods", f"{args.robot}, {scale}, {name}", 1, medians, "ms", "extrinsic")
    return found


def measure_envs(args: argparse.Namespace) -> list[Figure]:
    """Step batched environments, and SB3's DummyVecEnv with 8 single ones; episodes start as often as they would."""
    found = []
    for env_id, horizon in HORIZONS.items():
        envs: dict[tuple[str, int], VecEnv] = {("single", 1): make_vec_env(env_id, 8, seed=0)}
        for n_envs in args.n_envs:
            for threads in (threads for threads in args.threads if threads <= n_envs):
                envs[f"batch of {n_envs}", threads] = make_batched(env_id, n_envs, 0, threads)
        rng = np.random.default_rng(0)
        seconds: dict[tuple[str, int], list[float]] = {name: [] for name in envs}
        for _ in range(args.repeats):
            for name, env in envs.items():
                # No episode ends within a turn
                shape = (min(horizon - 1, args.env_steps // env.num_envs + 1), env.num_envs, get_action_dim(env.action_space))
                actions = rng.uniform(-1, 1, shape).astype(np.float32)
                times = [time.perf_counter()]
                env.reset()
                times.append(time.perf_counter())
                for action in actions:
                    env.step(action)
                times.append(time.perf_counter())
                start, stepping = np.diff(times) / env.num_envs
                seconds[name].append(stepping / len(actions) + start / horizon)
        speeds = {name: 1 / statistics.median(values) for name, values in seconds.items()}
        for (variant, threads), speed in speeds.items():
            both = {"single": speeds["single", 1], variant: speed}
            found.append(figures("envs", env_id, threads, both, "steps/s", "single")[-1])
        for env in envs.values():
            env.close()
    return found


def measure_training(args: argparse.Namespace) -> list[Figure]:
    """Train CeSD in each phase, SB3's TD3 and sb3_contrib's TQC with equal networks, batches and updates per step."""
    found = []
    for scale in args.training_sizes:
        for threads in args.threads:
            th.set_num_threads(threads)
            room = WARM_UP + args.training_steps * (args.repeats + N_WARM_UP + 1)
            common = {"buffer_size": room, "learning_starts": WARM_UP, "train_freq": 2, "seed": 0, "device": args.device}
            settings = merge(preset(scale, "Walker-v0"), common)
            models: dict[str, OffPolicyAlgorithm] = {}
            for phase, start in PHASES.items():
                own = {"intrinsic_kwargs": {"constraint_kwargs": {"start": start, "freeze_clusters": False}}}
                for graph in (False, True) if args.device.startswith("cuda") else (False,):
                    name = f"CeSD, {phase}{', cuda_graph' if graph else ''}"
                    models[name] = CeSD("MlpPolicy", "Walker-v0", cuda_graph=graph, **merge(settings, own))
            cesd: Any = models["CeSD, exploring"]
            shared: dict[str, Any] = {**common, "batch_size": cesd.batch_size, "gradient_steps": 1, "n_steps": 3}
            shared["policy_kwargs"] = {"net_arch": cesd.policy.actor_arch}
            # Every update is for actor and critic, as in CeSD
            models["TD3"] = TD3("MlpPolicy", "Walker-v0", policy_delay=1, **shared)
            models["TQC"] = TQC("MlpPolicy", "Walker-v0", **shared)
            turns = {name: learn_of(model, args.training_steps) for name, model in models.items()}
            medians = medians_in_turn(turns, args.repeats)
            speeds = {name: 1000 * args.training_steps / median for name, median in medians.items()}
            found += figures("training", f"Walker-v0, {scale}", threads, speeds, "steps/s", "TD3")
    return found


def learn_of(model: OffPolicyAlgorithm, n_steps: int) -> Callable[[], Any]:
    """Make a function that trains a model for a turn, after its warm-up."""
    model.learn(WARM_UP, log_interval=None)  # type: ignore[arg-type]
    return lambda: model.learn(n_steps, reset_num_timesteps=False, log_interval=None)  # type: ignore[arg-type]


def peak_memory(device: str) -> float:
    """Return the peak memory of this process, or of the GPU [bytes]."""
    if device.startswith("cuda"):
        return float(th.cuda.max_memory_allocated(device))
    # Unlike that of getrusage, it does not start with the peak of the parent
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return float(line.split()[1]) * 1024


def measure_memory(args: argparse.Namespace) -> list[Figure]:
    """Measure the peak memory of an update in each form, in its own process, and of replay buffers (Linux)."""
    found = []
    for size in args.sizes:
        peaks = {}
        for form in ("routed", REFERENCE, "released", "default, constrained"):
            command = [sys.executable, __file__, "--peak", form, size, "--robot", args.robot, "--device", args.device]
            peaks[form] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1e9
        found += figures("memory", f"{args.robot}, {size}: model and update", 1, peaks, "GB", REFERENCE)
    obs_dim, action_dim = ROBOTS[args.robot]
    n, skills = 1_000_000, DiscreteSkills(16)
    observations = skill_observation_space(spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32), skills)
    actions = spaces.Box(-1, 1, (action_dim,), np.float32)
    ours = SkillReplayBuffer(n, observations, actions, "cpu", skill_space=skills)
    theirs = NStepReplayBuffer(n, spaces.flatten_space(observations), actions, "cpu", n_steps=3)
    arrays = (theirs.observations, theirs.next_observations, theirs.actions, theirs.rewards, theirs.dones, theirs.timeouts)
    reference = "SB3's NStepReplayBuffer with one-hots"
    sizes = {"SkillReplayBuffer": ours.nbytes / 1e9, reference: sum(array.nbytes for array in arrays) / 1e9}
    return found + figures("memory", f"{args.robot}, {n} transitions", 1, sizes, "GB", reference)


def measure_costs(args: argparse.Namespace) -> list[Figure]:
    """
    Measure the processor time of a step and of an update, the memory of the replay buffer and the size of a saved model, with
    the settings of the yml files. The first update explores, the last one of a constrained method is constrained.
    """
    th.set_num_threads(args.threads[0])
    found = []
    for training in args.trainings:
        name, scale, env_id = training.split("/", 2)
        settings = preset(scale, env_id, name)  # type: ignore[arg-type]
        settings.update(with_defaults(name, settings))
        env = make_vec_env(env_id, settings.n_envs, seed=0)
        model, seconds = measure_training_costs(METHODS[name], env, settings, settings.n_timesteps, 500, args.repeats)
        timed = {"a step": seconds.step, "the first update": seconds.first, "the last update": seconds.last}
        costs = {f"{what} [ms]": 1000 * value for what, value in timed.items()}
        assert model.replay_buffer is not None
        costs["replay buffer [MB]"] = model.replay_buffer.nbytes / 4000 * settings["buffer_size"] / 1e6
        file = io.BytesIO()
        model.save(file)
        costs["saved model [MB]"] = len(file.getvalue()) / 1e6
        common = {"part": "costs", "setting": training.replace("/", ", "), "threads": args.threads[0], "ratio": 1.0}
        found += [{**common, "variant": what, "value": value, "unit": "", "reference": what} for what, value in costs.items()]
    return found


class SameConvolutions(BaseFeaturesExtractor):
    """The encoder of ``CnnPolicy`` for SB3's algorithms."""

    def __init__(self, observation_space: spaces.Box) -> None:
        encoder = ImageEncoder(observation_space)
        super().__init__(observation_space, encoder.features_dim)
        self.forward = encoder.forward  # type: ignore[method-assign]
        self.encoder = encoder


def measure_pictures(args: argparse.Namespace) -> list[Figure]:
    """Compare updates from pictures of a walker with those of SB3's SAC, in processor time."""
    th.set_num_threads(args.threads[0])
    found, reference = [], "SAC, the same convolutions"
    same = {"features_extractor_class": SameConvolutions, "normalize_images": False}
    for side, batch_size in PICTURES:
        env = VecFrameStack(make_vec_env("WalkerPixels-v0", env_kwargs={"image_size": side}), 3)
        common: dict[str, Any] = {"buffer_size": 1000, "learning_starts": 40_000, "batch_size": batch_size, "device": "cpu"}
        models: dict[str, Any] = {
            reference: SAC("CnnPolicy", env, policy_kwargs=same, **common),
            "SAC, NatureCNN": SAC("CnnPolicy", env, **common),
            "DIAYN": METHODS["diayn"]("CnnPolicy", env, **common),
            "APT": METHODS["apt"]("CnnPolicy", env, **common),
        }
        for phase, start in PHASES.items():
            own = {"constraint_kwargs": {"start": start}}
            models[f"CeSD, {phase}"] = CeSD("CnnPolicy", env, intrinsic_kwargs=own, **common)
        for model in models.values():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # nothing is learned
                model.learn(WARM_UP)
            model.learning_starts = 0
        updates: dict[str, Any] = {name: partial(model.train, 1, batch_size) for name, model in models.items()}
        medians = medians_in_turn(updates, args.repeats, time.process_time)
        setting = f"3 x {side}x{side}x3, batch {batch_size}"
        found += figures("pictures", setting, args.threads[0], medians, "ms", reference)
    return found


PARTS: dict[str, tuple[str, Callable[[argparse.Namespace], list[Figure]]]] = {
    "update": ("A whole update", measure_updates),
    "methods": ("Updates of all methods", measure_methods),
    "envs": ("Steps of environments", measure_envs),
    "training": ("Training from end to end", measure_training),
    "memory": ("Memory", measure_memory),
    "costs": ("Costs of trainings", measure_costs),
    "pictures": ("Updates from pictures", measure_pictures),
}
#: Titles of parts, with those that only older rows have
TITLES = {
    **{part: title for part, (title, _) in PARTS.items()},
    "breakdown": "Where the time of an update goes",
    "scaling": "Cost against number of skills and batch size",
}


def markdown(rows: pd.DataFrame) -> str:
    """Tabulate figures, a table per part and device."""
    lines = []
    for part, title in TITLES.items():
        for device, of_part in rows[rows.part == part].groupby("device"):
            lines += [f"## {title}, {device}", "", f"{of_part.machine.iloc[0]}. `{of_part.command.iloc[0]}`", ""]
            lines += ["| | threads | | | compared |", "|---|---|---|---|---|"]
            for row in of_part.fillna("").itertuples():
                value = f"{row.value:.0f}" if row.value >= 100 else f"{row.value:.3g}"
                ratio = f"{row.ratio:.2f} times {row.reference}" if row.variant != row.reference else ""
                lines.append(f"| {row.setting} | {row.threads} | {row.variant} | {value} {row.unit} | {ratio} |")
            lines.append("")
    return "\n".join(lines)


def size_of(text: str) -> tuple[int, int, int]:
    """Return skills, transitions of a batch and width of a size: one of :data:`SIZES`, or such as ``16x1024x1024``."""
    n_skills, batch_size, width = SIZES.get(text) or map(int, text.split("x"))
    return n_skills, batch_size, width


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), help="of the part methods")
    parser.add_argument("--robot", choices=ROBOTS, default="quadruped")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), help=f"{', '.join(SIZES)}, or such as 16x1024x1024")
    parser.add_argument("--training-sizes", nargs="+", choices=["laptop", "published"], default=["laptop"])
    parser.add_argument("--trainings", nargs="+", default=TRAININGS, metavar="METHOD/SCALE/ENV", help="of the part costs")
    parser.add_argument("--threads", nargs="+", type=positive, default=sorted({1, n_cores}))
    parser.add_argument("--repeats", type=positive, default=7, help="timed turns of each variant")
    parser.add_argument("--device", default="cpu", help="device of the models: cpu or cuda")
    parser.add_argument("--n-envs", nargs="+", type=positive, default=[8, 32], help="numbers of environments in a batch")
    parser.add_argument("--env-steps", type=positive, default=2000, help="steps per turn, of all environments together")
    parser.add_argument("--training-steps", type=positive, default=400, help="environment steps per turn of training")
    parser.add_argument("--output", type=Path, default=Path("results/speed"), help="folder of the results")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        form, size = args.peak
        before = peak_memory(args.device)
        update = update_of(make_model(FORMS[form], args.robot, args.device, size_of(size)))
        for _ in range(5):
            update()
        print(peak_memory(args.device) - before)
        return
    args.output.mkdir(parents=True, exist_ok=True)
    gpu = f", {th.cuda.get_device_name(args.device)}" if args.device.startswith("cuda") else ""
    machine = f"{processor()}, {n_cores} cores, load {os.getloadavg()[0]:.1f} at the start{gpu}"
    command = " ".join(["python", "benchmarks/speed.py", *sys.argv[1:]])
    about = {"machine": machine, "device": args.device, "command": command, "versions": str(versions())}
    path = args.output / "speed.csv"
    for part in args.parts:
        rows, others = pd.DataFrame(PARTS[part][1](args)).assign(**about), read_rows(path)
        if len(others):
            others = others[(others.part != part) | (others.device != args.device)]
        write_rows(path, pd.concat([others, rows], ignore_index=True))
        print(markdown(rows), flush=True)
    write_text_whole(args.output / "speed.md", "# Speed\n\n" + markdown(read_rows(path)))


if __name__ == "__main__":
    main()
