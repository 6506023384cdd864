"""Variants of a method, and the backbone alone."""

import numpy as np
import pytest
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from tuning import saved

from sb3_cesd import DIAYN, SkillDDPG

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


class Variant(DIAYN):
    """A method that is a variant of another one."""

    defaults = {"batch_size": 16}  # noqa: RUF012


class Further(Variant):
    pass


@pytest.mark.parametrize("saved_by", [DIAYN, Variant, Further])
@pytest.mark.parametrize("loaded_by", [DIAYN, Variant, Further])
def test_variants_of_a_method_load_each_other(saved_by, loaded_by):
    model = make_small(saved_by).learn(60)
    loaded = loaded_by.load(saved(model), make_vec_env("Pendulum-v1"), device="cpu")
    assert (
        type(loaded) is loaded_by
        and (loaded.predict(OBS, skill=2, deterministic=True)[0] == model.predict(OBS, skill=2, deterministic=True)[0]).all()
    )
    assert loaded.learn(60)._n_updates > 0
    task = loaded_by.from_pretrained(saved(model), "Pendulum-v1", skill=1, learning_starts=40, device="cpu").learn(60)
    assert task._n_updates > 0 and task.batch_size == model.batch_size == 32


def test_the_backbone_alone_learns_tasks_only():
    kwargs = {
        "learning_starts": 40,
        "batch_size": 32,
        "buffer_size": 100,
        "device": "cpu",
        "policy_kwargs": {"net_arch": [16]},
    }
    model = SkillDDPG("MlpPolicy", "Pendulum-v1", reward="extrinsic", **kwargs).learn(60)
    assert (
        SkillDDPG.load(saved(model), device="cpu").predict(OBS, deterministic=True)[0]
        == model.predict(OBS, deterministic=True)[0]
    ).all()
    with pytest.raises(ValueError, match="load it with the class"):
        DIAYN.load(saved(model))
    with pytest.raises(ValueError, match="extrinsic"):
        SkillDDPG("MlpPolicy", "Pendulum-v1")
