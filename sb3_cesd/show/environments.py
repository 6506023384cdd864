"""A saved model, and environments like those it was trained in."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import yaml
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_cesd.checkpoints.resume import STATISTICS
from sb3_cesd.common.observations import channels_first
from sb3_cesd.common.vec_env import VecSkillObservation, arguments_of, env_name, env_spec
from sb3_cesd.common.vec_normalize import load_statistics, normalize_like_training, transpose_like_training
from sb3_cesd.export import SUFFIX, ExportedPolicy, import_policy
from sb3_cesd.metrics import make_env_like_training, make_play_env
from sb3_cesd.metrics.environments import has_wrappers
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data


class PlayEnvs(NamedTuple):
    """Environments to play skills in."""

    #: In titles
    name: str
    #: Create environments in which some rollouts each of some skills are fast, or one, which renders or not
    make: Callable[[int, int, bool], VecEnv]
    #: Those of training, if the environments are not normalised yet
    statistics: VecNormalize | None = None
    #: Whether they are those of the caller, and not to be closed
    is_kept: bool = False

    @contextmanager
    def opened(self, n_skills: int = 1, n_rollouts: int = 1, render: bool = False) -> Iterator[VecEnv]:
        """Open environments, as the model observes them."""
        env = self.make(n_skills, n_rollouts, render)
        try:
            normalized = env if self.statistics is None else normalize_like_training(env, self.statistics)
            yield transpose_like_training(normalized, channels_first(normalized.observation_space))
        finally:
            if not self.is_kept:
                env.close()


def envs_to_play(env: str | gym.Env | VecEnv | None, model: Any, statistics: VecNormalize | None = None) -> PlayEnvs:
    """Prepare environments: made by their id, if nothing is wrapped around them, otherwise copies, or ``env`` itself."""
    if env is None:
        training_env = getattr(model, "env", None)
        if training_env is None:
            raise ValueError("The model was loaded without an environment: pass env, e.g. show_skills(model, 'Walker-v0').")
        statistics = statistics or unwrap_vec_normalize(training_env)
        spec = env_spec(training_env)
        if spec is not None and not has_wrappers(training_env):
            return envs_of_id(spec.id, arguments_of(spec), statistics)
        return PlayEnvs(
            env_name(training_env), lambda *numbers: make_env_like_training(training_env, *numbers[:2]), statistics
        )
    if isinstance(env, str):
        return envs_of_id(env, {}, statistics)
    if isinstance(env, gym.Env):
        if env.spec is not None and not env.spec.additional_wrappers:
            return envs_of_id(env.spec.id, arguments_of(env.spec), statistics)
        env = DummyVecEnv([lambda made=env: made])  # type: ignore[misc]
    venv = env.venv if isinstance(env, VecSkillObservation) else env
    if statistics is not None and unwrap_vec_normalize(venv) is not None:
        raise ValueError("env has a VecNormalize of its own: leave vec_normalize out, or pass env without it.")
    return PlayEnvs(env_name(venv), lambda *numbers: venv, statistics, is_kept=True)


def envs_of_id(env_id: str, env_kwargs: dict[str, Any], statistics: VecNormalize | None) -> PlayEnvs:
    """Prepare environments without wrappers."""

    def make(n_skills: int, n_rollouts: int, render: bool) -> VecEnv:
        if n_skills * n_rollouts > 1:
            return make_play_env(env_id, n_skills, n_rollouts, env_kwargs)
        # Not all environments take the argument
        kwargs = {**env_kwargs, **({"render_mode": "rgb_array"} if render else {})}
        return DummyVecEnv([partial(gym.make, env_id, **kwargs)])

    return PlayEnvs(env_id, make, statistics)


def load_model(path: Path) -> SkillDDPG | ExportedPolicy:
    """Load a model of any method of this package, without its replay buffer, or an exported policy."""
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
    """Find the folder of ``args.yml`` and ``config.yml``; ``None`` for an exported policy, which must not run code."""
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


def envs_of_run(path: Path, env_id: str | None = None, vec_normalize: Path | None = None) -> PlayEnvs:
    """
    Prepare environments as those a saved model was trained in, with wrappers and statistics, by RL Zoo's own functions.

    ``None`` stands for the environment of the run, and for the statistics of the checkpoint or run.
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

    def make(n_skills: int, n_rollouts: int, render: bool) -> VecEnv:
        kwargs = {**env_kwargs, **({"render_mode": "rgb_array"} if render else {})}
        play_env = partial(make_play_env, env_id, n_skills, n_rollouts, env_kwargs)
        is_fast = n_skills * n_rollouts > 1 and not config.get("env_wrapper")
        with redirect_stdout(io.StringIO()):  # it tells each time that it loads statistics
            return create_test_env(
                env_id,
                stats_path=stats_path,
                should_render=False,
                hyperparams=dict(config),
                env_kwargs=kwargs,
                vec_env_cls=(lambda env_fns: play_env()) if is_fast else None,  # type: ignore[arg-type]
            )

    return PlayEnvs(env_id, make, statistics)
