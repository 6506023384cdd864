import numpy as np

#: dm_control's: 0.1 at the distance of a margin
SCALE = np.sqrt(-2 * np.log(0.1))


def gaussian(distances: np.ndarray) -> np.ndarray:
    """
    dm_control's ``tolerance`` of many numbers, each to the last bit that of one: its own squares of arrays are rounded
    otherwise than those of numbers.

    :param distances: from the bounds, in margins; 0 within the bounds; shape ``(n,)``
    :return: 0.1 ** (distance ** 2), shape ``(n,)``
    """
    return np.exp(-0.5 * np.array([distance**2 for distance in (distances * SCALE).tolist()]))
