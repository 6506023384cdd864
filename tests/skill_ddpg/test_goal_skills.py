"""Which skill leads to a goal, and to which cluster a state belongs: what is asked, and what can't be."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from small import make_small
from stable_baselines3.common.env_util import make_vec_env

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


class Shaped(gym.ObservationWrapper):
    """Pendulum-v1 with observations of other layouts."""

    layout = "dictionary"

    def __init__(self, env):
        super().__init__(env)
        low = self.observation(np.zeros(3, np.float32))
        spaces = {name: gym.spaces.Box(-9, 9, value.shape) for name, value in low.items()} if isinstance(low, dict) else None
        self.observation_space = gym.spaces.Dict(spaces) if spaces else gym.spaces.Box(-9, 9, low.shape)

    def observation(self, observation):
        return as_layout(self.layout, observation)


class Column(Shaped):
    layout = "column"


class Row(Shaped):
    layout = "row"


def as_layout(layout, values):
    """Observations, one or several, in the layout of an environment."""
    if layout == "dictionary":
        return {"a": values[..., :1], "b": values[..., 1:]}
    return values[..., None] if layout == "column" else values[..., None, :]


@pytest.mark.parametrize("wrapper", [Shaped, Column, Row])
def test_layouts_of_observations(wrapper):
    """Vectors of states, as rollouts keep them, are as good."""
    model, layout = make_small(METRA, make_vec_env("Pendulum-v1", wrapper_class=wrapper)), wrapper.layout
    obs, goals = as_layout(layout, OBS), as_layout(layout, GOALS)
    skills = model.goal_skill(obs, goals)
    assert (model.goal_skill(OBS, GOALS) == skills).all() and skills.shape == (4, 2)
    single = model.goal_skill(as_layout(layout, OBS[2]), as_layout(layout, GOALS[2]))
    assert single.shape == (2,) and single == pytest.approx(skills[2], abs=1e-5)


def test_channels_of_images_may_come_last():
    class Image(Shaped):
        def __init__(self, env):
            gym.ObservationWrapper.__init__(self, env)
            self.observation_space = gym.spaces.Box(0, 255, (40, 36, 3), np.uint8)

        def observation(self, observation):
            return np.zeros((40, 36, 3), np.uint8)

    model = make_small(METRA, make_vec_env("Pendulum-v1", wrapper_class=Image))
    images, goals = np.random.default_rng(0).integers(256, size=(2, 4, 40, 36, 3), dtype=np.uint8)
    skills = model.goal_skill(images, goals)
    assert (model.goal_skill(images.transpose(0, 3, 1, 2), goals.transpose(0, 3, 1, 2)) == skills).all()
    assert model.goal_skill(images[0], goals[0]) == pytest.approx(skills[0], abs=1e-4)
