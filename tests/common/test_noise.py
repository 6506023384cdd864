import numpy as np
import pytest

from sb3_cesd.common.noise import unit_noise


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.85])
def test_noise_has_unit_variance_and_the_correlation(correlation):
    np.random.seed(0)
    noise = unit_noise(correlation, 3, 500)
    values = np.stack([noise() for _ in range(150)])[50:]
    assert values.shape == (100, 500, 3)
    assert values.std() == pytest.approx(1.0, abs=0.02) and values.mean() == pytest.approx(0.0, abs=0.05)
    assert np.corrcoef(values[1:].ravel(), values[:-1].ravel())[0, 1] == pytest.approx(correlation, abs=0.01)
    assert np.corrcoef(values[:, ::2].ravel(), values[:, 1::2].ravel())[0, 1] == pytest.approx(0.0, abs=0.05), (
        "each has its own"
    )


def test_white_noise_is_that_of_numpy():
    np.random.seed(3)
    noise = unit_noise(0.0, 2, 4)
    values = [noise(), noise()]
    np.random.seed(3)
    assert (np.stack(values) == np.random.normal(size=(2, 4, 2))).all()


def test_processes_start_at_zero_again():
    noise = unit_noise(0.9, 1, 2)
    before = [noise() for _ in range(100)][-1]
    noise.noise_prev[1] = 0
    np.random.seed(0)
    after = noise()
    np.random.seed(0)
    fresh = unit_noise(0.9, 1, 2)()
    assert after[1] == fresh[1] and after[0] == pytest.approx(0.9 * before[0] + fresh[0])
