"""METRA's statistics of the observations of its robots, from 10,000 rollouts of 50 random actions."""

from typing import NamedTuple

import numpy as np


class ObservationScale(NamedTuple):
    """Mean and standard deviation of each entry of the observations, shape ``(obs_dim,)`` each."""

    mean: np.ndarray
    std: np.ndarray

    def normalize(self, raw: np.ndarray) -> np.ndarray:
        """Subtract the means, and divide by the standard deviations, shape ``(..., obs_dim)``."""
        return (raw - self.mean) / self.std

    def unnormalize(self, normalized: np.ndarray) -> np.ndarray:
        """Undo :meth:`normalize`."""
        return normalized * self.std + self.mean


#: By robot
SCALES = {
    "ant": ObservationScale(
        np.array(
            # Position, orientation, joints
            [0.00486117, 0.011312, 0.7022248]
            + [0.8454677, -0.00102548, -0.00300276, 0.00311523]
            + [-0.00139029, 0.8607109, -0.00185301, -0.8556998, 0.00343217, -0.8585605, -0.00109082, 0.8558013]
            # Their velocities
            + [0.00278213, 0.00618173, -0.02584622, -0.00599026, -0.00379596, 0.00526138]
            + [-0.0059213, 0.27686235, 0.00512205, -0.27617684, -0.0033233, -0.2766923, 0.00268359, 0.27756855]
        ),
        np.array(
            [0.62473416, 0.61958003, 0.1717569]
            + [0.28629342, 0.20020866, 0.20572574, 0.34922406]
            + [0.40098143, 0.3114514, 0.4024826, 0.31057045, 0.40343934, 0.3110796, 0.40245822, 0.31100526]
            + [0.81786263, 0.8166509, 0.9870919, 1.7525449, 1.7468817, 1.8596431]
            + [4.502961, 4.4070187, 4.522444, 4.3518476, 4.5105968, 4.3704205, 4.5175962, 4.3704395]
        ),
    ),
    "half_cheetah": ObservationScale(
        np.array(
            # Position and pitch, joints
            [-0.07861924, -0.08627162, 0.08968642]
            + [0.00960849, 0.02950368, -0.00948337, 0.01661406, -0.05476654, -0.04932635]
            # Their velocities
            + [-0.08061652, -0.05205841, 0.04500197]
            + [0.02638421, -0.04570961, 0.03183838, 0.01736591, 0.0091929, -0.0115027]
        ),
        np.array(
            [0.4039283, 0.07610687, 0.23817]
            + [0.2515473, 0.2698137, 0.26374814, 0.32229397, 0.2896734, 0.2774097]
            + [0.73060024, 0.77360505, 1.5871304]
            + [5.5405455, 6.7097645, 6.8253727, 6.3142195, 6.417641, 5.9759197]
        ),
    ),
}
