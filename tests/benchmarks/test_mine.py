import numpy as np
import pytest


@pytest.mark.slow
def test_estimates_of_known_skills():
    from mine import mine_mutual_information

    rng = np.random.default_rng(0)
    skills = np.repeat(np.arange(4), 1500)
    for shift, expected in ((skills, np.log(4)), (0 * skills, 0.0)):
        states = rng.random((6000, 2)) + np.stack([2 * shift, 0 * shift], axis=1)
        estimate = mine_mutual_information(states, skills, n_iterations=300)
        assert estimate == pytest.approx(expected, abs=0.1)
