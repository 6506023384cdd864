"""Hyperparameters of a run that starts from a saved model."""

import pytest
from small import make_small

from sb3_cesd import DIAYN, CeSD
from sb3_cesd.zoo.without_fixed import tell_what_is_kept, without_fixed


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
