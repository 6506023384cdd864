"""What a training takes, measured small."""

import pytest
from scripts import call
from small import small_reward

from sb3_cesd import METHODS
from sb3_cesd.presets import Preset


@pytest.fixture
def costs(monkeypatch):
    import costs

    monkeypatch.setattr(costs, "N_STEPS", 40)
    monkeypatch.setattr(costs, "ROOM", 100)
    return costs


@pytest.mark.parametrize("method", ["cesd", "diayn"])
def test_costs(costs, method, monkeypatch):
    networks = {"policy_kwargs": {"net_arch": {"pi": [16], "qf": [16, 256]}}, "batch_size": 32, "n_skills": 4, "train_freq": 4}
    networks["intrinsic_kwargs"] = small_reward(METHODS[method].reward_class)
    small = Preset({**networks, "buffer_size": 1000, "learning_starts": 200}, n_timesteps=1000, n_envs=2)
    monkeypatch.setattr(costs, "preset", lambda *_: small)
    cost = costs.measure(method, "laptop", "Pendulum-v1", n_updates=2)
    # CeSD costs more once it is constrained, and all its heads are saved then
    assert len(cost.updates) == len(cost.files) == (2 if method == "cesd" else 1)
    assert cost.files == sorted(cost.files) and (method != "cesd" or cost.files[1] > 1.3 * cost.files[0])
    # (1000 - 200) / 4 updates of 1 for each of 2 environments
    exploring = 200 * cost.updates[0] + 1000 * cost.step
    assert cost.total == pytest.approx(exploring, rel=1e-6) if method == "diayn" else cost.total > 0
    buffer = METHODS[method]("MlpPolicy", "Pendulum-v1", device="cpu", **small).replay_buffer
    assert 0.8 * buffer.nbytes < cost.buffer < 1.3 * buffer.nbytes


def test_table(costs, monkeypatch, capsys):
    cost = costs.Cost(0.0005, [0.018, 0.037], 7200.0, 26_000_000, [7_000_000, 13_000_000])
    monkeypatch.setattr(costs, "measure", lambda *_: cost)
    monkeypatch.setattr("sys.argv", ["costs.py", "--trainings", "cesd/laptop/Walker-v0"])
    monkeypatch.setattr(costs.th, "set_num_threads", lambda n_threads: None)
    costs.main()
    row = "| cesd, laptop, Walker-v0 | 0.5 ms | 18 ms, then 37 ms | 2.0 hours | 26 MB | 7.0 MB, then 13 MB |"
    assert capsys.readouterr().out.splitlines()[-1] == row


@pytest.mark.parametrize("training", ["cesd", "ppo/laptop/Walker-v0", "cesd/huge/Walker-v0", "cesd/laptop/"])
def test_unknown_trainings(costs, training, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["costs.py", "--trainings", training])
    with pytest.raises(SystemExit):
        costs.main()
    assert f"--trainings '{training}': pass such as cesd/laptop/Walker-v0, with a method of cesd" in capsys.readouterr().err


def test_unknown_environments(costs, monkeypatch, capsys):
    monkeypatch.setattr(costs, "measure", lambda *_: pytest.fail("a training was measured"))
    monkeypatch.setattr("sys.argv", ["costs.py", "--trainings", "cesd/laptop/Walker-v0", "cesd/laptop/Nowhere-v0"])
    with pytest.raises(SystemExit):
        costs.main()
    assert "--trainings 'cesd/laptop/Nowhere-v0': Environment `Nowhere` doesn't exist." in capsys.readouterr().err


@pytest.mark.slow
def test_checkpoint_costs_in_small(tmp_path):
    folder = tmp_path / "checkpoints"
    result = call("checkpoint_costs", "--folder", folder, "--n-transitions", 3000, "--n-new", 100)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    names = ["Replay buffer", "first", "full, next", "full, next", "resume", "save_replay_buffer"]
    assert [line.split(":")[0] for line in lines] == names and not folder.exists()
