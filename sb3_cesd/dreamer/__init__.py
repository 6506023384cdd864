from sb3_cesd.dreamer.skill_dreamer import APTDreamer, CeSDDreamer, DIAYNDreamer, SkillDreamer

__all__ = ["APTDreamer", "CeSDDreamer", "DIAYNDreamer", "SkillDreamer"]
