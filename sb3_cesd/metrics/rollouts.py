"""Record rollouts of the skills of a model."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.checks import first_not_finite
from sb3_cesd.common.env_specs import env_name
from sb3_cesd.common.observations import Observation, plain_space, to_states
from sb3_cesd.common.playing import SkillModel, check_play_spaces, gaussian_noise, play
from sb3_cesd.common.vec_normalize import check_statistics_fit, frozen_statistics, transpose_like_training
from sb3_cesd.metrics.places import check_places_to_play, end_positions, env_positions


class Recording(NamedTuple):
    """
    One episode in each environment.

    :param observations: flattened observations of the model, shape ``(n_envs, n_steps + 1, obs_dim)``; after the end of an
        episode the last one is repeated
    :param places: what ``position_fn`` returned, repeated likewise, shape ``(n_envs, n_steps + 1, d)``
    :param returns: sums of the rewards of the environment, shape ``(n_envs,)``
    :param lengths: number of steps until the end of the episode or the recording, shape ``(n_envs,)``
    :param frames: images in each environment, each of shape ``(height, width, 3)``
    """

    observations: np.ndarray
    places: np.ndarray | None
    returns: np.ndarray
    lengths: np.ndarray
    frames: list[list[np.ndarray]]


class SkillRollouts(NamedTuple):
    """
    Rollouts of all skills of a model, each from the start.

    :param states: shape ``(n_skills, n_rollouts, n_steps + 1, d)``; after the end of an episode the last one is repeated
    :param skills: index of the skill of each rollout, shape ``(n_skills, n_rollouts)``
    :param returns: sums of the rewards of the environment, shape ``(n_skills, n_rollouts)``
    :param lengths: number of steps until the end of the episode or the recording, shape ``(n_skills, n_rollouts)``
    :param observations: observations of the model, shape ``(n_skills, n_rollouts, n_steps + 1, obs_dim)``
    :param positions: positions in the world [m], shape ``(n_skills, n_rollouts, n_steps + 1, 3)``; ``None`` if not recorded
    """

    states: np.ndarray
    skills: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    observations: np.ndarray | None = None
    positions: np.ndarray | None = None

    def per_state(self) -> tuple[np.ndarray, np.ndarray]:
        """
        List the states without those that are repeated after the end of an episode.

        :return: states, shape ``(n, d)``, and the skill that visited each, shape ``(n,)``
        """
        visited = np.arange(self.states.shape[2]) <= self.lengths[..., None]  # (n_skills, n_rollouts, n_steps + 1)
        return self.states[visited], np.broadcast_to(self.skills[..., None], visited.shape)[visited]

    def as_seen(self) -> "SkillRollouts":
        """
        Replace the states by the observations.

        :raises ValueError: if there are none
        """
        if self.observations is None:
            raise ValueError("The rollouts lack observations: record them by collect_rollouts or play_places.")
        return self._replace(states=self.observations)

    def thinned(self, n_states: int) -> "SkillRollouts":
        """
        Keep every m-th state, with the smallest m that leaves at most ``n_states`` per rollout.

        :param n_states: largest number of states per rollout
        :return: the start of each rollout and every m-th state after it, with ``lengths`` in such steps
        """
        every = -(-(int(self.lengths.max()) + 1) // n_states)
        kept = slice(0, int(self.lengths.max()) + 1, every)
        observations, positions = (
            None if array is None else array[:, :, kept] for array in (self.observations, self.positions)
        )
        return self._replace(
            states=self.states[:, :, kept],
            lengths=self.lengths // every,
            observations=observations,
            positions=positions,
        )

    def per_rollout(self) -> tuple[np.ndarray, np.ndarray]:
        """
        Flatten each rollout to a row.

        :return: rows, shape ``(n_skills * n_rollouts, (n_steps + 1) * d)``, and the skill of each, shape
            ``(n_skills * n_rollouts,)``
        """
        return self.states.reshape(self.skills.size, -1), self.skills.ravel()


def collect_rollouts(
    model: SkillModel,
    env: VecEnv,
    n_rollouts: int = 20,
    n_steps: int = 50,
    noise_std: float = 0.0,
    deterministic: bool = True,
    seed: int | None = None,
    reset_options: dict[str, Any] | None = None,
    position_fn: Callable[[VecEnv], np.ndarray] | None = None,
) -> SkillRollouts:
    """
    Play all skills, as many rollouts at a time as there are environments.

    :param model: the model; for continuous skills, those that have an index are played
    :param env: environments without skill observations, normalised as the model expects; channels of images may come last, as
        in training, and come first in the rollouts
    :param n_rollouts: number of rollouts per skill
    :param n_steps: length of a rollout; shorter if the episode ends
    :param noise_std: standard deviation of Gaussian noise on the actions, as a share of half their range, for stochastic
        rollouts of a deterministic policy
    :param deterministic: take the mean action of a stochastic policy
    :param seed: seed of the first reset and the noise
    :param reset_options: options of every reset, e.g. ``{"position": (0.0, 0.0)}`` to start at one point of a maze
    :param position_fn: function that returns the states to record, shape ``(n_envs, d)``, e.g.
        :func:`~sb3_cesd.metrics.places.env_positions`; ``None`` to record the observations. At the end of an episode the
        environments are already reset: ``env_positions`` takes ``info["position"]`` instead, if there is one. Otherwise the
        previous position is repeated
    :return: the rollouts
    :raises ValueError: if the environments have other spaces than those of the model or are not normalised as it expects, or
        it learns in them at the moment
    """
    check_arguments("collect_rollouts", locals())
    prepare_to_play(model, env)
    env = as_model_observes(env, model)
    add_noise = gaussian_noise(env.action_space, noise_std, np.random.default_rng(seed))
    if seed is not None:
        env.seed(int(seed))
    skills = np.repeat(np.arange(model.n_skills), n_rollouts)
    batches = []
    for batch in np.split(skills, range(env.num_envs, len(skills), env.num_envs)):
        env.set_options(reset_options)
        # Surplus environments in the last batch are played, but not recorded
        played = np.pad(batch, (0, env.num_envs - len(batch)), mode="edge")
        recording = record(model, env, played, n_steps, deterministic, add_noise, position_fn)
        states = recording.observations if recording.places is None else recording.places
        arrays = states, recording.observations, recording.returns, recording.lengths
        batches.append([array[: len(batch)] for array in arrays])
    shape = (model.n_skills, n_rollouts)
    values = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    states, observations, returns, lengths = (array.reshape(*shape, *array.shape[1:]) for array in values)
    return SkillRollouts(states, skills.reshape(shape), returns, lengths, observations)


def prepare_to_play(model: SkillModel, env: VecEnv) -> None:
    """
    Check that environments have the spaces of a model and are normalised as it expects. In those of its training, ``learn``
    then starts new episodes.

    :param model: the model
    :param env: the environments
    :raises ValueError: if they have other spaces, are not normalised like this, or the model learns in them at the moment
    """
    if hasattr(model, "plain_space"):
        observed = as_model_observes(env, model)
        check_play_spaces(observed.observation_space, env.action_space, model, "env")
    remedy = "pass environments with the statistics of the training, VecNormalize.load(path, env)."
    check_statistics_fit(model, unwrap_vec_normalize(env), remedy)
    training_env = getattr(model, "env", None)
    if training_env is not None and training_env.unwrapped is env.unwrapped:
        model.end_episodes()  # type: ignore[attr-defined]


def as_model_observes(env: VecEnv, model: SkillModel) -> VecEnv:
    """
    Put the channels of images first, if the model was trained on such images.

    :param env: environments without skill observations
    :param model: the model, whose ``plain_space`` is the space of its observations; one without it takes any
    :return: the environments, transposed if necessary
    """
    return transpose_like_training(env, getattr(model, "plain_space", env.observation_space))


def record(
    model: SkillModel,
    env: VecEnv,
    skill: int | np.ndarray,
    n_steps: int,
    deterministic: bool = True,
    perturb: Callable[[np.ndarray], np.ndarray] | None = None,
    position_fn: Callable[[VecEnv], np.ndarray] | None = None,
    frame_steps: Collection[int] = (),
) -> Recording:
    """
    Record one episode in each environment.

    :param model: the model
    :param env: environments without skill observations, normalised as the model expects
    :param skill: index of the skill that acts, or one per environment, shape ``(n_envs,)``
    :param n_steps: length of the recording; shorter if the episode ends
    :param deterministic: take the mean action of a stochastic policy
    :param perturb: function that changes actions before they are executed
    :param position_fn: see :func:`collect_rollouts`
    :param frame_steps: steps after which to render each environment, 0 for the start
    :return: the recording
    """
    seen: list[np.ndarray] = []
    places: list[np.ndarray] = []
    frames: list[list[np.ndarray]] = [[] for _ in range(env.num_envs)]
    returns, lengths = np.zeros(env.num_envs), np.zeros(env.num_envs, dtype=np.int64)
    over = np.zeros(env.num_envs, dtype=bool)
    with frozen_statistics(env):
        for step, moment in enumerate(islice(play(model, env, skill, deterministic, perturb), n_steps + 1)):
            rows = _as_rows(moment.observations, env.observation_space)
            seen.append(np.where(over[:, None], seen[-1], rows) if step > 0 else rows)
            # At the end of an episode, position and image already belong to the next one
            left = over | moment.dones
            if position_fn is not None:
                place = _places_of(position_fn, env)
                place = np.where(left[:, None], places[-1], place) if step > 0 else place
                if position_fn is env_positions:
                    ended, ends = end_positions(moment.dones & ~over, moment.infos, place.shape[1])
                    place[ended] = ends
                places.append(place)
                _check_finite_places(place, env, step)
            if step in frame_steps and not left.all():
                images = env.get_images()
                for idx in np.flatnonzero(~left).tolist():
                    frames[idx].append(np.asarray(images[idx]))
            returns += np.where(over, 0.0, moment.rewards)
            lengths += ~over & (step > 0)
            over = left
            if over.all():
                break
    paths = _repeat_last(places, n_steps + 1) if places else None
    return Recording(_repeat_last(seen, n_steps + 1), paths, returns, lengths, frames)


def _repeat_last(states: list[np.ndarray], n_states: int) -> np.ndarray:
    """Stack states of shape ``(n_envs, d)``, the last one repeatedly, to shape ``(n_envs, n_states, d)``."""
    return np.stack(states + states[-1:] * (n_states - len(states)), axis=1)


def _places_of(position_fn: Callable[[VecEnv], np.ndarray], env: VecEnv) -> np.ndarray:
    """
    Call ``position_fn``, and check its result.

    :param position_fn: see :func:`collect_rollouts`
    :param env: environments
    :return: a copy of the result, shape ``(n_envs, d)``
    :raises ValueError: if the result has another shape, or no numbers
    """
    remedy = f"pass a function of a VecEnv that returns an array of shape ({env.num_envs}, d), e.g. metrics.env_positions."
    try:
        places = np.array(position_fn(env))
    except TypeError as error:
        raise ValueError(f"position_fn={position_fn!r} failed with {error}: {remedy}") from error
    if places.ndim != 2 or len(places) != env.num_envs or places.dtype.kind not in "buif":
        raise ValueError(f"position_fn={position_fn!r} returned an array of {places.dtype} of shape {places.shape}: {remedy}")
    return places


def _check_finite_places(places: np.ndarray, env: VecEnv, step: int) -> None:
    """
    Check that positions are finite.

    :param places: shape ``(n_envs, d)``
    :param env: environments
    :param step: step of the rollout
    :raises ValueError: if there is NaN or infinity
    """
    found = first_not_finite(places)
    if found is not None:
        raise ValueError(
            f"{env_name(env)}, environment {found[0]}, step {step} of a rollout: the position is not finite ({found[1]}): let "
            "it be finite, or end the episode before it diverges."
        )


def play_paths(model: SkillModel, env: VecEnv, skills: np.ndarray, n_steps: int) -> np.ndarray:
    """
    Play one deterministic episode of each of some skills.

    :param model: a model
    :param env: environments with a ``position``
    :param skills: indices, shape ``(n,)``, or vectors of continuous skills, shape ``(n, skill_dim)``
    :param n_steps: length of an episode, shorter if it ends
    :return: positions [m], shape ``(n, n_steps + 1, 3)``; after the end of an episode the last one is repeated
    :raises ValueError: if the environments have no ``position`` or other spaces than those of the model, are not normalised as
        it expects, or it learns in them at the moment
    """
    check_arguments("play_paths", locals())
    prepare_to_play(model, env)
    check_places_to_play(env, "paths")
    paths = []
    for first in range(0, len(skills), env.num_envs):
        batch = skills[first : first + env.num_envs]
        # Surplus environments in the last batch are played, but not recorded
        played = np.concatenate([batch, np.repeat(batch[-1:], env.num_envs - len(batch), axis=0)])
        places = record(model, env, played, n_steps, position_fn=env_positions).places
        assert places is not None
        paths.append(places[: len(batch)])
    return np.concatenate(paths)


def _as_rows(observations: Observation, space: spaces.Space) -> np.ndarray:
    """
    Flatten observations.

    :param observations: shape ``(n_envs, *shape)``, or a dictionary of such
    :param space: their space
    :return: a copy, shape ``(n_envs, obs_dim)``; the entries of a dictionary are joined as intrinsic rewards see them
    """
    if isinstance(observations, dict):
        assert isinstance(space, spaces.Dict)
        # The model sorts the entries, the environment may not
        return to_states({name: th.from_numpy(value) for name, value in observations.items()}, plain_space(space)).numpy()
    rows = observations.reshape(len(observations), -1)
    return rows.astype(np.float32) if rows.dtype == bool else rows.copy()
