"""Environments of the benchmarks. Registering them does not import a physics engine; creating a robot does."""

from sb3_cesd.envs.registration import register_envs
from sb3_cesd.envs.robots.vec_env import batch_envs, make_batched

__all__ = ["batch_envs", "make_batched", "register_envs"]
