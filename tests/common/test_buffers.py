import pickle

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.skills import append_skill

N_SKILLS, GAMMA = 3, 0.9
OBS_SPACE = spaces.Box(-np.inf, np.inf, (2 + N_SKILLS,), np.float32)
ACTION_SPACE = spaces.Box(-1, 1, (1,), np.float32)


def fill(n_envs, size, n_added, n_steps=3, seed=0):
    """Observations are (environment, time), so that every sample tells where it comes from."""
    rng = np.random.default_rng(seed)
    buffer = SkillReplayBuffer(
        size * n_envs, OBS_SPACE, ACTION_SPACE, "cpu", n_envs=n_envs, n_skills=N_SKILLS, n_steps=n_steps, gamma=GAMMA
    )
    history = []
    for time in range(n_added):
        ends = rng.random(n_envs) < 0.2
        timeouts = ends & (rng.random(n_envs) < 0.5)
        skills = rng.integers(N_SKILLS, size=n_envs)
        obs = np.stack([np.arange(n_envs), np.full(n_envs, time)], axis=1).astype(np.float32)
        # The last observation of an episode is another than the first of the next. The next observation bears another
        # skill: it must not matter
        next_obs = append_skill(np.where(ends[:, None], obs + [0, 0.5], obs + [0, 1]), (skills + 1) % N_SKILLS, N_SKILLS)
        rewards = rng.normal(size=n_envs)
        infos = [{"TimeLimit.truncated": bool(timeout)} for timeout in timeouts]
        buffer.add(append_skill(obs, skills, N_SKILLS), next_obs, rng.uniform(-1, 1, (n_envs, 1)), rewards, ends, infos)
        history.append((ends, timeouts, skills, rewards))
    return buffer, history


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("n_added", [15, 50, 73])
@pytest.mark.parametrize("n_steps", [1, 3, 5])
def test_windows_equal_a_plain_loop(n_envs, n_added, n_steps):
    buffer, history = fill(n_envs, 50, n_added, n_steps)
    np.random.seed(0)
    samples = buffer.sample(500)
    assert samples.observations[:, 1].min() >= n_added - 50
    for j in range(500):
        env, time = samples.observations[j].int().tolist()
        n_window, ret = 0, 0.0
        while True:
            ends, _, _, rewards = history[time + n_window]
            ret += GAMMA**n_window * rewards[env]
            n_window += 1
            # An episode's end, the newest transition, or n_steps: whatever comes first
            if ends[env] or time + n_window == n_added or n_window == n_steps:
                break
        last_ends, last_timeouts, _, _ = history[time + n_window - 1]
        assert samples.rewards[j].item() == pytest.approx(ret, rel=1e-4, abs=1e-5)
        assert samples.next_observations[j].tolist() == [env, time + n_window - (0.5 if last_ends[env] else 0)]
        assert samples.discounts[j].item() == pytest.approx(GAMMA**n_window)
        assert samples.dones[j].item() == float(last_ends[env] and not last_timeouts[env])
        assert samples.skills[j].item() == history[time][2][env]


def test_ends_of_overwritten_episodes_make_room():
    """Many times the size of the buffer: as many last observations are kept as there are ends."""
    buffer, history = fill(3, 40, 1000)
    n_ends = int((buffer.dones | buffer.timeouts).sum())
    assert n_ends == sum(ends.sum() for ends, *_ in history[-40:])
    used = buffer.last_slots[buffer.dones | buffer.timeouts].tolist()
    assert len(set(used)) == n_ends and not set(used) & set(buffer._free_slots)
    assert len(used) + len(buffer._free_slots) == len(buffer.last_observations) <= 128
    nexts = buffer.next_observations[:, :, 1] - buffer.observations[:, :, 1]
    assert (nexts == np.where(buffer.dones | buffer.timeouts, 0.5, 1.0)).all()


def test_a_reset_without_an_end_is_noticed():
    buffer = SkillReplayBuffer(20, OBS_SPACE, ACTION_SPACE, "cpu", n_envs=2, n_skills=N_SKILLS)

    def add(obs, next_obs):
        obs, next_obs = (append_skill(np.array(values, np.float32), 0, N_SKILLS) for values in (obs, next_obs))
        buffer.add(obs, next_obs, np.zeros((2, 1)), np.zeros(2), np.zeros(2), [{}, {}])

    add([[0, 0], [5, 5]], [[1, 1], [6, 6]])
    add([[1, 1], [9, 9]], [[2, 2], [10, 10]])
    assert buffer.timeouts[0].tolist() == [False, True] and not buffer.timeouts[1].any()
    assert buffer.next_observations[:2].tolist() == [[[1, 1], [6, 6]], [[2, 2], [10, 10]]]


def test_windows_equal_those_of_sb3_in_half_the_memory():
    """The same transitions in SB3's buffer: equal returns, next observations, terminations and discounts."""
    n_envs, obs_dim, action_dim, n_skills, size = 5, 78, 12, 16, 400
    space = spaces.Box(-np.inf, np.inf, (obs_dim + n_skills,), np.float32)
    actions = spaces.Box(-1, 1, (action_dim,), np.float32)
    theirs = NStepReplayBuffer(size * n_envs, space, actions, "cpu", n_envs=n_envs, n_steps=3, gamma=0.99)
    ours = SkillReplayBuffer(size * n_envs, space, actions, "cpu", n_envs=n_envs, n_skills=n_skills, n_steps=3, gamma=0.99)
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(n_envs, obs_dim)).astype(np.float32)
    for _ in range(size + 150):
        skills = rng.integers(n_skills, size=n_envs)
        after = rng.normal(size=obs.shape).astype(np.float32)
        ends = rng.random(n_envs) < 0.02
        infos = [{"TimeLimit.truncated": bool(end and rng.random() < 0.5)} for end in ends]
        step = (rng.uniform(-1, 1, (n_envs, action_dim)), rng.normal(size=n_envs), ends, infos)
        for buffer in (theirs, ours):
            buffer.add(append_skill(obs, skills, n_skills), append_skill(after, skills, n_skills), *step)
        obs = np.where(ends[:, None], rng.normal(size=obs.shape).astype(np.float32), after)

    np.random.seed(0)
    expected = theirs.sample(2000)
    np.random.seed(0)
    actual = ours.sample(2000)
    assert (expected.observations[:, :obs_dim] == actual.observations).all()
    assert (expected.next_observations[:, :obs_dim] == actual.next_observations).all()
    assert (expected.observations[:, obs_dim:].argmax(dim=1) == actual.skills).all()
    assert (expected.actions == actual.actions).all() and (expected.dones == actual.dones).all()
    np.testing.assert_allclose(expected.rewards, actual.rewards, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(expected.discounts, actual.discounts, rtol=1e-6)
    arrays = (theirs.observations, theirs.next_observations, theirs.actions, theirs.rewards, theirs.dones, theirs.timeouts)
    assert ours.nbytes < 0.5 * sum(array.nbytes for array in arrays)


def test_every_transition_in_the_ring_is_sampled():
    buffer, _ = fill(2, 20, 35)
    np.random.seed(0)
    samples = buffer.sample(4000)
    assert {tuple(row) for row in samples.observations.int().tolist()} == {(e, t) for e in range(2) for t in range(15, 35)}


@pytest.mark.parametrize("n_added", [7, 33])
def test_pickle_keeps_rows_in_use_and_goes_on(n_added):
    buffer, _ = fill(2, 20, n_added)
    buffer.relabel_fn = lambda samples: samples
    pickled = pickle.dumps(buffer)
    loaded = pickle.loads(pickled)
    assert loaded.relabel_fn is None
    assert loaded.observations.shape == buffer.observations.shape
    np.random.seed(1)
    expected = buffer.sample(64)
    np.random.seed(1)
    actual = loaded.sample(64)
    for name in ("observations", "next_observations", "rewards", "skills", "dones"):
        assert (getattr(expected, name) == getattr(actual, name)).all(), name
    obs = append_skill(np.zeros((2, 2), np.float32), 0, N_SKILLS)
    loaded.add(obs, obs, np.zeros((2, 1)), np.zeros(2), np.zeros(2), [{}, {}])
    assert loaded.pos == (buffer.pos + 1) % 20


def test_pickle_is_small_before_the_buffer_is_full():
    small, large = (len(pickle.dumps(fill(1, size, 5)[0])) for size in (100, 100_000))
    assert large < small + 1000


def test_relabel_fn_is_applied_to_every_batch():
    buffer, _ = fill(1, 20, 20)
    buffer.relabel_fn = lambda samples: samples._replace(rewards=samples.rewards * 0 + 7)
    assert (buffer.sample(16).rewards == 7).all()
