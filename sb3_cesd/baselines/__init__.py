"""What CeSD is compared with: other skill discovery methods on the same backbone."""

from sb3_cesd.baselines.baselines import APT, CIC, DADS, DIAYN, SkillConditionedDDPG
from sb3_cesd.baselines.policies import MlpPolicy, SkillConditionedPolicy

__all__ = ["APT", "CIC", "DADS", "DIAYN", "MlpPolicy", "SkillConditionedDDPG", "SkillConditionedPolicy"]
