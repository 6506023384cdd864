"""How well skills cover an environment and how well they can be told apart: functions of recorded states."""

from sb3_cesd.metrics.clusters import cluster_size_entropy, on_cluster_share
from sb3_cesd.metrics.coverage import CumulativeMazeCoverage, maze_coverage, torso_coverage
from sb3_cesd.metrics.distinguishability import distinguishability, knn_accuracy
from sb3_cesd.metrics.environments import make_env, make_play_env
from sb3_cesd.metrics.mine import MineEstimate, mine_mutual_information
from sb3_cesd.metrics.mutual_information import plug_in_mutual_information
from sb3_cesd.metrics.particle_entropy import particle_entropy
from sb3_cesd.metrics.rollouts import SkillRollouts, collect_rollouts, env_positions
from sb3_cesd.metrics.summary import play_and_measure, play_places, skill_metrics

__all__ = [
    "CumulativeMazeCoverage",
    "MineEstimate",
    "SkillRollouts",
    "cluster_size_entropy",
    "collect_rollouts",
    "distinguishability",
    "env_positions",
    "knn_accuracy",
    "make_env",
    "make_play_env",
    "maze_coverage",
    "mine_mutual_information",
    "on_cluster_share",
    "particle_entropy",
    "play_and_measure",
    "play_places",
    "plug_in_mutual_information",
    "skill_metrics",
    "torso_coverage",
]
