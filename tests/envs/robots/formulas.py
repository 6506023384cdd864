"""
The rewards and observations of the benchmark, written a second time from their definition, on the arrays of MuJoCo alone.

L(x; b, m, v) is linear below the bound b with value v at distance m, G(d) = 0.1 ** (d * d).
"""

from functools import partial

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


def walker_stand(model, data, part="torso", bound=1.2, margin=0.6, upright_sign=1.0, weight=3):
    height, upright = data.xpos[body(model, part)][2], upright_sign * data.xmat[body(model, part)][8]
    return (weight * gauss(max(0.0, bound - height) / margin) + (1 + upright) / 2) / (weight + 1)


def walker_move(model, data, speed, margin, part="torso", axis=0, sign=1.0, value=0.5, weight=5):
    velocity = sign * sensor(model, data, "torso_subtreelinvel")[axis]
    return walker_stand(model, data, part) * (weight * linear(velocity, speed, margin, value) + 1) / (weight + 1)


def walker_flip(model, data, part="torso", axis=1, sign=1.0, bound=5, margin=5, value=0.0, weight=5):
    momentum = sign * data.subtree_angmom[body(model, part)][axis]
    return walker_stand(model, data) * (weight * linear(momentum, bound, margin, value) + 1) / (weight + 1)


def quadruped_stand(model, data, part="torso", sign=1.0):
    return (1 + sign * data.xmat[body(model, part)][8]) / 2


def quadruped_move(model, data, speed, margin, part="torso", axis=0, sign=1.0, value=0.5):
    velocity = sign * sensor(model, data, "velocimeter")[axis]
    return quadruped_stand(model, data, part) * linear(velocity, speed, margin, value)


def quadruped_jump(model, data, part="torso", bound=1.0, margin=1.0, value=0.5, upright_sign=1.0):
    height = data.subtree_com[body(model, part)][2]
    return quadruped_stand(model, data, sign=upright_sign) * linear(height, bound, margin, value)


def quadruped_jump_of_torso(model, data):
    return quadruped_stand(model, data) * linear(data.xpos[body(model, "torso")][2], 1, 1, 0.5)


def jaco_reach(model, data, site="pinchsite", radius=0.05, margin=0.05, above=0.0):
    hand = data.site_xpos[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, f"jaco_arm/jaco_hand/{site}")]
    distance = np.linalg.norm(hand - (data.qpos[9:12] + [0, 0, above]))
    return 1.0 if distance <= radius else gauss((distance - radius) / margin)


def with_wrong(formula, wrong, **right):
    """The formula with the right arguments, and one form with each wrong one."""
    return partial(formula, **right), [partial(formula, **{**right, name: value}) for name, value in wrong]


WALKER_STAND = with_wrong(
    walker_stand, [("part", "right_leg"), ("upright_sign", -1), ("bound", 1.1), ("margin", 1.2), ("weight", 1)]
)
MOVES = [("part", "left_thigh"), ("axis", 2), ("sign", -1), ("value", 0.1), ("weight", 1)]
QUADRUPED_MOVES = [("part", "toe_front_left"), ("axis", 1), ("sign", -1), ("value", 0.1)]
QUADRUPED_WALK = with_wrong(quadruped_move, [*QUADRUPED_MOVES, ("speed", 5), ("margin", 0.25)], speed=0.5, margin=0.5)
QUADRUPED_JUMP, WRONG_JUMPS = with_wrong(
    quadruped_jump, [("part", "toe_front_left"), ("bound", 0.8), ("margin", 0.5), ("value", 0.0), ("upright_sign", -1)]
)
JACO_REACH = with_wrong(jaco_reach, [("site", "gripsite"), ("radius", 0.04), ("margin", 0.1), ("above", 0.01)])

#: By id: the reward, and forms that are wrong
REWARDS = {
    "Walker-v0": WALKER_STAND,
    "WalkerStand-v0": WALKER_STAND,
    "WalkerWalk-v0": with_wrong(walker_move, [*MOVES, ("speed", 8), ("margin", 1)], speed=1, margin=0.5),
    "WalkerRun-v0": with_wrong(walker_move, [*MOVES, ("speed", 1), ("margin", 8)], speed=8, margin=4),
    "WalkerFlip-v0": with_wrong(
        walker_flip,
        [("part", "right_thigh"), ("axis", 0), ("sign", -1), ("bound", 4), ("margin", 2.5), ("value", 0.5), ("weight", 1)],
    ),
    "Quadruped-v0": QUADRUPED_WALK,
    "QuadrupedStand-v0": with_wrong(quadruped_stand, [("part", "toe_front_left"), ("sign", -1)]),
    "QuadrupedWalk-v0": QUADRUPED_WALK,
    "QuadrupedRun-v0": with_wrong(quadruped_move, [*QUADRUPED_MOVES, ("speed", 0.5), ("margin", 2.5)], speed=5, margin=5),
    "QuadrupedJump-v0": (QUADRUPED_JUMP, [*WRONG_JUMPS, quadruped_jump_of_torso]),
    "Jaco-v0": JACO_REACH,
    "JacoReachTopLeft-v0": JACO_REACH,
    "JacoReachTopRight-v0": JACO_REACH,
    "JacoReachBottomLeft-v0": JACO_REACH,
    "JacoReachBottomRight-v0": JACO_REACH,
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
