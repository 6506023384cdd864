"""
The benchmark of goals: an algorithm of SB3 chooses among pre-trained skills, each of which acts for 25 steps.

    python benchmarks/urlb.py --methods metra diayn --domains SkillAnt-v0 --save-at 1000000             # learns the skills
    python benchmarks/hierarchical.py --methods metra diayn scratch random --tasks AntMultiGoal
    python benchmarks/hierarchical.py --methods metra --tasks AntMultiGoal --controller dqn --pretrain-steps 1000000

The tasks are those of METRA and CSF, with 8 choices in an episode of 200 steps. Writes ``hierarchical.csv`` and
``hierarchical_evaluations``. Runs that are in the CSV file are not repeated: stop at any time, and continue with the same
command. Steps are those of the environment, 25 per choice.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch as th
from gymnasium import spaces
from runs import Row, add_run_options, add_seeds, check_eval_freq, positive, run_missing, seeds_of
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from urlb import costs_of
from urlb_methods import DOMAINS, HORIZONS, METHODS, OF_GOALS, SCALES, entry_steps
from urlb_run import OF_EVALUATION, model_file, random_returns, returns_of

from sb3_cesd import SkillOptions, registry
from sb3_cesd.envs.goals import GOAL_TASKS, make_goal_task
from sb3_cesd.skill_ddpg import SkillDDPG

#: Task -> robot: goals, and the tasks of URLB, in which the algorithm is the gate of a mixture of experts
ROBOT_OF = {name: env_id for name, (env_id, _) in GOAL_TASKS.items()}
ROBOT_OF |= {task: domain for domain, tasks in DOMAINS.items() for task in tasks}
#: Methods without skills: the same algorithm acts in every step, or random actions
WITHOUT_SKILLS = ("scratch", "random")
#: Steps for which a skill is followed
DURATION = 25
#: Controllers by name, with their arguments; an episode has 8 choices, so PPO learns from 32 episodes at a time
CONTROLLERS: dict[str, tuple[type[BaseAlgorithm], dict[str, Any]]] = {
    "ppo": (PPO, {"n_steps": 256, "batch_size": 64, "ent_coef": 0.01}),
    "dqn": (
        DQN,
        {"learning_rate": 3e-4, "buffer_size": 50_000, "learning_starts": 200, "train_freq": 1, "target_update_interval": 500},
    ),
}


def make_task(name: str, model: SkillDDPG | None, controller: str) -> gym.Env:
    """
    Create a task for a controller.

    :param name: one of ``GOAL_TASKS``, or a task of a robot
    :param model: a pre-trained model whose skills are the actions; ``None`` for the actions of the robot
    :param controller: one of ``CONTROLLERS``
    :return: the task; an algorithm without continuous actions chooses continuous skills by index
    """
    task = make_goal_task(name) if name in GOAL_TASKS else gym.make(name)  # type: ignore[arg-type]
    if model is None:
        return task
    options = SkillOptions(task, model, DURATION)
    if controller == "dqn":
        return gym.wrappers.TransformAction(options, lambda skill: skill, spaces.Discrete(model.n_skills))
    return options


def learn_goals(run: Row, models: Path, evaluations: Path) -> Row:
    """
    Learn to reach goals, by choosing skills or from scratch.

    :param run: the columns of :data:`~urlb_methods.OF_GOALS`
    :param models: folder of the pre-trained models
    :param evaluations: folder for the returns of all evaluation episodes
    :return: ``steps`` in the environment and ``returns`` (steps within the radius of a goal, of 200 in an episode) of the
        evaluations (means, as JSON), ``final_return`` and ``n_skills``
    """
    th.set_num_threads(1)
    folder = evaluations / "_".join(str(value) for value in run.values())
    skills: SkillDDPG | None = None
    if METHODS[run["method"]].pretrained:
        file = model_file(models, run, run["pretrain_steps"])
        skills = registry.METHODS[METHODS[run["method"]].algo].load(file, device="cpu", buffer_size=1)
    make_envs = partial(make_vec_env, lambda: make_task(run["task"], skills, run["controller"]), 1)
    eval_env = make_envs(seed=OF_EVALUATION + run["seed"])
    if run["method"] == "random":
        return {"n_skills": 0, **random_returns(eval_env, run["n_eval_episodes"], run["seed"], run["n_timesteps"], folder)}
    duration = 1 if skills is None else DURATION
    algorithm, arguments = CONTROLLERS[run["controller"]]
    if skills is None:
        # As many episodes per update as with skills
        arguments = {**arguments, **{name: arguments[name] * DURATION for name in ("n_steps", "batch_size")}}
    env = make_envs(seed=run["seed"])
    policy = "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "MlpPolicy"
    controller = algorithm(policy, env, seed=run["seed"], device="cpu", **arguments)
    every = run["eval_freq"] // duration
    callback = EvalCallback(
        eval_env, n_eval_episodes=run["n_eval_episodes"], eval_freq=every, log_path=str(folder), verbose=0, warn=False
    )
    start = time.perf_counter()
    controller.learn(run["n_timesteps"] // duration, callback=callback, log_interval=None)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    env.close()
    eval_env.close()
    n_skills = 0 if skills is None else skills.n_skills
    steps = [n_choices * duration for n_choices in callback.evaluations_timesteps]
    return {"seconds": round(seconds, 1), "n_skills": n_skills, **returns_of(steps, callback.evaluations_results)}


def seconds_of(run: Row) -> float:
    """Estimate how long a run takes: its steps, and those of its evaluations."""
    n_evaluated = run["n_timesteps"] // (run["eval_freq"] or run["n_timesteps"]) * run["n_eval_episodes"]
    n_steps = run["n_timesteps"] * (run["method"] != "random") + n_evaluated * HORIZONS.get(run["domain"], 200)
    return n_steps * costs_of(run["method"] if METHODS[run["method"]].algo else "cesd", run["scale"], run["domain"], 1).step


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    methods = [name for name, method in METHODS.items() if method.pretrained or name in WITHOUT_SKILLS]
    parser.add_argument("--methods", nargs="+", choices=methods, default=["metra", "scratch", "random"])
    parser.add_argument("--tasks", nargs="+", choices=list(ROBOT_OF), default=["AntMultiGoal"])
    add_seeds(parser, 3)
    parser.add_argument("--scale", choices=SCALES, default="laptop", help="scale of the pre-trained models")
    parser.add_argument("--pretrain-steps", type=positive, help="steps of the pre-trained models (default: as in urlb.py)")
    parser.add_argument("--controller", choices=list(CONTROLLERS), default="ppo", help="algorithm that chooses the skills")
    parser.add_argument("--steps", type=positive, default=400_000, help="environment steps of learning to choose, at least")
    parser.add_argument("--eval-freq", type=positive, default=50_000, help="steps between two evaluations")
    parser.add_argument("--n-eval-episodes", type=positive, default=20, help="episodes per evaluation")
    parser.add_argument("--models", type=Path, help="folder of the pre-trained models (default: models in --output)")
    add_run_options(parser, "results/urlb")
    args = parser.parse_args(argv)
    check_eval_freq(parser, args.eval_freq, args.steps)
    if args.eval_freq % DURATION:
        parser.error(f"--eval-freq {args.eval_freq}: a skill takes {DURATION} steps, pass a multiple of that")
    if args.controller == "dqn" and "scratch" in args.methods:
        parser.error("--controller dqn: it takes no continuous actions, leave scratch out or pass --controller ppo")
    output = args.output.resolve()
    runs: list[Row] = []
    for seed in seeds_of(parser, args.seeds):
        for task in args.tasks:
            domain = ROBOT_OF[task]
            for method in args.methods:
                steps = args.pretrain_steps or entry_steps(args.scale, domain)
                learning = (args.controller, args.steps, args.eval_freq) if method != "random" else (0, args.steps, 0)
                of_model = (method, domain, task, args.scale, seed, 0 if method in WITHOUT_SKILLS else steps)
                runs.append(dict(zip(OF_GOALS, (*of_model, *learning, args.n_eval_episodes), strict=True)))
    models = output / "models" if args.models is None else args.models.resolve()
    learn = partial(learn_goals, models=models, evaluations=output / "hierarchical_evaluations")
    run_missing(runs, learn, output / "hierarchical.csv", args.jobs, args.dry_run, seconds_of)


if __name__ == "__main__":
    main()
