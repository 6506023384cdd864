"""Show what each skill of a model does: :func:`show_skills`, and ``python -m sb3_cesd.show MODEL``."""

from sb3_cesd.show.result import SkillShow
from sb3_cesd.show.skills import show_skills

__all__ = ["SkillShow", "show_skills"]
