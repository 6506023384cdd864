"""What skills do is remembered, and tells which of them does a task best."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from tuning import saved

from sb3_cesd import CeSD
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import skill_observation_space
from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.skill_ddpg import skill_states
from sb3_cesd.skill_ddpg.skill_states import expected_rewards, predict_mean_rewards, recent_states

GOAL = np.array([0.5, -0.5])


@pytest.fixture
def few(monkeypatch):
    """Three states of the six newest transitions of each skill are enough."""
    monkeypatch.setattr(skill_states, "N_RECENT", 6)
    monkeypatch.setattr(skill_states, "N_KEPT", 3)


def make_buffer(n_steps, n_envs=2, skill_type="discrete"):
    """A ring for 20 steps, whose observations count steps and tell the environment, with two skills by turns."""
    space = make_skill_space(skill_type, 2, 2)
    box = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    observation_space = skill_observation_space(box, space)
    buffer = SkillReplayBuffer(20 * n_envs, observation_space, spaces.Box(-1, 1, (1,)), "cpu", n_envs, skill_space=space)
    observe = lambda step: np.stack([np.full(n_envs, step), np.arange(n_envs)], axis=1).astype(np.float32)  # noqa: E731
    for step in range(n_steps):
        skills = {"skill": space.vectors[(np.arange(n_envs) + step) % 2]}
        entries = ({"observation": observe(at), **skills} for at in (step, step + 1))
        buffer.add(*entries, np.zeros((n_envs, 1)), np.zeros(n_envs), np.zeros(n_envs, dtype=bool), [{}] * n_envs)
    return buffer


@pytest.mark.parametrize("n_steps", [20, 33])
def test_the_newest_states_of_each_skill(few, n_steps):
    states = recent_states(make_buffer(n_steps), None)
    assert states.shape == (2, 3, 2) and states.dtype == np.float32
    for skill, of_skill in enumerate(states):
        # It acts in one environment at a time
        newest = [(step, (skill - step) % 2) for step in range(n_steps - 6, n_steps)]
        assert of_skill.tolist() == [list(newest[index]) for index in (0, 2, 5)]


def test_too_few_states_are_none(few):
    assert recent_states(make_buffer(2), None) is None
    assert recent_states(make_buffer(20, skill_type="sphere"), None) is None
    assert recent_states(make_buffer(3), None) is not None


@pytest.mark.parametrize(
    "reward", [lambda states: 2 * states[:, 0] - states[:, 1], lambda states: np.exp(-8 * ((states - GOAL) ** 2).sum(axis=1))]
)
def test_rewards_are_predicted_where_skills_are(reward):
    """Also if it is amid what was seen, where no direction leads."""
    rng = np.random.default_rng(0)
    seen = rng.uniform(-1, 1, (500, 2))
    # An entry that never changes tells nothing
    padded = np.column_stack([seen, np.full(500, 3.0)])
    centres = np.array([[0.9, 0.9], [-0.9, 0.9], [0.5, -0.5], [0.9, -0.9]])
    of_skills = centres[:, None] + 0.1 * rng.standard_normal((4, 100, 2))
    predicted = predict_mean_rewards(padded, reward(seen), np.concatenate([of_skills, np.full((4, 100, 1), 4.0)], axis=2))
    true = np.array([reward(of_skill).mean() for of_skill in of_skills])
    assert predicted.argmax() == true.argmax() and np.corrcoef(predicted, true)[0, 1] > 0.95


def short_episodes():
    return gym.make("Pendulum-v1", max_episode_steps=5)


def test_states_are_saved_with_the_model(make_model, few):
    model = make_model(short_episodes(), skill_duration=None).learn(100)
    assert len(model.skill_states) == 0
    file = saved(model)
    loaded = CeSD.load(file, device="cpu")
    expected = recent_states(model.replay_buffer, None)
    assert expected.shape == (4, 3, 3) and (loaded.skill_states.numpy() == expected).all()
    again = CeSD.load(saved(loaded), device="cpu")
    assert (again.skill_states.numpy() == expected).all(), "without a replay buffer that knows better"


def test_the_best_skill_is_that_of_the_best_states(pretrained, finetune, capsys):
    """One skill has been upright, whatever it does in the warm-up."""
    hanging, upright = th.tensor([-1.0, 0.0, 0.0]), th.tensor([1.0, 0.0, 0.0])
    for best in range(4):
        pretrained.skill_states = th.stack([upright if skill == best else hanging for skill in range(4)])[:, None]
        model = finetune(skill="best", warm_up="skills", learning_starts=400, verbose=1)
        model.learn(410)
        assert model.skill == model.policy.skill == best and model.skill_turns.chosen_by == "states"
        assert (model.replay_buffer.skills[400:410] == best).all()
        assert len(model.skill_states) == 0, "they are of no more use"
        assert f"Fine-tuning skill {best}, the best by its states" in capsys.readouterr().out


def test_prediction_is_that_of_a_gaussian_process():
    """By hand: two states at -1 and 1, a linear and a squared exponential kernel, noise of a fifth."""
    states, rewards = np.array([[-1.0], [1.0]]), np.array([2.0, 4.0])
    value = 3 - np.exp(-2)  # of the kernel, for what is 1 at one of the states and -1 at the other
    predicted = predict_mean_rewards(states, rewards, np.array([[[1.0]], [[-1.0]], [[0.0]]]))
    assert predicted == pytest.approx(3 + np.array([1, -1, 0]) * value / (value + 0.2))
    # Beyond five deviations nothing is known: as there, whatever the distance
    far, farther = predict_mean_rewards(states, rewards, np.array([[[5.0]], [[1e6]]]))
    assert far == farther


def test_rewards_are_those_of_the_states_that_they_are_got_in():
    """Steps lead from one of two states to the other, and pay in one of them."""
    space = make_skill_space("discrete", 2)
    observation_space = skill_observation_space(spaces.Box(-1, 1, (1,), np.float32), space)
    buffer = SkillReplayBuffer(40, observation_space, spaces.Box(-1, 1, (1,)), "cpu", skill_space=space)
    for step in range(30):
        obs, next_obs = ({"observation": np.float32([[(-1) ** at]]), "skill": space.vectors[:1]} for at in (step, step + 1))
        buffer.add(obs, next_obs, np.zeros((1, 1)), next_obs["observation"][:, 0], np.zeros(1, dtype=bool), [{}])
    worse, better = expected_rewards(buffer, np.array([[[-1.0]], [[1.0]]]))
    assert worse < -0.8 and better > 0.8
