"""A task of the user's, of which no entry knows: what RL Zoo does with it, and the template of a yml file."""

import pytest
import yaml
from rl_zoo import SMALL, run

from sb3_cesd import CeSD

MODULE = """
import gymnasium as gym

class Push(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action[0]), False, False, {}

for name in ("MyEnv-v0", "MyTask-v0"):
    gym.register(name, entry_point=Push, max_episode_steps=20)
"""
OWN = ["--algo", "cesd", "--gym-packages", "own_module", "--eval-freq", -1]


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A folder with a model that was pre-trained by the template, of fewer steps, and that template."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_module.py").write_text(MODULE)
    template = run(folder, "template", module="sb3_cesd.zoo.hyperparams")
    assert yaml.safe_load(template)["MyTask-v0"] == {
        **yaml.safe_load(template)["MyEnv-v0"], "reward": "extrinsic", "n_timesteps": 5e4,
    }  # fmt: skip
    (folder / "mine.yml").write_text(template)
    train(folder, "--conf-file", "mine.yml", "--env", "MyEnv-v0", "-n", 140, *SMALL)
    return folder


def train(folder, *arguments):
    return run(folder, *OWN, *arguments)


AGENT = "logs/cesd/MyEnv-v0_1/MyEnv-v0.zip"
WARNING = "WARNING: this continues to discover skills in MyTask-v0 and does not use its reward"


def test_an_unknown_task_is_warned_of_with_both_remedies(pretrained):
    output = train(pretrained, "--env", "MyTask-v0", "-i", AGENT, "-n", 20, "-f", "unknown", *SMALL)
    assert WARNING in output and "-params \"reward:'extrinsic'\"" in output and "reward: 'extrinsic'" in output
    assert CeSD.load(pretrained / "unknown/cesd/MyTask-v0_1/MyTask-v0.zip").reward == "intrinsic"


@pytest.mark.slow
@pytest.mark.parametrize(
    "remedy", [[*SMALL, "reward:'extrinsic'"], ["--conf-file", "mine.yml", *SMALL]], ids=["params", "yml"]
)
def test_both_remedies_fine_tune_a_skill(pretrained, tmp_path, remedy):
    output = train(pretrained, "--env", "MyTask-v0", "-i", AGENT, "-n", 20, "-f", tmp_path, *remedy)
    assert "WARNING" not in output and "Fine-tuning skill" in output
    assert CeSD.load(tmp_path / "cesd/MyTask-v0_1/MyTask-v0.zip").reward == "extrinsic"


@pytest.mark.slow
def test_pre_training_that_goes_on_is_not_warned_of(pretrained):
    output = train(pretrained, "--env", "MyEnv-v0", "-i", AGENT, "-n", 20, "-f", "on", *SMALL)
    assert "WARNING" not in output


@pytest.mark.slow
def test_a_task_is_tuned_from_the_pretrained_model(pretrained):
    """Of its reward, which trials with a pre-trained model reach; RL Zoo would train it without a study."""
    output = train(
        pretrained, "--env", "MyTask-v0", "-i", AGENT, "-n", 100, "--conf-file", "mine.yml", "-optimize", "--n-trials", 2,
        "--n-evaluations", 1, "--eval-episodes", 2, "--no-optim-plots", "-params", "n_skills:4", "learning_starts:40",
        "buffer_size:1000",
    )  # fmt: skip
    assert "Objective: the mean reward of the task" in output
    assert "Searched: learning_rate, batch_size, gamma, tau, n_steps, exploration_noise, noise_correlation\n" in output
    assert "Number of finished trials:  2" in output and "Estimated time of a trial" in output
    assert -20 <= float(output.split("Value: ")[1].split()[0]) <= 20 and "skill_score" not in output
