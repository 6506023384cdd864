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
#: Loss of the contrastive encoder
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
#: Size of a prediction error: the Euclidean norm, or half its square
PredictionError: TypeAlias = Literal["norm", "square"]
#: Which state of a transition RND uses, and which statistics normalise it
TransitionEnd: TypeAlias = Literal["current", "next"]
ObservationStatistics: TypeAlias = Literal["batch", "running"]
#: How APS finds the skill of a task: by regression of rewards on features, or the other way round
Regression: TypeAlias = Literal["paper", "released"]
