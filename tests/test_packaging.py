import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import sb3_cesd

ROOT = Path(__file__).parent.parent


def python(code, *options):
    result = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_hook_is_installed():
    site_packages = Path(sysconfig.get_path("purelib"))
    assert (site_packages / "sb3_cesd_rl_zoo3.pth").is_file() and (site_packages / "_sb3_cesd_rl_zoo3.py").is_file()
    # What is installed is what is in the repository
    for name in ("sb3_cesd_rl_zoo3.pth", "_sb3_cesd_rl_zoo3.py"):
        assert (site_packages / name).read_bytes() == (ROOT / name).read_bytes(), "install the package again"


def test_bare_python_loads_the_hook_alone():
    stdout, _ = python(
        "import sys; print('_sb3_cesd_rl_zoo3' in sys.modules, 'sb3_cesd' in sys.modules, 'torch' in sys.modules)"
    )
    assert stdout.split() == ["True", "False", "False"]
    _, importtime = python("pass", "-X", "importtime")
    # The hook needs nothing that Python did not load anyway
    own = re.search(r"\|\s+(\d+) \|\s+_sb3_cesd_rl_zoo3", importtime)
    assert own is not None
    nested = [line for line in importtime.splitlines() if re.search(r"\|   +(sb3_cesd|rl_zoo3|torch|importlib\.abc)", line)]
    assert nested == []


def test_other_packages_import_as_before():
    stdout, _ = python("import json, gymnasium, sys; print('sb3_cesd' in sys.modules, 'torch' in sys.modules)")
    assert stdout.split() == ["False", "False"]


def test_broken_package_does_not_break_rl_zoo():
    code = (
        "import sys; sys.modules['sb3_cesd'] = None\n"  # an import of it fails
        "import rl_zoo3; from rl_zoo3.utils import ALGOS\n"
        "print('cesd' in ALGOS, 'ppo' in ALGOS)"
    )
    stdout, stderr = python(code)
    assert stdout.split() == ["False", "True"]
    assert "sb3_cesd could not be added to RL Zoo" in stderr


def test_rl_zoo_knows_us_once_and_environments_are_registered():
    code = (
        "import rl_zoo3, rl_zoo3.exp_manager, gymnasium\n"
        "from rl_zoo3.utils import ALGOS; from rl_zoo3.hyperparams_opt import HYPERPARAMS_SAMPLER, HYPERPARAMS_CONVERTER\n"
        "assert 'cesd' in HYPERPARAMS_SAMPLER and 'cesd' in HYPERPARAMS_CONVERTER\n"
        "print(ALGOS['cesd'].__name__, 'Quadruped-v0' in gymnasium.registry, 'cesd' in ALGOS)"
    )
    assert python(code)[0].split() == ["CeSD", "True", "True"]


@pytest.mark.slow
def test_wheel(tmp_path):
    """A wheel holds what an installed package needs, and nothing of the repository around it."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        record = archive.read(next(name for name in names if name.endswith("RECORD"))).decode()
    assert {"sb3_cesd_rl_zoo3.pth", "_sb3_cesd_rl_zoo3.py", "sb3_cesd/py.typed", "sb3_cesd/version.txt"} <= set(names)
    assert {f"sb3_cesd/hyperparams/{path.name}" for path in (ROOT / "hyperparams").glob("*.yml")} <= set(names)
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "sb3_cesd").rglob("*.py")} <= set(names)
    assert not any(name.startswith(("tests", "benchmarks", "build_backend")) for name in names)
    assert len(names) == len(set(names))
    # pip removes what RECORD lists
    assert all(f"{name}," in record for name in names)


def test_version():
    assert sb3_cesd.__version__ == (ROOT / "sb3_cesd/version.txt").read_text().strip()
    assert f"## {sb3_cesd.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_constraints_pin_what_the_issue_of_dm_control_needs():
    constraints = (ROOT / "constraints.txt").read_text()
    assert "torch==2.13.0" in constraints and re.search(r"^mujoco==3\.", constraints, re.MULTILINE)
