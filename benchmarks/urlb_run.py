"""One run of the benchmark of robots: pre-train skills without a reward, or learn a task from them."""

import json
import re
import time
import warnings
import zipfile
from collections.abc import Collection
from functools import partial
from pathlib import Path

import numpy as np
import torch as th
from entries import of_constructor
from run_checkpoints import forget, learn, start_or_resume
from runs import Row
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv
from urlb_methods import METHODS

from sb3_cesd import make_batched, registry
from sb3_cesd.common.cuda import can_capture
from sb3_cesd.common.files import written_whole
from sb3_cesd.envs.robots.ids import LOCOMOTION
from sb3_cesd.metrics import (
    TrainingCoverage,
    draw_goals,
    env_positions,
    measure_motion,
    particle_entropy,
    play_and_measure,
    play_and_score,
    policy_coverage,
    task_returns,
    zero_shot_goals,
)
from sb3_cesd.metrics.summary import ARM_BIN, ROBOT_BIN
from sb3_cesd.metrics.tasks import score_best_skills
from sb3_cesd.skill_ddpg import SkillDDPG

N_ROLLOUTS, N_STEPS = 8, 250
#: Number of states of training for the particle entropy
N_PARTICLES = 2000
#: Points of the curves of coverage
N_CURVE = 20
#: Offsets of the seed of a run for its evaluation, and for each repetition of its task
OF_EVALUATION, OF_REPEAT = 10_000, 100_000
#: Error message if a model is gone
LOST = (
    "The pre-training of {file} is done, but the model is not there: delete its row of pretraining.csv to repeat it, or "
    "pass another --output."
)
#: Error message if a file is taken by the model of a longer or shorter training
TAKEN = (
    "{file} is of a training of {total} steps, which starts the constraint elsewhere, not of one of {wanted}: pass another "
    "--output."
)
#: Arguments that a task keeps from its pre-trained model
FIXED = (
    "policy",
    "policy_kwargs",
    "n_skills",
    "skill_duration",
    "skill_type",
    "skill_dim",
    "ent_coef",
    "reward",
    "intrinsic_kwargs",
)


def model_file(folder: Path, run: Row, n_timesteps: int) -> Path:
    """
    Return the file of a pre-trained model.

    :param folder: folder of the models
    :param run: ``method``, ``domain``, ``scale`` and ``seed``
    :param n_timesteps: steps of pre-training
    :return: file of the model
    """
    return folder / f"{run['method']}_{run['domain']}_{run['scale']}_{run['seed']}_{n_timesteps}.zip"


def total_steps(file: Path) -> int | None:
    """
    Read how many steps the training of a model has, which may have been saved before its end.

    :param file: file of a model
    :return: the number of steps; ``None`` if there is no such file, or it can't be read
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return int(json.loads(archive.read("data"))["_total_timesteps"])
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None


def evaluations_of(folder: Path, run: Row) -> Path:
    """
    Return the folder of the run of a task.

    :param folder: folder of the evaluations
    :param run: values that identify the run
    :return: folder of its evaluations and, until it has ended, of its checkpoint
    """
    return folder / re.sub(r'[{}": ]', "", "_".join(str(value) for value in run.values()))


def lost_model(run: Row, models: Path, evaluations: Path) -> Path | None:
    """
    Check whether the model that a task needs is lost.

    :param run: values that identify the run
    :param models: folder of the pre-trained models
    :param evaluations: folder of the evaluations
    :return: file of the model if it is lost; ``None`` if it exists, or a checkpoint of the task has its weights
    """
    file = model_file(models, run, run["pretrain_steps"])
    return None if file.is_file() or (evaluations_of(evaluations, run) / "checkpoints").is_dir() else file


def settings(model: SkillDDPG) -> Row:
    """
    Return the settings of a model.

    :param model: a model
    :return: columns of a row
    """
    return {
        "n_skills": model.n_skills,
        "batch_size": model.batch_size,
        "net_arch": json.dumps(model.policy.net_arch),
        "learning_rate": model.lr_schedule(1.0),
        "n_updates": model._n_updates,
        "n_envs": model.n_envs,
        "device": th.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type,
    }


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


def on_device(device: str) -> Row:
    """
    Choose how updates are computed.

    :param device: device of the model
    :return: arguments of the constructor; on a GPU an update is one graph
    """
    return {"device": device, "cuda_graph": can_capture(th.device(device))}


def make_envs(env_id: str, n_envs: int, n_threads: int, seed: int | None = None) -> VecEnv:
    """Make environments, which are batched if they can be."""
    if env_id in LOCOMOTION:
        return make_vec_env(env_id, n_envs, seed=seed)
    return make_batched(env_id, n_envs, seed=seed, n_threads=n_threads)


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

    :param run: ``method``, ``domain``, ``scale``, ``seed``, ``pretrain_steps`` and ``n_envs``
    :param models: folder of the models
    :param save_at: steps at which the model is saved before the end
    :param n_task_episodes: episodes per skill and task; the first half chooses the best skill, the second half measures it
    :param device: device of the model
    :param n_env_threads: threads that step the environments
    :return: the measures, see :func:`measure`; and as JSON ``coverage_steps``, environment steps at which the values of
        ``total_coverage_curve`` and ``queue_coverage_curve`` were taken
    """
    th.set_num_threads(1)
    method, n_timesteps = METHODS[run["method"]], run["pretrain_steps"]
    entry = of_constructor(method.arguments(run["scale"], run["domain"]))
    env = run["domain"] if run["n_envs"] == 1 else make_envs(run["domain"], run["n_envs"], n_env_threads)
    entry["buffer_size"] = min(int(entry["buffer_size"]), n_timesteps)
    folder = model_file(models, run, n_timesteps).with_suffix(".checkpoints")
    make_model = partial(registry.METHODS[method.algo], env=env, seed=run["seed"], **on_device(device), **entry)
    model, resumed = start_or_resume(folder, make_model, env, device)
    files = {step: model_file(models, run, step) for step in save_at if model.num_timesteps < step < n_timesteps}
    training = Training(files, in_hand=run["domain"] == "Jaco-v0", every=max(1, n_timesteps // N_CURVE))
    seconds = 0.0
    if resumed is not None:
        seconds, (training.coverage, training.curves) = resumed
    seconds = learn(model, n_timesteps, training, folder, lambda: (training.coverage, training.curves), seconds)
    model.save(model_file(models, run, n_timesteps))
    curves = {column: json.dumps(values) for column, values in training.curves.items()}
    measures = measure(model, run["domain"], training.coverage, n_task_episodes, n_env_threads)
    row = {"seconds": round(seconds, 1), **settings(model), **measures, **curves}
    forget(folder)
    return row


def measure(model: SkillDDPG, domain: str, coverage: TrainingCoverage, n_task_episodes: int, n_env_threads: int) -> Row:
    """
    Measure pre-trained skills.

    :param model: a pre-trained model, with its replay buffer
    :param domain: its environment
    :param coverage: coverage of its training
    :param n_task_episodes: see :func:`pretrain`
    :param n_env_threads: see :func:`pretrain`
    :return: the measures: those of :func:`~sb3_cesd.metrics.play_and_measure`; ``skill_score``, the objective of a study, and
        its factor ``coarse_coverage``; as JSON lists over skills ``moves`` (0 or 1) and ``<part>_speeds``; the
        ``random_speeds`` of random actions; ``best_skill_<task>``, the score of the best skill without training, and
        ``best_skill_episodes``, which is ``n_task_episodes`` (2 in rows without it); as JSON lists over skills
        ``<task>_returns``, means over these episodes; for the ant and the half-cheetah ``policy_coverage_48`` and the metrics
        of goals; ``total_coverage``, ``queue_coverage`` and ``training_entropy``, the particle entropy of the observations of
        training
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
        metrics |= score_best_skills(returns, domain)
        of_skills |= {
            f"{task}_returns": json.dumps(of_task.mean(axis=1).round(1).tolist()) for task, of_task in returns.items()
        }
        metrics["best_skill_episodes"] = n_task_episodes
    env.close()
    assert model.replay_buffer is not None
    observations = model.replay_buffer.visited_observations()
    chosen = np.random.default_rng(0).choice(len(observations), min(N_PARTICLES, len(observations)), replace=False)
    return {
        **metrics,
        **of_skills,
        "total_coverage": coverage.total,
        "queue_coverage": coverage.queue,
        "training_entropy": particle_entropy(observations[chosen]),
    }


def learn_task(run: Row, models: Path, evaluations: Path, device: str = "cpu", n_env_threads: int = 1) -> Row:
    """
    Learn a task, from skills or from scratch.

    :param run: ``method``, ``domain``, ``task``, ``scale``, ``seed``, ``pretrain_steps``, ``pretrain_envs`` (environments in
        pre-training), ``finetune_steps``; ``eval_freq`` (steps between two evaluations), ``n_eval_episodes`` (episodes per
        evaluation), ``n_skill_episodes`` (episodes per skill to find the best, unless the warm-up does), ``repeat`` (how often
        the task was learned from the same model before) and ``task_params`` (arguments of the constructor that differ from the
        yml file, as JSON; 0 for none); and for methods with skills ``skill_choice`` (``"random"``, ``"best"`` or an index),
        ``warm_up`` and ``transfer`` (joined by +), as for ``from_pretrained``
    :param models: folder of the pre-trained models
    :param evaluations: folder for the returns of all evaluation episodes (``evaluations.npz``, as SB3's EvalCallback writes)
    :param device: device of the model
    :param n_env_threads: threads that step the environments of evaluations
    :return: ``steps`` and ``returns`` of the evaluations (means, as JSON), ``final_return``, and settings; ``chosen_by``, how
        the skill was chosen in the warm-up (by ``"states"`` of skills, their ``"rewards"``, or ``"features"``), 0 if it was
        known before; ``zero_shot_steps`` of choosing the best skill, which are not part of ``steps``
    """
    th.set_num_threads(1)
    method = METHODS[run["method"]]
    folder = evaluations_of(evaluations, run)
    seed = run["seed"] + OF_REPEAT * run["repeat"]
    if run["method"] == "random":
        return play_at_random(run, seed, folder)
    entry = of_constructor(method.arguments(run["scale"], run["task"]))
    entry.update(json.loads(run["task_params"]) if run["task_params"] else {})
    entry["buffer_size"] = min(int(entry["buffer_size"]), run["finetune_steps"])
    model_class = registry.METHODS[method.algo]
    if method.pretrained:
        if (lost := lost_model(run, models, evaluations)) is not None:
            raise FileNotFoundError(LOST.format(file=lost))
        arguments = {name: value for name, value in entry.items() if name not in FIXED}
        make_model = partial(
            model_class.from_pretrained,
            model_file(models, run, run["pretrain_steps"]),
            run["task"],
            run["skill_choice"],
            run["transfer"].split("+"),
            n_eval_episodes=run["n_skill_episodes"],
            seed=seed,
            **on_device(device),
            **{**arguments, "warm_up": run["warm_up"]},
        )
    else:
        make_model = partial(model_class, env=run["task"], seed=seed, **on_device(device), **entry)
    model, resumed = start_or_resume(folder / "checkpoints", make_model, run["task"], device)
    n_eval_episodes = run["n_eval_episodes"]
    eval_env = make_batched(run["task"], n_eval_episodes, seed=OF_EVALUATION + seed, n_threads=n_env_threads)
    callback = EvalCallback(
        eval_env, n_eval_episodes=n_eval_episodes, eval_freq=run["eval_freq"], log_path=str(folder), verbose=0, warn=False
    )

    seconds = 0.0
    if resumed is not None:
        seconds, _ = resumed
        eval_env.seed(OF_EVALUATION + seed + model.num_timesteps)
    with warnings.catch_warnings():
        # Evaluations use batched environments, training a single one
        warnings.filterwarnings("ignore", message="Training and eval env are not of the same type")
        seconds = learn(model, run["finetune_steps"], callback, folder / "checkpoints", lambda: None, seconds)
    eval_env.close()
    forget(folder / "checkpoints")
    returns = [float(np.mean(episodes)) for episodes in callback.evaluations_results]
    zero_shot = {} if model.zero_shot is None else {"zero_shot_steps": model.zero_shot.n_timesteps}
    return {
        "seconds": round(seconds, 1),
        "skill": model.skill,
        "chosen_by": (model.skill_turns.chosen_by if model.skill_turns is not None else None) or 0,
        **settings(model),
        "steps": json.dumps(callback.evaluations_timesteps),
        "returns": json.dumps([round(value, 3) for value in returns]),
        "final_return": returns[-1],
        **zero_shot,
    }


def play_at_random(run: Row, seed: int, folder: Path) -> Row:
    """
    Play uniform random actions, for the return of a task without learning.

    :param run: ``task``, ``finetune_steps`` and ``n_eval_episodes``
    :param seed: seed of the actions, and with :data:`OF_EVALUATION` of the episodes
    :param folder: folder for the returns of all episodes
    :return: as :func:`learn_task`, with the same returns at the first and the last step
    """
    n_eval_episodes = run["n_eval_episodes"]
    env = make_batched(run["task"], n_eval_episodes, seed=OF_EVALUATION + seed, n_threads=1)
    env.action_space.seed(seed)
    env.reset()
    returns, alive, n_steps = np.zeros(n_eval_episodes), np.ones(n_eval_episodes, dtype=bool), 0
    start = time.perf_counter()
    while alive.any():
        _, rewards, dones, _ = env.step(np.stack([env.action_space.sample() for _ in range(n_eval_episodes)]))
        returns += rewards * alive
        alive &= ~dones
        n_steps += 1
    env.close()
    steps = [0, run["finetune_steps"]]
    with written_whole(folder / "evaluations.npz") as file:
        np.savez(file, timesteps=steps, results=np.stack([returns] * 2), ep_lengths=np.full((2, 1), n_steps))
    mean = float(returns.mean())
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "steps": json.dumps(steps),
        "returns": json.dumps([round(mean, 3)] * 2),
        "final_return": mean,
    }
