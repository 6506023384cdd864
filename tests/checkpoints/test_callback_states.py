"""What callbacks have gathered is part of a checkpoint."""

import pytest
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EveryNTimesteps

from sb3_cesd import CeSD
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.checkpoints import resume
from sb3_cesd.checkpoints.callback_states import get_callback_states, set_callback_states
from sb3_cesd.checkpoints.folders import STATE, find_checkpoint
from sb3_cesd.common.files import dump_with_checksum, load_with_checksum
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
    assert states == [("Counter", 1), ("Other", 2), ("Counter", 3)]
    new = [Other(), Counter(), Counter(), Counter(), Silent()]
    set_callback_states(CallbackList(new), states)
    assert [each.steps for each in new[:4]] == [2, 1, 3, 0], "one that is new starts anew"
    alone = Counter()
    set_callback_states(alone, states)
    assert alone.steps == 1


@pytest.mark.parametrize("has_states", [True, False])
def test_they_go_on_from_a_checkpoint_and_anew_from_one_of_an_earlier_version(tmp_path, has_states):
    counters = Counter(), Counter()
    make_small(CeSD, MazeVecEnv("square_a", 2)).learn(60, [ResumableCheckpoint(tmp_path), counters[0]])
    file = find_checkpoint(tmp_path) / STATE
    if not has_states:
        with open(file, "rb") as saved:
            state = load_with_checksum(saved, file, "")
        del state["callbacks"]
        with open(file, "wb") as saved:
            dump_with_checksum(state, saved)
    model = resume(tmp_path, MazeVecEnv("square_a", 2), device="cpu")
    model.learn(20, [counters[1], ResumableCheckpoint(tmp_path)], reset_num_timesteps=False)
    assert (counters[0].steps, counters[1].steps) == (30, 40 if has_states else 10)
