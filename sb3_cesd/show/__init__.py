"""Show what each skill of a model does: :func:`show_skills`, and ``python -m sb3_cesd.show MODEL``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_cesd.show.skills import SkillShow, show_skills

__all__ = ["SkillShow", "show_skills"]


def __getattr__(name: str) -> Any:
    """Import Matplotlib on first use: RL Zoo only needs names of skills from this folder."""
    if name in __all__:
        return getattr(import_module("sb3_cesd.show.skills"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
