"""Means of what updates log, kept on their device, and exploration noise."""

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.logger import Logger

from sb3_cesd.common.logging import MeanLogs
from sb3_cesd.common.rng import unit_noise


def flushed(logs):
    logger = Logger(None, [])
    logs.flush(logger)
    return dict(logger.name_to_value)


def test_means_over_updates_then_anew():
    logs = MeanLogs()
    logs.add({"loss": th.tensor(1.0), "share": th.tensor([0.25, 0.75])})
    logs.add({"loss": th.tensor(3.0), "share": th.tensor([0.75, 0.25])})
    # Values that are not always logged have means of their own
    logs.add({"loss": th.tensor(5.0), "other": th.tensor(7)})
    assert flushed(logs) == {"loss": 3.0, "share_00": 0.5, "share_01": 0.5, "other": 7.0}
    assert flushed(logs) == {} and logs.not_finite() == []
    logs.add({"loss": th.tensor(float("nan")), "share": th.tensor([0.0, 1.0])})
    assert logs.not_finite() == ["loss"]


@pytest.mark.parametrize("correlation", [0.0, 0.85])
def test_noise_has_unit_variance_and_the_correlation(correlation):
    np.random.seed(0)
    noise = unit_noise(correlation, 3, 500)
    values = np.stack([noise() for _ in range(150)])[50:]
    assert values.shape == (100, 500, 3) and values.std() == pytest.approx(1.0, abs=0.02)
    assert np.corrcoef(values[1:].ravel(), values[:-1].ravel())[0, 1] == pytest.approx(correlation, abs=0.01)
    last = noise()
    noise.noise_prev[1] = 0  # an episode ended there
    np.random.seed(0)
    after, _ = noise(), np.random.seed(0)
    fresh = unit_noise(correlation, 3, 500)()
    assert (after[1] == fresh[1]).all() and after[0] == pytest.approx(correlation * last[0] + fresh[0])
