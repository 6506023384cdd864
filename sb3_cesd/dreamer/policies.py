from typing import Annotated, Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule

from sb3_cesd.cesd.policies import CeSDPolicy, EnsembleCritic
from sb3_cesd.common.arguments import Positive, PositiveInt, Range, Share, build, checked
from sb3_cesd.common.observations import OBSERVATION, SKILL, Observation, skill_observation_space
from sb3_cesd.common.skills import SkillName
from sb3_cesd.dreamer.world_model import WorldModel

#: A value of states is one of actions without entries
NO_ACTION = spaces.Box(-1.0, 1.0, (0,), np.float32)


class DreamerPolicy(CeSDPolicy):
    """
    Policy class of Dreamers: a world model, with an actor and a critic V(s, z) that see the features of its latent states.

    The latent states of running episodes are part of the ``state`` that ``predict`` takes and returns.
    ``net_arch`` is that of actor and critic. For the other arguments see :class:`~sb3_cesd.cesd.policies.CeSDPolicy`.

    :param world_model_kwargs: arguments of :class:`~sb3_cesd.dreamer.world_model.WorldModel`
    :param horizon: number of imagined steps, at least 2
    :param n_starts: number of latent states of a batch, drawn at random, from which they are imagined; ``None`` for all
    :param trace_decay: lambda of the returns
    :param max_grad_norm: norm to which gradients of each network are clipped
    """

    # Of one call of predict: latent states and actions before it, and where episodes begin
    _memory: tuple[np.ndarray, ...] | None = None
    _begins: np.ndarray | None = None

    @checked
    def __init__(
        self,
        *args: Any,
        world_model_kwargs: Annotated[dict[str, Any] | None, WorldModel] = None,
        horizon: Annotated[int, Range(2)] = 15,
        n_starts: PositiveInt | None = 128,
        trace_decay: Share = 0.95,
        max_grad_norm: Positive = 100.0,
        n_critics: PositiveInt = 1,
        **kwargs: Any,
    ) -> None:
        self.world_model_kwargs = world_model_kwargs
        self.horizon, self.n_starts, self.trace_decay, self.max_grad_norm = horizon, n_starts, trace_decay, max_grad_norm
        super().__init__(*args, n_critics=n_critics, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        sizes = {"observation_space": self.plain_space, "action_dim": get_action_dim(self.action_space)}
        self.world_model = build("world_model_kwargs", WorldModel, self.world_model_kwargs, **sizes)
        self.world_model.optimizer = self.make_optimizer(list(self.world_model.parameters()), lr_schedule)
        super()._build(lr_schedule)

    @property
    def _latent_space(self) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (self.world_model.features_dim,), np.float32)

    @property
    def _spaces(self) -> tuple[Any, Any, Any]:
        return skill_observation_space(self._latent_space, self.skill_space), self.action_space, self.skill_space

    def make_plain_features_extractor(self) -> FlattenExtractor:
        return FlattenExtractor(self._latent_space)

    def make_critic(self) -> EnsembleCritic:
        observation_space, _, skill_space = self._spaces
        extractor = self.make_plain_features_extractor()
        return EnsembleCritic(observation_space, NO_ACTION, skill_space, self.critic_arch, extractor, **self._critic_kwargs())

    def predict(
        self,
        observation: Observation,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        skill: SkillName | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """
        Get the action of a skill; for the arguments see :meth:`sb3_cesd.skill_ddpg.policies.SkillPolicy.predict`.

        :return: actions and the state to pass to the next call: latent states (two arrays), actions scaled to [-1, 1], and
            what :class:`~sb3_cesd.skill_ddpg.policies.SkillPolicy` keeps
        """
        self._memory = state[:3] if state else None
        self._begins = None if episode_start is None else np.atleast_1d(episode_start).astype(bool)
        actions, of_skills = super().predict(observation, (state or ())[3:] or None, episode_start, deterministic, skill)
        memory, self._memory = self._memory, None
        return actions, (*(memory or ()), *(of_skills or ()))

    @th.no_grad()
    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        assert isinstance(observation, dict)
        n, device = len(observation[SKILL]), self.device
        before = self.world_model.zeros(n)
        if self._memory is not None:
            before = tuple(th.as_tensor(each, device=device) for each in self._memory)  # type: ignore[assignment]
        is_first = th.zeros(n, dtype=th.bool) if self._begins is None else th.from_numpy(self._begins)
        latents = self.world_model.step(before, observation[OBSERVATION], is_first.to(device), deterministic)
        features = {OBSERVATION: latents.features, SKILL: observation[SKILL]}
        actions = self.actor._predict(features, deterministic)
        self._memory = tuple(each.cpu().numpy() for each in (*latents, actions))
        return actions
