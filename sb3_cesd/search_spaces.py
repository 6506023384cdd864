"""
What RL Zoo's hyperparameter tuning searches: for each algorithm a function that draws, and one that makes arguments of the
constructor from what was drawn.

A trial replaces arguments as a whole, so the ``*_kwargs`` drawn here take the place of those in the yml file: they hold all
that our files set, and otherwise the constructor's defaults.
"""

from typing import Any

NET_ARCHS: dict[str, dict[str, list[int]]] = {
    "small": {"pi": [64, 64], "qf": [64, 64]},
    "medium": {"pi": [256, 256], "qf": [128, 256]},
    "big": {"pi": [1024, 1024], "qf": [512, 1024]},
}

Params = dict[str, Any]


def _draw_backbone(trial: Any) -> Params:
    """
    :param trial: Optuna trial
    :return: what was drawn of the arguments that all algorithms have, by name of the draw
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


def _convert_backbone(params: Params) -> Params:
    """
    :param params: what was drawn, by name of the draw
    :return: the same with the draws of :func:`_draw_backbone` made arguments of the constructor
    """
    converted = params.copy()
    return {
        "n_skills": 2 ** converted.pop("n_skills_pow"),
        "batch_size": 2 ** converted.pop("batch_size_pow"),
        "gamma": 1 - converted.pop("one_minus_gamma"),
        "policy_kwargs": {"net_arch": NET_ARCHS[converted.pop("net_arch")]},
        **converted,
    }


def _draw_encoder(trial: Any) -> Params:
    """
    :param trial: Optuna trial
    :return: what was drawn of the state representation and the particle entropy, by name of the draw
    """
    return {
        "encoder": trial.suggest_categorical("encoder", ["contrastive", "fourier", "icm", "identity"]),
        **_draw_entropy(trial),
    }


def _draw_entropy(trial: Any) -> Params:
    return {
        "k": trial.suggest_int("k", 3, 24, log=True),
        "scale": trial.suggest_categorical("scale", ["variance", "std"]),
        "log1p": trial.suggest_categorical("log1p", [True, False]),
    }


def _encoder_kwargs(encoder: str, net_arch: list[int]) -> Params:
    return {"net_arch": net_arch} if encoder in ("contrastive", "icm") else {}


def _entropy_kwargs(params: Params) -> Params:
    return {name: params.pop(name) for name in ("k", "scale", "log1p")}


def draw_cesd(trial: Any) -> Params:
    """
    :param trial: Optuna trial
    :return: what was drawn, by name of the draw
    """
    return {
        **_draw_backbone(trial),
        **_draw_encoder(trial),
        "alpha": trial.suggest_float("alpha", 0.01, 10.0, log=True),
        "temperature": trial.suggest_float("temperature", 0.05, 0.2, log=True),
        "sinkhorn_temperature": trial.suggest_float("sinkhorn_temperature", 0.02, 0.1, log=True),
        "sinkhorn_iterations": trial.suggest_int("sinkhorn_iterations", 3, 6),
        "swap": trial.suggest_categorical("swap", ["next", "self"]),
        "critic": trial.suggest_categorical("critic", ["cluster", "union", "hindsight"]),
        "kappa": trial.suggest_categorical("kappa", [0.0, 0.3]),
        "actor": trial.suggest_categorical("actor", ["skill", "random", "cluster"]),
        "count": trial.suggest_categorical("count", ["released", "paper"]),
        "start": trial.suggest_categorical("start", [0.0, 0.8]),
    }


def convert_cesd(drawn: Params) -> Params:
    """
    :param drawn: what was drawn by :func:`draw_cesd`, by name of the draw
    :return: arguments of the constructor
    """
    params = _convert_backbone(drawn)
    net_arch = params["policy_kwargs"]["net_arch"]["pi"]
    return {
        "entropy_kwargs": _entropy_kwargs(params),
        "encoder_kwargs": _encoder_kwargs(params["encoder"], net_arch),
        "prototype_kwargs": {
            name: params.pop(name) for name in ("temperature", "sinkhorn_temperature", "sinkhorn_iterations", "swap")
        },
        "relabel_kwargs": {name: params.pop(name) for name in ("critic", "kappa", "actor")},
        "constraint_kwargs": {name: params.pop(name) for name in ("count", "start")},
        **params,
    }


def draw_diayn(trial: Any) -> Params:
    """
    :param trial: Optuna trial
    :return: what was drawn, by name of the draw
    """
    return {**_draw_backbone(trial), "scale": trial.suggest_float("scale", 0.1, 10.0, log=True)}


def convert_diayn(drawn: Params) -> Params:
    """
    :param drawn: what was drawn by :func:`draw_diayn`, by name of the draw
    :return: arguments of the constructor
    """
    params = _convert_backbone(drawn)
    net_arch = params["policy_kwargs"]["net_arch"]["pi"]
    return {"intrinsic_kwargs": {"net_arch": net_arch, "scale": params.pop("scale")}, **params}


def draw_dads(trial: Any) -> Params:
    """
    :param trial: Optuna trial
    :return: what was drawn, by name of the draw
    """
    return {
        **_draw_backbone(trial),
        "scale": trial.suggest_float("scale", 0.1, 10.0, log=True),
        "n_experts": trial.suggest_categorical("n_experts", [1, 4, 8]),
    }


def convert_dads(drawn: Params) -> Params:
    """
    :param drawn: what was drawn by :func:`draw_dads`, by name of the draw
    :return: arguments of the constructor
    """
    params = _convert_backbone(drawn)
    net_arch = params["policy_kwargs"]["net_arch"]["pi"]
    own = {name: params.pop(name) for name in ("scale", "n_experts")}
    return {"intrinsic_kwargs": {"net_arch": net_arch, **own}, **params}


def draw_cic(trial: Any) -> Params:
    """
    :param trial: Optuna trial
    :return: what was drawn, by name of the draw
    """
    return {
        **_draw_backbone(trial),
        **_draw_entropy(trial),
        "features_dim": trial.suggest_categorical("features_dim", [16, 32, 64]),
        "temperature": trial.suggest_float("temperature", 0.1, 1.0, log=True),
    }


def convert_cic(drawn: Params) -> Params:
    """
    :param drawn: what was drawn by :func:`draw_cic`, by name of the draw
    :return: arguments of the constructor
    """
    params = _convert_backbone(drawn)
    intrinsic_kwargs = {
        "net_arch": params["policy_kwargs"]["net_arch"]["pi"],
        **{name: params.pop(name) for name in ("features_dim", "temperature")},
        "entropy_kwargs": _entropy_kwargs(params),
    }
    return {"intrinsic_kwargs": intrinsic_kwargs, **params}


def draw_apt(trial: Any) -> Params:
    """
    :param trial: Optuna trial
    :return: what was drawn, by name of the draw
    """
    return {**_draw_backbone(trial), **_draw_encoder(trial)}


def convert_apt(drawn: Params) -> Params:
    """
    :param drawn: what was drawn by :func:`draw_apt`, by name of the draw
    :return: arguments of the constructor
    """
    params = _convert_backbone(drawn)
    encoder = params.pop("encoder")
    intrinsic_kwargs = {
        "encoder": encoder,
        "encoder_kwargs": _encoder_kwargs(encoder, params["policy_kwargs"]["net_arch"]["pi"]),
        "entropy_kwargs": _entropy_kwargs(params),
    }
    return {"intrinsic_kwargs": intrinsic_kwargs, **params}
