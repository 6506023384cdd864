"""Ids of the robots, and the length of their episodes."""

#: Length of an episode of each domain, in steps
HORIZONS: dict[str, int] = {"walker": 1000, "quadruped": 1000, "jaco": 250, "ant": 200, "half_cheetah": 200}

#: Id -> (domain, task). ``<Domain>-v0`` are for pre-training; their reward is that of the primal task, and is only reported.
ROBOTS: dict[str, tuple[str, str]] = {
    "Walker-v0": ("walker", "stand"),
    "WalkerStand-v0": ("walker", "stand"),
    "WalkerWalk-v0": ("walker", "walk"),
    "WalkerRun-v0": ("walker", "run"),
    "WalkerFlip-v0": ("walker", "flip"),
    "Quadruped-v0": ("quadruped", "walk"),
    "QuadrupedStand-v0": ("quadruped", "stand"),
    "QuadrupedWalk-v0": ("quadruped", "walk"),
    "QuadrupedRun-v0": ("quadruped", "run"),
    "QuadrupedJump-v0": ("quadruped", "jump"),
    "Jaco-v0": ("jaco", "reach_top_left"),
    "JacoReachTopLeft-v0": ("jaco", "reach_top_left"),
    "JacoReachTopRight-v0": ("jaco", "reach_top_right"),
    "JacoReachBottomLeft-v0": ("jaco", "reach_bottom_left"),
    "JacoReachBottomRight-v0": ("jaco", "reach_bottom_right"),
}

#: Id -> domain of the robots of METRA and its successors, for pre-training, with Gymnasium's models
LOCOMOTION: dict[str, str] = {"SkillAnt-v0": "ant", "SkillHalfCheetah-v0": "half_cheetah"}
