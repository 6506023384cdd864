"""RL Zoo trains, evaluates and plays from pictures: it stacks frames and puts their channels first, then comes the skill."""

import numpy as np
import pytest
from rl_zoo import folder_of, model_of, run
from stable_baselines3.common.vec_env import VecFrameStack, VecTransposeImage

from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.envs.robots.gl import egl_works
from sb3_cesd.skill_ddpg.policies import CnnPolicy
from sb3_cesd.zoo.manager import SkillExperimentManager

SMALL = [
    "-params",
    "env_kwargs:dict(image_size=16,max_episode_steps=10)",
    "n_envs:2",
    "learning_starts:20",
    "batch_size:16",
    "buffer_size:200",
]
FEW = ["-n", 60, "--eval-freq", 30, "--eval-episodes", 2]


@pytest.mark.skipif(not egl_works(), reason="this machine has no EGL")
def test_walker(tmp_path, monkeypatch):
    envs, learn = [], SkillExperimentManager.learn
    monkeypatch.setattr(SkillExperimentManager, "learn", lambda self, model: envs.append(model.env) or learn(self, model))
    run(tmp_path, *FEW, *SMALL, algo="diayn", env="WalkerPixels-v0")
    layers, layer = [], envs[0]
    while layer is not layer.unwrapped:
        layers.append(type(layer))
        layer = layer.venv
    assert layers == [VecSkillObservation, VecTransposeImage, VecFrameStack] and layer.envs[0].unwrapped.image_size == 16
    model = model_of(tmp_path, algo="diayn", env="WalkerPixels-v0")
    assert isinstance(model.policy, CnnPolicy) and model.plain_space.shape == (9, 16, 16) and model._n_updates > 0
    folder = folder_of(tmp_path, algo="diayn", env="WalkerPixels-v0")
    assert np.load(folder / "evaluations.npz")["knn_accuracy"].size > 0

    run(tmp_path, *FEW, "-i", folder / "WalkerPixels-v0.zip", *SMALL, algo="diayn", env="WalkerWalkPixels-v0")
    task = model_of(tmp_path, algo="diayn", env="WalkerWalkPixels-v0")
    assert task.reward == "extrinsic" and task._n_updates > 0
    words = ["-n", 5, "--no-render", "-f", tmp_path / "logs"]
    assert "Skill" in run(tmp_path, *words, module="rl_zoo3.enjoy", algo="diayn", env="WalkerWalkPixels-v0")
