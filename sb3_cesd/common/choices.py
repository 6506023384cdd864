"""Words that arguments may take, as types for type checkers and for :mod:`sb3_cesd.common.allowed`."""

from typing import Literal, TypeAlias

SkillType: TypeAlias = Literal["discrete", "sphere", "cube", "unit_cube"]
SkillOrder: TypeAlias = Literal["random", "cycle"]
Reward: TypeAlias = Literal["intrinsic", "extrinsic"]
WarmUp: TypeAlias = Literal["random", "policy", "skills"]
OnNonFinite: TypeAlias = Literal["raise", "skip"]
LogInterval: TypeAlias = Literal["auto"]
#: Part of a pre-trained model that fine-tuning may load
Part: TypeAlias = Literal["actor", "critic_trunk", "critic_head", "optimizers", "no_target"]
EncoderName: TypeAlias = Literal["contrastive", "fourier", "icm", "identity", "temporal"]
#: Encoder for the distances: that of the clusters, or a separate one
DistanceEncoderName: TypeAlias = Literal["same", "contrastive", "fourier", "icm", "identity", "temporal"]
Count: TypeAlias = Literal["released", "paper"]
CriticPairs: TypeAlias = Literal["cluster", "union", "hindsight"]
ActorSkills: TypeAlias = Literal["skill", "random", "cluster"]
