"""Spaces of skills: a finite number of them, or the points of a continuous space."""

import warnings
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import torch as th
from gymnasium import spaces

from sb3_cesd.common.arguments import PositiveInt, Range, check_value, checked
from sb3_cesd.common.torch_layers import one_hot

#: How users refer to a skill: by an index or, in a continuous space, also by a vector
SkillName: TypeAlias = int | list[float] | np.ndarray
ArrayOrTensor = TypeVar("ArrayOrTensor", np.ndarray, th.Tensor)

#: What the argument ``skill_type`` of the algorithms takes
SKILL_TYPES = ("discrete", "sphere", "cube", "unit_cube")


def best_of(values: np.ndarray) -> int:
    """Choose the skill with the highest mean reward in a warm-up (NaN for none), and warn if nothing tells which it is."""
    best = int(np.nanargmax(values))
    known = values[~np.isnan(values)]
    if len(known) > 1 and np.allclose(known, values[best], rtol=1e-9, atol=0.0):
        warnings.warn(
            f"The mean reward of all skills in the warm-up is the same ({values[best]:.4g}), which does not tell the best: "
            f"skill {best} learns the task. Raise learning_starts, so that the warm-up shows what the task rewards, or choose "
            "a skill."
        )
    return best


class SkillSpace(ABC):
    """
    Space that skills are drawn from.

    A skill has two forms. Networks and observations take its *vector*. The replay buffer, ``infos`` and intrinsic rewards
    take what :meth:`decode` returns for it: the index of a discrete skill, or the vector itself.

    :param n_skills: number of skills; for a continuous space, the number of representative skills, which have an index and
        are used by evaluations, warm-ups and pictures, see ``vectors``
    :param dim: size of the vector of a skill
    :param low: smallest entry of a vector; the largest one is 1
    """

    #: Whether there are ``n_skills`` skills and no others
    discrete: ClassVar[bool] = False
    #: Shape and type of a skill in a replay buffer
    stored_shape: tuple[int, ...]
    stored_dtype: type[np.generic]

    @checked
    def __init__(self, n_skills: Annotated[int, Range(2)], dim: PositiveInt, low: float) -> None:
        self.n_skills = int(n_skills)
        self.dim = dim
        self.low = low
        self.stored_shape = (dim,)
        self.stored_dtype = np.float32
        #: Vectors of the skills that an index stands for, shape ``(n_skills, dim)``, float32
        self.vectors = self._representatives()

    def _representatives(self) -> np.ndarray:
        return self.draw(self.n_skills, np.random.default_rng(0))

    @property
    def box(self) -> spaces.Box:
        """The space of the vectors, shape ``(dim,)``, float32."""
        return spaces.Box(self.low, 1.0, (self.dim,), np.float32)

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n skills with NumPy's generator: their vectors, shape ``(n, dim)``, float32."""

    @abstractmethod
    def draw_tensor(self, n: int, device: th.device) -> th.Tensor:
        """Draw n skills with PyTorch's generator: their vectors, shape ``(n, dim)``, float32."""

    def encode(self, skill: Any, batch_shape: tuple[int, ...] = ()) -> np.ndarray:
        """
        Convert skills, as users refer to them, to vectors.

        :param skill: index of a skill, or several; in a continuous space also the vector of one, or several
        :param batch_shape: batch shape of the observations that they are for
        :return: vectors, shape ``(*batch_shape, dim)``, float32
        :raises ValueError: if there is no such skill, or not as many as there are observations
        """
        skills = np.asarray(skill)
        is_vector = not self.discrete and skills.ndim > 0 and skills.dtype.kind == "f"
        if (skills.shape[:-1] if is_vector else skills.shape) not in ((), batch_shape):
            kind = "integer" if self.discrete else "integer or vector of floats"
            raise ValueError(f"skill of shape {skills.shape} for {batch_shape}: pass one {kind}, or one each.")
        if is_vector:
            self.check_vectors(skills)
            vectors = skills.astype(np.float32)
        else:
            for value in np.unique(skills).tolist():
                if value not in range(self.n_skills):
                    raise ValueError(f"Unknown skill {value}: choose an integer from 0 to {self.n_skills - 1}.")
            vectors = self.vectors[skills.astype(np.int64)]
        return np.broadcast_to(vectors, (*batch_shape, self.dim))

    def name_of(self, skill: SkillName) -> int | list[float]:
        """Convert a skill, as users refer to it, to what JSON can hold: an index, or the numbers of a vector."""
        decoded = self.decode(self.encode(skill))
        return int(decoded) if self.discrete else decoded.tolist()

    def check_vectors(self, vectors: np.ndarray) -> None:
        """Check that vectors, shape ``(..., dim)``, are in this space."""
        if vectors.shape[-1] != self.dim:
            raise ValueError(f"A skill is a vector of {self.dim} numbers, or an integer below {self.n_skills}: pass such.")
        if not ((vectors >= self.low - 1e-3) & (vectors <= 1 + 1e-3)).all():
            raise ValueError(f"The entries of a skill of this model must be from {self.low:g} to 1: pass such a vector.")

    def decode(self, vectors: ArrayOrTensor) -> ArrayOrTensor:
        """Convert vectors, ``(..., dim)``, to skills as stored in the replay buffer: indices, or the vectors themselves."""
        return vectors

    def embed(self, skills: th.Tensor, dtype: th.dtype = th.float32) -> th.Tensor:
        """Convert n skills as stored in the replay buffer to vectors, shape ``(n, dim)``."""
        return skills.to(dtype)

    def directions(self, skills: th.Tensor, dtype: th.dtype = th.float32) -> th.Tensor:
        """
        Compute the directions that skills, as in :meth:`embed`, stand for in a space of ``dim`` features: their vectors, and
        ``(one_hot - 1 / n) n / (n - 1)`` for discrete ones, as in METRA, shape ``(n, dim)``.
        """
        return self.embed(skills, dtype)

    @abstractmethod
    def along(self, vectors: th.Tensor) -> th.Tensor:
        """
        Find the skills, as stored in the replay buffer, whose directions are closest to given ones, shape ``(n, dim)``, of any
        length. A zero vector, which has no direction, gives skill 0 (in a cube, the zero vector).
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_skills={self.n_skills}, dim={self.dim}, low={self.low:g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SkillSpace) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class DiscreteSkills(SkillSpace):
    """
    A finite number of skills, each of which is a one-hot vector.

    :param n_skills: number of skills, at least 2
    """

    discrete = True

    def __init__(self, n_skills: int) -> None:
        super().__init__(n_skills, int(n_skills), low=0.0)
        self.stored_shape = ()
        self.stored_dtype = np.uint8 if n_skills <= 256 else np.int32

    def _representatives(self) -> np.ndarray:
        return np.eye(self.n_skills, dtype=np.float32)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.vectors[rng.integers(self.n_skills, size=n)]

    def draw_tensor(self, n: int, device: th.device) -> th.Tensor:
        return self.embed(th.randint(self.n_skills, (n,), device=device))

    def decode(self, vectors: ArrayOrTensor) -> ArrayOrTensor:
        return vectors.argmax(-1)

    def embed(self, skills: th.Tensor, dtype: th.dtype = th.float32) -> th.Tensor:
        return one_hot(skills, self.n_skills, dtype)

    def directions(self, skills: th.Tensor, dtype: th.dtype = th.float32) -> th.Tensor:
        n = self.n_skills
        return (self.embed(skills, dtype) - 1 / n) * n / (n - 1)

    def along(self, vectors: th.Tensor) -> th.Tensor:
        return vectors.argmax(dim=1)


class SphereSkills(SkillSpace):
    """
    Points on the unit sphere, drawn uniformly (as in METRA and APS).

    :param dim: size of the vector, at least 2
    :param n_skills: number of skills that an index stands for: at equal angles in two dimensions, otherwise drawn once
    """

    def __init__(self, dim: int, n_skills: int = 16) -> None:
        if dim < 2:
            raise ValueError(f"skill_dim={dim}: a sphere has at least two dimensions, pass skill_dim >= 2.")
        super().__init__(n_skills, dim, low=-1.0)

    def _representatives(self) -> np.ndarray:
        if self.dim > 2:
            return super()._representatives()
        angles = 2 * np.pi * np.arange(self.n_skills) / self.n_skills
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        vectors = rng.standard_normal((n, self.dim))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def draw_tensor(self, n: int, device: th.device) -> th.Tensor:
        return th.nn.functional.normalize(th.randn(n, self.dim, device=device), dim=1)

    def along(self, vectors: th.Tensor) -> th.Tensor:
        # The bound below which PyTorch does not bring a vector to length 1
        has_direction = vectors.norm(dim=1, keepdim=True) > 1e-12
        instead = th.as_tensor(self.vectors[0], device=vectors.device).to(vectors.dtype)
        return th.nn.functional.normalize(th.where(has_direction, vectors, instead), dim=1)

    def check_vectors(self, vectors: np.ndarray) -> None:
        lengths = np.linalg.norm(vectors, axis=-1)
        if vectors.shape[-1] == self.dim and not np.allclose(lengths, 1.0, atol=1e-3):
            raise ValueError(f"A skill of this model has length 1, not {lengths.ravel()[0]:.4g}: divide it by its length.")
        super().check_vectors(vectors)


class CubeSkills(SkillSpace):
    """
    Vectors whose entries are drawn uniformly and independently of each other: from [-1, 1] (as in DADS), or from [0, 1] (as in
    CIC).

    :param dim: size of the vector
    :param n_skills: number of skills that an index stands for, drawn once
    :param low: lower bound of the entries; the upper one is 1
    """

    def __init__(self, dim: int, n_skills: int = 16, low: float = -1.0) -> None:
        super().__init__(n_skills, dim, low)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(self.low, 1.0, (n, self.dim)).astype(np.float32)

    def draw_tensor(self, n: int, device: th.device) -> th.Tensor:
        return self.low + (1.0 - self.low) * th.rand(n, self.dim, device=device)

    def along(self, vectors: th.Tensor) -> th.Tensor:
        return th.nn.functional.normalize(vectors, p=th.inf, dim=1).clamp(self.low, 1.0)


def make_skill_space(name: str, n_skills: int, dim: int | None = None) -> SkillSpace:
    """Make a space of skills by its name in ``SKILL_TYPES``; ``dim`` is the size of the vector of a continuous skill."""
    check_value("skill_type", name, SKILL_TYPES)
    if name == "discrete":
        return DiscreteSkills(n_skills)
    if dim is None:
        raise ValueError(f"skill_type={name!r} needs the dimension of its vectors: pass skill_dim, e.g. skill_dim=2.")
    if name == "sphere":
        return SphereSkills(int(dim), n_skills)
    return CubeSkills(int(dim), n_skills, low=-1.0 if name == "cube" else 0.0)
