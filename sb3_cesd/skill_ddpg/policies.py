from typing import Annotated, Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import maybe_transpose
from stable_baselines3.common.torch_layers import (
    BaseFeaturesExtractor,
    CombinedExtractor,
    FlattenExtractor,
    get_actor_critic_arch,
)
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.common.utils import is_vectorized_observation
from torch import nn

from sb3_cesd.common.arguments import PositiveInt, build, checked, constructor_names
from sb3_cesd.common.observations import (
    OBSERVATION,
    SKILL,
    Observation,
    add_skill,
    entries_of,
    has_skill,
    plain_space,
    skill_observation_space,
)
from sb3_cesd.common.skills import SkillName, SkillSpace
from sb3_cesd.skill_ddpg.images import ImageEncoder, LearnsFrom, check_images
from sb3_cesd.skill_ddpg.networks import SkillActor, SkillCritic, StochasticSkillActor, SuccessorCritic


class SkillPolicy(BasePolicy):
    """
    Policy class (with skill-conditioned actor and critic) of URLB's DDPG: twin critics and a target critic, no target actor.

    ``predict`` follows the skill passed as ``skill=``, else that of the observation, else the one fixed by ``set_skill``.
    Without any of these it goes through all skills in turn, one per episode, and keeps track of them in ``state``, like the
    memory of a recurrent policy (``evaluate_policy`` and RL Zoo's enjoy pass it on).

    :param observation_space: observation space with a skill
    :param action_space: action space
    :param lr_schedule: learning rate schedule (could be constant)
    :param skill_space: space of the skills
    :param net_arch: sizes of the hidden layers, a list for both or ``dict(pi=[...], qf=[...])``. Default
        ``dict(pi=[256, 256], qf=[128, 256])``
    :param activation_fn: activation of the hidden layers
    :param features_extractor_class: features extractor of the observation without the skill; ``None`` for
        ``FlattenExtractor``, or ``CombinedExtractor`` for dictionaries
    :param features_extractor_kwargs: its arguments
    :param normalize_images: whether to scale images to [0, 1]
    :param optimizer_class: the optimizer, ``th.optim.Adam`` by default
    :param optimizer_kwargs: its arguments, excluding the learning rate; for Adam the default is ``dict(fused=True)``
    :param n_critics: number of critics; the target takes their minimum
    :param skill: skill to follow for observations without one, see :meth:`set_skill`
    :param ent_coef: entropy coefficient of a stochastic actor, see
        :class:`~sb3_cesd.skill_ddpg.networks.StochasticSkillActor`; ``None`` for a deterministic one
    :param layer_norm: whether LayerNorm and Tanh replace the activation of the first hidden layer in actor and critic, as in
        URLB
    :param encoder_learns_from: for ``CnnPolicy``, whose losses train the encoder of images: ``"critic"`` (default),
        ``"reward"``, ``"both"`` or ``"none"``
    :param encoder_kwargs: for ``CnnPolicy``, arguments of :class:`~sb3_cesd.skill_ddpg.images.ImageEncoder`: ``features_dim``
        (50), ``n_channels`` (32), ``strides``, ``shift`` and ``subtract_mean`` (False)
    :raises ValueError: if the observations are not what the policy takes
    """

    actor: SkillActor
    critic: SkillCritic
    critic_target: SkillCritic

    #: Class of both critics
    critic_class: ClassVar[type[SkillCritic]] = SkillCritic
    #: Whether observations are images, which networks and rewards see as the features of one encoder
    takes_images: bool = False
    encoder: ImageEncoder | None

    @checked
    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Box,
        lr_schedule: Schedule,
        skill_space: SkillSpace,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] | None = None,
        features_extractor_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        n_critics: PositiveInt = 2,
        skill: SkillName | None = None,
        ent_coef: float | str | None = None,
        layer_norm: bool = True,
        encoder_learns_from: LearnsFrom | None = None,
        encoder_kwargs: Annotated[dict[str, Any] | None, ImageEncoder] = None,
    ) -> None:
        if optimizer_kwargs is None and optimizer_class in (th.optim.Adam, th.optim.AdamW):
            optimizer_kwargs = {"fused": True}
        self.plain_space = plain_space(observation_space)
        if self.takes_images:
            check_images(self.plain_space)
        if self.takes_images and (features_extractor_kwargs or features_extractor_class not in (None, FlattenExtractor)):
            raise ValueError("CnnPolicy has its own encoder: leave features_extractor_* out, or pass encoder_kwargs.")
        if not self.takes_images and (encoder_learns_from is not None or encoder_kwargs):
            raise ValueError("Only CnnPolicy has an encoder: leave encoder_learns_from and encoder_kwargs out.")
        if features_extractor_class is None:
            features_extractor_class = CombinedExtractor if isinstance(self.plain_space, spaces.Dict) else FlattenExtractor
        super().__init__(
            observation_space,
            action_space,
            features_extractor_class,
            features_extractor_kwargs,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
            squash_output=True,
            normalize_images=normalize_images,
        )
        self.skill_space = skill_space
        self.net_arch = {"pi": [256, 256], "qf": [128, 256]} if net_arch is None else net_arch
        self.actor_arch, self.critic_arch = get_actor_critic_arch(self.net_arch)
        self.activation_fn = activation_fn
        self.n_critics = n_critics
        self.ent_coef = ent_coef
        self.layer_norm = layer_norm
        self.encoder_learns_from = encoder_learns_from
        self.encoder_kwargs = encoder_kwargs
        self.encoder = None
        #: What networks observe: features in place of images
        self.network_space = observation_space
        if self.takes_images:
            given: dict[str, Any] = {"space": self.plain_space, "learns_from": encoder_learns_from or "critic"}
            self.encoder = build("encoder_kwargs", ImageEncoder, encoder_kwargs, **given)
            self.network_space = skill_observation_space(spaces.Box(-1, 1, (self.encoder.features_dim,)), skill_space)
        self.skill: int | list[float] | None = None
        self.set_skill(skill)
        self._build(lr_schedule)

    @property
    def n_skills(self) -> int:
        """Number of skills that an index stands for."""
        return self.skill_space.n_skills

    def _build(self, lr_schedule: Schedule) -> None:
        self.actor = self.make_actor()
        self.critic = self.make_critic()
        self.critic_target = self.make_critic()
        self.critic_target.load_state_dict(self.critic.state_dict())
        self.critic_target.requires_grad_(False)

        self.actor.optimizer = self.make_optimizer(list(self.actor.parameters()), lr_schedule)
        self.critic.optimizer = self.make_optimizer(list(self.critic.parameters()), lr_schedule)
        if self.encoder is not None:
            self.encoder.optimizer = self.make_optimizer(list(self.encoder.parameters()), lr_schedule)
        self.critic_target.set_training_mode(False)

    def make_optimizer(self, parameters: list[nn.Parameter], lr_schedule: Schedule) -> th.optim.Optimizer:
        """Make an optimizer of the class and with the arguments that the user chose."""
        return build("optimizer_kwargs", self.optimizer_class, self.optimizer_kwargs, params=parameters, lr=lr_schedule(1))

    def make_plain_features_extractor(self) -> BaseFeaturesExtractor:
        """Make a features extractor for observations without skills."""
        kwargs, space = self.features_extractor_kwargs, plain_space(self.network_space)
        return build("features_extractor_kwargs", self.features_extractor_class, kwargs, observation_space=space)

    def make_actor(self) -> SkillActor:
        """Make the actor, with a features extractor of its own."""
        own: dict[str, Any] = {} if self.ent_coef is None else {"ent_coef": self.ent_coef}
        layers = self.actor_arch, self.make_plain_features_extractor(), self.activation_fn
        actor_class = StochasticSkillActor if own else SkillActor
        return actor_class(*self._spaces, *layers, self.normalize_images, self.layer_norm, **own)

    def make_critic(self) -> SkillCritic:
        """Make a critic, with a features extractor of its own."""
        extractor = self.make_plain_features_extractor()
        return self.critic_class(*self._spaces, self.critic_arch, extractor, **self._critic_kwargs())

    @property
    def _spaces(self) -> tuple[Any, Any, SkillSpace]:
        return self.network_space, self.action_space, self.skill_space

    def _critic_kwargs(self) -> dict[str, Any]:
        names = ("activation_fn", "n_critics", "normalize_images", "layer_norm")
        return {name: getattr(self, name) for name in names}

    def _get_constructor_parameters(self) -> dict[str, Any]:
        names = [name for name in constructor_names(type(self)) if name not in ("self", "lr_schedule")]
        # The schedule is not needed for loading the policy alone
        data = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return {**data, "lr_schedule": self._dummy_schedule}

    def forward(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        return self._predict(observation, deterministic=deterministic)

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        if self.encoder is not None:
            observation = {**observation, OBSERVATION: self.encoder(observation[OBSERVATION])}  # type: ignore
        return self.actor._predict(observation, deterministic)  # type: ignore[arg-type]

    obs_to_tensor = SkillActor.obs_to_tensor  # type: ignore[assignment]

    def set_training_mode(self, mode: bool) -> None:
        """Put the policy in either training or evaluation mode; the target critic stays in evaluation mode."""
        for network in (self.actor, self.critic):
            # predict() calls this in every step, and walking through all modules takes as long as acting
            if network.training != mode:
                network.set_training_mode(mode)
        self.training = mode

    def set_skill(self, skill: SkillName | None) -> None:
        """Fix the skill to follow for observations without one: its index or vector; ``None`` goes through all of them."""
        self.skill = None if skill is None else self.skill_space.name_of(skill)

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

        :param observation: one or several observations, with or without a skill
        :param state: skills of the running episodes, as returned by the previous call
        :param episode_start: environments in which an episode starts get the next skill, shape ``(n_envs,)``
        :param deterministic: take the mean action of a stochastic policy; no effect on a deterministic one
        :param skill: skill to follow, one for all observations or one each: an index, or the vector of a continuous skill;
            overrides that of the observation
        :return: actions and the state to pass to the next call
        :raises ValueError: if the skill is unknown, or the observation of another shape
        """
        if isinstance(observation, tuple):
            # What reset() returns: SB3 explains the mistake
            return super().predict(observation, state, episode_start, deterministic)  # type: ignore[arg-type]
        batch_shape = self.batch_shape(observation)
        if skill is not None:
            observation = add_skill(observation, self.skill_space.encode(skill, batch_shape))
        elif not has_skill(observation):
            vectors, state = self._skills_of_episodes(int(np.prod(batch_shape)), state, episode_start)
            observation = add_skill(observation, vectors if batch_shape else vectors[0])
        else:
            # Users may have made it of float64, such as a row of np.eye
            observation = {**observation, SKILL: np.asarray(observation[SKILL], dtype=np.float32)}
        return super().predict(observation, state, episode_start, deterministic)

    def batch_shape(self, observation: Observation, what: str = "observation") -> tuple[int, ...]:
        """Get ``()`` for a single observation and ``(n_envs,)`` for several; ``what`` names the argument in messages."""
        entries = entries_of(observation)
        known = {name: space for name, space in self.observation_space.spaces.items() if name != SKILL}  # type: ignore
        if entries.keys() != known.keys():
            raise ValueError(f"Entries of the {what}: {list(entries)}, not {list(known)}: pass those of training.")
        shape: tuple[int, ...] = ()
        for name, value in entries.items():
            # Channels of an image may come last: SB3 puts them first
            array = maybe_transpose(np.asarray(value), known[name])
            shape = array.shape[:1] if is_vectorized_observation(array, known[name]) else ()
        return shape

    def _skills_of_episodes(
        self, n_envs: int, state: tuple[np.ndarray, ...] | None, episode_start: np.ndarray | None
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """
        Choose the skill of each episode: vectors, ``(n_envs, skill_dim)``, and the new state: skills, and the step to the next
        ones.

        Environment i of n goes through the skills i, i + n, i + 2n, ..., however long the episodes of the others are. All
        skills then count equally in SB3's ``evaluate_policy``, which plays the same number of episodes in each environment.
        """
        if self.skill is not None:
            return self.skill_space.encode(self.skill, (n_envs,)), state or ()
        skills, stride = state or (np.arange(n_envs), np.array(n_envs))
        if state and episode_start is not None:
            skills = skills + episode_start * stride
        skills = skills % self.n_skills
        return self.skill_space.vectors[skills], (skills, stride)


class SuccessorPolicy(SkillPolicy):
    """Policy class with critics that predict successor features; otherwise as :class:`SkillPolicy`."""

    critic: SuccessorCritic
    critic_target: SuccessorCritic
    critic_class = SuccessorCritic


class CnnPolicy(SkillPolicy):
    """
    Policy class for images: the encoder of DrQ-v2 (:class:`~sb3_cesd.skill_ddpg.images.ImageEncoder`), with its own optimizer,
    then actor and critic of its features; otherwise as :class:`SkillPolicy`.
    """

    takes_images = True


class SuccessorCnnPolicy(SuccessorPolicy):
    """As :class:`CnnPolicy`, with critics that predict successor features."""

    takes_images = True


MlpPolicy = SkillPolicy
#: Policies of a method with such critics
SUCCESSOR_POLICIES: dict[str, type[BasePolicy]] = {
    **dict.fromkeys(("MlpPolicy", "MultiInputPolicy", "SuccessorPolicy"), SuccessorPolicy),
    "CnnPolicy": SuccessorCnnPolicy,
}
