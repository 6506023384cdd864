from sb3_cesd.skill_ddpg.policies import SkillPolicy
from sb3_cesd.skill_ddpg.skill_ddpg import SkillDDPG

__all__ = ["SkillDDPG", "SkillPolicy"]
