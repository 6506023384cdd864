"""RL Zoo and VecNormalize: a run that goes on from a normalised one keeps its statistics, and playing needs them."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from huggingface_sb3 import EnvironmentName
from learned import differences
from rl_zoo import SMALL, run_all
from small import make_small
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.save_util import load_from_pkl
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import DIAYN, CeSD
from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.common.vec_normalize import load_statistics, save_statistics
from sb3_cesd.zoo.normalization import find_pretrained_statistics, folder_of_statistics, save_normalize
from sb3_cesd.zoo.playing import PlayedModel, show_skills_of


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


def test_statistics_that_would_be_applied_twice_are_refused():
    normalize = find_pretrained_statistics(lambda self, env, eval_env: env)
    manager = SimpleNamespace(algo="cesd", trained_agent="", normalize=False)
    env = VecNormalize(make_vec_env("Pendulum-v1"))
    with pytest.raises(
        ValueError, match=r"among the vec_env_wrapper .* twice .*: replace it by normalize: {norm_obs: True, norm_"
    ):
        normalize(manager, env, False)
    assert normalize(SimpleNamespace(algo="sac"), env, False) is env


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


def test_a_task_from_a_checkpoint_has_its_statistics(tmp_path):
    common = ["--algo", "cesd", "--env", "Pendulum-v1", "--eval-freq", -1]
    folder, callback = tmp_path / "logs/cesd", "callback:[{'sb3_cesd.callbacks.ResumableCheckpoint':{'save_freq':200}}]"
    checkpoint = folder / "Pendulum-v1_1/checkpoints/steps_000000000200"
    output = run_all(
        tmp_path,
        ["rl_zoo3.train", *common, "-n", 250, *SMALL, "normalize:dict(norm_reward=False)", callback],
        ["rl_zoo3.train", *common, "-n", 60, "-i", checkpoint / "model.zip", *SMALL, "reward:'extrinsic'"],
    )
    assert "Loading saved VecNormalize stats" in output and "are new" not in output
    before = load_from_pkl(checkpoint / "vecnormalize.pkl")
    after = load_from_pkl(folder / "Pendulum-v1_2/Pendulum-v1/vecnormalize.pkl")
    assert 200 <= before.obs_rms.count < 202 and 60 <= after.obs_rms.count - before.obs_rms.count <= 62


def test_a_checkpoint_without_a_file_of_its_statistics_can_get_one(tmp_path):
    """As the warning about a task from it tells."""
    make_small(DIAYN, VecNormalize(make_vec_env("Pendulum-v1"))).learn(60, ResumableCheckpoint(tmp_path))
    (checkpoint,) = checkpoints_in(tmp_path)
    (checkpoint / "vecnormalize.pkl").unlink()
    task = VecNormalize(make_vec_env("Pendulum-v1"))
    with pytest.warns(UserWarning, match=r"task are new.* A checkpoint that lacks this file still holds them: resume it"):
        DIAYN.from_pretrained(checkpoint / "model.zip", task, skill=1, device="cpu")
    assert folder_of_statistics(checkpoint, "Pendulum-v1", "model") == "Pendulum-v1"
    resumed = resume(checkpoint, VecNormalize(make_vec_env("Pendulum-v1")), device="cpu")
    resumed.get_vec_normalize_env().save(str(checkpoint / "vecnormalize.pkl"))
    assert folder_of_statistics(checkpoint, "Pendulum-v1", "model") == "."


def test_statistics_are_those_of_the_model(tmp_path):
    def found(model, env_name="WalkerRun-v0"):
        return folder_of_statistics(tmp_path, env_name, model)

    for name in ("Walker-v0", "WalkerWalk-v0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vecnormalize.pkl").touch()
    assert found("WalkerWalk-v0") == found("WalkerWalk-v0", "Walker-v0") == "WalkerWalk-v0"
    assert found("best_model", "Walker-v0") == "Walker-v0"
    with pytest.raises(
        ValueError, match=r"the vecnormalize.pkl of Walker-v0, WalkerWalk-v0, of which none is called like best_m"
    ):
        found("best_model")
    (tmp_path / "WalkerWalk-v0/vecnormalize.pkl").unlink()
    assert found("best_model") == "WalkerRun-v0", "those of another model"
    (tmp_path / "Walker-v0/config.yml").touch()
    assert found("best_model") == "Walker-v0", "those of the run"


def test_trials_in_other_threads_keep_the_name_of_the_environment(tmp_path):
    (tmp_path / "Walker-v0").mkdir()
    (tmp_path / "Walker-v0/args.yml").touch()
    VecNormalize(make_vec_env("Pendulum-v1")).save(str(tmp_path / "Walker-v0/vecnormalize.pkl"))
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


def test_statistics_of_another_domain_are_refused_with_the_remedy(tmp_path):
    VecNormalize(make_vec_env("Pendulum-v1")).save(str(tmp_path / "vecnormalize.pkl"))

    def normalize(manager, env, eval_env):
        return VecNormalize.load(str(tmp_path / "vecnormalize.pkl"), env)

    manager = SimpleNamespace(
        algo="cesd", env_name=EnvironmentName("MazeTree-v0"), trained_agent=str(tmp_path / "model.zip"), normalize=True
    )
    message = r"^The vecnormalize\.pkl of .* not fit MazeTree-v0 \(.*shape: \(3,\) != \(2,\)\)\. .*: choose an --env with the"
    with pytest.raises(ValueError, match=message):
        find_pretrained_statistics(normalize)(manager, make_vec_env("MazeTree-v0"), eval_env=False)
    manager.algo = "sac"
    with pytest.raises(AssertionError, match="spaces must have the same shape"):
        find_pretrained_statistics(normalize)(manager, make_vec_env("MazeTree-v0"), eval_env=False)


@pytest.mark.parametrize("norm_reward", [True, False])
def test_enjoy_does_not_say_that_it_normalises_rewards(norm_reward):
    saved = {}
    manager = SimpleNamespace(algo="cesd", normalize=True, normalize_kwargs={"norm_obs": True, "norm_reward": norm_reward})
    save_normalize(lambda self, saved_hyperparams: None)(manager, saved)
    # RL Zoo makes norm_obs alone of True, unless --norm-reward is given
    assert saved["normalize"] == (True if norm_reward else {"norm_obs": True, "norm_reward": False})


def test_a_normalised_model_is_not_played_without_its_statistics(tmp_path):
    path = tmp_path / "model.zip"
    make_small(CeSD, VecNormalize(make_vec_env("Pendulum-v1"))).save(path)
    with pytest.raises(ValueError, match=r"was trained with VecNormalize.* add the line 'normalize: true' to it\."):
        show_skills_of(path, None, make_vec_env("Pendulum-v1"))
    with pytest.raises(ValueError, match="was trained with VecNormalize"):
        show_skills_of(path, None, VecNormalize(make_vec_env("Pendulum-v1"), norm_obs=False))
    show_skills_of(path, None, VecNormalize(make_vec_env("Pendulum-v1"))).reset()


@pytest.mark.parametrize("damage", ["changed", "cut", "cut of SB3"])
def test_damaged_statistics_are_refused_before_they_are_unpickled(tmp_path, damage):
    path = tmp_path / "logs/Pendulum-v1/vecnormalize.pkl"
    path.parent.mkdir(parents=True)
    statistics = VecNormalize(make_vec_env("Pendulum-v1"))
    if damage == "cut of SB3":
        statistics.save(str(path))
    else:
        save_statistics(statistics, path)
    content = bytearray(path.read_bytes())
    place = content.index(statistics.obs_rms.mean.tobytes())
    content[place + 6] ^= 1  # another mean
    path.write_bytes(content if damage == "changed" else content[:-50])
    manager = SimpleNamespace(
        algo="cesd", env_name="Pendulum-v1", trained_agent=str(tmp_path / "logs/model.zip"), normalize=True
    )
    normalize = find_pretrained_statistics(lambda *args: pytest.fail("unpickles them"))
    message = r"vecnormalize\.pkl does not hold the statistics .*, or is damaged .*: restore it, or remove it"
    with pytest.raises(ValueError, match=message):
        normalize(manager, make_vec_env("Pendulum-v1"), eval_env=False)
    model_path = tmp_path / "model.zip"
    make_small(CeSD, statistics).save(model_path)
    played = PlayedModel()
    played.note_path(lambda folder, algo: ("", str(model_path), folder))(tmp_path, algo="cesd")
    create_test_env = played.add_skills(lambda env_id, stats_path: pytest.fail("unpickles them"))
    with pytest.raises(ValueError, match=message):
        create_test_env("Pendulum-v1", stats_path=str(path.parent))


#: What a process prints whose imports leave SB3's classes as they were
UNTOUCHED = "untouched"
IMPORT_RL_ZOO = f"""
import sys

import sb3_contrib, stable_baselines3.common.env_util, stable_baselines3.common.evaluation, stable_baselines3.her

def members():
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] in ("stable_baselines3", "sb3_contrib")]
    classes = {{value for module in modules for value in vars(module).values() if isinstance(value, type)}}
    of_sb3 = [value for value in classes if value.__module__.split(".")[0] in ("stable_baselines3", "sb3_contrib")]
    return {{(each, name): value for each in of_sb3 for name, value in vars(each).items() if callable(value)}}

before = members()
assert len(before) > 500
import rl_zoo3.exp_manager
from rl_zoo3.utils import ALGOS
from sb3_cesd.zoo import register
register()
register()
assert "cesd" in ALGOS and rl_zoo3.exp_manager.ExperimentManager.save_trained_model.extended_by_sb3_cesd
after = members()
assert [key for key, value in before.items() if after[key] is not value] == []
print("{UNTOUCHED}")
"""


def test_classes_of_sb3_stay_as_they_are():
    result = subprocess.run([sys.executable, "-c", IMPORT_RL_ZOO], capture_output=True, text=True, timeout=200)
    assert result.stdout.split()[-1:] == [UNTOUCHED], result.stderr


def save_model(model, folder):
    """At the end of a run."""
    from rl_zoo3.exp_manager import ExperimentManager

    manager = SimpleNamespace(
        save_path=str(folder), params_path=str(folder), env_name="Pendulum-v1", normalize=True, save_replay_buffer=False
    )
    ExperimentManager.save_trained_model(manager, model)
    assert (folder / "Pendulum-v1.zip").is_file()


def save_step(model, folder):
    """When a model is the best."""
    from rl_zoo3.callbacks import SaveVecNormalizeCallback

    callback = SaveVecNormalizeCallback(1, str(folder))
    callback.init_callback(model)
    assert callback.on_step() and callback.model is model


@pytest.fixture
def registered():
    from sb3_cesd.zoo import register

    register()


@pytest.mark.parametrize("save", [save_model, save_step])
def test_statistics_of_a_method_are_written_whole(registered, tmp_path, save):
    model = make_small(DIAYN, VecNormalize(make_vec_env("Pendulum-v1", seed=0))).learn(60)
    statistics, path = model.get_vec_normalize_env(), tmp_path / "vecnormalize.pkl"
    save(model, tmp_path)
    written = path.read_bytes()
    for loaded in (load_statistics(path), VecNormalize.load(str(path), make_vec_env("Pendulum-v1"))):
        assert loaded.obs_rms.count == statistics.obs_rms.count > 60 and (loaded.obs_rms.mean == statistics.obs_rms.mean).all()
    statistics.clip_obs = lambda: None  # ends the writing halfway
    with pytest.raises(Exception, match="pickle"):
        save(model, tmp_path)
    assert path.read_bytes() == written and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("save", [save_model, save_step])
def test_statistics_of_other_algorithms_are_what_sb3_writes(registered, tmp_path, save):
    model = PPO("MlpPolicy", VecNormalize(make_vec_env("Pendulum-v1", seed=0)), n_steps=16, batch_size=16).learn(16)
    save(model, tmp_path)
    model.get_vec_normalize_env().save(str(tmp_path / "of_sb3.pkl"))
    assert (tmp_path / "vecnormalize.pkl").read_bytes() == (tmp_path / "of_sb3.pkl").read_bytes()


def test_a_method_without_statistics_is_saved_by_the_callback(registered, tmp_path):
    save_step(make_small(DIAYN, make_vec_env("Pendulum-v1")), tmp_path)
    assert not list(tmp_path.iterdir())
