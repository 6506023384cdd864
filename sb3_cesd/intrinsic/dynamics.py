"""Predictions of what an action does, and of which action was taken."""

import torch as th
from torch import nn

from sb3_cesd.common.choices import PredictionError
from sb3_cesd.common.torch_layers import create_orthogonal_mlp


class DynamicsPredictors(nn.Module):
    """
    Predict the dynamics forward, s' from (s, a), and backward, a from (s, s'): both halves of the intrinsic curiosity module
    (Pathak et al., 2017, eq. 4 and eq. 1).

    :param obs_dim: size of the states, or of their features
    :param action_dim: size of the action
    :param net_arch: sizes of the hidden layers of both networks
    :param error: the Euclidean ``"norm"`` of what is off, which URLB minimises, or half its ``"square"`` (eq. 5)
    """

    def __init__(self, obs_dim: int, action_dim: int, net_arch: list[int], error: PredictionError = "norm") -> None:
        super().__init__()
        self.error = error
        self.forward_net = create_orthogonal_mlp(obs_dim + action_dim, obs_dim, net_arch)
        self.backward_net = create_orthogonal_mlp(2 * obs_dim, action_dim, net_arch)

    def forward_errors(self, observations: th.Tensor, actions: th.Tensor, next_observations: th.Tensor) -> th.Tensor:
        """
        Compute how far off each predicted state is.

        :param observations: s, shape ``(n, obs_dim)``
        :param actions: a, in [-1, 1], shape ``(n, action_dim)``
        :param next_observations: s', shape ``(n, obs_dim)``
        :return: how far s' is from its prediction, shape ``(n,)``
        """
        predicted = self.forward_net(th.cat([observations, actions], dim=1))
        return prediction_errors(next_observations - predicted, self.error)

    def loss(self, observations: th.Tensor, actions: th.Tensor, next_observations: th.Tensor) -> th.Tensor:
        """
        Compute what both networks minimise.

        :param observations: s, shape ``(n, obs_dim)``
        :param actions: a, in [-1, 1], shape ``(n, action_dim)``
        :param next_observations: s', shape ``(n, obs_dim)``
        :return: the mean error of the states plus the mean error of the actions
        """
        forward_errors = self.forward_errors(observations, actions, next_observations)
        predicted_actions = self.backward_net(th.cat([observations, next_observations], dim=1)).tanh()
        return forward_errors.mean() + prediction_errors(actions - predicted_actions, self.error).mean()


def prediction_errors(deviations: th.Tensor, error: PredictionError) -> th.Tensor:
    """
    Compute how large deviations are.

    :param deviations: of predictions, shape ``(..., d)``
    :param error: the Euclidean ``"norm"``, or half its ``"square"``
    :return: shape ``(...)``
    """
    return deviations.norm(dim=-1) if error == "norm" else deviations.square().sum(dim=-1) / 2
