import pickle

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import add_skill, skill_observation_space
from sb3_cesd.common.skills import CubeSkills, DiscreteSkills, SphereSkills

SKILLS, GAMMA = DiscreteSkills(3), 0.9
OBS_SPACE = skill_observation_space(spaces.Box(-np.inf, np.inf, (2,), np.float32), SKILLS)
ACTION_SPACE = spaces.Box(-1, 1, (1,), np.float32)


def with_skills(observations, skills, skill_space=SKILLS):
    return add_skill(observations, skill_space.encode(skills, (len(observations),)))


def fill(n_envs, size, n_added, n_steps=3, seed=0):
    """Observations are (environment, time), so that every sample tells where it comes from."""
    rng = np.random.default_rng(seed)
    buffer = SkillReplayBuffer(
        size * n_envs, OBS_SPACE, ACTION_SPACE, "cpu", n_envs=n_envs, skill_space=SKILLS, n_steps=n_steps, gamma=GAMMA
    )
    history = []
    for time in range(n_added):
        ends = rng.random(n_envs) < 0.2
        timeouts = ends & (rng.random(n_envs) < 0.5)
        skills = rng.integers(3, size=n_envs)
        obs = np.stack([np.arange(n_envs), np.full(n_envs, time)], axis=1).astype(np.float32)
        # The last observation of an episode is another than the first of the next. The next observation bears another
        # skill: it must not matter
        next_obs = with_skills(np.where(ends[:, None], obs + [0, 0.5], obs + [0, 1]), (skills + 1) % 3)
        rewards = rng.normal(size=n_envs)
        infos = [{"TimeLimit.truncated": bool(timeout)} for timeout in timeouts]
        buffer.add(with_skills(obs, skills), next_obs, rng.uniform(-1, 1, (n_envs, 1)), rewards, ends, infos)
        history.append((ends, timeouts, skills, rewards))
    return buffer, history


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("n_added", [15, 50, 73])
@pytest.mark.parametrize("window", [2, 4, 60])
def test_moving_averages_equal_a_plain_loop(n_envs, n_added, window):
    """Of what is still in the ring of the same episode."""
    buffer, history = fill(n_envs, 50, n_added)
    buffer.average_window = window
    np.random.seed(0)
    samples = buffer.sample(300)
    oldest = max(n_added - 50, 0)

    def average(env, last, following):
        """Go back from a transition to the start of its episode."""
        times = [last]
        while times[-1] > oldest and not history[times[-1] - 1][0][env] and len(times) + len(following) < window:
            times.append(times[-1] - 1)
        return np.mean([*times, *following])

    for j in range(300):
        env, time = samples.observations[j].int().tolist()
        next_time = samples.next_observations[j][1].item()
        last = int(np.ceil(next_time)) - 1
        assert samples.average_observations[j].tolist() == pytest.approx([env, average(env, time, [])])
        assert samples.average_next_observations[j].tolist() == pytest.approx([env, average(env, last, [next_time])])


def test_ends_of_overwritten_episodes_make_room():
    """Many times the size of the buffer: as many last observations are kept as there are ends."""
    buffer, history = fill(3, 40, 1000)
    n_ends = int((buffer.dones | buffer.timeouts).sum())
    assert n_ends == sum(ends.sum() for ends, *_ in history[-40:])
    used = buffer.last_slots[buffer.dones | buffer.timeouts].tolist()
    assert len(set(used)) == n_ends and not set(used) & set(buffer._free_slots)
    assert len(used) + len(buffer._free_slots) == len(buffer.last_observations["observation"]) <= 128
    nexts = (buffer.next_observations["observation"] - buffer.observations["observation"])[:, :, 1]
    assert (nexts == np.where(buffer.dones | buffer.timeouts, 0.5, 1.0)).all()


def test_a_reset_without_an_end_is_noticed():
    buffer = SkillReplayBuffer(20, OBS_SPACE, ACTION_SPACE, "cpu", n_envs=2, skill_space=SKILLS)

    def add(obs, next_obs):
        obs, next_obs = (with_skills(np.array(values, np.float32), 0) for values in (obs, next_obs))
        buffer.add(obs, next_obs, np.zeros((2, 1)), np.zeros(2), np.zeros(2), [{}, {}])

    add([[0, 0], [5, 5]], [[1, 1], [6, 6]])
    add([[1, 1], [9, 9]], [[2, 2], [10, 10]])
    assert buffer.timeouts[0].tolist() == [False, True] and not buffer.timeouts[1].any()
    assert buffer.next_observations["observation"][:2].tolist() == [[[1, 1], [6, 6]], [[2, 2], [10, 10]]]


def test_windows_equal_those_of_sb3_in_half_the_memory():
    """The same transitions in SB3's buffer: equal returns, next observations, terminations and discounts."""
    n_envs, obs_dim, action_dim, n_skills, size = 5, 78, 12, 16, 400
    skill_space = DiscreteSkills(n_skills)
    # SB3's has no dictionaries: the skill is appended
    flat = spaces.Box(-np.inf, np.inf, (obs_dim + n_skills,), np.float32)
    space = skill_observation_space(spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32), skill_space)
    actions = spaces.Box(-1, 1, (action_dim,), np.float32)
    kwargs = {"n_envs": n_envs, "n_steps": 3, "gamma": 0.99}
    theirs = NStepReplayBuffer(size * n_envs, flat, actions, "cpu", **kwargs)
    ours = SkillReplayBuffer(size * n_envs, space, actions, "cpu", skill_space=skill_space, **kwargs)
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(n_envs, obs_dim)).astype(np.float32)
    for _ in range(size + 150):
        skills = rng.integers(n_skills, size=n_envs)
        after = rng.normal(size=obs.shape).astype(np.float32)
        ends = rng.random(n_envs) < 0.02
        infos = [{"TimeLimit.truncated": bool(end and rng.random() < 0.5)} for end in ends]
        step = (rng.uniform(-1, 1, (n_envs, action_dim)), rng.normal(size=n_envs), ends, infos)
        vectors = skill_space.encode(skills, (n_envs,))
        theirs.add(np.concatenate([obs, vectors], 1), np.concatenate([after, vectors], 1), *step)
        ours.add(add_skill(obs, vectors), add_skill(after, vectors), *step)
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


@pytest.mark.parametrize("n_added", [7, 33])
def test_pickle_keeps_rows_in_use_and_goes_on(n_added):
    buffer, _ = fill(2, 20, n_added)
    loaded = pickle.loads(pickle.dumps(buffer))
    assert loaded.observations["observation"].shape == buffer.observations["observation"].shape
    assert loaded.skill_space == SKILLS
    np.random.seed(1)
    expected = buffer.sample(64)
    np.random.seed(1)
    actual = loaded.sample(64)
    for name in ("observations", "next_observations", "rewards", "skills", "dones"):
        assert (getattr(expected, name) == getattr(actual, name)).all(), name
    obs = with_skills(np.zeros((2, 2), np.float32), 0)
    loaded.add(obs, obs, np.zeros((2, 1)), np.zeros(2), np.zeros(2), [{}, {}])
    assert loaded.pos == (buffer.pos + 1) % 20


def test_pickle_is_small_before_the_buffer_is_full():
    small, large = (len(pickle.dumps(fill(1, size, 5)[0])) for size in (100, 100_000))
    assert large < small + 1000


# Other observations and skills


def fill_with_entries(skill_space, n_added=60, **kwargs):
    """Vectors and an image per step, which tell the environment and the time."""
    entries = {
        "place": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        "camera": spaces.Box(0, 255, (1, 36, 36), np.uint8),
        "arm": spaces.Box(-np.inf, np.inf, (2, 3), np.float64),
    }
    space = skill_observation_space(spaces.Dict(entries), skill_space)
    buffer = SkillReplayBuffer(80, space, ACTION_SPACE, "cpu", n_envs=2, skill_space=skill_space, **kwargs)
    rng = np.random.default_rng(0)
    history = []

    def observe(time):
        return {
            "place": np.array([[0, time], [1, time]], np.float32),
            "camera": np.full((2, 1, 36, 36), int(2 * time) % 256, np.uint8),
            "arm": np.full((2, 2, 3), time, np.float64),
        }

    for time in range(n_added):
        ends = rng.random(2) < 0.2
        after = {name: value.copy() for name, value in observe(time + 1).items()}
        for name, value in observe(time + 0.5).items():
            after[name][ends] = value[ends]
        vectors = skill_space.draw(2, rng)
        infos = [{"TimeLimit.truncated": False}] * 2
        step = (rng.uniform(-1, 1, (2, 1)), rng.normal(size=2), ends, infos)
        buffer.add(add_skill(observe(time), vectors), add_skill(after, skill_space.draw(2, rng)), *step)
        history.append((ends, skill_space.decode(vectors)))
    return buffer, history


@pytest.mark.parametrize("skill_space", [DiscreteSkills(3), SphereSkills(5, 3), CubeSkills(4, 3)])
@pytest.mark.parametrize("one_step", [False, True])
def test_entries_skills_and_single_steps_equal_a_plain_loop(skill_space, one_step):
    """Round the ring, with n-step windows and ends of episodes."""
    buffer, history = fill_with_entries(skill_space, n_steps=3, gamma=GAMMA, one_step=one_step)
    np.random.seed(0)
    samples = buffer.sample(300)
    assert samples.observations["camera"].dtype == th.uint8, "images stay as small as they are"
    assert samples.observations["camera"].shape == (300, 1, 36, 36)
    assert samples.observations["arm"].shape == (300, 2, 3) and samples.observations["arm"].dtype == th.float32
    assert (samples.one_step_observations is not None) == one_step
    lengths = set()
    for j in range(300):
        env, time = samples.observations["place"][j].int().tolist()
        n_window = 1
        while n_window < 3 and time + n_window < len(history) and not history[time + n_window - 1][0][env]:
            n_window += 1
        lengths.add(n_window)
        of = {
            "observations": float(time),
            "next_observations": time + n_window - (0.5 if history[time + n_window - 1][0][env] else 0),
            "one_step_observations": time + 1 - (0.5 if history[time][0][env] else 0),
        }
        for name, at in of.items() if one_step else list(of.items())[:2]:
            entries = getattr(samples, name)
            assert entries["place"][j].tolist() == [env, at]
            assert (entries["camera"][j] == int(2 * at) % 256).all() and (entries["arm"][j] == at).all()
        assert (samples.skills[j].numpy() == history[time][1][env]).all()
    assert lengths == {1, 2, 3}
    assert samples.skills.dtype == (th.long if skill_space.discrete else th.float32)
    assert samples.skills.shape == ((300,) if skill_space.discrete else (300, skill_space.dim))


def test_time_limits_end_episodes_on_demand():
    """With ``handle_timeout_termination=False`` nothing is bootstrapped at a time limit, as in METRA's released code."""
    box = spaces.Box(-1, 1, (1,))
    for handle in (True, False):
        space = skill_observation_space(spaces.Box(-np.inf, np.inf, (2,), np.float32), SKILLS)
        buffer = SkillReplayBuffer(20, space, box, "cpu", handle_timeout_termination=handle, skill_space=SKILLS, n_steps=1)
        for time, (done, timeout) in enumerate([(False, False), (True, True), (True, False)]):
            obs, next_obs = (with_skills(np.array([[at, 0.0]], np.float32), np.array([0])) for at in (time, time + 0.5))
            buffer.add(obs, next_obs, np.zeros((1, 1)), np.ones(1), np.array([done]), [{"TimeLimit.truncated": timeout}])
        buffer.end_trajectories()
        samples = buffer.sample(200)
        dones = {int(obs[0]): done.item() for obs, done in zip(samples.observations, samples.dones, strict=True)}
        assert dones == {0: 0.0, 1: 0.0 if handle else 1.0, 2: 1.0}
