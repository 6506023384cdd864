"""Show skills from Python, in a notebook or for a report."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sb3_cesd.common.arguments import NonNegativeInt, PositiveInt, checked
from sb3_cesd.common.files import load_pickle
from sb3_cesd.common.skills import SkillName, SkillSpace
from sb3_cesd.common.vec_env import episode_length
from sb3_cesd.envs.robots.gl import choose_gl_backend
from sb3_cesd.export import ExportedPolicy
from sb3_cesd.metrics import collect_rollouts, play_and_measure, play_places
from sb3_cesd.metrics.environments import env_layout
from sb3_cesd.metrics.rollouts import prepare_to_play
from sb3_cesd.show.environments import PlayEnvs, envs_to_play
from sb3_cesd.show.figures import draw_maze_panels, draw_strips
from sb3_cesd.show.play import ChosenSkills, UntrainedSkills, play_all
from sb3_cesd.show.result import SkillShow
from sb3_cesd.skill_ddpg import SkillDDPG

logger = logging.getLogger(__name__)

#: Steps per skill in a maze, and elsewhere
N_MAZE_STEPS, N_STEPS = 50, 250
#: Rollouts per skill for picture and metrics of a maze, and for the metrics of other environments
N_MAZE_ROLLOUTS, N_ROLLOUTS = 20, 4
#: Longest vector of a skill that is written out
LONGEST_LABEL = 2
#: Metrics that are 1 / n_skills if all skills do the same
ONE_OF_N = ("knn_accuracy", "knn_accuracy_standardized", "knn_accuracy_places", "on_cluster_share")
#: Images per skill in a video
N_VIDEO_FRAMES = 40


@checked
def show_skills(
    model: SkillDDPG | ExportedPolicy,
    env: str | gym.Env | VecEnv | PlayEnvs | None = None,
    skills: SkillName | Sequence[SkillName] | None = None,
    n_steps: PositiveInt | None = None,
    n_rollouts: NonNegativeInt | None = None,
    n_untrained: NonNegativeInt = 1,
    n_frames: NonNegativeInt = 6,
    video: bool | None = None,
    seed: NonNegativeInt = 0,
    vec_normalize: VecNormalize | str | Path | None = None,
) -> SkillShow:
    """
    Show what each skill of a model does: pictures, images for a video, and metrics compared with untrained skills.

    A notebook displays the result on the last line of a cell::

        show_skills(model, "Walker-v0")

    Pictures show one episode of each skill, all from the same start; in a maze, rollouts with Gaussian action noise, the
    ``exploration_noise`` of the model. Metrics are computed from such rollouts of all skills, and compared with those of the
    same networks with new weights. A skill that learned a task is measured in whole episodes without noise.

    :param model: a model with skills, or an exported policy; of a model that learned a task, only its skill is shown
    :param env: id of an environment, an environment, or vectorized ones; ``None`` for one like that of training
    :param skills: what to draw and film: an index or several, or several vectors of continuous skills; ``None`` for all
    :param n_steps: maximum number of steps per skill; ``None`` for 50 in a maze, 250 elsewhere, and whole
        episodes for the metrics of a task
    :param n_rollouts: number of rollouts per skill for metrics, 0 for none; ``None`` for 20 in a maze and 4 elsewhere
    :param n_untrained: number of untrained networks, whose metrics are averaged, 0 for none
    :param n_frames: images per skill in the film strips, 0 for none
    :param video: whether to record images for a video; ``None`` for a video outside mazes
    :param seed: seed of the start, the same for all skills
    :param vec_normalize: training statistics by which observations are normalised, or their file; ``None`` for those of
        ``env`` or of the training environment, if any
    :return: figure, metrics and rollouts
    :raises ValueError: if the model does not fit the environment, or there is no such skill
    """
    # Must come before any environment imports MuJoCo
    choose_gl_backend()
    if isinstance(vec_normalize, str | Path):
        vec_normalize = load_pickle(vec_normalize, VecNormalize)
    envs = env if isinstance(env, PlayEnvs) else envs_to_play(env, model, vec_normalize)  # type: ignore[arg-type]
    is_task = model.reward == "extrinsic"
    if is_task:
        # Until it is known which skill is best, the first one acts
        skills = 0 if model.skill is None else [model.skill]
    names: list[Any] = list(range(model.n_skills))
    if skills is not None:
        names = [skills] if isinstance(skills, int) else list(skills)
    chosen = ChosenSkills(model, names)
    labels = [name_label(name, model.skill_space) for name in names]
    with envs.opened() as one:
        prepare_to_play(model, one)
        layout, horizon = env_layout(one), episode_length(one)
    usual_steps, usual_rollouts = (N_STEPS, N_ROLLOUTS) if layout is None else (N_MAZE_STEPS, N_MAZE_ROLLOUTS)
    video = layout is None if video is None else video
    n_images = max(n_frames if layout is None else 0, N_VIDEO_FRAMES if video else 0)
    doing = "Playing and filming" if n_images else "Playing"
    logger.info("%s %d skills in %s, %d steps each", doing, len(names), envs.name, n_steps or usual_steps)
    rollouts, problem = play_all(chosen, envs, labels, n_steps or usual_steps, seed, n_images, in_maze=layout is not None)
    notes = [] if problem is None else [f"No images and no video: {problem}"]
    if getattr(model, "_n_updates", 1) == 0:
        notes.append(
            "Nothing was learned, as training ended without an update: train for more steps, or lower learning_starts."
        )

    play: dict[str, Any] = {
        "n_rollouts": usual_rollouts if n_rollouts is None else n_rollouts,
        "n_steps": n_steps or usual_steps,
        "noise_std": model.exploration_noise,
        "seed": seed,
    }
    measured = {**play, "n_steps": n_steps or horizon or usual_steps, "noise_std": 0.0} if is_task else play
    measure = partial(_measure, envs, is_task, measured)
    logger.info("Measuring %d rollouts of each skill", play["n_rollouts"])
    metrics = measure(chosen if is_task else model)
    baselines = {}
    if metrics and n_untrained > 0:
        logger.info("Measuring the same of untrained skills")
        # One at a time: critics are large
        untrained = (UntrainedSkills(model, each) for each in range(n_untrained))
        values = [measure(ChosenSkills(other, names) if is_task else other) for other in untrained]
        baselines["untrained"] = {name: float(np.mean([each[name] for each in values])) for name in values[0]}
        if n_untrained == 1:
            notes.append("Untrained networks vary, and only one was measured: --untrained 5 (n_untrained=5) averages five.")
    if metrics and not is_task:
        known = {**dict.fromkeys(ONE_OF_N, 1 / model.n_skills), "mutual_information": 0.0}
        baselines["chance"] = {name: known[name] for name in metrics if name in known}

    method = model.algorithm if isinstance(model, ExportedPolicy) else type(model).__name__
    title = f"{method} on {envs.name}, {model.num_timesteps} steps of training"
    if layout is None:
        figure = draw_strips(rollouts, title, n_frames)
    else:
        # As the paper does: stochastic rollouts from one start
        play |= {"n_rollouts": max(play["n_rollouts"], 1), "reset_options": {"position": layout.start_cell}}
        with envs.opened(chosen.n_skills, play["n_rollouts"]) as many:
            drawn = play_places(chosen, many, **play)
        figure = draw_maze_panels(layout, {title: drawn.states}, legend=True, panel_width=4.5, labels=labels)
    return SkillShow(title, rollouts, figure, metrics, baselines, video, notes)


def name_label(skill: SkillName, skill_space: SkillSpace) -> str:
    """Name a skill by its index, or a continuous one by its vector, e.g. ``"(0.71, -0.71)"``, unless that is long."""
    if np.ndim(skill) == 0:
        if skill_space.discrete or skill_space.dim > LONGEST_LABEL:
            return str(skill)
        skill = skill_space.vectors[int(skill)]  # type: ignore[arg-type]
    # Adding zero turns -0.00 into 0.00
    numbers = [f"{round(float(value), 2) + 0.0:.2f}" for value in skill[:LONGEST_LABEL]]  # type: ignore[index]
    return f"({', '.join([*numbers, *(['…'] if len(skill) > LONGEST_LABEL else [])])})"  # type: ignore[arg-type]


def _measure(envs: PlayEnvs, is_task: bool, play: dict[str, Any], player: Any) -> dict[str, float]:
    if play["n_rollouts"] == 0:
        return {}
    with envs.opened(player.n_skills, play["n_rollouts"]) as env:
        if not is_task:
            return play_and_measure(player, env, **play)[0]
        rollouts = collect_rollouts(player, env, **play)
        return {"mean_return": float(rollouts.returns.mean()), "mean_length": float(rollouts.lengths.mean())}
