from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BaseModel, BasePolicy
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor, get_actor_critic_arch
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import nn

from sb3_cesd.common.skills import append_skill, check_skill, plain_space
from sb3_cesd.common.torch_layers import create_normalized_mlp, one_hot


class SkillActor(BasePolicy):
    """
    Deterministic skill-conditioned policy: [features(s), one-hot z] -> MLP -> tanh.

    :param observation_space: skill-augmented observation space
    :param action_space: action space
    :param n_skills: number of skills
    :param net_arch: sizes of the hidden layers; the first one is followed by LayerNorm and Tanh
    :param features_extractor: network that extracts features of the plain observation
    :param features_dim: size of the features
    :param activation_fn: activation of the other hidden layers
    :param normalize_images: whether to normalize images or not
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Box,
        n_skills: int,
        net_arch: list[int],
        features_extractor: nn.Module,
        features_dim: int,
        activation_fn: type[nn.Module] = nn.ReLU,
        normalize_images: bool = True,
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            features_extractor=features_extractor,
            normalize_images=normalize_images,
            squash_output=True,
        )
        self.n_skills = n_skills
        self.net_arch = net_arch
        self.features_dim = features_dim
        self.activation_fn = activation_fn
        self.mu = create_normalized_mlp(features_dim + n_skills, get_action_dim(action_space), net_arch, activation_fn)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        data = super()._get_constructor_parameters()
        data.update(
            dict(
                n_skills=self.n_skills,
                net_arch=self.net_arch,
                features_dim=self.features_dim,
                activation_fn=self.activation_fn,
                features_extractor=self.features_extractor,
            )
        )
        return data

    def act(self, observations: th.Tensor, skills: th.Tensor) -> th.Tensor:
        """
        :param observations: plain observations, shape ``(n, obs_dim)``
        :param skills: shape ``(n,)``
        :return: actions in [-1, 1], shape ``(n, action_dim)``
        """
        return self._act(observations, one_hot(skills, self.n_skills, observations.dtype))

    def forward(self, obs: th.Tensor) -> th.Tensor:
        """
        :param obs: skill-augmented observations, shape ``(n, obs_dim + n_skills)``
        :return: actions in [-1, 1], shape ``(n, action_dim)``
        """
        obs = obs.float()
        return self._act(obs[:, : -self.n_skills], obs[:, -self.n_skills :])

    def _act(self, observations: th.Tensor, skills: th.Tensor) -> th.Tensor:
        return self.mu(th.cat([self.features_extractor(observations), skills], dim=1)).tanh()

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        # The policy is deterministic: exploration noise is added by the algorithm
        return self(observation)


class SkillCritic(BaseModel):
    """
    Interface of the critics: Q-values of (transition, skill) pairs.

    :param observation_space: plain observation space
    :param action_space: action space
    :param features_extractor: network that extracts features of the plain observation
    :param share_features_extractor: the extractor belongs to the actor and is not trained here
    """

    #: Modules that make values of hidden features; what comes before them is the trunk
    head_modules: ClassVar[tuple[str, ...]] = ("q_networks",)

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Box,
        features_extractor: BaseFeaturesExtractor,
        share_features_extractor: bool,
    ) -> None:
        super().__init__(observation_space, action_space, features_extractor=features_extractor)
        self.features_extractor: BaseFeaturesExtractor = features_extractor
        self.share_features_extractor = share_features_extractor

    @abstractmethod
    def q_values(
        self,
        observations: th.Tensor,
        actions: th.Tensor,
        skills: th.Tensor,
        rows: th.Tensor | None = None,
    ) -> list[th.Tensor]:
        """
        :param observations: plain observations, shape ``(batch_size, obs_dim)``
        :param actions: shape ``(batch_size, action_dim)``
        :param skills: skill of each pair, shape ``(n_pairs,)``
        :param rows: transition of each pair, shape ``(n_pairs,)``; ``None`` pairs row j with ``skills[j]``
        :return: Q-values of the pairs, one tensor of shape ``(n_pairs, 1)`` for each of the ``n_critics``
        """

    def extract(self, observations: th.Tensor) -> th.Tensor:
        """
        :param observations: plain observations, shape ``(n, obs_dim)``
        :return: features, shape ``(n, features_dim)``; a shared extractor learns from the actor loss alone, as in SB3's TD3
        """
        with th.set_grad_enabled(th.is_grad_enabled() and not self.share_features_extractor):
            return self.features_extractor(observations)

    def of_skill(self, name: str, value: th.Tensor, skill: int) -> th.Tensor:
        """
        :param name: name of a parameter
        :param value: the parameter, or a tensor of its shape
        :param skill: index of a skill
        :return: the part that serves this skill
        """
        return value

    def own_parameters(self) -> list[nn.Parameter]:
        """Parameters of the critic, without those of a shared extractor."""
        shared = set(self.features_extractor.parameters()) if self.share_features_extractor else set()
        return [parameter for parameter in self.parameters() if parameter not in shared]


class SkillPolicy(BasePolicy):
    """
    Skill-conditioned actor with a critic, target critic and no target actor (URLB's DDPG).

    ``predict`` takes skill-augmented observations as they are. Plain ones get a skill: the one passed as ``skill=``; or the
    one fixed by ``set_skill``; or a skill for each episode, going through all skills in turn, which travels in ``state`` like
    the memory of a recurrent policy (``evaluate_policy`` and RL Zoo's enjoy carry it).

    :param observation_space: skill-augmented observation space
    :param action_space: action space
    :param lr_schedule: learning rate schedule (could be constant)
    :param n_skills: number of skills
    :param net_arch: sizes of the hidden layers, a list for both or ``dict(pi=[...], qf=[...])``; the first
        layer of each is followed by LayerNorm and Tanh. Default ``dict(pi=[1024, 1024], qf=[512, 1024])``
    :param activation_fn: activation of the other hidden layers
    :param features_extractor_class: features extractor of the plain observation
    :param features_extractor_kwargs: its arguments
    :param normalize_images: not used for vector observations
    :param optimizer_class: the optimizer, ``th.optim.Adam`` by default
    :param optimizer_kwargs: its arguments, excluding the learning rate; for Adam the default is ``dict(fused=True)``
    :param n_critics: number of critics of each skill, the target takes their minimum
    :param share_features_extractor: the critic uses the extractor of the actor, trained by the actor loss
    """

    actor: SkillActor
    critic: SkillCritic
    critic_target: SkillCritic

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Box,
        lr_schedule: Schedule,
        n_skills: int,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] = FlattenExtractor,
        features_extractor_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        n_critics: int = 2,
        share_features_extractor: bool = False,
    ) -> None:
        if optimizer_kwargs is None and optimizer_class in (th.optim.Adam, th.optim.AdamW):
            optimizer_kwargs = {"fused": True}
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
        self.n_skills = n_skills
        self.plain_space = plain_space(observation_space, n_skills)
        self.net_arch = {"pi": [1024, 1024], "qf": [512, 1024]} if net_arch is None else net_arch
        self.actor_arch, self.critic_arch = get_actor_critic_arch(self.net_arch)
        self.activation_fn = activation_fn
        self.n_critics = n_critics
        self.share_features_extractor = share_features_extractor
        self.skill: int | None = None
        self._build(lr_schedule)

    def _build(self, lr_schedule: Schedule) -> None:
        self.actor = self.make_actor()
        self.critic = self.make_critic(self.actor.features_extractor if self.share_features_extractor else None)
        self.critic_target = self.make_critic(self.actor.features_extractor if self.share_features_extractor else None)
        self.critic_target.load_state_dict(self.critic.state_dict())
        self.critic_target.requires_grad_(False)
        if self.share_features_extractor:
            self.actor.requires_grad_(True)

        self.actor.optimizer = self.make_optimizer(list(self.actor.parameters()), lr_schedule)
        self.critic.optimizer = self.make_optimizer(self.critic.own_parameters(), lr_schedule)
        self.critic_target.set_training_mode(False)

    def make_optimizer(self, parameters: list[nn.Parameter], lr_schedule: Schedule) -> th.optim.Optimizer:
        return self.optimizer_class(parameters, lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def make_plain_features_extractor(self) -> BaseFeaturesExtractor:
        return self.features_extractor_class(self.plain_space, **self.features_extractor_kwargs)

    def make_actor(self) -> SkillActor:
        features_extractor = self.make_plain_features_extractor()
        return SkillActor(
            self.observation_space,  # type: ignore[arg-type]
            self.action_space,  # type: ignore[arg-type]
            self.n_skills,
            self.actor_arch,
            features_extractor,
            features_extractor.features_dim,
            self.activation_fn,
            self.normalize_images,
        ).to(self.device)

    @abstractmethod
    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> SkillCritic:
        """
        :param features_extractor: the shared extractor, ``None`` for one of its own
        :return: a critic
        """

    def _get_constructor_parameters(self) -> dict[str, Any]:
        data = super()._get_constructor_parameters()
        data.update(
            dict(
                lr_schedule=self._dummy_schedule,  # not needed for loading the policy alone
                n_skills=self.n_skills,
                net_arch=self.net_arch,
                activation_fn=self.activation_fn,
                features_extractor_class=self.features_extractor_class,
                features_extractor_kwargs=self.features_extractor_kwargs,
                optimizer_class=self.optimizer_class,
                optimizer_kwargs=self.optimizer_kwargs,
                n_critics=self.n_critics,
                share_features_extractor=self.share_features_extractor,
            )
        )
        # Fixed by the class
        for name in ("squash_output", "features_extractor"):
            data.pop(name, None)
        return data

    def forward(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        return self._predict(observation, deterministic=deterministic)

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        return self.actor(observation)

    def set_training_mode(self, mode: bool) -> None:
        """
        Put the policy in either training or evaluation mode; the target critic stays in evaluation mode.

        :param mode: if true, set to training mode, else set to evaluation mode
        """
        for network in (self.actor, self.critic):
            # predict() asks for this in every step, and a walk through all modules takes as long as acting
            if network.training != mode:
                network.set_training_mode(mode)
        self.training = mode

    def set_skill(self, skill: int | None) -> None:
        """
        :param skill: skill of every prediction on plain observations, or ``None`` to go through all of them
        :raises ValueError: if there is no such skill
        """
        self.skill = None if skill is None else check_skill(skill, self.n_skills)

    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        skill: int | np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """
        :param observation: plain or skill-augmented, shape ``(obs_dim,)``, ``(n_envs, obs_dim)``, ``(obs_dim + n_skills,)`` or
            ``(n_envs, obs_dim + n_skills)``
        :param state: skills of the running episodes, as returned by the call before
        :param episode_start: environments in which an episode starts get the next skill, shape ``(n_envs,)``
        :param deterministic: not used, the policy is deterministic
        :param skill: skill to follow, one for all or one each, shape ``(n_envs,)``; overrides that of an augmented observation
        :return: actions and the state to pass to the next call
        :raises ValueError: if the skill or the size of the observation is unknown
        """
        if isinstance(observation, (tuple, dict)):
            return super().predict(observation, state, episode_start, deterministic)
        observation = np.asarray(observation)
        obs_dim = self.plain_space.shape[0]
        size = observation.shape[-1] if observation.ndim > 0 else 0
        if size not in (obs_dim, obs_dim + self.n_skills):
            raise ValueError(
                f"Observation of shape {observation.shape}: this model takes {obs_dim} numbers an observation, or "
                f"{obs_dim + self.n_skills} with a one-hot of its {self.n_skills} skills; "
                "pass those of the environment it was trained on."
            )
        if skill is not None:
            skill = np.asarray(skill)
            if skill.shape not in ((), observation.shape[:-1]):
                raise ValueError(
                    f"skill of shape {skill.shape} for observations of shape {observation.shape}: "
                    "pass one skill, or one for each observation."
                )
            for value in np.unique(skill):
                check_skill(value, self.n_skills)
            observation = append_skill(observation[..., :obs_dim], skill, self.n_skills)
        elif size == obs_dim:
            skills, state = self._skills_of_episodes(observation[..., 0].size, state, episode_start)
            observation = append_skill(observation, skills if observation.ndim > 1 else skills[0], self.n_skills)
        return super().predict(observation, state, episode_start, deterministic)

    def _skills_of_episodes(
        self, n_envs: int, state: tuple[np.ndarray, ...] | None, episode_start: np.ndarray | None
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """
        :param n_envs: number of environments
        :param state: skills of the episodes, and how many were given out so far
        :param episode_start: where an episode starts, shape ``(n_envs,)``
        :return: skills, shape ``(n_envs,)``, and the new state
        """
        if self.skill is not None:
            return np.full(n_envs, self.skill), state or ()
        if not state:
            skills, n_given = np.arange(n_envs), n_envs
        else:
            skills, n_given = state[0].copy(), int(state[1])
            starts = np.zeros(n_envs, dtype=bool) if episode_start is None else np.asarray(episode_start, dtype=bool)
            n_new = int(starts.sum())
            skills[starts] = n_given + np.arange(n_new)
            n_given += n_new
        skills = skills % self.n_skills
        return skills, (skills, np.array(n_given))
