"""Environments of the benchmark. Registering them imports no physics engine; making one does."""

from sb3_cesd.envs.batching import batch_envs, make_batched
from sb3_cesd.envs.registration import register_envs

__all__ = ["batch_envs", "make_batched", "register_envs"]
