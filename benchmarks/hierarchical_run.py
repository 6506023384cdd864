"""One run of the benchmark of goals: learn to choose skills."""

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch as th
from gymnasium import spaces
from runs import Row
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv
from urlb_methods import METHODS
from urlb_run import model_file

from sb3_cesd import SkillOptions, registry
from sb3_cesd.common.files import written_whole
from sb3_cesd.envs.goals import HORIZON, make_goal_task
from sb3_cesd.skill_ddpg import SkillDDPG

#: Steps for which a skill is followed
DURATION = 25


class Controller(NamedTuple):
    """
    An algorithm that chooses skills.

    :param algorithm: its class
    :param kwargs: arguments of its constructor
    """

    algorithm: type[BaseAlgorithm]
    kwargs: dict[str, Any]


#: Controllers by name; an episode has 8 choices, so PPO learns from 32 episodes at a time
CONTROLLERS = {
    "ppo": Controller(PPO, {"n_steps": 256, "batch_size": 64, "ent_coef": 0.01}),
    "dqn": Controller(
        DQN,
        {"learning_rate": 3e-4, "buffer_size": 50_000, "learning_starts": 200, "train_freq": 1, "target_update_interval": 500},
    ),
}


class TableOfSkills(gym.ActionWrapper[Any, Any, Any]):
    """
    Choose continuous skills by index, among those that have one.

    :param env: options over continuous skills
    """

    def __init__(self, env: SkillOptions) -> None:
        super().__init__(env)
        self._vectors = env.skill_space.vectors
        self.action_space = spaces.Discrete(len(self._vectors))

    def action(self, action: int) -> np.ndarray:
        """
        Look up a skill.

        :param action: its index
        :return: its vector
        """
        return self._vectors[action]


def make_task(name: str, model: SkillDDPG | None, controller: str) -> gym.Env:
    """
    Create a task for a controller.

    :param name: one of ``GOAL_TASKS``
    :param model: a pre-trained model whose skills are the actions; ``None`` for the actions of the robot
    :param controller: one of ``CONTROLLERS``
    :return: the task; an algorithm without continuous actions chooses continuous skills by index
    """
    task = make_goal_task(name)
    if model is None:
        return task
    options = SkillOptions(task, model, DURATION)
    return TableOfSkills(options) if controller == "dqn" and not model.skill_space.discrete else options


def learn_goals(run: Row, models: Path, evaluations: Path) -> Row:
    """
    Learn to reach goals, by choosing skills or from scratch.

    :param run: ``method``, ``domain``, ``task``, ``scale``, ``seed`` and ``pretrain_steps``; ``controller`` (one of
        ``CONTROLLERS``), ``n_timesteps``, ``eval_freq`` (steps in the environment) and ``n_eval_episodes``
    :param models: folder of the pre-trained models
    :param evaluations: folder for the returns of all evaluation episodes (``evaluations.npz``, as SB3's EvalCallback writes)
    :return: ``steps`` in the environment and ``returns`` (steps within the radius of a goal, of 200 in an episode) of the
        evaluations (means, as JSON), ``final_return`` and ``n_skills``
    """
    th.set_num_threads(1)
    folder = evaluations / "_".join(str(value) for value in run.values())
    if run["method"] == "random":
        return play_at_random(run, folder)
    skills: SkillDDPG | None = None
    if METHODS[run["method"]].pretrained:
        path = model_file(models, run, run["pretrain_steps"])
        skills = registry.METHODS[METHODS[run["method"]].algo].load(path, device="cpu", buffer_size=1)

    def make_envs(n_envs: int, seed: int) -> VecEnv:
        return make_vec_env(lambda: make_task(run["task"], skills, run["controller"]), n_envs, seed)

    duration = 1 if skills is None else DURATION
    env, eval_env = make_envs(1, run["seed"]), make_envs(1, 10_000 + run["seed"])
    algorithm, kwargs = CONTROLLERS[run["controller"]]
    if skills is None:
        # As many episodes per update as with skills
        kwargs = {**kwargs, "n_steps": kwargs["n_steps"] * DURATION, "batch_size": kwargs["batch_size"] * DURATION}
    controller = algorithm("MultiInputPolicy", env, seed=run["seed"], device="cpu", **kwargs)
    callback = EvalCallback(
        eval_env,
        n_eval_episodes=run["n_eval_episodes"],
        eval_freq=run["eval_freq"] // duration,
        log_path=str(folder),
        verbose=0,
        warn=False,
    )
    start = time.perf_counter()
    controller.learn(run["n_timesteps"] // duration, callback=callback, log_interval=None)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    env.close()
    eval_env.close()
    returns = [float(np.mean(episodes)) for episodes in callback.evaluations_results]
    return {
        "seconds": round(seconds, 1),
        "n_skills": 0 if skills is None else skills.n_skills,
        "steps": json.dumps([steps * duration for steps in callback.evaluations_timesteps]),
        "returns": json.dumps([round(value, 3) for value in returns]),
        "final_return": returns[-1],
    }


def play_at_random(run: Row, folder: Path) -> Row:
    """
    Play uniform random actions.

    :param run: ``task``, ``seed``, ``n_timesteps`` and ``n_eval_episodes``
    :param folder: for the returns of all episodes
    :return: as :func:`learn_goals`, with the same returns at the first and the last step
    """
    env = make_goal_task(run["task"])
    env.action_space.seed(run["seed"])
    start = time.perf_counter()
    returns = np.zeros(run["n_eval_episodes"])
    for episode in range(len(returns)):
        env.reset(seed=10_000 + run["seed"] if episode == 0 else None)
        terminated = truncated = False
        while not (terminated or truncated):
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            returns[episode] += float(reward)
    env.close()
    steps = [0, run["n_timesteps"]]
    with written_whole(folder / "evaluations.npz") as file:
        np.savez(file, timesteps=steps, results=np.stack([returns] * 2), ep_lengths=np.full((2, len(returns)), HORIZON))
    mean = float(returns.mean())
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "n_skills": 0,
        "steps": json.dumps(steps),
        "returns": json.dumps([round(mean, 3)] * 2),
        "final_return": mean,
    }
