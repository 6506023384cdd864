"""Evaluations during training that go through all skills."""

import math
import warnings
from typing import Any

from stable_baselines3.common.callbacks import CallbackList, EvalCallback, EventCallback
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_wrapper

from sb3_cesd.common.skills import SkillName, SkillSpace
from sb3_cesd.common.vec_env import VecSkillObservation, add_skill_observation


def add_skills_to_evaluation(callback: Any, skill_space: SkillSpace, skill: SkillName | None) -> None:
    """
    Let evaluations go through the skills in turn, one per episode, in environments without skill observations.

    :param callback: callback(s) that may hold evaluation environments
    :param skill_space: space of the skills
    :param skill: the only skill to evaluate, ``None`` for all of them
    """
    if isinstance(callback, EvalCallback):
        env: VecEnv = callback.eval_env
        if unwrap_vec_wrapper(env, VecSkillObservation) is None:
            callback.eval_env = add_skill_observation(env, skill_space, skill_duration=None, skill=skill, order="cycle")
            # All environments play the same number of episodes, and start the cycle of skills at different places
            needed = math.lcm(skill_space.n_skills, env.num_envs)
            if skill is None and callback.n_eval_episodes % needed and type(callback)._on_step is EvalCallback._on_step:
                warnings.warn(
                    f"{callback.n_eval_episodes} episodes do not evaluate {skill_space.n_skills} skills equally often: pass a "
                    f"multiple of {needed} as n_eval_episodes. EvalCallback goes by the reward of the environment; "
                    "sb3_cesd.callbacks.SkillEvalCallback goes by the skills."
                )
    children = callback.callbacks if isinstance(callback, CallbackList) else callback
    for child in children if isinstance(children, list) else []:
        add_skills_to_evaluation(child, skill_space, skill)
    if isinstance(callback, EventCallback):
        add_skills_to_evaluation(callback.callback, skill_space, skill)
