import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_everything_is_measured_in_small(tmp_path):
    command = [
        sys.executable, str(FOLDER / "speed.py"), "--repeats", "1", "--threads", "1", "--sizes", "small", "--n-envs", "2",
        "--env-steps", "20", "--training-steps", "20", "--n-skills", "4", "8", "--batch-sizes", "64", "--width", "16",
        "--methods", "rnd", "--output", str(tmp_path),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stderr
    assert "| rnd | " in (tmp_path / "methods.md").read_text()
    figures = pd.read_csv(tmp_path / "speed.csv")
    assert set(figures.part) == {"update", "breakdown", "envs", "training", "scaling", "memory"}
    assert (figures.value > 0).all() and (figures.ratio > 0).all()
    assert (figures.ratio[figures.variant == figures.reference] == 1).all()
    buffers = figures[figures.setting == "quadruped, 1000000 transitions"].set_index("variant").value
    assert buffers["SkillReplayBuffer"] < 0.5 * buffers["SB3's NStepReplayBuffer with one-hots"]
    breakdown = figures[figures.setting == "quadruped, small, routed"].set_index("variant").value
    assert breakdown["all of these"] == pytest.approx(breakdown.drop("all of these").sum()) and len(breakdown) == 8
    training = figures[figures.part == "training"].set_index("variant").value
    mixed = 0.8 / training["CeSD, exploring"] + 0.2 / training["CeSD, constrained"]
    assert 1 / training["CeSD"] == pytest.approx(mixed)
    assert (tmp_path / "speed_cpu.png").stat().st_size > 10_000
    table = (tmp_path / "speed.md").read_text()
    assert "default, exploring" in table and "batch of 2" in table and "cuda_graph" not in table

    # Another part keeps the others
    again = [*command[:2], "--parts", "scaling", *command[2:]]
    assert subprocess.run(again, capture_output=True, timeout=200).returncode == 0
    after = pd.read_csv(tmp_path / "speed.csv")
    assert len(after) == len(figures)
    assert (after[after.part == "envs"].value == figures[figures.part == "envs"].value).all()


@pytest.mark.slow
@pytest.mark.parametrize("size", ["laptop", "published"])
def test_updates_batches_and_networks_are_equal(size):
    from speed_training import make_models

    models = make_models("Walker-v0", size, 500)
    width = {"laptop": 256, "published": 1024}[size]
    for model in models.values():
        model.learn(302, log_interval=10**9)
    assert {model._n_updates for model in models.values()} == {1}
    assert {model.batch_size for model in models.values()} == {width}
    for name, model in models.items():
        shapes = [weight.shape[0] for weight in model.actor.state_dict().values() if weight.ndim == 2]
        assert name == "TQC" or shapes[-3:-1] == [width, width]
    on = {name: model.intrinsic.constraint.is_on(0.5, 0) for name, model in models.items() if name.startswith("CeSD")}
    assert on == {"CeSD, exploring": False, "CeSD, constrained": True}


def test_environments_are_compared_with_single_ones():
    from speed_envs import measure

    figures = pd.DataFrame(measure("Walker-v0", [2], [1, 2], repeats=1, n_steps=40))
    forms = list(dict.fromkeys(zip(figures.variant, figures.threads, strict=True)))
    assert forms == [("single", 1), ("batch of 2", 1), ("batch of 2", 2)]
    single = figures[figures.variant == "single"].set_index("unit").value
    for row in figures.itertuples():
        gain = row.value / single[row.unit]
        assert row.ratio == pytest.approx(gain if row.unit == "steps/s" else 1 / gain)
    assert figures.value[figures.unit == "us of CPU a step"].between(10, 1e5).all()
    assert (figures.value[figures.unit == "ms of CPU a start"] > 0).all()


def test_dense_form_has_the_losses_of_the_routed_one():
    import torch as th
    from speed_update import FORMS, make_model

    losses = {}
    for name in ("routed", "dense"):
        model = make_model(FORMS[name], "walker", "cpu", n_skills=4, batch_size=64, width=16)
        np.random.seed(0)
        th.manual_seed(0)
        batch = model.intrinsic.relabel(model.replay_buffer.sample(64))
        losses[name] = [model.critic_loss(batch).item(), model.actor_loss(batch).item()]
    assert losses["dense"] == pytest.approx(losses["routed"], rel=1e-5) and losses["routed"][0] > 0


@pytest.mark.parametrize("name", ["routed", "dense", "released"])
def test_every_form_learns(name):
    from speed_update import FORMS, make_model

    model = make_model(FORMS[name], "walker", "cpu", n_skills=4, batch_size=64, width=16)
    modules = {"actor": model.actor, "critic": model.critic, "target": model.critic_target, "reward": model.intrinsic}
    before = {key: [value.clone() for value in module.state_dict().values()] for key, module in modules.items()}
    model.train(gradient_steps=1, batch_size=64)
    for key, module in modules.items():
        pairs = zip(before[key], module.state_dict().values(), strict=True)
        assert any((old != new).any() for old, new in pairs), key


def test_parts_of_an_update_are_those_of_the_model():
    from speed_update import FORMS, make_model, parts_of

    model = make_model(FORMS["default, constrained"], "walker", "cpu", n_skills=4, batch_size=64, width=16)
    parts = parts_of(model)
    assert model.intrinsic.is_constrained
    changed = {
        "encoder": model.intrinsic.encoder,
        "optimizers of both, Polyak": model.critic_target,
        "prototypes": model.intrinsic.prototypes,
    }
    for name, part in parts.items():
        before = {key: [value.clone() for value in module.parameters()] for key, module in changed.items()}
        part()
        for key, module in changed.items():
            is_other = any((old != new).any() for old, new in zip(before[key], module.parameters(), strict=True))
            assert is_other == (key == name), f"{key} in part {name}"


@pytest.mark.parametrize(
    ("variant", "n_batches"), [("cesd, exploring", 1), ("cesd, constrained", 1), ("becl", 3), ("metra", 1)]
)
def test_parts_of_a_method_are_what_it_adds(variant, n_batches):
    from small import small_reward
    from speed_methods import make_model, own_arithmetic, variants

    from sb3_cesd import METHODS

    name, overrides = variants([variant.split(",")[0]])[variant]
    sizes = {
        "batch_size": 32,
        "policy_kwargs": {"net_arch": [16]},
        "intrinsic_kwargs": small_reward(METHODS[name].reward_class),
    }
    model = make_model(name, overrides, "walker", "small", **sizes)
    backbone = make_model(name, overrides, "walker", "small", "extrinsic", **sizes)
    assert backbone.batch_size == 32 and not list(backbone.intrinsic.parameters())
    assert [layer.shape for layer in backbone.actor.parameters()] == [layer.shape for layer in model.actor.parameters()]
    model.train(gradient_steps=1, batch_size=32)
    calls, more_pairs = [], []
    critic_loss = backbone.critic_loss
    backbone.critic_loss = lambda batch: more_pairs.append(len(batch.rewards)) or critic_loss(batch)
    values = []
    for network in getattr(backbone.critic, "shared_networks", ()):
        network.register_forward_hook(lambda _, inputs, __: values.append(len(inputs[0])))
    update, relabel = model.intrinsic.update, model.intrinsic.relabel
    model.intrinsic.update = lambda batch: calls.append(("update", len(batch.rewards))) or update(batch)
    model.intrinsic.relabel = lambda batch: calls.append(("relabel", len(batch.rewards))) or relabel(batch)
    modules = {"policy": model.policy, "reward": model.intrinsic}
    before = {key: [value.clone() for value in module.parameters()] for key, module in modules.items()}
    parts = own_arithmetic(model, backbone)
    calls.clear()
    values.clear()
    parts()
    assert calls == [("update", 32)] * n_batches + [("relabel", 32)]
    if variant == "cesd, constrained":  # its cluster, two drawn at random, and its skill where that is another
        assert len(more_pairs) == 1 and 2 * 32 <= more_pairs[0] <= 3 * 32
        assert values == [more_pairs[0]] * 2 + [more_pairs[0] + 32] * 2 + [32] * 2, "two critics: pairs more, heads, actor"
        assert any(value.grad is not None and value.grad.any() for value in backbone.critic.parameters())
    else:
        assert not more_pairs
    for key, module in modules.items():
        changed = any((old != new).any() for old, new in zip(before[key], module.parameters(), strict=True))
        assert changed == (key == "reward")


def test_methods_are_measured_in_small(tmp_path, monkeypatch, capsys):
    import speed
    import speed_methods

    of_method = speed_methods.measure
    sizes = {"batch_size": 32, "policy_kwargs": {"net_arch": [16]}, "intrinsic_kwargs": {"net_arch": [16]}}
    monkeypatch.setattr(speed_methods, "measure", lambda *arguments: of_method(*arguments, **sizes))
    options = ["--parts", "methods", "--methods", "diayn", "icm", "--sizes", "small", "--repeats", "2", "--robot", "walker"]
    monkeypatch.setattr("sys.argv", ["speed.py", *options, "--output", str(tmp_path)])
    speed.main()
    text = (tmp_path / "methods.md").read_text()
    assert text.strip() in capsys.readouterr().out and "--methods diayn icm" in text and "'torch': " in text
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")][2:]
    assert [row[0] for row in rows] == ["diayn", "icm"] and all(float(cell.split()[0]) > 0 for row in rows for cell in row[1:])
    assert [file.name for file in tmp_path.iterdir()] == ["methods.md"], "figures of other parts stay what they are"


def test_ratio_of_a_method_by_hand():
    from speed_methods import Times, markdown, variants

    times = Times(np.array([3.0, 4.0, 9.0]), np.array([1.0, 1.0, 2.0]), np.array([1.0, 3.0, 1.0]))
    assert times.ratio == 4.0 / (1.0 + 1.0) and times.quartiles == (1.25, 2.25)
    row = "| apt | 4e+03 ms | 1e+03 ms | 1e+03 ms | 2.00 (1.25 - 2.25) |"
    assert markdown({"apt": times}).splitlines()[-1] == row
    assert list(variants(["apt", "cesd"])) == ["apt", "cesd, exploring", "cesd, constrained"]


def compare(*arguments):
    command = [sys.executable, str(FOLDER / "compare_commits.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_two_checkouts_take_turns():
    result = compare(FOLDER.parent, "--methods", "CeSD, constrained", "APT", "--rounds", "2", "--updates", "1")
    assert result.returncode == 0, result.stderr
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in result.stdout.splitlines()[-2:]]
    assert [row[:2] for row in rows] == [["small", "CeSD, constrained"], ["small", "APT"]]
    assert all(float(row[2]) > 0 and float(row[3]) > 0 for row in rows)


def test_a_folder_without_the_package_is_no_checkout(tmp_path):
    result = compare(tmp_path, "--methods", "APT")
    assert result.returncode != 0 and f"{tmp_path} contains no sb3_cesd: pass the root of a clone" in result.stderr
    assert "pass the root of a clone" in result.stderr
