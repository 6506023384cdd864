"""Metrics of recorded states: how well skills cover an environment, and how distinguishable they are."""

from sb3_cesd.metrics.environments import env_positions, make_env_like_training, make_play_env
from sb3_cesd.metrics.goals import (
    GoalResults,
    draw_goals,
    policy_coverage,
    score_best_skills,
    task_returns,
    zero_shot_goals,
)
from sb3_cesd.metrics.measures import (
    TrainingCoverage,
    knn_accuracy,
    maze_coverage,
    on_cluster_share,
    particle_entropy,
    plug_in_mutual_information,
)
from sb3_cesd.metrics.rollouts import SkillRollouts, collect_rollouts, play_paths, play_places
from sb3_cesd.metrics.summary import SkillMotion, measure_motion, play_and_measure, play_and_score, skill_metrics, skill_score

__all__ = [
    "GoalResults",
    "SkillMotion",
    "SkillRollouts",
    "TrainingCoverage",
    "collect_rollouts",
    "draw_goals",
    "env_positions",
    "knn_accuracy",
    "make_env_like_training",
    "make_play_env",
    "maze_coverage",
    "measure_motion",
    "on_cluster_share",
    "particle_entropy",
    "play_and_measure",
    "play_and_score",
    "play_paths",
    "play_places",
    "plug_in_mutual_information",
    "policy_coverage",
    "score_best_skills",
    "skill_metrics",
    "skill_score",
    "task_returns",
    "zero_shot_goals",
]
