"""The refusals that are listed, misspelt names, and what stays as it was."""

import io
import re

import numpy as np
import pytest
from cases import CASES
from outcomes import REMEDY
from targets import NO_TARGETS, TARGETS, make, pendulum, saved

import sb3_cesd
from sb3_cesd import CeSD, checkpoints, envs, show
from sb3_cesd.common.allowed import ALLOWED
from sb3_cesd.common.rules import shown


def name(case):
    """The same in each process: pytest-xdist compares names, and functions are shown with their address."""
    return f"{case.owner}-{case.argument}-{re.sub(' at 0x[0-9a-f]+', '', shown(case.value))}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_refused(case):
    with pytest.raises(ValueError, match=case.message) as refusal:
        TARGETS[case.owner][1](**{case.argument: case.value})
    assert REMEDY.search(str(refusal.value))


@pytest.mark.parametrize("name", ["gama", "exploration", "alpha", "n_envs", "num_timesteps"])
def test_misspelt_names_are_refused_by_loaders_with_the_known_ones(name):
    for loader, load in (("load", CeSD.load), ("from_pretrained", CeSD.from_pretrained)):
        with pytest.raises(ValueError, match=rf"{loader}\(\) has no '{name}': use some of .*exploration_noise, gamma"):
            load(io.BytesIO(saved()), env=pendulum(), device="cpu", **{name: 1})


def test_plain_numbers_stand_in_messages():
    with pytest.raises(ValueError, match=r"^n_steps=-7 must"):
        make(CeSD, n_steps=np.int64(-7))
    assert shown([np.float32(0.5), (np.int64(3),)]) == "[0.5, (3,)]"


def test_numbers_of_numpy_are_as_good(tmp_path):
    arguments = {"n_skills": np.int64(4), "batch_size": np.int32(16), "seed": np.int64(1), "learning_rate": np.float32(0.5)}
    make(CeSD, train_freq=np.int64(2), skill_duration=np.int64(5), **arguments).save(tmp_path / "model.zip")
    loaded = CeSD.load(tmp_path / "model.zip", env=pendulum(), seed=np.int64(2), device="cpu")
    assert (loaded.n_skills, loaded.seed, loaded.skill_duration) == (4, 2, 5)


def test_nothing_is_written_if_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match="gamma"):
        make(CeSD, gamma="x", tensorboard_log=str(tmp_path / "logs"))
    assert not list(tmp_path.iterdir())


def test_skill_is_kept_if_another_is_refused():
    model = make(CeSD)
    model.set_skill(2)
    with pytest.raises(ValueError, match="Unknown skill"):
        model.set_skill([[1], [2, 3]])
    assert model.skill == model.policy.skill == 2


def test_every_public_name_is_tried():
    """Or stands in a list that says why not, which names nothing else."""
    public = {name for module in (sb3_cesd, checkpoints, envs, show) for name in module.__all__}
    assert public - set(NO_TARGETS) <= set(TARGETS)
    assert set(NO_TARGETS) <= public - set(TARGETS)


def test_every_rule_belongs_to_an_argument():
    """A misspelt name in the table would check nothing."""
    import inspect

    rules_of = ALLOWED
    for owner in rules_of.keys() & TARGETS.keys():
        missing = set(rules_of[owner]) - set(inspect.signature(TARGETS[owner][0]).parameters)
        # The clock calls it duration
        assert missing <= {"skill_duration"}, owner
    not_called = {"DisplacementReward", "prototype_kwargs"}
    assert rules_of.keys() - TARGETS.keys() == not_called


def test_what_a_module_of_environments_lacks_is_no_misspelt_id(tmp_path, monkeypatch):
    (tmp_path / "lacks_another.py").write_text("import not_installed")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="No module named 'not_installed'"):
        make(CeSD, env="lacks_another:Pendulum-v1")
    for unknown in ("not_installed:Pendulum-v1", "sb3_cesd.not_installed:Pendulum-v1"):
        with pytest.raises(ValueError, match=f"There is no environment '{unknown}' .* check its spelling"):
            make(CeSD, env=unknown)


@pytest.mark.parametrize("env", [":", ":Pendulum-v1", ".x:Pendulum-v1", "x y:Pendulum-v1"])
def test_what_is_no_module_is_not_imported(env):
    with pytest.raises(ValueError, match=r"There is no environment .* is not a module.: check its spelling, or leave the"):
        make(CeSD, env=env)
