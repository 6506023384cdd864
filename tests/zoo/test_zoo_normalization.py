"""RL Zoo and VecNormalize: a run that goes on from a normalised one keeps its statistics, and playing needs them."""

from types import SimpleNamespace

import pytest
import yaml
from huggingface_sb3 import EnvironmentName
from learned import differences
from rl_zoo import SMALL, run_all
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.save_util import load_from_pkl
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CeSD
from sb3_cesd.zoo.normalization import find_pretrained_statistics
from sb3_cesd.zoo.playing import show_skills_of


def test_a_task_keeps_the_statistics_of_the_pretraining_where_its_entry_does_not_normalise(tmp_path):
    common = ["--algo", "cesd", "--env", "Pendulum-v1", "--eval-freq", -1]
    folder = tmp_path / "logs/cesd"
    agent = folder / "Pendulum-v1_1/Pendulum-v1.zip"
    output = run_all(
        tmp_path,
        ["rl_zoo3.train", *common, "-n", 150, *SMALL, "normalize:dict(norm_reward=False)"],
        ["rl_zoo3.train", *common, "-n", 60, "-i", agent, *SMALL, "reward:'extrinsic'"],
        ["rl_zoo3.enjoy", "--algo", "cesd", "--env", "Pendulum-v1", "-f", "logs", "--no-render", "-n", 5],
    )
    before, after = (load_from_pkl(folder / f"Pendulum-v1_{idx}/Pendulum-v1/vecnormalize.pkl") for idx in (1, 2))
    assert 60 <= after.obs_rms.count - before.obs_rms.count <= 62
    config = dict(yaml.unsafe_load((folder / "Pendulum-v1_2/Pendulum-v1/config.yml").read_text()))
    assert config["normalize"] == {"norm_obs": True, "norm_reward": False}
    assert "Loading running average" in output and "which learned the task, acts" in output


def test_a_task_that_keeps_them_is_resumed(tmp_path):
    common = ["--algo", "cesd", "--env", "Pendulum-v1", "--eval-freq", 50, "--eval-episodes", 1, "--seed", 1]
    folder = tmp_path / "logs/cesd"
    agent, checkpoint = folder / "Pendulum-v1_1/Pendulum-v1.zip", folder / "Pendulum-v1_2/checkpoints/steps_000000000060"
    callback = "callback:[{'sb3_cesd.callbacks.ResumableCheckpoint':{'save_freq':60}}]"
    task = ["rl_zoo3.train", *common, "-n", 120, *SMALL, "reward:'extrinsic'", callback, "learning_starts:20", "-i"]
    output = run_all(
        tmp_path,
        ["rl_zoo3.train", *common, "-n", 150, *SMALL, "normalize:dict(norm_reward=False)"],
        [*task, agent],
        [*task, checkpoint / "model.zip"],
    )
    assert "Resuming the run" in output
    whole, resumed = (CeSD.load(folder / f"Pendulum-v1_{idx}/Pendulum-v1.zip", device="cpu") for idx in (2, 3))
    assert resumed.num_timesteps == 120 and not differences(whole, resumed)
    before, after = (load_from_pkl(folder / f"Pendulum-v1_{idx}/Pendulum-v1/vecnormalize.pkl") for idx in (2, 3))
    assert (before.obs_rms.mean == after.obs_rms.mean).all() and before.obs_rms.count == after.obs_rms.count


def test_trials_in_other_threads_keep_the_name_of_the_environment(tmp_path):
    (tmp_path / "Walker-v0").mkdir()
    (tmp_path / "Walker-v0/vecnormalize.pkl").touch()
    name = EnvironmentName("Pendulum-v1")
    manager = SimpleNamespace(
        algo="cesd", env_name=name, trained_agent=str(tmp_path / "model.zip"), normalize=False, normalize_kwargs={}
    )
    seen = []

    def normalize(asked, env, eval_env):
        seen.append(asked.env_name)
        assert manager.env_name is name, "another thread reads it meanwhile"
        return VecNormalize(env, norm_reward=False)

    find_pretrained_statistics(normalize)(manager, make_vec_env("Pendulum-v1"), eval_env=False)
    assert seen == ["Walker-v0"] and manager.env_name is name
    assert manager.normalize and manager.normalize_kwargs == {"norm_obs": True, "norm_reward": False}


def test_a_normalised_model_is_not_played_without_its_statistics(tmp_path):
    path = tmp_path / "model.zip"
    make_small(CeSD, VecNormalize(make_vec_env("Pendulum-v1"))).save(path)
    with pytest.raises(ValueError, match=r"was trained with VecNormalize.* add the line 'normalize: true' to it\."):
        show_skills_of(path, None, make_vec_env("Pendulum-v1"))
    with pytest.raises(ValueError, match="was trained with VecNormalize"):
        show_skills_of(path, None, VecNormalize(make_vec_env("Pendulum-v1"), norm_obs=False))
    show_skills_of(path, None, VecNormalize(make_vec_env("Pendulum-v1"))).reset()
