"""Fine-tuning on a task: what the model takes over from a pre-trained one, and which skill learns the task."""

import io
import pathlib
import warnings
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize
from torch import nn

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import Part
from sb3_cesd.common.logging import listed
from sb3_cesd.common.merging import merge
from sb3_cesd.common.observations import shapes_of
from sb3_cesd.common.playing import play
from sb3_cesd.common.rules import shown
from sb3_cesd.common.skills import SkillName, SkillSpace, best_of, make_skill_space, name_in_task
from sb3_cesd.common.vec_env import add_skill_observation
from sb3_cesd.common.vec_normalize import frozen_statistics, lacks_statistics, normalizes_observations, what_lacks
from sb3_cesd.skill_ddpg.arguments import constructor_arguments
from sb3_cesd.skill_ddpg.checks import check_changes, check_env_spaces, make_training_env
from sb3_cesd.skill_ddpg.policies import SkillPolicy
from sb3_cesd.skill_ddpg.saved_files import check_fixed, read_saved_data

#: Parts that URLB transfers
PUBLISHED_PARTS: tuple[Part, ...] = ("actor", "critic_trunk")
SKILL_WORDS = ("random", "best")
#: Arguments that a task does not take over: it has a smaller budget than the pre-training, and as many updates as in URLB
TASK_DEFAULTS = {"warm_up": "skills", "train_freq": 2, "gradient_steps": None}
#: Steps of the warm-up in URLB, the most that a task takes over
LONGEST_WARM_UP = 4000
#: Arguments of ``from_pretrained`` that no longer matter to a fine-tuned model
USED_UP = ("transfer", "n_eval_episodes")


class ZeroShot(NamedTuple):
    """
    Returns of skills in a task they were not trained for.

    :param returns: mean return of each skill, shape ``(n_skills,)``
    :param n_timesteps: number of environment steps played for this
    """

    returns: np.ndarray
    n_timesteps: int

    def __str__(self) -> str:
        return f"{listed(self.returns)} (took {self.n_timesteps} steps, not part of num_timesteps)"


def read_pretrained_data(path: str | pathlib.Path | io.BufferedIOBase) -> dict[str, Any]:
    """
    Read the saved attributes of a pre-trained model.

    :param path: the zip file of a pre-trained model
    :return: its plain attributes by name
    :raises FileNotFoundError: if there is no such file
    :raises ValueError: if it is not a saved model, or not a pre-trained one
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
            f"{path} was trained on a task already, with {name_in_task(saved.get('skill'))}: load it to go on with that task, "
            "or pass the pre-trained model."
        )
    if saved.get("_n_updates") == 0:
        raise ValueError(
            f"{path} was never pre-trained (0 updates after {saved.get('num_timesteps')} steps): let it learn for more than "
            "learning_starts steps before it is saved, or train on the task from scratch with reward='extrinsic'."
        )
    return saved


def check_open_skill(parts: Collection[str], policy: SkillPolicy) -> None:
    """
    Check that the parts to transfer do not depend on the skill, which is not chosen yet.

    :param parts: parts to transfer
    :param policy: pre-trained policy
    :raises ValueError: if one of them depends on the skill
    """
    if "critic_head" in parts and policy.critic.has_skill_heads:
        raise ValueError(
            "transfer with 'critic_head' needs to know the skill, but skill='best' with warm_up='skills' chooses it after the "
            "warm-up: leave 'critic_head' out, or choose another skill or warm_up."
        )


def check_skill_choice(skill: SkillName | str, skill_space: SkillSpace) -> SkillName | str:
    """
    Check the choice of a skill.

    :param skill: index or vector of a skill, ``"random"`` or ``"best"``
    :param skill_space: space of the skills
    :return: the same
    :raises ValueError: if there is no such skill
    """
    if not isinstance(skill, str):
        return skill_space.name_of(skill)
    if skill not in SKILL_WORDS:
        raise ValueError(
            f"Unknown skill {skill!r}: choose 'random', 'best' or an integer from 0 to {skill_space.n_skills - 1}."
        )
    return skill


def check_is_task(path: object, saved: dict[str, Any], arguments: dict[str, Any]) -> None:
    """
    Check that arguments of ``from_pretrained`` are passed for a task only.

    :param path: the file
    :param saved: what is saved in it
    :param arguments: arguments to change when it is loaded
    :raises ValueError: if they are of no effect, as the model goes on with its pre-training
    """
    useless = [name for name in USED_UP if name in arguments]
    if useless and saved.get("reward", "intrinsic") == "intrinsic":
        raise ValueError(
            f"{' and '.join(useless)} only matter for a task, but {path} would continue its pre-training: pass "
            "reward='extrinsic' or call from_pretrained to learn a task, or leave them out."
        )


def arguments_to_go_on(path: object, saved: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """
    Select the arguments that still matter when a fine-tuned model is loaded.

    :param path: file of the fine-tuned model
    :param saved: what is saved in it
    :param arguments: what to change when it is loaded, possibly with arguments of ``from_pretrained``
    :return: the arguments other than those of ``from_pretrained``
    :raises ValueError: if they name another skill
    """
    if "skill" in arguments:
        skill_space = make_skill_space(saved["skill_type"], saved["n_skills"], saved["skill_dim"])
        wanted = check_skill_choice(arguments["skill"], skill_space)
        if wanted not in (saved["skill"], *SKILL_WORDS):
            raise ValueError(
                f"skill={shown(wanted)} does not fit {path}, in which skill {saved['skill']} learns the task: leave skill "
                "out, or fine-tune the pre-trained model again."
            )
    return {name: value for name, value in arguments.items() if name not in ("skill", *USED_UP)}


def make_task_model(
    model_class: Any,
    path: str | pathlib.Path | io.BufferedIOBase,
    env: Any,
    skill: SkillName | str,
    parts: Collection[str] | None,
    n_eval_episodes: int,
    device: th.device | str,
    custom_objects: dict[str, Any] | None,
    kwargs: dict[str, Any],
) -> Any:
    """
    Make a model to fine-tune on a task; for the arguments see
    :meth:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG.from_pretrained`.

    :param model_class: class of the method
    :param path: file of the pre-trained model
    :param env: the task
    :param skill: the skill that learns the task
    :param parts: parts to load; ``None`` for those that the method loads by default
    :param n_eval_episodes: number of episodes of each skill for ``"best"``
    :param device: Device on which the code should be run.
    :param custom_objects: Dictionary of objects to replace upon loading.
    :param kwargs: arguments of the constructor to change
    :return: a model that has not learned yet
    :raises ValueError: if the file is not a pre-trained model, or does not fit the environment or the arguments
    :raises FileNotFoundError: if there is no such file
    """
    parts = model_class.published_transfer if parts is None else parts
    check_arguments("from_pretrained", {**locals(), "transfer": parts})
    check_changes(model_class, "from_pretrained", kwargs, ())
    saved = read_pretrained_data(path)
    if kwargs.get("reward", "extrinsic") != "extrinsic":
        raise ValueError(f"reward={kwargs['reward']!r} is not a task: leave reward out, or use load() to go on pre-training.")
    check_fixed(model_class, path, saved, {})
    objects = {"replay_buffer": None, **(custom_objects or {})}  # one that was saved with the model is not needed
    pretrained = model_class.load(path, device=device, custom_objects=objects, buffer_size=1, seed=None)
    verbose = kwargs.get("verbose", 0)
    venv = model_class._wrap_env(make_training_env(env, verbose), verbose)
    check_env_spaces(venv.observation_space, venv.action_space)
    venv = add_skill_observation(venv, pretrained.skill_space, pretrained.skill_duration)
    check_task_env(venv, pretrained)
    check_fixed(model_class, path, saved, {name: kwargs[name] for name in model_class.fixed_by_save if name in kwargs})
    skill = check_skill_choice(skill, pretrained.skill_space)

    buffer_size = {**saved, **objects}["buffer_size"]
    arguments = {**constructor_arguments(pretrained), "buffer_size": buffer_size, **TASK_DEFAULTS}
    arguments["learning_starts"] = min(pretrained.learning_starts, LONGEST_WARM_UP)
    arguments.update({**kwargs, "reward": "extrinsic"})
    arguments["policy_kwargs"] = _merged_policy_kwargs(pretrained, kwargs.get("policy_kwargs") or {})
    wanted = kwargs.get("intrinsic_kwargs") or {}
    of_task = {name: value for name, value in wanted.items() if name in model_class.reward_class.used_by_tasks}
    arguments["intrinsic_kwargs"] = {**pretrained.intrinsic_kwargs, **of_task}
    model = model_class(pretrained.policy_class, venv, device=device, **arguments)
    check_same_function(path, pretrained.policy, model.policy)

    chosen: SkillName | None
    if skill == "best" and model.skill_turns is not None:
        check_open_skill(parts, pretrained.policy)
        chosen = None
    elif skill == "best":
        model.zero_shot = play_skills(pretrained.policy, venv, n_eval_episodes, model.seed)
        chosen = best_of(model.zero_shot.returns, "return", "Pass warm_up='skills', or raise n_eval_episodes")
    else:
        chosen = draw_skill(model.n_skills, model.seed) if isinstance(skill, str) else skill
    try:
        transfer(pretrained.policy, model.policy, chosen, parts)
        if model.bc_coef > 0:
            model._keep_reference(pretrained.actor)
    except (KeyError, RuntimeError) as error:  # missing tensors, or other shapes
        raise ValueError(
            f"policy_kwargs={shown(kwargs.get('policy_kwargs'))} makes networks of other shapes than those of {path}: leave "
            "policy_kwargs out, or train on the task from scratch."
        ) from error
    model.skill_states = pretrained.skill_states
    model._take_over(pretrained)
    model._follow(chosen)
    forget_returns(unwrap_vec_normalize(venv))
    if verbose >= 1:
        if model.zero_shot is not None:
            print(f"Zero-shot returns of all skills: {model.zero_shot}")
        name = f"skill {chosen}"
        if chosen is None:
            name = f"the skill that does best in the first {model.learning_starts} steps,"
        print(f"Fine-tuning {name} of {path}")
    return model


def _merged_policy_kwargs(pretrained: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """
    Merge changed arguments of the policy into those of the pre-training.

    :param pretrained: the pre-trained model
    :param wanted: arguments to change
    :return: all arguments; those of another optimizer are left out
    """
    kept = pretrained.policy_kwargs
    if wanted.get("optimizer_class", pretrained.policy.optimizer_class) is not pretrained.policy.optimizer_class:
        kept = {name: value for name, value in kept.items() if name != "optimizer_kwargs"}
    return merge(kept, wanted)


def check_same_function(path: object, pretrained: SkillPolicy, policy: SkillPolicy) -> None:
    """
    Check that networks compute with pre-trained weights what they computed in the pre-training, as far as shapes do not tell.

    :param path: file of the pre-trained model
    :param pretrained: its policy
    :param policy: policy of the task
    :raises ValueError: if they do not
    """
    for name in ("activation_fn", "normalize_images"):
        known, given = getattr(pretrained, name), getattr(policy, name)
        if given != known:
            raise ValueError(
                f"policy_kwargs with {name}={shown(given)} turn the skills of {path}, which learned with {shown(known)}, into "
                f"others: leave {name} out, or train on the task from scratch."
            )


def forget_returns(vec_normalize: VecNormalize | None) -> None:
    """
    Start the statistics of returns anew: those of the pre-training are of other rewards, or of none.

    :param vec_normalize: ``VecNormalize`` of the task, if there is one
    """
    if vec_normalize is not None:
        vec_normalize.ret_rms = RunningMeanStd(shape=())


def check_task_env(env: VecEnv, pretrained: Any) -> None:
    """
    Check that a task fits a pre-trained model, and warn if its observations are not normalised as in the pre-training.

    :param env: the task, with skill observations
    :param pretrained: the pre-trained model
    :raises ValueError: if the spaces differ
    """
    try:
        check_for_correct_spaces(env, pretrained.observation_space, pretrained.action_space)
    except ValueError as error:
        spaces = (env.observation_space, pretrained.observation_space), (env.action_space, pretrained.action_space)
        if all(shapes_of(ours) == shapes_of(theirs) for ours, theirs in spaces):
            remedy = (
                "The shapes match, but bounds or dtypes do not: give the task those of the pre-training, for instance "
                "with gymnasium.wrappers.TransformObservation and TransformAction."
            )
        else:
            remedy = (
                "The model was pre-trained in another domain: choose a task with the same observations and actions, or "
                "pre-train a model in the domain of the task."
            )
        raise ValueError(f"{error}. {remedy}") from error
    vec_normalize = unwrap_vec_normalize(env)
    if lacks_statistics(pretrained, vec_normalize):
        lacking = what_lacks(vec_normalize, "the task")
        warnings.warn(
            f"VecNormalize normalised the observations of the pre-training, but {lacking}, so skills may behave differently "
            "there: pass the task with the statistics of the pre-training, VecNormalize.load(path, env). With -i, RL Zoo "
            "finds them in vecnormalize.pkl of the run or the checkpoint. A checkpoint that lacks this file still holds them: "
            "resume it in Python, and save model.get_vec_normalize_env() to the file.",
            stacklevel=4,
        )
    elif normalizes_observations(vec_normalize) and pretrained.num_timesteps > 0 and not pretrained.trained_normalized:
        warnings.warn(
            "The skills were pre-trained on observations as they are, but VecNormalize normalises those of the task, so they "
            "may behave differently there: pass the task without VecNormalize, or with norm_obs=False.",
            stacklevel=4,
        )


def draw_skill(n_skills: int, seed: int | None) -> int:
    """
    Draw the skill that learns the task.

    :param n_skills: number of skills
    :param seed: seed of a separate generator, so that training is the same as with that skill chosen by its index
    :return: a random skill
    """
    return int(np.random.randint(n_skills) if seed is None else np.random.RandomState(seed).randint(n_skills))


def play_skills(policy: SkillPolicy, env: VecEnv, n_episodes: int, seed: int | None = None) -> ZeroShot:
    """
    Play every skill as pre-trained, without noise, from the same initial states if there is a seed.

    :param policy: a pre-trained policy
    :param env: the task, with or without skill observations
    :param n_episodes: number of episodes of each skill
    :param seed: seed of the environments
    :return: returns (not normalised), and the number of steps taken
    """
    returns, n_timesteps = np.zeros(policy.n_skills), 0
    with frozen_statistics(env):
        for skill in range(policy.n_skills):
            # As in evaluate_policy, so that short episodes do not count more often
            remaining = (n_episodes + np.arange(env.num_envs)) // env.num_envs
            if seed is not None:
                env.seed(seed)
            for n_steps, moment in enumerate(play(policy, env, skill)):
                returns[skill] += moment.rewards[remaining > 0].sum()
                remaining -= moment.dones & (remaining > 0)
                if not remaining.any():
                    n_timesteps += n_steps * env.num_envs
                    break
    return ZeroShot(returns / n_episodes, n_timesteps)


def transfer(pretrained: SkillPolicy, policy: SkillPolicy, skill: SkillName | None, parts: Collection[str]) -> None:
    """
    Copy parts of a pre-trained policy; the rest stays as initialised.

    The target critic becomes a copy of the critic, unless ``"no_target"`` leaves it as initialised: it then only follows by
    Polyak averaging, as in the released code of CeSD.

    :param pretrained: pre-trained policy
    :param policy: policy with one critic head, changed in place
    :param skill: the skill of that head, needed for ``"critic_head"``
    :param parts: some of ``"actor"``; ``"critic_trunk"``, all of the critic but its heads; ``"critic_head"``,
        that of the skill (or the value that skills share, where there is one); ``"optimizers"``, the moments of all these;
        ``"no_target"``, see above
    """
    with_moments = "optimizers" in parts
    if "actor" in parts:
        _copy(pretrained.actor, policy.actor, policy.actor.state_dict(), lambda name, value: value, with_moments)
    heads = tuple(f"{name}." for name in policy.critic.head_modules)
    shared = ("features_extractor.",) if policy.share_features_extractor else ()
    own_shapes = {name: value.shape for name, value in policy.critic.state_dict().items() if not name.startswith(shared)}
    own = list(own_shapes)

    def of_skill(name: str, value: th.Tensor) -> th.Tensor:
        if isinstance(skill, int) and value.shape != own_shapes[name]:
            return pretrained.critic.of_skill(name, value, skill)
        return value

    for part, names in {
        "critic_trunk": [name for name in own if not name.startswith(heads)],
        "critic_head": [name for name in own if name.startswith(heads)],
    }.items():
        if part in parts:
            _copy(pretrained.critic, policy.critic, names, of_skill, with_moments)
    if "no_target" not in parts:
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
    Copy parameters and buffers of a network, and the moments of its optimizer.

    :param source: network with an optimizer
    :param target: network to copy to, with an optimizer, changed in place
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
