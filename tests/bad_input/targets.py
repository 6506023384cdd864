"""How everything that users call is called with one argument changed, at small size."""

import inspect
import io
import tempfile
from functools import cache
from pathlib import Path

import gymnasium as gym
import numpy as np
from sb3_cesd.cesd.relabelling import CriticRelabelling
from small import small_reward
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd import (
    CIC,
    METHODS,
    METRA,
    CeSD,
    SkillDDPG,
    SkillOptions,
    VecSkillObservation,
    preset,
    show_skills,
)
from sb3_cesd.cesd.cesd import CeSDReward
from sb3_cesd.cesd.constraint import ClusterConstraint
from sb3_cesd.cesd.policies import CeSDPolicy
from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import skill_observation_space
from sb3_cesd.common.skill_clock import SkillClock, SkillTurns
from sb3_cesd.common.skills import CubeSkills, DiscreteSkills, SphereSkills, make_skill_space
from sb3_cesd.export import export_policy, import_policy
from sb3_cesd.intrinsic.encoders import ContrastiveEncoder, FourierEncoder, ICMEncoder, TemporalEncoder
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.intrinsic.prototypes import Prototypes
from sb3_cesd.skill_ddpg.policies import SkillPolicy

_FOLDER = tempfile.TemporaryDirectory()
SKILLS = DiscreteSkills(4)
OBS_SPACE = gym.spaces.Box(-1, 1, (3,))
ACTION_SPACE = gym.spaces.Box(-1, 1, (1,))
SIZES = {"obs_dim": 3, "action_dim": 1, "skill_space": SKILLS}
STATES = np.random.default_rng(0).uniform(-0.4, 0.4, (40, 2))
LABELS = np.repeat(np.arange(4), 10)
ROLLOUTS = {"n_rollouts": 2, "n_steps": 2}


@cache
def pendulum() -> VecEnv:
    """Environments that nobody changes."""
    return make_vec_env("Pendulum-v1")


@cache
def model() -> CeSD:
    """A model that has learned a little."""
    return make(CeSD).learn(60)


@cache
def learner() -> CeSD:
    """A model that learns."""
    return make(CeSD)


@cache
def on_a_circle() -> CIC:
    """A model whose skills are points on a circle."""
    return make(CIC, skill_type="sphere", skill_dim=2).learn(60)


@cache
def with_directions() -> METRA:
    """A model whose skills lead to goals."""
    return make(METRA)


@cache
def saved_buffer() -> bytes:
    """The bytes of its replay buffer."""
    file = io.BytesIO()
    model().save_replay_buffer(file)
    return file.getvalue()


@cache
def exported() -> Path:
    """An exported policy, in a folder that is deleted in the end."""
    path = Path(_FOLDER.name) / "policy.safetensors"
    export_policy(model(), path)
    return path


@cache
def checkpoints() -> Path:
    """Checkpoints of a model that learns."""
    path = Path(_FOLDER.name) / "checkpoints"
    make(CeSD).learn(60, ResumableCheckpoint(path))
    return path


@cache
def saved() -> bytes:
    """The bytes of its file."""
    file = io.BytesIO()
    model().save(file)
    return file.getvalue()


def make(method, **changed):
    """A small model; ``changed`` replaces arguments as a whole."""
    reward = small_reward(method.reward_class) if hasattr(method, "reward_class") else {}
    arguments = {
        "policy": "MlpPolicy",
        "env": "Pendulum-v1",
        "n_skills": 4,
        "learning_starts": 40,
        "batch_size": 32,
        "buffer_size": 500,
        "policy_kwargs": {"net_arch": [8, 8]},
        "intrinsic_kwargs": reward,
        "reward": "intrinsic" if hasattr(method, "reward_class") else "extrinsic",
        "seed": 0,
        "device": "cpu",
    }
    return method(**{**arguments, **changed})


def policy(policy_class, **changed):
    spaces = {"observation_space": skill_observation_space(OBS_SPACE, SKILLS), "action_space": ACTION_SPACE}
    arguments = {**spaces, "lr_schedule": lambda _: 1e-3, "skill_space": SKILLS, "net_arch": [8, 8]}
    return policy_class(**{**arguments, **changed})


def reward(reward_class, **changed):
    return reward_class(**{**SIZES, **small_reward(reward_class), **changed})


def encoder(encoder_class, **changed):
    small = {} if encoder_class is FourierEncoder else {"net_arch": [8]}
    return encoder_class(**{**SIZES, "features_dim": 4, **small, **changed})


def buffer(**changed):
    space = skill_observation_space(OBS_SPACE, SKILLS)
    arguments = {"observation_space": space, "action_space": ACTION_SPACE, "buffer_size": 10, "skill_space": SKILLS}
    return SkillReplayBuffer(**{**arguments, "device": "cpu", **changed})


def load(**changed):
    return CeSD.load(**{"path": io.BytesIO(saved()), "device": "cpu", **changed})


def from_pretrained(**changed):
    return CeSD.from_pretrained(**{"path": io.BytesIO(saved()), "env": "Pendulum-v1", "device": "cpu", **changed})


def nested(group):
    """Arguments of a dictionary of the intrinsic reward of CeSD."""
    others = {**small_reward(CeSDReward), "encoder_kwargs": {"net_arch": [8], "features_dim": 4}}

    def call(**changed):
        return make(CeSD, intrinsic_kwargs={**others, group: {**others.get(group, {}), **changed}})

    return call


def with_defaults(function, **arguments):
    return lambda **changed: function(**{**arguments, **changed})


#: Function whose signature holds the arguments, and what calls it, by a name
TARGETS = {
    **{method.__name__: (method.__init__, with_defaults(make, method=method)) for method in METHODS.values()},
    "SkillDDPG": (SkillDDPG.__init__, with_defaults(make, method=SkillDDPG)),
    "load": (SkillDDPG.load, load),
    "load, arguments of the constructor": (SkillDDPG.__init__, load),
    "from_pretrained": (SkillDDPG.from_pretrained, from_pretrained),
    "from_pretrained, arguments of the constructor": (SkillDDPG.__init__, from_pretrained),
    "learn": (SkillDDPG.learn, lambda **changed: learner().learn(**{"total_timesteps": 2, **changed})),
    "predict": (SkillDDPG.predict, lambda **changed: model().predict(**{"observation": np.zeros(3, np.float32), **changed})),
    "set_skill": (SkillDDPG.set_skill, lambda **changed: make(CeSD).set_skill(**changed)),
    "predict, skills on a circle": (
        SkillDDPG.predict,
        lambda **changed: on_a_circle().predict(**{"observation": np.zeros(3, np.float32), **changed}),
    ),
    "goal_skill": (
        SkillDDPG.goal_skill,
        lambda **changed: with_directions().goal_skill(**{"observations": np.zeros(3), "goals": np.ones(3), **changed}),
    ),
    "predict_clusters": (SkillDDPG.predict_clusters, lambda **changed: model().predict_clusters(**changed)),
    "set_skill, skills on a circle": (SkillDDPG.set_skill, lambda **changed: on_a_circle().set_skill(**changed)),
    "set_env": (SkillDDPG.set_env, lambda **changed: learner().set_env(**{"env": make_vec_env("Pendulum-v1"), **changed})),
    "set_random_seed": (SkillDDPG.set_random_seed, lambda **changed: learner().set_random_seed(**changed)),
    "set_parameters": (
        SkillDDPG.set_parameters,
        lambda **changed: learner().set_parameters(**{"load_path_or_dict": model().get_parameters(), **changed}),
    ),
    "save": (SkillDDPG.save, lambda **changed: model().save(**{"path": io.BytesIO(), **changed})),
    "save_replay_buffer": (SkillDDPG.save_replay_buffer, lambda **changed: model().save_replay_buffer(**changed)),
    "load_replay_buffer": (
        SkillDDPG.load_replay_buffer,
        lambda **changed: learner().load_replay_buffer(**{"path": io.BytesIO(saved_buffer()), **changed}),
    ),
    "export_policy": (
        export_policy,
        lambda **changed: export_policy(**{"model": model(), "path": Path(_FOLDER.name) / "again", **changed}),
    ),
    "import_policy": (import_policy, lambda **changed: import_policy(**{"path": exported(), **changed})),
    "ResumableCheckpoint": (ResumableCheckpoint.__init__, ResumableCheckpoint),
    "resume": (resume, lambda **changed: resume(**{"path": checkpoints(), "env": "Pendulum-v1", "device": "cpu", **changed})),
    "SkillPolicy": (SkillPolicy.__init__, with_defaults(policy, policy_class=SkillPolicy)),
    "CeSDPolicy": (CeSDPolicy.__init__, with_defaults(policy, policy_class=CeSDPolicy)),
    **{
        method.reward_class.__name__: (method.reward_class.__init__, with_defaults(reward, reward_class=method.reward_class))
        for method in METHODS.values()
    },
    "encoder_kwargs of CeSD": (ContrastiveEncoder.__init__, nested("encoder_kwargs")),
    "prototype_kwargs of CeSD": (Prototypes.__init__, nested("prototype_kwargs")),
    "entropy_kwargs of CeSD": (ParticleEntropy.__init__, nested("entropy_kwargs")),
    "constraint_kwargs of CeSD": (ClusterConstraint.__init__, nested("constraint_kwargs")),
    "relabel_kwargs of CeSD": (CriticRelabelling.__init__, nested("relabel_kwargs")),
    **{
        kind.__name__: (kind.__init__, with_defaults(encoder, encoder_class=kind))
        for kind in (ContrastiveEncoder, FourierEncoder, ICMEncoder, TemporalEncoder)
    },
    "Prototypes": (Prototypes.__init__, with_defaults(Prototypes, n_prototypes=4, features_dim=3)),
    "ParticleEntropy": (ParticleEntropy.__init__, ParticleEntropy),
    "ClusterConstraint": (ClusterConstraint.__init__, ClusterConstraint),
    "CriticRelabelling": (CriticRelabelling.__init__, CriticRelabelling),
    "SkillReplayBuffer": (SkillReplayBuffer.__init__, buffer),
    "VecSkillObservation": (
        VecSkillObservation.__init__,
        lambda **changed: VecSkillObservation(**{"venv": pendulum(), "skill_space": 4, **changed}),
    ),
    "SkillClock": (SkillClock.__init__, with_defaults(SkillClock, n_envs=2, skill_space=SKILLS)),
    "SkillTurns": (SkillTurns.__init__, with_defaults(SkillTurns, n_skills=4, n_timesteps=2000)),
    "DiscreteSkills": (DiscreteSkills.__init__, DiscreteSkills),
    "SphereSkills": (SphereSkills.__init__, with_defaults(SphereSkills, dim=2)),
    "CubeSkills": (CubeSkills.__init__, with_defaults(CubeSkills, dim=2)),
    "make_skill_space": (make_skill_space, with_defaults(make_skill_space, name="cube", n_skills=4, dim=2)),
    "SkillOptions": (
        SkillOptions.__init__,
        lambda **changed: SkillOptions(**{"env": gym.make("Pendulum-v1"), "model": model(), **changed}),
    ),
    "SkillOptions, skills on a circle": (
        SkillOptions.__init__,
        lambda **changed: SkillOptions(**{"env": gym.make("Pendulum-v1"), "model": on_a_circle(), "duration": 2, **changed}),
    ),
    "show_skills": (
        show_skills,
        lambda **changed: show_skills(
            **{
                "model": model(),
                "env": "Pendulum-v1",
                "n_steps": 2,
                "n_rollouts": 0,
                "n_untrained": 0,
                "n_frames": 0,
                "video": False,
                **changed,
            }
        ),
    ),
    "preset": (preset, preset),
}
#: Public names that are no targets, and why
NO_TARGETS = {
    "METHODS": "a table",
    "__version__": "a text",
    "SkillShow": "what show_skills returns",
    "make_batched": "checked by its signature",
    "batch_envs": "takes functions that make environments, as SB3's VecEnvs do",
    "register_envs": "takes nothing",
    "remaining_timesteps": "takes what resume returns",
}

#: Not the user's to choose, or tested with the spaces of environments
NOT_TRIED = {
    "self",
    "cls",
    "kwargs",
    "observation_space",
    "action_space",
    "obs_dim",
    "action_dim",
    "lr_schedule",
    "_init_setup_model",
}
#: What the algorithm says, not the user
NOT_TRIED |= {"is_task"}
#: Arguments that the loaders stand for
OF_LOADERS = {"policy", "env", "device", "path"}

ARGUMENTS = sorted(
    (owner, name)
    for owner, (function, _) in TARGETS.items()
    for name in inspect.signature(function).parameters
    if name not in NOT_TRIED and not (owner.endswith("arguments of the constructor") and name in OF_LOADERS)
)
