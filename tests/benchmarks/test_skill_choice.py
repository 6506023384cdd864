import numpy as np
import pytest
import torch as th
from scripts import call
from small import make_small

from sb3_cesd import CeSD


def test_gain_is_a_share_of_what_a_choice_can_bring():
    from skill_choice import gain

    values = np.array([0.0, 30.0, 90.0])
    assert gain(values, np.array([2, 2])) == 1 and gain(values, np.array([0, 1, 2])) == 0
    assert gain(values, np.array([2, 1])) == pytest.approx(20 / 50) and gain(values, np.array([0])) == -40 / 50
    assert np.isnan(gain(np.zeros(3), np.array([1]))), "no skill is better"


def test_a_warm_up_is_that_of_a_task(tmp_path):
    """Without noise, against the turns of a model that learns the task in the same episode."""
    import skill_choice

    make_small(CeSD, "Walker-v0", exploration_noise=0.0).learn(60).save(tmp_path / "model.zip")
    model = CeSD.from_pretrained(
        tmp_path / "model.zip", "WalkerStand-v0", "best", learning_starts=40, device="cpu", seed=skill_choice.OF_WARM_UPS
    )
    expected = model.learn(40).skill_turns.mean_rewards()
    assert len(set(expected)) == 4
    (found,) = skill_choice.warm_up(CeSD.load(tmp_path / "model.zip", device="cpu"), "WalkerStand-v0", 40, 1)
    assert found.turns.over and found.turns.mean_rewards() == pytest.approx(expected)
    buffer = model.replay_buffer
    np.testing.assert_allclose(found.rewards, buffer.rewards[:40, 0], rtol=1e-5)
    rows, envs = np.arange(40), np.zeros(40, dtype=np.int64)
    np.testing.assert_allclose(found.states, buffer.next_observations_of(rows, envs)["observation"], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("states", [False, True])
def test_table(tmp_path, states):
    model = make_small(CeSD, "Jaco-v0").learn(60)
    if states:
        model.skill_states = th.randn(4, 10, model.obs_dim)
    model.save(tmp_path / "model.zip")
    arguments = ["--env", "Jaco-v0", "--steps", "8", "80", "--episodes", "2", "--warm-ups", "3"]
    result = call("skill_choice", tmp_path / "model.zip", *arguments)
    lines = result.stdout.splitlines()
    by = ["rewards", "states"] if states else ["rewards"]
    assert lines[0].endswith("".join(f" | by {name}, {n} steps" for n in (8, 80) for name in by) + " |"), result.stderr
    assert len(lines) == 6


@pytest.mark.slow
def test_models_that_can_not_be_compared_are_refused(tmp_path, monkeypatch, capsys):
    import skill_choice

    model = make_small(CeSD, "Walker-v0").learn(60)
    model.save(tmp_path / "model.zip")
    CeSD.from_pretrained(tmp_path / "model.zip", "WalkerRun-v0").save(tmp_path / "task.zip")
    for file, env, message in (
        ("task.zip", "Walker-v0", "task.zip has learned a task: pass the pre-trained model."),
        ("model.zip", "Quadruped-v0", "(24,)"),
    ):
        monkeypatch.setattr("sys.argv", ["skill_choice.py", str(tmp_path / file), "--env", env])
        with pytest.raises(SystemExit):
            skill_choice.main()
        assert message in capsys.readouterr().err
