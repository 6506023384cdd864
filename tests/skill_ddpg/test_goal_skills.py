"""Which skill leads to a goal, and to which cluster a state belongs: what is asked, and what can't be."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from small import make_small

from sb3_cesd import APS, CSD, CSF, DIAYN, LSD, METRA, SMM, CeSD
from sb3_cesd.common.skills import make_skill_space

OBS, GOALS = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
with_goals = pytest.mark.parametrize(
    ("method", "skill_type"),
    [
        (METRA, "discrete"),
        (METRA, "sphere"),
        (METRA, "cube"),
        (APS, "sphere"),
        (LSD, "sphere"),
        (CSD, "sphere"),
        (CSF, "sphere"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
with_clusters = pytest.mark.parametrize("method", [CeSD, DIAYN, SMM], ids=lambda method: method.__name__)


def make(method, skill_type, **kwargs):
    return make_small(method, skill_type=skill_type, skill_dim=None if skill_type == "discrete" else 3, **kwargs)


@with_goals
def test_one_observation_or_one_goal_stands_for_all(method, skill_type):
    model = make(method, skill_type)
    skills = model.goal_skill(OBS, GOALS)
    assert len(np.unique(skills, axis=0)) > 1
    from_one, to_one = model.goal_skill(OBS[1], GOALS), model.goal_skill(OBS, GOALS[1])
    for each in (from_one, to_one):
        assert len(each) == 4 and each[1] == pytest.approx(skills[1], abs=1e-5)
    assert (model.goal_skill(OBS[1:2], GOALS) == from_one).all() and (model.goal_skill(OBS, GOALS[1:2]) == to_one).all()
    assert from_one == pytest.approx(model.goal_skill(OBS[[1] * 4], GOALS), abs=1e-5)


@with_goals
def test_a_goal_that_is_reached_has_a_skill_that_can_be_followed(method, skill_type):
    model = make(method, skill_type)
    goals = GOALS.copy()
    goals[1] = OBS[1]
    skills = model.goal_skill(OBS, goals)
    assert model.predict(OBS, skill=skills)[0].shape == (4, 1)
    assert model.predict(OBS[1], skill=model.goal_skill(OBS[1], goals[1]))[0].shape == (1,)
    if skill_type == "sphere":
        assert np.linalg.norm(skills, axis=1) == pytest.approx(1, abs=1e-5)
    assert skills[[0, 2, 3]] == pytest.approx(model.goal_skill(OBS, GOALS)[[0, 2, 3]], abs=1e-6), "and others have theirs"


@pytest.mark.parametrize(("skill_type", "expected"), [("discrete", 0), ("sphere", [1, 0, 0]), ("cube", [0, 0, 0])])
def test_a_vector_without_a_direction_gives_a_skill(skill_type, expected):
    space = make_skill_space(skill_type, 3, 3)
    if skill_type == "sphere":
        expected = space.vectors[0]
    lengths = th.tensor([[0.0], [1e-20], [1e-10]])
    skills = space.along(lengths * th.tensor([[0.0, 0.6, 0.8]]))
    assert skills[0].numpy() == pytest.approx(expected)
    if skill_type == "sphere":
        assert skills[1].numpy() == pytest.approx(expected) and skills[2].tolist() == pytest.approx([0, 0.6, 0.8])


@with_clusters
def test_a_single_state_has_a_single_cluster(method):
    model = make_small(method)
    clusters = model.predict_clusters(OBS)
    assert clusters.shape == (4,)
    for row, cluster in zip(OBS, clusters, strict=True):
        single = model.predict_clusters(row)
        assert np.shape(single) == () and single == cluster and model.predict(row, skill=single)[0].shape == (1,)


def test_numbers_that_do_not_fit_each_other_are_refused():
    with pytest.raises(ValueError, match="3 observations and 2 goals"):
        make_small(METRA).goal_skill(OBS[:3], GOALS[:2])


class Pairs(gym.ObservationWrapper):
    """Pendulum-v1 with observations in a dictionary."""

    observation_space = gym.spaces.Dict({"a": gym.spaces.Box(-9, 9, (1,)), "b": gym.spaces.Box(-9, 9, (2,))})

    def observation(self, observation):
        return {"a": observation[..., :1], "b": observation[..., 1:]}


def test_observations_may_be_dictionaries():
    """Vectors of states, as rollouts keep them, are as good."""
    env = Pairs(gym.make("Pendulum-v1"))
    model, (obs, goals) = make_small(METRA, env), map(env.observation, (OBS, GOALS))
    skills = model.goal_skill(obs, goals)
    assert (model.goal_skill(OBS, GOALS) == skills).all() and skills.shape == (4, 2)
    single = model.goal_skill(env.observation(OBS[2]), env.observation(GOALS[2]))
    assert single.shape == (2,) and single == pytest.approx(skills[2], abs=1e-5)
