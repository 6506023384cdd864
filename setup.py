import os
import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
#: URL of the repository and tag of the release, which only the workflow that publishes it sets
REPOSITORY, TAG = os.environ.get("SB3_CESD_REPOSITORY", ""), os.environ.get("SB3_CESD_TAG", "HEAD")


def readme() -> str:
    """Read the README. Its links are relative, as GitHub wants them; for PyPI they lead to the repository."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if not REPOSITORY:
        return text
    text = text.replace("](../../", f"]({REPOSITORY}/")
    text = re.sub(r"(!\[[^\]]*\]\()(?!https:)", rf"\g<1>{REPOSITORY}/raw/{TAG}/", text)
    return re.sub(r"(\]\()(?!https:|#)", rf"\g<1>{REPOSITORY}/blob/{TAG}/", text)


setup(
    name="sb3_cesd",
    version=(ROOT / "sb3_cesd" / "version.txt").read_text().strip(),
    description="Unsupervised skill discovery for Stable-Baselines3 and RL Zoo (CeSD)",
    long_description=readme(),
    long_description_content_type="text/markdown",
    project_urls={
        "Source": REPOSITORY,
        "Documentation": f"{REPOSITORY}/blob/HEAD/docs/quickstart.md",
        "Changelog": f"{REPOSITORY}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
        "Paper": "https://arxiv.org/abs/2405.16030",
    }
    if REPOSITORY
    else {"Paper": "https://arxiv.org/abs/2405.16030"},
    author="The sb3_cesd authors",
    license="MIT",
    license_files=["LICENSE"],
    keywords="reinforcement-learning unsupervised-learning skill-discovery stable-baselines3 rl-zoo pytorch gymnasium",
    packages=[*find_packages(include=["sb3_cesd", "sb3_cesd.*"]), "sb3_cesd.hyperparams"],
    package_dir={"sb3_cesd.hyperparams": "hyperparams"},
    package_data={
        "sb3_cesd": ["py.typed", "version.txt", "*.pyi"],
        "sb3_cesd.hyperparams": ["*.yml"],
        "sb3_cesd.envs.robots": ["scales.json"],
        "sb3_cesd.show": ["page.html"],
    },
    python_requires=">=3.10",
    install_requires=[
        # RL Zoo 2.9.2 and no older: those ask for huggingface_hub 0.x, with which we can't be added to RL Zoo
        "stable-baselines3>=2.9.2,<3.0",
        "sb3-contrib>=2.9.2,<3.0",
        "rl-zoo3>=2.9.2,<3.0",
        # As SB3
        "torch>=2.8,<3.0",
        "numpy",
        # Pages of skills
        "jinja2",
        # Exported policies
        "safetensors>=0.5",
        # Shimmy imports the robots of Gymnasium, which need the extra
        "gymnasium[mujoco]>=1.0,<2.0",
        "shimmy>=2.0,<3.0",
        'dm_control>=1.0.50; python_version < "3.13"',
        # From Python 3.13 on: dm_control requires labmaze, of which there is no wheel and which our robots don't need. What
        # dm_control requires besides stands here; itself it takes `pip install --no-deps dm_control`.
        *[
            f'{name}; python_version >= "3.13"'
            for name in ("dm-env", "dm-tree", "glfw", "lxml", "protobuf", "pyopengl", "pyparsing", "requests", "scipy", "tqdm")
        ],
        # dm_control 1.0.50 fails with MuJoCo 4, and does not say so
        "mujoco>=3.17,<4",
        # Legends outside of the panels (3.7); 3.8 is the oldest that the tests pass with
        "matplotlib>=3.8",
        # Studies are kept in its journal; RL Zoo is content with Optuna 3, which has it elsewhere
        "optuna>=4.0",
        # RL Zoo's load_from_hub imports it, and RL Zoo does not install it. Older than 2.25 fails to import on Python 3.12
        "requests>=2.25",
        # The rl_zoo3 console script imports it, and RL Zoo does not install it
        "seaborn",
    ],
    extras_require={
        "tests": [
            "filelock",
            "joblib",
            "pandas",
            "pytest",
            "pytest-xdist",
            "ruff",
            "mypy",
            "types-PyYAML",
            "tensorboard",
            "tqdm",
            "rich",
            "moviepy",
            "build",
        ],
        # The newest MyST asks for Python 3.11
        "docs": [
            f'{name}; python_version >= "3.11"'
            for name in ("sphinx>=9", "docutils>=0.22", "myst-parser>=5", "furo", "sphinx-copybutton")
        ],
        "benchmarks": ["pandas", "scipy", "tqdm", "joblib", "filelock"],
        # Networks of world models. Each release asks for its own tensordict
        "dreamer": ["torchrl>=0.14,<0.15"],
        "tensorboard": ["tensorboard"],
        # SB3's VecVideoRecorder, and so RL Zoo's record_video
        "video": ["moviepy"],
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
)
