"""What another environment, a stop in the midst of a step, or another skill within ``learn`` leaves as it should be."""

import numpy as np
import pytest
from gymnasium import Env, spaces
from learned import differences
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback, StopTrainingOnMaxEpisodes
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize
from tuning import saved

from sb3_cesd import APT, DIAYN, VecSkillObservation
from sb3_cesd.metrics import collect_rollouts


class Counter(Env):
    """Observes which episode and which step it is; an episode lasts 20 steps, without a time limit."""

    observation_space = spaces.Box(-1000, 1000, (2,))
    action_space = spaces.Box(-1, 1, (1,))
    episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.episode = 0, self.episode + 1
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        return self.observe(), float(self.time), self.time == 20, False, {}

    def observe(self):
        return np.array([self.episode, self.time], np.float32)


# Another environment


@pytest.mark.parametrize(
    "play",
    [
        lambda model: evaluate_policy(model, model.env, n_eval_episodes=1, warn=False),
        lambda model: collect_rollouts(model, model.env, 1, 3),
        lambda model: collect_rollouts(model, model.env.unwrapped, 1, 3),
        lambda model: model.env.reset(),
        lambda model: model.env.step(np.zeros((1, 1), np.float32)),
    ],
    ids=["evaluate_policy", "collect_rollouts", "without skills", "reset", "step"],
)
def test_who_plays_in_the_environment_of_training_ends_its_episode(play):
    model = make_small(APT, Counter(), learning_starts=100).learn(30)
    play(model)
    model.learn(30, reset_num_timesteps=False)
    assert model.replay_buffer.timeouts[29, 0], "the end of n-step windows"
    before, after = (entries["observation"][:60, 0] for entries in (model.replay_buffer.observations, next_of(model)))
    assert (before[:, 0] == after[:, 0]).all() and (after[:, 1] - before[:, 1] == 1).all(), "steps within an episode"


def test_episodes_go_on_otherwise():
    model = make_small(APT, Counter(), learning_starts=100).learn(30)
    model.learn(30, reset_num_timesteps=False)
    assert model.replay_buffer.observations["observation"][30, 0].tolist() == [1, 10]


def test_nobody_plays_in_environments_that_are_learned_in():
    model = make_small(APT, Counter(), learning_starts=100)
    with pytest.raises(ValueError, match="The model learns in these environments at the moment: pass others"):
        model.learn(30, lambda *_: collect_rollouts(model, model.env, 1, 3))


def test_the_count_of_moves_is_that_of_the_same_environments():
    model = make_small(APT, Counter(), learning_starts=100).learn(30)
    other = make_vec_env(Counter)
    other.reset()
    model.set_env(other, force_reset=False)
    model.learn(5, reset_num_timesteps=False)
    assert model.replay_buffer.next_observations["observation"][30, 0].tolist() == [0, 1], "without another reset"


def next_of(model):
    return model.replay_buffer.next_observations


def in_another_environment(model):
    model.set_env(make_vec_env("Pendulum-v1", 2, seed=3))
    return model.learn(60, reset_num_timesteps=False)


def two_of(make):
    return in_another_environment(make()), in_another_environment(make())


def drawn_in(model, first):
    return model.replay_buffer.skills[first : first + 30].tolist()


def test_a_seed_reproduces_what_follows_another_environment():
    first, second = two_of(lambda: make_small(DIAYN, make_vec_env("Pendulum-v1", 2), skill_duration=5).learn(60))
    assert drawn_in(first, 30) == drawn_in(second, 30) and not differences(first, second)
    assert drawn_in(first, 30) != drawn_in(first, 0), "not those of the start again"
    file = saved(first)
    third, fourth = two_of(lambda: file.seek(0) or DIAYN.load(file, device="cpu"))
    assert drawn_in(third, 0) == drawn_in(fourth, 0) and not differences(third, fourth)


def test_another_environment_keeps_its_seeds():
    """Also that of the skills, of one that came with them."""
    skills = []
    for model_seed in (0, 1):
        model = make_small(DIAYN, seed=model_seed, skill_duration=5)
        env = VecSkillObservation(make_vec_env("Pendulum-v1"), 4, skill_duration=5)
        env.seed(7)
        model.set_env(env)
        model.learn(60)
        skills.append(drawn_in(model, 0))
        assert env.venv.envs[0].unwrapped.np_random_seed == 7
    assert skills[0] == skills[1]


def test_without_a_seed_another_environment_draws_other_skills():
    first, second = two_of(lambda: make_small(DIAYN, make_vec_env("Pendulum-v1", 2), skill_duration=1, seed=None))
    assert drawn_in(first, 0) != drawn_in(second, 0)


# A stop in the midst of a step


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("n_steps", [7, 40])
def test_no_transition_spans_a_stop(n_steps, normalized):
    """In an episode, and at the end of one, whose last step SB3 does not store."""
    env, noise = make_vec_env(Counter), NormalActionNoise(np.zeros(1), np.ones(1))
    model = make_small(DIAYN, VecNormalize(env) if normalized else env, action_noise=noise)
    model.learn(1000, callback=lambda local, _: local["self"].num_timesteps < n_steps)
    assert model.num_timesteps == n_steps and model.replay_buffer.pos == n_steps - 1
    model.learn(50, reset_num_timesteps=False)
    buffer, end = model.replay_buffer, n_steps + 49
    before, after = buffer.observations["observation"][:end, 0], buffer.next_observations["observation"][:end, 0]
    np.testing.assert_allclose(after, before + [0, 1], atol=1e-3, err_msg="every transition is a step of an episode")
    assert buffer.timeouts[n_steps - 2] and not buffer.dones[n_steps - 2], "as at a time limit"
    assert (before[n_steps - 1] == [n_steps // 20 + 1, 0]).all(), "the environment was reset"


def test_stopping_after_episodes_and_going_on():
    model = make_small(DIAYN, Counter()).learn(1000, callback=StopTrainingOnMaxEpisodes(2))
    model.learn(10, reset_num_timesteps=False)
    buffer = model.replay_buffer
    assert (buffer.next_observations["observation"][38, 0] == [1, 19]).all()
    assert (buffer.observations["observation"][39, 0] == [3, 0]).all() and buffer.timeouts[38]


def test_a_model_that_was_saved_in_a_step_goes_on_after_a_reset():
    files = []

    def save(local, _):
        if local["self"].num_timesteps == 30:
            files.append(saved(local["self"]))
        return True

    env = make_vec_env(Counter)
    make_small(DIAYN, env).learn(30, callback=save)
    loaded = DIAYN.load(files[0], env, device="cpu", force_reset=False)
    loaded.learn(10, reset_num_timesteps=False)
    assert (loaded.replay_buffer.observations["observation"][0, 0] == [2, 0]).all()


# Another skill within learn


class Chooses(BaseCallback):
    """Fixes skills at certain steps, and notes who acted."""

    def __init__(self, choices, when):
        super().__init__()
        self.choices, self.when, self.acted = choices, when, []

    def _choose(self, when):
        n_steps = self.num_timesteps // self.model.n_envs
        if when == self.when and n_steps in self.choices:
            self.model.set_skill(self.choices[n_steps])

    def _on_rollout_start(self):
        self._choose("before a rollout")

    def _on_step(self):
        told = np.stack([info["skill"] for info in self.locals["infos"]])
        assert (self.model.skill_space.decode(self.model._last_obs["skill"]) == told).all()
        expected = self.model.policy.predict(self.model._last_obs["observation"], skill=told)[0]
        np.testing.assert_allclose(self.locals["actions"], expected, atol=1e-6)
        self.acted.append(told)
        self._choose("in a step")
        return True

    def _on_rollout_end(self):
        self._choose("after a rollout")


@pytest.mark.parametrize("when", ["before a rollout", "in a step", "after a rollout"])
@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize(("method", "skill_type"), [(DIAYN, "discrete"), (APT, "sphere")])
def test_a_callback_may_choose_who_acts_next(method, skill_type, n_envs, when):
    """Observation, infos, action and replay buffer name who acts, without a reset; at the end of an episode, too."""
    kwargs = {"skill_type": skill_type, "skill_dim": 3, "warm_up": "policy", "exploration_noise": 0.0}
    model = make_small(method, make_vec_env(Counter, n_envs), skill_duration=6, **kwargs)
    callback = Chooses({16: 2, 20: 3, 30: None, 58: 1}, when)
    model.learn(60 * n_envs, callback=callback)
    names, acted = model.skill_space.decode(model.skill_space.vectors), np.stack(callback.acted)
    assert (acted[16:20] == names[2]).all() and (acted[20:30] == names[3]).all() and (acted[58:] == names[1]).all()
    assert len(np.unique(acted[30:58].reshape(28 * n_envs, -1), axis=0)) > 1, "all of them again"
    assert (model.replay_buffer.skills[:60] == acted).all()
    assert (model.replay_buffer.observations["observation"][:60, 0] == [[step // 20, step % 20] for step in range(60)]).all()
    assert model.skill == model.policy.skill and (model.skill_space.encode(model.skill) == model.skill_space.vectors[1]).all()
    assert (model._last_obs["skill"] == model.skill_space.vectors[1]).all()


def test_a_model_that_was_saved_in_learn_is_not_within_learn():
    files = []
    model = make_small(DIAYN, Counter())
    model.learn(10, callback=lambda local, _: files.append(saved(local["self"])) or True)
    loaded = DIAYN.load(files[0], Counter(), device="cpu")
    loaded.set_skill(2)
    assert (loaded.learn(10).replay_buffer.skills[:10] == 2).all()


def test_outside_of_learn_a_skill_begins_with_a_reset():
    model = make_small(DIAYN, Counter()).learn(50)
    model.set_skill(2)
    model.learn(10, reset_num_timesteps=False)
    assert (model.replay_buffer.observations["observation"][50, 0] == [3, 0]).all()
    assert (model.replay_buffer.skills[50:60] == 2).all()
