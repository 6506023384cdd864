"""Columns that identify a run, and values of those that older rows lack."""

from runs import Row

#: Values of columns that older rows of urlb.py lack, for pre-training and for tasks
OF_OLD_PRETRAINING: Row = {"n_envs": 1}
OF_OLD_TASKS: Row = {"eval_freq": 0, "n_skill_episodes": 1, "pretrain_envs": 1, "repeat": 0, "task_params": 0}

_OF_ROBOTS = ("method", "domain", "task", "scale", "seed", "pretrain_steps")
_OF_TASKS = ("finetune_steps", "skill_choice", "warm_up", "transfer", "eval_freq", "n_eval_episodes", "n_skill_episodes")
#: Columns that identify the run of a task
OF_TASK = (*_OF_ROBOTS, "pretrain_envs", *_OF_TASKS, "repeat", "task_params")
#: Columns that identify a run -> values of those that rows may lack; for mazes, MINE, pre-training, tasks and goals
IDENTITIES: dict[tuple[str, ...], Row] = {
    ("method", "maze", "seed", "n_timesteps"): {},
    ("method", "maze", "seed", "n_timesteps", "n_iterations"): {"n_timesteps": 36_000},
    ("method", "domain", "scale", "seed", "pretrain_steps", "n_envs"): OF_OLD_PRETRAINING,
    OF_TASK: OF_OLD_TASKS,
    (*_OF_ROBOTS, "controller", "n_timesteps", "eval_freq", "n_eval_episodes"): {},
}
