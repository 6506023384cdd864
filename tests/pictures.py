"""Small environments and models of pictures."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from small import make_small, small_reward
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

#: Shape of pictures, channels last
IMAGE = (16, 16, 3)
PICTURES = spaces.Box(0, 255, IMAGE, np.uint8)


class Pictures(gym.Env):
    """A bright square in a picture of noise, at a place that the action moves; episodes of 5 to 24 steps."""

    action_space = spaces.Box(-1, 1, (1,))
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, space=PICTURES, render_mode=None):
        self.observation_space, self.render_mode = space, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.place, self.remaining = 7.0, self.np_random.integers(5, 25)
        return self._observe(), {}

    def step(self, action):
        self.place = float(np.clip(self.place + 2 * action[0], 0, 14))
        self.remaining -= 1
        return self._observe(), self.place, False, self.remaining == 0, {}

    def render(self):
        return np.zeros((32, 32, 3), np.uint8)

    @property
    def position(self):
        return np.array([self.place, 0.0])

    def _observe(self):
        picture = self.observation_space.sample()
        if isinstance(picture, np.ndarray):
            picture[int(self.place) :][:2, :4] = self.observation_space.high.flat[0]
        return picture


gym.register("Pictures-v0", Pictures)


def make_pictures(n_envs=1, n_stack=1, space=PICTURES, seed=0):
    """Environments of pictures, stacked if ``n_stack`` is above 1."""
    env = DummyVecEnv([lambda: gym.make("Pictures-v0", space=space)] * n_envs)
    env.seed(seed)
    return env if n_stack == 1 else VecFrameStack(env, n_stack)


def pixel_model(method, env=None, intrinsic_kwargs=None, **kwargs):
    """A small model of pictures; arguments of the policy may be named as if they were arguments of the constructor."""
    names = ("encoder_learns_from", "encoder_kwargs", "features_extractor_class", "features_extractor_kwargs")
    policy_kwargs = {"net_arch": [8], **{name: kwargs.pop(name) for name in names if name in kwargs}}
    intrinsic_kwargs = {**small_reward(method.reward_class), **(intrinsic_kwargs or {})}
    arguments = {"buffer_size": 200, "batch_size": 16, "intrinsic_kwargs": intrinsic_kwargs, "policy_kwargs": policy_kwargs}
    return make_small(method, env or make_pictures(), "CnnPolicy", **{**arguments, **kwargs})
