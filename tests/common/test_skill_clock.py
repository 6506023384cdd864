"""Who acts: drawn, gone through in turn, or fixed."""

import numpy as np
import pytest

from sb3_cesd.common.skill_clock import SkillClock, SkillTurns
from sb3_cesd.common.skills import CubeSkills, DiscreteSkills, SphereSkills

SPHERE = SphereSkills(3, 4)
each_space = pytest.mark.parametrize("space", [DiscreteSkills(4), SPHERE, CubeSkills(2, 4)], ids=repr)


def tick(clock, *dones):
    clock.tick(np.array(dones), np.zeros(len(dones)))


def run(clock, n_steps, episode=5):
    """Vectors of the skills that act in each step of episodes of that length, shape (n_steps, n_envs, dim)."""
    clock.reset()
    acting = []
    for step in range(1, n_steps + 1):
        acting.append(clock.vectors)
        tick(clock, *[step % episode == 0] * len(clock.vectors))
    return np.stack(acting)


@pytest.mark.parametrize("space", [DiscreteSkills(50), SPHERE], ids=repr)
def test_skill_lasts_its_duration_or_to_the_end_of_the_episode(space):
    clock = SkillClock(1, space, duration=3)
    clock.seed(0)
    clock.reset()
    changes = []
    for step in range(12):
        before = clock.vectors
        tick(clock, step == 4)
        changes.append(bool((clock.vectors != before).any()))
    # Steps 2, then 4 (end of the episode), then every third again
    assert np.nonzero(changes)[0].tolist() == [2, 4, 7, 10]


def test_environments_change_on_their_own():
    clock = SkillClock(2, SPHERE, duration=None)
    clock.reset()
    before = clock.vectors
    tick(clock, False, True)
    assert (clock.vectors[0] == before[0]).all() and (clock.vectors[1] != before[1]).any()
    assert not np.shares_memory(clock.vectors, before), "who holds the old ones may keep them"


def test_all_skills_are_drawn_equally_often():
    clock = SkillClock(1000, DiscreteSkills(4))
    clock.seed(0)
    clock.reset()
    assert np.bincount(clock.skills, minlength=4) == pytest.approx(250, abs=60)


def test_continuous_skills_are_drawn_from_the_whole_space():
    clock = SkillClock(1000, SPHERE)
    clock.seed(0)
    clock.reset()
    assert clock.skills.shape == (1000, 3) and len(np.unique(clock.skills, axis=0)) == 1000
    np.testing.assert_allclose(np.linalg.norm(clock.skills, axis=1), 1.0, rtol=1e-5)


@each_space
def test_a_seed_repeats_the_draws(space):
    clock = SkillClock(3, space, duration=2)
    draws = []
    for seed in (4, 4, 5):
        clock.seed(seed)
        draws.append(run(clock, 20))
    assert (draws[0] == draws[1]).all() and (draws[0] != draws[2]).any()
    assert len(np.unique(draws[0].reshape(-1, space.dim), axis=0)) > 3


@each_space
def test_cycle_goes_through_the_skills_that_an_index_stands_for(space):
    acting = run(SkillClock(2, space, duration=None, order="cycle"), 20)
    assert (acting[:5] == space.vectors[:2]).all() and (acting[5:10] == space.vectors[2:]).all()
    assert (acting[10:15] == space.vectors[:2]).all()


@pytest.mark.parametrize("n_envs", [1, 2, 3, 4, 6])
def test_cycle_holds_all_skills_equally_often_in_as_many_episodes_of_each_environment(n_envs):
    """However long the episodes are, and wherever the cycle begins."""
    clock, lengths = SkillClock(n_envs, DiscreteSkills(4), duration=None, order="cycle"), np.arange(1, n_envs + 1)
    for _ in range(3):
        counts, n_episodes = np.zeros(4, int), np.zeros(n_envs, int)
        clock.reset()
        step = 0
        while n_episodes.min() < 12 // n_envs:
            step += 1
            dones, skills = step % lengths == 0, clock.skills
            counts += np.bincount(skills[dones & (n_episodes < 12 // n_envs)], minlength=4)
            n_episodes += dones
            tick(clock, *dones)
        assert (counts == 3).all()


def test_reset_keeps_a_skill_that_was_drawn_and_not_followed():
    """SB3's evaluate_policy resets at its start, also right after the last episode of the evaluation before."""
    clock = SkillClock(1, DiscreteSkills(4), duration=None, order="cycle")
    skills = []
    for _ in range(6):
        clock.reset()
        skills.append(clock.skills[0])
        for step in range(3):
            tick(clock, step == 2)
    assert skills == [0, 1, 2, 3, 0, 1]


@each_space
def test_reset_does_not_keep_a_skill_that_was_fixed(space):
    clock = SkillClock(2, space, duration=None, skill=3, order="cycle")
    clock.reset()
    tick(clock, False, True)
    clock.set_skill(None)
    clock.reset()
    assert (clock.vectors == space.vectors[:2]).all()


@each_space
def test_a_fixed_skill_always_acts(space):
    for skill in (2, space.vectors[2]) if not space.discrete else (2,):
        clock = SkillClock(2, space, duration=1, skill=skill)
        assert (run(clock, 7) == space.vectors[2]).all()
    other = clock.skills.copy()
    clock.set_skill(1)
    assert (clock.skills == other).all(), "the observation told that the old one acts"
    tick(clock, False, False)
    assert (clock.vectors == space.vectors[1]).all()
    clock.seed(0)
    clock.set_skill(None)
    tick(clock, False, False)
    assert (run(clock, 7) != space.vectors[1]).any()


def test_any_continuous_skill_can_be_fixed():
    vector = np.array([0.6, 0.0, -0.8], np.float32)
    assert (run(SkillClock(2, SPHERE, skill=vector), 7) == vector).all()


@each_space
@pytest.mark.parametrize("then", [1, None])
def test_turns_replace_draws_until_they_are_over(space, then):
    clock = SkillClock(2, space, duration=1)
    clock.reset()
    clock.take_turns(SkillTurns(4, 16, then))
    clock.reset()
    acting = []
    for step in range(12):
        acting.append(clock.vectors)
        # Skill 2 is paid best
        clock.tick(np.zeros(2, dtype=bool), (clock.vectors == space.vectors[2]).all(axis=1).astype(float))
        assert (clock.turns is None) == (step >= 7)
    turns = (np.arange(2) + np.arange(8)[:, None] // 2) % 4
    assert (np.stack(acting[:8]) == space.vectors[turns]).all()
    assert (np.stack(acting[8:]) == space.vectors[2 if then is None else then]).all()


@each_space
def test_whoever_knows_better_switches_at_once(space):
    clock = SkillClock(2, space, duration=1)
    clock.take_turns(SkillTurns(4, 16))
    clock.reset()
    clock.switch_to(3)
    assert (clock.vectors == space.vectors[3]).all() and clock.turns is None
    tick(clock, False, True)
    assert (run(clock, 7) == space.vectors[3]).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"duration": 0}, "positive integer or None"),
        ({"duration": 2.5}, "positive integer or None"),
        ({"skill": 4}, "from 0 to 3"),
        ({"skill": -1}, "from 0 to 3"),
        ({"skill": [2.0, 0.0, 0.0]}, "unit sphere"),
        ({"order": "sorted"}, "'random' or 'cycle'"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        SkillClock(2, SPHERE, **kwargs)


def test_turns_that_end_with_a_skill_that_there_is_not_are_refused():
    clock = SkillClock(2, CubeSkills(2, 4))
    clock.take_turns(SkillTurns(4, 16, [0.5, -0.5]))
    with pytest.raises(ValueError, match="The entries of a skill of this model must be from -1 to 1: pass such a vector"):
        clock.take_turns(SkillTurns(4, 16, [2.0, 0.0]))
    assert clock.turns.then == [0.5, -0.5]


def test_a_seed_restarts_the_cycle():
    """So that evaluations with a seed begin with the same skill each time."""
    clock = SkillClock(2, DiscreteSkills(6), duration=None, order="cycle")
    for _ in range(2):
        clock.seed(3)
        clock.reset()
        assert clock.skills.tolist() == [0, 1]
        clock.tick(np.array([True, False]), np.zeros(2))
        assert clock.skills.tolist() == [2, 1]
