import numpy as np
import pytest


def test_estimates_of_known_skills():
    from mine import mine_mutual_information

    rng = np.random.default_rng(0)
    skills = np.repeat(np.arange(4), 1500)
    for shift, expected in ((skills, np.log(4)), (0 * skills, 0.0)):
        states = rng.random((6000, 2)) + np.stack([2 * shift, 0 * shift], axis=1)
        estimate = mine_mutual_information(states, skills, n_iterations=300)
        assert estimate.mutual_information == pytest.approx(expected, abs=0.1)


@pytest.mark.slow
def test_paths_whose_skills_were_shuffled_are_memorised():
    """So an estimate means something only beside that of shuffled skills, which the benchmark computes."""
    from mine import mine_mutual_information

    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.normal(0, 0.1, (80, 51, 2)), axis=1).reshape(80, -1)
    shuffled = rng.permutation(np.repeat(np.arange(4), 20))
    assert mine_mutual_information(paths, shuffled, n_iterations=2000).mutual_information > 0.5 * np.log(4)
    with pytest.warns(UserWarning, match="above the entropy"):
        mine_mutual_information(np.eye(4), np.repeat(np.arange(2), [1, 3]), n_iterations=300, batch_size=8, window=1, seed=5)
