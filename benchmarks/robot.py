"""
Skills of robots at laptop scale: the default against the released setting and other methods.

    python benchmarks/robot.py --env Walker-v0 --methods cesd released apt --steps 50000 --seeds 2 --jobs 2

A run that is in ``runs.csv`` is not done again: stop it at any time and go on with the same command. Each run has one thread.
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
import yaml
from runs import Row, run_missing
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd import zoo
from sb3_cesd.metrics import collect_rollouts, distinguishability, particle_entropy, play_and_measure
from sb3_cesd.skill_ddpg import SkillDDPG

#: What makes CeSD the released code's method, at any scale
RELEASED: dict[str, Any] = {
    "prototype_kwargs": {"sinkhorn_temperature": 0.1, "swap": "next"},
    "entropy_kwargs": {"scale": "variance"},
    "constraint_kwargs": {"count": "released", "start": 0.0},
    "relabel_kwargs": {"critic": "cluster", "actor": "skill"},
    "policy_kwargs": {"shared_value": False},
}
#: Name of the method -> algorithm, and arguments that differ from its laptop yml file
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "cesd": ("cesd", {}),
    "released": ("cesd", RELEASED),
    **{name: (name, {}) for name in ("apt", "diayn", "cic", "dads")},
}
N_ROLLOUTS, N_STEPS = 8, 250
#: States of training of which the particle entropy is taken
N_PARTICLES = 2000


def run_one(run: Row, n_timesteps: int) -> Row:
    """
    :param run: ``method``, ``env`` and ``seed``
    :param n_timesteps: environment steps of the training
    :return: the measures: those of :func:`~sb3_cesd.metrics.skill_metrics` for the places of the torso;
        ``knn_accuracy_states`` of telling the skill by the observation; ``training_coverage`` and ``training_entropy``, bins
        of 1 m and particle entropy of the observations of training
    """
    th.set_num_threads(1)
    algo, overrides = METHODS[run["method"]]
    entry = yaml.safe_load((zoo.hyperparams_folder() / f"{algo}_laptop.yml").read_text())[run["env"]]
    entry["policy_kwargs"] = eval(entry["policy_kwargs"])
    for name, value in overrides.items():
        entry[name] = {**entry.get(name, {}), **value}
    entry.update(learning_rate=float(entry["learning_rate"]), buffer_size=n_timesteps)
    entry.pop("n_timesteps")
    model = zoo.ALGORITHMS[algo].model_class(env=run["env"], seed=run["seed"], device="cpu", **entry)
    assert isinstance(model, SkillDDPG) and model.replay_buffer is not None
    bins: set[tuple[int, ...]] = set()

    def note_place(locals_: dict[str, Any], globals_: dict[str, Any]) -> bool:
        places = np.stack(locals_["env"].get_attr("position"))[:, :2]
        bins.update(map(tuple, np.floor(places).astype(int).tolist()))
        return True

    start = time.perf_counter()
    model.learn(n_timesteps, callback=note_place, log_interval=None)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start

    env = DummyVecEnv([partial(gym.make, run["env"])] * N_ROLLOUTS)
    play: dict[str, Any] = {"n_rollouts": N_ROLLOUTS, "n_steps": N_STEPS, "noise_std": model.exploration_noise, "seed": 0}
    metrics, _ = play_and_measure(model, env, **play)
    states = collect_rollouts(model, env, **play).states
    env.close()
    observations = model.replay_buffer.observations.reshape(n_timesteps, -1)
    chosen = np.random.default_rng(0).choice(n_timesteps, N_PARTICLES, replace=False)
    return {
        "n_timesteps": n_timesteps,
        "n_updates": model._n_updates,
        "seconds": round(seconds, 1),
        **metrics,
        "knn_accuracy_states": distinguishability(states[:, :, ::5]),
        "training_coverage": len(bins),
        "training_entropy": particle_entropy(observations[chosen]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", nargs="+", default=["Walker-v0"], help="pre-training ids of robots")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), metavar="METHOD", default=["cesd", "released", "apt"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200_000, help="environment steps of a run")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/robot"))
    parser.add_argument("--dry-run", action="store_true", help="list the runs that are left")
    args = parser.parse_args()
    runs = [
        {"method": method, "env": env_id, "seed": seed}
        for seed in range(args.seeds)
        for env_id in args.env
        for method in args.methods
    ]
    rows = run_missing(runs, partial(run_one, n_timesteps=args.steps), args.output / "runs.csv", args.jobs, args.dry_run)
    print(rows.drop(columns="versions", errors="ignore").round(3).to_string(index=False))


if __name__ == "__main__":
    main()
