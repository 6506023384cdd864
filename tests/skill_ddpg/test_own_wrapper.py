"""Environments that come with skill observations let the skills act that the model learns, or are refused."""

import copy
import warnings

import numpy as np
import pytest
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from tuning import saved

from sb3_cesd import APT, DIAYN, VecSkillObservation

VECTOR = [0.6, 0.0, -0.8]


def wrapped(skill_space=4, **kwargs):
    return VecSkillObservation(make_vec_env("Pendulum-v1"), skill_space, **kwargs)


def new(env):
    return make_small(DIAYN, env)


def another_env(env):
    model = make_small(DIAYN)
    model.set_env(env)
    return model


def load(env):
    return DIAYN.load(saved(make_small(DIAYN)), env, device="cpu")


each_way = pytest.mark.parametrize("use", [new, another_env, load])


@each_way
def test_a_skill_that_was_fixed_is_not_overruled(use):
    message = r"told to follow skill 3, the model follows all skills: leave .* and call model\.set_skill\(3\)"
    env = wrapped(skill=3)
    with pytest.raises(ValueError, match=message):
        use(env)
    assert (env.reset()["skill"].argmax(axis=1) == 3).all(), "nothing has changed"
    env = wrapped()
    env.set_skill(3)
    with pytest.raises(ValueError, match=message):
        use(copy.deepcopy(env))
    env.set_skill(None)
    assert len(np.unique(use(env).learn(200).replay_buffer.skills[:200])) > 1


def test_a_model_that_follows_the_same_skill_takes_it():
    model = make_small(DIAYN)
    model.set_skill(3)
    for follower in (model, DIAYN.load(saved(model), wrapped(skill=3), device="cpu")):
        follower.set_env(wrapped(skill=3))
        assert (follower.learn(60).replay_buffer.skills[:60] == 3).all()
        with pytest.raises(ValueError, match=r"told to follow skill 1, the model follows skill 3: .* model\.set_skill\(1\)"):
            follower.set_env(wrapped(skill=1))
        assert follower.env.own_skill == 3


def test_vectors_are_compared_as_models_keep_them():
    model = make_small(APT, skill_type="sphere", skill_dim=3)
    with pytest.raises(ValueError, match=r"told to follow skill \[0\.6.*, the model follows all skills"):
        model.set_env(wrapped(model.skill_space, skill=VECTOR))
    model.set_skill(np.array(VECTOR))
    model.set_env(wrapped(model.skill_space, skill=VECTOR))


def test_what_a_model_has_fixed_is_no_choice_of_the_user():
    """One after the other, models may learn in the same environments."""
    pretrained = make_small(DIAYN, wrapped()).learn(60)
    file, kwargs = saved(pretrained), {"warm_up": "policy", "device": "cpu"}
    for env in (pretrained.get_env(), "Pendulum-v1"):
        for skill in (1, 2):
            task = DIAYN.from_pretrained(file, env, skill=skill, **kwargs)
            assert (task.env.reset()["skill"].argmax(axis=1) == skill).all()
    pretrained.set_skill(3)
    follower = DIAYN.load(saved(pretrained), "Pendulum-v1", device="cpu")
    for env in (task.get_env(), follower.get_env()):
        model = DIAYN.load(file, env, device="cpu")
        assert len(np.unique(model.learn(200).replay_buffer.skills[:200])) > 1


def test_a_task_has_its_own_skill():
    file = saved(make_small(DIAYN).learn(60))
    model = DIAYN.from_pretrained(file, wrapped(skill=3, skill_duration=5), skill=1, learning_starts=20, device="cpu")
    assert (model.learn(60).replay_buffer.skills[20:60] == 1).all()


@each_way
def test_another_duration_is_warned_of(use):
    env = wrapped(skill_duration=7)
    with pytest.warns(UserWarning, match=r"skill_duration=7, so that skill_duration=50 of the model has no effect: pass the"):
        model = use(env)
    assert model.env.clock.duration == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        use(wrapped())
        use(make_vec_env("Pendulum-v1"))


def new_skills(model, n_timesteps):
    """Skills of the transitions that a model adds."""
    n_before = model.replay_buffer.size()
    return model.learn(n_timesteps, reset_num_timesteps=False).replay_buffer.skills[n_before:][:n_timesteps, 0]


@pytest.mark.parametrize("learns", [False, True])
def test_a_pretraining_goes_on_after_others_have_used_its_environments(learns):
    pretrained = make_small(DIAYN, skill_duration=5).learn(60)
    file = saved(pretrained)
    task = DIAYN.from_pretrained(file, pretrained.get_env(), skill=1, learning_starts=20, device="cpu")
    follower = DIAYN.load(file, pretrained.get_env(), device="cpu")
    follower.set_skill(2)
    if learns:
        assert set(new_skills(task, 40)[20:]) == {1} and set(new_skills(follower, 40)) == {2}
    assert len(np.unique(new_skills(pretrained, 100)[30:])) > 2
    assert pretrained.skill is None and set(new_skills(task, 40)[20 if not learns else 0 :]) == {1}


def test_a_task_goes_on_after_others_have_used_its_environments():
    task = DIAYN.from_pretrained(saved(make_small(DIAYN).learn(60)), "Pendulum-v1", skill=1, learning_starts=40, device="cpu")
    assert list(new_skills(task, 20)) == [0] * 10 + [1] * 10, "two of four turns"
    pretrained = make_small(DIAYN, task.get_env())
    assert list(new_skills(task, 30)) == [2] * 10 + [3] * 10 + [1] * 10
    assert len(np.unique(new_skills(pretrained, 200))) > 2, "not the skill of the task"
    assert set(new_skills(task, 40)) == {1}


def test_a_fixed_skill_is_kept_while_others_use_the_environments():
    model = make_small(DIAYN).learn(60)
    model.set_skill(1)
    make_small(DIAYN, model.get_env())
    assert set(new_skills(model, 120)) == {1}
    model.set_skill(None)
    model.env.set_skill(3)
    assert set(new_skills(model, 120)[1:]) == {3}, "the user's own choice"
