"""A module of a user, which registers environments: what the documentation calls ``my_module``."""

import gymnasium as gym

for env_id in ("MyEnv-v0", "MyTask-v0"):
    gym.register(env_id, entry_point="gymnasium.envs.classic_control:PendulumEnv", max_episode_steps=50)
