"""
Export policies to files that run no code when loaded: arrays (safetensors) and a description (JSON in the header)::

    export_policy(model, "walker.safetensors")
    policy = import_policy("walker.safetensors")
    actions, _ = policy.predict(observations, skill=3)
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from safetensors import safe_open
from safetensors.torch import save
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, FlattenExtractor, NatureCNN
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.arguments import check_value
from sb3_cesd.common.files import AnyPath, installed_versions, with_suffix, written_whole
from sb3_cesd.common.observations import SKILL, Observation, entries_of, has_skill, plain_form, skill_observation_space
from sb3_cesd.common.skills import SkillName, make_skill_space
from sb3_cesd.common.vec_normalize import observation_statistics, statistics_of_training
from sb3_cesd.skill_ddpg.checks import not_finite
from sb3_cesd.skill_ddpg.networks import StochasticSkillActor
from sb3_cesd.skill_ddpg.policies import SkillPolicy
from sb3_cesd.skill_ddpg.skill_ddpg import SkillDDPG

SUFFIX = ".safetensors"
#: Version of the file format
FORMAT = 1
#: Features extractors that can be exported, by name
EXTRACTORS: dict[str, type[BaseFeaturesExtractor]] = {
    extractor.__name__: extractor for extractor in (FlattenExtractor, CombinedExtractor, NatureCNN)
}
#: Attributes of the model in a file
OF_MODEL = ("skill_type", "n_skills", "skill_dim", "skill", "skill_duration", "reward", "num_timesteps", "exploration_noise")
#: Methods that determine the action: a policy that overrides one of them can't be exported
OF_PREDICTION = ("predict", "_predict", "make_actor", "make_plain_features_extractor", "obs_to_tensor", "unscale_action")


class ExportedPolicy(SkillPolicy):
    """
    The actor of a model with all that it needs to act: ``n_skills``, ``skill_space``, ``plain_space`` and :meth:`predict`.

    It takes observations as the environment returns them, since it includes the statistics of ``VecNormalize``.

    :param observation_space: observation space with a skill
    :param action_space: action space
    :param description: description of the policy in the file
    :param statistics: mean and variance of the normalised entries of observations, by name
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Box,
        description: Mapping[str, Any],
        statistics: Mapping[str, tuple[np.ndarray, np.ndarray]],
    ) -> None:
        #: Name of the method, its reward, and how it was trained
        self.algorithm: str = description["algorithm"]
        self.reward: str = description["reward"]
        self.num_timesteps: int = description["num_timesteps"]
        self.exploration_noise: float = description["exploration_noise"]
        #: Steps for which a skill was followed in training; ``None`` for whole episodes
        self.skill_duration: int | None = description["skill_duration"]
        self.statistics = statistics
        self.takes_images = description.get("takes_images", False)
        self._clip_obs, self._epsilon = description["clip_obs"], description["epsilon"]
        super().__init__(
            observation_space,
            action_space,
            lambda _: 0.0,
            make_skill_space(*(description[name] for name in ("skill_type", "n_skills", "skill_dim"))),
            net_arch={"pi": description["net_arch"], "qf": []},
            activation_fn=getattr(th.nn.modules.activation, description["activation_fn"]),
            features_extractor_class=EXTRACTORS[description["features_extractor_class"]],
            features_extractor_kwargs=description["features_extractor_kwargs"],
            normalize_images=description["normalize_images"],
            skill=description["skill"],
            layer_norm=description["layer_norm"],
            encoder_kwargs=description.get("encoder_kwargs"),
        )

    def _build(self, lr_schedule: Schedule) -> None:
        self.actor = self.make_actor()

    def set_training_mode(self, mode: bool) -> None:
        self.actor.set_training_mode(mode)
        self.training = mode

    def predict(
        self,
        observation: Observation,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        skill: SkillName | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """
        Get the action of a skill; by default, of that which learned the task, if one did.

        :param observation: one or several observations as the environment returns them, with or without a skill

        For the other arguments see :meth:`~sb3_cesd.skill_ddpg.policies.SkillPolicy.predict`.
        """
        if self.statistics:
            self.batch_shape(observation)  # raises a clear error for a wrong shape
            entries = {name: self._normalized(name, value) for name, value in entries_of(observation).items()}
            skill_entry = {SKILL: observation[SKILL]} if has_skill(observation) else {}
            observation = plain_form({**entries, **skill_entry})  # type: ignore[assignment]
        if skill is None and self.reward == "extrinsic":
            # The one that learned the task, even if the observation contains another one
            skill = self.skill
        return super().predict(observation, state, episode_start, deterministic, skill)

    def _normalized(self, name: str, value: np.ndarray) -> np.ndarray:
        """Normalise an entry of observations as ``VecNormalize`` does."""
        if name not in self.statistics:
            return value
        mean, variance = self.statistics[name]
        value = np.asarray(value)  # the policy takes tensors, too
        return np.clip((value - mean) / np.sqrt(variance + self._epsilon), -self._clip_obs, self._clip_obs).astype(np.float32)


def export_policy(model: SkillDDPG, path: AnyPath, vec_normalize: VecNormalize | None = None) -> Path:
    """
    Write all that a model needs to act to a file that others can load without running code.

    :param model: the model
    :param path: the file, or a folder for ``policy.safetensors``
    :param vec_normalize: training statistics, if the model was trained with ``VecNormalize`` and has no environment
    :return: path of the file
    :raises ValueError: if a part of the policy is custom code, or statistics are missing or do not match the observations
    """
    path = Path(path)
    path = path / f"policy{SUFFIX}" if path.is_dir() else with_suffix(path, SUFFIX)
    if path.suffix != SUFFIX:
        raise ValueError(f"{path} has the wrong suffix for an exported policy: pass a name that ends in {SUFFIX}.")
    vec_normalize = statistics_of_training(model, vec_normalize)
    description = _describe(model, vec_normalize)
    actor = model.actor.mean_state_dict() if isinstance(model.actor, StochasticSkillActor) else model.actor.state_dict()
    encoder = {} if model.policy.encoder is None else model.policy.encoder.state_dict()
    weights = {f"{part}.{name}": value for part, of in (("actor", actor), ("encoder", encoder)) for name, value in of.items()}
    tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
    description["observation_space"] = _space_to_json("observation_space", model.plain_space, tensors)
    description["action_space"] = _space_to_json("action_space", model.action_space, tensors)
    if vec_normalize is not None:
        for name, rms in observation_statistics(vec_normalize).items():
            tensors[f"mean.{name}"] = th.from_numpy(np.array(rms.mean))
            tensors[f"var.{name}"] = th.from_numpy(np.array(rms.var))
    with written_whole(path) as file:
        file.write(save(tensors, {"sb3_cesd": json.dumps(description)}))
    return path


def _describe(model: SkillDDPG, vec_normalize: VecNormalize | None) -> dict[str, Any]:
    """Describe a policy in plain data, without its spaces."""
    policy = model.policy
    extractor, activation_fn = policy.features_extractor_class, policy.activation_fn
    overridden = [name for name in OF_PREDICTION if getattr(type(policy), name) is not getattr(SkillPolicy, name)]
    code = [f"{type(policy).__name__}.{name}" for name in overridden]
    if extractor not in EXTRACTORS.values():
        code.append(f"features_extractor_class={extractor.__name__}")
    if activation_fn.__module__ != "torch.nn.modules.activation":
        code.append(f"activation_fn={activation_fn.__name__}")
    if code:
        raise ValueError(f"{code[0]} is code, which an exported policy can't contain: leave it out, or share a zip.")
    return {
        "format": FORMAT,
        "algorithm": type(model).__name__,
        "versions": installed_versions(),
        **{name: getattr(model, name) for name in OF_MODEL},
        "net_arch": [int(size) for size in policy.actor_arch],
        "activation_fn": activation_fn.__name__,
        "features_extractor_class": extractor.__name__,
        "features_extractor_kwargs": policy.features_extractor_kwargs,
        "normalize_images": policy.normalize_images,
        "layer_norm": policy.layer_norm,
        "takes_images": policy.takes_images,
        "encoder_kwargs": policy.encoder_kwargs,
        "clip_obs": None if vec_normalize is None else float(vec_normalize.clip_obs),
        "epsilon": None if vec_normalize is None else float(vec_normalize.epsilon),
    }


def import_policy(path: AnyPath) -> ExportedPolicy:
    """
    Load a policy that :func:`export_policy` wrote, without running any code of the file.

    :param path: the file, with or without its suffix, or the folder of ``policy.safetensors``
    :return: the policy, on the CPU
    :raises ValueError: if the file is damaged, or not an exported policy
    :raises FileNotFoundError: if there is no such file
    """
    path = Path(path)
    path = path / f"policy{SUFFIX}" if path.is_dir() else path if path.is_file() else with_suffix(path, SUFFIX)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}: pass what export_policy wrote.")
    try:
        with safe_open(path, framework="pt") as file:
            description = json.loads((file.metadata() or {})["sb3_cesd"])
            # Copies: tensors of safetensors keep the file mapped, and Windows overwrites no mapped files
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
        if description["format"] > FORMAT:
            raise ValueError(f"it has format {description['format']}, this version reads {FORMAT}: install a newer sb3_cesd")
        policy = _build(description, tensors)
    except Exception as error:  # damaged or crafted files may raise anything
        raise ValueError(f"{path} is not an exported policy, or is damaged ({error!s:.200}): export it again.") from error
    return policy


def _build(description: Mapping[str, Any], tensors: Mapping[str, th.Tensor]) -> ExportedPolicy:
    skill_type, n_skills, skill_dim = (description[name] for name in ("skill_type", "n_skills", "skill_dim"))
    actor = {name.removeprefix("actor."): value for name, value in tensors.items() if name.startswith("actor.")}
    numbers = {name: value for name, value in tensors.items() if not name.startswith("observation_space.")}
    if any(not_finite(numbers, "")) or any(name.startswith("var.") and (value < 0).any() for name, value in numbers.items()):
        raise ValueError("a weight, a statistic or a bound of actions is not finite, or a variance negative")
    check_value("reward", description["reward"], ("intrinsic", "extrinsic"))
    plain = _space_from_json("observation_space", description["observation_space"], tensors)
    space = skill_observation_space(plain, make_skill_space(skill_type, n_skills, skill_dim))
    action_space = _space_from_json("action_space", description["action_space"], tensors)
    names = [name.removeprefix("mean.") for name in tensors if name.startswith("mean.")]
    statistics = {name: (tensors[f"mean.{name}"].numpy(), tensors[f"var.{name}"].numpy()) for name in names}
    # Sizes in the description are compared with those of the tensors before networks take memory
    with th.device("meta"):
        policy = ExportedPolicy(space, action_space, description, statistics)  # type: ignore[arg-type]
    policy.actor.load_state_dict(actor, strict=True, assign=True)
    if policy.encoder is not None:
        encoder = {name.removeprefix("encoder."): value for name, value in tensors.items() if name.startswith("encoder.")}
        policy.encoder.load_state_dict(encoder, strict=True, assign=True)
    policy.set_training_mode(False)
    return policy


def _space_to_json(name: str, space: spaces.Space, tensors: dict[str, th.Tensor]) -> dict[str, Any]:
    """Describe a Box or a Dict of them; bounds are added to the tensors under names that begin with ``name``."""
    if isinstance(space, spaces.Dict):
        return {"entries": {key: _space_to_json(f"{name}.{key}", child, tensors) for key, child in space.spaces.items()}}
    assert isinstance(space, spaces.Box)
    tensors[f"{name}.low"], tensors[f"{name}.high"] = th.from_numpy(space.low.copy()), th.from_numpy(space.high.copy())
    return {"dtype": str(space.dtype)}


def _space_from_json(name: str, description: Mapping[str, Any], tensors: Mapping[str, th.Tensor]) -> spaces.Box | spaces.Dict:
    """Undo :func:`_space_to_json`."""
    if "entries" in description:
        entries = description["entries"].items()
        return spaces.Dict({key: _space_from_json(f"{name}.{key}", child, tensors) for key, child in entries})
    dtype = np.dtype(description["dtype"])
    return spaces.Box(tensors[f"{name}.low"].numpy(), tensors[f"{name}.high"].numpy(), dtype=dtype.type)
