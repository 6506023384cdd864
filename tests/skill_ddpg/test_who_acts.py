"""Who acts, and what of it is told and stored: in a warm-up, after it, in pre-training, and as callbacks choose."""

import warnings

import numpy as np
import pytest
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
from tuning import Push, saved

from sb3_cesd import APT, CeSD, VecSkillObservation
from sb3_cesd.common.skill_clock import SkillTurns
from sb3_cesd.common.skills import best_of

#: Methods, and the type of their skills
METHODS = [(CeSD, "discrete"), (APT, "sphere")]


class Witness(BaseCallback):
    """Compares what the observation, ``infos`` and the action say in every step, and notes who acted; may choose skills."""

    def __init__(self, choices=None, when=""):
        super().__init__()
        self.choices, self.when, self.acted = choices or {}, when, []

    def _choose(self, when):
        n_steps = self.num_timesteps // self.model.n_envs
        if when == self.when and n_steps in self.choices:
            self.model.set_skill(self.choices[n_steps])

    def _on_rollout_start(self):
        self._choose("before a rollout")

    def _on_step(self):
        observed = self.model._last_obs
        told = np.stack([info["followed_skill"] for info in self.locals["infos"]])
        assert (self.model.skill_space.decode(observed["skill"]) == told).all(), "infos name whom the observation named"
        expected = self.model.policy.predict(observed["observation"], skill=told)[0]
        np.testing.assert_allclose(self.locals["actions"], expected, atol=1e-6)
        for info, vector in zip(self.locals["infos"], observed["skill"], strict=True):
            if "terminal_observation" in info:
                assert (info["terminal_observation"]["skill"] == vector).all()
        self.acted.append(self.model.skill_space.encode(told, (len(told),)))
        self._choose("in a step")
        return True

    def _on_rollout_end(self):
        self._choose("after a rollout")


def witnessed(model, n_timesteps, **kwargs):
    witness = Witness()
    model.learn(n_timesteps, callback=witness, **kwargs)
    return np.stack(witness.acted)


@pytest.mark.parametrize("wrapping", ["plain", "skills", "normalized"])
@pytest.mark.parametrize("skill", [1, "best"])
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize(("method", "skill_type"), METHODS)
def test_in_the_warm_up_of_a_task(method, skill_type, n_envs, skill, wrapping, capsys):
    """Episodes of 20 steps and skills of 7 end amid the turns, which they do not disturb."""
    pretrained = make_small(method, Push(), skill_type=skill_type, skill_dim=3).learn(60)
    env = make_vec_env(Push, n_envs)
    if wrapping == "skills":
        env = VecSkillObservation(env, pretrained.skill_space, skill_duration=7, skill=3)
    if wrapping == "normalized":
        env = VecNormalize(env)
    kwargs = {"learning_starts": 48 * n_envs, "exploration_noise": 0.0, "skill_duration": 7, "seed": 2, "device": "cpu"}
    model = method.from_pretrained(saved(pretrained), env, skill=skill, verbose=1, **kwargs)
    assert model.warm_up == "skills"
    before = [] if skill == "best" else [model.skill]
    acted = witnessed(model, 60 * n_envs)
    turns = (np.arange(n_envs) + np.arange(48)[:, None] * 4 // 48) % 4
    assert (acted[:48] == model.skill_space.vectors[turns]).all(), "all skills act for an equal share of the steps"
    assert (acted[48:] == model.skill_space.encode(model.skill)).all() and model.policy.skill == model.skill
    assert before in ([], [model.skill])
    assert (model.replay_buffer.skills[:60] == model.skill_space.decode(acted)).all(), "the replay buffer keeps who acted"
    learning = model.replay_buffer.relabel(model.replay_buffer.sample(100)).skills.numpy()
    assert (learning == model.skill_space.decode(model.skill_space.encode(model.skill))).all(), "one skill learns from all"
    assert model._n_updates > 0
    if skill == "best":
        chosen_by = "features" if method.__name__ == "APS" else "rewards"
        assert model.skill_turns.chosen_by == chosen_by
        assert f"Fine-tuning skill {model.skill}, the best by its {chosen_by}" in capsys.readouterr().out
    if skill == "best" and wrapping == "plain":
        pushes = model.replay_buffer.rewards[:48]
        means = [pushes[turns == each].mean() for each in range(4)]
        np.testing.assert_allclose(model.skill_turns.mean_rewards(), means, rtol=1e-4, atol=1e-6)
        assert np.argmax(means) == (model.skill_space.vectors == model.skill_space.encode(model.skill)).all(axis=1).argmax()


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize(("method", "skill_type"), METHODS)
def test_in_pretraining(method, skill_type, n_envs):
    kwargs = {"warm_up": "policy", "exploration_noise": 0.0, "skill_duration": 7, "skill_type": skill_type, "skill_dim": 3}
    model = make_small(method, make_vec_env(Push, n_envs), **kwargs)
    acted = witnessed(model, 80 * n_envs)
    assert (model.replay_buffer.skills[:80] == model.skill_space.decode(acted)).all()
    changes = np.flatnonzero((acted[1:, 0] != acted[:-1, 0]).any(axis=1)) + 1
    assert set(changes) <= {episode + step for episode in range(0, 80, 20) for step in (0, 7, 14)} and len(changes) > 3


@pytest.mark.parametrize("when", ["before a rollout", "in a step", "after a rollout"])
@pytest.mark.parametrize("n_envs", [1, 2])
def test_a_callback_may_choose_who_acts_next(n_envs, when):
    """Observation, infos, action and replay buffer name who acts, without a reset; at the end of an episode, too."""
    kwargs = {"skill_type": "sphere", "skill_dim": 3, "warm_up": "policy", "exploration_noise": 0.0, "skill_duration": 6}
    model = make_small(APT, make_vec_env(Push, n_envs), **kwargs)
    callback = Witness({16: 2, 20: 3, 30: None, 58: 1}, when)
    model.learn(60 * n_envs, callback=callback)
    names, acted = model.skill_space.vectors, np.stack(callback.acted)
    assert (acted[16:20] == names[2]).all() and (acted[20:30] == names[3]).all() and (acted[58:] == names[1]).all()
    assert len(np.unique(acted[30:58].reshape(28 * n_envs, -1), axis=0)) > 1, "all of them again"
    assert (model.replay_buffer.skills[:60] == acted).all()
    assert (model.skill_space.encode(model.skill) == names[1]).all() and model.skill == model.policy.skill


@pytest.mark.parametrize("skill", ["best", 1])
def test_an_evaluation_is_no_part_of_the_warm_up(finetune, skill):
    """Also in the environment of training, and between two calls of learn."""
    model = finetune(skill=skill, warm_up="skills", learning_starts=80)
    evaluate_policy(model, model.get_env(), 1, warn=False)
    model.learn(40)
    evaluate_policy(model, model.get_env(), 1, warn=False)
    assert model.skill_turns.n_done == 40
    model.learn(60, reset_num_timesteps=False)
    assert model.skill_turns.over and model.replay_buffer.skills[:80, 0].tolist() == np.repeat(np.arange(4), 20).tolist()
    assert model.skill is not None and (model.replay_buffer.skills[80:100] == model.skill).all()
    rewards = str(model.skill_turns)
    assert (model.learn(60).replay_buffer.skills[100:160] == model.skill).all() and str(model.skill_turns) == rewards


def test_turns_are_refused_that_leave_out_a_skill_and_alike_ones_are_told():
    with pytest.raises(ValueError, match="learning_starts"):
        SkillTurns(4, 3)
    with pytest.warns(UserWarning, match="choose a skill"):
        assert best_of(np.zeros(3)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert best_of(np.array([0.0, np.nan, 2.0])) == 2


def test_a_warm_up_of_1e2_steps_is_one_of_100(finetune):
    """As in pre-training, and as in Stable-Baselines3, the number may be a float."""
    model = finetune(skill="best", warm_up="skills", learning_starts=1e2).learn(110)
    assert model.replay_buffer.skills[:100, 0].tolist() == np.repeat(np.arange(4), 25).tolist()
    assert (model.replay_buffer.skills[100:110] == model.skill).all()


def test_before_the_best_skill_is_known_predictions_follow_observations():
    pretrained = make_small(CeSD, Push()).learn(60)
    model = CeSD.from_pretrained(saved(pretrained), Push(), skill="best", learning_starts=80, device="cpu")
    obs, vectors = np.full((4, 3), 0.1, np.float32), model.skill_space.vectors
    assert model.skill is None
    assert (model.predict({"observation": obs, "skill": vectors})[0] == model.predict(obs, skill=np.arange(4))[0]).all()
    model.learn(90)
    assert (model.predict({"observation": obs, "skill": vectors})[0] == model.predict(obs, skill=model.skill)[0]).all()
