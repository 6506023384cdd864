"""The algorithm that all methods share: its arguments, networks and updates. Acting, ``learn`` and saving are inherited."""

import warnings
from collections import deque
from collections.abc import Hashable
from typing import Any, ClassVar, TypeVar

import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import ActionNoise, VectorizedActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule, TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import get_parameters_by_name

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.checks import build
from sb3_cesd.common.choices import OnNonFinite, Reward, SkillType, WarmUp
from sb3_cesd.common.cuda import UpdateRunner, check_capturable, set_learning_rate
from sb3_cesd.common.gradient_steps import GradientSteps, RunningStatistics, TrainingDiverged
from sb3_cesd.common.logging import MeanLogs, SkillRewards
from sb3_cesd.common.observations import TensorObservation, to_states
from sb3_cesd.common.rules import plain
from sb3_cesd.common.skill_clock import SkillTurns
from sb3_cesd.common.skills import check_n_skills
from sb3_cesd.common.tensors import frozen, minimum, polyak_update
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.extrinsic import ExtrinsicReward
from sb3_cesd.intrinsic.results import as_logs
from sb3_cesd.skill_ddpg import checks, normalization, saved_files
from sb3_cesd.skill_ddpg.arguments import (
    ConstructorSignature,
    check_argument_names,
    constructor_signature,
    passes_on,
    with_defaults,
    with_passed_on_defaults,
)
from sb3_cesd.skill_ddpg.cloning import cloning_loss, make_reference
from sb3_cesd.skill_ddpg.learning import LearningSkillModel
from sb3_cesd.skill_ddpg.networks import SkillActor, SkillCritic
from sb3_cesd.skill_ddpg.policies import MlpPolicy, SkillPolicy
from sb3_cesd.skill_ddpg.search_space import BACKBONE, Space, draw, nest
from sb3_cesd.skill_ddpg.stochastic_actor import StochasticSkillActor

SelfSkillDDPG = TypeVar("SelfSkillDDPG", bound="SkillDDPG")


class SkillDDPG(LearningSkillModel):
    """
    Skill-conditioned DDPG with twin critics that maximises an intrinsic reward: the agent of URLB, shared by all methods.

    A method is a subclass that sets ``reward_class`` and, where its paper differs from URLB, ``defaults``.
    docs/departures.md lists where all methods depart from URLB.
    The environment is wrapped in :class:`~sb3_cesd.common.vec_env.VecSkillObservation`, unless it already is.

    :param policy: The policy model to use (MlpPolicy or, which is the same here, MultiInputPolicy)
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
    :param actor_learning_starts: when the actor starts to learn; until then only the critic learns. Up to 1 a fraction of the
        training budget, above 1 a number of environment steps. Once it learns, it goes on when training continues. Keeps a
        pre-trained actor from following a critic that knows nothing about the task yet
    :param bc_coef: for tasks that start from a pre-trained model: coefficient of behaviour cloning of the skill as it was
        pre-trained, in states where the critic prefers its action to that of the actor (the Q-filter of Nair et al., 2018),
        relative to the mean absolute Q-value; 0 for none
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
        :class:`~sb3_cesd.skill_ddpg.stochastic_actor.StochasticSkillActor`
    :param reward: ``"intrinsic"`` discovers skills; ``"extrinsic"`` learns the task of the environment from scratch, with a
        single skill (to fine-tune pre-trained skills instead, see :meth:`from_pretrained`)
    :param warm_up: how to act in the first ``learning_starts`` steps: ``"random"`` (uniform actions), ``"policy"`` or, when
        learning a task, ``"skills"`` (all skills in turn; in pre-training the same as ``"policy"``)
    :param replay_buffer_class: replay buffer class, :class:`~sb3_cesd.common.buffers.SkillReplayBuffer` or a subclass
    :param replay_buffer_kwargs: Keyword arguments to pass to the replay buffer on creation
    :param optimize_memory_usage: not supported
    :param cuda_graph: replay the whole update as one CUDA graph; no effect on the CPU. Except for the learning rate, numbers
        changed during training have no effect on the graph.
    :param on_non_finite: what to do when a loss or a gradient is not finite: ``"raise"`` an error, or ``"skip"`` the step and
        continue, with a warning and ``train/n_skipped_steps`` in the logs. Either way the weights stay finite.
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
    :raises ValueError: if an argument is not allowed, or the method supports neither the spaces of the environment nor such
        skills
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": MlpPolicy, "MultiInputPolicy": MlpPolicy}
    actor: SkillActor
    critic: SkillCritic
    critic_target: SkillCritic

    #: The intrinsic reward of the method
    reward_class: ClassVar[type[IntrinsicReward]]
    #: Defaults of the constructor that differ from those of the class above
    defaults: ClassVar[dict[str, Any]] = {}
    #: Arguments that RL Zoo's tuning searches besides those of the backbone, see :mod:`sb3_cesd.skill_ddpg.search_space`
    search_space: ClassVar[Space] = {}
    #: Why the method has no continuous skills, as the end of a sentence; ``None`` if it has them
    discrete_because: ClassVar[str | None] = None
    __signature__ = ConstructorSignature()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        signature, own = constructor_signature(cls.__mro__), vars(cls)
        init, defaults = cls.__init__, own.get("defaults", {})
        if passes_on(init):
            cls.__init__ = with_passed_on_defaults(init, signature, defaults)  # type: ignore[method-assign]
        elif "defaults" in own or "__init__" not in own:
            # Even without own defaults, so that Python's error about a missing argument names this class
            cls.__init__ = with_defaults(init, defaults)  # type: ignore[method-assign]
        if cls.__init__ is not init:
            cls.__init__.__qualname__ = f"{cls.__qualname__}.__init__"

    def __new__(cls: type[SelfSkillDDPG], *args: Any, **kwargs: Any) -> SelfSkillDDPG:
        check_argument_names(cls, kwargs)
        return super().__new__(cls)

    def __init__(
        self,
        policy: str | type[SkillPolicy],
        env: GymEnv | str | None,
        n_skills: int = 16,
        skill_duration: int | None = 50,
        skill_type: SkillType = "discrete",
        skill_dim: int | None = None,
        intrinsic_kwargs: dict[str, Any] | None = None,
        learning_rate: float | Schedule = 1e-4,
        buffer_size: int = 1_000_000,  # 1e6
        learning_starts: int = 4000,
        actor_learning_starts: float = 0.0,
        bc_coef: float = 0.0,
        batch_size: int = 1024,
        tau: float = 0.01,
        gamma: float = 0.99,
        train_freq: int | tuple[int, str] = 2,
        gradient_steps: int | None = None,
        n_steps: int = 3,
        action_noise: ActionNoise | None = None,
        exploration_noise: float = 0.2,
        noise_correlation: float = 0.0,
        target_policy_noise: float = 0.2,
        target_noise_clip: float = 0.3,
        ent_coef: float | str | None = None,
        reward: Reward = "intrinsic",
        warm_up: WarmUp = "random",
        replay_buffer_class: type[ReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        cuda_graph: bool = False,
        on_non_finite: OnNonFinite = "raise",
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        checks.check_constructor_arguments(type(self), locals())
        self.n_skills = check_n_skills(n_skills)
        self.skill_duration = plain(skill_duration)
        self.skill_type = skill_type
        self.skill_dim = plain(skill_dim)
        self.intrinsic_kwargs = plain(intrinsic_kwargs or {})
        self.reward = reward
        self.warm_up = warm_up
        self.skill = None
        self.zero_shot = None
        self.skill_turns = None
        self._goes_on = None
        self._check_skill_type()
        if reward == "extrinsic":
            self.skill = self.skill_space.name_of(0)
        if env is None and _init_setup_model:
            raise ValueError("env=None: pass an environment to learn in, or load a saved model.")
        if env is not None:
            env = checks.make_training_env(env, verbose)
            checks.check_env_spaces(env.observation_space, env.action_space)  # type: ignore[union-attr]
            env = self._wrap_env(env, verbose)  # type: ignore[arg-type]
            normalization.check_order_of_wrappers(env)
            if _init_setup_model:
                env = self._add_skills(env)

        super().__init__(
            # The class, as SB3 does not accept the name "MlpPolicy" for dictionaries
            self._get_policy_from_name(policy) if isinstance(policy, str) else policy,
            env,  # type: ignore[arg-type]
            plain(learning_rate),
            plain(buffer_size),
            plain(learning_starts),
            plain(batch_size),
            plain(tau),
            plain(gamma),
            plain(train_freq),
            plain(gradient_steps),  # type: ignore[arg-type]
            action_noise=action_noise,
            replay_buffer_class=replay_buffer_class or SkillReplayBuffer,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=optimize_memory_usage,
            policy_kwargs=policy_kwargs,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            seed=plain(seed),
            sde_support=False,
            supported_action_spaces=(spaces.Box,),
            support_multi_env=True,
        )
        self.actor_learning_starts = plain(actor_learning_starts)
        self.bc_coef = plain(bc_coef)
        self.n_steps = n_steps
        self.exploration_noise = exploration_noise
        self.noise_correlation = noise_correlation
        self.target_policy_noise = target_policy_noise
        self.target_noise_clip = target_noise_clip
        self.ent_coef = plain(ent_coef)
        self.updates_follow_steps = gradient_steps is None
        self.cuda_graph = cuda_graph
        self.on_non_finite = on_non_finite
        #: Number of gradient steps that were skipped because they were not finite
        self.n_skipped_steps = 0
        self.n_diverged_simulations = 0
        self.stats_window_size = stats_window_size

        if _init_setup_model:
            self._setup_model()

    def _check_skill_type(self) -> None:
        # Raises for an unknown type
        discrete = self.skill_space.discrete
        if not discrete and self.discrete_because is not None:
            raise ValueError(
                f"{type(self).__name__} has discrete skills only, {self.discrete_because}: leave "
                f"skill_type={self.skill_type!r} out, or use a method with continuous skills."
            )

    def _setup_model(self) -> None:
        # Not in __init__: load() replaces arguments after it, and sets a replay buffer that was saved with the model
        saved_buffer = self.replay_buffer
        self._check_skill_type()
        checks.check_buffer_class(self.replay_buffer_class, self.cuda_graph)  # type: ignore[arg-type]
        checks.check_model(self)
        if self.env is not None:
            self._check_wrapper(self.env)
        self._apply_stats_window_size()
        #: Names of the class and its bases, for the error of another class that loads the model
        self.lineage = saved_files.lineage(type(self))
        # SB3 saves the noise vectorized, for the number of environments it was used with
        if isinstance(self.action_noise, VectorizedActionNoise) and self.action_noise.n_envs != self.n_envs:
            self.action_noise = self.action_noise.base_noise
        self.replay_buffer_kwargs = {
            **self.replay_buffer_kwargs,
            "skill_space": self.skill_space,
            "n_steps": self.n_steps,
            "gamma": self.gamma,
            "one_step": self.reward == "intrinsic" and self.reward_class.needs_one_step,
            "reward": self.reward,
        }
        # Only what the user passed stays in policy_kwargs, as SB3 compares it when loading
        policy_kwargs, self.policy_kwargs = self.policy_kwargs, {**self.policy_kwargs, **self._skill_policy_kwargs()}
        with warnings.catch_warnings():
            # "n_steps is ignored because of a custom replay_buffer_class": replay_buffer_kwargs passes it on
            warnings.filterwarnings("ignore", message="`n_steps=")
            super()._setup_model()
        self.policy_kwargs = policy_kwargs

        assert isinstance(self.train_freq, TrainFreq)
        if self.updates_follow_steps:
            by_step = self.train_freq.unit == TrainFrequencyUnit.STEP
            self.gradient_steps = self.n_envs if by_step else -1
        # In training mode only within train()
        self.intrinsic = self._make_intrinsic().to(self.device).eval()
        self.intrinsic.check_batch_size(self.batch_size)
        self.reference_actor = make_reference(self.policy) if self.keeps_reference else None
        assert isinstance(self.replay_buffer, SkillReplayBuffer)
        self.replay_buffer.average_window = self.intrinsic.average_window
        if self.reward == "extrinsic" and self.num_timesteps == 0:
            # Also after loading, which may change both arguments
            self.skill_turns = SkillTurns(self.n_skills, self.learning_starts) if self.warm_up == "skills" else None
        self.skill_states = th.empty(0, device=self.device)
        if saved_buffer is not None:
            self._adopt_buffer(saved_buffer, "in the model's file (custom_objects={'replay_buffer': None} leaves it out)")
        self._follow(self.skill)
        self._create_aliases()

    def _apply_stats_window_size(self) -> None:
        # SB3 reads the private attribute, and makes the buffers only when a training starts
        self._stats_window_size = self.stats_window_size
        for name in ("ep_info_buffer", "ep_success_buffer"):
            if getattr(self, name) is not None:
                setattr(self, name, deque(getattr(self, name), maxlen=self.stats_window_size))

    def _create_aliases(self) -> None:
        self.actor = self.policy.actor
        self.critic = self.policy.critic
        self.critic_target = self.policy.critic_target
        # Running mean and running var
        self.critic_batch_norm_stats = get_parameters_by_name(self.critic, ["running_"])
        self.critic_batch_norm_stats_target = get_parameters_by_name(self.critic_target, ["running_"])
        self._mean_logs = MeanLogs()
        self._update_runner = UpdateRunner(self._update_from, self.device, self.cuda_graph)
        if self._update_runner.in_graph:
            check_capturable(self._optimizers())
        learning = {"policy": self.policy, "intrinsic": self.intrinsic}
        self._gradient_steps = self.intrinsic.gradient_steps = GradientSteps(learning)
        self._running_statistics = RunningStatistics(learning)
        self._skill_rewards = SkillRewards(self.n_skills)

    def _optimizers(self) -> list[th.optim.Optimizer]:
        return [self.actor.optimizer, self.critic.optimizer, *self.intrinsic.optimizers.values()]  # type: ignore[list-item]

    def _skill_policy_kwargs(self) -> dict[str, Any]:
        """Arguments of the policy that the algorithm sets."""
        stochastic = {} if self.ent_coef is None else {"ent_coef": self.ent_coef}
        return {"skill_space": self.skill_space, **stochastic}

    def _make_intrinsic(self) -> IntrinsicReward:
        """Make the reward to maximise."""
        sizes = {"obs_dim": self.obs_dim, "action_dim": self.action_dim, "skill_space": self.skill_space}
        if self.reward == "extrinsic":
            return ExtrinsicReward(**sizes)  # type: ignore[arg-type]
        intrinsic = build("intrinsic_kwargs", self.reward_class, self.intrinsic_kwargs, sizes)
        intrinsic.set_optimizers(lambda parameters: self.policy.make_optimizer(parameters, self.lr_schedule))
        intrinsic.set_own_learning_rates()
        return intrinsic

    def train(self, gradient_steps: int, batch_size: int = 1024) -> None:
        """
        Sample batches from the replay buffer and learn from each (:meth:`_update`).

        :param gradient_steps: number of updates
        :param batch_size: number of transitions per batch
        :raises TrainingDiverged: if a loss, gradient or running statistic is not finite, unless such steps are skipped
        """
        assert self.replay_buffer is not None
        self.intrinsic.check_batch_size(batch_size)
        self.policy.set_training_mode(True)
        self.intrinsic.train()
        phase, n_batches = (self._follow_progress(), self._actor_learns), self.intrinsic.n_batches
        self._update_runner.prepare(self._optimizers())
        self._update_learning_rate(
            [self.actor.optimizer, self.critic.optimizer, *self.intrinsic.scheduled_optimizers()]  # type: ignore[list-item]
        )
        self.intrinsic.set_own_learning_rates()

        statistics = self._running_statistics.copy()
        try:
            for _ in range(gradient_steps):
                self._n_updates += 1
                self._update_runner.run(self.replay_buffer, batch_size, n_batches, self._vec_normalize_env, phase)
                if self.device.type == "cpu":
                    self._handle_left_out(self._gradient_steps.left_out(), statistics)
            # The only place where the host waits for a GPU
            self._handle_left_out(self._gradient_steps.left_out() + self._running_statistics.restore(statistics), statistics)
        finally:
            self.intrinsic.eval()
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _handle_left_out(self, left_out: list[str], statistics: list[th.Tensor]) -> None:
        """
        Raise an error or warn about steps that were left out because they were not finite.

        :param left_out: what was not finite; empty if everything was
        :param statistics: copies of the running statistics when they were finite
        :raises TrainingDiverged: unless such steps are skipped
        """
        if not left_out:
            return
        self._running_statistics.restore(statistics)
        remedy = "Lower learning_rate, or normalise observations and rewards with VecNormalize"
        reward = self.intrinsic.logs.get("intrinsic/reward")
        if isinstance(reward, th.Tensor) and not reward.isfinite():
            name = f"{type(self.intrinsic).__name__}.reward"
            left_out = [f"what {name} returned", *left_out]
            remedy = f"See that {name} is finite for any batch. {remedy}"
        what = f"Time step {self.num_timesteps}, update {self._n_updates}: {', '.join(dict.fromkeys(left_out))} is not finite"
        if self.on_non_finite == "raise":
            raise TrainingDiverged(
                f"{what}, so training has diverged. The step was left out: the model keeps its last finite weights. {remedy}; "
                "on_non_finite='skip' leaves such steps out and continues."
            )
        is_first = self.n_skipped_steps == 0
        self.n_skipped_steps += len(left_out)
        self.logger.record("train/n_skipped_steps", self.n_skipped_steps)
        if is_first:
            warnings.warn(f"{what}: skipped, as all such steps will be. {remedy} if there are many.", stacklevel=2)

    def _update_from(self, batches: list[SkillReplayBufferSamples]) -> None:
        """
        Update the intrinsic reward on all batches but the last, and everything on the last one.

        :param batches: ``n_batches`` batches, see :class:`~sb3_cesd.intrinsic.base.IntrinsicReward`
        """
        *others, replay_data = batches
        for batch in others:
            self.intrinsic.update(self._as_states(batch))
        self._update(replay_data)

    def _update(self, replay_data: SkillReplayBufferSamples) -> None:
        """
        Update the intrinsic reward, then critic and actor as in TD3. On a GPU, this never waits for the host.

        :param replay_data: a batch, with extrinsic n-step returns
        """
        states = self._as_states(replay_data)
        self.intrinsic.update(states)
        relabelled = self.intrinsic.relabel(states)
        replay_data = replay_data._replace(rewards=relabelled.rewards, skills=relabelled.skills)

        critic_loss = self.critic_loss(replay_data)
        self._gradient_steps.take("critic loss", self.critic.optimizer, critic_loss)

        self._improve_actor(replay_data)

        self._update_target()
        self._log_update(critic_loss)

    @property
    def _actor_learns(self) -> bool:
        """Whether the actor learns already, or only the critic."""
        return self.actor_learned or self._actor_is_due

    def _improve_actor(self, batch: Any) -> None:
        """
        Take a gradient step of the actor, once it learns.

        :param batch: as :meth:`actor_loss` takes it
        """
        if not self._actor_learns:
            return
        # The gradient flows through the critic, but not into it
        with frozen(self.critic.own_parameters()):
            loss = self.actor_loss(batch)
        self._gradient_steps.take("actor loss", self.actor.optimizer, loss)  # type: ignore[arg-type]
        self._mean_logs.add({"train/actor_loss": loss.detach()})

    def critic_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        """
        Compute the squared TD errors of both critics.

        :param replay_data: a batch with the rewards to learn from
        :return: ``sum (q1 - t)^2 / b + sum (q2 - t)^2 / b`` for batch size b
        """
        with th.no_grad():
            next_actions, log_densities = self._target_actions(replay_data.next_observations, replay_data.skills)
            next_q_values = minimum(
                self.critic_target.q_values(replay_data.next_observations, next_actions, replay_data.skills)
            )
            next_q_values = self._with_entropy(next_q_values, log_densities)
            target_q_values = replay_data.rewards + (1 - replay_data.dones) * replay_data.discounts * next_q_values

        current_q_values = self.critic.q_values(replay_data.observations, replay_data.actions, replay_data.skills)
        errors = [(q_values - target_q_values).square().sum() for q_values in current_q_values]
        return th.stack(errors).sum() / len(replay_data.actions)

    def actor_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        """
        Compute the actor loss, for the skills that collected the states.

        :param replay_data: a batch of transitions
        :return: ``- sum min(q1, q2) / b`` for batch size b, plus the loss of ``bc_coef``; for a stochastic policy the loss of
            SAC, including that of the entropy coefficient
        """
        return self._loss_of_actions(replay_data.observations, replay_data.skills)

    def _loss_of_actions(self, observations: TensorObservation, skills: th.Tensor, n_heads: int = 1) -> th.Tensor:
        """
        Compute the loss of the actor's actions under the critic.

        :param observations: observations without skills
        :param skills: skills as stored in the replay buffer
        :param n_heads: divisor of the loss
        :return: see :meth:`actor_loss`
        """
        actions, log_densities = self._improved_actions(observations, skills)
        q_values = minimum(self.critic.q_values(observations, actions, skills))
        loss = -self._with_entropy(q_values, log_densities).sum() / (n_heads * len(actions))
        if self.bc_coef > 0:
            assert self.reference_actor is not None  # learn() checks it
            cloning, share = cloning_loss(self.policy, self.reference_actor, observations, skills)
            loss = loss + self.bc_coef * q_values.detach().abs().mean() * cloning / n_heads
            self._mean_logs.add({"train/cloned_share": share})
        return loss + self._ent_coef_loss(log_densities)

    def _target_actions(self, observations: TensorObservation, skills: th.Tensor) -> tuple[th.Tensor, th.Tensor | None]:
        """
        Compute the actions of the critic target: with clipped noise for a deterministic policy (TD3), sampled for a
        stochastic one (SAC).

        :param observations: observations without skills
        :param skills: skills as stored in the replay buffer
        :return: actions in [-1, 1], shape ``(n, action_dim)``, and their log-density, shape ``(n, 1)`` (``None`` for a
            deterministic policy)
        """
        if isinstance(self.actor, StochasticSkillActor):
            return self.actor.sample(observations, skills)
        actions = self.actor.act(observations, skills)
        return (actions + self._clipped_noise(actions)).clamp(-1, 1), None

    def _improved_actions(self, observations: TensorObservation, skills: th.Tensor) -> tuple[th.Tensor, th.Tensor | None]:
        """
        Compute the actions of the actor loss; for the arguments see :meth:`_target_actions`.

        :return: the same, with gradients
        """
        if isinstance(self.actor, StochasticSkillActor):
            return self.actor.sample(observations, skills)
        actions = self.actor.act(observations, skills)
        actions = actions + self._clipped_noise(actions)
        # The critic sees the clipped action, while the gradient ignores the clipping (as in URLB)
        return actions + (actions.clamp(-1, 1) - actions).detach(), None

    def _with_entropy(self, q_values: th.Tensor, log_densities: th.Tensor | None) -> th.Tensor:
        """
        Add the entropy bonus to Q-values.

        :param q_values: values of actions, shape ``(n, 1)``
        :param log_densities: log-densities of the actions, shape ``(n, 1)``; ``None`` for a deterministic policy
        :return: ``Q - alpha log pi``, shape ``(n, 1)``
        """
        if log_densities is None:
            return q_values
        assert isinstance(self.actor, StochasticSkillActor)
        return q_values + self.actor.entropy_bonus(log_densities)

    def _ent_coef_loss(self, log_densities: th.Tensor | None) -> th.Tensor | float:
        """
        Compute the loss of the entropy coefficient; also log the coefficient and the entropy.

        :param log_densities: as :meth:`_with_entropy` takes them
        :return: a scalar; 0 for a deterministic policy
        """
        if log_densities is None:
            return 0.0
        assert isinstance(self.actor, StochasticSkillActor)
        self.intrinsic.logs["train/ent_coef"] = self.actor.log_ent_coef.detach().exp()
        self.intrinsic.logs["train/entropy"] = -log_densities.detach().mean()
        return self.actor.ent_coef_loss(log_densities)

    def _clipped_noise(self, actions: th.Tensor) -> th.Tensor:
        if self.target_policy_noise == 0:
            return th.zeros_like(actions)
        noise = th.randn_like(actions) * self.target_policy_noise
        return noise.clamp(-self.target_noise_clip, self.target_noise_clip)

    def _as_states(self, replay_data: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """
        Flatten the observations of a batch to state vectors, as intrinsic rewards take them.

        :param replay_data: a batch of transitions
        :return: the same, with observations of shape ``(batch_size, obs_dim)``
        """
        space = self.plain_space
        observations = {
            name: to_states(value, space)
            for name, value in replay_data._asdict().items()
            if name.endswith("observations") and value is not None
        }
        return replay_data._replace(**observations)

    def _update_target(self) -> None:
        polyak_update(self.critic.own_parameters(), self.critic_target.own_parameters(), self.tau)
        # Copy running stats, see SB3's TD3
        polyak_update(self.critic_batch_norm_stats, self.critic_batch_norm_stats_target, 1.0)

    def _log_update(self, critic_loss: th.Tensor) -> None:
        logs = as_logs(self.intrinsic.logs, self.intrinsic, self.device)
        self._mean_logs.add({"train/critic_loss": critic_loss.detach(), **logs})

    def _follow_progress(self) -> Hashable:
        """
        Pass the progress of the training on to whatever depends on it.

        :return: a key that changes whenever updates have to do something else
        """
        return None

    def _update_learning_rate(self, optimizers: list[th.optim.Optimizer] | th.optim.Optimizer) -> None:
        learning_rate = self.lr_schedule(self._current_progress_remaining)
        checks.check_learning_rate(learning_rate, self.num_timesteps)
        self.logger.record("train/learning_rate", learning_rate)
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            set_learning_rate(optimizer, learning_rate)

    def _keep_reference(self, pretrained: SkillActor) -> None:
        """
        Keep the pre-trained actor, for ``bc_coef``.

        :param pretrained: actor to copy
        """
        self.keeps_reference = True
        self.reference_actor = make_reference(self.policy)
        self.reference_actor.load_state_dict(pretrained.state_dict())

    def _take_over(self, pretrained: "SkillDDPG") -> None:
        """
        Take over what a task needs from a pre-trained model besides its policy; by default, nothing.

        :param pretrained: the pre-trained model
        """

    def set_random_seed(self, seed: int | None = None) -> None:
        check_arguments("set_random_seed", locals())
        super().set_random_seed(None if seed is None else int(seed))

    @classmethod
    def draw_hyperparams(cls, trial: Any) -> dict[str, Any]:
        """
        Sample hyperparameters for RL Zoo's tuning.

        :param trial: Optuna trial
        :return: sampled values by name
        """
        return draw(trial, BACKBONE) | draw(trial, cls.search_space)

    @classmethod
    def convert_hyperparams(cls, drawn: dict[str, Any]) -> dict[str, Any]:
        """
        Convert sampled hyperparameters to arguments of the constructor.

        A study adds the other entries of the yml file, also those within ``policy_kwargs`` and ``intrinsic_kwargs``.

        :param drawn: what :meth:`draw_hyperparams` sampled, by name
        :return: arguments of the constructor
        """
        return nest(drawn, BACKBONE) | nest(drawn, cls.search_space)
