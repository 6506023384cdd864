"""Play the skills of a model, and record where they go."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_cesd.common.arguments import NonNegative, PositiveInt, checked
from sb3_cesd.common.observations import Observation, plain_space, to_states
from sb3_cesd.common.playing import SkillModel, check_play_spaces, gaussian_noise, play
from sb3_cesd.common.vec_normalize import check_statistics_fit, frozen_statistics, transpose_like_training
from sb3_cesd.metrics.environments import Positions, end_positions, find_positions, robot_name


class Recording(NamedTuple):
    """One episode in each environment, as :class:`SkillRollouts`; of each, images of shape ``(height, width, 3)``."""

    observations: np.ndarray
    positions: np.ndarray | None
    returns: np.ndarray
    lengths: np.ndarray
    successes: np.ndarray
    frames: list[list[np.ndarray]]


class SkillRollouts(NamedTuple):
    """
    Rollouts of all skills of a model, each from the start.

    :param states: observations, or positions, shape ``(n_skills, n_rollouts, n_steps + 1, d)``; after the end of an episode
        the last one is repeated
    :param skills: index of the skill of each rollout, shape ``(n_skills, n_rollouts)``
    :param returns: sums of the rewards of the environment, shape ``(n_skills, n_rollouts)``
    :param lengths: number of steps until the end of the episode or the recording, shape ``(n_skills, n_rollouts)``
    :param observations: observations of the model, of images their features, shape
        ``(n_skills, n_rollouts, n_steps + 1, obs_dim)``
    :param positions: positions in the world [m], shape ``(n_skills, n_rollouts, n_steps + 1, 3)``, or 2 in the plane; ``None``
        if the environments have none
    :param successes: ``info["is_success"]`` at the end, false where it is missing, shape ``(n_skills, n_rollouts)``; ``None``
        if the environments never tell
    """

    states: np.ndarray
    skills: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    observations: np.ndarray
    positions: np.ndarray | None = None
    successes: np.ndarray | None = None

    def per_state(self) -> tuple[np.ndarray, np.ndarray]:
        """List the states that no end of an episode repeats, shape ``(n, d)``, and the skill of each, shape ``(n,)``."""
        visited = np.arange(self.states.shape[2]) <= self.lengths[..., None]  # (n_skills, n_rollouts, n_steps + 1)
        return self.states[visited], np.broadcast_to(self.skills[..., None], visited.shape)[visited]

    def as_seen(self) -> "SkillRollouts":
        """Replace the states by the observations."""
        return self._replace(states=self.observations)

    def thinned(self, n_states: int) -> "SkillRollouts":
        """Keep the start and every m-th state and observation, with the smallest m that leaves ``n_states`` per rollout."""
        n_visited = int(self.lengths.max()) + 1
        every = -(-n_visited // n_states)
        kept = slice(0, n_visited, every)
        return self._replace(
            states=self.states[:, :, kept], observations=self.observations[:, :, kept], lengths=self.lengths // every
        )


class RandomActions:
    """A model with two skills that both draw actions uniformly; of images, it has the features of a policy."""

    #: Arbitrary, but metrics need at least two
    n_skills = 2

    def __init__(self, action_space: spaces.Space, seed: int = 0, policy: Any = None) -> None:
        assert isinstance(action_space, spaces.Box)
        self._space, self.policy = action_space, policy
        self._rng = np.random.default_rng(seed)

    def predict(self, observation: Any, *, deterministic: bool, skill: Any) -> tuple[np.ndarray, None]:
        actions = self._rng.uniform(self._space.low, self._space.high, (len(skill), *self._space.shape))
        return actions.astype(self._space.dtype), None


@checked
def collect_rollouts(
    model: SkillModel,
    env: VecEnv,
    n_rollouts: PositiveInt = 20,
    n_steps: PositiveInt = 50,
    noise_std: NonNegative = 0.0,
    deterministic: bool = True,
    seed: int | None = None,
    reset_options: dict[str, Any] | None = None,
) -> SkillRollouts:
    """
    Play all skills, as many rollouts at a time as there are environments.

    :param model: the model; for continuous skills, those that have an index are played
    :param env: environments without skill observations, normalised as the model expects. At the end of an episode they are
        already reset: their position is then that of its ``info``, if there is one, otherwise the previous one is repeated
    :param n_rollouts: number of rollouts per skill
    :param n_steps: length of a rollout; shorter if the episode ends
    :param noise_std: standard deviation of Gaussian noise on the actions, as a share of half their range, for stochastic
        rollouts of a deterministic policy
    :param deterministic: take the mean action of a stochastic policy
    :param seed: seed of the first reset and the noise
    :param reset_options: options of every reset, e.g. ``{"position": (0.0, 0.0)}`` to start at one point of a maze
    :return: the rollouts, whose ``states`` are observations
    :raises ValueError: if the environments have other spaces than those of the model or are not normalised as it expects
    """
    env = prepare_to_play(model, env)
    add_noise = gaussian_noise(env.action_space, noise_std, np.random.default_rng(seed))
    skills = np.repeat(np.arange(model.n_skills), n_rollouts)
    found = _record_all(model, env, skills, n_steps, seed, reset_options, deterministic=deterministic, perturb=add_noise)
    shape = (model.n_skills, n_rollouts)
    arrays: Any = [None if each is None else each.reshape(*shape, *each.shape[1:]) for each in (skills, *found)]
    skills, observations, positions, returns, lengths, successes = arrays
    told = None if np.isnan(successes).all() else successes == 1
    return SkillRollouts(observations, skills, returns, lengths, observations, positions, told)


def _record_all(
    model: SkillModel,
    env: VecEnv,
    skills: np.ndarray,
    n_steps: int,
    seed: int | None,
    reset_options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> list[Any]:
    """Record an episode of each of some skills by :func:`record`: all but the images."""
    if seed is not None:
        env.seed(int(seed))
    recordings = []
    for batch in np.split(skills, range(env.num_envs, len(skills), env.num_envs)):
        env.set_options(reset_options)
        # Surplus environments in the last batch are played, but not recorded
        played = np.concatenate([batch, np.repeat(batch[-1:], env.num_envs - len(batch), axis=0)])
        recordings.append(record(model, env, played, n_steps, **kwargs))
    columns = zip(*(recording[:5] for recording in recordings), strict=True)
    return [None if column[0] is None else np.concatenate(column)[: len(skills)] for column in columns]


def play_places(model: SkillModel, env: VecEnv, seed: int | None = 0, **kwargs: Any) -> SkillRollouts:
    """
    Play all skills by :func:`collect_rollouts`. The states are positions (x, y) in a maze or of a robot's torso, positions
    (x, y, z) of the arm's hand, or observations of any other environment.
    """
    rollouts = collect_rollouts(model, env, seed=seed, **kwargs)
    if rollouts.positions is None:
        return rollouts
    return rollouts._replace(states=rollouts.positions[..., : None if robot_name(env) == "jaco" else 2])


@checked
def play_paths(
    model: SkillModel, env: VecEnv, skills: np.ndarray, n_steps: PositiveInt, seed: int | None = None
) -> np.ndarray:
    """
    Play one deterministic episode of each of some skills, which are indices or vectors.

    :return: positions [m], shape ``(n_skills, n_steps + 1, 3)``; after the end of an episode the last one is repeated
    """
    positions = _record_all(model, prepare_to_play(model, env), skills, n_steps, seed)[1]
    if positions is None:
        raise ValueError("Coverage and goals need positions: leave them out, or give environments a property position [m].")
    return positions


def prepare_to_play(model: SkillModel, env: VecEnv) -> VecEnv:
    """Check environments, and return them as the model observes them. In those of its training, ``learn`` then starts anew."""
    env = as_model_observes(env, model)
    if hasattr(model, "plain_space"):
        check_play_spaces(env, model, "env")
    remedy = "pass environments with the statistics of the training, VecNormalize.load(path, env)."
    check_statistics_fit(model, unwrap_vec_normalize(env), remedy)
    training_env = getattr(model, "env", None)
    if training_env is not None and training_env.unwrapped is env.unwrapped:
        model.end_episodes()  # type: ignore[attr-defined]
    return env


def as_model_observes(env: VecEnv, model: SkillModel) -> VecEnv:
    """Stack images and put their channels first, if the model was trained on such images."""
    return transpose_like_training(env, getattr(policy_of(model), "plain_space", env.observation_space))


def policy_of(model: SkillModel) -> Any:
    """Find the policy of a model, which may be the model itself."""
    return getattr(model, "policy", model)


def encoder_of(model: SkillModel) -> Any:
    """Find the encoder by whose features metrics compare images; ``None`` for observations that are compared as they are."""
    return getattr(policy_of(model), "encoder", None)


def record(
    model: SkillModel,
    env: VecEnv,
    skill: int | np.ndarray,
    n_steps: int,
    deterministic: bool = True,
    perturb: Callable[[np.ndarray], np.ndarray] | None = None,
    frame_steps: Collection[int] = (),
    shrink: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> Recording:
    """
    Record one episode in each environment, of one skill or of one per environment.

    :param perturb: function that changes actions before they are executed
    :param frame_steps: steps after which to render each environment, 0 for the start
    :param shrink: function that makes images smaller
    """
    seen: list[np.ndarray] = []
    positions: list[np.ndarray] = []
    read_positions: Positions | None = None
    frames: list[list[np.ndarray]] = [[] for _ in range(env.num_envs)]
    returns, lengths = np.zeros(env.num_envs), np.zeros(env.num_envs, dtype=np.int64)
    successes = np.full(env.num_envs, np.nan)
    over = np.zeros(env.num_envs, dtype=bool)
    encoder = encoder_of(model)
    with frozen_statistics(env):
        for step, moment in enumerate(islice(play(model, env, skill, deterministic, perturb), n_steps + 1)):
            if encoder is None:
                rows = _as_rows(moment.observations, env.observation_space)
            else:
                rows = encoder.features(moment.observations).cpu().numpy()
            seen.append(np.where(over[:, None], seen[-1], rows) if step > 0 else rows)
            # At the end of an episode, position and image already belong to the next one
            left = over | moment.dones
            if step <= 1 and read_positions is None:
                # Some environments tell them after a step only
                read_positions = find_positions(env, moment.infos)
            if read_positions is not None:
                position = read_positions(moment.dones, moment.infos)
                position = np.where(left[:, None], positions[-1], position) if positions else position
                ended, ends = end_positions(moment.dones & ~over, moment.infos, position.shape[1])
                position[ended] = ends
                positions.append(position)
            if step in frame_steps and not left.all():
                images = env.get_images()
                for idx in np.flatnonzero(~left).tolist():
                    frames[idx].append(shrink(np.asarray(images[idx])))
            returns += np.where(over, 0.0, moment.rewards)
            lengths += ~over & (step > 0)
            for idx in np.flatnonzero(~over).tolist():
                successes[idx] = moment.infos[idx].get("is_success", successes[idx])
            over = left
            if over.all():
                break
    paths = _repeat_last(positions[: len(seen) - len(positions)] + positions, n_steps + 1) if positions else None
    return Recording(_repeat_last(seen, n_steps + 1), paths, returns, lengths, successes, frames)


def _repeat_last(states: list[np.ndarray], n_states: int) -> np.ndarray:
    """Stack states of shape ``(n_envs, d)``, the last one repeatedly, to shape ``(n_envs, n_states, d)``."""
    return np.stack(states + states[-1:] * (n_states - len(states)), axis=1)


def _as_rows(observations: Observation, space: spaces.Space) -> np.ndarray:
    """Flatten observations to ``(n_envs, obs_dim)``; entries of a dictionary are joined as intrinsic rewards see them."""
    if isinstance(observations, dict):
        assert isinstance(space, spaces.Dict)
        # The model sorts the entries, the environment may not
        return to_states({name: th.from_numpy(value) for name, value in observations.items()}, plain_space(space)).numpy()
    rows = observations.reshape(len(observations), -1)
    return rows.astype(np.float32) if rows.dtype == bool else rows.copy()
