"""Hyperparameters of a run that starts from a saved model."""

from types import SimpleNamespace

import pytest
import torch as th
import yaml
from small import make_small

from sb3_cesd import DIAYN, CeSD
from sb3_cesd.zoo.without_fixed import keep_values, tell_what_is_kept, values_of_model, without_fixed


@pytest.fixture
def path(tmp_path):
    make_small(CeSD, intrinsic_kwargs={"encoder": "contrastive", "encoder_kwargs": {"net_arch": [8]}}).save(tmp_path / "model")
    return tmp_path / "model.zip"


ENTRY = {
    "n_skills": 16,
    "batch_size": 64,
    "intrinsic_kwargs": {"encoder_kwargs": {"net_arch": [256]}, "alpha": 3.0},
}


def test_what_the_model_keeps_is_left_out(path, capsys):
    kept = without_fixed(CeSD, ENTRY, {"batch_size": 64})
    assert kept == {"batch_size": 64, "intrinsic_kwargs": {"alpha": 3.0}}
    CeSD.load(path, device="cpu", **kept)
    tell_what_is_kept(CeSD, path, ENTRY, {"batch_size": 64})
    told = "n_skills=4, intrinsic_kwargs.encoder_kwargs={'net_arch': [8]}"
    assert capsys.readouterr().out == f"Kept from the model, instead of the values of the yml file: {told}\n"


def test_what_is_as_in_the_model_is_not_worth_a_word(path, capsys):
    assert without_fixed(CeSD, {"n_skills": 4, "ent_coef": None}, {}) == {}
    tell_what_is_kept(CeSD, path, {"n_skills": 4, "ent_coef": None}, {})
    assert capsys.readouterr().out == ""


def test_what_the_command_line_says_is_left_to_be_checked(path):
    given = {"n_skills": 16, "intrinsic_kwargs": {"encoder_kwargs": {"net_arch": [256]}}}
    kept = without_fixed(CeSD, ENTRY, given)
    assert kept == ENTRY
    with pytest.raises(ValueError, match=r"n_skills=16 does not fit .*: pass n_skills=4 or leave it out"):
        CeSD.load(path, device="cpu", **kept)


def test_a_reward_whose_arguments_all_shape_networks():
    kept = without_fixed(DIAYN, {"intrinsic_kwargs": {"net_arch": [256], "scale": 2.0}}, {})
    assert kept == {"intrinsic_kwargs": {}}


def written(model, entry, given):
    """What the ``config.yml`` of a run from a model says."""
    manager, saved = SimpleNamespace(algo="cesd", values_of_model=values_of_model(model, given)), []
    keep_values(lambda self, saved_hyperparams: saved.append(dict(saved_hyperparams)))(manager, {**entry, **given})
    return yaml.unsafe_load(yaml.dump(saved[0]))


def test_the_file_of_a_run_has_the_values_of_the_model(path):
    model = CeSD.load(path, device="cpu", **without_fixed(CeSD, ENTRY, {}))
    assert written(model, ENTRY, {}) == {
        "n_skills": 4,
        "batch_size": 64,
        "policy_kwargs": {"net_arch": [16, 16]},
        "intrinsic_kwargs": {"encoder": "contrastive", "encoder_kwargs": {"net_arch": [8]}, "alpha": 3.0},
    }
    # Those that are defaults, where the entry says something else
    defaults = written(make_small(CeSD, n_skills=16), {"n_skills": 8, "ent_coef": "auto"}, {})
    assert defaults["n_skills"] == 16 and defaults["ent_coef"] is None and "skill_dim" not in defaults


def test_the_file_of_a_run_has_what_the_command_line_says(path):
    """A task does not use the rewards of skills, but a resumed run is given them again."""
    given = {"intrinsic_kwargs": {"alpha": 5.0}}
    task = CeSD.from_pretrained(trained(path), "Pendulum-v1", device="cpu")
    assert "alpha" not in task.intrinsic_kwargs
    assert written(task, ENTRY, given)["intrinsic_kwargs"] == {
        "encoder": "contrastive",
        "encoder_kwargs": {"net_arch": [8]},
        "alpha": 5.0,
    }


def trained(path):
    """Let a saved model learn."""
    model = CeSD.load(path, "Pendulum-v1", device="cpu").learn(60)
    model.save(path)
    return path


def test_the_file_of_a_run_names_classes_that_can_be_imported_and_no_others():
    kwargs = {"net_arch": [8], "activation_fn": th.nn.ELU, "optimizer_kwargs": {"eps": 1e-5}}
    assert written(make_small(CeSD, policy_kwargs=kwargs), {}, {})["policy_kwargs"] == kwargs

    class Own(th.nn.ELU):
        pass

    kwargs["activation_fn"] = Own
    assert "activation_fn" not in written(make_small(CeSD, policy_kwargs=kwargs), {}, {})["policy_kwargs"]
