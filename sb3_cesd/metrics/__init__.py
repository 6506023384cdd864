"""Metrics of recorded states: how well skills cover an environment, and how distinguishable they are."""

from sb3_cesd.metrics.clusters import cluster_size_entropy, on_cluster_share
from sb3_cesd.metrics.coverage import CumulativeMazeCoverage, TrainingCoverage, maze_coverage, torso_coverage
from sb3_cesd.metrics.distinguishability import distinguishability, knn_accuracy
from sb3_cesd.metrics.environments import make_env, make_play_env
from sb3_cesd.metrics.goals import GoalResults, draw_goals, zero_shot_goals
from sb3_cesd.metrics.mine import MineEstimate, mine_mutual_information
from sb3_cesd.metrics.motion import SkillMotion, mean_speeds, measure_motion, skill_motion
from sb3_cesd.metrics.mutual_information import plug_in_mutual_information
from sb3_cesd.metrics.objective import cell_coverage, observation_coverage, play_and_score, skill_score
from sb3_cesd.metrics.particle_entropy import particle_entropy
from sb3_cesd.metrics.places import env_positions
from sb3_cesd.metrics.policy_coverage import policy_coverage
from sb3_cesd.metrics.rollouts import SkillRollouts, collect_rollouts, play_paths
from sb3_cesd.metrics.summary import play_and_measure, play_places, skill_metrics
from sb3_cesd.metrics.tasks import best_skill_scores, task_returns
from sb3_cesd.metrics.training_env import make_env_like_training

__all__ = [
    "CumulativeMazeCoverage",
    "GoalResults",
    "MineEstimate",
    "SkillMotion",
    "SkillRollouts",
    "TrainingCoverage",
    "best_skill_scores",
    "cell_coverage",
    "cluster_size_entropy",
    "collect_rollouts",
    "distinguishability",
    "draw_goals",
    "env_positions",
    "knn_accuracy",
    "make_env",
    "make_env_like_training",
    "make_play_env",
    "maze_coverage",
    "mean_speeds",
    "measure_motion",
    "mine_mutual_information",
    "observation_coverage",
    "on_cluster_share",
    "particle_entropy",
    "play_and_measure",
    "play_and_score",
    "play_paths",
    "play_places",
    "plug_in_mutual_information",
    "policy_coverage",
    "skill_metrics",
    "skill_motion",
    "skill_score",
    "task_returns",
    "torso_coverage",
    "zero_shot_goals",
]
