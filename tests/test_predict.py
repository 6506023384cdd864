import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from sb3_cesd.common.observations import add_skill
from sb3_cesd.common.vec_env import VecSkillObservation

OBS = np.array([0.1, -0.5, 2.0], np.float32)
BATCH = np.stack([OBS] * 6)
VECTORS = np.eye(4, dtype=np.float32)


@pytest.fixture(scope="module")
def model():
    from small import arguments

    from sb3_cesd import CeSD

    return CeSD("MlpPolicy", "Pendulum-v1", seed=0, **arguments(learning_rate=1e-2)).learn(150)


@pytest.fixture
def actions(model):
    """Action of each skill in OBS; all differ."""
    values = np.array([model.predict(OBS, skill=skill)[0] for skill in range(4)])
    assert len(np.unique(values)) == 4
    return values


def test_observations_with_a_skill_are_taken_as_they_are(model, actions):
    for skill in range(4):
        action, state = model.predict(add_skill(OBS, VECTORS[skill]))
        assert action == pytest.approx(actions[skill]) and action.shape == (1,) and state is None
    batch = add_skill(BATCH, VECTORS[[0, 1, 2, 3, 2, 1]])
    assert model.predict(batch)[0] == pytest.approx(actions[[0, 1, 2, 3, 2, 1]])


def test_skill_argument(model, actions):
    assert model.predict(BATCH, skill=2)[0] == pytest.approx(actions[[2] * 6])
    assert model.predict(BATCH, skill=np.array([3, 1, 0, 2, 2, 0]))[0] == pytest.approx(actions[[3, 1, 0, 2, 2, 0]])
    # It overrides the skill of the observation
    assert model.predict(add_skill(BATCH, VECTORS[[0] * 6]), skill=3)[0] == pytest.approx(actions[[3] * 6])


def test_state_carries_the_skill_of_each_episode(model, actions):
    action, state = model.predict(BATCH[:2], episode_start=np.ones(2, bool))
    assert action == pytest.approx(actions[[0, 1]])
    action, state = model.predict(BATCH[:2], state, np.array([False, False]))
    assert action == pytest.approx(actions[[0, 1]])
    action, state = model.predict(BATCH[:2], state, np.array([False, True]))
    assert action == pytest.approx(actions[[0, 3]]), "environment 1 of 2 goes through skills 1, 3, 1, ..."
    action, state = model.predict(BATCH[:2], state, np.array([True, True]))
    assert action == pytest.approx(actions[[2, 1]])


def test_set_skill(model, actions):
    model.set_skill(2)
    try:
        action, state = model.predict(BATCH)
        assert action == pytest.approx(actions[[2] * 6])
        assert model.predict(BATCH, state, np.ones(6, bool))[0] == pytest.approx(actions[[2] * 6])
        assert (model.env.reset()["skill"] == VECTORS[2]).all()
    finally:
        model.set_skill(None)
    assert model.predict(BATCH)[0] == pytest.approx(actions[[0, 1, 2, 3, 0, 1]])


class Lasting(gym.Env):
    """Always observes the same; an episode of a given action lasts longer than those of all others."""

    observation_space = gym.spaces.Box(-8, 8, (3,))
    action_space = gym.spaces.Box(-2, 2, (1,))

    def __init__(self, action):
        self.long = action

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return OBS, {}

    def step(self, action):
        self.time += 1
        return OBS, 0.0, False, self.time >= (15 if np.allclose(action, self.long, atol=1e-5) else 3), {}


@pytest.mark.parametrize("add_skills", [False, True])
@pytest.mark.parametrize("n_envs", [1, 2, 4])
def test_skills_count_alike_whatever_their_episodes_last(model, actions, n_envs, add_skills):
    """In evaluations, with plain observations and, as ``EvalCallback`` has them, with those that bear a skill."""
    env = make_vec_env(Lasting, n_envs, env_kwargs={"action": actions[1]})
    if add_skills:
        env = VecSkillObservation(env, model.skill_space, skill_duration=None, order="cycle")
    played = []

    def note(local, _):
        if local["done"]:
            played.append(int(np.abs(actions - local["actions"][local["i"]]).argmin()))

    for _ in range(3):
        played.clear()
        evaluate_policy(model, env, n_eval_episodes=8, callback=note)
        assert np.bincount(played, minlength=4).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("shape", [(1,), (2,), (4,), (6,), (7,), (8,), (2, 7), (1, 2, 3), ()])
def test_wrong_size(model, shape):
    """Among them that of an observation with its skill appended."""
    for observation in (np.zeros(shape, np.float32), {"observation": np.zeros(shape, np.float32), "skill": VECTORS[0]}):
        with pytest.raises(ValueError, match="observation shape"):
            model.predict(observation)


def test_networks_take_no_observations_without_skill(model):
    plain, buffer = model.observation_space["observation"].sample(), model.replay_buffer
    for use in (model.policy.obs_to_tensor, model.actor.predict, lambda obs: buffer.add(obs, obs, plain[:1], 0, False, [{}])):
        with pytest.raises(ValueError, match=r"no skill: .*model\.get_env\(\)"):
            use(plain)
    assert buffer.size() == 150 and buffer.pos == 150
