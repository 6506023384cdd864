"""One run of the maze benchmark: train, then measure the skills."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from maze_methods import METHODS
from mine import mine_mutual_information
from stable_baselines3.common.callbacks import BaseCallback

from sb3_cesd import registry
from sb3_cesd.common.files import written_whole
from sb3_cesd.envs.mazes.layouts import LAYOUTS, MazeLayout
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import (
    SkillRollouts,
    collect_rollouts,
    maze_coverage,
    on_cluster_share,
    particle_entropy,
    plug_in_mutual_information,
    skill_metrics,
)
from sb3_cesd.skill_ddpg import SkillDDPG

HORIZON = 50
N_ROLLOUTS = 20
#: Standard deviation of the white noise on actions in rollouts, the same for all methods
ROLLOUT_NOISE = 0.2
#: Rollouts of each skill for MINE, as in the published comparison
N_MINE_ROLLOUTS = 100
#: Rollouts of each skill for the particle entropy, as in the published comparison
N_ENTROPY_ROLLOUTS = 10
#: Points of the curve of total coverage
N_CURVE = 20
#: Side of the coarse bins, 100 per cell; a short training can't visit all of the finer ones (0.05)
COARSE_BIN = 0.1


class CoverageCurve(BaseCallback):
    """
    Total coverage during training.

    :param layout: the maze
    :param every: environment steps between two points
    """

    def __init__(self, layout: MazeLayout, every: int) -> None:
        super().__init__()
        self.layout = layout
        self.every = every
        self.steps: list[int] = []
        self.coverage: list[float] = []

    def _on_step(self) -> bool:
        # The transitions of this step are not stored yet, so the first one has none
        if self.n_calls > 1 and self.num_timesteps // self.every > len(self.steps):
            self.steps.append(self.num_timesteps)
            self.coverage.append(coarse_coverage(visited_states(self.model), self.layout))
        return True


def visited_states(model: Any) -> np.ndarray:
    """
    Collect the states of training.

    :param model: a model whose replay buffer holds all of its training
    :return: states, shape ``(n, 2)``
    """
    return model.replay_buffer.visited_observations()


def rollouts_file(folder: Path, run: dict[str, Any]) -> Path:
    """
    Return the file of the rollouts of a run.

    :param folder: folder of the rollouts
    :param run: ``method``, ``maze``, ``seed`` and ``n_timesteps``
    :return: the file
    """
    return folder / "{method}_{maze}_{seed}_{n_timesteps}.npz".format(**run)


def coarse_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """
    Compute the coverage of a maze in coarse bins.

    :param states: shape ``(n, 2)``
    :param layout: the maze
    :return: share of the free bins of side ``COARSE_BIN`` that were visited
    """
    n_bins_per_cell = round(1 / COARSE_BIN) ** 2
    return len(np.unique(np.floor((states - layout.low) / COARSE_BIN), axis=0)) / (layout.n_free_cells * n_bins_per_cell)


def run_one(run: dict[str, Any], rollouts_folder: Path) -> dict[str, Any]:
    """
    Train a method in a maze, then measure its skills.

    :param run: ``method``, ``maze``, ``seed`` and ``n_timesteps``, the environment steps of the training
    :param rollouts_folder: folder for rollouts of the skills and the curve of coverage
    :return: the measures
    """
    th.set_num_threads(1)
    layout, seed = LAYOUTS[run["maze"]], run["seed"]
    method = METHODS[run["method"]]
    arguments = method.arguments()
    steps = run["n_timesteps"]
    arguments.pop("n_timesteps")
    # visited_states needs all transitions
    arguments["buffer_size"] = max(int(arguments["buffer_size"]), steps)
    env = MazeVecEnv(run["maze"], arguments.pop("n_envs"), max_episode_steps=HORIZON)
    model = registry.METHODS[method.algo](env=env, seed=seed, device="cpu", **arguments)
    curve = CoverageCurve(layout, steps // N_CURVE)
    start = time.perf_counter()
    model.learn(steps, callback=curve, log_interval=None)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start

    env = MazeVecEnv(run["maze"], N_ROLLOUTS * model.n_skills, max_episode_steps=HORIZON)
    play = partial(collect_rollouts, model, env, n_steps=HORIZON, noise_std=ROLLOUT_NOISE, seed=seed)
    rollouts = play(n_rollouts=N_ROLLOUTS)
    drawn = play(n_rollouts=N_ROLLOUTS, reset_options={"position": layout.start_cell}).states.astype(np.float16)
    many = play(n_rollouts=N_MINE_ROLLOUTS).states.astype(np.float16)
    with written_whole(rollouts_file(rollouts_folder, run)) as file:
        np.savez_compressed(file, drawn=drawn, many=many, steps=curve.steps, coverage=curve.coverage)
    return {"n_updates": model._n_updates, "seconds": round(seconds, 1), **measure(model, layout, rollouts)}


def measure(model: SkillDDPG, layout: MazeLayout, rollouts: SkillRollouts) -> dict[str, float]:
    """
    Measure skills.

    :param model: a trained model
    :param layout: its maze
    :param rollouts: stochastic rollouts of its skills
    :return: the measures by name
    """
    states, _ = rollouts.per_state()
    clusters = model.predict_clusters(states.astype(np.float32))
    metrics = skill_metrics(rollouts, clusters, in_the_plane=True, layout=layout)
    # Observations are positions
    metrics = {name: value for name, value in metrics.items() if not name.endswith("_places")}
    visited = visited_states(model)
    late_states = rollouts.states[:, :, HORIZON // 2 :]
    late_skills = np.broadcast_to(rollouts.skills[..., None], late_states.shape[:3]).ravel()
    late_states = late_states.reshape(-1, 2)
    measures = {
        "total_coverage": maze_coverage(visited, layout),
        "total_coverage_coarse": coarse_coverage(visited, layout),
        "policy_coverage": metrics.pop("policy_coverage"),
        "policy_coverage_coarse": coarse_coverage(states, layout),
        "mi_plug_in": metrics.pop("mutual_information"),
        "mi_late": plug_in_mutual_information(late_states, late_skills),
        **metrics,
        "particle_entropy": entropy_of_published_size(rollouts),
    }
    late_clusters = model.predict_clusters(late_states.astype(np.float32))
    if late_clusters is not None:
        measures["on_cluster_share_late"] = on_cluster_share(late_clusters, late_skills)
    return measures


def mine_one(run: dict[str, Any], rollouts_folder: Path) -> dict[str, Any]:
    """
    Estimate the mutual information of a finished run by MINE, which takes as long as the training itself.

    :param run: ``method``, ``maze``, ``seed``, ``n_timesteps`` and ``n_iterations`` of MINE
    :param rollouts_folder: as in :func:`run_one`
    :return: the estimate, and that of the same rollouts with shuffled skills, which the network can only memorise
    """
    th.set_num_threads(1)
    file = rollouts_file(rollouts_folder, run)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not there: copy it there, or delete the row of its run in runs.csv to repeat it.")
    states = np.load(file)["many"].astype(np.float32)  # (n_skills, n_rollouts, n_steps + 1, 2)
    n_skills, n_rollouts = states.shape[:2]
    trajectories = states.reshape(n_skills * n_rollouts, -1)
    skills = np.repeat(np.arange(n_skills), n_rollouts)
    of_skills = {"mi_mine": skills, "mi_mine_shuffled": np.random.default_rng(run["seed"]).permutation(skills)}
    return {
        name: mine_mutual_information(
            trajectories, each, n_iterations=run["n_iterations"], seed=run["seed"]
        ).mutual_information
        for name, each in of_skills.items()
    }


def entropy_of_published_size(rollouts: SkillRollouts) -> float:
    """
    Measure the particle entropy of as many states as in the published comparison, as only sets of equal size can be compared.

    :param rollouts: rollouts of skills in a maze
    :return: particle entropy of positions
    """
    return particle_entropy(rollouts.states[:, :N_ENTROPY_ROLLOUTS].reshape(-1, 2))
