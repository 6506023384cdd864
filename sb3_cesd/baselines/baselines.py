from typing import Any, ClassVar, TypeVar

import torch as th
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule

from sb3_cesd.baselines.policies import MlpPolicy, SkillConditionedPolicy
from sb3_cesd.common.utils import build
from sb3_cesd.intrinsic.apt import APTReward
from sb3_cesd.intrinsic.cic import CICReward
from sb3_cesd.intrinsic.dads import DADSReward
from sb3_cesd.intrinsic.diayn import DIAYNReward
from sb3_cesd.intrinsic.extrinsic import ExtrinsicReward
from sb3_cesd.intrinsic.transition import TransitionReward
from sb3_cesd.skill_ddpg.skill_ddpg import SkillDDPG

SelfSkillConditionedDDPG = TypeVar("SelfSkillConditionedDDPG", bound="SkillConditionedDDPG")


class SkillConditionedDDPG(SkillDDPG):
    """
    DDPG with one skill-conditioned critic over a reward of each transition: the backbone of URLB, on which DIAYN, DADS, CIC
    and APT differ in their reward alone. To bring another reward, subclass this and name it in ``reward_class``.

    :param policy: The policy model to use (MlpPolicy)
    :param env: The environment to learn from (if registered in Gym, can be str), with a 1D Box observation space
        and a Box action space
    :param n_skills: number of skills, at least 2
    :param skill_duration: environment steps after which a new skill is drawn (also drawn at reset); ``None`` keeps it for the
        whole episode
    :param intrinsic_kwargs: arguments of the intrinsic reward, ``reward_class``
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

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": MlpPolicy}
    #: The intrinsic reward of the method
    reward_class: ClassVar[type[TransitionReward]]
    fixed_by_save: ClassVar[tuple[str, ...]] = ("n_skills", "intrinsic_kwargs")

    policy: SkillConditionedPolicy
    intrinsic: TransitionReward | ExtrinsicReward

    def __init__(
        self,
        policy: str | type[SkillConditionedPolicy],
        env: GymEnv | str | None,
        n_skills: int = 16,
        skill_duration: int | None = 50,
        intrinsic_kwargs: dict[str, Any] | None = None,
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
        self.intrinsic_kwargs = intrinsic_kwargs or {}
        super().__init__(
            policy,
            env,
            n_skills=n_skills,
            skill_duration=skill_duration,
            learning_rate=learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,
            tau=tau,
            gamma=gamma,
            train_freq=train_freq,
            gradient_steps=gradient_steps,
            n_steps=n_steps,
            action_noise=action_noise,
            exploration_noise=exploration_noise,
            noise_correlation=noise_correlation,
            target_policy_noise=target_policy_noise,
            target_noise_clip=target_noise_clip,
            reward=reward,
            warm_up=warm_up,
            replay_buffer_class=replay_buffer_class,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=optimize_memory_usage,
            matmul_precision=matmul_precision,
            bf16=bf16,
            cuda_graph=cuda_graph,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
        )

    def _make_intrinsic(self) -> TransitionReward:
        sizes = {"obs_dim": self.obs_dim, "action_dim": self.action_dim, "n_skills": self.n_skills}
        intrinsic = build("intrinsic_kwargs", self.reward_class, self.intrinsic_kwargs, sizes)
        intrinsic.set_optimizer(lambda parameters: self.policy.make_optimizer(parameters, self.lr_schedule))
        return intrinsic

    def learn(
        self: SelfSkillConditionedDDPG,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfSkillConditionedDDPG:
        return super().learn(
            total_timesteps=total_timesteps,
            callback=callback,
            log_interval=log_interval,
            tb_log_name=type(self).__name__ if tb_log_name is None else tb_log_name,
            reset_num_timesteps=reset_num_timesteps,
            progress_bar=progress_bar,
        )


class DIAYN(SkillConditionedDDPG):
    """
    Diversity is All You Need (Eysenbach et al., 2019): visit states that tell which skill was followed.

    Paper: https://arxiv.org/abs/1802.06070. For the arguments see :class:`SkillConditionedDDPG`; ``intrinsic_kwargs`` are
    those of :class:`~sb3_cesd.intrinsic.DIAYNReward`: ``net_arch`` ([1024, 1024]) and ``scale`` (1).
    """

    reward_class = DIAYNReward


class DADS(SkillConditionedDDPG):
    """
    Dynamics-Aware Discovery of Skills (Sharma et al., 2020): skills whose outcomes are predictable and differ.

    Paper: https://arxiv.org/abs/1907.01657. For the arguments see :class:`SkillConditionedDDPG`; ``intrinsic_kwargs`` are
    those of :class:`~sb3_cesd.intrinsic.DADSReward`: ``net_arch`` ([1024, 1024]), ``n_experts`` (4) and ``scale`` (1).
    """

    reward_class = DADSReward


class CIC(SkillConditionedDDPG):
    """
    Contrastive Intrinsic Control (Laskin et al., 2022): particle entropy of features that tell which skill was followed.

    Paper: https://arxiv.org/abs/2202.00161. For the arguments see :class:`SkillConditionedDDPG`; ``intrinsic_kwargs`` are
    those of :class:`~sb3_cesd.intrinsic.CICReward`: ``features_dim`` (64), ``net_arch`` ([1024, 1024]), ``temperature`` (0.5)
    and ``entropy_kwargs``.
    """

    reward_class = CICReward


class APT(SkillConditionedDDPG):
    """
    Active Pre-Training (Liu and Abbeel, 2021): particle entropy alone, the same for all skills.

    Paper: https://arxiv.org/abs/2103.04551. For the arguments see :class:`SkillConditionedDDPG`; ``intrinsic_kwargs`` are
    those of :class:`~sb3_cesd.intrinsic.APTReward`: ``encoder`` ("icm"), ``encoder_kwargs`` and ``entropy_kwargs``.
    """

    reward_class = APTReward
