"""Environments of the benchmark. Registering them imports no physics engine; making one does."""

from sb3_cesd.envs.goals import GoalTask, make_goal_task
from sb3_cesd.envs.registration import register_envs
from sb3_cesd.envs.robots.batching import batch_envs, make_batched

__all__ = ["GoalTask", "batch_envs", "make_batched", "make_goal_task", "register_envs"]
