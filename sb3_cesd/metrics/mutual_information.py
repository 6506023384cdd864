import numpy as np

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.checks import check_lengths


def plug_in_mutual_information(states: np.ndarray, skills: np.ndarray, bin_size: float = 0.25) -> float:
    """
    Estimate the mutual information I(S; Z) of binned states and skills from the frequencies of their pairs.

    The estimate is too high by about ``(n_bins - 1) (n_skills - 1) / (2 n)``: compare samples of equal size.

    :param states: shape ``(n, d)``
    :param skills: skill that visited each state, shape ``(n,)``
    :param bin_size: side of the bins, in units of the states
    :return: mutual information [nats], from 0 to log(n_skills)
    """
    check_arguments("plug_in_mutual_information", locals())
    check_lengths(states=states, skills=skills)
    _, bins = np.unique(np.floor(states / bin_size), axis=0, return_inverse=True)
    _, labels = np.unique(skills, return_inverse=True)
    joint = np.zeros((bins.max() + 1, labels.max() + 1))
    np.add.at(joint, (bins, labels), 1 / len(states))
    # Rounding may make it negative
    return max(_entropy(joint.sum(axis=0)) + _entropy(joint.sum(axis=1)) - _entropy(joint), 0.0)


def _entropy(probabilities: np.ndarray) -> float:
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log(positive)).sum())
