from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent

setup(
    name="sb3_cesd",
    version=(ROOT / "sb3_cesd" / "version.txt").read_text().strip(),
    description="Unsupervised skill discovery for Stable-Baselines3 and RL Zoo (CeSD)",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    keywords="reinforcement-learning unsupervised-learning skill-discovery stable-baselines3 rl-zoo pytorch gymnasium",
    packages=[*find_packages(include=["sb3_cesd", "sb3_cesd.*"]), "sb3_cesd.hyperparams"],
    package_dir={"sb3_cesd.hyperparams": "hyperparams"},
    package_data={"sb3_cesd": ["py.typed", "version.txt"], "sb3_cesd.hyperparams": ["*.yml"]},
    python_requires=">=3.10",
    install_requires=[
        "stable-baselines3>=2.9,<3.0",
        "sb3-contrib>=2.9,<3.0",
        "rl-zoo3>=2.9,<3.0",
        "torch>=2.4",
        "numpy",
        # Exported policies
        "safetensors>=0.5",
        # Shimmy imports the robots of Gymnasium, which need the extra
        "gymnasium[mujoco]>=1.0,<2.0",
        "shimmy>=2.0,<3.0",
        'dm_control>=1.0.50; python_version < "3.13"',
        # Python 3.13: dm_control requires labmaze, of which there is no wheel and which our robots don't need. What dm_control
        # requires besides stands here; itself it takes `pip install --no-deps dm_control`.
        *[
            f'{name}; python_version >= "3.13"'
            for name in ("dm-env", "dm-tree", "glfw", "lxml", "protobuf", "pyopengl", "pyparsing", "requests", "scipy", "tqdm")
        ],
        # dm_control 1.0.50 fails with MuJoCo 4, and does not say so
        "mujoco>=3.17,<4",
        "matplotlib",
        # The rl_zoo3 console script imports it, and RL Zoo does not install it
        "seaborn",
    ],
    extras_require={
        "tests": [
            "hypothesis",
            "pytest",
            "pytest-xdist",
            "ray",
            "ruff",
            "mypy",
            "types-PyYAML",
            "tensorboard",
            "tqdm",
            "rich",
            "moviepy",
            "build",
        ],
        "benchmarks": ["pandas", "scipy", "tqdm", "joblib", "filelock"],
        "cluster": ["ray", "joblib"],
    },
    classifiers=[
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
