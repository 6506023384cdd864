"""
The rewards and observations of the benchmark, written a second time from their definition, on the arrays of MuJoCo alone.

L(x; b, m, v) is linear below the bound b with value v at distance m, G(d) = 0.1 ** (d * d).
"""

import mujoco
import numpy as np


def linear(x, bound, margin, value):
    return 1.0 if x >= bound else max(0.0, 1 - (1 - value) * (bound - x) / margin)


def gauss(d):
    return 0.1 ** (d * d)


def sensor(model, data, name):
    idx = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SENSOR, name)
    start = model.sensor_adr[idx]
    return data.sensordata[start : start + model.sensor_dim[idx]]


def body(model, name):
    return mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)


def walker_stand(model, data, part="torso"):
    torso = body(model, part)
    height, upright = data.xpos[torso][2], data.xmat[torso][8]
    return (3 * gauss(max(0.0, 1.2 - height) / 0.6) + (1 + upright) / 2) / 4


def walker_move(model, data, speed, sign=1.0, part="torso"):
    velocity = sign * sensor(model, data, "torso_subtreelinvel")[0]
    return walker_stand(model, data, part) * (5 * linear(velocity, speed, speed / 2, 0.5) + 1) / 6


def walker_flip(model, data, sign=1.0, part="torso"):
    momentum = sign * data.subtree_angmom[body(model, part)][1]
    return walker_stand(model, data) * (5 * linear(momentum, 5, 5, 0) + 1) / 6


def quadruped_stand(model, data, sign=1.0, part="torso"):
    return (1 + sign * data.xmat[body(model, part)][8]) / 2


def quadruped_move(model, data, speed, axis=0, sign=1.0):
    velocity = sign * sensor(model, data, "velocimeter")[axis]
    return quadruped_stand(model, data) * linear(velocity, speed, speed, 0.5)


def quadruped_jump(model, data, part="torso", bound=1.0):
    return quadruped_stand(model, data) * linear(data.subtree_com[body(model, part)][2], bound, 1, 0.5)


def jaco_reach(model, data, offset=0.0, site="jaco_arm/jaco_hand/pinchsite"):
    hand = data.site_xpos[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, site)]
    distance = np.linalg.norm(hand - (data.qpos[9:12] + [0, 0, offset]))
    return 1.0 if distance <= 0.05 else gauss((distance - 0.05) / 0.05)


#: By id: the reward, and forms that are wrong
REWARDS = {
    "Walker-v0": (walker_stand, [lambda m, d: walker_stand(m, d, "right_leg")]),
    "WalkerStand-v0": (walker_stand, [lambda m, d: walker_stand(m, d, "right_leg")]),
    "WalkerWalk-v0": (
        lambda m, d: walker_move(m, d, 1),
        [lambda m, d: walker_move(m, d, 1, sign=-1), lambda m, d: walker_move(m, d, 8), walker_stand],
    ),
    "WalkerRun-v0": (
        lambda m, d: walker_move(m, d, 8),
        [lambda m, d: walker_move(m, d, 8, sign=-1), lambda m, d: walker_move(m, d, 8, part="left_leg")],
    ),
    "WalkerFlip-v0": (
        walker_flip,
        [lambda m, d: walker_flip(m, d, sign=-1), lambda m, d: walker_flip(m, d, part="right_thigh")],
    ),
    "Quadruped-v0": (
        lambda m, d: quadruped_move(m, d, 0.5),
        [lambda m, d: quadruped_move(m, d, 0.5, sign=-1), quadruped_stand],
    ),
    "QuadrupedStand-v0": (
        quadruped_stand,
        [lambda m, d: quadruped_stand(m, d, sign=-1), lambda m, d: quadruped_stand(m, d, part="toe_front_left")],
    ),
    "QuadrupedWalk-v0": (
        lambda m, d: quadruped_move(m, d, 0.5),
        [lambda m, d: quadruped_move(m, d, 0.5, axis=1), lambda m, d: quadruped_move(m, d, 5)],
    ),
    "QuadrupedRun-v0": (
        lambda m, d: quadruped_move(m, d, 5),
        [lambda m, d: quadruped_move(m, d, 5, sign=-1), lambda m, d: quadruped_move(m, d, 0.5)],
    ),
    "QuadrupedJump-v0": (
        quadruped_jump,
        [lambda m, d: quadruped_jump(m, d, part="toe_front_left"), lambda m, d: quadruped_jump(m, d, bound=0.8)],
    ),
    **{
        env_id: (
            jaco_reach,
            [lambda m, d: jaco_reach(m, d, site="jaco_arm/jaco_hand/gripsite"), lambda m, d: jaco_reach(m, d, 0.01)],
        )
        for env_id in ("Jaco-v0", *(f"JacoReach{place}-v0" for place in ("TopLeft", "TopRight", "BottomLeft", "BottomRight")))
    },
}


def walker_observation(model, data):
    """Orientations of the bodies (xx, xz), height of the torso, velocities of the joints."""
    return np.concatenate([data.xmat[1:][:, [0, 2]].ravel(), [data.xpos[body(model, "torso")][2]], data.qvel])


def quadruped_observation(model, data):
    """Hinges (positions, velocities), activations; velocimeter; upright; gyro, accelerometer; arcsinh of forces, torques."""
    hinges = np.nonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE)[0]

    def of_types(*types):
        sensors = np.nonzero(np.isin(model.sensor_type, types))[0]
        return np.concatenate(
            [data.sensordata[model.sensor_adr[s] : model.sensor_adr[s] + model.sensor_dim[s]] for s in sensors]
        )

    kinds = mujoco.mjtSensor
    return np.concatenate(
        [
            data.qpos[model.jnt_qposadr[hinges]],
            data.qvel[model.jnt_dofadr[hinges]],
            data.act,
            sensor(model, data, "velocimeter"),
            [data.xmat[body(model, "torso")][8]],
            of_types(kinds.mjSENS_GYRO, kinds.mjSENS_ACCELEROMETER),
            np.arcsinh(of_types(kinds.mjSENS_FORCE, kinds.mjSENS_TORQUE)),
        ]
    )


def jaco_observation(model, data):
    """Arm: sines and cosines of joints, torques about them (symlog), velocities; hand; brick."""
    site = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, "jaco_arm/jaco_hand/pinchsite")
    arm = np.arange(6)
    torques = np.array([sensor(model, data, f"jaco_arm/joint_{joint + 1}_torque") @ model.jnt_axis[joint] for joint in arm])
    return np.concatenate(
        [
            np.stack([np.sin(data.qpos[arm]), np.cos(data.qpos[arm])], axis=1).ravel(),
            np.sign(torques) * np.log1p(np.abs(torques)),
            data.qvel[arm],
            data.qpos[6:9],
            data.qvel[6:9],
            data.site_xpos[site],
            data.site_xmat[site],
            sensor(model, data, "duplo2x4/angular_velocity"),
            sensor(model, data, "duplo2x4/linear_velocity"),
            sensor(model, data, "duplo2x4/orientation"),
            sensor(model, data, "duplo2x4/position"),
        ]
    )


OBSERVATIONS = {"walker": walker_observation, "quadruped": quadruped_observation, "jaco": jaco_observation}
