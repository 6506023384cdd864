import io
import pathlib
import warnings
from collections.abc import Collection
from typing import Any, ClassVar, TypeVar

import torch as th
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.type_aliases import GymEnv

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.utils import check_positive_integer
from sb3_cesd.common.vec_env import add_skill_observation
from sb3_cesd.skill_ddpg import finetuning
from sb3_cesd.skill_ddpg.base import SkillDDPGBase
from sb3_cesd.skill_ddpg.checks import check_env_spaces, explain_missing_parameters, explain_other_spaces, read_saved_data

SelfSkillDDPG = TypeVar("SelfSkillDDPG", bound="SkillDDPG")


class SkillDDPG(SkillDDPGBase):
    """
    What all skill discovery methods of URLB share: a :class:`~sb3_cesd.skill_ddpg.base.SkillDDPGBase`, which has the
    arguments, that is saved, loaded, and fine-tuned on tasks.
    """

    #: Arguments that shape the networks: a saved model keeps them
    fixed_by_save: ClassVar[tuple[str, ...]] = ("n_skills",)

    @classmethod
    def from_pretrained(
        cls: type[SelfSkillDDPG],
        path: str | pathlib.Path | io.BufferedIOBase,
        env: GymEnv | str,
        skill: int | str = "random",
        transfer: Collection[str] = finetuning.PUBLISHED_PARTS,
        n_eval_episodes: int = 10,
        device: th.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        **kwargs,
    ) -> SelfSkillDDPG:
        """
        A model to fine-tune on a task, made from a pre-trained one: ``learn`` then maximises the reward of the environment
        with one skill, which is also the one of predictions and evaluations. What is not transferred starts fresh.

        :param path: path to the zip file (or a file-like) of the pre-trained model
        :param env: the task: an environment in the domain of the pre-training (if registered in Gym, can be str)
        :param skill: the skill to go on with: ``"random"``, an index, or ``"best"`` for the one with the highest return on the
            task as it is. The latter plays every skill; ``zero_shot`` then holds what came out and the number of steps that
            took, which are not part of ``num_timesteps``. With ``warm_up="skills"`` it takes no steps of its own: it is the
            one with the highest mean reward in the warm-up, known after ``learning_starts`` steps.
        :param transfer: what to load, some of ``"actor"``, ``"critic_trunk"``, ``"critic_head"`` (that of the skill) and
            ``"optimizers"`` (for the parts that are loaded)
        :param n_eval_episodes: number of episodes of each skill for ``"best"``
        :param device: Device on which the code should be run.
        :param custom_objects: Dictionary of objects to replace upon loading.
        :param kwargs: arguments of the constructor to change; the others are those of the pre-trained model
        :return: a model that has not learned yet
        :raises ValueError: if the file is not a pre-trained model, or does not fit the environment or the arguments
        :raises FileNotFoundError: if there is no such file
        """
        saved = finetuning.read_pretrained_data(path)
        finetuning.check_transfer(transfer)
        check_positive_integer(n_eval_episodes=n_eval_episodes)
        if kwargs.get("reward", "extrinsic") != "extrinsic":
            raise ValueError(
                f"reward={kwargs['reward']!r} is no task: leave reward out, or go on with pre-training by load()."
            )
        cls._check_fixed(path, saved, {name: kwargs[name] for name in kwargs if name == "n_skills"})
        pretrained = cls.load(path, device=device, custom_objects=custom_objects, buffer_size=1, seed=None)
        skill = finetuning.check_skill_choice(skill, pretrained.n_skills)

        arguments = {**finetuning.constructor_arguments(pretrained), "buffer_size": saved["buffer_size"]}
        arguments.update({**kwargs, "reward": "extrinsic"})
        # They shaped what is not used here, but may be named in a yml file of RL Zoo
        arguments.update({name: getattr(pretrained, name) for name in cls.fixed_by_save})
        verbose = kwargs.get("verbose", 0)
        venv = cls._wrap_env(maybe_make_env(env, verbose), verbose)  # type: ignore[arg-type]
        check_env_spaces(venv.observation_space, venv.action_space)
        venv = add_skill_observation(venv, pretrained.n_skills, pretrained.skill_duration)
        finetuning.check_task_env(venv, pretrained)
        model = cls(pretrained.policy_class, venv, device=device, **arguments)  # type: ignore[arg-type]

        if skill == "best" and model.skill_turns is not None:
            finetuning.check_open_skill(transfer)
            model._best_goes_on = True
            chosen = 0
        elif skill == "best":
            model.zero_shot = finetuning.play_skills(pretrained.policy, venv, n_eval_episodes, model.seed)
            chosen = int(model.zero_shot.returns.argmax())
        else:
            chosen = finetuning.draw_skill(model.n_skills, model.seed) if isinstance(skill, str) else skill
        finetuning.transfer(pretrained.policy, model.policy, chosen, transfer)
        model._follow(chosen)
        if verbose >= 1:
            if model.zero_shot is not None:
                print(f"Zero-shot returns of all skills: {model.zero_shot}")
            name = f"skill {chosen}"
            if model._best_goes_on:
                name = f"the skill that does best in the first {model.learning_starts} steps,"
            print(f"Fine-tuning {name} of {path}")
        return model

    @classmethod
    def _check_fixed(cls, path: object, saved: dict[str, Any], arguments: dict[str, Any]) -> None:
        """
        :param path: the file
        :param saved: what is saved in it
        :param arguments: what the user wants
        :raises ValueError: if another class saved it, or the user wants to change what a saved model keeps
        """
        missing = [name for name in cls.fixed_by_save if name not in saved]
        if missing:
            raise ValueError(
                f"{path} was not saved by {cls.__name__} (it has no {', '.join(missing)}): "
                "load it with the class that saved it."
            )
        for name in ("reward", *cls.fixed_by_save):
            kept = saved.get(name, "intrinsic") if name == "reward" else saved[name]
            if name in arguments and arguments[name] != kept:
                raise ValueError(
                    f"{name}={arguments[name]!r} does not fit {path}, which was trained with {name}={kept!r} and can't "
                    f"change it: pass {name}={kept!r} or leave it out."
                )

    @classmethod
    def load(
        cls: type[SelfSkillDDPG],
        path: str | pathlib.Path | io.BufferedIOBase,
        env: GymEnv | str | None = None,
        device: th.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs,
    ) -> SelfSkillDDPG:
        """
        Load the model from a zip-file. See :meth:`stable_baselines3.common.base_class.BaseAlgorithm.load`.

        A pre-trained model that is loaded with ``reward="extrinsic"`` is one to fine-tune, see :meth:`from_pretrained`.

        :param path: path to the file (or a file-like) where to load the agent from
        :param env: the new environment to run the loaded model on, with or without skill observations and of any number of
            environments, or a registered id (can be None if you only need prediction from a trained model)
        :param device: Device on which the code should run.
        :param custom_objects: Dictionary of objects to replace upon loading.
        :param print_system_info: Whether to print system info from the saved model and the current system info
        :param force_reset: Force call to ``reset()`` before training
        :param kwargs: extra arguments to change the model when loading
        :return: new model instance with loaded parameters
        :raises ValueError: if the file is damaged, of another algorithm, or does not fit the environment or the arguments
        """
        saved = read_saved_data(path)
        if kwargs.get("reward") == "extrinsic" and saved.get("reward", "intrinsic") == "intrinsic":
            if env is None:
                raise ValueError(f"{path} can't be fine-tuned without a task: pass env, or leave reward='extrinsic' out.")
            return cls.from_pretrained(path, env, device=device, custom_objects=custom_objects, **kwargs)
        cls._check_fixed(path, saved, kwargs)
        if saved.get("reward") == "extrinsic":
            kwargs = finetuning.arguments_to_go_on(path, saved["skill"], kwargs)
        if "gradient_steps" in kwargs:
            kwargs["updates_follow_steps"] = kwargs["gradient_steps"] is None
        if env is not None:
            env = maybe_make_env(env, kwargs.get("verbose", 0))
            check_env_spaces(env.observation_space, env.action_space)
            skill_duration = kwargs.get("skill_duration", saved["skill_duration"])
            env = add_skill_observation(
                cls._wrap_env(env, verbose=kwargs.get("verbose", 0)),
                saved["n_skills"],
                skill_duration,
                kwargs.get("skill", saved["skill"]),
            )
        with explain_other_spaces(), explain_missing_parameters(path):
            return super().load(path, env, device, custom_objects, print_system_info, force_reset, **kwargs)

    def load_replay_buffer(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        truncate_last_traj: bool = True,
    ) -> None:
        current = self.replay_buffer
        super().load_replay_buffer(path, truncate_last_traj)
        loaded, self.replay_buffer = self.replay_buffer, current
        assert current is not None
        if self.reward == "extrinsic" and isinstance(loaded, SkillReplayBuffer):
            if (loaded.skills[: loaded.size()] != self.skill).any():
                # RL Zoo loads whatever lies beside a model
                warnings.warn(
                    f"The replay buffer {path} holds the pre-training, not the task: it was not loaded, the buffer stays "
                    "empty. Move the file away to silence this."
                )
                return
        for name in ("n_skills", "n_envs", "obs_shape", "action_dim"):
            ours, theirs = getattr(current, name), getattr(loaded, name, None)
            if ours != theirs:
                raise ValueError(
                    f"The replay buffer {path} does not fit the model: its {name} is {theirs}, the model's is {ours}. "
                    "Load the model with the environment the buffer was filled from, or go on without this buffer."
                )
        self.replay_buffer = loaded

    def _excluded_save_params(self) -> list[str]:
        return [
            *super()._excluded_save_params(),
            "actor",
            "critic",
            "critic_target",
            "intrinsic",
            "_mean_logs",
            "_unit_noise",
            "_graphed_update",
            "train",  # replaced while another thread learns
            "_skill_rewards",
        ]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        optimizers = [f"intrinsic.{name}" for name in self.intrinsic.optimizer_names]
        return ["policy", "actor.optimizer", "critic.optimizer", "intrinsic", *optimizers], []
