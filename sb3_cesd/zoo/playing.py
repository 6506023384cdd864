"""Show and choose the skill that acts in RL Zoo's ``enjoy`` and ``record_video``."""

import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sb3_cesd.common.env_specs import episode_length
from sb3_cesd.common.skill_clock import SkillClock
from sb3_cesd.common.skills import SkillName, SkillSpace, make_skill_space, name_in_task
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.envs.robots.gl import choose_gl_backend
from sb3_cesd.registry import METHODS
from sb3_cesd.show.labels import name_label
from sb3_cesd.show.zoo_run import import_packages
from sb3_cesd.skill_ddpg.saved_files import read_saved_data
from sb3_cesd.zoo.normalization import refuse_damaged_statistics, refuse_without_statistics

#: Argument of an environment that chooses skills, for ``--env-kwargs``
SKILL_ARGUMENT = "skill"
#: Values for all skills: RL Zoo evaluates skill:all to Python's built-in function
EVERY_SKILL: tuple[Any, ...] = ("all", all)
#: Font size of the label in a video [pixels]
FONT_SIZE = 18
#: Length of the episodes that are suggested for seeing all skills, in steps
SHORT_EPISODE = 100


class PlayedModel:
    """The model that RL Zoo plays. RL Zoo first looks up the model, then creates the environments."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def note_path(self, get_model_path: Any) -> Any:
        """
        Remember which model RL Zoo is going to play, and import the packages of its environment, for which ``record_video``
        has no argument.

        :param get_model_path: ``rl_zoo3.utils.get_model_path``
        :return: the extended function
        """

        @wraps(get_model_path)
        def get_and_note(*args: Any, **kwargs: Any) -> Any:
            found = get_model_path(*args, **kwargs)
            algo = inspect.signature(get_model_path).bind(*args, **kwargs).arguments["algo"]
            self._path = Path(found[1]) if algo in METHODS else None
            if self._path is not None:
                import_packages(self._path)
            return found

        return get_and_note

    def add_skills(self, create_test_env: Any) -> Any:
        """
        Add skills to the environments: the next one in each episode, or those that ``--env-kwargs skill:3`` or ``skill:[0,3]``
        chooses.

        :param create_test_env: ``rl_zoo3.utils.create_test_env``
        :return: the extended function
        """

        @wraps(create_test_env)
        def create_with_skills(*args: Any, **kwargs: Any) -> VecEnv:
            if self._path is None:
                return create_test_env(*args, **kwargs)
            # Must come before any environment imports MuJoCo
            choose_gl_backend()
            bound = inspect.signature(create_test_env).bind(*args, **kwargs)
            # record_video and push_to_hub leave out those of the yml file, which enjoy passes on
            of_entry = (bound.arguments.get("hyperparams") or {}).get("env_kwargs") or {}
            env_kwargs = {**of_entry, **(bound.arguments.get("env_kwargs") or {})}
            wanted = env_kwargs.pop(SKILL_ARGUMENT, None)
            bound.arguments["env_kwargs"] = env_kwargs
            path, self._path = self._path, None
            if (folder := bound.arguments.get("stats_path")) is not None:
                refuse_damaged_statistics(Path(folder))
            with explain_rendering(bound.arguments["env_id"]):
                env = create_test_env(*bound.args, **bound.kwargs)
            return show_skills_of(path, wanted, env)

        return create_with_skills


@contextmanager
def explain_rendering(env_id: str) -> Iterator[None]:
    """
    Tell what to do about an environment that RL Zoo can't render, since its constructor takes no ``render_mode``.

    :param env_id: id of the environment that is made
    :raises ValueError: if its constructor refuses the argument
    """
    try:
        yield
    except TypeError as error:
        if not re.search("unexpected keyword argument 'render_mode'|takes no arguments.*'render_mode'", f"{error}"):
            raise
        raise ValueError(
            f"{env_id} can't be rendered, since its constructor takes no render_mode: pass --no-render to push_to_hub or "
            "enjoy, or add the argument to the environment."
        ) from None


def show_skills_of(path: Path, wanted: Any, env: VecEnv) -> VecEnv:
    """
    Add skills to environments, and print which skill acts.

    :param path: file of the model
    :param wanted: index or vector of a skill, or several; ``None`` for all of them in turn
    :param env: environments, as the model expects them except for the skill
    :return: environments with skills; unchanged for a model that learned a task with one of its skills
    :raises ValueError: if there is no such skill, or the training statistics are missing
    """
    saved = read_saved_data(path)
    refuse_without_statistics(path, saved, env)
    skill_space = make_skill_space(*(saved[name] for name in ("skill_type", "n_skills", "skill_dim")))
    if saved["reward"] == "extrinsic":
        own = saved["skill"]
        if wanted is not None and not is_skill(wanted, own, skill_space):
            raise ValueError(f"{path} learned a task with {name_in_task(own)} alone: leave skill out of --env-kwargs.")
        if own is not None:
            print(f"Skill {own}, which learned the task, acts")
        return env
    if wanted is None:
        wanted = saved["skill"]  # fixed by set_skill before the model was saved
    if wanted is None or wanted in EVERY_SKILL:
        print(
            f"Each episode follows the next of {skill_space.n_skills} skills. Choose some with --env-kwargs skill:1 or "
            f"skill:[0,1]; {shorter_episodes(env)} shortens episodes."
        )
        return PlayedSkills(env, skill_space, range(skill_space.n_skills))
    return PlayedSkills(env, skill_space, listed_skills(wanted, skill_space))


def is_skill(wanted: Any, skill: int | list[float] | None, skill_space: SkillSpace) -> bool:
    """
    Check whether a user names a certain skill.

    :param wanted: anything
    :param skill: the skill, as a saved model names it
    :param skill_space: space of the skills
    :return: whether both are the same
    """
    try:
        return skill_space.name_of(wanted) == skill
    except ValueError:
        return False


def listed_skills(wanted: Any, skill_space: SkillSpace) -> list[Any]:
    """
    Distinguish one skill from several: in a continuous space, ``[1, 0]`` are two skills, ``[1.0, 0.0]`` is the vector of one,
    and vectors within a list may contain integers.

    :param wanted: index or vector of a skill, or several
    :param skill_space: space of the skills
    :return: indices or vectors, at least one
    :raises ValueError: if there is none
    """
    if not isinstance(wanted, list | tuple):
        return [wanted]
    if not wanted:
        raise ValueError("skill:[] names no skill: choose some, such as skill:[0,1], or leave skill out for all of them.")
    if skill_space.discrete:
        return list(wanted)
    if any(isinstance(number, float) for number in wanted):
        return [list(wanted)]
    return [
        [float(number) if isinstance(number, int) else number for number in each] if isinstance(each, list | tuple) else each
        for each in wanted
    ]


def shorter_episodes(env: VecEnv) -> str:
    """
    Suggest an argument that shortens the episodes of environments.

    :param env: vectorized environments
    :return: e.g. ``"max_episode_steps:100"``
    """
    length = episode_length(env)
    return f"max_episode_steps:{SHORT_EPISODE if length is None else min(SHORT_EPISODE, max(length // 2, 1))}"


class SkillList(SkillClock):
    """
    Goes through some skills in turn, one per episode.

    :param n_envs: number of parallel environments
    :param skill_space: space of the skills
    :param skills: indices or vectors of those that act
    """

    def __init__(self, n_envs: int, skill_space: SkillSpace, skills: Sequence[SkillName]) -> None:
        super().__init__(n_envs, skill_space, duration=None)
        self._listed = np.stack([skill_space.encode(skill) for skill in skills])
        #: Index in the list of the skill that acts in each environment, shape ``(n_envs,)``
        self.which = np.zeros(n_envs, dtype=np.int64)
        #: Number of skills drawn so far
        self.n_drawn = 0

    def _draw(self, where: np.ndarray) -> None:
        n_new = int(where.sum())
        self._ages[where] = 0
        self.which[where] = (self.n_drawn + np.arange(n_new)) % len(self._listed)
        self.vectors = self._listed[self.which]
        self.n_drawn += n_new

    def set_skill(self, skill: SkillName | None, at_once: bool = False) -> None:
        """Keep to the list, also for a model that was saved with a fixed skill: it is in the list if it is to act."""

    def seed(self, seed: int | None) -> None:
        super().seed(seed)
        self.n_drawn = 0


class PlayedSkills(VecSkillObservation):
    """
    Print which skill acts, and write it on images.

    :param venv: environments without skills
    :param skill_space: space of the skills
    :param skills: indices or vectors of those that act in turn, one per episode
    """

    clock: SkillList

    def __init__(self, venv: VecEnv, skill_space: SkillSpace, skills: Sequence[SkillName]) -> None:
        super().__init__(venv, skill_space, skill_duration=None)
        self.clock = SkillList(venv.num_envs, skill_space, skills)
        self._skills = list(skills)
        self._names = [name_label(skill, skill_space) for skill in skills]
        self._acted: set[str] = set()
        self._begins = True

    def reset(self) -> dict[str, np.ndarray]:
        self._begins = True
        return super().reset()

    def step_async(self, actions: np.ndarray) -> None:
        if self._begins:
            # Not at the end of the previous episode, whose reward RL Zoo has yet to print
            print(f"{self.label()} acts" if self.num_envs == 1 else f"{self.label()} act")
            self._acted.update(self._acting())
            self._begins = False
        super().step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        result = super().step_wait()
        self._begins = bool(np.any(result[2]))
        return result

    def render(self, mode: str | None = None) -> np.ndarray | None:
        image = super().render(mode)
        return None if image is None else written_on(image, self.label())

    def close(self) -> None:
        left_out = [name for name in dict.fromkeys(self._names) if name not in self._acted]
        if left_out and self._acted:
            self._acted.clear()  # environments may be closed twice
            print(
                f"Skills that did not act: {', '.join(left_out)}. More steps (-n), shorter episodes (--env-kwargs "
                f"{shorter_episodes(self)}) or a choice (skill:{self._skills[self._names.index(left_out[0])]}) show them."
            )
        super().close()

    def label(self) -> str:
        """
        Name the skills that act.

        :return: e.g. "Skill 3", or "Skills 0, 1" of several environments
        """
        return f"Skill{'' if self.num_envs == 1 else 's'} {', '.join(self._acting())}"

    def _acting(self) -> list[str]:
        return [self._names[index] for index in self.clock.which]


def written_on(image: np.ndarray, text: str) -> np.ndarray:
    """
    Write a line on an image.

    :param image: shape ``(height, width, 3)``
    :param text: what to write
    :return: a copy with the text in its upper left corner
    """
    picture = Image.fromarray(image)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=min(FONT_SIZE, max(image.shape[0] // 6, 8)))
    draw.text((4, 2), text, fill="white", font=font, stroke_width=2, stroke_fill="black")
    return np.asarray(picture)
