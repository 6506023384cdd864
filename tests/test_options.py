"""Skills as the actions of an environment."""

import gymnasium as gym
import numpy as np
import pytest
from small import make_small
from spaces_to_learn_in import RandomEnv
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd import APT, CeSD, SkillOptions, VecSkillObservation
from sb3_cesd.export import export_policy, import_policy


class Counter(gym.Env):
    """The reward of the t-th step is t; the episode terminates after 7 steps."""

    observation_space = gym.spaces.Box(-10, 10, (3,))
    action_space = gym.spaces.Box(-2, 2, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n_steps = 0
        self.actions = []
        return self.observation(), {"place": (options or {}).get("place")}

    def step(self, action):
        self.n_steps += 1
        self.actions.append(action)
        return self.observation(), float(self.n_steps), self.n_steps == 7, False, {"place": self.n_steps}

    def observation(self):
        return np.array([self.n_steps, -1, 0.5], dtype=np.float32)


@pytest.fixture
def model(make_model):
    return make_model()


def test_a_skill_is_followed_for_its_duration_and_rewards_are_summed(model):
    env = SkillOptions(Counter(), model, duration=3)
    assert env.action_space == gym.spaces.Discrete(4) and env.observation_space == Counter.observation_space
    observation, info = env.reset(options={"place": 9})
    assert observation[0] == 0 and info == {"place": 9}
    results = [env.step(skill) for skill in (2, 0, 3)]
    assert [observation[0] for observation, *_ in results] == [3, 6, 7]
    assert [reward for _, reward, *_ in results] == [1 + 2 + 3, 4 + 5 + 6, 7]
    assert [terminated for _, _, terminated, *_ in results] == [False, False, True]
    assert [info for *_, info in results] == [
        {"place": 3, "followed_steps": 3, "followed_skill": 2},
        {"place": 6, "followed_steps": 3, "followed_skill": 0},
        {"place": 7, "followed_steps": 1, "followed_skill": 3},
    ]
    for step, skill in enumerate([2, 2, 2, 0, 0, 0, 3]):
        expected, _ = model.predict(np.array([step, -1, 0.5], np.float32), skill=skill)
        assert (env.unwrapped.actions[step] == expected).all()


def test_rewards_are_discounted_on_demand(model):
    env = SkillOptions(Counter(), model, duration=3, gamma=0.5)
    env.reset()
    assert env.step(0)[1] == 1 + 0.5 * 2 + 0.25 * 3
    assert env.step(0)[1] == 4 + 0.5 * 5 + 0.25 * 6, "discounting starts anew with each skill"


@pytest.mark.parametrize(("method", "skill_type"), [(CeSD, "discrete"), (APT, "sphere"), (APT, "cube")])
def test_other_algorithms_learn_on_top(method, skill_type):
    model = make_small(method, skill_type=skill_type, skill_dim=3)
    env = SkillOptions(gym.make("Pendulum-v1"), model, duration=20)
    check_env(env)
    algorithm = DQN if skill_type == "discrete" else SAC
    learner = algorithm("MlpPolicy", env, learning_starts=20, policy_kwargs={"net_arch": [8]}, device="cpu").learn(40)
    returns, lengths = evaluate_policy(learner, env, 1, return_episode_rewards=True, warn=False)
    assert lengths == [10] and returns[0] < 0
    observation, _ = env.reset()
    choice, _ = learner.predict(observation)
    assert choice.shape == env.action_space.shape and env.step(choice)[-1]["followed_steps"] == 20, "a loop without a VecEnv"


def test_duration_is_that_of_the_model_by_default(make_model):
    assert SkillOptions(Counter(), make_model(skill_duration=5)).duration == 5
    with pytest.raises(ValueError, match="pass duration, the steps until the next choice"):
        SkillOptions(Counter(), make_model(skill_duration=None))
    with pytest.raises(ValueError, match=r"'x.zip' is not a model: pass that of CeSD.load"):
        SkillOptions(Counter(), "x.zip")


@pytest.mark.parametrize("around", [False, True])
def test_statistics_may_be_of_either_layout(make_model, around):
    """Inside of the skill, or around it and of all but the skill."""
    env = make_vec_env("Pendulum-v1")
    env = VecNormalize(VecSkillObservation(env, 4), norm_obs_keys=["observation"]) if around else VecNormalize(env)
    model = make_model(env).learn(60)
    options = SkillOptions(Counter(), model, duration=1, vec_normalize=env)
    observation, _ = options.reset()
    options.step(2)
    seen = env.normalize_obs({"observation": observation} if around else observation)
    expected, _ = model.predict(seen["observation"] if around else seen, skill=2)
    assert (options.unwrapped.actions[0] == expected).all() and (expected != model.predict(observation, skill=2)[0]).all()


@pytest.mark.parametrize(("skill_type", "low"), [("sphere", -1.0), ("cube", -1.0), ("unit_cube", 0.0)])
def test_continuous_skills_are_chosen_by_their_vectors(tiny, skill_type, low):
    arguments = {**tiny, "intrinsic_kwargs": {"encoder": "identity"}}
    model = APT("MlpPolicy", "Pendulum-v1", seed=0, skill_type=skill_type, skill_dim=2, **arguments)
    env = SkillOptions(Counter(), model, duration=2)
    assert env.action_space == gym.spaces.Box(low, 1.0, (2,), np.float32)
    env.reset()
    chosen = np.array([0.3, 0.4], dtype=np.float32)
    *_, info = env.step(chosen)
    skill = np.array([0.6, 0.8]) if skill_type == "sphere" else chosen
    assert info["followed_skill"] == pytest.approx(skill) and info["followed_steps"] == 2
    for step in range(2):
        expected, _ = model.predict(np.array([step, -1, 0.5], np.float32), skill=info["followed_skill"])
        assert (env.unwrapped.actions[step] == expected).all()
    for index in (3, np.int64(3), np.array(3), 3.0):
        vector = env.step(index)[-1]["followed_skill"]
        assert vector.shape == (2,) and (vector == model.skill_space.vectors[3]).all(), "as predict has it"
        env.reset()
    assert env.step([0, 1])[-1]["followed_skill"].tolist() == [0, 1]
    for action in (4, np.ones(3), "a", np.array([np.nan, 0.5])):
        with pytest.raises(ValueError):
            env.step(action)
    if skill_type == "sphere":
        # What an untrained policy returns for an observation of zeros
        assert (env.step(np.zeros(2))[-1]["followed_skill"] == model.skill_space.vectors[0]).all()


def test_exported_skills_can_be_chosen(make_model, tmp_path):
    vec_normalize = VecNormalize(DummyVecEnv([Counter]))
    model = make_model(vec_normalize, skill_duration=4).learn(60)
    exported = import_policy(export_policy(model, tmp_path))
    played = []
    for skills in (model, exported):
        env = SkillOptions(Counter(), skills)
        env.reset()
        assert env.step(2)[-1]["followed_steps"] == 4
        played.append(np.array(env.unwrapped.actions))
    assert (played[0] == played[1]).all(), "with the statistics of its file"
    with pytest.raises(ValueError, match="an exported policy holds its statistics"):
        SkillOptions(Counter(), exported, vec_normalize=vec_normalize)


def test_observations_may_be_dictionaries(make_model):
    class Pair(gym.ObservationWrapper):
        observation_space = gym.spaces.Dict({"a": gym.spaces.Box(-10, 10, (1,)), "b": gym.spaces.Box(-10, 10, (2,))})

        def observation(self, observation):
            return {"a": observation[:1], "b": observation[1:]}

    vec_normalize = VecNormalize(DummyVecEnv([lambda: Pair(Counter())]))
    model = make_model(vec_normalize).learn(60)
    env = SkillOptions(Pair(Counter()), model, duration=1, vec_normalize=vec_normalize)
    observation, _ = env.reset()
    seen, *_ = env.step(2)
    expected, _ = model.predict(vec_normalize.normalize_obs(observation), skill=2)
    assert (env.unwrapped.actions[0] == expected).all() and seen["a"] == [1] and list(seen["b"]) == [-1, 0.5]
    with pytest.raises(ValueError, match="do not fit the model"):
        SkillOptions(Counter(), model, duration=1)


def test_skills_of_images_take_those_of_training(make_model):
    """Channels come last, as cameras give them."""
    images = gym.spaces.Box(0, 255, (40, 48, 3), np.uint8)
    model = make_model(RandomEnv(images), buffer_size=50)
    assert model.plain_space.shape == (3, 40, 48)
    env = SkillOptions(RandomEnv(images), model, duration=2)
    observation, _ = env.reset(seed=0)
    assert observation.shape == (40, 48, 3)
    assert env.step(1)[1] == pytest.approx(float(np.sum(env.unwrapped.actions))) and len(env.unwrapped.actions) == 2
    with pytest.raises(ValueError, match="do not fit the model"):
        SkillOptions(gym.wrappers.FlattenObservation(RandomEnv(images)), model)


def test_misuse(make_model, model):
    env = SkillOptions(Counter(), model)
    env.reset()
    for action in (4, -1, 1.5, "a", [1]):
        with pytest.raises(ValueError, match="skill"):
            env.step(action)
    with pytest.raises(ValueError, match="gamma"):
        SkillOptions(Counter(), model, gamma=0)
    with pytest.raises(ValueError, match="do not fit the model"):
        SkillOptions(gym.make("MountainCarContinuous-v0"), model)
    with pytest.raises(ValueError, match="pre-trained model"):
        SkillOptions(Counter(), make_model(reward="extrinsic"))
