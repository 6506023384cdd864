"""Saving and loading models and replay buffers, to continue a training or to fine-tune on a task."""

import copy
import io
import pathlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import torch as th
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.save_util import load_from_pkl, load_from_zip_file, save_to_pkl
from stable_baselines3.common.type_aliases import GymEnv, TensorDict

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.choices import Part
from sb3_cesd.common.cuda import UpdateRunner
from sb3_cesd.common.files import explained, with_suffix, written_whole
from sb3_cesd.common.rng import seed_to_go_on
from sb3_cesd.common.rules import plain
from sb3_cesd.common.skills import SkillName, make_skill_space
from sb3_cesd.common.vec_env import add_skill_observation
from sb3_cesd.common.vec_normalize import normalizes_observations
from sb3_cesd.common.versions import installed_versions, warn_of_other_versions
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import checks, finetuning, saved_files, skill_states
from sb3_cesd.skill_ddpg.networks import SkillActor

#: Attributes that a model has during ``learn`` alone; ``train`` is replaced while another thread learns
OF_LEARNING = ("until_learned", "train", "_is_learning", "_has_acted", "_log_schedule", "_estimate")

SelfSavedSkillModel = TypeVar("SelfSavedSkillModel", bound="SavedSkillModel")


class SavedSkillModel(OffPolicyAlgorithm):
    """Part of :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG` that saves and loads: models and replay buffers."""

    replay_buffer: SkillReplayBuffer | None  # type: ignore[assignment]
    intrinsic: IntrinsicReward
    skill_duration: int | None
    #: Versions of this package and its dependencies, when the model was last saved
    saved_with: dict[str, str]
    #: Whether observations were normalised (``VecNormalize``) when it last learned
    trained_normalized: bool = False

    #: Arguments that shape the networks: a saved model keeps them
    fixed_by_save: ClassVar[tuple[str, ...]] = ("n_skills", "skill_type", "skill_dim", "ent_coef")

    #: States that each skill of a pre-trained model visits, shape ``(n_skills, n, obs_dim)``; empty if they are not known
    skill_states: th.Tensor

    #: Actor of the pre-trained model, which a task with ``bc_coef`` imitates
    reference_actor: SkillActor | None
    #: Whether there is one
    keeps_reference: bool = False

    _update_runner: UpdateRunner
    #: Steps by which ``learning_starts`` exceeds the argument, which is what is saved; see :meth:`learning_later`
    _learns_later_by: int = 0
    #: Parts that :meth:`from_pretrained` loads by default, as in the released code of the method
    published_transfer: ClassVar[tuple[Part, ...]] = finetuning.PUBLISHED_PARTS

    @classmethod
    def from_pretrained(
        cls: type[SelfSavedSkillModel],
        path: str | pathlib.Path | io.BufferedIOBase,
        env: GymEnv | str,
        skill: SkillName | str = "random",
        transfer: Collection[Part] | None = None,
        n_eval_episodes: int = 10,
        device: th.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        **kwargs,
    ) -> SelfSavedSkillModel:
        """
        Make a model to fine-tune on a task from a pre-trained one.

        ``learn`` then maximises the reward of the environment with one skill, which predictions and evaluations follow, too.
        What is not transferred starts from scratch. In the first ``learning_starts`` steps all skills act in turn, unless
        ``warm_up`` says otherwise.

        :param path: path to the zip file (or a file-like) of the pre-trained model
        :param env: the task: an environment in the domain of the pre-training (if registered in Gym, can be str)
        :param skill: the skill that learns the task: ``"random"``, an index (or the vector of a continuous skill), or
            ``"best"``. The best skill is chosen after the warm-up of ``learning_starts`` steps: the one whose states promise
            the highest mean reward, given the rewards of the warm-up (see
            :func:`~sb3_cesd.skill_ddpg.skill_states.expected_rewards`), or, if the file holds no states, the one with the
            highest mean reward in the warm-up. With any ``warm_up`` but ``"skills"``, every skill is played beforehand and the
            one with the highest return chosen; ``zero_shot`` then holds the returns and the number of steps played, which are
            not part of ``num_timesteps``.
        :param transfer: parts to load, some of ``"actor"``, ``"critic_trunk"``, ``"critic_head"`` (that of the skill),
            ``"optimizers"`` (of the parts that are loaded) and ``"no_target"`` (the target critic starts from scratch);
            ``None`` for the ``published_transfer`` of the method: actor and trunk of the critic, unless its docs say otherwise
        :param n_eval_episodes: number of episodes per skill, if they are played to find the ``"best"``
        :param device: Device on which the code should be run.
        :param custom_objects: Dictionary of objects to replace upon loading.
        :param kwargs: arguments of the constructor to change (``policy_kwargs`` add to those of the pre-training); by default
            they are those of the pre-trained model, except for ``seed``, ``verbose`` and ``tensorboard_log``, which are those
            of a new model, and ``warm_up`` ("skills"), ``train_freq`` (2), ``gradient_steps`` (None) and ``learning_starts``
            (at most 4000), which have URLB's values for tasks
        :return: a model that has not learned yet
        :raises ValueError: if the file is not a pre-trained model, or does not fit the environment or the arguments
        :raises FileNotFoundError: if there is no such file
        """
        return finetuning.make_task_model(cls, path, env, skill, transfer, n_eval_episodes, device, custom_objects, kwargs)

    @classmethod
    def load(
        cls: type[SelfSavedSkillModel],
        path: str | pathlib.Path | io.BufferedIOBase,
        env: GymEnv | str | None = None,
        device: th.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs,
    ) -> SelfSavedSkillModel:
        """
        Load the model from a zip-file. See :meth:`stable_baselines3.common.base_class.BaseAlgorithm.load`.

        A seeded model that has learned does not repeat the random numbers of its start, but continues with others, the same
        whenever the file is loaded. With ``seed`` in ``kwargs``, it starts with those of that seed.

        Loading a pre-trained model with ``reward="extrinsic"`` makes a model to fine-tune, see :meth:`from_pretrained`.

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
        check_arguments("load", locals())
        checks.check_changes(cls, "load", kwargs, ("skill", *finetuning.USED_UP))
        kwargs = {name: plain(value) for name, value in kwargs.items()}
        saved = {**saved_files.read_saved_data(path), **(custom_objects or {})}
        if "gradient_steps" in (custom_objects or {}):
            kwargs.setdefault("gradient_steps", saved["gradient_steps"])
        if kwargs.get("reward") == "extrinsic" and saved.get("reward", "intrinsic") == "intrinsic":
            if env is None:
                raise ValueError(f"{path} can't be fine-tuned without a task: pass env, or leave reward='extrinsic' out.")
            return cls.from_pretrained(path, env, device=device, custom_objects=custom_objects, **kwargs)
        saved_files.check_fixed(cls, path, saved, kwargs)
        finetuning.check_is_task(path, saved, kwargs)
        warn_of_other_versions(path, saved.get("saved_with", {}))
        if "intrinsic_kwargs" in kwargs:
            wanted = kwargs["intrinsic_kwargs"] or {}
            kwargs["intrinsic_kwargs"] = saved_files.merged_intrinsic_kwargs(cls, path, saved, wanted)
        if "policy_kwargs" in kwargs and saved_files.adds_nothing(kwargs["policy_kwargs"], saved.get("policy_kwargs")):
            # SB3 wants all of them, and tuples as the lists that were saved
            del kwargs["policy_kwargs"]
        if saved.get("reward") == "extrinsic":
            kwargs = finetuning.arguments_to_go_on(path, saved, kwargs)
        if "gradient_steps" in kwargs:
            kwargs["updates_follow_steps"] = kwargs["gradient_steps"] is None
        if env is not None:
            made = checks.make_training_env(env, kwargs.get("verbose", 0))
            checks.check_env_spaces(made.observation_space, made.action_space)
            env = add_skill_observation(
                cls._wrap_env(made, verbose=kwargs.get("verbose", 0)),
                make_skill_space(saved["skill_type"], saved["n_skills"], saved["skill_dim"]),
                kwargs.get("skill_duration", saved["skill_duration"]),
                kwargs.get("skill", saved["skill"]),
            )
        with saved_files.explain_other_spaces():
            model = super().load(path, env, device, custom_objects, print_system_info, force_reset, **kwargs)
        if "seed" not in kwargs and model.seed is not None and model.num_timesteps > 0:
            # SB3 seeds a loaded model like a new one, which would repeat the random numbers of its start
            model.set_random_seed(seed_to_go_on(model.seed, model.num_timesteps))
        return model

    def save(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """
        Save all the attributes of the object and the model parameters in a zip-file.

        If this fails or is killed, the previous file is untouched.

        :param path: path to the file where the rl agent should be saved
        :param exclude: name of parameters that should be excluded in addition to the default ones
        :param include: name of parameters that might be excluded but should be included anyway
        :raises OSError: if the file can't be written, e.g. because the disk is full
        :raises TrainingDiverged: if a weight is not finite
        """
        check_arguments("save", locals())
        checks.check_finite_model(self)
        self.saved_with = installed_versions()
        if self.num_timesteps == 0 and self.env is not None:
            self._note_normalization()
        self._remember_states()
        self.learning_starts -= self._learns_later_by
        try:
            if isinstance(path, str | pathlib.Path):
                with written_whole(with_suffix(path, ".zip")) as file:
                    super().save(file, exclude, include)  # type: ignore[arg-type]
            else:
                super().save(path, exclude, include)
        finally:
            self.learning_starts += self._learns_later_by

    def _note_normalization(self) -> None:
        """Note whether the model learns on normalised observations."""
        self.trained_normalized = normalizes_observations(self.get_vec_normalize_env())

    @contextmanager
    def learning_later(self, n_timesteps: int) -> Iterator[None]:
        """
        Postpone the start of learning. What is saved meanwhile has the original ``learning_starts``.

        :param n_timesteps: number of steps by which to postpone it
        """
        self._learns_later_by += n_timesteps
        self.learning_starts += n_timesteps
        try:
            yield
        finally:
            self._learns_later_by -= n_timesteps
            self.learning_starts -= n_timesteps

    def _remember_states(self) -> None:
        """Store states that the skills of a pre-trained model visit, if the replay buffer has enough of them."""
        if self.replay_buffer is None or self.replay_buffer.reward == "extrinsic":
            return
        states = skill_states.recent_states(self.replay_buffer, self.skill_duration)
        if states is not None:
            self.skill_states = th.from_numpy(states).to(self.device)

    def _forget_states(self) -> None:
        """Drop the states of an earlier pre-training if the one that begins collects none, although it changes the skills."""
        if self.replay_buffer is None or self.replay_buffer.reward == "extrinsic":
            return
        if skill_states.kept_shape(self.replay_buffer, self.skill_duration)[1] == 0:
            self.skill_states = self.skill_states[:0]

    def set_parameters(
        self,
        load_path_or_dict: str | TensorDict,
        exact_match: bool = True,
        device: th.device | str = "auto",
    ) -> None:
        """
        Load parameters. See :meth:`stable_baselines3.common.base_class.BaseAlgorithm.set_parameters`.

        :param load_path_or_dict: file of a model, or what ``get_parameters`` returned
        :param exact_match: whether they must be all parameters of the model, and no others
        :param device: Device on which the code should run.
        :raises ValueError: if they are not those of such a model
        """
        check_arguments("set_parameters", locals())
        parameters = load_path_or_dict
        if not isinstance(parameters, dict):
            _, parameters, _ = load_from_zip_file(parameters, device=device, load_data=False)
        if not self.keeps_reference and "reference_actor" in parameters:
            if exact_match:
                raise ValueError("reference_actor is only part of tasks with bc_coef: exact_match=False leaves it out")
            parameters = {name: value for name, value in parameters.items() if name != "reference_actor"}
        # An optimizer keeps the tensors that it loads, which may be those of another model
        copied = {name: copy.deepcopy(value) for name, value in parameters.items() if "param_groups" in value}
        super().set_parameters({**parameters, **copied}, exact_match, device)
        # The states of optimizers were replaced
        self._update_runner.forget()

    def save_replay_buffer(self, path: str | pathlib.Path | io.BufferedIOBase) -> None:
        """
        Save the replay buffer as a pickle file.

        If this fails or is killed, the previous file is untouched.

        :param path: Path to the file where the replay buffer should be saved.
        :raises OSError: if the file can't be written, e.g. because the disk is full
        """
        check_arguments("save_replay_buffer", locals())
        assert self.replay_buffer is not None, "The replay buffer is not defined"
        self.replay_buffer.task = saved_files.task_of(self)
        if isinstance(path, str | pathlib.Path):
            with written_whole(with_suffix(path, ".pkl")) as file:
                save_to_pkl(file, self.replay_buffer, self.verbose)
        else:
            save_to_pkl(path, self.replay_buffer, self.verbose)

    def load_replay_buffer(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        truncate_last_traj: bool = True,
    ) -> None:
        """
        Load a replay buffer that :meth:`save_replay_buffer` wrote. Its transitions are sampled with the arguments of the model
        (``gamma``, ``n_steps``, ...).

        A pickle can run arbitrary code: load only files that you trust.

        :param path: Path to the pickled replay buffer.
        :param truncate_last_traj: not used, trajectories are cut where environments were reset
        :raises ValueError: if it is damaged, or does not fit the model
        """
        check_arguments("load_replay_buffer", locals())
        with explained(path, SkillReplayBuffer.__name__):
            loaded = load_from_pkl(path, self.verbose)
            if not isinstance(loaded, SkillReplayBuffer):
                raise TypeError(f"it holds a {type(loaded).__name__}")
        if saved_files.is_of_other_rewards(self, path, loaded):
            return
        self._adopt_buffer(loaded, path)

    def _adopt_buffer(self, loaded: SkillReplayBuffer, path: object) -> None:
        """
        Take over a loaded replay buffer, with the arguments of the model in place of those it was filled with.

        :param loaded: a replay buffer that was saved
        :param path: its file
        :raises ValueError: if it does not fit the model
        """
        saved_files.check_buffer_fits(self, path, loaded)
        arguments = {"handle_timeout_termination": True, **self.replay_buffer_kwargs}
        for name in ("n_steps", "gamma", "one_step", "handle_timeout_termination"):
            setattr(loaded, name, arguments[name])
        loaded.average_window = self.intrinsic.average_window
        loaded.device = self.device
        self.replay_buffer = loaded

    def _excluded_save_params(self) -> list[str]:
        return [
            *super()._excluded_save_params(),
            *OF_LEARNING,
            "actor",
            "critic",
            "critic_target",
            "critic_batch_norm_stats",
            "critic_batch_norm_stats_target",
            "intrinsic",
            "reference_actor",
            "_mean_logs",
            "_gradient_steps",
            "_running_statistics",
            "_unit_noise",
            "_update_runner",
            "_skill_rewards",
            "_goes_on",
            "checkpoint_folders",
            "_seen_until",
            "_ends_episodes",
            "_next_seed",
            "_learns_later_by",
        ]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        optimizers = [f"intrinsic.{name}" for name in self.intrinsic.optimizers]
        references = ["reference_actor"] if self.keeps_reference else []
        return ["policy", "actor.optimizer", "critic.optimizer", "intrinsic", *optimizers, *references], ["skill_states"]
