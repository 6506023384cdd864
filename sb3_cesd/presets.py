"""Settings of RL Zoo's yml files for models created in Python."""

from pathlib import Path
from typing import Any, Literal

import yaml

from sb3_cesd.common.arguments import checked, instead_of
from sb3_cesd.registry import ALGORITHMS, name_of
from sb3_cesd.skill_ddpg import SkillDDPG

#: Settings of an entry that are no arguments of the constructor
OF_RL_ZOO = ("n_timesteps", "n_envs", "policy", "env_kwargs", "frame_stack")


class Preset(dict[str, Any]):
    """
    Constructor arguments of a method, to be passed as ``**preset``, and the other settings of the yml files.

    :param arguments: arguments by name
    :param n_timesteps: environment steps to learn for
    :param n_envs: number of parallel environments
    :param policy: name of the policy
    :param env_kwargs: arguments of the environments
    :param frame_stack: number of pictures that ``VecFrameStack`` is to stack, 1 without it
    """

    def __init__(
        self,
        arguments: dict[str, Any],
        n_timesteps: float,
        n_envs: int = 1,
        policy: str = "MlpPolicy",
        env_kwargs: dict[str, Any] | None = None,
        frame_stack: int = 1,
    ) -> None:
        super().__init__(arguments)
        self.n_timesteps, self.n_envs, self.policy = int(n_timesteps), n_envs, policy
        self.env_kwargs, self.frame_stack = env_kwargs or {}, frame_stack


def hyperparams_folder() -> Path:
    """Find the folder of the yml files, in the package or (editable install) in the repository."""
    package = Path(__file__).parent
    packaged = package / "hyperparams"
    return packaged if packaged.is_dir() else package.parent / "hyperparams"


@checked
def preset(
    scale: Literal["laptop", "published"] = "laptop", env_id: str = "default", method: str | type[SkillDDPG] = "cesd"
) -> Preset:
    """
    Read the settings that RL Zoo uses to train a method, from the same yml files::

        settings = preset("laptop", "Walker-v0")
        env = make_batched("Walker-v0", settings.n_envs)
        model = CeSD("MlpPolicy", env, **settings).learn(settings.n_timesteps)

    :param scale: ``"laptop"`` for ``NAME.yml`` (300k steps for robots, 100k for tasks, 200k for other environments; sizes are
        the defaults of the constructor) or ``"published"`` for ``NAME_published.yml`` (2M steps, 100k for tasks, networks
        of width 1024); METRA's robots have 2M steps at both scales, mazes the same settings, and pictures fewer steps
    :param env_id: id of the environment; ids that the files don't name get the default settings
    :param method: name or class of the method, or the name of a variant with its own file (``"cesd_released"``,
        ``"cesd_paper"``)
    :return: constructor arguments without policy and environment, which are among the attributes of :class:`Preset`
    :raises ValueError: if there is no such scale or method
    """
    name = name_of(method.__name__) or method.__name__ if isinstance(method, type) else method
    paths = hyperparams_folder().glob("*.yml")
    files = {path.stem.removesuffix("_published"): path for path in paths if (path.stem in ALGORITHMS) == (scale == "laptop")}
    if name not in files:
        raise ValueError(f"There is no method {name!r} at scale {scale!r}: {instead_of(name, files)}")
    entries = yaml.safe_load(files[name].read_text(encoding="utf-8"))
    entry = entries.get(env_id.removeprefix("sb3_cesd:"), entries["default"])
    of_rl_zoo = {key: entry.pop(key) for key in OF_RL_ZOO if key in entry}
    return Preset(entry, **of_rl_zoo)
