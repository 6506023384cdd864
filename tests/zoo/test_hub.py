"""RL Zoo's push_to_hub and load_from_hub with skills, against a hub on this machine."""

import io
import json
import runpy
import sys
import zipfile
from collections import OrderedDict
from types import SimpleNamespace

import gymnasium as gym
import huggingface_hub.repocard
import huggingface_sb3
import numpy as np
import pytest
import yaml
from gymnasium.envs.registration import EnvSpec
from hub import running_hub
from huggingface_hub import HfApi
from huggingface_hub.errors import RemoteEntryNotFoundError
from PIL import Image
from requests.exceptions import HTTPError
from rl_zoo import SMALL, run_all
from rl_zoo3.enjoy import enjoy
from small import make_small
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import METRA, CeSD
from sb3_cesd.common.vec_normalize import load_statistics
from sb3_cesd.export import import_policy
from sb3_cesd.zoo.hub import PushedSkills, make_generate_metadata, wrappers_of, write_card
from sb3_cesd.zoo.patches import extend_hub, register

register()

MAZE, NORMALIZED = "MazeSquareC-v0", "Pendulum-v1"
#: A model that can't be exported
OWN_ACTIVATION = [*SMALL[:5], "policy_kwargs:dict(net_arch=[16,16],activation_fn=__import__('own_code').OwnActivation)"]
#: RL Zoo's part of a card
ZOO_CARD = "# Agent\n## Usage\n--algo metra -orga someone\n## Training (with the RL Zoo)\n{'n_skills': 4}\n"


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A hub that models were pushed to, some over earlier ones, and a folder they were loaded into."""
    folder = tmp_path_factory.mktemp("hub")
    (folder / "own_code.py").write_text("from torch.nn import ReLU\nclass OwnActivation(ReLU): pass\n")

    def on(env_id):
        return ["--algo", "cesd", "--env", env_id]

    with running_hub() as hub:
        environment = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_token", "HF_HOME": str(folder / "cache")}
        train = ["rl_zoo3.train", "-n", 150, "--eval-freq", -1, "-f", "logs"]
        push = ["rl_zoo3.push_to_hub", "-f", "logs", "-orga", "me"]
        load = ["rl_zoo3.load_from_hub", "-f", "loaded", "-orga", "me"]
        run_all(
            folder,
            [*train, *on(MAZE), *SMALL, "n_envs:2"],
            [*train, *on(NORMALIZED), *SMALL, "n_envs:1", "normalize:dict(norm_obs=True,norm_reward=False)"],
            [*push, *on(MAZE), "-n", 12, "-m", "Mine"],
            [*push, *on(MAZE), "-n", 12, "-m", "Mine again"],
            [*push, *on(NORMALIZED), "-n", 12, "--no-render", "-name", "swinging"],
            [*push, *on(MAZE), "-n", 3, "-name", "again"],
            [*push, *on(MAZE), "--no-render", "-name", "again"],
            [*push, *on(NORMALIZED), "--no-render", "-name", "plain"],
            [*train, *on(NORMALIZED), *OWN_ACTIVATION, "n_envs:1"],
            [*push, *on(NORMALIZED), "--no-render", "-name", "plain"],
            [*load, *on(MAZE)],
            [*load, *on(NORMALIZED), "-name", "swinging"],
            [*load, *on(NORMALIZED), "-name", "plain", "-f", "plain"],
            **environment,
            TRUST_REMOTE_CODE="True",
        )
        yield SimpleNamespace(folder=folder, hub=hub, maze=hub.repos[f"me/cesd-{MAZE}"], swinging=hub.repos["me/swinging"])


def run_of(folder, env_id):
    return folder / "cesd" / f"{env_id}_1"


def test_hub_holds_all_of_a_model(pushed):
    assert pushed.hub.messages == ["Mine", "Mine again"] + 5 * ["Initial commit"]
    assert pushed.hub.authorizations == {"Bearer hf_token"}
    known = {f"cesd-{MAZE}.zip", "args.yml", "config.yml", "metrics.json", "skills.png", "replay.mp4", "policy.safetensors"}
    assert known <= pushed.maze.keys() and "vec_normalize.pkl" not in pushed.maze
    assert "vec_normalize.pkl" in pushed.swinging and "replay.mp4" not in pushed.swinging
    assert "mp4" in pushed.maze[".gitattributes"].decode() and pushed.maze["replay.mp4"][4:8] == b"ftyp"


def test_a_push_without_video_deletes_that_of_an_earlier_one(pushed):
    assert pushed.hub.deleted[:5] == 4 * [set()] + [{"replay.mp4"}]
    again = pushed.hub.repos["me/again"]
    assert "replay.mp4" not in again and {"policy.safetensors", "skills.png", "metrics.json"} <= again.keys()


def test_a_push_deletes_policy_and_statistics_of_an_earlier_model(pushed):
    assert pushed.hub.deleted[5:] == [set(), {"policy.safetensors", "vec_normalize.pkl"}]
    plain = pushed.hub.repos["me/plain"]
    assert not {"policy.safetensors", "vec_normalize.pkl"} & plain.keys()
    assert "import_policy" not in plain["README.md"].decode()
    loaded = run_of(pushed.folder / "plain", NORMALIZED) / NORMALIZED
    assert (loaded / "config.yml").is_file() and not (loaded / "vecnormalize.pkl").exists()


def test_other_uploads_delete_nothing(tmp_path):
    pushed, uploads = PushedSkills(), []
    upload = pushed.delete_earlier(lambda api, **kwargs: uploads.append(kwargs))
    upload(None, folder_path="any")
    pushed._completed = tmp_path / "card"
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "replay.mp4").touch()
    for folder in ("other", "card", "card"):
        upload(None, folder_path=str(tmp_path / folder))
    patterns = [kwargs.get("delete_patterns") for kwargs in uploads]
    assert patterns == [None, None, ["policy.safetensors", "vec_normalize.pkl"], None]


@pytest.mark.parametrize("env_id", [MAZE, NORMALIZED])
def test_loaded_model_acts_as_the_one_that_was_trained(pushed, env_id):
    name = f"{env_id}.zip"
    trained, loaded = (CeSD.load(run_of(pushed.folder / folder, env_id) / name, device="cpu") for folder in ("logs", "loaded"))
    observations = np.stack([trained.plain_space.sample() for _ in range(8)])
    for skill in range(4):
        expected, _ = trained.predict(observations, skill=skill)
        assert np.array_equal(loaded.predict(observations, skill=skill)[0], expected)
    assert loaded.num_timesteps == trained.num_timesteps >= 150


def test_statistics_and_settings_come_along(pushed):
    before, after = (
        load_statistics(run_of(pushed.folder / "logs", NORMALIZED) / NORMALIZED / "vecnormalize.pkl"),
        load_statistics(run_of(pushed.folder / "loaded", NORMALIZED) / NORMALIZED / "vecnormalize.pkl"),
    )
    assert np.array_equal(before.obs_rms.mean, after.obs_rms.mean) and before.obs_rms.count > 100
    for name in ("args.yml", "config.yml"):
        settings = [run_of(pushed.folder / folder, MAZE) / MAZE / name for folder in ("logs", "loaded")]
        assert settings[0].read_text() == settings[1].read_text()


@pytest.mark.parametrize("env_id", [MAZE, NORMALIZED])
def test_loaded_model_can_be_enjoyed(monkeypatch, capsys, pushed, env_id):
    words = ["--algo", "cesd", "--env", env_id, "-f", pushed.folder / "loaded", "-n", 40, "--no-render"]
    monkeypatch.setattr(sys, "argv", ["enjoy", *map(str, words), "--env-kwargs", "skill:2", "max_episode_steps:10"])
    enjoy()
    output = capsys.readouterr().out
    assert output.count("Skill 2 acts") == 4 and ("Loading running average" in output) == (env_id == NORMALIZED)


def test_exported_policy_acts_without_code_of_the_file(pushed, tmp_path):
    (tmp_path / "policy.safetensors").write_bytes(pushed.swinging["policy.safetensors"])
    policy = import_policy(tmp_path)
    run = run_of(pushed.folder / "logs", NORMALIZED)
    statistics = load_statistics(run / NORMALIZED / "vecnormalize.pkl")
    observations = np.stack([policy.plain_space.sample() for _ in range(8)])
    model = CeSD.load(run / f"{NORMALIZED}.zip", device="cpu")
    expected, _ = model.predict(statistics.normalize_obs(observations), skill=3)
    np.testing.assert_allclose(policy.predict(observations, skill=3)[0], expected, atol=1e-5)


def test_card_shows_what_skills_do(pushed):
    _, top, text = pushed.maze["README.md"].decode().split("---\n", 2)
    assert text.startswith(f"# CeSD on {MAZE}, 150 steps of training\n\n4 skills, ")
    assert "![What each skill does](skills.png)" in text
    metrics = json.loads(pushed.maze["metrics.json"])["skills"]
    for name, value in metrics.items():
        assert f"| `{name}` | {value:.3f} | " in text
    assert f'hf_hub_download("me/cesd-{MAZE}", "policy.safetensors")' in text
    assert f"load_from_hub --algo cesd --env {MAZE} -orga me -name cesd-{MAZE} -f logs" in text
    assert text.count("## Hyperparameters") == 1 and "('learning_starts', 100)" in text
    metadata = yaml.safe_load(top)
    assert {MAZE, "stable-baselines3", "sb3_cesd"} <= set(metadata["tags"])
    (result,) = metadata["model-index"][0]["results"]
    assert {entry["name"]: entry["value"] for entry in result["metrics"]} == metrics
    assert Image.open(io.BytesIO(pushed.maze["skills.png"])).size > (300, 300)


def test_every_skill_is_evaluated(pushed):
    assert json.loads(pushed.maze["results.json"])["n_eval_episodes"] == 12
    with zipfile.ZipFile(io.BytesIO(pushed.maze["train_eval_metrics.zip"])) as archive:
        assert archive.namelist()


def make_card(tmp_path, model, env, **hyperparameters):
    """Write the card of a model."""
    card = tmp_path / "README.md"
    card.write_text(ZOO_CARD)
    (tmp_path / "config.yml").write_text(yaml.dump(OrderedDict(hyperparameters)))
    metadata = make_generate_metadata(sys.modules["huggingface_sb3.push_to_hub"]._generate_metadata)("CeSD", MAZE, 3.0, 1.0)
    metadata = write_card(card, metadata, model, env, video_length=5)
    return card.read_text(), metadata["model-index"][0]["results"][0]["metrics"]


def test_card_of_a_task_keeps_the_mean_reward(pushed, tmp_path):
    env = make_vec_env(MAZE)
    pretrained = run_of(pushed.folder / "logs", MAZE) / f"{MAZE}.zip"
    text, metrics = make_card(tmp_path, CeSD.from_pretrained(pretrained, MAZE, skill=2, device="cpu"), env)
    assert "Skill 2 acts. It has learned the task" in text and "skill=2)" in text
    assert [entry["value"] for entry in metrics] == ["3.00 +/- 1.00"]
    assert env.reset().shape == (1, 2), "the environments are RL Zoo's to close"


class OwnActivation(make_small(CeSD).policy.activation_fn):
    """Code of the user."""


def test_model_that_cannot_be_exported_is_pushed_without(tmp_path, capsys):
    make_card(tmp_path, make_small(METRA, MAZE), make_vec_env(MAZE))
    assert (tmp_path / "policy.safetensors").exists(), "of an earlier push"
    model = make_small(METRA, MAZE, policy_kwargs={"net_arch": [16], "activation_fn": OwnActivation})
    text, _ = make_card(tmp_path, model, make_vec_env(MAZE))
    assert "No policy.safetensors" in capsys.readouterr().out and not (tmp_path / "policy.safetensors").exists()
    assert (
        "import_policy" not in text
        and "--algo metra --env MazeSquareC-v0 -orga someone " in text
        and text.endswith("{'n_skills': 4}\n")
    )


def test_card_names_the_arguments_of_the_environment(tmp_path):
    env = make_vec_env(MAZE, env_kwargs={"reward": "coverage", "render_mode": "rgb_array"})
    text, _ = make_card(tmp_path, make_small(METRA, MAZE), env)
    assert f"gym.make(\"{MAZE}\", reward='coverage')" in text
    text, _ = make_card(tmp_path, make_small(METRA, MAZE), make_vec_env(MAZE))
    assert f'gym.make("{MAZE}")' in text


STACK, WIDER = gym.wrappers.FrameStackObservation, gym.wrappers.RescaleAction
STACK_NAME, WIDER_NAME = (f"{wrapper.__module__}.{wrapper.__name__}" for wrapper in (STACK, WIDER))
WIDER_ARGUMENTS = {"min_action": -1.0, "max_action": 1.0}
WIDER_CALL = f"{WIDER_NAME}(max_action=1.0, min_action=-1.0)"


@pytest.mark.parametrize(
    ("hyperparameters", "named"),
    [
        ({"env_wrapper": "my_module.MyWrapper"}, "my_module.MyWrapper()"),
        ({"env_wrapper": {"my_module.Mine": {"name": "a", "sizes": (1, 2)}}}, "my_module.Mine(name='a', sizes=(1, 2))"),
        (
            {"env_wrapper": [{STACK_NAME: {"stack_size": 3}}, {WIDER_NAME: WIDER_ARGUMENTS}]},
            f"{STACK_NAME}(stack_size=3), then {WIDER_CALL}",
        ),
        ({"env_wrapper": [STACK, {WIDER: WIDER_ARGUMENTS}]}, f"{STACK_NAME}(), then {WIDER_CALL}"),
        (
            {"vec_env_wrapper": ["my_module.Outer"], "env_wrapper": ["my_module.Inner"], "frame_stack": 2, "normalize": False},
            "my_module.Inner(), then my_module.Outer(), then stable_baselines3.common.vec_env.VecFrameStack(n_stack=2)",
        ),
    ],
    ids=["name", "arguments", "list", "classes", "all"],
)
def test_card_names_wrappers(tmp_path, hyperparameters, named):
    (tmp_path / "config.yml").write_text(yaml.dump(OrderedDict(hyperparameters)))
    assert ", then ".join(wrappers_of(tmp_path / "config.yml")) == named


def test_code_on_the_card_names_the_wrappers_that_the_policy_needs(tmp_path):
    def stacked():
        return STACK(gym.make(NORMALIZED), stack_size=3)

    hyperparameters = {"env_wrapper": [{STACK_NAME: {"stack_size": 3}}], "vec_env_wrapper": None, "normalize": True}
    text, _ = make_card(tmp_path, make_small(METRA, stacked()), make_vec_env(stacked), **hyperparameters)
    line = f"# Here wrap it as in training: {STACK_NAME}(stack_size=3)\n"
    assert f"# import the package that registers it first\n{line}observation, _ = env.reset()" in text
    observation, _ = stacked().reset()
    assert import_policy(tmp_path / "policy.safetensors").predict(observation, skill=0)[0].shape == (1,)
    text, _ = make_card(tmp_path, make_small(METRA), make_vec_env(NORMALIZED), normalize=True, env_wrapper=None, frame_stack=0)
    assert "# import the package that registers it first\nobservation, _ = env.reset()" in text


class Table(gym.Env):
    """An environment without a constructor."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, False, {}


class SizedTable(Table):
    """An environment whose constructor has other arguments."""

    def __init__(self, size=1.0):
        self.size = size


def push_here(monkeypatch, folder, env_id, *options):
    """Run push_to_hub in this process until it makes the repository."""
    created = []

    def create_repo(self, repo_id, **kwargs):
        created.append(repo_id)
        raise InterruptedError

    monkeypatch.setattr(HfApi, "create_repo", create_repo)
    words = ["--algo", "cesd", "--env", env_id, "-f", folder, "-orga", "me", *options]
    monkeypatch.setattr(sys, "argv", ["push_to_hub", *map(str, words)])
    try:
        runpy.run_module("rl_zoo3.push_to_hub", run_name="__main__")
    except InterruptedError:
        pass
    return created


@pytest.mark.parametrize("env_class", [Table, SizedTable])
def test_an_environment_that_cannot_render_is_pushed_with_no_render(monkeypatch, tmp_path, env_class):
    env_id = f"{env_class.__name__}-v0"
    monkeypatch.setitem(gym.registry, env_id, EnvSpec(env_id, env_class, max_episode_steps=5))
    run = tmp_path / "cesd" / f"{env_id}_1"
    make_small(CeSD, env_id).save(run / env_id)
    (run / env_id).mkdir()
    (run / env_id / "config.yml").write_text(yaml.dump({"normalize": False, "normalize_kwargs": {}}))
    with pytest.raises(ValueError, match=f"^{env_id} can't be rendered, .* pass --no-render to push_to_hub"):
        push_here(monkeypatch, tmp_path, env_id)
    assert push_here(monkeypatch, tmp_path, env_id, "--no-render") == [f"me/cesd-{env_id}"]
    with pytest.raises(TypeError, match=r"takes no arguments|unexpected keyword argument 'colour'"):
        push_here(monkeypatch, tmp_path, env_id, "--no-render", "--env-kwargs", "colour:1")


def test_other_models_are_pushed_as_before(tmp_path):
    pushed, calls = PushedSkills(), []
    model = PPO("MlpPolicy", "Pendulum-v1", n_steps=8, batch_size=8)
    pushed.evaluate_each(lambda *args: calls.append(("evaluate", args[2])))(model, model.env, 10, True, tmp_path)
    pushed.film_later(lambda *args: calls.append(("film", args[2])))(model, model.env, 1000, True, tmp_path)
    pushed.complete_card(lambda *args: calls.append(("card", args[1])))(tmp_path / "README.md", {"tags": ["a"]})
    assert calls == [("evaluate", 10), ("film", 1000), ("card", {"tags": ["a"]})]


def test_missing_file_is_told_as_rl_zoo_expects(monkeypatch):
    response = SimpleNamespace(headers={}, request=None)

    def missing(**kwargs):
        raise RemoteEntryNotFoundError("vec_normalize.pkl is not there", response=response)

    monkeypatch.setenv("TRUST_REMOTE_CODE", "True")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", missing)
    with pytest.raises(HTTPError, match="is not there"):
        huggingface_sb3.load_from_hub("me/model", "vec_normalize.pkl")


def test_other_versions_of_the_hub_do_not_keep_the_methods_away(monkeypatch):
    monkeypatch.delattr(huggingface_hub.repocard, "metadata_save")
    extend_hub(SimpleNamespace())
    assert not hasattr(huggingface_hub.repocard, "metadata_save")
