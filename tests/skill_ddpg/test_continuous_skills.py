"""Skills that are vectors, from pre-training to a task."""

import numpy as np
import pytest
import torch as th
from learned import differences
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from tuning import saved

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
@pytest.mark.parametrize("normalized", [False, True])
def test_learns_saves_loads_and_learns_on(method, skill_type, dim, normalized, tmp_path):
    def environments():
        env = make_vec_env("Pendulum-v1", 2)
        return VecNormalize(env) if normalized else env

    model = make(method, skill_type, dim, environments()).learn(100)
    vectors = model.replay_buffer.skills[:50]
    assert vectors.shape == (50, 2, dim) and model._n_updates > 0
    model.skill_space.check_vectors(vectors)
    assert len(np.unique(vectors.reshape(-1, dim), axis=0)) == 2 * 8, "a new one every seven steps"
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    loaded = method.load(tmp_path / "model", environments(), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer")
    assert not differences(model, loaded) and (loaded.replay_buffer.skills == model.replay_buffer.skills).all()
    vector = some_vector(model)
    assert (loaded.predict(OBS, skill=vector)[0] == model.predict(OBS, skill=vector)[0]).all()
    assert loaded.learn(40, reset_num_timesteps=False)._n_updates > model._n_updates


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


@every_kind
@pytest.mark.parametrize("warm_up", ["skills", "policy"])
@pytest.mark.parametrize("choice", ["vector", "best"])
def test_a_task_goes_on_with_one_of_them(method, skill_type, dim, choice, warm_up):
    pretrained = make(method, skill_type, dim).learn(60)
    vector = some_vector(pretrained)
    skill = {"vector": vector, "index": 2}.get(choice, choice)
    kwargs = {"warm_up": warm_up, "learning_starts": 40, "n_eval_episodes": 1, "seed": 1, "device": "cpu"}
    model = method.from_pretrained(saved(pretrained), make_vec_env("Pendulum-v1", 2), skill=skill, **kwargs)
    assert all((new == old).all() for new, old in zip(model.actor.parameters(), pretrained.actor.parameters(), strict=True))
    model.learn(60)
    followed = np.array(model.skill, np.float32)
    assert model._n_updates > 0 and (model.replay_buffer.skills[20:30] == followed).all()
    expected = {"vector": vector, "index": model.skill_space.vectors[2]}.get(choice)
    assert expected is None or (followed == expected).all()
    assert expected is not None or (model.skill_space.vectors == followed).all(axis=1).any(), "one that an index stands for"
    assert (model.intrinsic.relabel(model.replay_buffer.sample(50)).skills == th.as_tensor(followed)).all()
    loaded = method.load(saved(model), make_vec_env("Pendulum-v1", 2), device="cpu")
    assert loaded.skill == model.skill and (loaded.predict(OBS)[0] == model.predict(OBS, skill=followed)[0]).all()
    assert loaded.learn(20, reset_num_timesteps=False)._n_updates > model._n_updates
    with pytest.raises(ValueError, match="learns the task, the others do not"):
        model.set_skill(some_vector(model, 5))


@pytest.mark.parametrize(
    ("kwargs", "skill"),
    [
        ({"skill_type": "sphere", "skill_dim": 3}, [0.5, 0.0, 0.0]),
        ({"skill_type": "sphere", "skill_dim": 3}, [0.6, 0.8]),
        ({"skill_type": "cube", "skill_dim": 2}, [0.5, -1.1]),
        ({"skill_type": "unit_cube", "skill_dim": 2}, [0.5, -0.1]),
        ({"skill_type": "cube", "skill_dim": 2}, 4),
    ],
)
def test_what_is_no_skill_of_the_space(kwargs, skill):
    model = make_small(APT, **kwargs)
    for use in (lambda skill: model.predict(OBS, skill=skill), model.set_skill):
        with pytest.raises(ValueError, match="skill"):
            use(skill)
    assert model.skill is None
