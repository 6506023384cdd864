"""The layout of observations with a skill."""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim

from sb3_cesd.common.observations import (
    plain_space,
    skill_observation_space,
    to_features,
    to_states,
)
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills

BOX = spaces.Box(np.array([-1, -2], np.float32), np.array([3, np.inf], np.float32))
IMAGE = spaces.Box(0, 255, (3, 40, 40), np.uint8)
MATRIX = spaces.Box(-1, 1, (2, 3), np.float64)
DICT = spaces.Dict({"arm": MATRIX, "camera": IMAGE, "place": BOX})
SPACES = [BOX, IMAGE, MATRIX, DICT]


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("skill_space", [DiscreteSkills(4), SphereSkills(3)], ids=repr)
def test_spaces_with_a_skill_and_back(space, skill_space):
    with_skill = skill_observation_space(space, skill_space)
    entries = dict(space.spaces) if isinstance(space, spaces.Dict) else {"observation": space}
    assert dict(with_skill.spaces) == {**entries, "skill": skill_space.box}
    assert plain_space(with_skill) == space


def test_a_dictionary_that_has_a_key_observation_stays_one():
    space = spaces.Dict({"observation": BOX, "goal": BOX})
    assert plain_space(skill_observation_space(space, DiscreteSkills(4))) == space


def test_states_are_flat_numbers_of_all_entries_in_their_order():
    rng = np.random.default_rng(0)
    image = th.as_tensor(rng.integers(0, 256, (5, 3, 40, 40), np.uint8))
    matrix, box = th.randn(5, 2, 3), th.randn(5, 2)
    states = to_states({"place": box, "arm": matrix, "camera": image}, DICT)
    # Images as SB3 scales them; in the order of the space, whatever that of the observation
    expected = th.cat([matrix.flatten(1), image.flatten(1) / 255, box], dim=1)
    th.testing.assert_close(states, expected)
    assert states.shape == (5, get_flattened_obs_dim(DICT)) == (5, 6 + 3 * 40 * 40 + 2)
    assert to_states(box, BOX) is box, "vectors stay as they are"
    assert to_states(matrix, MATRIX).shape == (5, 6)


def test_features_are_floating_point_and_images_are_scaled_on_demand():
    image = th.full((2, 3, 40, 40), 255, dtype=th.uint8)
    assert (to_features(image, IMAGE) == 1).all()
    unscaled = to_features({"camera": image}, spaces.Dict({"camera": IMAGE}), normalize_images=False)["camera"]
    assert (unscaled == 255).all() and unscaled.is_floating_point()
    doubles = th.zeros(2, 2, dtype=th.float64)
    assert to_features(doubles, BOX) is doubles, "nor is precision lost"
    assert to_features(th.ones(2, 2, dtype=th.int64), BOX).dtype == th.float32
