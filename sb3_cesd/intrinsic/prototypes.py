from typing import Literal

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import Positive, PositiveInt, checked
from sb3_cesd.common.torch_layers import sample_categorical


def sinkhorn_knopp(scores: th.Tensor, temperature: float, n_iterations: int) -> th.Tensor:
    """
    Assign rows to columns softly such that every column gets the same total (Sinkhorn-Knopp, as in SwAV).

    :param scores: shape ``(batch_size, n_prototypes)``
    :param temperature: the lower, the closer to a hard assignment
    :param n_iterations: number of normalisations of columns and rows
    :return: probabilities, rows sum to 1, shape ``(batch_size, n_prototypes)``
    """
    # In log space: low temperatures overflow otherwise
    log_q = scores / temperature
    for _ in range(n_iterations):
        # Totals of 1: constants would cancel in the next normalisation
        log_q = log_q.log_softmax(dim=0).log_softmax(dim=1)
    return log_q.exp()


class Prototypes(nn.Module):
    """
    Clusters of states: one unit vector c_i in feature space for each skill, learned by swapped prediction (section 3.2 of
    the CeSD paper).

    :param n_prototypes: number of clusters
    :param features_dim: size of the features
    :param temperature: tau of the softmax ``p_i = exp(u . c_i / tau) / sum_j exp(u . c_j / tau)`` with normalised features u
        (eq. 3)
    :param sinkhorn_temperature: temperature of the target assignment, low enough to keep the clusters from dissolving;
        ``None`` for the same as ``temperature`` (the released code)
    :param sinkhorn_iterations: Sinkhorn-Knopp iterations
    :param swap: ``"next"`` predicts the assignment of s' from s (the released code), ``"self"`` that of the same state (the
        paper)
    """

    @checked
    def __init__(
        self,
        n_prototypes: int,
        features_dim: int,
        temperature: Positive = 0.1,
        sinkhorn_temperature: Positive | None = 0.03,
        sinkhorn_iterations: PositiveInt = 5,
        swap: Literal["next", "self"] = "self",
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.sinkhorn_temperature = temperature if sinkhorn_temperature is None else sinkhorn_temperature
        self.sinkhorn_iterations = sinkhorn_iterations
        self.swap = swap
        self.vectors = nn.Parameter(nn.init.orthogonal_(th.empty(n_prototypes, features_dim)))

    @th.no_grad()
    def normalize(self) -> None:
        """Normalise the vectors to length 1, in place, before they learn from a batch."""
        self.vectors.copy_(F.normalize(self.vectors, dim=1))

    def scores(self, features: th.Tensor) -> th.Tensor:
        """Compare features with the prototypes, which must be normalised, for :meth:`loss`, shape ``(n, n_prototypes)``."""
        return F.normalize(features, dim=1) @ self.vectors.T

    @th.no_grad()
    def similarities(self, features: th.Tensor) -> th.Tensor:
        """Compare features with the prototypes right after an update, too, when their lengths differ; as :meth:`scores`."""
        return F.normalize(features, dim=1) @ F.normalize(self.vectors, dim=1).T

    def predict(self, features: th.Tensor) -> th.Tensor:
        """Predict the most likely cluster of each state, shape ``(n,)``."""
        return self.similarities(features).argmax(dim=1)

    @th.no_grad()
    def sample(self, scores: th.Tensor) -> th.Tensor:
        """Draw a cluster for each state, ``z ~ Categorical(softmax(scores / temperature))`` (eq. 3), shape ``(n,)``."""
        return sample_categorical((scores / self.temperature).softmax(dim=1))

    def loss(self, predicted_scores: th.Tensor, target_scores: th.Tensor) -> th.Tensor:
        """
        Compute the cross-entropy between the Sinkhorn-Knopp assignment of one state and the softmax of another (eq. 4), given
        the scores of both, shape ``(batch_size, n_prototypes)``; the gradient is that of the predicted ones.
        """
        targets = sinkhorn_knopp(target_scores.detach(), self.sinkhorn_temperature, self.sinkhorn_iterations)
        log_probabilities = (predicted_scores / self.temperature).log_softmax(dim=1)
        return -(targets * log_probabilities).sum(dim=1).mean()
