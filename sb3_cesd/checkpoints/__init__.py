"""Checkpoints from which a run continues as if it had never stopped."""

from sb3_cesd.checkpoints.callback import ResumableCheckpoint
from sb3_cesd.checkpoints.resume import remaining_timesteps, resume

__all__ = ["ResumableCheckpoint", "remaining_timesteps", "resume"]
