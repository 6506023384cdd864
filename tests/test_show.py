import subprocess
import sys

import numpy as np
import pytest

from sb3_cesd.envs.gl import egl_works
from sb3_cesd.show import draw, find_env_id, play_all, table


@pytest.fixture(scope="module")
def walker_model(tmp_path_factory):
    from conftest import TINY

    from sb3_cesd import CeSD

    path = tmp_path_factory.mktemp("show") / "Walker-v0_3"
    path.mkdir()
    model = CeSD("MlpPolicy", "Walker-v0", seed=0, **TINY)
    model.save(path / "best_model.zip")
    return model, path / "best_model.zip"


@pytest.mark.parametrize("name", ["best_model.zip", "rl_model_200_steps.zip"])
def test_environment_is_told_by_the_folder_of_rl_zoo(tmp_path, name):
    assert find_env_id(tmp_path / "logs/cesd/QuadrupedRun-v0_12" / name) == "QuadrupedRun-v0"


def test_environment_is_told_by_the_file_or_not_at_all(tmp_path):
    assert find_env_id(tmp_path / "Pendulum-v1.zip") == "Pendulum-v1"
    with pytest.raises(ValueError, match="pass --env"):
        find_env_id(tmp_path / "model.zip")


def test_skills_start_alike_and_part(walker_model):
    rollouts = play_all(walker_model[0], "Walker-v0", n_steps=30, seed=0, n_frames=0, vec_normalize=None)
    assert [rollout.skill for rollout in rollouts] == [0, 1, 2, 3]
    for rollout in rollouts:
        assert rollout.observations.shape == (31, 24) and rollout.positions.shape == (31, 3) and rollout.frames == []
        assert (rollout.observations[0] == rollouts[0].observations[0]).all()
    assert (rollouts[0].observations[-1] != rollouts[1].observations[-1]).any()
    assert len(table(rollouts).splitlines()) == 5
    figure = draw(rollouts, "title")
    assert len(figure.subfigs[1].axes) == 2 and figure.subfigs[0].axes == []


@pytest.mark.skipif(not egl_works(), reason="this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")
def test_images_of_every_skill(walker_model):
    rollouts = play_all(walker_model[0], "Walker-v0", n_steps=10, seed=0, n_frames=3, vec_normalize=None)
    assert all(len(rollout.frames) == 3 for rollout in rollouts)
    assert (np.array(rollouts[0].frames[0]) != np.array(rollouts[0].frames[2])).any()
    assert len(draw(rollouts, "title").subfigs[0].axes) == 12


@pytest.mark.parametrize("gl", [None, "off"])
def test_command(walker_model, tmp_path, gl):
    import os

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if gl is not None:
        environment["MUJOCO_GL"] = gl
    command = [
        sys.executable,
        "-m",
        "sb3_cesd.show",
        str(walker_model[1]),
        "--output",
        str(tmp_path),
        "--steps",
        "10",
        "--frames",
        "2",
    ]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "skills.png").stat().st_size > 10_000
    if gl == "off":
        assert "No images: MuJoCo can't render here" in result.stdout
