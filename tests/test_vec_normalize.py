import warnings

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize
from tuning import saved

from sb3_cesd import CeSD, SkillOptions, VecSkillObservation
from sb3_cesd.export import export_policy


def normalized(n_envs=1, **kwargs):
    return VecNormalize(make_vec_env("Pendulum-v1", n_envs), **kwargs)


@pytest.mark.parametrize("n_envs", [1, 3])
def test_observations_are_stored_raw_and_sampled_normalised(make_model, n_envs):
    env = normalized(n_envs)
    model = make_model(env).learn(450)
    n_rows = 450 // n_envs
    stored = model.replay_buffer.observations["observation"][:n_rows].reshape(-1, 3)
    # cos and sin of an angle, and a velocity up to 8
    assert np.hypot(stored[:, 0], stored[:, 1]) == pytest.approx(1.0, abs=1e-5) and np.abs(stored[:, 2]).max() > 2
    stored_next = model.replay_buffer.next_observations["observation"][:n_rows].reshape(-1, 3)
    assert np.hypot(stored_next[:, 0], stored_next[:, 1]) == pytest.approx(1.0, abs=1e-4)
    assert (model.replay_buffer.rewards[:n_rows] < -1.5).any(), "rewards are stored as they are"
    samples = model.replay_buffer.sample(400, env=env)
    assert samples.observations.mean(dim=0).abs().max() < 0.5
    assert samples.observations.std(dim=0).numpy() == pytest.approx(1.0, abs=0.5)
    assert env.obs_rms.mean.shape == (3,), "the skill is not normalised"


def test_the_end_of_an_episode_is_stored_raw(make_model):
    model = make_model(normalized()).learn(201)
    terminal = model.replay_buffer.next_observations["observation"][199, 0]
    assert np.hypot(*terminal[:2]) == pytest.approx(1.0, abs=1e-4)
    assert (terminal != model.replay_buffer.observations["observation"][200, 0]).any(), (
        "not the first observation of the next episode"
    )


class Counter(gym.Env):
    """Observes integers, and ends after seven steps."""

    observation_space = gym.spaces.Box(0, 255, (4,), np.int64)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.seen = 0, [self.np_random.integers(0, 255, 4)]
        return self.seen[-1], {}

    def step(self, action):
        self.time += 1
        self.seen.append(self.np_random.integers(0, 255, 4))
        return self.seen[-1], 0.0, False, self.time == 7, {}


def test_the_end_of_an_episode_of_integers_is_stored_as_it_is(make_model):
    ends = []

    class Noted(Counter):
        def step(self, action):
            result = super().step(action)
            if result[3]:
                ends.append(result[0])
            return result

    model = make_model(VecNormalize(make_vec_env(Noted, seed=0))).learn(210)
    stored = model.replay_buffer.next_observations["observation"][6:210:7, 0]
    assert len(ends) == 30 and stored.dtype == np.int64 and (stored == np.array(ends)).all()


def test_explicit_order(make_model):
    model = make_model(VecSkillObservation(normalized(), 4)).learn(100)
    assert model.get_vec_normalize_env() is not None


def test_evaluation_synchronises_the_statistics(make_model):
    env, eval_env = normalized(), normalized(training=False, norm_reward=False)
    make_model(env).learn(100, callback=EvalCallback(eval_env, eval_freq=100, n_eval_episodes=1, verbose=0))
    assert eval_env.obs_rms.mean == pytest.approx(env.obs_rms.mean)


def test_save_and_load(make_model, tmp_path):
    env = normalized()
    model = make_model(env).learn(100)
    model.save(tmp_path / "model.zip")
    env.save(str(tmp_path / "vecnormalize.pkl"))
    loaded_env = VecNormalize.load(str(tmp_path / "vecnormalize.pkl"), make_vec_env("Pendulum-v1"))
    loaded = CeSD.load(tmp_path / "model.zip", env=loaded_env, device="cpu").learn(60)
    assert np.isfinite(evaluate_policy(loaded, loaded_env, n_eval_episodes=1)[0])


@pytest.mark.parametrize("norm_obs_keys", [None, ["skill"], ["observation", "skill"]])
def test_normalising_the_skill_is_refused(make_model, norm_obs_keys):
    with pytest.raises(
        ValueError, match=r"normalise the skill: pass VecNormalize\(env\) alone.*norm_obs_keys=\['observation'"
    ):
        make_model(VecNormalize(VecSkillObservation(make_vec_env("Pendulum-v1"), 4), norm_obs_keys=norm_obs_keys))


def test_stacking_the_skill_is_refused_but_stacking_before_works(make_model):
    with pytest.raises(ValueError, match="apply it before VecSkillObservation"):
        make_model(VecFrameStack(VecSkillObservation(make_vec_env("Pendulum-v1"), 4), 2))
    assert make_model(VecFrameStack(make_vec_env("Pendulum-v1"), 2)).learn(60).obs_dim == 6


@pytest.fixture
def trained(make_model, tmp_path):
    """A normalised model in a file, and its statistics."""
    model = make_model(normalized()).learn(100)
    model.save(tmp_path / "model.zip")
    return tmp_path / "model.zip", model.get_vec_normalize_env()


@pytest.mark.parametrize("env", [None, "Pendulum-v1"])
@pytest.mark.parametrize(
    "use",
    [
        lambda model, **kwargs: export_policy(model, "unwritten", **kwargs),
        lambda model, **kwargs: SkillOptions(gym.make("Pendulum-v1"), model, duration=2, **kwargs),
    ],
    ids=["export", "options"],
)
def test_statistics_that_are_missing_are_asked_for(trained, use, env):
    path, statistics = trained
    model = CeSD.load(path, env=env, device="cpu")
    message = r"trained with VecNormalize, but neither its file nor its environment holds the statistics: pass vec_normalize"
    for kwargs in ({}, {"vec_normalize": normalized(norm_obs=False)}):
        with pytest.raises(ValueError, match=message):
            use(model, **kwargs)
    others = VecNormalize(make_vec_env("MountainCarContinuous-v0"))
    for known in (model, CeSD.load(path, env=statistics, device="cpu")):
        with pytest.raises(ValueError, match=r"of shape \(2,\), the model observes .*: pass those it was trained with"):
            use(known, vec_normalize=others)


def test_options_are_normalised_by_the_environment_of_the_model(trained):
    path, statistics = trained
    task = gym.make("Pendulum-v1")
    found = SkillOptions(task, CeSD.load(path, env=statistics, device="cpu"), duration=2)
    given = SkillOptions(task, CeSD.load(path, device="cpu"), duration=2, vec_normalize=statistics)
    assert found.vec_normalize is given.vec_normalize is statistics
    steps = []
    for options in (found, given):
        options.reset(seed=0)
        steps.append(options.step(1)[0])
    assert (steps[0] == steps[1]).all()


def test_a_task_that_is_not_normalised_warns(trained, make_model):
    path, statistics = trained
    message = r"normalised the observations of the pre-training.*: pass the task with the statistics of the pre-training"
    with pytest.warns(UserWarning, match=message) as told:
        task = CeSD.from_pretrained(path, "Pendulum-v1", skill=1, learning_starts=40, device="cpu")
    with pytest.warns(UserWarning, match="the statistics of the task are new") as told_of_new:
        CeSD.from_pretrained(path, normalized(), skill=1, device="cpu")
    assert [each.filename for each in (*told, *told_of_new)] == [__file__] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CeSD.from_pretrained(path, statistics, skill=1, device="cpu")
        CeSD.from_pretrained(saved(make_model().learn(60)), normalized(norm_obs=False), skill=1, device="cpu")
        # The task has learned with observations as they are
        again = CeSD.load(saved(task.learn(50)), device="cpu")
    with pytest.warns(UserWarning, match=r"pre-trained on observations as they are, .*: pass the task without VecNormalize"):
        CeSD.from_pretrained(saved(make_model().learn(60)), normalized(), skill=1, device="cpu")
    assert export_policy(again, path.parent).is_file()


def test_learning_on_with_other_normalisation_warns(trained, make_model):
    path, statistics = trained
    for env, message in (("Pendulum-v1", "its environment are not normalised"), (normalized(), "its environment are new")):
        model = CeSD.load(path, env, device="cpu")
        with pytest.warns(UserWarning, match=rf"{message}.*: pass load or set_env .*VecNormalize\.load\(path, env\)"):
            model.learn(20, reset_num_timesteps=False)
    plain = make_model().learn(60)
    plain.set_env(normalized())
    with pytest.warns(UserWarning, match="observations as they are, .*: pass load or set_env the environment without"):
        plain.learn(20, reset_num_timesteps=False)
    fixed = normalized(training=False)
    fixed.obs_rms.mean[:] = 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CeSD.load(path, statistics, device="cpu").learn(20, reset_num_timesteps=False)
        make_model(normalized()).learn(60).learn(60)
        make_model(fixed).learn(60).learn(60)
        untrained = CeSD.load(saved(make_model(normalized())), "Pendulum-v1", device="cpu")
        untrained.learn(20)


def test_new_statistics_are_not_those_of_training(trained):
    path, _ = trained
    model = CeSD.load(path, normalized(), device="cpu")
    with pytest.raises(ValueError, match="holds the statistics: pass vec_normalize"):
        export_policy(model, path.parent)
    with pytest.raises(ValueError, match="holds the statistics: pass vec_normalize"):
        SkillOptions(gym.make("Pendulum-v1"), model, duration=2)


def test_a_task_has_statistics_of_returns_of_its_own(trained):
    path, statistics = trained
    assert statistics.ret_rms.count > 90
    observed, task = statistics.obs_rms, CeSD.from_pretrained(path, statistics, skill=1, device="cpu")
    assert statistics.obs_rms is observed and statistics.ret_rms.count < 1
    task.learn(60)
    assert statistics.ret_rms.count == pytest.approx(60, abs=1)
    again = CeSD.load(saved(task), statistics, device="cpu").learn(20, reset_num_timesteps=False)
    assert again.get_vec_normalize_env().ret_rms.count == pytest.approx(80, abs=1), "a task that goes on keeps them"


def test_networks_that_learn_no_more_while_statistics_do(trained, make_model):
    path, statistics = trained
    task = CeSD.from_pretrained(path, statistics, skill=1, bc_coef=1.0, device="cpu")
    with pytest.warns(UserWarning, match=r"bc_coef .*VecNormalize .*: set training = False and norm_reward = False"):
        task.learn(50)
    frozen = make_model(normalized(), constraint_kwargs={"start": 0.5, "freeze_clusters": True})
    with pytest.warns(UserWarning, match=r"freeze_clusters=True .*VecNormalize .*: leave one of the two out"):
        frozen.learn(50)
    statistics.training = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task.learn(20, reset_num_timesteps=False)


def test_frames_stacked_around_are_refused(make_model):
    env = VecFrameStack(VecNormalize(make_vec_env("Pendulum-v1")), 3)
    message = r"^A wrapper around VecNormalize makes Box.*: stack frames, or put channels first, before VecNormalize"
    with pytest.raises(ValueError, match=message):
        make_model(env)
    inside = make_model(VecNormalize(VecFrameStack(make_vec_env("Pendulum-v1"), 3))).learn(50)
    assert inside.num_timesteps == 50
    with pytest.raises(ValueError, match=message):
        make_model().set_env(env)
