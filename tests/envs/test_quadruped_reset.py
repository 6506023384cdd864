"""The quadruped's quick search for its initial height, against dm_control's own."""

import mujoco
import numpy as np

from sb3_cesd.envs.robots.gl import import_physics

suite, quadruped = import_physics("dm_control.suite.quadruped", "sb3_cesd.envs.robots.quadruped")


def test_initial_states_are_those_of_the_suite():
    """All of what a simulation goes on from, with the start of the solver."""
    expected, env = suite.run(random=np.random.RandomState(3)), quadruped.make("run")
    env.task._random = np.random.RandomState(3)
    heights = set()
    for _ in range(25):
        expected.reset()
        env.reset()
        states = [each.physics.get_state(mujoco.mjtState.mjSTATE_INTEGRATION) for each in (expected, env)]
        np.testing.assert_array_equal(*states)
        np.testing.assert_array_equal(env.physics.data.sensordata, expected.physics.data.sensordata)
        heights.add(env.physics.data.qpos[2])
    assert len(heights) > 5 and min(heights) > 0.2


def test_nothing_is_touched_at_the_height_and_something_a_step_below():
    env = quadruped.make("stand")
    rng = np.random.default_rng(0)
    for _ in range(20):
        orientation = rng.normal(size=4)
        orientation /= np.linalg.norm(orientation)
        height = quadruped.lowest_free_height(env.physics, orientation)
        for below, touches in ((0.0, False), (quadruped.HEIGHT_STEP, True)):
            with env.physics.reset_context():
                env.physics.data.qpos[:7] = 0, 0, height - below, *orientation
            assert (env.physics.data.ncon > 0) == touches
