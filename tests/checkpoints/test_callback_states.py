"""What callbacks have gathered is part of a checkpoint."""

from typing import ClassVar

import numpy as np
import pytest
from small import make_small
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    EvalCallback,
    EveryNTimesteps,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
)

from sb3_cesd import CeSD
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.checkpoints import resume
from sb3_cesd.checkpoints.callback_states import get_callback_states, set_callback_states
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv


class Counter(BaseCallback):
    """Counts steps, and tells."""

    def __init__(self, steps=0):
        super().__init__()
        self.steps = steps

    def get_state(self):
        return self.steps

    def set_state(self, state):
        self.steps = state

    def _on_step(self):
        self.steps += 1
        return True


class Other(Counter):
    pass


class Silent(BaseCallback):
    def _on_step(self):
        return True


def test_callbacks_find_their_state_by_class_and_order():
    silent, first, other, last = Silent(), Counter(1), Other(2), Counter(3)
    interval = EveryNTimesteps(9, last)
    for n_calls, each in enumerate((silent, first, other, interval, last)):
        each.n_calls = n_calls
    states = get_callback_states(CallbackList([silent, first, CallbackList([other]), interval]))
    assert states == [
        ("Silent", 0, None),
        ("Counter", 1, 1),
        ("Other", 2, 2),
        ("EveryNTimesteps", 3, {"last_time_trigger": 0}),
        ("Counter", 4, 3),
    ]
    new = [Other(), Counter(), Counter(), Counter(), Silent()]
    set_callback_states(CallbackList(new), states, 9)
    assert [each.steps for each in new[:4]] == [2, 1, 3, 0], "one that is new starts anew"
    assert [each.n_calls for each in new] == [2, 1, 4, 9, 0], "but counts the steps of the run"
    alone = Counter()
    set_callback_states(alone, states, 9)
    assert (alone.steps, alone.n_calls) == (1, 1)


def test_they_go_on_from_a_checkpoint(tmp_path):
    counters = Counter(), Counter()
    make_small(CeSD, MazeVecEnv("square_a", 2)).learn(60, [ResumableCheckpoint(tmp_path), counters[0]])
    model = resume(tmp_path, MazeVecEnv("square_a", 2), device="cpu")
    model.learn(20, [counters[1], ResumableCheckpoint(tmp_path)], reset_num_timesteps=False)
    assert (counters[0].steps, counters[1].steps) == (30, 40)


@pytest.mark.parametrize("has_best", [True, False])
def test_evaluations_go_on(tmp_path, has_best):
    """The best model of a run that was stopped stays the best, unless it lies elsewhere."""
    folder, new_folder = tmp_path / "run", tmp_path / ("run" if has_best else "new")

    def callbacks(into):
        evaluation = EvalCallback(MazeVecEnv("square_a", 2), eval_freq=10, best_model_save_path=str(into), log_path=str(into))
        return [evaluation, ResumableCheckpoint(tmp_path / "checkpoints")]

    before, after = callbacks(folder), callbacks(new_folder)
    make_small(CeSD, MazeVecEnv("square_a", 2)).learn(60, before)
    before[0].best_mean_reward = 1e9
    before[1].write()
    best = (folder / "best_model.zip").read_bytes()
    model = resume(tmp_path / "checkpoints", MazeVecEnv("square_a", 2), device="cpu")
    model.learn(40, after, reset_num_timesteps=False)
    assert after[0].evaluations_timesteps == [20, 40, 60, 80, 100]
    assert (after[0].best_mean_reward == 1e9) == has_best
    assert (folder / "best_model.zip").read_bytes() == best and (new_folder / "best_model.zip").is_file()
    assert np.load(new_folder / "evaluations.npz")["timesteps"].tolist() == [20, 40, 60, 80, 100]


def test_a_run_does_not_go_on_with_another_reward(tmp_path):
    make_small(CeSD, MazeVecEnv("square_a", 2)).learn(60, ResumableCheckpoint(tmp_path))
    with pytest.raises(ValueError, match=r"another reward than 'extrinsic'.*: leave reward out, or .*CeSD.from_pretrained\("):
        resume(tmp_path, MazeVecEnv("square_a", 2), device="cpu", reward="extrinsic")
    assert resume(tmp_path, MazeVecEnv("square_a", 2), device="cpu", reward="intrinsic").is_resumed


def steps_at_the_end(counting, tmp_path, stops_at=None):
    """Steps after 60 that were asked for, of a run that is resumed where it stops."""
    model = make_small(CeSD, MazeVecEnv("square_a", 2, max_episode_steps=10))
    checkpoints = ResumableCheckpoint(tmp_path)
    if stops_at is None:
        return model.learn(60, [counting(), checkpoints]).num_timesteps
    model.learn(60, [counting(), checkpoints, EveryNTimesteps(stops_at, Stop(checkpoints))])
    resumed = resume(tmp_path, MazeVecEnv("square_a", 2, max_episode_steps=10), device="cpu")
    assert resumed.num_timesteps == stops_at
    return resumed.learn(60 - stops_at, [counting(), ResumableCheckpoint(tmp_path)], reset_num_timesteps=False).num_timesteps


class Stop(BaseCallback):
    """Stops a run with a checkpoint."""

    def __init__(self, checkpoints):
        super().__init__()
        self.checkpoints = checkpoints

    def _on_step(self):
        self.checkpoints.request_stop()
        return True


def test_counts_of_episodes_go_on(tmp_path):
    def counting():
        return StopTrainingOnMaxEpisodes(2)  # of each environment

    uninterrupted, resumed = steps_at_the_end(counting, tmp_path / "one"), steps_at_the_end(counting, tmp_path / "two", 24)
    assert uninterrupted == resumed == 40


def test_intervals_go_on(tmp_path):
    class Note(BaseCallback):
        steps: ClassVar[list[int]] = []

        def _on_step(self):
            self.steps.append(self.num_timesteps)
            return True

    steps_at_the_end(lambda: EveryNTimesteps(20, Note()), tmp_path, 24)
    assert Note.steps == [20, 40, 60]


def test_patience_without_a_better_model_goes_on():
    old, new = (StopTrainingOnNoModelImprovement(5) for _ in range(2))
    old.last_best_mean_reward, old.no_improvement_evals = 7.0, 3
    set_callback_states(CallbackList([new]), get_callback_states(CallbackList([old])), 0)
    assert (new.last_best_mean_reward, new.no_improvement_evals, new.max_no_improvement_evals) == (7.0, 3, 5)


def make_long():
    return make_small(CeSD, MazeVecEnv("square_a", 2, max_episode_steps=10))


def test_calls_of_callbacks_within_others_go_on(tmp_path):
    """They count events rather than steps: after a resume at the second of four, every second event is still due."""

    class Note(BaseCallback):
        calls: ClassVar[list[tuple[int, int]]] = []

        def _on_step(self):
            self.calls.append((self.num_timesteps, self.n_calls))
            return True

    steps_at_the_end(lambda: EveryNTimesteps(12, Note()), tmp_path, 24)
    assert Note.calls == [(12, 1), (24, 2), (36, 3), (48, 4), (60, 5)]


@pytest.mark.parametrize("name", ["callback_after_eval", "callback_on_new_best"])
def test_state_of_callbacks_of_an_evaluation_goes_on(name):
    (old, old_evaluation), (new, new_evaluation) = (
        (counter, EvalCallback(MazeVecEnv("square_a", 2), **{name: counter})) for counter in (Counter(), Counter())
    )
    old.steps, old.n_calls = 5, 7
    set_callback_states(new_evaluation, get_callback_states(old_evaluation), 60)
    assert (new.steps, new.n_calls) == (5, 7)


def test_the_same_callbacks_go_on_after_an_error(tmp_path):
    """A notebook has those of the run at hand, which have seen steps after the checkpoint."""

    class Fail(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 52:
                raise KeyboardInterrupt
            return True

    def callbacks(folder):
        evaluation = EvalCallback(MazeVecEnv("square_a", 2), eval_freq=10, log_path=str(folder))
        return [evaluation, ResumableCheckpoint(folder / "checkpoints", save_freq=16)]

    own = callbacks(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        make_long().learn(100, [*own, Fail()])
    model = resume(tmp_path / "checkpoints", MazeVecEnv("square_a", 2, max_episode_steps=10), device="cpu")
    assert model.num_timesteps == 48
    model.learn(52, own, reset_num_timesteps=False)
    assert own[0].evaluations_timesteps == [20, 40, 60, 80, 100]
