"""From skills to a task: what a fine-tuned model takes over from a pre-trained one, and which skill it goes on with."""

import inspect
import io
import pathlib
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from torch import nn

from sb3_cesd.common.skills import check_skill
from sb3_cesd.skill_ddpg.checks import read_saved_data
from sb3_cesd.skill_ddpg.policies import SkillPolicy

#: What can be transferred
PARTS = ("actor", "critic_trunk", "critic_head", "optimizers")
#: What the published fine-tuning transfers
PUBLISHED_PARTS = ("actor", "critic_trunk")
SKILL_WORDS = ("random", "best")
#: Who acts in the first steps
WARM_UPS = ("random", "policy", "skills")
#: Arguments of ``from_pretrained`` that a fine-tuned model has no more use for
USED_UP = ("transfer", "n_eval_episodes")
#: Arguments of a constructor that belong to a run, not to a model
_OF_THE_RUN = ("self", "policy", "env", "reward", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model")


class ZeroShot(NamedTuple):
    """
    How well skills do a task they were not trained for.

    :param returns: mean return of each skill, shape ``(n_skills,)``
    :param n_timesteps: environment steps it took to find out
    """

    returns: np.ndarray
    n_timesteps: int

    def __str__(self) -> str:
        returns = ", ".join(f"{value:.4g}" for value in self.returns)
        return f"{returns} (took {self.n_timesteps} steps, not part of num_timesteps)"


def read_pretrained_data(path: str | pathlib.Path | io.BufferedIOBase) -> dict[str, Any]:
    """
    :param path: the zip file of a pre-trained model
    :return: its plain attributes by name
    :raises FileNotFoundError: if there is no such file
    :raises ValueError: if it is no saved model, or not a pre-trained one
    """
    try:
        saved = read_saved_data(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"There is no pre-trained model {path}: pass the path of the zip file that model.save() wrote, "
            "or train on the task from scratch with reward='extrinsic'."
        ) from error
    if saved.get("reward", "intrinsic") == "extrinsic":
        raise ValueError(
            f"{path} was trained on a task already, with skill {saved.get('skill')}: load it to go on with that, "
            "or pass the pre-trained model."
        )
    if saved.get("_n_updates") == 0:
        raise ValueError(
            f"{path} was never pre-trained (0 updates after {saved.get('num_timesteps')} steps): let it learn for more than "
            "learning_starts steps before it is saved, or train on the task from scratch with reward='extrinsic'."
        )
    return saved


def check_transfer(parts: Collection[str]) -> None:
    """
    :param parts: what is to be transferred
    :raises ValueError: if there is no such part
    """
    unknown = [parts] if isinstance(parts, str) else sorted(set(parts) - set(PARTS))
    if unknown:
        raise ValueError(f"transfer={parts!r}: choose some of {', '.join(map(repr, PARTS))}, as a list.")


def check_open_skill(parts: Collection[str]) -> None:
    """
    :param parts: what is to be transferred before it is known which skill goes on
    :raises ValueError: if that depends on the skill
    """
    if "critic_head" in parts:
        raise ValueError(
            "transfer with 'critic_head' needs the skill at once, but skill='best' with warm_up='skills' finds it in the "
            "warm-up: leave 'critic_head' out, or choose another skill or warm_up."
        )


def check_skill_choice(skill: int | str, n_skills: int) -> int | str:
    """
    :param skill: index of a skill, ``"random"`` or ``"best"``
    :param n_skills: number of skills
    :return: the same
    :raises ValueError: if there is no such skill
    """
    if not isinstance(skill, str):
        return check_skill(skill, n_skills)
    if skill not in SKILL_WORDS:
        raise ValueError(f"Unknown skill {skill!r}: choose 'random', 'best' or an integer from 0 to {n_skills - 1}.")
    return skill


def arguments_to_go_on(path: object, skill: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """
    :param path: a model that was fine-tuned for some time
    :param skill: its skill
    :param arguments: what to change when it is loaded, possibly with arguments of ``from_pretrained``
    :return: the arguments that are not settled yet
    :raises ValueError: if they name another skill
    """
    wanted = arguments.get("skill", skill)
    if wanted not in (skill, *SKILL_WORDS):
        raise ValueError(
            f"skill={wanted!r} does not fit {path}, in which skill {skill} learns the task: leave skill out, or fine-tune the "
            "pre-trained model again."
        )
    return {name: value for name, value in arguments.items() if name not in ("skill", *USED_UP)}


def check_task_env(env: VecEnv, pretrained: BaseAlgorithm) -> None:
    """
    :param env: the task, with skill observations
    :param pretrained: the pre-trained model
    :raises ValueError: if the spaces differ
    """
    try:
        check_for_correct_spaces(env, pretrained.observation_space, pretrained.action_space)
    except ValueError as error:
        raise ValueError(
            f"{error}. The model was pre-trained in another domain: choose a task with the same observations and actions, "
            "or pre-train a model in the domain of the task."
        ) from error


def constructor_arguments(model: BaseAlgorithm) -> dict[str, Any]:
    """
    :param model: a model
    :return: the arguments that make another one like it, but for those of the run (environment, seed, device, logs)
    """
    names = set(inspect.signature(type(model).__init__).parameters).difference(_OF_THE_RUN)
    arguments = {name: getattr(model, name) for name in names if hasattr(model, name)}
    if getattr(model, "updates_follow_steps", False):
        arguments["gradient_steps"] = None
    return arguments


def draw_skill(n_skills: int, seed: int | None) -> int:
    """
    :param n_skills: number of skills
    :param seed: draw from a generator of its own, so that training is that of the same skill chosen by its index
    :return: a random skill
    """
    return int(np.random.randint(n_skills) if seed is None else np.random.RandomState(seed).randint(n_skills))


def play_skills(policy: SkillPolicy, env: VecEnv, n_episodes: int, seed: int | None = None) -> ZeroShot:
    """
    Play every skill as it is, without noise, from equal initial states if there is a seed.

    :param policy: a pre-trained policy
    :param env: the task, with or without skill observations
    :param n_episodes: number of episodes of each skill
    :param seed: seed of the environments
    :return: returns (not normalised), and the number of steps taken
    """
    vec_normalize = unwrap_vec_normalize(env)
    was_training = vec_normalize is not None and vec_normalize.training
    if vec_normalize is not None:
        vec_normalize.training = False
    returns, n_timesteps = np.zeros(policy.n_skills), 0
    for skill in range(policy.n_skills):
        # As in evaluate_policy, so that short episodes do not count more often
        remaining = (n_episodes + np.arange(env.num_envs)) // env.num_envs
        if seed is not None:
            env.seed(seed)
        observations = env.reset()
        while remaining.any():
            assert isinstance(observations, np.ndarray)
            actions, _ = policy.predict(observations, deterministic=True, skill=skill)
            observations, rewards, dones, _ = env.step(actions)
            if vec_normalize is not None:
                rewards = vec_normalize.get_original_reward()
            returns[skill] += rewards[remaining > 0].sum()
            remaining -= dones & (remaining > 0)
            n_timesteps += env.num_envs
    if vec_normalize is not None:
        vec_normalize.training = was_training
    return ZeroShot(returns / n_episodes, n_timesteps)


def transfer(pretrained: SkillPolicy, policy: SkillPolicy, skill: int, parts: Collection[str]) -> None:
    """
    Copy parts of a pre-trained policy, the rest stays as initialised. The target critic becomes a copy of the critic (the
    released code leaves the trunk of the target as initialised, and Polyak averaging lets it follow).

    :param pretrained: pre-trained policy
    :param policy: policy with one critic head, changed in place
    :param skill: the skill whose head that is
    :param parts: some of :data:`PARTS`: ``"actor"``; ``"critic_trunk"``, all of the critic but its heads; ``"critic_head"``,
        that of the skill (or the value that skills share, where there is one); ``"optimizers"``, the moments of all these
    """
    with_moments = "optimizers" in parts
    if "actor" in parts:
        _copy(pretrained.actor, policy.actor, policy.actor.state_dict(), lambda name, value: value, with_moments)
    heads = tuple(f"{name}." for name in policy.critic.head_modules)
    shared = ("features_extractor.",) if policy.share_features_extractor else ()
    own = [name for name in policy.critic.state_dict() if not name.startswith(shared)]

    def of_skill(name: str, value: th.Tensor) -> th.Tensor:
        return pretrained.critic.of_skill(name, value, skill)

    for part, names in {
        "critic_trunk": [name for name in own if not name.startswith(heads)],
        "critic_head": [name for name in own if name.startswith(heads)],
    }.items():
        if part in parts:
            _copy(pretrained.critic, policy.critic, names, of_skill, with_moments)
    policy.critic_target.load_state_dict(policy.critic.state_dict())


@th.no_grad()
def _copy(
    source: nn.Module,
    target: nn.Module,
    names: Iterable[str],
    select: Callable[[str, th.Tensor], th.Tensor],
    with_moments: bool,
) -> None:
    """
    :param source: network with an optimizer
    :param target: the same, changed in place
    :param names: parameters and buffers to copy
    :param select: what to copy of a tensor, by the name of the parameter
    :param with_moments: copy the state of the optimizer as well
    """
    theirs, ours = source.state_dict(keep_vars=True), target.state_dict(keep_vars=True)
    optimizer, new_optimizer = source.optimizer, target.optimizer
    assert isinstance(optimizer, th.optim.Optimizer) and isinstance(new_optimizer, th.optim.Optimizer)
    for name in names:
        ours[name].copy_(select(name, theirs[name]))
        state = optimizer.state.get(theirs[name], {})
        if with_moments and state:
            # Moments have the shape of the parameter, the number of steps has not
            new_optimizer.state[ours[name]] = {
                key: (select(name, value) if value.shape == theirs[name].shape else value).clone()
                for key, value in state.items()
            }
