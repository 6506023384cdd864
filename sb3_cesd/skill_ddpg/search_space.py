"""Search spaces for RL Zoo's hyperparameter tuning that all methods, or several of them, share."""

from typing import Any

NET_ARCHS: dict[str, dict[str, list[int]]] = {
    "small": {"pi": [64, 64], "qf": [64, 64]},
    "medium": {"pi": [256, 256], "qf": [128, 256]},
    "big": {"pi": [1024, 1024], "qf": [512, 1024]},
}

Params = dict[str, Any]


#: Shared arguments that matter for a task, where the skills are given
TASK_ARGUMENTS = (
    "learning_rate",
    "batch_size",
    "gamma",
    "tau",
    "n_steps",
    "exploration_noise",
    "noise_correlation",
    "net_arch",
)


def draw_backbone(trial: Any) -> Params:
    """
    Sample the arguments that all methods have.

    :param trial: Optuna trial
    :return: sampled values by name of the argument
    """
    return {
        "n_skills": trial.suggest_categorical("n_skills", [4, 8, 16, 32]),
        "skill_duration": trial.suggest_categorical("skill_duration", [25, 50, 100, 200]),
        "learning_rate": trial.suggest_float("learning_rate", 1e-5, 0.002, log=True),
        "batch_size": trial.suggest_categorical("batch_size", [128, 256, 512, 1024]),
        "gamma": trial.suggest_categorical("gamma", [0.95, 0.97, 0.98, 0.99, 0.995, 0.999]),
        "tau": trial.suggest_float("tau", 0.001, 0.08, log=True),
        "n_steps": trial.suggest_int("n_steps", 1, 5),
        "exploration_noise": trial.suggest_float("exploration_noise", 0.05, 0.5),
        "noise_correlation": trial.suggest_categorical("noise_correlation", [0.0, 0.85]),
        "net_arch": trial.suggest_categorical("net_arch", list(NET_ARCHS)),
    }


def convert_backbone(params: Params) -> Params:
    """
    Convert all or some of what :func:`draw_backbone` sampled to arguments of the constructor.

    :param params: sampled values by name of the argument; ``net_arch`` may also be an architecture itself
    :return: arguments of the constructor; what the method itself sampled stays as it is
    """
    converted = params.copy()
    if "net_arch" not in converted:
        return converted
    net_arch = converted.pop("net_arch")
    return {"policy_kwargs": {"net_arch": NET_ARCHS[net_arch] if isinstance(net_arch, str) else net_arch}, **converted}


def hidden_sizes(params: Params) -> list[int]:
    """
    Get the sizes of the actor, for the networks of an intrinsic reward.

    :param params: arguments of the constructor, as :func:`convert_backbone` makes them
    :return: sizes of the hidden layers
    """
    net_arch = params["policy_kwargs"]["net_arch"]
    return net_arch["pi"] if isinstance(net_arch, dict) else net_arch


def pop(params: Params, *names: str) -> Params:
    """
    Remove sampled values from others.

    :param params: sampled values by name; changed in place
    :param names: names of the values to remove
    :return: the removed values
    """
    return {name: params.pop(name) for name in names}


def to_intrinsic(params: Params, *names: str) -> Params:
    """
    Move sampled values to the arguments of the intrinsic reward, and give its networks the sizes of the actor.

    :param params: arguments of the constructor and sampled values
    :param names: names of the sampled values, which are those of the arguments
    :return: arguments of the constructor, with ``intrinsic_kwargs``
    """
    others = params.copy()
    own = {"net_arch": hidden_sizes(params), **pop(others, *names)}
    return {"intrinsic_kwargs": own, **others}


def draw_entropy(trial: Any) -> Params:
    """
    Sample arguments of the particle entropy.

    :param trial: Optuna trial
    :return: sampled values by name
    """
    return {
        "k": trial.suggest_int("k", 3, 24, log=True),
        "scale": trial.suggest_categorical("scale", ["variance", "std"]),
        "log1p": trial.suggest_categorical("log1p", [True, False]),
    }


def draw_encoder(trial: Any) -> Params:
    """
    Sample the state representation and arguments of the particle entropy.

    :param trial: Optuna trial
    :return: sampled values by name
    """
    return {
        "encoder": trial.suggest_categorical("encoder", ["contrastive", "fourier", "icm", "identity", "temporal"]),
        **draw_entropy(trial),
    }


def pop_encoder(params: Params) -> Params:
    """
    Convert what :func:`draw_encoder` sampled to arguments of an intrinsic reward.

    :param params: arguments of the constructor and sampled values; changed in place
    :return: ``encoder``, ``encoder_kwargs`` and ``entropy_kwargs``
    """
    encoder = params.pop("encoder")
    return {
        "encoder": encoder,
        "encoder_kwargs": {"net_arch": hidden_sizes(params)} if encoder in ("contrastive", "icm", "temporal") else {},
        "entropy_kwargs": pop(params, "k", "scale", "log1p"),
    }
