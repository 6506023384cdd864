"""Show skills from Python, in a notebook or for a report."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from stable_baselines3.common.vec_env import VecNormalize, unwrap_vec_normalize

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.env_specs import episode_length
from sb3_cesd.common.files import AnyPath
from sb3_cesd.common.playing import SkillModel, check_play_spaces
from sb3_cesd.common.rules import is_whole
from sb3_cesd.common.skills import SkillName, check_skill
from sb3_cesd.common.vec_normalize import lacks_statistics, load_statistics, what_lacks
from sb3_cesd.envs.mazes.layouts import MazeLayout
from sb3_cesd.metrics import collect_rollouts, play_and_measure, play_places
from sb3_cesd.metrics.environments import env_layout, has_new_statistics
from sb3_cesd.metrics.plots import draw_maze_panels
from sb3_cesd.show.choice import ChosenSkills, ShownModel, UntrainedSkills, method_name
from sb3_cesd.show.environments import PlayEnvs, ShownEnv, envs_to_play, kind_of
from sb3_cesd.show.labels import CHANCE, UNTRAINED, by_chance, name_label
from sb3_cesd.show.play import SkillRollout, play_all
from sb3_cesd.show.reach import Reach, choose_reach, measure_reach
from sb3_cesd.show.result import SkillShow
from sb3_cesd.show.strips import draw_strips

#: Steps per skill in a maze, and elsewhere
N_MAZE_STEPS, N_STEPS = 50, 250
#: Rollouts per skill for picture and metrics of a maze, and for the metrics of other environments
N_MAZE_ROLLOUTS, N_ROLLOUTS = 20, 4
#: Images per skill in a video
N_VIDEO_FRAMES = 50


def show_skills(
    model: ShownModel,
    env: ShownEnv | None = None,
    skills: SkillName | Sequence[SkillName] | None = None,
    n_steps: int | None = None,
    n_rollouts: int | None = None,
    n_untrained: int = 1,
    n_frames: int = 6,
    video: bool | None = None,
    n_trajectories: int | None = None,
    goal_range: float | None = None,
    seed: int = 0,
    vec_normalize: VecNormalize | AnyPath | None = None,
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
    :param skills: what to draw and film: an index or several, or vectors of continuous skills; ``None`` for all
    :param n_steps: maximum number of steps per skill; ``None`` for 50 in a maze, 250 elsewhere, 200 for trajectories and
        goals, and whole episodes for the metrics of a task
    :param n_rollouts: number of rollouts per skill for metrics, 0 for none; ``None`` for 20 in a maze and 4 elsewhere
    :param n_untrained: number of untrained networks, whose metrics are averaged, 0 for none
    :param n_frames: images per skill in the film strips, 0 for none
    :param video: whether to record images for a video; ``None`` for a video outside mazes
    :param n_trajectories: for a robot, measure the policy coverage of this many deterministic trajectories, as METRA (Park et
        al., 2024) does, 0 for none; ``None`` for 48 with METRA's robots (``SkillAnt-v0``, ``SkillHalfCheetah-v0``) and none
        elsewhere
    :param goal_range: for a robot, follow skills to 50 goals whose coordinates are within +- this range [m]
        (:func:`~sb3_cesd.metrics.goals.zero_shot_goals`), 0 for no goals; ``None`` for 50 m with METRA's ant, 100 m with its
        half-cheetah, and no goals elsewhere
    :param seed: seed of the start, the same for all skills
    :param vec_normalize: training statistics by which observations are normalised, or their file; ``None`` for those of
        ``env`` or of the training environment, if any
    :return: figure, metrics and rollouts
    :raises ValueError: if the model does not fit the environment, or there is no such skill
    """
    check_arguments("show_skills", locals())
    if vec_normalize is not None and not isinstance(vec_normalize, VecNormalize):
        vec_normalize = load_statistics(Path(vec_normalize))
    envs = envs_to_play(env, model, vec_normalize)
    return show_in(envs, model, skills, n_steps, n_rollouts, n_untrained, n_frames, video, n_trajectories, goal_range, seed)


def show_in(
    envs: PlayEnvs,
    model: ShownModel,
    skills: SkillName | Sequence[SkillName] | None = None,
    n_steps: int | None = None,
    n_rollouts: int | None = None,
    n_untrained: int = 1,
    n_frames: int = 6,
    video: bool | None = None,
    n_trajectories: int | None = None,
    goal_range: float | None = None,
    seed: int = 0,
) -> SkillShow:
    """
    Show skills in given environments. For the other arguments see :func:`show_skills`.

    :param envs: factory of environments, as the model expects them
    :param model: the model
    :return: figure, metrics and rollouts
    :raises ValueError: if the environment does not fit the model, or an argument does not fit one of both
    """
    seed = int(seed)
    is_task = model.reward == "extrinsic"
    if is_task and (n_trajectories or goal_range):
        raise ValueError(
            "n_trajectories and goal_range measure all skills, but the model learned a task with one: leave them "
            "out, or show the pre-trained model."
        )
    if not is_task:
        check_arguments("show_skills", {"n_rollouts": n_rollouts})
    with closing(envs.one()) as env:
        check_play_spaces(env.observation_space, env.action_space, model, envs.name)
        layout, kind = env_layout(env), kind_of(env)
        is_not_normalized = lacks_statistics(model, unwrap_vec_normalize(env))
        lacking = what_lacks(unwrap_vec_normalize(env), "this environment")
        wrapper_is_new = model.num_timesteps > 0 and has_new_statistics(env)
        if is_not_normalized or wrapper_is_new:
            # Metrics would be those of other skills than the model learned
            n_rollouts = n_trajectories = 0
            goal_range = 0.0
        horizon = episode_length(env)
        reach = choose_reach(env, n_trajectories, goal_range, n_steps, by_default=not is_task and n_rollouts != 0)
    names = _names(model, skills)
    chosen = ChosenSkills(model, names)
    labels = [name_label(name, model.skill_space) for name in names]
    default_n_steps = N_MAZE_STEPS if layout is not None else N_STEPS
    n_task_steps = n_steps or horizon or default_n_steps
    n_steps = n_steps or default_n_steps
    video = layout is None if video is None else video
    n_images = max(n_frames if layout is None else 0, N_VIDEO_FRAMES if video else 0)
    rollouts, problem = play_all(chosen, envs.one, range(len(names)), n_steps, seed, n_images)
    notes = [] if problem is None else [f"No images and no video: {problem}"]
    if is_not_normalized:
        notes.append(
            f"VecNormalize normalised observations in training, but {lacking}, so skills may behave differently and are not "
            "measured: pass its statistics by --vec-normalize FILE or show_skills(..., vec_normalize=FILE)."
        )
    if wrapper_is_new:
        notes.append(
            "The statistics of NormalizeObservation are new, as those of training are not saved, so skills may behave "
            "differently and are not measured: train with VecNormalize (normalize: True in RL Zoo)."
        )

    play: dict[str, Any] = {"n_steps": n_steps, "noise_std": model.exploration_noise, "seed": seed}
    play["n_rollouts"] = (N_MAZE_ROLLOUTS if layout is not None else N_ROLLOUTS) if n_rollouts is None else n_rollouts
    measured = {**play, "n_steps": n_task_steps, "noise_std": 0.0} if is_task else play
    metrics, baselines = _measure(envs, model, chosen, measured, reach, n_untrained)
    if UNTRAINED in baselines and n_untrained == 1:
        notes.append("Untrained networks vary, and only one was measured: --untrained 5 (n_untrained=5) averages five.")
    method = method_name(model)
    title = f"{method} on {envs.name}, {model.num_timesteps} steps of training"
    if layout is None:
        figure = draw_strips(rollouts, labels, f"{title}\n{_lengths(rollouts)}", n_frames)
    else:
        drawn = {**play, "n_rollouts": max(play["n_rollouts"], 1)}
        figure = _draw_maze(envs, chosen, layout, drawn, title, labels)
    n_measured = 1 if is_task else model.n_skills
    return SkillShow(title, labels, rollouts, figure, metrics, baselines, n_measured, kind, bool(video), notes, method)


def _names(model: ShownModel, skills: SkillName | Sequence[SkillName] | None) -> list[SkillName]:
    """
    Find the skills to show.

    :param model: the model
    :param skills: one or several, or ``None`` for all
    :return: their indices or vectors
    :raises ValueError: if the model learned a task with another one
    """
    if model.reward == "extrinsic":
        # Until it is known which skill is best, the first one acts
        own: SkillName = 0 if model.skill is None else model.skill  # type: ignore[union-attr]
        if skills is not None and _listed(skills, model) != [own]:
            raise ValueError(
                f"The model learned a task with skill {own} alone: leave skills out, or show the pre-trained model."
            )
        return [own]
    return list(range(model.n_skills)) if skills is None else _listed(skills, model)


def _listed(skills: SkillName | Sequence[SkillName], model: ShownModel) -> list[SkillName]:
    """Return one or several skills as a list."""
    several = [skills] if is_whole(skills) else list(skills)  # type: ignore[arg-type]
    if not model.skill_space.discrete and all(isinstance(number, float | np.floating) for number in several):
        several = [skills]
    for skill in several:
        if model.skill_space.discrete:
            check_skill(skill, model.n_skills)  # type: ignore[arg-type]
        else:
            model.skill_space.encode(skill)  # type: ignore[arg-type]
    return [int(skill) if np.ndim(skill) == 0 else list(skill) for skill in several]  # type: ignore[arg-type, call-overload]


def _measure(
    envs: PlayEnvs, model: ShownModel, chosen: ChosenSkills, play: dict[str, Any], reach: Reach, n_untrained: int
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """
    Measure all skills and their baselines.

    :param envs: environments to play in
    :param model: the model
    :param chosen: selected skills; of a model that learned a task, its skill
    :param play: arguments of the rollouts
    :param reach: how to measure how far skills go
    :param n_untrained: number of untrained networks to compare with
    :return: metrics, and those of untrained skills and by chance
    """
    is_task = model.reward == "extrinsic"
    if play["n_rollouts"] == 0 and not reach.is_wanted:
        return {}, {}

    def measure(player: Any) -> dict[str, float]:
        if is_task:
            return _measure_task(envs, player, play)
        return {**_measure_skills(envs, player, play), **measure_reach(envs, player, reach, play["seed"])}

    metrics = measure(chosen if is_task else model)
    baselines = {}
    if n_untrained > 0:
        # One at a time: critics are large
        untrained = (UntrainedSkills(model, seed) for seed in range(n_untrained))
        each = [measure(ChosenSkills(other, chosen.skills) if is_task else other) for other in untrained]
        baselines[UNTRAINED] = {name: float(np.mean([values[name] for values in each])) for name in each[0]}
    if not is_task:
        baselines[CHANCE] = by_chance(metrics, model.n_skills)
    return metrics, baselines


def _measure_skills(envs: PlayEnvs, model: Any, play: dict[str, Any]) -> dict[str, float]:
    if play["n_rollouts"] == 0:
        return {}
    with closing(envs.many(model.n_skills, play["n_rollouts"])) as env:
        return play_and_measure(model, env, **play)[0]


def _measure_task(envs: PlayEnvs, model: SkillModel, play: dict[str, Any]) -> dict[str, float]:
    with closing(envs.many(model.n_skills, play["n_rollouts"])) as env:
        rollouts = collect_rollouts(model, env, **play)
    return {"mean_return": float(rollouts.returns.mean()), "mean_length": float(rollouts.lengths.mean())}


def _draw_maze(
    envs: PlayEnvs, chosen: ChosenSkills, layout: MazeLayout, play: dict[str, Any], title: str, labels: list[str]
) -> Figure:
    """
    Draw skills in a maze as the paper does: stochastic rollouts from one start.

    :param envs: factory of the maze
    :param chosen: the skills
    :param layout: layout of the maze
    :param play: arguments of the rollouts
    :param title: title of the figure
    :param labels: names of the skills
    :return: the figure
    """
    with closing(envs.many(chosen.n_skills, play["n_rollouts"])) as env:
        drawn = play_places(chosen, env, reset_options={"position": layout.start_cell}, **play)
    return draw_maze_panels(layout, {title: drawn.states}, legend=True, panel_width=4.5, labels=labels)


def _lengths(rollouts: Sequence[SkillRollout]) -> str:
    """Describe how many steps skills were played."""
    lengths = [rollout.n_steps for rollout in rollouts]
    if min(lengths) == max(lengths):
        return f"{lengths[0]} steps per skill"
    return f"{min(lengths)} to {max(lengths)} steps per skill, as episodes end early"
