"""What rewards are made of, from the motion of each body: MuJoCo's own sums, which formulas.py takes for granted."""

import gymnasium as gym
import mujoco
import numpy as np
import pytest

import sb3_cesd  # noqa: F401


@pytest.fixture(params=["walker", "quadruped"])
def moving(request):
    """An environment at places of a rollout."""
    env = gym.make({"walker": "WalkerFlip-v0", "quadruped": "QuadrupedJump-v0"}[request.param]).unwrapped

    def states():
        rng = np.random.default_rng(0)
        env.reset(seed=0)
        for _ in range(30):
            env.step(rng.uniform(-1, 1, env.action_space.shape))
            yield env.physics.model.ptr, env.physics.data.ptr

    yield env, states
    env.close()


def velocity(model, data, kind, idx, local=False):
    """Angular and linear velocity, each of shape ``(3,)``; of a body at its center of mass."""
    result = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, kind, idx, result, local)
    return result[:3], result[3:]


def whole_body(model, data):
    """Height of the center of mass, its velocity, and the angular momentum about it: sums over the bodies."""
    bodies = range(1, model.nbody)
    masses = model.body_mass[1:]
    spin, speed = np.transpose([velocity(model, data, mujoco.mjtObj.mjOBJ_BODY, idx) for idx in bodies], (1, 0, 2))
    center = masses @ data.xipos[1:] / masses.sum()
    center_speed = masses @ speed / masses.sum()
    momentum = np.cross(data.xipos[1:] - center, masses[:, None] * (speed - center_speed)).sum(axis=0)
    for idx in bodies:
        axes = data.ximat[idx].reshape(3, 3)
        momentum += axes @ (model.body_inertia[idx] * (axes.T @ spin[idx - 1]))
    return center[2], center_speed, momentum


def test_speed_height_and_momentum_are_of_the_whole_body_after_the_step(moving):
    env, states = moving
    momenta = []
    for model, data in states():
        height, speed, momentum = whole_body(model, data)
        if env.domain == "walker":
            np.testing.assert_allclose(env.physics.horizontal_velocity(), speed[0], atol=1e-9)
            np.testing.assert_allclose(env.physics.angular_momentum(), momentum[1], atol=1e-9)
            momenta.append(momentum[1])
        else:
            torso = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, "torso")
            ahead = velocity(model, data, mujoco.mjtObj.mjOBJ_SITE, torso, local=True)[1][0]
            np.testing.assert_allclose(env.physics.named.data.subtree_com["torso"][2], height, atol=1e-9)
            np.testing.assert_allclose(env.physics.torso_velocity()[0], ahead, atol=1e-9)
    if env.domain == "walker":
        assert np.ptp(momenta) > 1, "the rollout does not turn the walker"


def test_flip_is_paid_in_one_direction_only():
    env = gym.make("WalkerFlip-v0").unwrapped
    env.reset(seed=0)
    rewards = {}
    for spin in (-10.0, 10.0):
        with env.physics.reset_context():
            env.physics.named.data.qpos["rootz"] = 1.0
            env.physics.named.data.qvel["rooty"] = spin
        rewards[spin] = env._dm_env.task.get_reward(env.physics)
    # Upright, and high enough: S = 1; without momentum a sixth of it is left
    np.testing.assert_allclose([rewards[-10.0], rewards[10.0]], [1 / 6, 1.0], atol=1e-9)
    env.close()
