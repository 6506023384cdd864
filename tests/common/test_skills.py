import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd.common.skills import SkillClock, append_skill, plain_space, skill_space, split_skill
from sb3_cesd.common.vec_env import VecSkillObservation, add_skill_observation


class Counter(gym.Env):
    """Observes the time step; an episode lasts five."""

    observation_space = spaces.Box(0, 10, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.time += 1
        return np.full(2, self.time, np.float32), 1.0, False, self.time == 5, {}


def counters(n_envs=1):
    return DummyVecEnv([Counter] * n_envs)


@pytest.mark.parametrize("shape", [(3,), (5, 3)])
def test_append_and_split_are_inverse(shape):
    observations = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    skills = 2 if len(shape) == 1 else np.array([0, 3, 1, 2, 2])
    augmented = append_skill(observations, skills, 4)
    assert augmented.shape == (*shape[:-1], 7) and augmented.dtype == np.float32
    plain, read = split_skill(augmented, 4)
    assert (plain == observations).all() and (read == skills).all()
    assert (augmented[..., 3:].sum(axis=-1) == 1).all()


def test_spaces():
    box = spaces.Box(np.array([-1, -2], np.float32), np.array([3, np.inf], np.float32))
    augmented = skill_space(box, 3)
    assert augmented.low.tolist() == [-1, -2, 0, 0, 0] and augmented.high.tolist() == [3, np.inf, 1, 1, 1]
    assert plain_space(augmented, 3) == box


def test_skill_lasts_its_duration_or_to_the_end_of_the_episode():
    clock = SkillClock(1, 50, duration=3)
    clock.seed(0)
    clock.reset()
    changes = []
    for step in range(12):
        before = clock.skills.copy()
        clock.tick(np.array([step == 4]))
        changes.append(bool((clock.skills != before).any()))
    # Steps 2, then 4 (end of the episode), then every third again
    assert np.nonzero(changes)[0].tolist() == [2, 4, 7, 10]


def test_all_skills_are_drawn_equally_often():
    clock = SkillClock(1000, 4)
    clock.seed(0)
    clock.reset()
    assert np.bincount(clock.skills, minlength=4) == pytest.approx(250, abs=60)


def test_cycle_holds_every_skill_once_in_n_skills_episodes():
    env = VecSkillObservation(counters(2), 4, skill_duration=None, order="cycle")
    env.reset()
    skills = list(env.skills)
    for _ in range(15):
        _, _, dones, _ = env.step(np.zeros((2, 1)))
        skills += list(env.skills[dones])
    assert sorted(skills) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_observation_after_a_step_bears_the_next_skill_and_the_terminal_one_the_old():
    env = VecSkillObservation(counters(), 50)
    env.seed(0)
    obs = env.reset()
    for step in range(1, 11):
        followed = split_skill(obs, 50)[1][0]
        obs, _, dones, infos = env.step(np.zeros((1, 1)))
        assert infos[0]["skill"] == followed
        if step % 5 == 0:
            plain, old = split_skill(infos[0]["terminal_observation"], 50)
            assert plain.tolist() == [5, 5] and old == followed
            assert dones[0] and split_skill(obs, 50)[0].tolist() == [[0, 0]]
            assert split_skill(obs, 50)[1][0] == env.skills[0] != followed


def test_seed_repeats_the_skills():
    skills = []
    for _ in range(2):
        env = VecSkillObservation(make_vec_env("Pendulum-v1", 3), 10, skill_duration=2)
        env.seed(4)
        env.reset()
        skills.append([env.step(np.zeros((3, 1)))[0][:, 3:].argmax(axis=1).tolist() for _ in range(20)])
    assert skills[0] == skills[1]
    assert len({tuple(row) for row in skills[0]}) > 5


def test_set_skill_fixes_and_frees():
    env = VecSkillObservation(counters(3), 10, skill_duration=1)
    env.set_skill(7)
    assert (split_skill(env.reset(), 10)[1] == 7).all()
    assert (split_skill(env.step(np.zeros((3, 1)))[0], 10)[1] == 7).all()
    env.set_skill(None)
    assert any((split_skill(env.step(np.zeros((3, 1)))[0], 10)[1] != 7).any() for _ in range(5))


def test_wrapping_twice_is_wrapping_once():
    env = add_skill_observation(counters(), 4, 50)
    assert add_skill_observation(env, 4, 50) is env


def test_other_number_of_skills_is_refused():
    with pytest.raises(ValueError, match=r"wrapped for 4 skills, the model has 5.*n_skills=5"):
        add_skill_observation(add_skill_observation(counters(), 4, 50), 5, 50)


def test_normalising_the_skill_is_refused():
    with pytest.raises(ValueError, match=r"one-hot.*pass VecNormalize\(env\) alone"):
        add_skill_observation(VecNormalize(add_skill_observation(counters(), 4, 50)), 4, 50)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_skills": 1}, "pass n_skills >= 2"),
        ({"n_skills": 4, "skill_duration": 0}, "positive integer or None"),
        ({"n_skills": 4, "skill": 4}, "from 0 to 3"),
        ({"n_skills": 4, "skill": -1}, "from 0 to 3"),
        ({"n_skills": 4, "order": "sorted"}, "'random' or 'cycle'"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        VecSkillObservation(counters(), **kwargs)


def test_reset_keeps_a_skill_that_was_drawn_and_not_followed():
    """SB3's evaluate_policy resets at its start, also right after the last episode of the evaluation before."""
    clock = SkillClock(1, 4, duration=None, order="cycle")
    skills = []
    for _ in range(6):
        clock.reset()
        skills.append(clock.skills[0])
        for step in range(3):
            clock.tick(np.array([step == 2]))
    assert skills == [0, 1, 2, 3, 0, 1]
