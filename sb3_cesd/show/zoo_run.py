"""A saved model, and environments as those of its run of RL Zoo."""

import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.vec_normalize import load_statistics
from sb3_cesd.export import SUFFIX, ExportedPolicy, import_policy
from sb3_cesd.metrics import make_play_env
from sb3_cesd.registry import METHODS
from sb3_cesd.show.environments import PlayEnvs, envs_of_id
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data

#: Name that RL Zoo gives to the statistics of VecNormalize
STATISTICS = "vecnormalize.pkl"


def load_model(path: Path) -> SkillDDPG | ExportedPolicy:
    """
    Load a model of any method of this package, without its replay buffer.

    :param path: file of the model, or of an exported policy
    :return: the model, or the policy
    :raises ValueError: if there is no such file, or its method is unknown
    """
    if not path.is_file():
        raise ValueError(f"There is no file {path}: pass that of a model, e.g. logs/cesd/Walker-v0_1/Walker-v0.zip.")
    if path.suffix == SUFFIX:
        return import_policy(path)
    saved_by = read_saved_data(path).get("lineage") or [folder.name for folder in path.resolve().parents]
    method = next((name.lower() for name in saved_by if name.lower() in METHODS), None)
    if method is None:
        raise ValueError(f"{path} is of no method of this package: load it in Python, and call show_skills(model, env).")
    return METHODS[method].load(path, device="cpu", buffer_size=1)


def run_folder(path: Path) -> Path | None:
    """
    Find the folder of ``args.yml`` and ``config.yml``.

    :param path: a model in a folder of RL Zoo (final, best, or checkpoint)
    :return: the folder; ``None`` outside of a run, and for an exported policy, which must not run code
    """
    folder, *_, above = path.resolve().parents[:3]
    folder = above if path.resolve().parents[1].name == "checkpoints" else folder
    configs = [] if path.suffix == SUFFIX else sorted(folder.glob("*/config.yml"))
    return configs[0].parent if configs else None


def read_args(path: Path) -> dict[str, Any]:
    """Read the arguments of the command that trained a model, as RL Zoo's ``enjoy`` does; empty outside of a run."""
    folder = run_folder(path)
    if folder is None or not (folder / "args.yml").is_file():
        return {}
    return yaml.unsafe_load((folder / "args.yml").read_text(encoding="utf-8"))


def import_packages(path: Path, packages: Sequence[str] = ()) -> None:
    """Import the packages that register the environment of a model: some, and those of its run."""
    for name in [*packages, *(read_args(path).get("gym_packages") or [])]:
        import_module(name)


def envs_of_run(path: Path, env_id: str | None = None, vec_normalize: Path | None = None) -> PlayEnvs:
    """
    Prepare environments as those a saved model was trained in, with wrappers and statistics, by RL Zoo's own functions.

    :param path: the model
    :param env_id: its environment; ``None`` for that of its run
    :param vec_normalize: statistics of ``VecNormalize``; ``None`` for those of its checkpoint or run
    :return: the environments
    :raises ValueError: if the environment or its statistics can't be found
    """
    statistics = None if vec_normalize is None else load_statistics(vec_normalize)
    args, folder = read_args(path), run_folder(path)
    env_id = env_id or args.get("env")
    if env_id is None:
        raise ValueError(f"{path} is in no run of RL Zoo: pass --env, and --gym-packages if a package registers it.")
    if folder is None:
        return envs_of_id(env_id, {}, statistics)
    from rl_zoo3.utils import create_test_env, get_saved_hyperparams  # takes a second to import

    config, _ = get_saved_hyperparams(str(folder), test_mode=True)
    if statistics is not None:
        config["normalize"] = False
    env_kwargs = args.get("env_kwargs") or config.get("env_kwargs") or {}
    stats_path = str(path.parent if (path.parent / STATISTICS).is_file() else folder)

    def make(n_skills: int, n_rollouts: int, render: bool = False, batched: bool = True) -> VecEnv:
        kwargs = {**env_kwargs, **({"render_mode": "rgb_array"} if render else {})}
        many = None
        if batched and not config.get("env_wrapper"):

            def many(env_fns: Any) -> VecEnv:
                return make_play_env(env_id, n_skills, n_rollouts, env_kwargs)

        with redirect_stdout(io.StringIO()):  # it tells each time that it loads statistics
            return create_test_env(
                env_id,
                stats_path=stats_path,
                should_render=False,
                hyperparams=dict(config),
                env_kwargs=kwargs,
                vec_env_cls=many,  # type: ignore[arg-type]
            )

    return PlayEnvs(env_id, lambda render: make(1, 1, render, batched=False), make, statistics)
