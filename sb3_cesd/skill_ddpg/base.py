import warnings
from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback, EventCallback
from stable_baselines3.common.noise import ActionNoise, VectorizedActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule, TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import safe_mean
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, unwrap_vec_wrapper

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.cuda_graph import GraphedFunction, can_capture, set_capturable, set_learning_rate
from sb3_cesd.common.logging import MeanLogs, SkillRewards
from sb3_cesd.common.noise import unit_noise
from sb3_cesd.common.precision import MATMUL_PRECISIONS, precision
from sb3_cesd.common.skills import append_skill, check_n_skills, check_skill, split_skill
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.common.utils import (
    check_correlation,
    check_not_negative,
    check_positive,
    check_positive_integer,
    frozen,
    minimum,
    polyak_update,
)
from sb3_cesd.common.vec_env import VecSkillObservation, add_skill_observation
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.extrinsic import ExtrinsicReward
from sb3_cesd.skill_ddpg import finetuning
from sb3_cesd.skill_ddpg.checks import check_env_spaces, check_finite, explain_other_spaces
from sb3_cesd.skill_ddpg.policies import SkillActor, SkillCritic, SkillPolicy
from sb3_cesd.skill_ddpg.skill_turns import SkillTurns

SelfSkillDDPGBase = TypeVar("SelfSkillDDPGBase", bound="SkillDDPGBase")


class SkillDDPGBase(OffPolicyAlgorithm):
    """
    Skill-conditioned DDPG with twin critics over an intrinsic reward: how all skill discovery methods of URLB act and learn.

    Methods are subclasses of :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`, which can be loaded, too. They say which
    intrinsic reward (:meth:`_make_intrinsic`) and which policy class. The environment is wrapped with
    :class:`~sb3_cesd.common.vec_env.VecSkillObservation`, unless it is already.

    :param policy: The policy model to use (MlpPolicy)
    :param env: The environment to learn from (if registered in Gym, can be str), with a 1D Box observation space
        and a Box action space
    :param n_skills: number of skills, at least 2
    :param skill_duration: environment steps after which a new skill is drawn (also drawn at reset); ``None`` keeps it for the
        whole episode
    :param learning_rate: learning rate of all networks;
        it can be a function of the current progress remaining (from 1 to 0)
    :param buffer_size: size of the replay buffer, in transitions
    :param learning_starts: environment steps that are only collected, before learning starts
    :param batch_size: transitions of each gradient update
    :param tau: the soft update coefficient ("Polyak update", between 0 and 1)
    :param gamma: the discount factor
    :param train_freq: Update the model every ``train_freq`` steps. Alternatively pass a tuple of frequency and unit
        like ``(5, "step")`` or ``(2, "episode")``.
    :param gradient_steps: How many gradient steps to do after each rollout (see ``train_freq``). ``None`` keeps one update for
        every ``train_freq`` transitions for any number of environments; ``-1`` does one for every transition.
    :param n_steps: length of the n-step window
    :param action_noise: exploration noise in place of ``exploration_noise``
    :param exploration_noise: standard deviation of the Gaussian exploration noise, on actions scaled to [-1, 1]
    :param noise_correlation: correlation of that noise with that of the step before, from 0 (white noise) to below 1: an
        Ornstein-Uhlenbeck process, which starts afresh with each episode
    :param target_policy_noise: standard deviation of the Gaussian noise on the actions in the critic target and the actor loss
    :param target_noise_clip: limit of the absolute value of that noise
    :param reward: ``"intrinsic"`` discovers skills; ``"extrinsic"`` learns the task of the environment with a single skill,
        from scratch (see :meth:`from_pretrained` for the other way)
    :param warm_up: how to act in the first ``learning_starts`` steps: ``"random"`` (uniform actions), ``"policy"``, or, for a
        task, ``"skills"`` (all of them, one after the other; in pre-training the same as ``"policy"``)
    :param replay_buffer_class: replay buffer class, :class:`~sb3_cesd.common.buffers.SkillReplayBuffer` or a subclass
    :param replay_buffer_kwargs: Keyword arguments to pass to the replay buffer on creation
    :param optimize_memory_usage: not supported
    :param matmul_precision: PyTorch's ``set_float32_matmul_precision`` during updates: ``"high"`` (TF32 on a GPU) or
        ``"medium"`` (bfloat16 where the processor has it), faster and no longer exact; ``None`` leaves it as it is
    :param bf16: automatic mixed precision with bfloat16 during updates
    :param cuda_graph: replay the whole update as one CUDA graph; no effect on the CPU. Apart from the learning rate, numbers
        that are changed in the course of training are not noticed.
    :param stats_window_size: Window size for the rollout logging, specifying the number of episodes to average
        the reported success rate, mean episode length, and mean reward over
    :param tensorboard_log: the log location for tensorboard (if None, no logging)
    :param policy_kwargs: additional arguments to be passed to the policy on creation
    :param verbose: Verbosity level: 0 for no output, 1 for info messages (such as device or wrappers used), 2 for
        debug messages
    :param seed: Seed for the pseudo random generators
    :param device: Device (cpu, cuda, ...) on which the code should be run.
        Setting it to auto, the code will be run on the GPU if possible.
    :param _init_setup_model: Whether or not to build the network at the creation of the instance
    """

    policy: SkillPolicy
    actor: SkillActor
    critic: SkillCritic
    critic_target: SkillCritic
    replay_buffer: SkillReplayBuffer | None  # type: ignore[assignment]
    intrinsic: IntrinsicReward

    def __init__(
        self,
        policy: str | type[SkillPolicy],
        env: GymEnv | str | None,
        n_skills: int = 16,
        skill_duration: int | None = 50,
        learning_rate: float | Schedule = 1e-4,
        buffer_size: int = 1_000_000,  # 1e6
        learning_starts: int = 4000,
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
        reward: str = "intrinsic",
        warm_up: str = "random",
        replay_buffer_class: type[ReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        matmul_precision: str | None = None,
        bf16: bool = False,
        cuda_graph: bool = False,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        self.n_skills = check_n_skills(n_skills)
        self.skill_duration = skill_duration
        self.reward = reward
        self.warm_up = warm_up
        self.skill: int | None = 0 if reward == "extrinsic" else None
        self.zero_shot: finetuning.ZeroShot | None = None
        #: The warm-up in which all skills act
        self.skill_turns: SkillTurns | None = None
        #: Whether the best of these is to learn the task
        self._best_goes_on = False
        self._acting_skills: np.ndarray | None = None
        if env is not None:
            env = maybe_make_env(env, verbose)
            check_env_spaces(env.observation_space, env.action_space)  # type: ignore[union-attr]
            env = self._wrap_env(env, verbose)  # type: ignore[arg-type]
            if _init_setup_model:
                env = self._add_skills(env)
        if replay_buffer_class is not None and not issubclass(replay_buffer_class, SkillReplayBuffer):
            raise ValueError(
                f"{replay_buffer_class.__name__} does not know skills: "
                "leave replay_buffer_class out, or subclass SkillReplayBuffer."
            )

        super().__init__(
            policy,
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
            replay_buffer_class=SkillReplayBuffer if replay_buffer_class is None else replay_buffer_class,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=optimize_memory_usage,
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
        self.n_steps = n_steps
        self.exploration_noise = exploration_noise
        self.noise_correlation = noise_correlation
        self.target_policy_noise = target_policy_noise
        self.target_noise_clip = target_noise_clip
        self.updates_follow_steps = gradient_steps is None
        self.matmul_precision = matmul_precision
        self.bf16 = bf16
        self.cuda_graph = cuda_graph

        if _init_setup_model:
            self._setup_model()

    def _check_arguments(self) -> None:
        check_positive_integer(buffer_size=self.buffer_size, batch_size=self.batch_size, n_steps=self.n_steps)
        check_positive(tau=self.tau, gamma=self.gamma)
        for name in ("tau", "gamma"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name}={getattr(self, name)} is above 1: pass a number from 0 to 1.")
        for name in ("exploration_noise", "target_policy_noise", "target_noise_clip"):
            check_not_negative(**{name: getattr(self, name)})
        check_correlation(noise_correlation=self.noise_correlation)
        for name, choices in {"reward": ("intrinsic", "extrinsic"), "warm_up": finetuning.WARM_UPS}.items():
            if getattr(self, name) not in choices:
                *others, last = map(repr, choices)
                raise ValueError(f"Unknown {name} {getattr(self, name)!r}: choose {', '.join(others)} or {last}.")

        if self.matmul_precision not in (None, *MATMUL_PRECISIONS):
            known = ", ".join(map(repr, MATMUL_PRECISIONS))
            raise ValueError(f"Unknown matmul_precision {self.matmul_precision!r}: choose {known}, or leave it out.")

    def _add_skills(self, env: VecEnv) -> VecEnv:
        return add_skill_observation(env, self.n_skills, self.skill_duration, self.skill)

    def _setup_model(self) -> None:
        # Not in __init__: load() replaces arguments after it
        self._check_arguments()
        # SB3 stores the noise for the number of environments it was used with
        if isinstance(self.action_noise, VectorizedActionNoise) and self.action_noise.n_envs != self.n_envs:
            self.action_noise = self.action_noise.base_noise
        self.replay_buffer_kwargs = {
            **self.replay_buffer_kwargs,
            "n_skills": self.n_skills,
            "n_steps": self.n_steps,
            "gamma": self.gamma,
        }
        # What the user passed stays apart from what the algorithm adds, as SB3 compares it when loading
        policy_kwargs, self.policy_kwargs = self.policy_kwargs, {**self.policy_kwargs, **self._skill_policy_kwargs()}
        with warnings.catch_warnings():
            # "n_steps is ignored because of a custom replay_buffer_class": it was just passed to it
            warnings.filterwarnings("ignore", message="`n_steps=")
            super()._setup_model()
        self.policy_kwargs = policy_kwargs

        assert isinstance(self.train_freq, TrainFreq)
        if self.updates_follow_steps:
            by_step = self.train_freq.unit == TrainFrequencyUnit.STEP
            self.gradient_steps = self.n_envs if by_step else -1
        intrinsic = ExtrinsicReward() if self.reward == "extrinsic" else self._make_intrinsic()
        self.intrinsic = intrinsic.to(self.device)
        self.intrinsic.check_batch_size(self.batch_size)
        self.policy.set_skill(self.skill)
        self._follow_task()
        if self.warm_up == "skills" and self.reward == "extrinsic" and self.num_timesteps == 0 and self.skill_turns is None:
            self.skill_turns = SkillTurns(self.n_skills, self.learning_starts)
        self._create_aliases()

    def _create_aliases(self) -> None:
        self.actor = self.policy.actor
        self.critic = self.policy.critic
        self.critic_target = self.policy.critic_target
        self._mean_logs = MeanLogs()
        self._graphed_update = GraphedFunction(self._update)
        self._skill_rewards = SkillRewards(self.n_skills)

    def _skill_policy_kwargs(self) -> dict[str, Any]:
        """Arguments of the policy that the algorithm knows."""
        return {"n_skills": self.n_skills}

    @abstractmethod
    def _make_intrinsic(self) -> IntrinsicReward:
        """The intrinsic reward of the method, built from the arguments of the algorithm."""

    @property
    def obs_dim(self) -> int:
        """Size of the observation without the skill."""
        return self.observation_space.shape[0] - self.n_skills  # type: ignore[index]

    @property
    def action_dim(self) -> int:
        """Size of the action."""
        return get_action_dim(self.action_space)

    def train(self, gradient_steps: int, batch_size: int = 1024) -> None:
        self.policy.set_training_mode(True)
        self.intrinsic.train()
        self._follow_progress()
        optimizers = [self.actor.optimizer, self.critic.optimizer]
        optimizers += [getattr(self.intrinsic, name) for name in self.intrinsic.optimizer_names]
        in_graph = self.cuda_graph and can_capture(self.device)
        for optimizer in optimizers:
            set_capturable(optimizer, in_graph, self.device)  # type: ignore[arg-type]
        self._update_learning_rate(
            [self.actor.optimizer, self.critic.optimizer, *self.intrinsic.scheduled_optimizers()]  # type: ignore[list-item]
        )
        assert self.replay_buffer is not None
        self.replay_buffer.relabel_fn = self.intrinsic.relabel
        self.replay_buffer.prepare(self._vec_normalize_env)

        with precision(self.device, self.matmul_precision, self.bf16):
            for _ in range(gradient_steps):
                self._n_updates += 1
                drawn = self.replay_buffer.draw(batch_size)
                if in_graph:
                    self._graphed_update(drawn, (self.replay_buffer.generation, self.intrinsic.phase))
                else:
                    self._update(drawn)

        self.intrinsic.eval()
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _follow_progress(self) -> None:
        """Tell what learns how far training has come; called before updates."""
        self.intrinsic.progress_remaining = self._current_progress_remaining
        self.intrinsic.num_timesteps = self.num_timesteps

    def _update_learning_rate(self, optimizers: list[th.optim.Optimizer] | th.optim.Optimizer) -> None:
        learning_rate = self.lr_schedule(self._current_progress_remaining)
        self.logger.record("train/learning_rate", learning_rate)
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            set_learning_rate(optimizer, learning_rate)

    def _update(self, drawn: th.Tensor) -> None:
        """
        One update of everything that learns. On a GPU, nothing of it needs the host.

        :param drawn: transitions of the replay buffer, shape ``(2, batch_size)``
        """
        assert self.replay_buffer is not None
        # Rewards are computed here, by the intrinsic reward
        replay_data = self.replay_buffer.relabelled(drawn)
        critic_parameters, target_parameters = self.critic.own_parameters(), self.critic_target.own_parameters()

        critic_loss = self.critic_loss(replay_data)
        self.critic.optimizer.zero_grad()  # type: ignore[union-attr]
        critic_loss.backward()
        self.critic.optimizer.step()  # type: ignore[union-attr]

        # The gradient flows through the critic, but not into it
        with frozen(critic_parameters):
            actor_loss = self.actor_loss(replay_data)
        self.actor.optimizer.zero_grad()  # type: ignore[union-attr]
        actor_loss.backward()
        self.actor.optimizer.step()  # type: ignore[union-attr]

        polyak_update(critic_parameters, target_parameters, self.tau)
        losses = {"train/critic_loss": critic_loss.detach(), "train/actor_loss": actor_loss.detach()}
        self._mean_logs.add({**losses, **self.intrinsic.logs})

    def critic_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        """
        Squared TD errors of all pairs, over all critics (paper eq. 1, n-step and with twin critics).

        :param replay_data: a relabelled batch
        :return: ``sum (q1 - t)^2 / (n b) + sum (q2 - t)^2 / (n b)`` for n heads and batch size b
        """
        pairs = replay_data.pairs
        with th.no_grad():
            next_observations = replay_data.next_observations.index_select(0, pairs.rows)
            next_actions = self.actor.act(next_observations, pairs.target_skills)
            next_actions = (next_actions + self._clipped_noise(next_actions)).clamp(-1, 1)
            next_q_values = minimum(self.critic_target.q_values(next_observations, next_actions, pairs.skills))  # (n_pairs, 1)
            discounts = ((1 - replay_data.dones) * replay_data.discounts).index_select(0, pairs.rows)
            target_q_values = pairs.rewards + discounts * next_q_values

        current_q_values = self.critic.q_values(replay_data.observations, replay_data.actions, pairs.skills, pairs.rows)
        errors = [(pairs.weights * (q_values - target_q_values).square()).sum() for q_values in current_q_values]
        return th.stack(errors).sum() / (self._n_heads() * len(replay_data.observations))

    def actor_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        """
        Improve each skill on its own value function (paper eq. 2).

        :param replay_data: a relabelled batch
        :return: ``- sum min(q1, q2) / (n b)`` for n heads and batch size b
        """
        skills = replay_data.actor_skills
        actions = self.actor.act(replay_data.observations, skills)
        actions = actions + self._clipped_noise(actions)
        # The value is that of the clipped action, the gradient passes as if it were not clipped (as in URLB)
        actions = actions + (actions.clamp(-1, 1) - actions).detach()
        q_values = self.critic.q_values(replay_data.observations, actions, skills)
        return -minimum(q_values).sum() / (self._n_heads() * len(skills))

    def _clipped_noise(self, actions: th.Tensor) -> th.Tensor:
        if self.target_policy_noise == 0:
            return th.zeros_like(actions)
        noise = th.randn_like(actions) * self.target_policy_noise
        return noise.clamp(-self.target_noise_clip, self.target_noise_clip)

    def _n_heads(self) -> int:
        """Number of critic heads, over which the losses are averaged; 1 for an extrinsic reward."""
        return 1

    def learn(
        self: SelfSkillDDPGBase,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str = "SkillDDPG",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfSkillDDPGBase:
        try:
            return super().learn(
                total_timesteps=total_timesteps,
                callback=callback,
                log_interval=log_interval,
                tb_log_name=tb_log_name,
                reset_num_timesteps=reset_num_timesteps,
                progress_bar=progress_bar,
            )
        finally:
            # There is no logger yet if the run failed to start
            if hasattr(self, "_logger"):
                self._mean_logs.flush(self.logger)

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if self.replay_buffer is not None and (reset_num_timesteps or self._last_obs is None):
            # SB3 resets the environments now, which SB3's own buffers do not note
            self.replay_buffer.end_trajectories()
        result = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
        self._unit_noise = unit_noise(self.noise_correlation, self.action_dim, self.n_envs)
        assert isinstance(self._last_obs, np.ndarray)
        check_finite(self._env_name(), "observation", self._last_obs, self.num_timesteps)
        return result

    def _init_callback(self, callback: MaybeCallback, progress_bar: bool = False) -> BaseCallback:
        self._add_skills_to_evaluation(callback)
        return super()._init_callback(callback, progress_bar)

    def _add_skills_to_evaluation(self, callback: object) -> None:
        """
        Let evaluations go through the skills in turn, one an episode, on environments without skill observations.

        :param callback: callback(s) that may hold evaluation environments
        """
        if isinstance(callback, EvalCallback):
            callback.eval_env = add_skill_observation(
                callback.eval_env, self.n_skills, skill_duration=None, skill=self.skill, order="cycle"
            )
        children = callback.callbacks if isinstance(callback, CallbackList) else callback
        if isinstance(children, list):
            for child in children:
                self._add_skills_to_evaluation(child)
        elif isinstance(children, EventCallback):
            self._add_skills_to_evaluation(children.callback)

    def dump_logs(self) -> None:
        self._mean_logs.flush(self.logger)
        if self.ep_info_buffer:
            self._skill_rewards.flush(self.logger, safe_mean([ep_info["l"] for ep_info in self.ep_info_buffer]))
        if self.zero_shot is not None:
            self.logger.record("time/zero_shot_timesteps", self.zero_shot.n_timesteps)
        super().dump_logs()

    def _sample_action(
        self,
        learning_starts: int,
        action_noise: ActionNoise | None = None,
        n_envs: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        learning_starts = learning_starts if self.warm_up == "random" else 0
        turns = self._running_turns()
        self._acting_skills = None if turns is None else turns.skills(n_envs)
        try:
            action, buffer_action = super()._sample_action(learning_starts, action_noise, n_envs)
        finally:
            self._acting_skills = None
        if not np.isfinite(buffer_action).all():
            raise ValueError(
                f"The policy returned actions that are not finite at time step {self.num_timesteps}: training has diverged. "
                "Lower learning_rate, or normalise the observations with VecNormalize."
            )
        if action_noise is None and self.num_timesteps >= learning_starts:
            noise = self.exploration_noise * self._unit_noise()
            buffer_action = np.clip(buffer_action + noise, -1, 1).astype(buffer_action.dtype)
            action = self.policy.unscale_action(buffer_action)
        return action, buffer_action

    def _store_transition(
        self,
        replay_buffer: SkillReplayBuffer,  # type: ignore[override]
        buffer_action: np.ndarray,
        new_obs: np.ndarray,  # type: ignore[override]
        reward: np.ndarray,
        dones: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """
        Store the transition without normalisation, and with the skill that was followed in it.

        :param replay_buffer: Replay buffer object where to store the transition.
        :param buffer_action: normalized action
        :param new_obs: next skill-augmented observation (of the next episode where ``dones`` is True)
        :param reward: reward for the current transition
        :param dones: end of the episode
        :param infos: additional information; it holds the terminal observations and tells timeouts
        :raises ValueError: if an observation or reward is not finite
        """
        assert isinstance(self._last_obs, np.ndarray)
        obs, skills = split_skill(self._last_obs, self.n_skills)
        next_obs = split_skill(new_obs, self.n_skills)[0]
        if self._vec_normalize_env is not None:
            assert isinstance(self._last_original_obs, np.ndarray)
            obs = self._last_original_obs
            next_obs = self._vec_normalize_env.get_original_obs()  # type: ignore[assignment]
            reward = self._vec_normalize_env.get_original_reward()
            self._last_original_obs = next_obs
        terminal_obs = next_obs.copy()
        for idx in np.nonzero(dones)[0]:
            if infos[idx].get("terminal_observation") is not None:
                terminal_obs[idx] = split_skill(infos[idx]["terminal_observation"], self.n_skills)[0]
                if self._vec_normalize_env is not None:
                    terminal_obs[idx] = self._vec_normalize_env.unnormalize_obs(terminal_obs[idx])
        for kind, values in {"observation": terminal_obs, "reset observation": next_obs, "reward": reward}.items():
            check_finite(self._env_name(), kind, values, self.num_timesteps)

        self._unit_noise.noise_prev[dones] = 0
        turns = self._running_turns()
        self._skill_rewards.add(skills if turns is None else turns.skills(len(skills)), reward)
        next_obs_of_skill = append_skill(terminal_obs, skills, self.n_skills)
        replay_buffer.add(append_skill(obs, skills, self.n_skills), next_obs_of_skill, buffer_action, reward, dones, infos)
        self._last_obs = new_obs
        if turns is not None:
            turns.add(reward)
            if turns.over:
                self._end_skill_turns(turns)

    def _running_turns(self) -> SkillTurns | None:
        return None if self.skill_turns is None or self.skill_turns.over else self.skill_turns

    def _end_skill_turns(self, turns: SkillTurns) -> None:
        """
        :param turns: the warm-up in which all skills acted
        """
        if self._best_goes_on:
            self._follow(turns.best())
            assert self.replay_buffer is not None and self.skill is not None
            # Everything seen so far is there for the skill that learns
            self.replay_buffer.set_skill(self.skill)
            assert isinstance(self._last_obs, np.ndarray)
            self._last_obs = append_skill(split_skill(self._last_obs, self.n_skills)[0], self.skill, self.n_skills)
        if self.verbose >= 1:
            print(f"Mean reward of a step with each skill: {turns}. Fine-tuning skill {self.skill}")

    def _env_name(self) -> str:
        assert self.env is not None
        spec = self.env.get_attr("spec", indices=0)[0] if self.env.has_attr("spec") else None
        if spec is not None:
            return spec.id
        env = self.env.unwrapped
        return type(env.envs[0].unwrapped if isinstance(env, DummyVecEnv) else env).__name__

    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        skill: int | np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """
        Action of a skill. See :meth:`~sb3_cesd.skill_ddpg.policies.SkillPolicy.predict`, which says what ``state`` is for.

        :param observation: plain or skill-augmented observation(s)
        :param state: the state returned by the call before
        :param episode_start: where an episode starts, shape ``(n_envs,)``
        :param deterministic: not used, the policy is deterministic
        :param skill: skill to follow, one for all or one each
        :return: action(s) and the state to pass to the next call
        """
        if skill is None and self.reward == "extrinsic":
            # Also if the observation bears another one
            skill = self.skill if self._acting_skills is None else self._acting_skills
        return self.policy.predict(observation, state, episode_start, deterministic, skill)

    def set_skill(self, skill: int | None) -> None:
        """
        Follow one skill, in predictions and in the training environment.

        :param skill: index of the skill, or ``None`` to follow all of them again
        :raises ValueError: if there is no such skill, or another one learns the task
        """
        skill = None if skill is None else check_skill(skill, self.n_skills)
        if self.reward == "extrinsic" and skill != self.skill:
            raise ValueError(
                f"Skill {self.skill} learns the task, the others do not: for another one, fine-tune the pre-trained model "
                "again with from_pretrained(path, env, skill=...)."
            )
        self._follow(skill)
        self._last_obs = None  # it bears the old skill: reset before the next step

    def _follow(self, skill: int | None) -> None:
        self.skill = skill
        self.policy.set_skill(skill)
        if self.env is not None:
            wrapper = unwrap_vec_wrapper(self.env, VecSkillObservation)
            assert wrapper is not None
            wrapper.set_skill(skill)

    def _follow_task(self) -> None:
        """Let environments follow the skill that learns the task, also those that came with skill observations."""
        if self.reward == "extrinsic":
            self._follow(self.skill)

    def predict_clusters(self, observations: np.ndarray) -> np.ndarray | None:
        """
        :param observations: plain observations, shape ``(n, obs_dim)``, normalised if the model was trained with VecNormalize
        :return: most likely cluster of each, shape ``(n,)``; ``None`` for a method without clusters
        """
        with th.no_grad():
            clusters = self.intrinsic.predict_clusters(th.as_tensor(observations, device=self.device).float())
        return None if clusters is None else clusters.cpu().numpy()

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        check_env_spaces(env.observation_space, env.action_space)
        with explain_other_spaces():
            super().set_env(self._add_skills(self._wrap_env(env, self.verbose)), force_reset)
        self._follow_task()
