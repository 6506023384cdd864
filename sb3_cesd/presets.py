"""Settings of RL Zoo's yml files for models created in Python."""

import inspect
from typing import Any, Literal

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.rules import shown
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.zoo.hyperparams import configs, read_entry


class Preset(dict[str, Any]):
    """
    Constructor arguments of a method, to be passed as ``**preset``, and the other settings of the yml files.

    :param arguments: arguments by name
    :param n_timesteps: environment steps to learn for
    :param n_envs: number of parallel environments
    """

    def __init__(self, arguments: dict[str, Any], n_timesteps: int, n_envs: int) -> None:
        super().__init__(arguments)
        self.n_timesteps = n_timesteps
        self.n_envs = n_envs


def preset(
    scale: Literal["laptop", "published"] = "laptop",
    env_id: str = "default",
    method: str | type[SkillDDPG] = "cesd",
) -> Preset:
    """
    Read the settings that RL Zoo uses to train a method, from the same yml files::

        settings = preset("laptop", "Walker-v0")
        env = make_batched("Walker-v0", settings.n_envs)
        model = CeSD("MlpPolicy", env, **settings).learn(settings.n_timesteps)

    :param scale: ``"laptop"`` (networks of width 256; 300k steps for robots, 50k for their tasks, 200k for other environments)
        or ``"published"`` (2M steps, 100k for tasks, networks of width 1024); METRA's robots have 2M steps at both scales, and
        mazes the same settings
    :param env_id: id of the environment; ids that the files don't name get the default settings
    :param method: name or class of the method, or the name of a variant with its own file (``"cesd_released"``)
    :return: constructor arguments without policy and environment, with ``n_timesteps`` and ``n_envs`` as attributes
    :raises ValueError: if there is no such scale or method
    """
    check_arguments("preset", {"env_id": env_id})
    name = method.__name__.lower() if isinstance(method, type) else method
    config = {"published": str(name), "laptop": f"{name}_laptop"}.get(scale) if isinstance(scale, str) else None
    if config is None:
        raise ValueError(f"There is no scale {shown(scale)}: choose 'laptop' or 'published'.")
    if str(name).endswith("_laptop"):
        at_scale = str(name).removesuffix("_laptop")
        raise ValueError(f"{shown(name)} names a method at laptop scale: pass scale='laptop', method={at_scale!r}.")
    if config not in configs():
        known = [known for known in configs() if known.endswith("_laptop") == (scale == "laptop")]
        names = ", ".join(repr(known.removesuffix("_laptop")) for known in known)
        raise ValueError(f"There is no method {shown(name)} at scale {scale!r}: use one of {names}.")
    entry = read_entry(config, env_id)
    entry.pop("policy")
    result = Preset({}, int(entry.pop("n_timesteps")), int(entry.pop("n_envs", 1)))
    arguments = inspect.signature(METHODS[name.partition("_")[0]]).parameters
    unknown = [key for key in entry if key not in arguments]
    if unknown:
        raise ValueError(f"{config}.yml sets {', '.join(unknown)}, which only RL Zoo knows: train with RL Zoo.")
    result.update(entry)
    return result
