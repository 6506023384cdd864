"""How a model acts: which skill is followed, in training and in predictions."""

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.noise import ActionNoise, OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.preprocessing import get_action_dim, get_flattened_obs_dim, maybe_transpose
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_wrapper

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.choices import Reward, SkillType, WarmUp
from sb3_cesd.common.logging import SkillRewards, listed
from sb3_cesd.common.observations import (
    SKILL,
    Observation,
    add_skill,
    entries_of,
    plain_form,
    plain_space,
    to_states,
)
from sb3_cesd.common.rng import seed_to_go_on
from sb3_cesd.common.skill_clock import RAISE_WARM_UP, SkillClock, SkillTurns
from sb3_cesd.common.skills import SkillName, SkillSpace, best_of, make_skill_space
from sb3_cesd.common.vec_env import VecSkillObservation, add_skill_observation
from sb3_cesd.common.vec_normalize import unnormalize_entries
from sb3_cesd.intrinsic.extrinsic import ExtrinsicReward
from sb3_cesd.skill_ddpg import checks, normalization, saved_files
from sb3_cesd.skill_ddpg.policies import SkillPolicy
from sb3_cesd.skill_ddpg.saving import SavedSkillModel
from sb3_cesd.skill_ddpg.skill_states import expected_rewards


class ActingSkillModel(SavedSkillModel):
    """Part of :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG` that acts: actions, transitions and the skill to follow."""

    policy: SkillPolicy
    n_skills: int
    skill_type: SkillType
    skill_dim: int | None
    skill_duration: int | None
    exploration_noise: float
    ent_coef: float | str | None
    reward: Reward
    warm_up: WarmUp
    #: The only skill to follow, ``None`` for all of them
    skill: int | list[float] | None
    #: Warm-up in which all skills act
    skill_turns: SkillTurns | None
    #: Number of episodes that ended because the simulation of a robot diverged
    n_diverged_simulations: int

    #: Exploration noise of standard deviation 1
    _unit_noise: OrnsteinUhlenbeckActionNoise
    #: Whether all skills act in turn
    _warming_up: bool
    _skill_rewards: SkillRewards
    #: Whether the environments have taken a step that is not stored yet, so that ``_last_obs`` lags behind
    _is_stepping: bool = False
    #: Moves of the clock until ``_last_obs``; ``None`` for other environments than those it comes from
    _seen_until: int | None = None
    #: Whether environments are to be reset before the next step, and the seed of random numbers from there on
    _ends_episodes: bool = False
    _next_seed: int | None = None
    #: Whether this is within ``learn``
    _is_learning: bool = False
    #: During ``learn``: whether it has begun
    _has_acted: bool = False

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
        """Number of entries of an observation without the skill."""
        return get_flattened_obs_dim(self.plain_space)

    @property
    def action_dim(self) -> int:
        """Number of entries of an action."""
        return get_action_dim(self.action_space)

    @property
    def _skill_wrapper(self) -> VecSkillObservation:
        """Wrapper that adds skills to the environments of training; other models may use it, too."""
        assert self.env is not None
        wrapper = unwrap_vec_wrapper(self.env, VecSkillObservation)
        assert wrapper is not None
        return wrapper

    @property
    def _clock(self) -> SkillClock:
        """Clock of the skills in the environments of training."""
        return self._skill_wrapper.clock

    def _add_skills(self, env: VecEnv) -> VecEnv:
        return add_skill_observation(env, self.skill_space, self.skill_duration, self.skill)

    def _check_wrapper(self, env: VecEnv) -> None:
        # A task has a single skill, whatever the wrapper is set to
        if self.reward == "intrinsic":
            checks.check_wrapper(env, self.skill, self.skill_duration)

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        check_arguments("set_env", locals())
        checks.check_env_spaces(env.observation_space, env.action_space)
        with saved_files.explain_other_spaces():
            given = self._wrap_env(env, self.verbose)
            normalization.check_order_of_wrappers(given)
            with_skills = self._add_skills(given)
            self._check_wrapper(with_skills)
            super().set_env(with_skills, force_reset)
        if with_skills is not given and self.seed is not None:
            # Not the environments, nor a clock that came with them: these have seeds of their own
            self._clock.seed(seed_to_go_on(self.seed, self.num_timesteps))
        # The environments may have come with a clock of their own
        self._follow(self.skill)
        self._seen_until = None

    def _observe(self, observations: dict[str, np.ndarray]) -> None:
        """
        Note what the environments have returned last.

        :param observations: with skills
        """
        self._last_obs, self._seen_until = observations, self._clock.n_moves

    def _sample_action(
        self,
        learning_starts: int,
        action_noise: ActionNoise | None = None,
        n_envs: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """
        Choose the actions of the skills in the last observations, with exploration noise unless the policy is stochastic.

        :param learning_starts: number of steps with uniform random actions, if ``warm_up`` asks for them
        :param action_noise: exploration noise in place of ``exploration_noise``
        :param n_envs: number of environments
        :return: actions, and the same scaled to [-1, 1] for the replay buffer, shape ``(n_envs, *action_shape)``
        """
        if self._ends_episodes:
            self._restart()
        self._is_stepping = self._has_acted = True
        at_random = self.warm_up == "random" and self.num_timesteps < learning_starts
        if at_random:
            action = np.array([self.action_space.sample() for _ in range(n_envs)])
        else:
            action, _ = self.policy.predict(self._last_obs)  # type: ignore[arg-type]
        buffer_action = self.policy.scale_action(action)
        checks.check_finite_action(buffer_action, self.num_timesteps)
        if action_noise is not None:
            buffer_action = np.clip(buffer_action + np.reshape(action_noise(), buffer_action.shape), -1, 1)
        elif not at_random and self.ent_coef is None:
            noise = self.exploration_noise * self._unit_noise().reshape(buffer_action.shape)
            buffer_action = np.clip(buffer_action + noise, -1, 1)
        # Scaled actions are floats even if the bounds are integers
        buffer_action = np.asarray(buffer_action, action.dtype if action.dtype.kind == "f" else np.float32)
        return self.policy.unscale_action(buffer_action), buffer_action

    def _store_transition(
        self,
        replay_buffer: SkillReplayBuffer,  # type: ignore[override]
        buffer_action: np.ndarray,
        new_obs: dict[str, np.ndarray],  # type: ignore[override]
        reward: np.ndarray,
        dones: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """
        Store the unnormalised transition, with the skill that was followed in it.

        :param replay_buffer: Replay buffer object where to store the transition.
        :param buffer_action: normalized action
        :param new_obs: next observation, with the skill to follow from there (of the next episode where ``dones`` is True)
        :param reward: reward for the current transition
        :param dones: end of the episode
        :param infos: additional information, with the terminal observations and timeouts
        :raises ValueError: if an observation or reward is not finite
        """
        assert isinstance(self._last_obs, dict) and self.env is not None
        vectors = self._last_obs[SKILL]
        obs, next_obs = entries_of(self._last_obs), entries_of(new_obs)
        if self._vec_normalize_env is not None:
            obs = entries_of(self._last_original_obs)  # type: ignore[arg-type]
            self._last_original_obs = self._vec_normalize_env.get_original_obs()
            next_obs = entries_of(self._last_original_obs)
            reward = self._vec_normalize_env.get_original_reward()
            if all(np.isfinite(values).all() for values in (*next_obs.values(), reward)):
                normalization.check_finite_statistics(self._vec_normalize_env, self.num_timesteps)
        terminal_obs = {name: value.copy() for name, value in next_obs.items()}
        for idx in np.nonzero(dones)[0]:
            self.n_diverged_simulations += "physics_warnings" in infos[idx]
            if infos[idx].get("terminal_observation") is not None:
                for name, value in self._unnormalized(infos[idx]["terminal_observation"]).items():
                    is_rounded = value.dtype.kind == "f" and terminal_obs[name].dtype.kind in "iu"
                    terminal_obs[name][idx] = np.rint(value) if is_rounded else value
        checks.check_finite(self.env, "observation", terminal_obs, self.num_timesteps)
        checks.check_finite(self.env, "reset observation", next_obs, self.num_timesteps)
        checks.check_finite(self.env, "reward", reward, self.num_timesteps)

        self._unit_noise.noise_prev[dones] = 0
        if self.skill_space.discrete:
            self._skill_rewards.add(self.skill_space.decode(vectors), reward)
        replay_buffer.add(add_skill(obs, vectors), add_skill(terminal_obs, vectors), buffer_action, reward, dones, infos)
        # A callback may have chosen another skill meanwhile
        self._observe(add_skill(new_obs, self._clock.vectors))
        self._is_stepping = False
        if self._warming_up and self.skill_turns is not None and self.skill_turns.over:
            self._end_skill_turns(self.skill_turns)

    def _unnormalized(self, observation: Observation) -> dict[str, np.ndarray]:
        """
        Undo what ``VecNormalize`` did to an observation.

        :param observation: observation of one environment, with a skill
        :return: its entries without the skill
        """
        entries = entries_of(observation)
        return entries if self._vec_normalize_env is None else unnormalize_entries(self._vec_normalize_env, entries)

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

        See :meth:`~sb3_cesd.skill_ddpg.policies.SkillPolicy.predict`, which explains ``state``.

        :param observation: one or several observations, with or without a skill
        :param state: the state returned by the previous call
        :param episode_start: where an episode starts, shape ``(n_envs,)``
        :param deterministic: take the mean action of a stochastic policy; no effect on a deterministic one
        :param skill: skill to follow, one for all observations or one each: an index, or the vector of a continuous skill
        :return: action(s) and the state to pass to the next call
        :raises ValueError: if an observation is not finite or of another shape than the model takes, or there is no such skill
        """
        checks.check_observation(observation)
        is_given = skill is not None
        if not is_given and self.reward == "extrinsic":
            # Even if the observation contains another one
            skill = self.skill
        actions, state = self.policy.predict(observation, state, episode_start, deterministic, skill)
        if is_given and self.reward == "extrinsic" and self.num_timesteps > 0 and self.skill is not None:
            shape = self.policy.batch_shape(observation)
            checks.warn_of_untrained_skill(self.skill_space, skill, self.skill, shape)  # type: ignore[arg-type]
        return actions, state

    def set_skill(self, skill: SkillName | None) -> None:
        """
        Follow one skill, in predictions and in the training environment. During ``learn``, it acts from the next step on.

        :param skill: index or vector of the skill, or ``None`` to follow all of them again
        :raises ValueError: if there is no such skill, or another one learns the task
        """
        skill = None if skill is None else self.skill_space.name_of(skill)
        if self.reward == "extrinsic":
            checks.check_task_skill(skill, self.skill)
        self._follow(skill)
        if not self._is_learning:
            self.end_episodes()  # the last observations contain the old skill
        elif skill is not None and self.reward == "intrinsic":
            self._switch_to(skill)

    def end_episodes(self, seed: int | None = None) -> None:
        """
        Reset the environments before the next step of training, as something else has played in them, or for a checkpoint.

        With the same seed, what follows is the same in a model that was saved and loaded here as in one that goes on.

        :param seed: seed of all random numbers from there on; ``None`` leaves them as they are
        """
        self._ends_episodes, self._next_seed = True, seed

    def _restart(self) -> None:
        """Begin new episodes: of environments, noise and n-step windows."""
        assert self.env is not None and self.replay_buffer is not None
        if self._next_seed is not None:
            self.set_random_seed(self._next_seed)
        self._ends_episodes, self._next_seed = False, None
        self.replay_buffer.end_trajectories()
        self._observe(self.env.reset())  # type: ignore[arg-type]
        if self._vec_normalize_env is not None:
            self._last_original_obs = self._vec_normalize_env.get_original_obs()  # type: ignore[assignment]
        self._unit_noise.reset()
        if self.action_noise is not None:
            self.action_noise.reset()

    def _follow(self, skill: SkillName | None) -> None:
        """
        Set the skill to follow in the policy (for observations without one), in the clock of the environments and in the
        reward of a task.

        :param skill: index or vector of the skill; ``None`` for all of them, or for the best one once it is known
        """
        turns = self.skill_turns
        if turns is not None and turns.over:
            # The model was saved in the step that ended the turns, before a skill was chosen
            skill = turns.next_skill() if skill is None and self.reward == "extrinsic" else skill
            turns = None
        self.skill = None if skill is None else self.skill_space.name_of(skill)
        self.policy.set_skill(self.skill)
        self._warming_up = turns is not None
        if turns is not None:
            turns.then = self.skill
        if self.env is not None:
            # Only steps of learn count as those of the warm-up, not those of an evaluation
            now = turns if self._is_learning else None
            self._clock.take_turns(now)
            if now is None:
                self._clock.set_skill(self.skill)
        if isinstance(self.intrinsic, ExtrinsicReward) and self.skill is not None:
            self.intrinsic.follow(self.skill, self.device)

    def _end_skill_turns(self, turns: SkillTurns) -> None:
        """
        End the warm-up, and continue with the skill that learns the task.

        :param turns: the warm-up in which all skills acted
        """
        how = "as chosen in advance"
        if turns.then is None:
            how = self._choose_skill(turns)
        # Only needed to choose the skill
        self.skill_states = self.skill_states[:0]
        self._follow(turns.next_skill())
        self._switch_to(turns.next_skill())
        if self.verbose >= 1:
            print(f"Mean reward per step of each skill: {turns}. Fine-tuning skill {turns.next_skill()}, {how}")

    def _switch_to(self, skill: SkillName) -> None:
        """
        Let a skill act in the next step, although the last observations contain another one.

        :param skill: its index or vector
        """
        assert isinstance(self._last_obs, dict)
        self._clock.switch_to(skill)
        # Until a step is stored, they must contain the skill that acted in it
        if not self._is_stepping:
            self._last_obs = add_skill(self._last_obs, self._clock.vectors)

    def _choose_skill(self, turns: SkillTurns) -> str:
        """
        Choose the skill that learns the task.

        :param turns: the warm-up in which all skills acted; the choice is stored in it
        :return: how the skill was chosen, for the log
        """
        if len(self.skill_states) == 0 or not self._holds_warm_up(turns):
            turns.then, turns.chosen_by = turns.best(), "rewards"
            return "the best in the warm-up"
        assert self.replay_buffer is not None
        expected = expected_rewards(self.replay_buffer, self.skill_states.cpu().numpy())
        turns.then, turns.chosen_by = best_of(expected, "reward expected", RAISE_WARM_UP), "states"
        return f"the best by the reward expected of each in the states it visits: {listed(expected)}"

    def _holds_warm_up(self, turns: SkillTurns) -> bool:
        """
        Check whether the replay buffer holds the warm-up, as far as it has room, and not only what came after the model was
        loaded without it.

        :param turns: the warm-up
        """
        buffer = self.replay_buffer
        assert buffer is not None
        return buffer.size() * buffer.n_envs >= min(turns.n_done, buffer.buffer_size * buffer.n_envs)

    @property
    def cluster_window(self) -> int:
        """Number of steps over which observations are averaged before they are clustered; 1 for none."""
        return self.intrinsic.average_window

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
        :param goals: observation to reach from each, in the same form. A single goal serves all observations, and a single
            observation all goals
        :return: skills for :meth:`predict`: indices, shape ``(n,)``, or vectors of continuous skills, shape
            ``(n, skill_dim)``; for a single observation and a single goal one skill, an integer or a vector of shape
            ``(skill_dim,)``. If there is no direction from one to the other, skill 0 (for skills in a cube, the zero vector).
            ``None`` for a method whose skills have no direction
        :raises ValueError: if an observation or a goal is not finite, or of another shape than the model takes, or their
            numbers differ
        """
        states, batch_shape = self._to_states(observations, "observations")
        goal_states, goals_shape = self._to_states(goals, "goals")
        n_states, n_goals = len(states), len(goal_states)
        if n_states != n_goals and 1 not in (n_states, n_goals):
            raise ValueError(
                f"There are {n_states} observations and {n_goals} goals: pass as many of each, one observation or one goal."
            )
        n = n_goals if n_states == 1 else n_states
        with th.no_grad():
            skills = self.intrinsic.goal_skill(states.expand(n, -1), goal_states.expand(n, -1))
        if skills is None:
            return None
        return skills.cpu().numpy() if batch_shape or goals_shape else skills.cpu().numpy()[0]

    def _to_states(self, observations: Observation, what: str) -> tuple[th.Tensor, tuple[int, ...]]:
        """
        Convert observations to the state vectors that intrinsic rewards take.

        :param observations: one or several observations; or state vectors
        :param what: name of the argument, for messages
        :return: states, shape ``(n, obs_dim)``, and ``(n,)``, or ``()`` for a single observation
        :raises ValueError: if they are not finite, or of another shape than the model takes
        """
        checks.check_observation(observations, what)
        space = self.plain_space
        shape = () if isinstance(observations, dict) else np.shape(observations)
        if shape != space.shape and len(shape) == 2 and shape[1] == self.obs_dim:
            # Rollouts store images and dictionaries as vectors
            states = th.as_tensor(np.array(observations, np.float32), device=self.device)
            return to_states(states, space), states.shape[:1]  # type: ignore[return-value]
        batch_shape = self.policy.batch_shape(observations, what)
        tensors = {}
        for name, value in entries_of(observations).items():
            entry_space = space[name] if isinstance(space, spaces.Dict) else space
            values = maybe_transpose(np.array(value, np.float32), entry_space)
            tensors[name] = th.as_tensor(values if batch_shape else values[None], device=self.device)
        return to_states(plain_form(tensors), space), batch_shape  # type: ignore[arg-type]
