"""
Make the files of a release that every later one is to load: a folder of tests/data, named after the version.

    python tests/make_fixture.py

Run it once per release, and commit the folder; what older releases saved stays as it is.
"""

import json
from pathlib import Path

import numpy as np
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CeSD, __version__
from sb3_cesd.export import export_policy

DATA = Path(__file__).parent / "data"
OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


def main() -> None:
    """Run the command."""
    folder = DATA / __version__
    env = VecNormalize(make_vec_env("Pendulum-v1", seed=0))
    model = CeSD(
        "MlpPolicy",
        env,
        n_skills=3,
        learning_starts=20,
        batch_size=8,
        buffer_size=100,
        policy_kwargs={"net_arch": [8]},
        intrinsic_kwargs={"encoder_kwargs": {"net_arch": [8], "features_dim": 3}, "entropy_kwargs": {"k": 3}},
        seed=0,
        device="cpu",
    ).learn(60)
    model.save(folder / "model.zip")
    model.save_replay_buffer(folder / "buffer.pkl")
    env.save(str(folder / "vecnormalize.pkl"))
    export_policy(model, folder / "policy.safetensors")
    expected = {
        "num_timesteps": model.num_timesteps,
        "actions": model.predict(OBS, skill=1)[0].tolist(),
        "exported_actions": model.predict(env.normalize_obs(OBS), skill=1)[0].tolist(),
        "rewards": model.replay_buffer.rewards[:60, 0].tolist(),
        "mean": env.obs_rms.mean.tolist(),
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
