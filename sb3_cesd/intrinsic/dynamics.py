"""Forward and inverse models of the dynamics."""

import torch as th
from torch import nn

from sb3_cesd.common.choices import PredictionError
from sb3_cesd.common.torch_layers import create_orthogonal_mlp


class DynamicsPredictors(nn.Module):
    """
    Forward model, s' from (s, a), and inverse model, a from (s, s'), of the intrinsic curiosity module (Pathak et al., 2017,
    eq. 4 and eq. 1).

    :param obs_dim: size of the states, or of their features
    :param action_dim: size of the action
    :param net_arch: sizes of the hidden layers of both networks
    :param error: what they minimise: the Euclidean ``"norm"`` of the prediction error, as in URLB, or half its ``"square"``
        (eq. 5)
    """

    def __init__(self, obs_dim: int, action_dim: int, net_arch: list[int], error: PredictionError = "norm") -> None:
        super().__init__()
        self.error = error
        self.forward_net = create_orthogonal_mlp(obs_dim + action_dim, obs_dim, net_arch)
        self.backward_net = create_orthogonal_mlp(2 * obs_dim, action_dim, net_arch)

    def forward_errors(self, observations: th.Tensor, actions: th.Tensor, next_observations: th.Tensor) -> th.Tensor:
        """
        Compute the prediction errors of the forward model.

        :param observations: s, shape ``(n, obs_dim)``
        :param actions: a, in [-1, 1], shape ``(n, action_dim)``
        :param next_observations: s', shape ``(n, obs_dim)``
        :return: errors of the predicted s', shape ``(n,)``
        """
        predicted = self.forward_net(th.cat([observations, actions], dim=1))
        return prediction_errors(next_observations - predicted, self.error)

    def loss(self, observations: th.Tensor, actions: th.Tensor, next_observations: th.Tensor) -> th.Tensor:
        """
        Compute the loss of both models.

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
    Compute the size of prediction errors.

    :param deviations: differences from predictions, shape ``(..., d)``
    :param error: the Euclidean ``"norm"``, or half its ``"square"``
    :return: shape ``(...)``
    """
    return deviations.norm(dim=-1) if error == "norm" else deviations.square().sum(dim=-1) / 2
