"""Environments of the benchmark. Registering them imports no physics engine; making one does."""

from sb3_cesd.envs.registration import register_envs

__all__ = ["register_envs"]
