"""One run of the benchmark of robots: pre-train skills without a reward, or learn a task from them."""

import json
import re
import shutil
import time
import warnings
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from runs import Row, visited_observations
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv
from urlb_methods import METHODS

from sb3_cesd import make_batched, registry
from sb3_cesd.checkpoints import ResumableCheckpoint, checkpoints_in, remaining_timesteps, resume
from sb3_cesd.common.files import written_whole
from sb3_cesd.envs.registration import LOCOMOTION
from sb3_cesd.metrics import (
    TrainingCoverage,
    draw_goals,
    env_positions,
    measure_motion,
    particle_entropy,
    play_and_measure,
    play_and_score,
    policy_coverage,
    score_best_skills,
    task_returns,
    zero_shot_goals,
)
from sb3_cesd.metrics.summary import ARM_BIN, ROBOT_BIN
from sb3_cesd.skill_ddpg import SkillDDPG

N_ROLLOUTS, N_STEPS = 8, 250
#: Number of states of training for the particle entropy
N_PARTICLES = 2000
#: Points of the curves of coverage
N_CURVE = 20
#: Environment steps between two checkpoints
SAVE_FREQ = 10_000
#: Offsets of the seed of a run for its evaluation, and for each repetition of its task
OF_EVALUATION, OF_REPEAT = 10_000, 100_000
#: Arguments that a task keeps from its pre-trained model
FIXED = (
    "policy", "policy_kwargs", "n_skills", "skill_duration", "skill_type", "skill_dim", "ent_coef", "reward",
    "intrinsic_kwargs",
)  # fmt: skip


def model_file(folder: Path, run: Row, n_timesteps: int) -> Path:
    """Return the file of a pre-trained model."""
    return folder / f"{run['method']}_{run['domain']}_{run['scale']}_{run['seed']}_{n_timesteps}.zip"


def settings(model: SkillDDPG) -> Row:
    """Return the settings of a model that have columns of their own."""
    return {
        "n_skills": model.n_skills,
        "batch_size": model.batch_size,
        "net_arch": json.dumps(model.policy.net_arch),
        "learning_rate": model.lr_schedule(1.0),
        "n_updates": model._n_updates,
        "n_envs": model.n_envs,
        "device": th.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type,
    }


def on_device(device: str) -> Row:
    """Choose how updates are computed; on a GPU an update is one graph."""
    return {"device": device, "cuda_graph": th.device(device).type == "cuda"}


def make_envs(env_id: str, n_envs: int, n_threads: int, seed: int | None = None) -> VecEnv:
    """Make environments, which are batched if they can be."""
    if env_id in LOCOMOTION:
        return make_vec_env(env_id, n_envs, seed=seed)
    return make_batched(env_id, n_envs, seed=seed, n_threads=n_threads)


class Clock(BaseCallback):
    """How long a run takes, also if it is stopped and continued."""

    def __init__(self) -> None:
        super().__init__()
        self.start = time.perf_counter()

    def _on_step(self) -> bool:
        return True

    def get_state(self) -> float:
        """Return the duration so far, for a checkpoint."""
        return time.perf_counter() - self.start

    def set_state(self, state: float) -> None:
        """Continue from the duration of a checkpoint."""
        self.start = time.perf_counter() - state


def learn(
    folder: Path, make_model: Callable[[], SkillDDPG], env: VecEnv | str, device: str, n_timesteps: int, callback: BaseCallback
) -> tuple[SkillDDPG, float]:
    """Learn from the beginning, or from the checkpoint in a folder; return the model, and how long it took in all [s]."""
    begun = len(checkpoints_in(folder)) > 0
    model = resume(folder, env, device=device) if begun else make_model()
    clock = Clock()
    callbacks = CallbackList([callback, clock, ResumableCheckpoint(folder, SAVE_FREQ, keep=1)])
    n_timesteps = remaining_timesteps(model) if begun else n_timesteps
    model.learn(n_timesteps, callbacks, log_interval=None, reset_num_timesteps=not begun)  # type: ignore[arg-type]
    return model, round(clock.get_state(), 1)


class Training(BaseCallback):
    """
    Saves the model at some steps, and records coverage.

    :param files: step -> file of the model
    :param in_hand: whether the robot is an arm, whose coverage is that of its hand
    :param every: environment steps between two points of the curves of coverage
    """

    def __init__(self, files: dict[int, Path], in_hand: bool, every: int) -> None:
        super().__init__()
        self.files = dict(sorted(files.items()))
        self.n_coordinates = 3 if in_hand else 2
        self.every = every
        self.coverage = TrainingCoverage(ARM_BIN if in_hand else ROBOT_BIN)
        #: Column of the row -> its value at each point
        self.curves: dict[str, list[int]] = {"coverage_steps": [], "total_coverage_curve": [], "queue_coverage_curve": []}

    def _on_step(self) -> bool:
        self.coverage.add(env_positions(self.training_env)[:, : self.n_coordinates])
        if self.num_timesteps // self.every > len(self.curves["coverage_steps"]):
            point = self.num_timesteps, self.coverage.total, self.coverage.queue
            for values, value in zip(self.curves.values(), point, strict=True):
                values.append(value)
        for n_timesteps in [step for step in self.files if step <= self.num_timesteps]:
            self.model.save(self.files.pop(n_timesteps))
        return True

    def get_state(self) -> Any:
        """Return what was recorded, for a checkpoint."""
        return self.coverage, self.curves, list(self.files)

    def set_state(self, state: Any) -> None:
        """Continue from a checkpoint."""
        self.coverage, self.curves, left = state
        self.files = {step: self.files[step] for step in left}


def pretrain(
    run: Row,
    models: Path,
    save_at: Collection[int] = (),
    n_task_episodes: int = 10,
    device: str = "cpu",
    n_env_threads: int = 1,
) -> Row:
    """
    Learn skills without a reward, then measure them.

    :param run: the columns of :data:`~urlb_methods.OF_PRETRAINING`
    :param models: folder of the models
    :param save_at: steps at which the model is saved before the end
    :param n_task_episodes: episodes per skill and task; the first half chooses the best skill, the second half measures it
    :param device: device of the model
    :param n_env_threads: threads that step the environments
    :return: the other columns of the row
    """
    th.set_num_threads(1)
    method, n_timesteps, domain = METHODS[run["method"]], run["pretrain_steps"], run["domain"]
    arguments = method.arguments(run["scale"], domain)
    used = json.dumps(arguments)
    arguments["buffer_size"] = min(int(arguments["buffer_size"]), n_timesteps)
    env = domain if run["n_envs"] == 1 else make_envs(domain, run["n_envs"], n_env_threads)
    make_model = partial(registry.METHODS[method.algo], "MlpPolicy", env, seed=run["seed"], **on_device(device), **arguments)
    file = model_file(models, run, n_timesteps)
    files = {step: model_file(models, run, step) for step in save_at if step < n_timesteps}
    training = Training(files, in_hand=domain == "Jaco-v0", every=max(1, n_timesteps // N_CURVE))
    folder = file.with_suffix(".checkpoints")
    model, seconds = learn(folder, make_model, env, device, n_timesteps, training)
    model.save(file)
    measures = measure(model, domain, n_task_episodes, n_env_threads)
    shutil.rmtree(folder, ignore_errors=True)
    curves = {column: json.dumps(values) for column, values in training.curves.items()}
    coverage = {"total_coverage": training.coverage.total, "queue_coverage": training.coverage.queue}
    return {"seconds": seconds, **settings(model), **measures, **coverage, **curves, "arguments": used}


def measure(model: SkillDDPG, domain: str, n_task_episodes: int, n_env_threads: int) -> Row:
    """
    Measure the skills of a pre-trained model.

    :param model: the model, with its replay buffer
    :param domain: its environment
    :param n_task_episodes: see :func:`pretrain`
    :param n_env_threads: see :func:`pretrain`
    :return: metrics by name; as JSON lists over skills ``moves``, ``<part>_speeds`` and ``<task>_returns``; ``random_speeds``
        of random actions; ``best_skill_<task>``, the score of the best skill without training; of METRA's robots
        ``policy_coverage_48`` and the metrics of goals; ``training_entropy``, the particle entropy of training's observations
    """
    env = make_envs(domain, N_ROLLOUTS, n_env_threads)
    metrics, rollouts = play_and_measure(
        model, env, n_rollouts=N_ROLLOUTS, n_steps=N_STEPS, noise_std=model.exploration_noise, seed=0
    )
    motion = measure_motion(env, rollouts)
    of_skills = {"moves": json.dumps(motion.moves.astype(int).tolist())}
    of_skills |= {f"{part}_speeds": json.dumps(speeds.round(4).tolist()) for part, speeds in motion.speeds.items()}
    of_skills["random_speeds"] = json.dumps({part: round(speed, 4) for part, speed in motion.random_speeds.items()})
    score, _ = play_and_score(model, env)
    metrics |= {name: score[name] for name in ("skill_score", "coarse_coverage")}
    if domain in LOCOMOTION:
        metrics["policy_coverage_48"] = policy_coverage(model, env)
        metrics |= zero_shot_goals(model, env, draw_goals(env)).metrics()
    else:
        returns = task_returns(model, domain, n_task_episodes, n_threads=n_env_threads)
        metrics |= {**score_best_skills(returns, domain), "best_skill_episodes": n_task_episodes}
        of_skills |= {
            f"{task}_returns": json.dumps(of_task.mean(axis=1).round(1).tolist()) for task, of_task in returns.items()
        }
    env.close()
    assert model.replay_buffer is not None
    observations = visited_observations(model.replay_buffer)
    chosen = np.random.default_rng(0).choice(len(observations), min(N_PARTICLES, len(observations)), replace=False)
    return {**metrics, **of_skills, "training_entropy": particle_entropy(observations[chosen])}


def learn_task(run: Row, models: Path, evaluations: Path, device: str = "cpu", n_env_threads: int = 1) -> Row:
    """
    Learn a task, from skills or from scratch.

    :param run: the columns of :data:`~urlb_methods.OF_TASK`
    :param models: folder of the pre-trained models
    :param evaluations: folder for the returns of all evaluation episodes (``evaluations.npz``, as SB3's EvalCallback writes)
    :param device: device of the model
    :param n_env_threads: threads that step the environments of evaluations
    :return: ``steps`` and ``returns`` of the evaluations (means, as JSON), ``final_return``, and settings; ``chosen_by``, how
        the skill was chosen in the warm-up, 0 if it was known before
    """
    th.set_num_threads(1)
    method, task = METHODS[run["method"]], run["task"]
    folder = evaluations / re.sub(r'[{}": ]', "", "_".join(str(value) for value in run.values()))
    seed, n_episodes = run["seed"] + OF_REPEAT * run["repeat"], run["n_eval_episodes"]
    eval_env = make_batched(task, n_episodes, seed=OF_EVALUATION + seed, n_threads=n_env_threads)
    if run["method"] == "random":
        return random_returns(eval_env, n_episodes, seed, run["finetune_steps"], folder)
    arguments = method.arguments(run["scale"], task)
    arguments |= json.loads(run["task_params"]) if run["task_params"] else {}
    arguments["buffer_size"] = min(int(arguments["buffer_size"]), run["finetune_steps"])
    model_class = registry.METHODS[method.algo]
    if method.pretrained:
        arguments = {name: value for name, value in arguments.items() if name not in FIXED} | {"warm_up": run["warm_up"]}
        make_model = partial(
            model_class.from_pretrained,
            model_file(models, run, run["pretrain_steps"]),
            task,
            run["skill_choice"],
            run["transfer"].split("+"),
            seed=seed,
            **on_device(device),
            **arguments,
        )
    else:
        make_model = partial(model_class, "MlpPolicy", task, seed=seed, **on_device(device), **arguments)
    callback = EvalCallback(
        eval_env, n_eval_episodes=n_episodes, eval_freq=run["eval_freq"], log_path=str(folder), verbose=0, warn=False
    )
    with warnings.catch_warnings():
        # Evaluations use batched environments, training a single one
        warnings.filterwarnings("ignore", message="Training and eval env are not of the same type")
        model, seconds = learn(folder / "checkpoints", make_model, task, device, run["finetune_steps"], callback)
    eval_env.close()
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return {
        "seconds": seconds,
        "skill": model.skill,
        "chosen_by": (model.skill_turns.chosen_by if model.skill_turns is not None else None) or 0,
        **settings(model),
        **returns_of(callback.evaluations_timesteps, callback.evaluations_results),
        "arguments": json.dumps(arguments),
    }


def returns_of(steps: list[int], results: list[list[float]]) -> Row:
    """Return the columns of evaluations, given their steps and the returns of their episodes."""
    returns = [float(np.mean(episodes)) for episodes in results]
    rounded = [round(value, 3) for value in returns]
    return {"steps": json.dumps(steps), "returns": json.dumps(rounded), "final_return": returns[-1]}


class RandomActions:
    """A policy of uniform random actions."""

    def __init__(self, env: VecEnv, seed: int) -> None:
        self.env = env
        env.action_space.seed(seed)

    def predict(self, *_: Any, **__: Any) -> tuple[np.ndarray, None]:
        """Draw an action for each environment."""
        return np.stack([self.env.action_space.sample() for _ in range(self.env.num_envs)]), None


def random_returns(env: VecEnv, n_episodes: int, seed: int, n_timesteps: int, folder: Path) -> Row:
    """Play random actions; return the columns of evaluations, with the same returns at the first and the last step."""
    start = time.perf_counter()
    returns, lengths = evaluate_policy(RandomActions(env, seed), env, n_episodes, return_episode_rewards=True, warn=False)  # type: ignore[arg-type]
    env.close()
    with written_whole(folder / "evaluations.npz") as file:
        np.savez(file, timesteps=[0, n_timesteps], results=[returns] * 2, ep_lengths=[lengths] * 2)
    return {"seconds": round(time.perf_counter() - start, 1), **returns_of([0, n_timesteps], [returns] * 2)}  # type: ignore
