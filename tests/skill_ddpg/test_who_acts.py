"""Observations and infos name the skill that acts: in the warm-up of a task, after it, and in pre-training."""

import numpy as np
import pytest
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from tuning import Push, saved

from sb3_cesd import APT, DIAYN, CeSD, VecSkillObservation

#: Methods, and the type of their skills
METHODS = [(CeSD, "discrete"), (DIAYN, "discrete"), (APT, "discrete"), (APT, "sphere")]


class Witness(BaseCallback):
    """Compares what the observation, ``infos`` and the action say in every step, and notes who acted."""

    def __init__(self):
        super().__init__()
        self.acted = []

    def _on_step(self):
        observed = self.model._last_obs
        told = np.stack([info["skill"] for info in self.locals["infos"]])
        assert (self.model.skill_space.decode(observed["skill"]) == told).all(), "infos name whom the observation named"
        expected = self.model.policy.predict(observed["observation"], skill=told)[0]
        np.testing.assert_allclose(self.locals["actions"], expected, atol=1e-6)
        for info, vector in zip(self.locals["infos"], observed["skill"], strict=True):
            if "terminal_observation" in info:
                assert (info["terminal_observation"]["skill"] == vector).all()
        self.acted.append(self.model.skill_space.encode(told, (len(told),)))
        return True


def witnessed(model, n_timesteps, **kwargs):
    witness = Witness()
    model.learn(n_timesteps, callback=witness, **kwargs)
    return np.stack(witness.acted)


@pytest.mark.parametrize("wrapping", ["plain", "skills", "normalized"])
@pytest.mark.parametrize("skill", [1, "best", "random"])
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize(("method", "skill_type"), METHODS)
def test_in_the_warm_up_of_a_task(method, skill_type, n_envs, skill, wrapping):
    """Episodes of 20 steps and skills of 7 end amid the turns, which they do not disturb."""
    pretrained = make_small(method, Push(), skill_type=skill_type, skill_dim=3).learn(60)
    env = make_vec_env(Push, n_envs)
    if wrapping == "skills":
        env = VecSkillObservation(env, pretrained.skill_space, skill_duration=7)
    if wrapping == "normalized":
        env = VecNormalize(env)
    model = method.from_pretrained(
        saved(pretrained),
        env,
        skill=skill,
        learning_starts=48 * n_envs,
        exploration_noise=0.0,
        skill_duration=7,
        seed=2,
        device="cpu",
    )
    before = [] if skill == "best" else [model.skill]
    acted = witnessed(model, 60 * n_envs)
    turns = (np.arange(n_envs) + np.arange(48)[:, None] * 4 // 48) % 4
    assert (acted[:48] == model.skill_space.vectors[turns]).all(), "all skills act for an equal share of the steps"
    assert (acted[48:] == model.skill_space.encode(model.skill)).all() and model.policy.skill == model.skill
    assert before in ([], [model.skill])
    stored = model.replay_buffer.skills[:60]
    assert (stored == model.skill_space.decode(acted)).all(), "the replay buffer keeps who acted"
    learning = model.intrinsic.relabel(model.replay_buffer.sample(100)).skills.numpy()
    assert (learning == model.skill_space.decode(model.skill_space.encode(model.skill))).all(), "one skill learns from all"
    assert model._n_updates > 0


@pytest.mark.parametrize("name", ["random", "policy"])
def test_in_the_other_warm_ups_of_a_task_the_skill_of_the_task_acts(name):
    pretrained = make_small(CeSD, Push()).learn(60)
    kwargs = {"warm_up": name, "learning_starts": 40, "device": "cpu", "exploration_noise": 0.0}
    model = CeSD.from_pretrained(saved(pretrained), make_vec_env(Push, 2), skill=3, **kwargs)
    named = []
    model.learn(60, callback=lambda local, _: named.append([info["skill"] for info in local["infos"]]) or True)
    assert (np.array(named) == 3).all() and (model.replay_buffer.skills[:30] == 3).all()


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize(("method", "skill_type"), METHODS)
def test_in_pretraining(method, skill_type, n_envs):
    env = make_vec_env(Push, n_envs)
    kwargs = {"warm_up": "policy", "exploration_noise": 0.0, "skill_duration": 7, "skill_type": skill_type, "skill_dim": 3}
    model = make_small(method, env, **kwargs)
    acted = witnessed(model, 80 * n_envs)
    assert (model.replay_buffer.skills[:80] == model.skill_space.decode(acted)).all()
    changes = np.flatnonzero((acted[1:, 0] != acted[:-1, 0]).any(axis=1)) + 1
    possible = {episode + step for episode in range(0, 80, 20) for step in (0, 7, 14)}
    assert set(changes) <= possible and len(changes) > 3


def test_before_the_best_skill_is_known_predictions_follow_observations():
    pretrained = make_small(CeSD, Push()).learn(60)
    model = CeSD.from_pretrained(saved(pretrained), Push(), skill="best", learning_starts=80, device="cpu")
    obs, vectors = np.full((4, 3), 0.1, np.float32), model.skill_space.vectors
    assert model.skill is None
    actions = model.predict({"observation": obs, "skill": vectors})[0]
    assert len(np.unique(actions)) == 4 and (actions == model.predict(obs, skill=np.arange(4))[0]).all()
    model.learn(90)
    assert (model.predict({"observation": obs, "skill": vectors})[0] == model.predict(obs, skill=model.skill)[0]).all()


def test_all_skills_act_first_unless_another_warm_up_is_chosen():
    pretrained = make_small(CeSD, Push()).learn(60)
    model = CeSD.from_pretrained(saved(pretrained), Push(), device="cpu", seed=0)
    assert model.warm_up == "skills" and model.skill_turns.n_timesteps == pretrained.learning_starts == 40
    for name in ("random", "policy"):
        model = CeSD.from_pretrained(saved(pretrained), Push(), warm_up=name, device="cpu", seed=0)
        assert model.warm_up == name and model.skill_turns is None
    file = saved(pretrained)
    assert CeSD.load(file, env=Push(), reward="extrinsic", device="cpu").warm_up == "skills"
    # From scratch there are no skills yet
    assert make_small(CeSD, Push(), reward="extrinsic").warm_up == "random"


def test_the_vector_of_a_continuous_skill_goes_on_after_the_turns():
    """Not the nearest of those that an index stands for."""
    pretrained = make_small(APT, Push(), skill_type="sphere", skill_dim=3).learn(60)
    vector = np.array([0.6, 0.0, -0.8], np.float32)
    model = APT.from_pretrained(
        saved(pretrained), Push(), skill=vector, learning_starts=40, exploration_noise=0.0, device="cpu"
    )
    acted = witnessed(model, 60)
    assert (acted[:40, 0] == np.repeat(model.skill_space.vectors, 10, axis=0)).all()
    assert (acted[40:] == vector).all() and model.skill == model.policy.skill == vector.tolist()
    assert (model.intrinsic.skill.numpy() == vector).all()
