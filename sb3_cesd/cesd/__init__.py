from sb3_cesd.cesd.cesd import CeSD
from sb3_cesd.cesd.policies import CeSDPolicy, MlpPolicy

__all__ = ["CeSD", "CeSDPolicy", "MlpPolicy"]
