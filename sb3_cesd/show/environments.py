"""A saved model, and environments like those it was trained in."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import yaml
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_cesd.checkpoints import MODEL, STATISTICS, find_checkpoint
from sb3_cesd.common.files import load_pickle
from sb3_cesd.common.vec_env import VecSkillObservation, arguments_of, attributes, env_name, env_spec
from sb3_cesd.common.vec_normalize import normalize_like_training
from sb3_cesd.envs.robots.gl import draw_plainly
from sb3_cesd.export import SUFFIX, ExportedPolicy, import_policy
from sb3_cesd.metrics import make_env_like_training, make_play_env
from sb3_cesd.metrics.environments import RECORDER_NAMES, has_wrappers
from sb3_cesd.registry import ALGORITHMS, name_of
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data


class PlayEnvs(NamedTuple):
    """Environments to play skills in."""

    #: In titles
    name: str
    #: Create environments in which some rollouts each of some skills are fast, or one, which may be told how to render
    make: Callable[..., VecEnv]
    #: Those of training, if the environments are not normalised yet
    statistics: VecNormalize | None = None
    #: Whether they are those of the caller, and not to be closed
    is_kept: bool = False

    @contextmanager
    def opened(self, n_skills: int = 1, n_rollouts: int = 1, render: bool = False) -> Iterator[VecEnv]:
        """Open environments, normalised as in training."""
        # Not all environments take the argument
        env = self.make(n_skills, n_rollouts, **({"render_mode": "rgb_array"} if render else {}))
        if render and not self.is_kept:
            for owner in attributes(env, "physics") or attributes(env, "model"):
                with suppress(AttributeError):  # of other environments
                    draw_plainly(getattr(owner, "model", owner))
        try:
            yield env if self.statistics is None else normalize_like_training(env, self.statistics)
        finally:
            if not self.is_kept:
                env.close()


def envs_to_play(env: str | EnvSpec | gym.Env | VecEnv | None, model: Any, statistics: VecNormalize | None = None) -> PlayEnvs:
    """Prepare environments: made by their id, if nothing is wrapped around them, otherwise copies, or ``env`` itself."""
    training_env: Any = getattr(model, "env", None)
    if env is None and training_env is None:
        env = saved_spec(model)
    given, statistics = statistics, statistics or unwrap_vec_normalize(training_env)
    if env is None:
        spec = env_spec(training_env)
        if spec is not None and not has_wrappers(training_env):
            return envs_of_id(spec.id, arguments_of(spec), statistics)
        make = partial(make_env_like_training, training_env)
        return PlayEnvs(env_name(training_env), lambda *numbers, **_: make(*numbers), statistics)
    if isinstance(env, str | EnvSpec):
        return envs_of_id(env, {}, statistics)
    if isinstance(env, gym.Env):
        if env.spec is not None and not env.spec.additional_wrappers:
            return envs_of_id(env.spec.id, arguments_of(env.spec), statistics)
        env = DummyVecEnv([lambda made=env: made])  # type: ignore[misc]
    venv = env.venv if isinstance(env, VecSkillObservation) else env
    if unwrap_vec_normalize(venv) is not None:
        if given is not None:
            raise ValueError("env has a VecNormalize of its own: leave vec_normalize out, or pass env without it.")
        statistics = None
    return PlayEnvs(env_name(venv), lambda *numbers, **_: venv, statistics, is_kept=True)


def saved_spec(model: Any) -> EnvSpec:
    """Read how the training environment of a model was made, without wrappers that only record or render."""
    remedy = "pass env, e.g. show_skills(model, 'Walker-v0') or --env Walker-v0 (--gym-packages if a package registers it)."
    if getattr(model, "env_spec", None) is None:
        raise ValueError(f"The model does not tell in which environment it was trained: {remedy}")
    spec = EnvSpec.from_json(model.env_spec)
    if "AddRenderObservation" not in [wrapper.name for wrapper in spec.additional_wrappers]:
        spec.kwargs.pop("render_mode", None)
    spec.additional_wrappers = tuple(wrapper for wrapper in spec.additional_wrappers if wrapper.name not in RECORDER_NAMES)
    if spec.id in gym.registry:
        spec.entry_point = gym.registry[spec.id].entry_point
    try:
        stateful = "NormalizeObservation" in [wrapper.name for wrapper in spec.additional_wrappers]
        assert not stateful, "the file has no statistics of NormalizeObservation"
        gym.make(spec).close()
    except Exception as error:  # its package may be missing, its wrappers may not tell their arguments, ...
        raise ValueError(f"The training environment {spec.id} can't be made again ({error}): {remedy}") from error
    return spec


def envs_of_id(env_id: str | EnvSpec, env_kwargs: dict[str, Any], statistics: VecNormalize | None) -> PlayEnvs:
    """Prepare environments as an id or a specification makes them."""

    def make(n_skills: int, n_rollouts: int, **render: str) -> VecEnv:
        if n_skills * n_rollouts > 1:
            return make_play_env(env_id, n_skills, n_rollouts, {**env_kwargs, **render})
        return DummyVecEnv([partial(gym.make, env_id, **{**env_kwargs, **render})])

    return PlayEnvs(env_id if isinstance(env_id, str) else env_id.id, make, statistics)


def find_model(path: Path) -> Path:
    """Find the file of a model, given that with or without suffix, or the folder of a run of RL Zoo or of its checkpoints."""
    in_run = path / f"{path.resolve().name.rpartition('_')[0]}.zip"
    for file in (path, path.parent / f"{path.name}.zip", in_run, path / "best_model.zip"):
        if file.is_file():
            return file
    for folder in (path, path / "checkpoints"):
        with suppress(FileNotFoundError):
            return find_checkpoint(folder) / MODEL
    raise ValueError(f"There is no model {path}: pass its file or the folder of its run, e.g. logs/cesd/Walker-v0_1.")


def load_model(path: Path) -> SkillDDPG | ExportedPolicy:
    """Load a model of any method of this package, without its replay buffer, or an exported policy."""
    if path.suffix == SUFFIX:
        return import_policy(path)
    saved_by = read_saved_data(path).get("lineage") or [folder.name for folder in path.resolve().parents]
    method = next(filter(None, map(name_of, saved_by)), None)
    if method is None:
        raise ValueError(f"{path} is of no method of this package: load it in Python, and call show_skills(model, env).")
    return ALGORITHMS[method].load(path, device="cpu", buffer_size=1)


def read_run(path: Path) -> tuple[Path | None, dict[str, Any]]:
    """Find the folder of ``config.yml`` of a run of RL Zoo, and its arguments; neither for an exported policy."""
    folder, *_, above = path.resolve().parents[:3]
    folder = above if path.resolve().parents[1].name == "checkpoints" else folder
    configs = [] if path.suffix == SUFFIX else sorted(folder.glob("*/config.yml"))
    if not configs:
        return None, {}
    arguments = configs[0].with_name("args.yml")
    return configs[0].parent, yaml.unsafe_load(arguments.read_text(encoding="utf-8")) if arguments.is_file() else {}


def envs_of_run(path: Path, model: Any, env_id: str | None = None, vec_normalize: Path | None = None) -> PlayEnvs:
    """Prepare environments as those a saved model was trained in, by RL Zoo's functions; ``None`` for those of the run."""
    beside = path.parent / STATISTICS
    if vec_normalize is None and getattr(model, "trained_normalized", False) and beside.is_file():
        vec_normalize = beside
    statistics = None if vec_normalize is None else load_pickle(vec_normalize, VecNormalize)
    folder, args = read_run(path)
    env_id = env_id or args.get("env")
    if folder is None or env_id is None:
        return envs_to_play(env_id, model, statistics)
    from rl_zoo3.utils import create_test_env, get_saved_hyperparams  # takes a second to import

    config, _ = get_saved_hyperparams(str(folder), test_mode=True)
    config["normalize"] = config["normalize"] and statistics is None
    env_kwargs = args.get("env_kwargs") or config.get("env_kwargs") or {}

    def make(n_skills: int, n_rollouts: int, **render: str) -> VecEnv:
        play_env = partial(make_play_env, env_id, n_skills, n_rollouts, {**env_kwargs, **render})
        is_fast = n_skills * n_rollouts > 1 and not config.get("env_wrapper")
        vec_env_cls: Any = (lambda env_fns: play_env()) if is_fast else None
        settings: dict[str, Any] = {"env_kwargs": {**env_kwargs, **render}, "hyperparams": {**config}}
        with redirect_stdout(io.StringIO()):  # it tells each time that it loads statistics
            return create_test_env(env_id, 1, str(folder), should_render=False, vec_env_cls=vec_env_cls, **settings)

    return PlayEnvs(env_id, make, statistics)
