"""A warm-up in which all skills act."""

import warnings

import numpy as np
import pytest
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
from tuning import Push, saved

from sb3_cesd import CeSD
from sb3_cesd.common.skill_clock import SkillTurns
from sb3_cesd.common.skills import best_of


def acting_skills(n_envs, n_steps):
    """Who acts in turns of ``n_steps`` steps of each environment, shape ``(n_steps, n_envs)``."""
    return (np.arange(n_envs) + np.arange(n_steps)[:, None] * 4 // n_steps) % 4


def learning_skills(model):
    """Skills that learn from transitions of the replay buffer."""
    return set(model.intrinsic.relabel(model.replay_buffer.sample(200)).skills.tolist())


def skills_of(observations):
    return observations["skill"].argmax(axis=1)


@pytest.mark.parametrize(("n_envs", "n_timesteps"), [(1, 24), (3, 24), (2, 8), (8, 8)])
def test_every_skill_has_an_equal_share(n_envs, n_timesteps):
    turns = SkillTurns(4, n_timesteps)
    acting = []
    while not turns.over:
        acting.append(turns.skills(n_envs))
        turns.add(acting[-1] * 0.5 - 1)
    acting = np.stack(acting)
    assert acting.size == n_timesteps and (np.bincount(acting.ravel()) == n_timesteps / 4).all()
    assert ((np.diff(acting, axis=0) % 4) <= 1).all(), "one after the other"
    assert turns.mean_rewards() == pytest.approx([-1, -0.5, 0, 0.5]) and turns.best() == 3
    assert str(turns) == "-1, -0.5, 0, 0.5"


def test_a_skill_that_has_not_acted_is_not_the_best():
    turns = SkillTurns(4, 40)
    for _ in range(11):
        turns.add(np.array([-1.0]))
    assert np.isnan(turns.mean_rewards()).tolist() == [False, False, True, True] and turns.best() == 0 and not turns.over


@pytest.mark.parametrize("n_envs", [1, 2])
def test_all_skills_act_before_one_of_them_learns(finetune, n_envs):
    n_steps = 80 // n_envs
    model = finetune(make_vec_env("Pendulum-v1", n_envs), skill=1, warm_up="skills", learning_starts=80, exploration_noise=0.0)
    model.learn(80)
    buffer = model.replay_buffer
    acting = acting_skills(n_envs, n_steps)
    observations = buffer.observations["observation"][:n_steps]
    expected = [model.predict(observations[:, env], skill=acting[:, env])[0] for env in range(n_envs)]
    np.testing.assert_allclose(model.policy.scale_action(np.stack(expected, 1)), buffer.actions[:n_steps], atol=1e-5)
    assert model._n_updates == 0 and model.skill == 1 and (buffer.skills[:n_steps] == acting).all(), "who acted"
    assert learning_skills(model) == {1}, "all is there to learn from"
    own = model.policy.scale_action(model.predict(model._last_obs, skill=1)[0])
    model.learn(20 * n_envs, reset_num_timesteps=False)
    np.testing.assert_allclose(own, buffer.actions[n_steps], atol=1e-5)
    assert model._n_updates > 0 and model.skill_turns.over and (buffer.skills[n_steps : n_steps + 20] == 1).all()


@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_best_of_them_goes_on(make_model, finetune, capsys, n_envs, normalized):
    pretrained = make_model(Push(), seed=1).learn(100)
    env = make_vec_env(Push, n_envs)
    env = VecNormalize(env) if normalized else env
    kwargs = {"model": pretrained, "skill": "best", "warm_up": "skills", "learning_starts": 80, "exploration_noise": 0.0}
    model = finetune(env, **kwargs, verbose=1)
    assert (model.zero_shot, model.num_timesteps) == (None, 0)
    assert "Fine-tuning the skill that does best in the first 80 steps, of" in capsys.readouterr().out
    model.learn(80)
    # The reward is the action
    scaled = model.replay_buffer.actions[: 80 // n_envs, :, 0]
    acting = acting_skills(n_envs, 80 // n_envs)
    pushes = [scaled[acting == skill].mean() for skill in range(4)]
    np.testing.assert_allclose(model.skill_turns.mean_rewards(), pushes, rtol=1e-4, atol=1e-5)
    assert model.skill == model.policy.skill == np.argmax(pushes) and len(set(pushes)) == 4
    assert model.skill_turns.chosen_by == "rewards"
    assert f"Fine-tuning skill {model.skill}, the best in the warm-up\n" in capsys.readouterr().out
    assert (model.replay_buffer.skills[: 80 // n_envs] == acting).all() and learning_skills(model) == {model.skill}
    assert (skills_of(model._last_obs) == model.skill).all()
    assert (skills_of(model.env.reset()) == model.skill).all()
    model.learn(20, reset_num_timesteps=False)
    assert (model.replay_buffer.skills[80 // n_envs : 100 // n_envs] == model.skill).all() and model._n_updates > 0
    assert learning_skills(model) == {model.skill}


def test_returns_are_logged_for_the_skill_that_acted(finetune):
    model = finetune(skill=1, warm_up="skills", learning_starts=40).learn(40)
    assert (model._skill_rewards.steps == 10).all()


def test_goes_on_after_it_was_saved_amid_the_turns(finetune, tmp_path):
    model = finetune(skill="best", warm_up="skills", learning_starts=80, exploration_noise=0.0).learn(30)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    loaded = CeSD.load(tmp_path / "model", env=make_vec_env("Pendulum-v1"), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer")
    for each in (model, loaded):
        each.set_env(make_vec_env("Pendulum-v1"))
        each.set_random_seed(7)
        each.learn(60, reset_num_timesteps=False)
    assert loaded.skill_turns.over and (loaded.skill, str(loaded.skill_turns)) == (model.skill, str(model.skill_turns))
    assert (loaded.replay_buffer.actions[:90] == model.replay_buffer.actions[:90]).all()
    assert (loaded.replay_buffer.skills[:90] == model.replay_buffer.skills[:90]).all()
    assert (loaded.replay_buffer.skills[:80] == acting_skills(1, 80)).all()
    assert (loaded.replay_buffer.skills[80:90] == model.skill).all() and learning_skills(loaded) == {model.skill}


def test_it_happens_once(finetune):
    model = finetune(skill="best", warm_up="skills", learning_starts=40, exploration_noise=0.0).learn(60)
    rewards = str(model.skill_turns)
    model.learn(60)
    assert str(model.skill_turns) == rewards and model.num_timesteps == 60


def test_in_pretraining_skills_act_as_they_do_later(make_model):
    models = [make_model(warm_up=warm_up, learning_starts=60).learn(100) for warm_up in ("policy", "skills")]
    first, second = (model.replay_buffer for model in models)
    assert (first.actions == second.actions).all() and (first.skills == second.skills).all()


def test_a_model_that_was_saved_in_the_step_that_ends_them_has_a_skill(finetune, tmp_path):
    """Callbacks see the model before it has chosen."""
    model = finetune(skill="best", warm_up="skills", learning_starts=40)
    model.learn(60, CheckpointCallback(40, str(tmp_path)))
    loaded = CeSD.load(tmp_path / "rl_model_40_steps", env=make_vec_env("Pendulum-v1"), device="cpu")
    assert loaded.skill == loaded.skill_turns.best() == model.skill
    loaded.learn(60, reset_num_timesteps=False)
    assert loaded.skill == model.skill and learning_skills(loaded) == {model.skill}


def test_arguments_of_the_warm_up_can_change_before_it_begins(finetune):
    task = finetune(skill="best", warm_up="skills", learning_starts=40)
    file = saved(task)
    loaded = CeSD.load(file, "Pendulum-v1", device="cpu", learning_starts=80).learn(60)
    assert loaded.skill is None and loaded.skill_turns.n_done == 60 and loaded._n_updates == 0
    file.seek(0)
    with pytest.raises(ValueError, match=r"warm_up='policy' does not fit .* pass warm_up='skills' or leave it out"):
        CeSD.load(file, "Pendulum-v1", device="cpu", warm_up="policy")
    chosen = saved(finetune(skill=1, warm_up="skills", learning_starts=40))
    assert CeSD.load(chosen, "Pendulum-v1", device="cpu", warm_up="policy").skill_turns is None
    begun = saved(task.learn(20))
    with pytest.raises(ValueError, match=r"learning_starts=80 does not fit .* pass learning_starts=40 or leave it out"):
        CeSD.load(begun, "Pendulum-v1", device="cpu", learning_starts=80)
    begun.seek(0)
    with pytest.raises(ValueError, match=r"warm_up='random' does not fit .* pass warm_up='skills' or leave it out"):
        CeSD.load(begun, "Pendulum-v1", device="cpu", warm_up="random")
    begun.seek(0)
    loaded = CeSD.load(begun, "Pendulum-v1", device="cpu", learning_starts=40).learn(60, reset_num_timesteps=False)
    assert loaded.skill is not None and loaded.skill_turns.n_timesteps == 40


def test_where_all_skills_are_alike_there_is_a_warning():
    alike, sparse = SkillTurns(4, 8), SkillTurns(4, 8)
    for step in range(8):
        alike.add(np.zeros(1))
        sparse.add(np.array([float(step == 5)]))
    with pytest.warns(UserWarning, match=r"mean reward in the warm-up of all skills is the same \(0\), .* Raise learning_st"):
        assert alike.best() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sparse.best() == 2
    with pytest.warns(
        UserWarning, match=r"return of all skills is the same \(7\), .* raise n_eval_episodes, or choose a skill"
    ):
        best_of(np.full(3, 7.0), "return", "Pass warm_up='skills', or raise n_eval_episodes")


def test_a_training_that_ends_before_the_choice_warns(finetune):
    model = finetune(skill="best", warm_up="skills", learning_starts=80)
    with pytest.warns(UserWarning, match=r"learning_starts=80 steps, but this training ends at step 60, .*: train longer, or"):
        model.learn(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(40, reset_num_timesteps=False)
    assert model.skill is not None


@pytest.mark.parametrize("skill", ["best", 1])
def test_an_evaluation_is_no_part_of_the_warm_up(finetune, skill):
    """Also in the environment of training, and between two calls of learn."""
    model = finetune(skill=skill, warm_up="skills", learning_starts=80)
    evaluate_policy(model, model.get_env(), 1, warn=False)
    assert model.skill_turns.n_done == 0 and (skill == "best" or (model._clock.vectors.argmax(axis=1) == 1).all())
    model.learn(40)
    evaluate_policy(model, model.get_env(), 1, warn=False)
    assert model.skill_turns.n_done == 40
    model.learn(60, reset_num_timesteps=False)
    assert model.skill_turns.over and model.replay_buffer.skills[:80, 0].tolist() == np.repeat(np.arange(4), 20).tolist()
    assert model.skill is not None and (model.replay_buffer.skills[80:100] == model.skill).all()
