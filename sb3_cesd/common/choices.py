"""The words that an argument may be one of, for type checkers and for :mod:`sb3_cesd.common.allowed` alike."""

from typing import Literal, TypeAlias

SkillType: TypeAlias = Literal["discrete", "sphere", "cube", "unit_cube"]
SkillOrder: TypeAlias = Literal["random", "cycle"]
Reward: TypeAlias = Literal["intrinsic", "extrinsic"]
WarmUp: TypeAlias = Literal["random", "policy", "skills"]
OnNonFinite: TypeAlias = Literal["raise", "skip"]
LogInterval: TypeAlias = Literal["auto"]
#: What fine-tuning loads of a pre-trained model
Part: TypeAlias = Literal["actor", "critic_trunk", "critic_head", "optimizers", "no_target"]
EncoderName: TypeAlias = Literal["contrastive", "fourier", "icm", "identity", "temporal"]
#: Encoder of the distances: that of the clusters, or one of its own
DistanceEncoderName: TypeAlias = Literal["same", "contrastive", "fourier", "icm", "identity", "temporal"]
#: What the contrastive encoder minimises
ContrastiveObjective: TypeAlias = Literal["infonce", "released"]
DistanceScale: TypeAlias = Literal["variance", "std", "mean", "none"]
Aggregate: TypeAlias = Literal["mean", "kth"]
Swap: TypeAlias = Literal["next", "self"]
Count: TypeAlias = Literal["released", "paper"]
SkillTerm: TypeAlias = Literal["paper", "released"]
CriticPairs: TypeAlias = Literal["cluster", "union", "hindsight"]
ActorSkills: TypeAlias = Literal["skill", "random", "cluster"]
#: How METRA measures a displacement of features
FeatureNorm: TypeAlias = Literal["mean", "sum"]
#: How CSD weights the dimensions of a change
ChangeWeights: TypeAlias = Literal["normalized", "precision"]
#: How far a prediction is off: the Euclidean norm, or half its square
PredictionError: TypeAlias = Literal["norm", "square"]
#: Which end of a transition RND looks at, and by what it normalises states
TransitionEnd: TypeAlias = Literal["current", "next"]
ObservationStatistics: TypeAlias = Literal["batch", "running"]
#: What APS fits to what when it looks for the skill of a task
Regression: TypeAlias = Literal["paper", "released"]
