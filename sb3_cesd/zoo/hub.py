"""Extensions of RL Zoo's ``push_to_hub`` and ``load_from_hub`` for models with skills."""

import math
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import gymnasium as gym
from huggingface_hub.errors import RemoteEntryNotFoundError
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_cesd.common.untrusted_yml import read_as_text
from sb3_cesd.export import SUFFIX, export_policy
from sb3_cesd.skill_ddpg import SkillDDPG

#: Files next to a model card. The hub plays a video of that name.
PICTURE, VIDEO, POLICY, STATISTICS = "skills.png", "replay.mp4", f"policy{SUFFIX}", "vec_normalize.pkl"
#: Those that not every push writes
OPTIONAL = (VIDEO, POLICY, STATISTICS)
TAGS = ("sb3_cesd", "skill-discovery", "unsupervised-reinforcement-learning")
#: Heading in RL Zoo's model card that is followed by training and hyperparameters
TRAINING = "## Training (with the RL Zoo)"


class PushedSkills:
    """
    Extends the functions by which RL Zoo evaluates a model, records a video and finally writes its card.

    Models without skills are treated as before.
    """

    def __init__(self) -> None:
        self._pushed: tuple[SkillDDPG, VecEnv] | None = None
        self._video_length: int | None = None
        self._completed: Path | None = None

    def evaluate_each(self, evaluate_agent: Callable[..., Any]) -> Callable[..., Any]:
        """
        Evaluate all skills equally often.

        :param evaluate_agent: ``_evaluate_agent`` of ``huggingface_sb3``
        :return: the extended function, with equally many episodes per skill, at least one
        """

        @wraps(evaluate_agent)
        def evaluate(model: Any, eval_env: VecEnv, n_eval_episodes: int, *args: Any, **kwargs: Any) -> Any:
            self._pushed, self._video_length = None, None
            if isinstance(model, SkillDDPG):
                self._pushed = model, eval_env
                if model.reward == "intrinsic":
                    n_eval_episodes = math.ceil(n_eval_episodes / model.n_skills) * model.n_skills
            return evaluate_agent(model, eval_env, n_eval_episodes, *args, **kwargs)

        return evaluate

    def film_later(self, generate_replay: Callable[..., Any]) -> Callable[..., Any]:
        """
        Leave the video to the card, for which all skills are played anyway.

        :param generate_replay: ``_generate_replay`` of ``huggingface_sb3``
        :return: the extended function, which only records models without skills
        """

        @wraps(generate_replay)
        def film(model: Any, eval_env: VecEnv, video_length: int, *args: Any, **kwargs: Any) -> None:
            if isinstance(model, SkillDDPG):
                self._video_length = video_length
            else:
                generate_replay(model, eval_env, video_length, *args, **kwargs)

        return film

    def complete_card(self, metadata_save: Callable[..., Any]) -> Callable[..., Any]:
        """
        Complete the model card before the upload.

        :param metadata_save: ``metadata_save`` of ``huggingface_hub``, which RL Zoo calls between writing card and upload
        :return: the extended function
        """

        @wraps(metadata_save)
        def save(local_path: str | Path, data: dict[str, Any]) -> None:
            if self._pushed is not None:
                model, env = self._pushed
                self._pushed, self._completed = None, Path(local_path).parent
                data = write_card(Path(local_path), data, model, env, self._video_length)
            metadata_save(local_path, data)

        return save

    def delete_earlier(self, upload_folder: Callable[..., Any]) -> Callable[..., Any]:
        """
        Delete files of an earlier push that this one does not write, since they are of another model.

        :param upload_folder: ``HfApi.upload_folder``, which keeps them in the repository
        :return: the extended method; it uploads folders without a card of skills as before
        """

        @wraps(upload_folder)
        def upload(api: Any, **kwargs: Any) -> Any:
            folder = self._completed
            if folder is not None and folder == Path(kwargs["folder_path"]):
                self._completed = None
                kwargs["delete_patterns"] = [name for name in OPTIONAL if not (folder / name).exists()]
            return upload_folder(api, **kwargs)

        return upload


def write_card(
    card: Path, metadata: dict[str, Any], model: SkillDDPG, env: VecEnv, video_length: int | None
) -> dict[str, Any]:
    """
    Write the model card, and next to it picture, metrics, video and exported policy.

    :param card: RL Zoo's card, whose training and hyperparameters are kept; its folder has the name of the repository and
        contains ``config.yml`` of the run
    :param metadata: RL Zoo's metadata of the card
    :param model: the model
    :param env: environment to play in
    :param video_length: maximum number of steps per skill in pictures and video; ``None`` for no images
    :return: metadata with the tags and metrics of skills
    """
    # Only a push needs Matplotlib
    from sb3_cesd.show.card import EXPORTED_USAGE, WRAPPING, ZOO_USAGE, describe_skills
    from sb3_cesd.show.skills import N_STEPS, show_skills

    for name in OPTIONAL:
        # RL Zoo has already written the statistics
        if name != STATISTICS or unwrap_vec_normalize(env) is None:
            (card.parent / name).unlink(missing_ok=True)
    is_task, films = model.reward == "extrinsic", video_length is not None
    shorter = video_length if video_length is not None and video_length < N_STEPS else None
    shown = show_skills(model, env, n_steps=shorter, n_frames=6 if films else 0, video=films)
    for file in shown.save(card.parent, "mp4"):
        if file.suffix == ".mp4":
            file.replace(card.parent / VIDEO)

    wrappers = wrappers_of(card.parent / "config.yml")
    zoo_card, env_id = card.read_text(encoding="utf-8"), metadata["tags"][0]
    names = {
        "algorithm": argument_in(zoo_card, "--algo"),
        "organization": argument_in(zoo_card, "-orga"),
        "name": card.parent.name,
        "env_id": env_id,
        "env_name": env_id.split(":")[-1].replace("/", "-"),
        "env_kwargs": "".join(f", {name}={value!r}" for name, value in given_arguments(env).items()),
        "wrapping": WRAPPING.format(", then ".join(wrappers)) if wrappers else "",
        "policy": POLICY,
        "skill": model.skill if is_task and model.skill is not None else 0,
    }
    parts = [describe_skills(shown, PICTURE, is_task)]
    try:
        export_policy(model, card.parent / POLICY)
        parts.append(EXPORTED_USAGE.format(repo_id=f"{names['organization']}/{names['name']}", **names))
    except ValueError as error:
        print(f"No {POLICY} is written: {error}")
    parts += [ZOO_USAGE.format(**names), "".join(zoo_card.partition(TRAINING)[1:])]
    card.write_text("\n".join(parts), encoding="utf-8")
    return with_skill_metrics(metadata, {} if is_task else shown.metrics)


def given_arguments(env: VecEnv) -> dict[str, Any]:
    """
    Find the arguments with which environments were made, except those of their id and for rendering.

    :param env: the environments
    :return: arguments by name, as far as they are numbers, strings or truth values
    """
    spec = env.get_attr("spec")[0]
    if spec is None or spec.id not in gym.registry:
        return {}
    usual = {**gym.spec(spec.id).kwargs, "render_mode": spec.kwargs.get("render_mode")}
    return {
        name: value
        for name, value in spec.kwargs.items()
        if isinstance(value, bool | int | float | str) and (name not in usual or usual[name] != value)
    }


def wrappers_of(config: Path) -> list[str]:
    """
    Name the wrappers that environments have in a run of RL Zoo, except ``VecNormalize``.

    :param config: its ``config.yml``
    :return: wrappers with their arguments, from the inside, such as ``"my_module.MyWrapper(size=3)"``
    """
    entries = read_as_text(config)
    wrappers: list[Any] = []
    for entry in (entries.get("env_wrapper"), entries.get("vec_env_wrapper")):
        wrappers += entry if isinstance(entry, list) else [entry]
    if n_stack := entries.get("frame_stack"):
        wrappers.append({"stable_baselines3.common.vec_env.VecFrameStack": {"n_stack": n_stack}})
    return [name_wrapper(wrapper) for wrapper in wrappers if wrapper is not None]


def name_wrapper(wrapper: str | dict[str, dict[str, Any]]) -> str:
    """
    Name a wrapper and its arguments.

    :param wrapper: its name, or a dictionary of its name and arguments, as :func:`read_as_text` reads them
    :return: e.g. ``"my_module.MyWrapper(size=3)"``
    """
    ((name, arguments),) = wrapper.items() if isinstance(wrapper, dict) else [(wrapper, {})]
    given = ", ".join(f"{argument}={value!r}" for argument, value in arguments.items())
    # A class, rather than its name, is read as name:my_module.MyWrapper
    return f"{name.removeprefix('name:')}({given})"


def argument_in(zoo_card: str, option: str) -> str:
    """
    Read an argument of the commands in RL Zoo's model card.

    :param zoo_card: its text
    :param option: name of the argument, such as ``--algo``
    :return: its value; a placeholder if the card does not contain it
    """
    found = re.search(rf"(?<!\S){option} (\S+)", zoo_card)
    return found.group(1) if found else option.strip("-").upper()


def with_skill_metrics(metadata: dict[str, Any], metrics: dict[str, float]) -> dict[str, Any]:
    """
    Add the tags of skills, and replace the mean reward, which says nothing about skills, by their metrics.

    :param metadata: RL Zoo's metadata of the card
    :param metrics: metrics of the skills by name; empty to keep the mean reward
    :return: the metadata that the hub lists
    """
    (model,) = metadata["model-index"]
    (result,) = model["results"]
    entries = [{"type": name, "name": name, "value": float(value)} for name, value in metrics.items() if math.isfinite(value)]
    result = {**result, "metrics": entries or result["metrics"]}
    return {**metadata, "tags": [*metadata["tags"], *TAGS], "model-index": [{**model, "results": [result]}]}


def make_generate_metadata(generate_model_card_data: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """
    Make the function that RL Zoo 2.9 imports from ``huggingface_sb3``, which no longer has it.

    :param generate_model_card_data: its replacement, ``_generate_metadata``
    :return: the function with a dictionary as result
    """

    @wraps(generate_model_card_data)
    def generate_metadata(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return generate_model_card_data(*args, **kwargs).to_dict()

    return generate_metadata


def raise_as_requests(load_from_hub: Callable[..., str]) -> Callable[..., str]:
    """
    Raise the error that RL Zoo 2.9 expects for a repository without statistics of ``VecNormalize``.

    :param load_from_hub: ``load_from_hub`` of ``huggingface_sb3``, which now raises that of another library
    :return: the function with the error of ``requests``
    """

    @wraps(load_from_hub)
    def load(*args: Any, **kwargs: Any) -> str:
        try:
            return load_from_hub(*args, **kwargs)
        except RemoteEntryNotFoundError as error:
            # Callers that catch it have imported requests
            from requests.exceptions import HTTPError

            raise HTTPError(str(error)) from error

    return load
