"""Simulations that diverge: their episode ends, is counted, and training goes on."""

import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure

from sb3_cesd import CeSD, make_batched

ROBOTS = {"Walker-v0": 6, "Quadruped-v0": 12, "JacoReachTopLeft-v0": 9}


def blow_up(env, idx, env_id):
    """Give a part of a robot a velocity that MuJoCo can't integrate."""
    dof = 8 if env_id.startswith("Q") else 0
    if hasattr(env, "envs"):
        env.envs[idx].unwrapped.physics.data.qvel[dof] = 1e12
    else:
        env._batch._batch.bind("qvel")[idx, dof] = 1e12


def without_time(infos):
    return [
        {
            key: {name: entry for name, entry in value.items() if name != "t"} if key == "episode" else value
            for key, value in info.items()
            if key not in ("terminal_observation",)
        }
        for info in infos
    ]


@pytest.mark.parametrize("env_id", ROBOTS)
def test_single_and_batched_ones_end_alike(env_id):
    """Also afterwards, when episodes do not end together any more."""
    envs = [make_batched(env_id, 3, seed=0), make_vec_env(env_id, 3, seed=0)]
    batched, single = envs
    last = batched.reset()
    np.testing.assert_array_equal(last, single.reset())
    rng = np.random.default_rng(0)
    n_steps = 0
    for step in range(12):
        actions = rng.uniform(-1, 1, (3, ROBOTS[env_id]))
        diverges = {4: 1, 5: 1, 9: 2}.get(step)
        if diverges is not None:
            for env in envs:
                blow_up(env, diverges, env_id)
        observations, rewards, dones, infos = batched.step(actions)
        expected = single.step(actions)
        np.testing.assert_array_equal(observations, expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        np.testing.assert_array_equal(dones, expected[2])
        assert dones.tolist() == [idx == diverges for idx in range(3)]
        assert without_time(infos) == without_time(expected[3])
        n_steps = 0 if diverges is not None and step != 9 else n_steps + 1
        if diverges is not None:
            for info in (infos[diverges], expected[3][diverges]):
                (name,) = info["physics_warnings"]
                assert name.startswith("mjWARN_BAD") and info["physics_warnings"][name] > 0
                assert info["TimeLimit.truncated"] is False, "terminated"
                np.testing.assert_array_equal(info["terminal_observation"], last[diverges])
            assert rewards[diverges] == 0 and np.isfinite(observations).all()
        np.testing.assert_array_equal(batched.get_attr("position"), single.get_attr("position"))
        last = observations
    for env in envs:
        assert env.get_attr("n_diverged") == [0, 2, 1]


def test_episodes_that_got_out_of_step_end_each_on_time():
    env = make_batched("Walker-v0", 2, seed=0)
    env.max_episode_steps = 6
    env.reset()
    ends = []
    for step in range(14):
        if step == 3:
            blow_up(env, 1, "Walker-v0")
        dones, infos = env.step(np.zeros((2, 6)))[2:]
        ends += [(step, idx, infos[idx]["episode"]["l"], "physics_warnings" in infos[idx]) for idx in np.nonzero(dones)[0]]
    assert ends == [(3, 1, 4, True), (5, 0, 6, False), (9, 1, 6, False), (11, 0, 6, False)]


@pytest.mark.parametrize("make", [make_batched, make_vec_env])
def test_training_goes_on_and_counts_them(make, tiny):
    env = make("Walker-v0", 2, seed=0)
    step_wait, n_steps = env.step_wait, []

    def spoilt():
        n_steps.append(None)
        if len(n_steps) == 30:
            blow_up(env, 1, "Walker-v0")
        return step_wait()

    env.step_wait = spoilt
    model = CeSD("MlpPolicy", env, **tiny)
    logger = configure(None, [])
    logger.dump = lambda step=0: None  # it would forget
    model.set_logger(logger)
    model.learn(120, log_interval=1)
    buffer = model.replay_buffer
    assert model.n_diverged_simulations == 1 and buffer.dones[29].tolist() == [0, 1]
    assert np.isfinite(buffer.rewards).all() and model._n_updates > 0
    assert logger.name_to_value["rollout/n_diverged_simulations"] == 1


def test_after_a_reset_it_is_as_if_nothing_had_happened():
    env = make_batched("Quadruped-v0", 3, seed=0)
    first = env.reset()
    for _ in range(2):
        blow_up(env, 2, "Quadruped-v0")
        env.step(np.zeros((3, 12)))
        env.seed(0)
        np.testing.assert_array_equal(env.reset(), first)
    expected = make_vec_env("Quadruped-v0", 3, seed=0)
    expected.reset()
    np.testing.assert_array_equal(env.step(np.zeros((3, 12)))[0], expected.step(np.zeros((3, 12)))[0])
