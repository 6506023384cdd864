import pickle

import numpy as np
import pytest
from gymnasium import spaces

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
        # The next observation bears another skill: it must not matter
        next_obs = append_skill(obs + [0, 0.5], (skills + 1) % N_SKILLS, N_SKILLS)
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
        assert samples.next_observations[j].tolist() == [env, time + n_window - 0.5]
        assert samples.discounts[j].item() == pytest.approx(GAMMA**n_window)
        assert samples.dones[j].item() == float(last_ends[env] and not last_timeouts[env])
        assert samples.skills[j].item() == history[time][2][env]


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
