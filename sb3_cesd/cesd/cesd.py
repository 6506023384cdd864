from typing import Any, ClassVar, TypeVar

import torch as th
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule

from sb3_cesd.cesd.constraint import ClusterConstraint
from sb3_cesd.cesd.policies import CeSDPolicy, EnsembleCritic, MlpPolicy
from sb3_cesd.cesd.prototypes import Prototypes
from sb3_cesd.cesd.relabelling import CriticRelabelling
from sb3_cesd.cesd.reward import CeSDReward
from sb3_cesd.common.utils import build, check_not_negative, check_positive_integer
from sb3_cesd.intrinsic.encoders import make_encoder
from sb3_cesd.intrinsic.extrinsic import ExtrinsicReward
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.skill_ddpg.skill_ddpg import SkillDDPG

SelfCeSD = TypeVar("SelfCeSD", bound="CeSD")


class CeSD(SkillDDPG):
    """
    Constrained Ensemble exploration for Skill Discovery (CeSD).

    Learns ``n_skills`` distinct behaviours without any reward: states are clustered by prototypes, each skill has a value
    function of its own that seeks high entropy within its cluster, and a constraint keeps skills to their clusters.

    Paper: https://arxiv.org/abs/2405.16030
    Sizes and rates are those of the released code (https://github.com/Baichenjia/CeSD). The method departs from it where that
    measures better: skills first explore with a value they share, then keep to their clusters; the README lists all departures
    and how to undo them.

    :param policy: The policy model to use (MlpPolicy)
    :param env: The environment to learn from (if registered in Gym, can be str), with a 1D Box observation space
        and a Box action space. It is wrapped with ``VecSkillObservation``, unless it is already.
    :param n_skills: number of skills and of clusters, at least 2
    :param skill_duration: environment steps after which a new skill is drawn (also drawn at reset); ``None`` keeps it for the
        whole episode
    :param ensemble_size: number of critic heads, a divisor of ``n_skills``; ``None`` for one a skill. With fewer, one head
        serves several skills; 1 is exploration alone.
    :param alpha: weight of the constraint reward
    :param learning_rate: learning rate of all networks;
        it can be a function of the current progress remaining (from 1 to 0)
    :param buffer_size: size of the replay buffer, in transitions
    :param learning_starts: environment steps that are only collected, before learning starts
    :param batch_size: transitions of each gradient update, more than the k of ``entropy_kwargs``
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
    :param encoder: state representation: ``"contrastive"``, ``"fourier"`` (random Fourier features), ``"icm"`` (intrinsic
        curiosity module) or ``"identity"``
    :param encoder_kwargs: arguments of the encoder, see :mod:`sb3_cesd.intrinsic.encoders`; for ``"contrastive"``
        ``features_dim`` (16), ``net_arch`` ([1024, 1024]) and ``temperature`` (0.5)
    :param prototype_kwargs: arguments of :class:`~sb3_cesd.cesd.prototypes.Prototypes`: ``temperature`` (0.1),
        ``sinkhorn_temperature`` (0.03), ``sinkhorn_iterations`` (5), ``swap`` ("self"); and ``learning_rate`` for a
        constant one of their own
    :param entropy_kwargs: arguments of :class:`~sb3_cesd.intrinsic.particle_entropy.ParticleEntropy`: ``k`` (16),
        ``scale`` ("std"), ``clip`` (0.0005), ``aggregate`` ("mean"), ``log1p`` (False)
    :param constraint_kwargs: arguments of :class:`~sb3_cesd.cesd.constraint.ClusterConstraint`: ``lambda_`` (1), ``count``
        ("paper"), ``start`` (0.8, a share of the training budget; above 1 a number of environment steps)
    :param relabel_kwargs: arguments of :class:`~sb3_cesd.cesd.relabelling.CriticRelabelling`: ``critic`` ("hindsight"),
        ``n_random_heads`` (2), ``kappa`` (0), ``actor`` ("random"), ``actor_probability`` (0.5)
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
    :param policy_kwargs: additional arguments to be passed to the policy on creation, see
        :class:`~sb3_cesd.cesd.policies.CeSDPolicy`
    :param verbose: Verbosity level: 0 for no output, 1 for info messages (such as device or wrappers used), 2 for
        debug messages
    :param seed: Seed for the pseudo random generators
    :param device: Device (cpu, cuda, ...) on which the code should be run.
        Setting it to auto, the code will be run on the GPU if possible.
    :param _init_setup_model: Whether or not to build the network at the creation of the instance
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": MlpPolicy}
    policy: CeSDPolicy
    critic: EnsembleCritic
    critic_target: EnsembleCritic
    intrinsic: CeSDReward | ExtrinsicReward

    fixed_by_save: ClassVar[tuple[str, ...]] = ("n_skills", "ensemble_size", "encoder", "encoder_kwargs")

    def __init__(
        self,
        policy: str | type[CeSDPolicy],
        env: GymEnv | str | None,
        n_skills: int = 16,
        skill_duration: int | None = 50,
        ensemble_size: int | None = None,
        alpha: float = 1.0,
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
        encoder: str = "contrastive",
        encoder_kwargs: dict[str, Any] | None = None,
        prototype_kwargs: dict[str, Any] | None = None,
        entropy_kwargs: dict[str, Any] | None = None,
        constraint_kwargs: dict[str, Any] | None = None,
        relabel_kwargs: dict[str, Any] | None = None,
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
        self.ensemble_size = ensemble_size
        self.alpha = alpha
        self.encoder = encoder
        self.encoder_kwargs = encoder_kwargs or {}
        self.prototype_kwargs = prototype_kwargs or {}
        self.entropy_kwargs = entropy_kwargs or {}
        self.constraint_kwargs = constraint_kwargs or {}
        self.relabel_kwargs = relabel_kwargs or {}
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

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_not_negative(alpha=self.alpha)
        heads = self._n_heads()
        if heads > 0:
            check_positive_integer(ensemble_size=heads)
        if not 1 <= heads <= self.n_skills or self.n_skills % heads != 0:
            raise ValueError(
                f"ensemble_size={heads} does not divide n_skills={self.n_skills}: each head serves the same number of skills, "
                "pass a divisor of n_skills (or leave ensemble_size out)."
            )

    def _skill_policy_kwargs(self) -> dict[str, Any]:
        return {**super()._skill_policy_kwargs(), "ensemble_size": self._n_heads()}

    def _n_heads(self) -> int:
        if self.reward == "extrinsic":
            return 1
        return self.n_skills if self.ensemble_size is None else self.ensemble_size

    def _make_intrinsic(self) -> CeSDReward:
        encoder = make_encoder(self.encoder, self.obs_dim, self.action_dim, self.n_skills, self.encoder_kwargs)
        prototype_kwargs = dict(self.prototype_kwargs)
        prototype_learning_rate = prototype_kwargs.pop("learning_rate", None)
        shapes = {"n_prototypes": self.n_skills, "features_dim": encoder.features_dim}
        return CeSDReward(
            encoder,
            build("prototype_kwargs", Prototypes, prototype_kwargs, shapes),
            build("entropy_kwargs", ParticleEntropy, self.entropy_kwargs),
            build("constraint_kwargs", ClusterConstraint, self.constraint_kwargs),
            build("relabel_kwargs", CriticRelabelling, self.relabel_kwargs),
            self.n_skills,
            self.alpha,
            self.lr_schedule,
            prototype_learning_rate,
            self.policy.optimizer_class,
            self.policy.optimizer_kwargs,
        )

    def _follow_progress(self) -> None:
        super()._follow_progress()
        # Skills explore with the value they share; heads learn to differ from it once the constraint has started
        if isinstance(self.intrinsic, CeSDReward):
            for critic in (self.critic, self.critic_target):
                critic.use_heads = self.intrinsic.phase or not critic.shared_value

    def learn(
        self: SelfCeSD,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str = "CeSD",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfCeSD:
        return super().learn(
            total_timesteps=total_timesteps,
            callback=callback,
            log_interval=log_interval,
            tb_log_name=tb_log_name,
            reset_num_timesteps=reset_num_timesteps,
            progress_bar=progress_bar,
        )
