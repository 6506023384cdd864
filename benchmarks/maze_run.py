"""One run of the maze benchmark: train, then measure the skills."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from maze_methods import METHODS
from stable_baselines3.common.callbacks import BaseCallback

from sb3_cesd import zoo
from sb3_cesd.envs.maze_layouts import LAYOUTS, MazeLayout
from sb3_cesd.envs.maze_vec_env import MazeVecEnv
from sb3_cesd.metrics import (
    cluster_size_entropy,
    collect_rollouts,
    distinguishability,
    maze_coverage,
    mine_mutual_information,
    on_cluster_share,
    particle_entropy,
    plug_in_mutual_information,
)

HORIZON = 50
N_ROLLOUTS = 20
#: Points of the curve of cumulative coverage
N_CURVE = 20
#: Side of the coarser bins, of which a cell has 100, as the finer ones (0.05) are not all visited in a short training
COARSE_BIN = 0.1


class CoverageCurve(BaseCallback):
    """
    Cumulative coverage during training.

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
        # The transitions of this step are not stored yet; those of the last point are in any case
        if self.num_timesteps // self.every > len(self.steps):
            self.steps.append(self.num_timesteps)
            self.coverage.append(coarse_coverage(visited_states(self.model), self.layout))
        return True


def visited_states(model: Any) -> np.ndarray:
    """
    :param model: a model whose replay buffer holds all of its training
    :return: all states of training, shape ``(n, 2)``
    """
    buffer = model.replay_buffer
    arrays = (buffer.observations, buffer.next_observations)
    return np.concatenate([array[: buffer.size()].reshape(-1, 2) for array in arrays])


def coarse_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """
    :param states: shape ``(n, 2)``
    :param layout: the maze
    :return: share of the free bins of side ``COARSE_BIN`` that were visited
    """
    n_bins_per_cell = round(1 / COARSE_BIN) ** 2
    return len(np.unique(np.floor((states - layout.low) / COARSE_BIN), axis=0)) / (layout.n_free_cells * n_bins_per_cell)


def run_one(run: dict[str, Any], rollouts_folder: Path, mine_iterations: int, n_timesteps: int | None) -> dict[str, Any]:
    """
    :param run: ``method``, ``maze`` and ``seed``
    :param rollouts_folder: where to keep the rollouts of the skills and the curve of coverage
    :param mine_iterations: iterations of MINE; 0 leaves it out
    :param n_timesteps: environment steps of the training, if not those of the yml file
    :return: the measures
    """
    th.set_num_threads(1)
    layout, seed = LAYOUTS[run["maze"]], run["seed"]
    method = METHODS[run["method"]]
    arguments = method.arguments()
    steps = n_timesteps or int(arguments["n_timesteps"])
    for name in ("n_timesteps", "callback"):
        arguments.pop(name, None)
    env = MazeVecEnv(run["maze"], arguments.pop("n_envs"), max_episode_steps=HORIZON)
    arguments["learning_rate"] = float(arguments["learning_rate"])
    model = zoo.ALGORITHMS[method.algo].model_class(env=env, seed=seed, device="cpu", **arguments)
    curve = CoverageCurve(layout, steps // N_CURVE)
    start = time.perf_counter()
    model.learn(steps, callback=curve, log_interval=None)
    seconds = time.perf_counter() - start

    visited = visited_states(model)
    rollouts_env = MazeVecEnv(run["maze"], N_ROLLOUTS * model.n_skills, max_episode_steps=HORIZON)
    noise = model.exploration_noise
    rollouts = collect_rollouts(model, rollouts_env, N_ROLLOUTS, HORIZON, noise_std=noise, seed=seed)
    centre = {"position": tuple(np.array(layout.start_cell, dtype=float))}
    drawn = collect_rollouts(model, rollouts_env, N_ROLLOUTS, HORIZON, noise_std=noise, seed=seed, reset_options=centre)
    rollouts_folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        rollouts_folder / "{method}_{maze}_{seed}.npz".format(**run),
        drawn=drawn.states.astype(np.float16),
        steps=curve.steps,
        coverage=curve.coverage,
    )

    states, skills = rollouts.per_state()
    late_states = rollouts.states[:, :, HORIZON // 2 :]
    late_skills = np.broadcast_to(rollouts.skills[..., None], late_states.shape[:3]).ravel()
    late_states = late_states.reshape(-1, 2)
    row = {
        "n_timesteps": steps,
        "n_updates": model._n_updates,
        "seconds": round(seconds, 1),
        "cumulative_coverage": maze_coverage(visited, layout),
        "cumulative_coverage_coarse": coarse_coverage(visited, layout),
        "policy_coverage": maze_coverage(states, layout),
        "mi_plug_in": plug_in_mutual_information(states, skills),
        "mi_late": plug_in_mutual_information(late_states, late_skills),
        "knn_accuracy": distinguishability(rollouts.states),
        "particle_entropy": particle_entropy(rollouts.states[:, ::2].reshape(-1, 2)),
    }
    if mine_iterations:
        trajectories, labels = rollouts.per_rollout()
        row["mi_mine"] = mine_mutual_information(
            trajectories, labels, n_iterations=mine_iterations, seed=seed
        ).mutual_information
    clusters = model.predict_clusters(states.astype(np.float32))
    if clusters is not None:
        row["on_cluster_share"] = on_cluster_share(clusters, skills)
        row["on_cluster_share_late"] = on_cluster_share(model.predict_clusters(late_states.astype(np.float32)), late_skills)
        row["cluster_size_entropy"] = cluster_size_entropy(clusters, model.n_skills)
    return row
