"""Evaluations during training that go through all skills."""

import math
import warnings
from typing import Any

from stable_baselines3.common.callbacks import CallbackList, EvalCallback, EventCallback
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_wrapper

from sb3_cesd.common.skills import SkillName, SkillSpace
from sb3_cesd.common.vec_env import VecSkillObservation, add_skill_observation


def add_skills_to_evaluation(
    callback: Any, training_env: VecEnv, skill_space: SkillSpace, skill: SkillName | None, discovers: bool = True
) -> None:
    """
    Let evaluations go through the skills in turn, one per episode, in environments without skill observations.

    From one ``learn`` to the next, such environments follow the skill of the model; a wrapper that the user added keeps its
    own.

    :param callback: callback(s) that may hold evaluation environments
    :param training_env: environments of training, with skill observations
    :param skill_space: space of the skills
    :param skill: the only skill to evaluate, ``None`` for all of them
    :param discovers: whether the model discovers skills
    """
    if isinstance(callback, EvalCallback):
        _warn_of_other_type(callback.eval_env, training_env)
        env: Any = callback.eval_env
        if vars(env).get("follows_model") and env.skill_space != skill_space:
            # Wrapped for the skills of another model
            env = env.venv
        is_plain = unwrap_vec_wrapper(env, VecSkillObservation) is None
        env = add_skill_observation(env, skill_space, skill_duration=None, order="cycle")
        if is_plain:
            # Not a subclass, as SB3 would warn that training has another type of environment
            env.follows_model = True
        if vars(env).get("follows_model"):
            env.set_skill(skill)
        callback.eval_env = env
        followed = unwrap_vec_wrapper(env, VecSkillObservation).clock.fixed  # type: ignore[union-attr]
        if followed is None and discovers and type(callback)._on_step is EvalCallback._on_step:
            _warn_of_few_episodes(callback.n_eval_episodes, skill_space.n_skills, callback.eval_env.num_envs)
    children = callback.callbacks if isinstance(callback, CallbackList) else callback
    if isinstance(children, list):
        for child in children:
            add_skills_to_evaluation(child, training_env, skill_space, skill, discovers)
    elif isinstance(children, EventCallback):
        add_skills_to_evaluation(children.callback, training_env, skill_space, skill, discovers)


def _warn_of_few_episodes(n_episodes: int, n_skills: int, n_envs: int) -> None:
    # All environments play the same number of episodes, and start the cycle of skills at different places
    needed = math.lcm(n_skills, n_envs)
    if n_episodes % needed:
        warnings.warn(
            f"EvalCallback plays {n_episodes} episodes in {n_envs} environments, so that {n_skills} skills are not evaluated "
            f"equally often: pass a multiple of {needed} as n_eval_episodes. It chooses the best model by the reward of the "
            "environment, which skills do not maximise; sb3_cesd.callbacks.SkillEvalCallback goes by the skills instead."
        )


def _warn_of_other_type(eval_env: VecEnv, training_env: VecEnv) -> None:
    """Warn as ``EvalCallback`` does, which would only compare the skill wrappers."""
    training_env, eval_env = _without_skills(training_env), _without_skills(eval_env)
    if not isinstance(training_env, type(eval_env)):
        warnings.warn(f"Training and eval env are not of the same type: {training_env} != {eval_env}")


def _without_skills(env: VecEnv) -> VecEnv:
    wrapper = unwrap_vec_wrapper(env, VecSkillObservation)
    return env if wrapper is None else wrapper.venv
