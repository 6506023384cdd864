"""Skills that are vectors, from pre-training to a task."""

import numpy as np
import pytest
from small import make_small
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import APT, CIC, DADS

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)
#: Methods with the skills of their paper, and on the sphere
KINDS = [(DADS, "cube", 16), (CIC, "unit_cube", 64), (APT, "sphere", 2)]
every_kind = pytest.mark.parametrize(("method", "skill_type", "dim"), KINDS)


def make(method, skill_type, dim, env="Pendulum-v1", **kwargs):
    return make_small(method, env, skill_type=skill_type, skill_dim=dim, skill_duration=7, **kwargs)


def some_vector(model, seed=3):
    return model.skill_space.draw(1, np.random.default_rng(seed))[0]


def test_published_skills_are_the_defaults():
    for method, skill_type, dim in KINDS[:2]:
        model = make_small(method)
        assert (model.skill_type, model.skill_dim, model.skill_space.dim) == (skill_type, dim, dim)
        assert make_small(method, skill_type="discrete").skill_space.discrete


@every_kind
def test_predictions_follow_a_vector(method, skill_type, dim):
    model = make(method, skill_type, dim).learn(60)
    first, second = some_vector(model, 1), some_vector(model, 2)
    actions = model.predict(OBS, skill=first)[0]
    assert actions.shape == (2, 1) and (actions != model.predict(OBS, skill=second)[0]).all()
    # As a list, as one per observation, and in the observation
    both = model.predict(OBS, skill=np.stack([first, second]))[0]
    assert (model.predict(OBS, skill=first.tolist())[0] == actions).all()
    np.testing.assert_allclose(both, [actions[0], model.predict(OBS, skill=second)[0][1]], atol=1e-6)
    assert (model.predict({"observation": OBS, "skill": np.stack([first, second])})[0] == both).all()
    assert model.predict(OBS[0], skill=first)[0] == pytest.approx(actions[0], abs=1e-6)
    # An index stands for a vector
    assert (model.predict(OBS, skill=2)[0] == model.predict(OBS, skill=model.skill_space.vectors[2])[0]).all()


@every_kind
def test_a_vector_is_fixed_everywhere(method, skill_type, dim, tmp_path):
    model = make(method, skill_type, dim).learn(60)
    vector = some_vector(model)
    model.set_skill(vector)
    assert model.skill == model.policy.skill == vector.tolist()
    for starts in (None, np.ones(2, bool)):
        assert (model.predict(OBS, episode_start=starts)[0] == model.predict(OBS, skill=vector)[0]).all()
    assert (model.env.reset()["skill"] == vector).all()
    model.learn(20, reset_num_timesteps=False)
    assert (model.replay_buffer.skills[60:80, 0] == vector).all()
    model.save(tmp_path / "model")
    loaded = method.load(tmp_path / "model", make_vec_env("Pendulum-v1", 2), device="cpu")
    assert loaded.skill == vector.tolist() and (loaded.env.reset()["skill"] == vector).all()
    model.policy.save(tmp_path / "policy")
    policy = type(model.policy).load(tmp_path / "policy")
    assert (policy.predict(OBS)[0] == model.predict(OBS, skill=vector)[0]).all()
    model.set_skill(None)
    assert len(np.unique(model.learn(40, reset_num_timesteps=False).replay_buffer.skills[80:120, 0], axis=0)) > 3
