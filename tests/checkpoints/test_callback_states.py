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
from sb3_cesd.callbacks import ResumableCheckpoint, SkillEvalCallback
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
    run = CallbackList([Silent(), Counter(1), CallbackList([Other(2)]), EveryNTimesteps(9, Counter(3))])
    states = get_callback_states(run)
    assert states == [("Counter", 1), ("Other", 2), ("EveryNTimesteps", {"last_time_trigger": 0}), ("Counter", 3)]
    new = [Other(), Counter(), Counter(), Counter(), Silent()]
    set_callback_states(CallbackList(new), states)
    assert [each.steps for each in new[:4]] == [2, 1, 3, 0], "one that is new starts anew"
    alone = Counter()
    set_callback_states(alone, states)
    assert alone.steps == 1


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


@pytest.mark.parametrize("kind", [EvalCallback, SkillEvalCallback])
def test_evaluations_go_on_with_as_many_episodes(tmp_path, kind):
    """``evaluations.npz`` holds them as one array."""

    def evaluation(n_episodes):
        return kind(MazeVecEnv("square_a", 2), n_eval_episodes=n_episodes, eval_freq=10, log_path=str(tmp_path / "log"))

    first = evaluation(16)
    make_small(CeSD, MazeVecEnv("square_a", 2)).learn(60, [first, ResumableCheckpoint(tmp_path / "checkpoints")])
    model = resume(tmp_path / "checkpoints", MazeVecEnv("square_a", 2), device="cpu")
    with pytest.raises(ValueError, match=r"had 16 episodes so far, the next ones have 8, .*: pass n_eval_episodes"):
        model.learn(40, evaluation(8), reset_num_timesteps=False)
    again = evaluation(16)
    model = resume(tmp_path / "checkpoints", MazeVecEnv("square_a", 2), device="cpu")
    model.learn(40, again, reset_num_timesteps=False)
    assert np.load(tmp_path / "log" / "evaluations.npz")["results"].shape == (5, 16)
    if kind is SkillEvalCallback:
        with pytest.raises(ValueError, match=r"had 16 episodes so far, the next ones have 18, .*or another callback"):
            make_small(CeSD, MazeVecEnv("square_a", 2), n_skills=6).learn(40, again)


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
    set_callback_states(CallbackList([new]), get_callback_states(CallbackList([old])))
    assert (new.last_best_mean_reward, new.no_improvement_evals, new.max_no_improvement_evals) == (7.0, 3, 5)
