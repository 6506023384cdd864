"""Means of what updates log, kept on their device."""

import pytest
import torch as th
from stable_baselines3.common.logger import Logger

from sb3_cesd.common.logging import MeanLogs

NAN = float("nan")


def flushed(logs):
    logger = Logger(None, [])
    logs.flush(logger)
    return dict(logger.name_to_value)


def update(loss, shares=(0.25, 0.75), **others):
    return {"loss": th.tensor(loss), "share": th.tensor(shares), **others}


def test_means_over_updates_then_anew():
    logs = MeanLogs()
    logs.add(update(1.0))
    logs.add(update(3.0, (0.75, 0.25)))
    assert flushed(logs) == {"loss": 2.0, "share_00": 0.5, "share_01": 0.5}
    assert flushed(logs) == {}
    logs.add(update(7.0))
    assert flushed(logs)["loss"] == 7.0


def test_a_value_that_is_not_finite_is_left_out_as_a_whole_and_others_are_not():
    logs = MeanLogs()
    logs.add(update(1.0))
    logs.add(update(NAN, (1.0, 0.0)))
    logs.add(update(2.0, (0.0, float("inf"))))
    assert flushed(logs) == {"loss": 1.5, "share_00": 0.625, "share_01": 0.375}
    logs.add(update(NAN))
    assert set(flushed(logs)) == {"share_00", "share_01"}


def test_values_that_are_not_always_logged_have_means_of_their_own():
    logs = MeanLogs()
    logs.add({})
    logs.add(update(1.0))
    logs.add(update(3.0, actor_loss=th.tensor(5)))
    assert flushed(logs) == {"loss": 2.0, "share_00": 0.25, "share_01": 0.75, "actor_loss": 5.0}


@pytest.mark.parametrize("n_before", [1, 2, 3])
def test_another_instance_continues_to_the_last_bit(n_before):
    losses = th.randn(4, generator=th.Generator().manual_seed(0)).tolist()
    whole, first, second = MeanLogs(), MeanLogs(), MeanLogs()
    for loss in losses:
        whole.add(update(loss))
    for loss in losses[:n_before]:
        first.add(update(loss))
    second.set_state(first.get_state())
    for loss in losses[n_before:]:
        second.add(update(loss))
    assert flushed(second) == flushed(whole)


def test_what_was_carried_is_written_without_further_updates():
    first, second = MeanLogs(), MeanLogs()
    first.add(update(4.0))
    second.set_state(first.get_state())
    again = MeanLogs()
    again.set_state(second.get_state())
    assert flushed(again) == flushed(first) and flushed(again) == {}
