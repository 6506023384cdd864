"""Environments of the benchmark. Registering them imports no physics engine; making one does."""

from sb3_cesd.envs.registration import register_envs
from sb3_cesd.envs.robots.batching import batch_envs, make_batched

__all__ = ["batch_envs", "make_batched", "register_envs"]
