import pytest
from rl_zoo import CHECKPOINTS, MAZE, SMALL, folder_of, run


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with a run that used most of RL Zoo's options at once, normalised and with checkpoints."""
    folder = tmp_path_factory.mktemp("zoo")
    output = run(
        folder, "-n", 400, "--eval-freq", 200, "--eval-episodes", 1, "--save-freq", 200, "--save-replay-buffer", "-P",
        "--seed", 1, "--log-interval", 1, "-params", *SMALL, "n_envs:1", "normalize:True", CHECKPOINTS,
    )  # fmt: skip
    return folder, output


@pytest.fixture(scope="session")
def agent(trained):
    return folder_of(trained[0]) / f"{MAZE}.zip"
