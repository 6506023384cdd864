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


def test_skill_lasts_its_duration_or_to_the_end_of_the_episode():
    clock = SkillClock(2, SPHERE, duration=3)
    clock.seed(0)
    clock.reset()
    changes = []
    for step in range(12):
        before = clock.vectors
        tick(clock, step == 4, False)
        changes.append((clock.vectors != before).any(axis=1))
    # Steps 2, then 4 (end of the episode), then every third again; the other environment on its own
    assert [np.nonzero(each)[0].tolist() for each in np.transpose(changes)] == [[2, 4, 7, 10], [2, 5, 8, 11]]


@each_space
def test_draws_are_uniform_and_repeated_by_a_seed(space):
    clock, draws = SkillClock(1000, space, duration=2), []
    for seed in (4, 4, 5):
        clock.seed(seed)
        draws.append(run(clock, 3))
    assert (draws[0] == draws[1]).all() and (draws[0] != draws[2]).any()
    if space.discrete:
        assert np.bincount(space.decode(draws[0][0]), minlength=4) == pytest.approx(250, abs=60)
    else:
        assert len(np.unique(draws[0][0], axis=0)) == 1000


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
    clock.seed(0)
    clock.reset()
    assert clock.skills[0] == 0, "a seed restarts the cycle"


@each_space
def test_a_fixed_skill_acts_until_it_is_freed(space):
    for skill in (2, space.vectors[2]) if not space.discrete else (2,):
        clock = SkillClock(2, space, duration=1, skill=skill, order="cycle")
        assert (run(clock, 7) == space.vectors[2]).all()
    clock.set_skill(1)
    assert (clock.vectors == space.vectors[2]).all(), "the observation told that the old one acts"
    tick(clock, False, True)
    assert (clock.vectors == space.vectors[1]).all()
    clock.set_skill(3, at_once=True)
    assert (clock.vectors == space.vectors[3]).all()
    clock.set_skill(None)
    clock.reset()
    assert (clock.vectors == space.vectors[:2]).all(), "it was not drawn"


@each_space
def test_turns_replace_draws_until_they_are_over(space):
    clock, turns = SkillClock(2, space, duration=1), SkillTurns(4, 16)
    clock.turns = turns
    clock.reset()
    acting = []
    for _ in range(8):
        acting.append(clock.vectors)
        # Skill 2 is paid best
        clock.tick(np.zeros(2, dtype=bool), (clock.vectors == space.vectors[2]).all(axis=1).astype(float))
    assert (np.stack(acting) == space.vectors[(np.arange(2) + np.arange(8)[:, None] // 2) % 4]).all()
    assert turns.over and turns.mean_rewards().tolist() == [0, 0, 1, 0]
