"""Where skills are shown: in environments like those of training, of which nothing is changed or left behind."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.wrappers import AddRenderObservation, NormalizeObservation, RecordVideo
from small import make_small
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecVideoRecorder

from sb3_cesd import APT, CeSD, show_skills
from sb3_cesd.metrics import collect_rollouts, make_env_like_training
from sb3_cesd.show.choice import ChosenSkills
from sb3_cesd.show.environments import envs_to_play
from sb3_cesd.show.labels import meaning

QUICK = {"n_steps": 6, "n_rollouts": 2, "n_untrained": 0, "n_frames": 0, "video": False}


class Painted(PendulumEnv):
    """A pendulum that is drawn without a library."""

    shade = 50

    def render(self):
        assert self.render_mode == "rgb_array"
        return np.full((36, 36, 3), self.shade, dtype=np.uint8)


gym.register("Painted-v0", entry_point=Painted, max_episode_steps=20)


def normalized():
    return NormalizeObservation(gym.make("Painted-v0"))


@pytest.mark.parametrize("vec_env", [DummyVecEnv, SubprocVecEnv])
def test_statistics_of_a_wrapper_are_those_of_training(vec_env):
    training_env = vec_env([normalized])
    learner = make_small(CeSD, training_env).learn(60)
    (trained,) = training_env.get_attr("obs_rms")
    for made in (envs_to_play(None, learner, None).one(), make_env_like_training(training_env, 4, 1)):
        made.seed(0)
        made.reset()
        observations, _, _, _ = made.step(np.ones((1, 1), dtype=np.float32))
        plain = DummyVecEnv([lambda: gym.make("Painted-v0")])
        plain.seed(0)
        plain.reset()
        expected = (plain.step(np.ones((1, 1), dtype=np.float32))[0] - trained.mean) / np.sqrt(trained.var + 1e-8)
        assert np.allclose(observations, expected, atol=1e-5)
        assert made.get_attr("obs_rms")[0].count == trained.count > 60, "which do not go on learning"
    training_env.close()


def test_an_environment_of_the_caller_is_made_anew_with_its_statistics():
    env = normalized()
    env.reset()
    for _ in range(10):
        env.step(np.ones(1, dtype=np.float32))
    learner = make_small(CeSD, env)
    made = envs_to_play(env, learner, None).one(render=True)
    made.reset()
    assert made.get_attr("obs_rms")[0].count == env.obs_rms.count == pytest.approx(11, abs=0.1) and made.envs[0] is not env
    assert made.get_images()[0].shape == (36, 36, 3), "and it renders"


def test_images_among_observations_are_of_the_environment_that_is_played():
    env = AddRenderObservation(gym.make("Painted-v0", render_mode="rgb_array"), render_only=False)
    env.unwrapped.shade = 7
    learner = make_small(CeSD, env)
    for made in (envs_to_play(None, learner, None).one(), make_env_like_training(learner.env, 4, 1)):
        assert (made.reset()["pixels"] == 50).all()


class Twice(gym.ObservationWrapper):
    """Does not record its arguments."""

    def observation(self, observation):
        return 2 * observation


def test_what_was_made_is_closed_and_what_was_given_is_not(monkeypatch):
    made, closed = [], []
    initialize = Painted.__init__

    def counted(self, *args, **kwargs):
        initialize(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(Painted, "__init__", counted)
    monkeypatch.setattr(Painted, "close", lambda self: closed.append(self))
    training_env = Twice(gym.make("Painted-v0"))
    learner = make_small(APT, training_env)
    for env in (None, training_env):
        show_skills(learner, env, **QUICK)
        assert training_env.unwrapped not in closed and set(made) - set(closed) == {training_env.unwrapped}
    assert len(made) > 1


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_videos_of_training_are_left_alone(tmp_path):
    pytest.importorskip("moviepy")
    videos = tmp_path / "videos"
    env = RecordVideo(gym.make("Painted-v0", render_mode="rgb_array"), str(videos), episode_trigger=lambda episode: True)
    learner = make_small(APT, env).learn(45)
    before = contents(videos)
    assert before
    (videos / next(iter(before))).write_bytes(b"as it was")
    before = contents(videos)
    show_skills(learner, **{**QUICK, "n_steps": 20})
    show_skills(learner, env, **{**QUICK, "n_steps": 20})
    assert contents(videos) == before
    env.close()


def test_a_recorder_of_all_environments_is_left_out(tmp_path):
    pytest.importorskip("moviepy")

    def recorded():
        base = DummyVecEnv([lambda: gym.make("Painted-v0", render_mode="rgb_array")])
        return VecVideoRecorder(base, str(tmp_path), record_video_trigger=lambda step: False)

    learner = make_small(APT, recorded())
    for made in (make_env_like_training(learner.env, 4, 1), envs_to_play(None, learner, None).one()):
        assert isinstance(made, DummyVecEnv)


def test_a_task_is_measured_by_whole_episodes_without_noise(tmp_path):
    make_small(CeSD).learn(60).save(tmp_path / "skills.zip")
    env = gym.make("Pendulum-v1", max_episode_steps=260)
    task = CeSD.from_pretrained(tmp_path / "skills.zip", env, skill=2, warm_up="random", device="cpu")
    shown = show_skills(task, **{**QUICK, "n_steps": None})
    assert shown.metrics["mean_length"] == 260
    episodes = collect_rollouts(ChosenSkills(task, [2]), DummyVecEnv([lambda: env]), n_rollouts=2, n_steps=260, seed=0)
    assert shown.metrics["mean_return"] == pytest.approx(episodes.returns.mean())
    assert shown.rollouts[0].n_steps == 250, "of the picture"
    assert "without noise" in shown.compared and "or of the recording" in meaning("mean_return", 1, "other")


class Late(PendulumEnv):
    """Has a position once it has been reset, far from what is observed."""

    @property
    def position(self):
        return np.append(self.place, 0.0)

    def reset(self, **kwargs):
        self.place = np.array([0.5, 0.5])
        return super().reset(**kwargs)


def test_a_position_that_a_reset_brings():
    shown = show_skills(make_small(APT, Late()), Late(), **QUICK)
    assert all((rollout.positions == [0.5, 0.5, 0.0]).all() for rollout in shown.rollouts)
    assert shown.metrics["policy_coverage"] == 1 and "moved x" in str(shown)
    far = show_skills(make_small(APT, Late()), Late(), n_trajectories=2, goal_range=1.0, **QUICK)
    assert far.metrics["policy_coverage_2"] == 1 and far.metrics["goal_hit_3"] == 1
