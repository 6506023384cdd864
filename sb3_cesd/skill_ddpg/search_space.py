"""What RL Zoo's hyperparameter tuning searches for all methods, and what several of them share."""

from typing import Any

NET_ARCHS: dict[str, dict[str, list[int]]] = {
    "small": {"pi": [64, 64], "qf": [64, 64]},
    "medium": {"pi": [256, 256], "qf": [128, 256]},
    "big": {"pi": [1024, 1024], "qf": [512, 1024]},
}

Params = dict[str, Any]


def draw_backbone(trial: Any) -> Params:
    """
    Draw the arguments that all methods have.

    :param trial: Optuna trial
    :return: what was drawn, by name of the draw
    """
    return {
        "n_skills_pow": trial.suggest_int("n_skills_pow", 2, 5),
        "skill_duration": trial.suggest_categorical("skill_duration", [25, 50, 100, 200]),
        "learning_rate": trial.suggest_float("learning_rate", 1e-5, 0.002, log=True),
        "batch_size_pow": trial.suggest_int("batch_size_pow", 7, 10),
        "one_minus_gamma": trial.suggest_float("one_minus_gamma", 0.001, 0.05, log=True),
        "tau": trial.suggest_float("tau", 0.001, 0.08, log=True),
        "n_steps": trial.suggest_int("n_steps", 1, 5),
        "exploration_noise": trial.suggest_float("exploration_noise", 0.05, 0.5),
        "noise_correlation": trial.suggest_categorical("noise_correlation", [0.0, 0.85]),
        "net_arch": trial.suggest_categorical("net_arch", list(NET_ARCHS)),
    }


def convert_backbone(params: Params) -> Params:
    """
    Make arguments of the constructor of what :func:`draw_backbone` drew.

    :param params: what was drawn, by name of the draw
    :return: arguments of the constructor; draws of the method itself stay as they are
    """
    converted = params.copy()
    return {
        "n_skills": 2 ** converted.pop("n_skills_pow"),
        "batch_size": 2 ** converted.pop("batch_size_pow"),
        "gamma": 1 - converted.pop("one_minus_gamma"),
        "policy_kwargs": {"net_arch": NET_ARCHS[converted.pop("net_arch")]},
        **converted,
    }


def hidden_sizes(params: Params) -> list[int]:
    """
    Give the networks of an intrinsic reward the size of the actor.

    :param params: arguments of the constructor, as :func:`convert_backbone` makes them
    :return: sizes of the hidden layers
    """
    return params["policy_kwargs"]["net_arch"]["pi"]


def pop(params: Params, *names: str) -> Params:
    """
    Take draws out of others.

    :param params: what was drawn, by name of the draw; changed in place
    :param names: names of draws
    :return: these draws
    """
    return {name: params.pop(name) for name in names}


def draw_entropy(trial: Any) -> Params:
    """
    Draw arguments of the particle entropy.

    :param trial: Optuna trial
    :return: what was drawn, by name of the draw
    """
    return {
        "k": trial.suggest_int("k", 3, 24, log=True),
        "scale": trial.suggest_categorical("scale", ["variance", "std"]),
        "log1p": trial.suggest_categorical("log1p", [True, False]),
    }


def draw_encoder(trial: Any) -> Params:
    """
    Draw the state representation and arguments of the particle entropy.

    :param trial: Optuna trial
    :return: what was drawn, by name of the draw
    """
    return {
        "encoder": trial.suggest_categorical("encoder", ["contrastive", "fourier", "icm", "identity"]),
        **draw_entropy(trial),
    }


def pop_encoder(params: Params) -> Params:
    """
    Make arguments of an intrinsic reward of what :func:`draw_encoder` drew.

    :param params: arguments of the constructor and draws; changed in place
    :return: ``encoder``, ``encoder_kwargs`` and ``entropy_kwargs``
    """
    encoder = params.pop("encoder")
    return {
        "encoder": encoder,
        "encoder_kwargs": {"net_arch": hidden_sizes(params)} if encoder in ("contrastive", "icm") else {},
        "entropy_kwargs": pop(params, "k", "scale", "log1p"),
    }
