"""Models to fine-tune."""

import pytest
from tuning import saved


@pytest.fixture
def finetune(pretrained):
    """Make a model to fine-tune of the pre-trained one."""

    def make(env="Pendulum-v1", seed=3, model=pretrained, **kwargs):
        kwargs = {"device": "cpu", "learning_starts": 40, **kwargs}
        return type(model).from_pretrained(saved(model), env, seed=seed, **kwargs)

    return make


@pytest.fixture
def pretrained(make_model):
    return make_model(constraint_kwargs={"start": 0.0}).learn(100)
