"""Fine-tuning on a task: what the model takes over from a pre-trained one, and which skill learns the task."""

import io
import pathlib
import warnings
from collections.abc import Collection
from typing import Any, Literal, get_args

import numpy as np
import torch as th
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_cesd.common.arguments import check_changes, check_names, constructor_arguments, constructor_names, merge
from sb3_cesd.common.skills import SkillName
from sb3_cesd.common.vec_normalize import lacks_statistics, normalizes_observations, takes_plain_observations
from sb3_cesd.skill_ddpg.policies import SkillPolicy
from sb3_cesd.skill_ddpg.saved_files import check_fixed, read_saved_data

#: Parts of a pre-trained model that a task may take over
Part = Literal["actor", "critic_trunk", "critic_head", "no_target"]
#: Arguments that a task does not take over: it has a smaller budget than the pre-training, and as many updates as in URLB
TASK_DEFAULTS = {"warm_up": "skills", "train_freq": 2, "gradient_steps": None}
#: Steps of the warm-up in URLB, the most that a task takes over
LONGEST_WARM_UP = 4000


def make_task_model(
    model_class: Any,
    path: str | pathlib.Path | io.BufferedIOBase,
    env: Any,
    skill: SkillName | str,
    parts: Collection[Part],
    device: th.device | str,
    custom_objects: dict[str, Any] | None,
    kwargs: dict[str, Any],
) -> Any:
    check_changes(model_class, "from_pretrained()", kwargs)
    if env is None:
        raise ValueError("A task is learned in its environment: pass env.")
    check_names("transfer", parts, get_args(Part))
    check_names("intrinsic_kwargs", kwargs.get("intrinsic_kwargs") or {}, constructor_names(model_class.reward_class))
    saved = read_saved_data(path)
    if saved.get("reward", "intrinsic") == "extrinsic" or saved.get("_n_updates") == 0:
        raise ValueError(f"{path} was never pre-trained, or trained on a task already: pass the file of a pre-trained model.")
    check_fixed(model_class, path, saved, {name: kwargs[name] for name in model_class.fixed_by_save if name in kwargs})
    objects = {"replay_buffer": None, **(custom_objects or {})}  # one that was saved with the model is not needed
    pretrained = model_class.load(path, device=device, custom_objects=objects, buffer_size=1, seed=None)
    if isinstance(skill, str) and skill not in ("random", "best"):
        raise ValueError(f"There is no skill {skill!r}: choose 'random', 'best' or an index below {pretrained.n_skills}.")
    skill = skill if isinstance(skill, str) else pretrained.skill_space.name_of(skill)
    verbose = kwargs.get("verbose", 0)
    venv = model_class._with_skills(env, verbose, pretrained.skill_space, pretrained.skill_duration)
    check_task_env(venv, pretrained)

    buffer_size = {**saved, **objects}["buffer_size"]
    arguments = {**constructor_arguments(pretrained), "buffer_size": buffer_size, **TASK_DEFAULTS}
    arguments["learning_starts"] = min(pretrained.learning_starts, LONGEST_WARM_UP)
    arguments.update({**kwargs, "reward": "extrinsic"})
    if skill == "best" and arguments["warm_up"] != "skills":
        raise ValueError("The warm-up tells which skill is best: pass warm_up='skills', or a skill.")
    # A task has no loss of an intrinsic reward
    learns = {"encoder_learns_from": "critic"} if pretrained.policy.encoder is not None else {}
    arguments["policy_kwargs"] = merge({**pretrained.policy_kwargs, **learns}, kwargs.get("policy_kwargs") or {})
    arguments["intrinsic_kwargs"] = pretrained.intrinsic_kwargs
    model = model_class(pretrained.policy_class, venv, device=device, **arguments)

    chosen: Any = None if skill == "best" else skill
    if skill == "random":
        # By a separate generator, so that training is as with that skill chosen
        generator: Any = np.random if model.seed is None else np.random.RandomState(model.seed)
        chosen = int(generator.randint(model.n_skills))
    try:
        transfer(pretrained.policy, model.policy, chosen, parts)
    except RuntimeError as error:
        changed = f"policy_kwargs={kwargs.get('policy_kwargs')!r}"
        raise ValueError(f"{changed} do not fit the networks of {path}: leave them out, or pass transfer=().") from error
    model._take_over(pretrained)
    model._follow(chosen)
    if (vec_normalize := unwrap_vec_normalize(venv)) is not None:
        # Those of the pre-training are of other rewards, or of none
        vec_normalize.ret_rms = RunningMeanStd(shape=())
    if verbose >= 1:
        name = f"the skill that does best in the first {model.learning_starts} steps," if chosen is None else f"skill {chosen}"
        print(f"Fine-tuning {name} of {path}")
    return model


def check_task_env(env: VecEnv, pretrained: Any) -> None:
    """Check that a task fits a pre-trained model, and warn if its observations are not normalised as in the pre-training."""
    check_for_correct_spaces(env, pretrained.observation_space, pretrained.action_space)
    vec_normalize = unwrap_vec_normalize(env)
    if lacks_statistics(pretrained, vec_normalize):
        warnings.warn(
            "VecNormalize normalised the observations of the pre-training, but those of the task are not, or by new ones, "
            "so skills may behave differently: pass the task with those of the pre-training, VecNormalize.load(path, env). "
            "With -i, RL Zoo finds them in vecnormalize.pkl of the run."
        )
    elif normalizes_observations(vec_normalize) and takes_plain_observations(pretrained):
        warnings.warn("The skills were pre-trained without VecNormalize: pass the task without it, or with norm_obs=False.")


def transfer(pretrained: SkillPolicy, policy: SkillPolicy, skill: SkillName | None, parts: Collection[str]) -> None:
    """
    Copy parts of a pre-trained policy; the rest stays as initialised.

    The trunk is all of the critic but its heads; the head is that of the skill, or the value that skills share, where there is
    one. The target critic becomes a copy of the critic, unless ``"no_target"`` leaves it as initialised: it then only follows
    by Polyak averaging, as in the released code of CeSD. An encoder of images goes along with actor and trunk.
    """
    if pretrained.encoder is not None and policy.encoder is not None and not {"actor", "critic_trunk"}.isdisjoint(parts):
        policy.encoder.load_state_dict(pretrained.encoder.state_dict())
    if "actor" in parts:
        policy.actor.load_state_dict(pretrained.actor.state_dict())
    heads = tuple(f"{name}." for name in policy.critic.head_modules)
    ours, theirs = policy.critic.state_dict(), pretrained.critic.state_dict()
    for name, value in ours.items():
        if ("critic_head" if name.startswith(heads) else "critic_trunk") not in parts:
            continue
        if theirs[name].shape == value.shape:
            value.copy_(theirs[name])
        elif isinstance(skill, int):
            value.copy_(pretrained.critic.of_skill(name, theirs[name], skill))
        else:
            raise ValueError("The best skill is only known after the warm-up: choose a skill, or transfer no 'critic_head'.")
    if "no_target" not in parts:
        policy.critic_target.load_state_dict(policy.critic.state_dict())
