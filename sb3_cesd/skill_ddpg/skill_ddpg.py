"""The algorithm that all methods share."""

import copy
import io
import pathlib
import warnings
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise, OrnsteinUhlenbeckActionNoise, VectorizedActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import get_action_dim, get_flattened_obs_dim, maybe_transpose
from stable_baselines3.common.save_util import load_from_pkl, save_to_pkl
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule, TensorDict, TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import get_parameters_by_name, safe_mean
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_wrapper

from sb3_cesd.common.arguments import (
    NonNegative,
    NonNegativeInt,
    PositiveInt,
    Range,
    Share,
    build,
    check_changes,
    check_names,
    checked,
    constructor_names,
    parts_of,
    with_defaults,
)
from sb3_cesd.common.buffers import FrameReplayBuffer, SkillReplayBuffer
from sb3_cesd.common.cuda import UpdateRunner, check_capturable, set_learning_rate
from sb3_cesd.common.files import explained, with_suffix, written_whole
from sb3_cesd.common.logging import MeanLogs, SkillRewards
from sb3_cesd.common.observations import (
    SKILL,
    Observation,
    TensorObservation,
    add_skill,
    entries_of,
    plain_form,
    plain_space,
    to_states,
)
from sb3_cesd.common.rng import seed_to_go_on, unit_noise
from sb3_cesd.common.skill_clock import SkillClock, SkillTurns
from sb3_cesd.common.skills import SkillName, SkillSpace, best_of, make_skill_space
from sb3_cesd.common.torch_layers import frozen, minimum, polyak_update, select
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.common.vec_env import (
    VecSkillObservation,
    add_skill_observation,
    as_arrays,
    env_as_json,
    last_observations,
    n_stacked,
    prepare_evaluation,
)
from sb3_cesd.common.vec_normalize import lacks_statistics, normalizes_observations, original_entries, unnormalize_entries
from sb3_cesd.intrinsic.base import ExtrinsicReward, IntrinsicReward
from sb3_cesd.skill_ddpg import checks, finetuning, saved_files
from sb3_cesd.skill_ddpg.checks import TrainingDiverged
from sb3_cesd.skill_ddpg.images import SharedFeatures
from sb3_cesd.skill_ddpg.networks import SkillActor, SkillCritic
from sb3_cesd.skill_ddpg.policies import CnnPolicy, MlpPolicy, SkillPolicy
from sb3_cesd.skill_ddpg.search_space import BACKBONE, Space, nest

SelfSkillDDPG = TypeVar("SelfSkillDDPG", bound="SkillDDPG")


class SkillDDPG(OffPolicyAlgorithm):
    """
    Skill-conditioned DDPG with twin critics that maximises an intrinsic reward: the agent of URLB, shared by all methods.

    A method is a subclass that sets ``reward_class`` and, where its paper differs from URLB, ``defaults``.
    docs/departures.md lists where all methods depart from URLB. Networks and batches are of a size for laptops by default;
    ``preset("published", ...)`` has those of the papers.
    The environment is wrapped in :class:`~sb3_cesd.common.vec_env.VecSkillObservation`, unless it already is.

    :param policy: The policy model to use (CnnPolicy for images; MlpPolicy, which flattens them, or MultiInputPolicy, which is
        the same here; of images in a dictionary, SB3's NatureCNN makes features for actor and critic)
    :param env: The environment to learn from (if registered in Gym, can be str), with a Box action space, and a Box or a
        Dict of Boxes as observation space
    :param n_skills: number of skills, at least 2; for continuous skills, the number of representative skills, which have an
        index and are used by evaluations, warm-ups and pictures
    :param skill_duration: environment steps after which a new skill is drawn (also drawn at reset); ``None`` keeps a skill
        for the whole episode
    :param skill_type: kind of skills: ``"discrete"`` (one-hot vectors), or continuous vectors drawn uniformly from the unit
        ``"sphere"``, the ``"cube"`` [-1, 1]^d or the ``"unit_cube"`` [0, 1]^d
    :param skill_dim: dimension d of continuous skills; not used for discrete ones
    :param intrinsic_kwargs: arguments of the intrinsic reward (``reward_class``)
    :param learning_rate: learning rate of all networks;
        it can be a function of the current progress remaining (from 1 to 0)
    :param buffer_size: size of the replay buffer, in transitions
    :param learning_starts: number of environment steps to collect before learning starts
    :param batch_size: number of transitions per gradient update
    :param tau: the soft update coefficient ("Polyak update", between 0 and 1)
    :param gamma: the discount factor, between 0 and 1
    :param train_freq: Update the model every ``train_freq`` steps. Alternatively pass a tuple of frequency and unit
        like ``(5, "step")`` or ``(2, "episode")``.
    :param gradient_steps: How many gradient steps to do after each rollout (see ``train_freq``). ``None`` does one update per
        ``train_freq`` transitions, whatever the number of environments; ``-1`` does one per transition.
    :param n_steps: number of steps of the n-step return
    :param action_noise: exploration noise in place of ``exploration_noise``
    :param exploration_noise: standard deviation of the Gaussian exploration noise, on actions scaled to [-1, 1]
    :param noise_correlation: correlation of that noise between consecutive steps, from 0 (white noise) to below 1: an
        Ornstein-Uhlenbeck process that restarts with each episode
    :param target_policy_noise: standard deviation of the Gaussian noise on the actions in the critic target and the actor loss
    :param target_noise_clip: absolute value at which that noise is clipped
    :param ent_coef: ``None`` learns a deterministic policy, as in DDPG and TD3. The entropy coefficient of Stable-Baselines3's
        SAC (a number, ``"auto"`` or, with an initial value, e.g. ``"auto_0.1"``) learns a stochastic policy, which explores by
        itself: of the noises above, only ``action_noise`` is then added. See
        :class:`~sb3_cesd.skill_ddpg.networks.StochasticSkillActor`
    :param reward: ``"intrinsic"`` discovers skills; ``"extrinsic"`` learns the task of the environment from scratch, with a
        single skill (to fine-tune pre-trained skills instead, see :meth:`from_pretrained`)
    :param warm_up: how to act in the first ``learning_starts`` steps: ``"random"`` (uniform actions), ``"policy"`` or, when
        learning a task, ``"skills"`` (all skills in turn; in pre-training the same as ``"policy"``)
    :param replay_buffer_class: replay buffer class, :class:`~sb3_cesd.common.buffers.SkillReplayBuffer` or a subclass; by
        default :class:`~sb3_cesd.common.buffers.FrameReplayBuffer` for ``CnnPolicy`` with ``VecFrameStack``
    :param replay_buffer_kwargs: Keyword arguments to pass to the replay buffer on creation
    :param cuda_graph: replay the whole update as one CUDA graph; no effect on the CPU. Except for the learning rate, numbers
        changed during training have no effect on the graph.
    :param stats_window_size: Window size for the rollout logging, specifying the number of episodes to average
        the reported success rate, mean episode length, and mean reward over
    :param tensorboard_log: the log location for tensorboard (if None, no logging)
    :param policy_kwargs: additional arguments to be passed to the policy on creation, see
        :class:`~sb3_cesd.skill_ddpg.policies.SkillPolicy`
    :param verbose: Verbosity level: 0 for no output, 1 for info messages (such as device or wrappers used), 2 for
        debug messages
    :param seed: Seed for the pseudo random generators
    :param device: Device (cpu, cuda, ...) on which the code should be run.
        Setting it to auto, the code will be run on the GPU if possible.
    :param _init_setup_model: Whether or not to build the network at the creation of the instance
    :raises ValueError: if an argument is out of range, or the method supports neither the spaces of the environment nor such
        skills
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "MultiInputPolicy": MlpPolicy,
        "CnnPolicy": CnnPolicy,
        "SkillPolicy": SkillPolicy,
    }
    policy: SkillPolicy
    actor: SkillActor
    critic: SkillCritic
    critic_target: SkillCritic
    replay_buffer: SkillReplayBuffer | None  # type: ignore[assignment]

    #: The intrinsic reward of the method
    reward_class: ClassVar[type[IntrinsicReward]]
    #: Defaults of the constructor that differ from those of the class above
    defaults: ClassVar[dict[str, Any]] = {}
    #: Arguments that RL Zoo's tuning searches besides those of the backbone, see ``sb3_cesd.skill_ddpg.search_space``
    search_space: ClassVar[Space] = {}
    #: Why the method has no continuous skills, as the end of a sentence; ``None`` if it has them
    discrete_because: ClassVar[str | None] = None
    #: Arguments that shape the networks: a saved model keeps them
    fixed_by_save: ClassVar[tuple[str, ...]] = ("n_skills", "skill_type", "skill_dim", "ent_coef")
    #: Parts that :meth:`from_pretrained` loads by default, as in the released code of the method
    published_transfer: ClassVar[tuple[finetuning.Part, ...]] = ("actor", "critic_trunk")

    intrinsic: IntrinsicReward
    #: The only skill to follow, ``None`` for all of them
    skill: int | list[float] | None
    #: Warm-up of a task in which all skills act
    skill_turns: SkillTurns | None = None
    #: Whether observations were normalised (``VecNormalize``) when it last learned
    trained_normalized: bool = False

    _unit_noise: OrnsteinUhlenbeckActionNoise
    #: Time step of the last logs
    _logged_at: int
    #: Resets and steps of the environments that training knows of: it resets them after any other, or an unfinished one
    _n_moves: int = -1
    #: What callbacks had counted in the checkpoint that the model was resumed from, until it learns
    resumed_callbacks: Sequence[Any] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__init__ = with_defaults(cls.__init__, vars(cls).get("defaults", {}))  # type: ignore[method-assign]

    @checked
    def __init__(
        self,
        policy: str | type[SkillPolicy],
        env: GymEnv | str | None,
        n_skills: Annotated[int, Range(2, 65536)] = 8,
        skill_duration: PositiveInt | None = 50,
        skill_type: Literal["discrete", "sphere", "cube", "unit_cube"] = "discrete",
        skill_dim: PositiveInt | None = None,
        intrinsic_kwargs: dict[str, Any] | None = None,
        learning_rate: float | Schedule = 3e-4,
        buffer_size: PositiveInt = 300_000,
        learning_starts: NonNegativeInt = 1000,
        batch_size: PositiveInt = 256,
        tau: Share = 0.01,
        gamma: Share = 0.99,
        train_freq: int | tuple[int, str] = 4,
        gradient_steps: Annotated[int, Range(-1)] | None = None,
        n_steps: PositiveInt = 3,
        action_noise: ActionNoise | None = None,
        exploration_noise: NonNegative = 0.2,
        noise_correlation: Annotated[float, Range(0, 1, without=1)] = 0.0,
        target_policy_noise: NonNegative = 0.2,
        target_noise_clip: NonNegative = 0.3,
        ent_coef: float | str | None = None,
        reward: Literal["intrinsic", "extrinsic"] = "intrinsic",
        warm_up: Literal["random", "policy", "skills"] = "random",
        replay_buffer_class: type[ReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        cuda_graph: bool = False,
        stats_window_size: PositiveInt = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        if th.device("cpu" if device == "auto" else device).type == "mps":
            raise ValueError("device='mps' is not supported: pass device='cpu'.")
        skill_space = make_skill_space(skill_type, n_skills, skill_dim)
        if not skill_space.discrete and self.discrete_because is not None:
            raise ValueError(f"{type(self).__name__} has discrete skills only, {self.discrete_because}: leave skill_type out.")
        if env is not None and _init_setup_model:
            env = self._with_skills(env, verbose, skill_space, skill_duration)

        # The class, as SB3 does not accept the name "MlpPolicy" for dictionaries
        policy_class = self._get_policy_from_name(policy) if isinstance(policy, str) else policy
        n_stack = n_stacked(env)  # type: ignore[arg-type]
        if replay_buffer_class is None:
            keeps_frames = n_stack > 1 and getattr(policy_class, "takes_images", False)
            replay_buffer_class = FrameReplayBuffer if keeps_frames else SkillReplayBuffer
        if env is not None and issubclass(replay_buffer_class, FrameReplayBuffer):
            replay_buffer_kwargs = {"n_stack": n_stack, **(replay_buffer_kwargs or {})}
        super().__init__(
            policy_class,
            env,  # type: ignore[arg-type]
            learning_rate,
            buffer_size,
            learning_starts,
            batch_size,
            tau,
            gamma,
            train_freq,
            gradient_steps,  # type: ignore[arg-type]
            action_noise=action_noise,
            replay_buffer_class=replay_buffer_class,
            replay_buffer_kwargs=replay_buffer_kwargs,
            n_steps=n_steps,
            policy_kwargs=policy_kwargs,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            seed=seed,
            sde_support=False,
            supported_action_spaces=(spaces.Box,),
            support_multi_env=True,
        )
        self.n_skills = int(n_skills)
        self.skill_duration = skill_duration
        self.skill_type = skill_type
        self.skill_dim = skill_dim
        self.intrinsic_kwargs = intrinsic_kwargs or {}
        self.exploration_noise = exploration_noise
        self.noise_correlation = noise_correlation
        self.target_policy_noise = target_policy_noise
        self.target_noise_clip = target_noise_clip
        self.ent_coef = ent_coef
        self.reward = reward
        self.warm_up = warm_up
        self.updates_follow_steps = gradient_steps is None
        self.cuda_graph = cuda_graph
        self.skill = skill_space.name_of(0) if reward == "extrinsic" else None
        #: How the training environment was made, as JSON of Gymnasium's ``EnvSpec``, so that ``show`` can make one like it
        self.env_spec: str | None = None

        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        if self.reward == "intrinsic" and not hasattr(self, "reward_class"):
            raise ValueError(f"{type(self).__name__} has no reward: use a method such as CeSD, or reward='extrinsic'.")
        if not issubclass(self.replay_buffer_class, SkillReplayBuffer):  # type: ignore[arg-type]
            raise ValueError(f"{self.replay_buffer_class} does not store skills: pass SkillReplayBuffer or a subclass.")
        #: Names of the class and its bases, for the error of another class that loads the model
        self.lineage = saved_files.lineage(type(self))
        for name, part in (("policy_kwargs", self.policy_class), ("replay_buffer_kwargs", self.replay_buffer_class)):
            check_names(name, getattr(self, name), constructor_names(part), parts_of(part))  # type: ignore[arg-type]
        # Only what the user passed stays in the arguments, as SB3 compares them when loading
        given = self.policy_kwargs, self.replay_buffer_kwargs
        self.policy_kwargs = {**self.policy_kwargs, **self._own_policy_kwargs()}
        self.replay_buffer_kwargs = {**self.replay_buffer_kwargs, **self._own_buffer_kwargs()}
        with warnings.catch_warnings():
            # "n_steps is ignored because of a custom replay_buffer_class": replay_buffer_kwargs passes it on
            warnings.filterwarnings("ignore", message="`n_steps=")
            super()._setup_model()
        self.policy_kwargs, self.replay_buffer_kwargs = given

        assert isinstance(self.train_freq, TrainFreq) and self.replay_buffer is not None
        if self.updates_follow_steps:
            self.gradient_steps = self.n_envs if self.train_freq.unit == TrainFrequencyUnit.STEP else -1
        # In training mode only within train()
        self.intrinsic = self._make_intrinsic().to(self.device).eval()
        if self.policy.encoder is not None and self.cluster_window > 1:
            raise ValueError("cluster_window averages observations, but these are images: leave it out of intrinsic_kwargs.")
        self._adopt_buffer(self.replay_buffer, "in the file of the model")
        if self.reward == "extrinsic" and self.num_timesteps == 0:
            # Also after loading, which may change both arguments
            self.skill_turns = SkillTurns(self.n_skills, self.learning_starts) if self.warm_up == "skills" else None
        self._follow(self.skill)
        self._create_aliases()

    def _create_aliases(self) -> None:
        self.actor = self.policy.actor
        self.critic = self.policy.critic
        self.critic_target = self.policy.critic_target
        # Running mean and running var
        self.batch_norm_stats = get_parameters_by_name(self.critic, ["running_"])
        self.batch_norm_stats_target = get_parameters_by_name(self.critic_target, ["running_"])
        self._mean_logs = MeanLogs()
        self._skill_rewards = SkillRewards(self.n_skills)
        self._update_runner = UpdateRunner(self._update, self.device, self.cuda_graph)
        if self._update_runner.in_graph:
            check_capturable(self._optimizers().values())

    def _own_policy_kwargs(self) -> dict[str, Any]:
        stochastic = {} if self.ent_coef is None else {"ent_coef": self.ent_coef}
        return {"skill_space": self.skill_space, **stochastic}

    def _own_buffer_kwargs(self) -> dict[str, Any]:
        return {
            "skill_space": self.skill_space,
            "n_steps": self.n_steps,
            "gamma": self.gamma,
            "one_step": self.reward == "intrinsic" and self.reward_class.needs_one_step,
            "reward": self.reward,
        }

    def _make_intrinsic(self) -> IntrinsicReward:
        sizes = (self.obs_dim, self.action_dim, self.skill_space)
        if self.reward == "extrinsic":
            return ExtrinsicReward(*sizes, n_heads=self.policy.critic.n_heads)
        intrinsic = build("intrinsic_kwargs", self.reward_class, self.intrinsic_kwargs, *sizes)
        intrinsic.set_optimizers(lambda parameters: self.policy.make_optimizer(parameters, self.lr_schedule))
        return intrinsic

    def _optimizers(self) -> dict[str, th.optim.Optimizer]:
        optimizers = {"actor": self.actor.optimizer, "critic": self.critic.optimizer, **self.intrinsic.optimizers}
        if self.policy.encoder is not None:
            optimizers["image_encoder"] = self.policy.encoder.optimizer
        return optimizers  # type: ignore[return-value]

    @property
    def skill_space(self) -> SkillSpace:
        """Space of the skills."""
        if hasattr(self, "policy"):
            return self.policy.skill_space
        return make_skill_space(self.skill_type, self.n_skills, self.skill_dim)

    @property
    def plain_space(self) -> spaces.Box | spaces.Dict:
        """Observation space without the skill."""
        assert isinstance(self.observation_space, spaces.Dict)
        return plain_space(self.observation_space)

    @property
    def obs_dim(self) -> int:
        """Number of entries of an observation without the skill, or of the features of an image."""
        return get_flattened_obs_dim(plain_space(self.policy.network_space))

    @property
    def action_dim(self) -> int:
        """Number of entries of an action."""
        return get_action_dim(self.action_space)

    @property
    def cluster_window(self) -> int:
        """Number of steps over which observations are averaged before they are clustered; 1 for none."""
        return self.intrinsic.average_window

    @property
    def _clock(self) -> SkillClock:
        """The clock of the training environments, which knows the skills that act."""
        wrapper = None if self.env is None else unwrap_vec_wrapper(self.env, VecSkillObservation)
        assert wrapper is not None, "There is no environment: pass it to load, or call set_env."
        return wrapper.clock

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        """
        Sample batches from the replay buffer and learn from each (:meth:`_update`), once it has more than ``learning_starts``
        transitions or is full: a model that was loaded without its replay buffer first collects others, with its policy.

        :param gradient_steps: number of updates
        :param batch_size: number of transitions per batch
        :raises TrainingDiverged: if a loss or the intrinsic reward is not finite
        """
        if not self._has_enough():
            return
        assert self.replay_buffer is not None
        # Switch to train mode (this affects batch norm / dropout, and running statistics of rewards)
        self.policy.set_training_mode(True)
        self.intrinsic.train()
        # Update optimizers learning rate
        optimizers, own = self._optimizers(), self.intrinsic.own_learning_rates()
        self._update_runner.prepare(optimizers.values())
        learning_rate = self.lr_schedule(self._current_progress_remaining)
        self.logger.record("train/learning_rate", learning_rate)
        for name, optimizer in optimizers.items():
            set_learning_rate(optimizer, own.get(name, learning_rate))

        for _ in range(gradient_steps):
            self._update_runner.run(self.replay_buffer, batch_size, self.intrinsic.n_batches, self._vec_normalize_env)

        self._n_updates += gradient_steps
        self.intrinsic.eval()
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        # The only place where the host waits for a GPU
        diverged = self._mean_logs.not_finite()
        if any(name.endswith("loss") or name == "intrinsic/reward" for name in diverged):
            raise TrainingDiverged(
                f"Time step {self.num_timesteps}: {', '.join(diverged)} is not finite, training has diverged: load the "
                "last file of the model, lower learning_rate, or normalise observations and rewards with VecNormalize."
            )

    def _has_enough(self) -> bool:
        buffer = self.replay_buffer
        assert buffer is not None
        return buffer.full or buffer.size() * buffer.n_envs > self.learning_starts

    def _update(self, batches: list[SkillReplayBufferSamples]) -> None:
        """
        Run Algorithm 1 of CeSD, of which other methods run a part, on batches of transitions (s, a, s', z). On a GPU, this
        never waits for the host.

        :param batches: those that the intrinsic reward learns from; actor and critic learn from the last one
        """
        assert self.replay_buffer is not None
        # Images are encoded once, for all losses
        shared = SharedFeatures(self.policy.encoder, batches)
        # Encoder or discriminator of the intrinsic reward
        for replay_data in shared.batches:
            self.intrinsic.update(self.replay_buffer.as_states(shared.seen_by("reward", replay_data)))

        # Rewards, and the skills that learn from each transition: for CeSD by clusters (eq. 3), entropy (eq. 5 and 6) and
        # constraint (eq. 9)
        replay_data = self.replay_buffer.relabel(shared.batches[-1])

        # Critic: minimise the TD errors (eq. 1)
        critic_loss = self.critic_loss(shared.seen_by("critic", replay_data))
        self.critic.optimizer.zero_grad()
        critic_loss.backward()
        self.critic.optimizer.step()

        # Actor: maximise the value of each skill (eq. 2). The gradient flows through the critic, but not into it
        replay_data = shared.seen_by("actor", replay_data)
        with frozen(self.critic.parameters()):
            actor_loss = self.actor_loss(replay_data)
        self.actor.optimizer.zero_grad()  # type: ignore[operator, union-attr]
        actor_loss.backward()
        self.actor.optimizer.step()  # type: ignore[operator, union-attr]

        # Prototypes, by swapped prediction (eq. 4)
        self.intrinsic.update_clusters(replay_data)
        shared.update_encoder()

        # Update target network
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        # Copy running stats, see SB3's TD3
        polyak_update(self.batch_norm_stats, self.batch_norm_stats_target, 1.0)

        logs = {"train/critic_loss": critic_loss, "train/actor_loss": actor_loss, **self.intrinsic.logs}
        self._mean_logs.add({name: th.as_tensor(value, device=self.device).detach() for name, value in logs.items()})

    def critic_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        """
        Compute the squared TD errors of all (transition, skill) pairs, over all critics (eq. 1, n-step and with twin critics).

        :param replay_data: a relabelled batch
        :return: ``sum (q1 - t)^2 / (n b) + sum (q2 - t)^2 / (n b)`` for n critic heads and batch size b
        """
        pairs = replay_data.pairs
        assert pairs is not None
        # An action per pair, or one per transition, which serves all of its pairs
        one_action = len(pairs.target_skills) < len(pairs.skills)
        rows, rows_of_actions = (None, pairs.rows) if one_action else (pairs.rows, None)
        with th.no_grad():
            next_observations = select(replay_data.next_observations, rows)
            next_actions, next_log_prob = self._sample_actions(next_observations, pairs.target_skills)
            # min(Q_i1', Q_i2')(s', pi(s', z)), shape (n_pairs, 1)
            next_q_values = minimum(
                self.critic_target.q_values(next_observations, next_actions, pairs.skills, rows_of_actions)
            )
            if next_log_prob is not None:
                bonus = self.actor.entropy_bonus(next_log_prob)  # type: ignore[operator]
                next_q_values = next_q_values + select(bonus, rows_of_actions)
            discounts = select((1 - replay_data.dones) * replay_data.discounts, pairs.rows)
            target_q_values = pairs.rewards + discounts * next_q_values

        current_q_values = self.critic.q_values(replay_data.observations, replay_data.actions, pairs.skills, pairs.rows)
        errors = [(q_values - target_q_values).square() for q_values in current_q_values]
        if pairs.weights is not None:
            errors = [pairs.weights * error for error in errors]
        return th.stack([error.sum() for error in errors]).sum() / (self.critic.n_heads * len(replay_data.actions))

    def actor_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        """
        Compute the actor loss of each skill under its own value function (eq. 2).

        :param replay_data: a relabelled batch
        :return: ``- sum min(q1, q2) / (n b)`` for n critic heads and batch size b; for a stochastic policy the loss of SAC,
            including that of the entropy coefficient
        """
        skills = replay_data.actor_skills
        assert skills is not None
        actions, log_prob = self._sample_actions(replay_data.observations, skills)
        q_values = minimum(self.critic.q_values(replay_data.observations, actions, skills))
        n = self.critic.n_heads * len(actions)
        if log_prob is None:
            return -q_values.sum() / n
        self.intrinsic.logs["train/ent_coef"] = self.actor.log_ent_coef.detach().exp()  # type: ignore[operator, union-attr]
        self.intrinsic.logs["train/entropy"] = -log_prob.detach().mean()
        loss = -(q_values + self.actor.entropy_bonus(log_prob)).sum() / n  # type: ignore[operator]
        return loss + self.actor.ent_coef_loss(log_prob)  # type: ignore[operator]

    def _sample_actions(self, observations: TensorObservation, skills: th.Tensor) -> tuple[th.Tensor, th.Tensor | None]:
        """
        Sample the actions of skills: those of a deterministic policy with clipped noise, as in TD3.

        :return: actions in [-1, 1], shape ``(n, action_dim)``, and their log-density, shape ``(n, 1)`` (``None`` for a
            deterministic policy)
        """
        actions, log_prob = self.actor.sample(observations, skills)
        if log_prob is None and self.target_policy_noise > 0:
            noise = th.randn_like(actions) * self.target_policy_noise
            actions = actions + noise.clamp(-self.target_noise_clip, self.target_noise_clip)
            # The critic sees the clipped action, while the gradient ignores the clipping (as in URLB)
            actions = actions + (actions.clamp(-1, 1) - actions).detach()
        return actions, log_prob

    def learn(
        self: SelfSkillDDPG,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfSkillDDPG:
        """
        Train the model, see :meth:`stable_baselines3.common.base_class.BaseAlgorithm.learn`.

        As in Stable-Baselines3, environments are reset when training begins, unless ``reset_num_timesteps=False`` continues
        the episodes of a model that has learned in them just before. A loaded model always resets them.

        :param tb_log_name: the name of the run for TensorBoard logging; ``None`` for that of the method
        :return: the trained model
        :raises TrainingDiverged: if a loss, the intrinsic reward or an action is not finite
        """
        n_updates = self._n_updates
        try:
            super().learn(
                total_timesteps, callback, log_interval, tb_log_name or type(self).__name__, reset_num_timesteps, progress_bar
            )
        finally:
            # Only steps of learn count as those of the warm-up, not those of an evaluation
            self._clock.turns = None
        self._mean_logs.flush(self.logger)
        if self._n_updates == n_updates:
            warnings.warn(
                f"Nothing was learned, as learn ended at step {self.num_timesteps} without an update: train for more steps, "
                f"lower learning_starts ({self.learning_starts}), or load the replay buffer of a model that goes on."
            )
        return self

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        assert self.replay_buffer is not None
        vec_normalize, turns = self.get_vec_normalize_env(), self.skill_turns
        if self.num_timesteps > 0 and normalizes_observations(vec_normalize) != self.trained_normalized:
            warnings.warn(
                "VecNormalize normalises either what the model has learned from or what it now observes, not both: pass "
                "load or set_env the environment of the training, with its statistics."
            )
        elif lacks_statistics(self, vec_normalize):
            warnings.warn("The statistics of VecNormalize are new: pass those of the training, VecNormalize.load(path, env).")
        self.trained_normalized = normalizes_observations(vec_normalize)
        # Another model may have used the environments since
        self._clock.turns = None if turns is None or (turns.over and self.skill is not None) else turns
        self._follow(self.skill)
        if self._n_moves != self._clock.n_moves:
            self._last_obs = None
        if reset_num_timesteps or self._last_obs is None:
            self.replay_buffer.end_trajectories()
        self.replay_buffer.reward_module = self.intrinsic
        self._unit_noise = unit_noise(self.noise_correlation, self.action_dim, self.n_envs)
        if isinstance(self.action_noise, VectorizedActionNoise) and self.action_noise.n_envs != self.n_envs:
            # Of a model that was loaded with another number of environments; SB3 makes copies for these
            self.action_noise = self.action_noise.base_noise
        self._logged_at = -1
        result = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
        self._n_moves = self._clock.n_moves
        return result

    def _init_callback(self, callback: MaybeCallback, progress_bar: bool = False) -> BaseCallback:
        assert self.env is not None
        prepare_evaluation(callback, self.env, self.skill_space, self.skill)
        return super()._init_callback(callback, progress_bar)

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        # The last rollout may go beyond the total, where a schedule that falls to 0 would be negative
        super()._update_current_progress_remaining(min(num_timesteps, total_timesteps), total_timesteps)

    def dump_logs(self) -> None:
        if self.num_timesteps == self._logged_at:
            return  # several episodes have ended at once
        self._logged_at = self.num_timesteps
        self._mean_logs.flush(self.logger)
        if self.ep_info_buffer and self.skill_space.discrete:
            self._skill_rewards.flush(self.logger, safe_mean([ep_info["l"] for ep_info in self.ep_info_buffer]))
        super().dump_logs()

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose the actions of the skills that act, with exploration noise unless the policy is stochastic."""
        if self._n_moves != self._clock.n_moves:
            self._restart()
        # A callback may have chosen another skill since the last step
        self._last_obs = add_skill(self._last_obs, self._clock.vectors)  # type: ignore[arg-type]
        at_random = self.warm_up == "random" and self.num_timesteps < learning_starts
        if at_random:
            action = np.array([self.action_space.sample() for _ in range(n_envs)])
        else:
            action = self._act(self._last_obs)
        buffer_action = self.policy.scale_action(action)
        if not np.isfinite(buffer_action).all():
            raise TrainingDiverged(
                f"The policy returned actions that are not finite at time step {self.num_timesteps}: lower learning_rate, or "
                "normalise the observations with VecNormalize."
            )
        if action_noise is not None:
            buffer_action = np.clip(buffer_action + np.reshape(action_noise(), buffer_action.shape), -1, 1)
        elif not at_random and self.ent_coef is None:
            noise = self.exploration_noise * self._unit_noise().reshape(buffer_action.shape)
            buffer_action = np.clip(buffer_action + noise, -1, 1)
        # Scaled actions are floats even if the bounds are integers
        buffer_action = np.asarray(buffer_action, action.dtype if action.dtype.kind == "f" else np.float32)
        return self.policy.unscale_action(buffer_action), buffer_action

    def _act(self, observations: dict[str, np.ndarray]) -> np.ndarray:
        """Choose the actions of the training environments, without exploration noise."""
        return self.policy.predict(observations)[0]

    def _store_transition(
        self,
        replay_buffer: SkillReplayBuffer,  # type: ignore[override]
        buffer_action: np.ndarray,
        new_obs: dict[str, np.ndarray],  # type: ignore[override]
        reward: np.ndarray,
        dones: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store the unnormalised transition with the skill that was followed in it, if its numbers are finite."""
        assert isinstance(self._last_obs, dict) and self.env is not None
        vectors = self._last_obs[SKILL]
        obs, original_obs = self._last_obs, new_obs
        if self._vec_normalize_env is not None:
            reward = self._vec_normalize_env.get_original_reward()
        if normalizes_observations(self._vec_normalize_env):
            originals = self._last_original_obs, self._vec_normalize_env.get_original_obs()
            obs, original_obs = (original_entries(each, self.observation_space) for each in originals)  # type: ignore
            self._last_original_obs = original_obs  # type: ignore[assignment]
        # Wrappers around VecSkillObservation may return other types, too
        next_obs, reward, dones, infos = as_arrays(original_obs, reward, dones, infos)
        unnormalized = partial(unnormalize_entries, self._vec_normalize_env)
        terminal_obs = last_observations(next_obs, dones, infos, unnormalized)
        checks.check_finite(self.env, "observation", terminal_obs, self.num_timesteps)
        checks.check_finite(self.env, "reset observation", next_obs, self.num_timesteps)
        checks.check_finite(self.env, "reward", reward, self.num_timesteps)

        self._unit_noise.noise_prev[dones] = 0
        if self.skill_space.discrete:
            self._skill_rewards.add(self.skill_space.decode(vectors), reward)
        replay_buffer.add(add_skill(obs, vectors), add_skill(terminal_obs, vectors), buffer_action, reward, dones, infos)
        self._last_obs = new_obs
        self._n_moves += 1
        turns = self._clock.turns
        if turns is not None and turns.over:
            self._end_skill_turns(turns)

    def end_episodes(self) -> None:
        """Reset the environments before the next step of training, as something else has played in them."""
        self._n_moves = -1

    def _restart(self) -> None:
        """Begin new episodes: of environments, noise and n-step windows."""
        assert self.env is not None and self.replay_buffer is not None
        self.replay_buffer.end_trajectories()
        self._last_obs = self.env.reset()  # type: ignore[assignment]
        self._n_moves = self._clock.n_moves
        if self._vec_normalize_env is not None:
            self._last_original_obs = self._vec_normalize_env.get_original_obs()  # type: ignore[assignment]
        self._unit_noise.reset()
        if self.action_noise is not None:
            self.action_noise.reset()

    def set_skill(self, skill: SkillName | None) -> None:
        """
        Follow one skill, in predictions and in the training environment. During ``learn``, it acts from the next step on.

        :param skill: index or vector of the skill, or ``None`` to follow all of them again
        :raises ValueError: if there is no such skill, or another one learns the task
        """
        skill = None if skill is None else self.skill_space.name_of(skill)
        if self.reward == "extrinsic" and skill != self.skill:
            own = "One skill" if self.skill is None else f"Skill {self.skill}"
            raise ValueError(f"{own} learns the task, the others do not: fine-tune another with from_pretrained.")
        self._follow(skill)

    def _follow(self, skill: SkillName | None) -> None:
        """Set the skill to follow (``None`` for all of them) in policy, training environments and the reward of a task."""
        self.policy.set_skill(skill)
        self.skill = self.policy.skill
        if self.env is not None:
            self._clock.set_skill(self.skill, at_once=True)
        if isinstance(self.intrinsic, ExtrinsicReward) and self.skill is not None:
            self.intrinsic.follow(self.skill, self.device)

    def _end_skill_turns(self, turns: SkillTurns) -> None:
        """Continue after the warm-up with the skill that learns the task."""
        self._clock.turns = None
        self._follow(self._choose_skill(turns) if self.skill is None else self.skill)
        if self.verbose >= 1:
            how = "as chosen in advance" if turns.chosen_by is None else f"the best by its {turns.chosen_by}"
            print(f"Mean reward per step of each skill: {turns}. Fine-tuning skill {self.skill}, {how}")

    def _choose_skill(self, turns: SkillTurns) -> SkillName:
        """Choose the skill that learns the task, given the warm-up in which all acted, and note there how it was chosen."""
        turns.chosen_by = "rewards"
        return best_of(turns.mean_rewards())

    def predict(
        self,
        observation: Observation,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        skill: SkillName | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """
        Get the action of a skill.

        For the other arguments see :meth:`~sb3_cesd.skill_ddpg.policies.SkillPolicy.predict`.

        :param observation: one or several observations, with or without a skill
        :param skill: skill to follow, one for all observations or one each: an index, or the vector of a continuous skill
        :return: action(s) and the state to pass to the next call
        :raises ValueError: if an observation is not finite or of another shape than the model takes, or there is no such skill
        """
        checks.check_observation(observation)
        # The skill of a task acts even if the observation contains another one
        followed = self.skill if skill is None and self.reward == "extrinsic" else skill
        actions, state = self.policy.predict(observation, state, episode_start, deterministic, followed)
        if skill is not None and self.reward == "extrinsic" and self.num_timesteps > 0 and self.skill is not None:
            followed = self.skill_space.encode(skill, self.policy.batch_shape(observation))
            if (followed != self.skill_space.encode(self.skill)).any():
                warnings.warn(f"Skill {self.skill} learned the task, the others did not: leave skill out to follow that one.")
        return actions, state

    def predict_clusters(self, observations: Observation) -> np.ndarray | None:
        """
        Predict the cluster of states.

        :param observations: one or several observations, normalised if the model was trained with VecNormalize; or the state
            vectors that the intrinsic reward takes, shape ``(n, obs_dim)``
        :return: most likely cluster of each, shape ``(n,)``, or an integer for a single one; ``None`` for a method without
            clusters. If ``cluster_window`` is above 1, moving averages are clustered: pass those, see
            :func:`~sb3_cesd.common.observations.moving_averages`
        :raises ValueError: if an observation is not finite, or of another shape than the model takes
        """
        states, batch_shape = self._to_states(observations, "observations")
        with th.no_grad():
            clusters = self.intrinsic.predict_clusters(states)
        if clusters is None:
            return None
        return clusters.cpu().numpy() if batch_shape else clusters.cpu().numpy()[0]

    def goal_skill(self, observations: Observation, goals: Observation) -> np.ndarray | None:
        """
        Find the skills that lead from states to goals, without further training ("zero-shot").

        :param observations: one or several observations, normalised if the model was trained with VecNormalize
        :param goals: observation to reach from each; a single one serves all observations, and the other way round
        :return: skills for :meth:`predict`: indices, shape ``(n,)``, or vectors of continuous skills, shape
            ``(n, skill_dim)``; one skill for a single observation and goal. ``None`` for a method whose skills have no
            direction
        :raises ValueError: if an observation or a goal is not finite or of another shape, or their numbers differ
        """
        states, batch_shape = self._to_states(observations, "observations")
        goal_states, goals_shape = self._to_states(goals, "goals")
        n = max(len(states), len(goal_states))
        if {len(states), len(goal_states)} - {1, n}:
            raise ValueError(f"There are {len(states)} observations and {len(goal_states)} goals: pass as many, or one.")
        with th.no_grad():
            skills = self.intrinsic.goal_skill(states.expand(n, -1), goal_states.expand(n, -1))
        if skills is None:
            return None
        return skills.cpu().numpy() if batch_shape or goals_shape else skills.cpu().numpy()[0]

    def _to_states(self, observations: Observation, what: str) -> tuple[th.Tensor, tuple[int, ...]]:
        """Convert observations to states, shape ``(n, obs_dim)``; also return ``(n,)``, or ``()`` for a single observation."""
        checks.check_observation(observations, what)
        space = self.plain_space
        shape = () if isinstance(observations, dict) else np.shape(observations)
        if shape != space.shape and len(shape) == 2 and shape[1] == self.obs_dim:
            # Rollouts store images and dictionaries as vectors, or as features
            states = th.as_tensor(np.array(observations, np.float32), device=self.device)
            states = states if self.policy.encoder is not None else to_states(states, space)
            return states, states.shape[:1]  # type: ignore[return-value]
        batch_shape = self.policy.batch_shape(observations, what)
        tensors = {}
        for name, value in entries_of(observations).items():
            entry_space = space[name] if isinstance(space, spaces.Dict) else space
            values = maybe_transpose(np.array(value, np.float32), entry_space)
            tensors[name] = th.as_tensor(values if batch_shape else values[None], device=self.device)
        return self._states_of(plain_form(tensors)), batch_shape  # type: ignore[arg-type]

    def _states_of(self, observations: TensorObservation) -> th.Tensor:
        """Convert tensors of observations to what the intrinsic reward takes: features of images, or vectors."""
        encoder = self.policy.encoder
        return to_states(observations, self.plain_space) if encoder is None else encoder.features(observations)  # type: ignore

    @classmethod
    def _with_skills(cls, env: GymEnv | str, verbose: int, *of_skills: Any) -> VecEnv:
        """Wrap environments as SB3 does, and add skills, if they can be learned there."""
        made: Any = maybe_make_env(env, verbose)
        checks.check_env_spaces(made.observation_space, made.action_space)
        return add_skill_observation(cls._wrap_env(made, verbose), *of_skills)

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        checks.check_env_spaces(env.observation_space, env.action_space)
        given = self._wrap_env(env, self.verbose)
        with_skills = add_skill_observation(given, self.skill_space, self.skill_duration, self.skill)
        super().set_env(with_skills, force_reset)
        if with_skills is not given and self.seed is not None:
            # Not the environments, nor a clock that came with them: these have seeds of their own
            self._clock.seed(seed_to_go_on(self.seed, self.num_timesteps))

    @classmethod
    @checked
    def from_pretrained(
        cls: type[SelfSkillDDPG],
        path: str | pathlib.Path | io.BufferedIOBase,
        env: GymEnv | str,
        skill: SkillName | str = "random",
        transfer: Collection[finetuning.Part] | None = None,
        device: th.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        **kwargs,
    ) -> SelfSkillDDPG:
        """
        Make a model to fine-tune on a task from a pre-trained one.

        ``learn`` then maximises the reward of the environment with one skill, which predictions and evaluations follow, too.
        What is not transferred starts from scratch. In the first ``learning_starts`` steps all skills act in turn, unless
        ``warm_up`` says otherwise.

        :param path: path to the zip file (or a file-like) of the pre-trained model
        :param env: the task: an environment in the domain of the pre-training (if registered in Gym, can be str)
        :param skill: the skill that learns the task: ``"random"``, an index (or the vector of a continuous skill), or
            ``"best"``: after the warm-up of ``learning_starts`` steps, the one with the highest mean reward in it. This needs
            ``warm_up="skills"``, the default.
        :param transfer: parts to load, some of ``"actor"``, ``"critic_trunk"``, ``"critic_head"`` (that of the skill) and
            ``"no_target"`` (the target critic starts from scratch);
            ``None`` for the ``published_transfer`` of the method: actor and trunk of the critic, unless its docs say otherwise
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
        parts = cls.published_transfer if transfer is None else transfer
        return finetuning.make_task_model(cls, path, env, skill, parts, device, custom_objects, kwargs)

    @classmethod
    @checked
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

        A seeded model that has learned does not repeat the random numbers of its start, but continues with others, the same
        whenever the file is loaded. With ``seed`` in ``kwargs``, it starts with those of that seed.

        Loading a pre-trained model with ``reward="extrinsic"`` makes a model to fine-tune, see :meth:`from_pretrained`.

        :param env: the new environment to run the loaded model on, with or without skill observations and of any number of
            environments, or a registered id (can be None if you only need prediction from a trained model)
        :param kwargs: extra arguments to change the model when loading
        :return: new model instance with loaded parameters
        :raises ValueError: if the file is damaged, of another algorithm, or does not fit the environment or the arguments
        """
        saved = {**saved_files.read_saved_data(path), **(custom_objects or {})}
        if kwargs.get("reward") == "extrinsic" and saved.get("reward", "intrinsic") == "intrinsic":
            return cls.from_pretrained(path, env, device=device, custom_objects=custom_objects, **kwargs)  # type: ignore
        if saved.get("reward") == "extrinsic":
            # Of from_pretrained, which has used them up
            kwargs = {name: value for name, value in kwargs.items() if name not in ("skill", "transfer")}
        check_changes(cls, "load()", kwargs)
        saved_files.check_fixed(cls, path, saved, kwargs)
        if "intrinsic_kwargs" in kwargs:
            wanted = kwargs["intrinsic_kwargs"] or {}
            kwargs["intrinsic_kwargs"] = saved_files.merged_intrinsic_kwargs(cls, path, saved, wanted)
        if "gradient_steps" in kwargs:
            kwargs["updates_follow_steps"] = kwargs["gradient_steps"] is None
        if env is not None:
            skill_space = make_skill_space(saved["skill_type"], saved["n_skills"], saved["skill_dim"])
            duration = kwargs.get("skill_duration", saved["skill_duration"])
            env = cls._with_skills(env, kwargs.get("verbose", 0), skill_space, duration, saved["skill"])
        model = super().load(path, env, device, custom_objects, print_system_info, force_reset, **kwargs)  # type: ignore
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
        Save all the attributes of the object and the model parameters in a zip-file. If this fails or is killed, the previous
        file is untouched.

        :param path: path to the file where the rl agent should be saved
        :param exclude: name of parameters that should be excluded in addition to the default ones
        :param include: name of parameters that might be excluded but should be included anyway
        :raises TrainingDiverged: if a weight is not finite
        """
        # Weights, running statistics and states of optimizers
        if found := list(checks.not_finite(self.get_parameters(), "parameters")):
            raise TrainingDiverged(
                f"{found[0]} and {len(found) - 1} other tensors are not finite at time step {self.num_timesteps}, so the "
                "model was not saved: load an earlier file, lower learning_rate, or normalise with VecNormalize."
            )
        if self.env is not None:
            self.env_spec = env_as_json(self.env)
        if self.num_timesteps == 0 and self.env is not None:
            self.trained_normalized = normalizes_observations(self.get_vec_normalize_env())
        if isinstance(path, str | pathlib.Path):
            with written_whole(with_suffix(path, ".zip")) as file:
                super().save(file, exclude, include)  # type: ignore[arg-type]
        else:
            super().save(path, exclude, include)

    def set_parameters(
        self, load_path_or_dict: str | TensorDict, exact_match: bool = True, device: th.device | str = "auto"
    ) -> None:
        if isinstance(load_path_or_dict, dict):
            # An optimizer keeps the tensors that it loads, which may be those of another model
            load_path_or_dict = copy.deepcopy(load_path_or_dict)
        super().set_parameters(load_path_or_dict, exact_match, device)
        # The states of optimizers were replaced
        self._update_runner.forget()

    def save_replay_buffer(self, path: str | pathlib.Path | io.BufferedIOBase) -> None:
        assert self.replay_buffer is not None, "The replay buffer is not defined"
        self.replay_buffer.task = saved_files.task_of(self)
        if isinstance(path, str | pathlib.Path):
            with written_whole(with_suffix(path, ".pkl")) as file:
                save_to_pkl(file, self.replay_buffer, self.verbose)  # type: ignore[arg-type]
        else:
            save_to_pkl(path, self.replay_buffer, self.verbose)

    def load_replay_buffer(self, path: str | pathlib.Path | io.BufferedIOBase, truncate_last_traj: bool = True) -> None:
        """
        Load a replay buffer that :meth:`save_replay_buffer` wrote. Its transitions are sampled with the arguments of the model
        (``gamma``, ``n_steps``, ...).

        :param path: Path to the pickled replay buffer.
        :param truncate_last_traj: not used, trajectories are cut where environments were reset
        :raises ValueError: if it is damaged, or does not fit the model
        """
        with explained(path, "replay buffer"):
            loaded = load_from_pkl(path, self.verbose)
            if not isinstance(loaded, SkillReplayBuffer):
                raise TypeError(f"it holds a {type(loaded).__name__}")
        if not saved_files.is_of_other_rewards(self, path, loaded):
            self._adopt_buffer(loaded, path)

    def _adopt_buffer(self, loaded: SkillReplayBuffer, path: object) -> None:
        """Learn from a new or a loaded replay buffer, with the arguments of the model in place of those it was filled with."""
        saved_files.check_buffer_fits(self, path, loaded)
        for name in ("n_steps", "gamma", "one_step"):
            setattr(loaded, name, self._own_buffer_kwargs()[name])
        loaded.average_window = self.intrinsic.average_window
        loaded.reward_module = self.intrinsic
        loaded.device = self.device
        self.replay_buffer = loaded

    def _take_over(self, pretrained: "SkillDDPG") -> None:
        """Take over what a task needs from a pre-trained model besides its policy; by default, nothing."""

    def _excluded_save_params(self) -> list[str]:
        aliases = ["actor", "critic", "critic_target", "batch_norm_stats", "batch_norm_stats_target"]
        # Made anew when a model is loaded
        made = ["intrinsic", "_mean_logs", "_skill_rewards", "_unit_noise", "_logged_at", "_update_runner", "_n_moves"]
        return [*super()._excluded_save_params(), *aliases, *made, "resumed_callbacks"]

    @property
    def skill_states(self) -> th.Tensor:  # SB3 fills it when it loads a file of an early commit
        return th.empty(0)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        optimizers = [f"intrinsic.{name}" for name in self.intrinsic.optimizers]
        optimizers += [] if self.policy.encoder is None else ["policy.encoder.optimizer"]
        return ["policy", "actor.optimizer", "critic.optimizer", "intrinsic", *optimizers], []

    @classmethod
    def convert_hyperparams(cls, drawn: dict[str, Any]) -> dict[str, Any]:
        """Convert what a study has sampled to arguments of the constructor; those of the yml file are added later."""
        return nest(drawn, BACKBONE) | nest(drawn, cls.search_space)
