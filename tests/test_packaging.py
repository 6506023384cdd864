import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import _sb3_cesd_rl_zoo3
import sb3_cesd

ROOT = Path(__file__).parent.parent
HOOK = {"sb3_cesd_rl_zoo3.pth", "sb3_cesd_rl_zoo3.start", "_sb3_cesd_rl_zoo3.py"}


def python(code, *options):
    result = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_hook_is_installed():
    site_packages = Path(sysconfig.get_path("purelib"))
    # What is installed is what is in the repository
    for name in HOOK:
        assert (site_packages / name).is_file()
        assert (site_packages / name).read_bytes() == (ROOT / name).read_bytes(), "install the package again"


def test_imports_leave_out_what_few_need():
    """Python alone loads the hook alone; pictures, tuning, RL Zoo and physics are imported by what uses them."""
    heavy = "{'huggingface_sb3', 'matplotlib', 'mujoco', 'optuna', 'pandas', 'rl_zoo3'}"
    code = (
        "import gymnasium, sys; print('_sb3_cesd_rl_zoo3' in sys.modules, 'sb3_cesd' in sys.modules, 'torch' in sys.modules)\n"
        f"import sb3_cesd; sb3_cesd.preset('laptop', 'Walker-v0'); print({heavy} & set(sys.modules))"
    )
    assert python(code)[0].splitlines() == ["True False False", "set()"]


def test_start_up_files_call_the_same():
    """Python 3.15 reads the .start file in place of the .pth file of that name (PEP 829): one ``module:callable`` per line."""
    (entry_point,) = (ROOT / "sb3_cesd_rl_zoo3.start").read_text().splitlines()
    assert re.fullmatch(r"[a-z0-9_]+:[a-z]+", entry_point)
    (line,) = (ROOT / "sb3_cesd_rl_zoo3.pth").read_text().splitlines()
    assert line.startswith("import ")
    # At every start of Python it imports no other module, and is there once
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); before, known = set(sys.modules), list(sys.meta_path)\n"
        f"{line}\n"
        "print(set(sys.modules) - before)\n"
        f"import pkgutil; pkgutil.resolve_name({entry_point!r})()\n"
        "print([type(finder).__name__ for finder in sys.meta_path if finder not in known])"
    )
    assert python(code, "-S")[0].splitlines() == ["{'_sb3_cesd_rl_zoo3'}", "['RLZooFinder']"]


def test_rl_zoo_goes_on_without_a_broken_package(monkeypatch, capsys):
    utils, finder = SimpleNamespace(__name__="rl_zoo3.utils", ALGOS={}), _sb3_cesd_rl_zoo3.RLZooFinder()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sb3_cesd", None)  # an import of it fails
        finder.extend(utils)
        finder.extend(utils)
    said = capsys.readouterr().err
    assert said.count("could not be added to RL Zoo") == 1 and "pip uninstall sb3_cesd" in said
    monkeypatch.setenv("SB3_CESD_NO_HOOK", "1")
    finder.extend(utils)
    assert utils.ALGOS == {} and capsys.readouterr().err == ""


def test_register_by_hand_without_the_hook(tmp_path):
    """As with ``pip install --target``: no .pth file is read."""
    # RL Zoo imports this module while rl_zoo3.exp_manager is half imported
    (tmp_path / "custom_envs.py").write_text("from sb3_cesd import zoo; zoo.register()")
    code = (
        f"import sys; sys.path[:0] = {[str(tmp_path), str(ROOT), sysconfig.get_path('purelib')]}\n"
        "import rl_zoo3.exp_manager, rl_zoo3.train\n"
        "from sb3_cesd import zoo\n"
        "zoo.register(); zoo.register()\n"
        "names = {module.ExperimentManager.__name__ for module in (rl_zoo3.exp_manager, rl_zoo3.train)}\n"
        "print('cesd' in rl_zoo3.train.ALGOS, *names, rl_zoo3.exp_manager.EvalCallback.__name__)"
    )
    assert python(code, "-S")[0].split() == ["True", "SkillExperimentManager", "SkillEvalCallback"]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Build from a copy of the repository without what earlier builds left there."""
    source = tmp_path_factory.mktemp("source") / "repository"
    ignore = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "logs", "demo")
    shutil.copytree(ROOT, source, ignore=ignore)

    def build_in_copy(what):
        folder = tmp_path_factory.mktemp(what)
        code = f"import build_backend; print(build_backend.build_{what}({str(folder)!r}))"
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, 'build_backend'); {code}"]
        result = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=600)
        assert result.returncode == 0, result.stderr
        return folder / result.stdout.split()[-1]

    return build_in_copy


def check_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        record = archive.read(next(name for name in names if name.endswith("RECORD"))).decode()
        for name in HOOK:
            assert archive.read(name) == (ROOT / name).read_bytes()
    assert len(names) == len(set(names))
    # pip removes what RECORD lists
    assert sorted(line.split(",")[0] for line in record.split()) == sorted(names)
    return {name for name in names if ".dist-info/" not in name}


@pytest.mark.slow
def test_wheel(build, tmp_path):
    """A wheel holds what an installed package needs, and nothing of the repository around it."""
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "sb3_cesd").rglob("*.py")}
    config = {f"sb3_cesd/hyperparams/{path.name}" for path in (ROOT / "hyperparams").glob("*.yml")}
    templates = {path.relative_to(ROOT).as_posix() for path in (ROOT / "sb3_cesd").rglob("*.[yh]*ml")}
    wheel = build("wheel")
    others = {f"sb3_cesd/{name}" for name in ("py.typed", "version.txt", "_method_names.pyi", "envs/robots/scales.json")}
    assert check_wheel(wheel) == HOOK | modules | config | templates | others
    shutil.unpack_archive(wheel, tmp_path, "zip")
    code = (
        f"import sys; sys.path[:0] = {[str(tmp_path), sysconfig.get_path('purelib')]}\n"
        "from sb3_cesd.presets import hyperparams_folder, preset\n"
        "print(hyperparams_folder(), preset('published', 'Walker-v0', 'rnd')['n_skills'])"
    )
    assert python(code, "-I", "-S")[0].split() == [str(tmp_path / "sb3_cesd/hyperparams"), "16"]


@pytest.mark.slow
def test_source_distribution_builds_itself(build):
    with tarfile.open(build("sdist")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "build_backend/build_backend.py",
        "hyperparams/cesd.yml",
        "hyperparams/cesd_published.yml",
        "examples/1_skills_in_a_maze.ipynb",
        "sb3_cesd/version.txt",
        "LICENSE",
        "benchmarks/results/urlb/one_robot/runs.csv",
        "constraints.txt",
    }
    assert HOOK | needed <= names
    assert not any(name.startswith(("docs/", "tests/docs/")) for name in names), "they need files that are left out"


def test_version():
    assert sb3_cesd.__version__ == (ROOT / "sb3_cesd/version.txt").read_text().strip()
    assert f"## {sb3_cesd.__version__}" in (ROOT / "CHANGELOG.md").read_text()
