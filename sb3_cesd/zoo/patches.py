"""Patches of RL Zoo's modules, since RL Zoo has no plugin hook."""

import argparse
import sys
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import huggingface_sb3
import numpy as np
import yaml
from huggingface_hub.errors import RemoteEntryNotFoundError
from PIL import Image, ImageDraw, ImageFont
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sb3_cesd.common.skills import SkillName, SkillSpace, make_skill_space
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.envs.robots.gl import choose_gl_backend
from sb3_cesd.registry import ALGORITHMS
from sb3_cesd.skill_ddpg.saved_files import read_saved_data

#: Argument of an environment that chooses the skill, for ``--env-kwargs``
SKILL_ARGUMENT = "skill"
#: Font size of the label in a video [pixels]
FONT_SIZE = 18


def play_skills(utils: Any) -> None:
    """
    Add skills to the environments in which RL Zoo plays a model: the next one in each episode, or that of ``--env-kwargs
    skill:3``. Callers of ``rl_zoo3.utils`` first look up the model, then create environments.
    """
    get_model_path, create_test_env = utils.get_model_path, utils.create_test_env
    played: Path | None = None

    @wraps(get_model_path)
    def get_and_note(exp_id: int, folder: str, algo: str, *args: Any, **kwargs: Any) -> tuple[str, str, str]:
        nonlocal played
        found = get_model_path(exp_id, folder, algo, *args, **kwargs)
        played = Path(found[1]) if algo in ALGORITHMS else None
        for file in played.parent.glob("*/args.yml") if played else ():
            # record_video has no argument for them. RL Zoo reads the file in the same way
            for package in yaml.unsafe_load(file.read_text()).get("gym_packages") or []:
                import_module(package)
        return found

    @wraps(create_test_env)
    def create_with_skills(env_id: str, *args: Any, hyperparams: Any = None, env_kwargs: Any = None, **kwargs: Any) -> VecEnv:
        nonlocal played
        path, played = played, None
        if path is None:
            return create_test_env(env_id, *args, hyperparams=hyperparams, env_kwargs=env_kwargs, **kwargs)
        # Must come before any environment imports MuJoCo
        choose_gl_backend()
        # Those of the yml file are only passed on by enjoy
        env_kwargs = {**((hyperparams or {}).get("env_kwargs") or {}), **(env_kwargs or {})}
        skill = env_kwargs.pop(SKILL_ARGUMENT, None)
        share = share_of_a_skill(path, skill, kwargs.get("n_envs", 1))
        if share is not None:
            env_kwargs.setdefault("max_episode_steps", min(share, gym.spec(env_id).max_episode_steps or share))
        env = create_test_env(env_id, *args, hyperparams=hyperparams, env_kwargs=env_kwargs, **kwargs)
        return with_skills(path, skill, env)

    utils.get_model_path, utils.create_test_env = get_and_note, create_with_skills


def share_of_a_skill(path: Path, skill: SkillName | None, n_envs: int) -> int | None:
    """Share the steps that ``enjoy`` or ``record_video`` is to play among all skills; ``None`` for whole episodes."""
    saved = read_saved_data(path)
    if skill is not None or saved["skill"] is not None or "push_to_hub" in sys.argv[0]:
        return None
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-n", "--n-timesteps", type=int, default=1000)
    return -(-parser.parse_known_args()[0].n_timesteps * n_envs // saved["n_skills"])


def with_skills(path: Path, skill: SkillName | None, env: VecEnv) -> VecEnv:
    """Add the skills of a saved model to environments, unless it learned a task with one of them; print which one acts."""
    saved = read_saved_data(path)
    own = saved["skill"]
    if saved["reward"] == "extrinsic":
        if skill not in (None, own):
            raise ValueError(f"{path} learned a task with skill {own} alone: leave skill out of --env-kwargs.")
        print(f"Skill {own}, which learned the task, acts")
        return env
    skill_space = make_skill_space(*(saved[name] for name in ("skill_type", "n_skills", "skill_dim")))
    skill = own if skill is None else skill
    if skill is None:
        print(f"Each episode follows the next of {skill_space.n_skills} skills, and is cut so that -n steps show them all.")
        print("Choose one, for whole episodes, with --env-kwargs skill:1")
    return PlayedSkills(env, skill_space, skill)


class PlayedSkills(VecSkillObservation):
    """Follow a skill, or the next one in each episode. Print which acts, and write it on images."""

    def __init__(self, venv: VecEnv, skill_space: SkillSpace, skill: SkillName | None) -> None:
        super().__init__(venv, skill_space, skill_duration=None, skill=skill, order="cycle")
        self._begins, self._skill = True, skill

    def reset(self) -> dict[str, np.ndarray]:
        # The model that record_video loads with these environments has reset their skill
        self.clock.set_skill(self._skill)
        self._begins = True
        return super().reset()

    def step_async(self, actions: np.ndarray) -> None:
        if self._begins:
            # Not at the end of the previous episode, whose reward RL Zoo has yet to print
            print(f"{self.label()} acts" if self.num_envs == 1 else f"{self.label()} act")
        super().step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        result = super().step_wait()
        self._begins = bool(np.any(result[2]))
        return result

    def render(self, mode: str | None = None) -> np.ndarray | None:
        image = super().render(mode)
        if image is None:
            return None
        picture = Image.fromarray(image)
        font = ImageFont.load_default(size=min(FONT_SIZE, max(image.shape[0] // 6, 8)))
        ImageDraw.Draw(picture).text((4, 2), self.label(), "white", font, stroke_width=2, stroke_fill="black")
        return np.asarray(picture)

    def label(self) -> str:
        """Name the skills that act, such as "Skill 3", or "Skills 0, 1" of several environments."""
        return f"Skill{'' if self.num_envs == 1 else 's'} {', '.join(str(skill.round(2)) for skill in self.skills)}"


def add_methods(utils: Any) -> None:
    """Add the methods to the choices of ``--algo``, and show which skill acts when a model is played."""
    if ALGORITHMS.keys() <= utils.ALGOS.keys():
        return
    utils.ALGOS.update(ALGORITHMS)
    play_skills(utils)
    # Without the start-up hook, RL Zoo has imported the functions already
    for name in ("rl_zoo3", "rl_zoo3.enjoy"):
        module = sys.modules.get(name)
        for function in ("create_test_env", "get_model_path"):
            if hasattr(module, function):
                setattr(module, function, getattr(utils, function))
    mend_hub(import_module("huggingface_sb3.push_to_hub"))


def mend_hub(push_to_hub: Any) -> None:
    """Let RL Zoo's ``push_to_hub`` and ``load_from_hub`` work with newer versions of the libraries that they import from."""
    make_card = getattr(push_to_hub, "_generate_metadata", None)
    if make_card is not None and not hasattr(push_to_hub, "generate_metadata"):
        push_to_hub.generate_metadata = lambda *args, **kwargs: make_card(*args, **kwargs).to_dict()
    load_from_hub = huggingface_sb3.load_from_hub

    @wraps(load_from_hub)
    def load(*args: Any, **kwargs: Any) -> str:
        try:
            return load_from_hub(*args, **kwargs)
        except RemoteEntryNotFoundError as error:
            # What RL Zoo catches for a repository without statistics of VecNormalize
            from requests.exceptions import HTTPError

            raise HTTPError(str(error)) from error

    huggingface_sb3.load_from_hub = load
