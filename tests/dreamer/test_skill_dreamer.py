import numpy as np
import pytest
import torch as th
import yaml
from dots import DotEnv, make_small
from stable_baselines3.common.callbacks import ConvertCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd import APTDreamer, CeSDDreamer, DIAYNDreamer, SkillOptions, preset
from sb3_cesd.callbacks import SkillEvalCallback
from sb3_cesd.checkpoints import ResumableCheckpoint, remaining_timesteps, resume
from sb3_cesd.export import export_policy
from sb3_cesd.metrics import collect_rollouts
from sb3_cesd.presets import hyperparams_folder
from sb3_cesd.registry import ALGORITHMS
from sb3_cesd.show import show_skills
from sb3_cesd.show.environments import load_model
from sb3_cesd.zoo.tuning import SearchSpace


def weights(model):
    return {
        f"{name}.{key}": value
        for name, part in model.get_parameters().items()
        if "optimizer" not in name
        for key, value in part.items()
    }


def played(model, n_steps=6):
    """Actions of a skill in an episode, with the latent states carried on."""
    env, state, actions = DummyVecEnv([DotEnv]), None, []
    env.seed(3)
    observations = env.reset()
    for step in range(n_steps):
        action, state = model.predict(observations, state, np.array([step == 0]), deterministic=True, skill=1)
        actions.append(action)
        observations = env.step(action)[0]
    return np.concatenate(actions)


@pytest.fixture(scope="module")
def trained():
    model = make_small(CeSDDreamer, DummyVecEnv([DotEnv] * 2))
    before = {name: value.clone() for name, value in weights(model).items()}
    model.learn(300)
    return model, before


def test_learn(trained):
    model, before = trained
    assert model._n_updates == 24 and model.is_constrained
    after = weights(model)
    for part in (
        "policy.world_model.prior",
        "policy.world_model.decoder",
        "policy.actor.mu",
        "policy.critic.trunk",
        "intrinsic.",
    ):
        assert any(not th.equal(after[name], before[name]) for name in after if name.startswith(part)), part
    # The rewards of the environment are of no concern
    unseen = [name for name in after if name.startswith("policy.world_model.reward_net")]
    assert all(th.equal(after[name], before[name]) for name in unseen)
    logged = model.logger.name_to_value
    assert {"train/observation_loss", "train/kl_loss", "train/actor_loss", "train/critic_loss"} <= logged.keys()


def test_save_and_load(trained, tmp_path):
    model, _ = trained
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model.zip")
    assert type(loaded) is type(model) and np.array_equal(played(loaded), played(model))
    state = model.policy.world_model.optimizer.state_dict()["state"]
    assert state and th.equal(loaded.policy.world_model.optimizer.state_dict()["state"][0]["exp_avg"], state[0]["exp_avg"])
    again = type(model).load(tmp_path / "model", DummyVecEnv([DotEnv] * 2), device="cpu")
    n_updates = again._n_updates
    again.learn(100, reset_num_timesteps=False)
    assert again.num_timesteps == model.num_timesteps + 100 and again._n_updates > n_updates


def test_latent_states_are_carried_on(trained):
    model, _ = trained
    observations = np.zeros((1, 16, 16, 1), np.uint8)
    first, state = model.predict(observations, deterministic=True, skill=0)
    second, _ = model.predict(observations, state, np.array([False]), deterministic=True, skill=0)
    again, _ = model.predict(observations, state, np.array([True]), deterministic=True, skill=0)
    assert not np.array_equal(first, second) and np.array_equal(first, again)
    # Also by what plays skills: the picture stays, the actions do not
    env = DummyVecEnv([DotEnv] * 4)
    rollouts = collect_rollouts(model, env, n_rollouts=1, n_steps=6, seed=3)
    assert rollouts.states.shape == (4, 1, 7, 256)
    assert np.isfinite(evaluate_policy(model, model.env, n_eval_episodes=2)[0])
    options = SkillOptions(DotEnv(), model, duration=6)
    options.reset(seed=3)
    options.step(1)
    assert len(options._memory["state"][0]) == 1


def test_show(trained):
    shown = show_skills(trained[0], DotEnv(), n_steps=5, n_rollouts=2, n_frames=0)
    assert np.isfinite(shown.metrics["knn_accuracy"])


def test_fine_tune_in_imagination(trained, tmp_path):
    model, _ = trained
    model.save(tmp_path / "model")
    task = type(model).from_pretrained(
        tmp_path / "model", DotEnv(terminates=True), skill="best", seed=0, learning_starts=60, device="cpu"
    )
    before = {name: value.clone() for name, value in weights(task).items()}
    ours = weights(model)
    taken_over = [name for name in ours if name.startswith(("policy.world_model.", "policy.actor."))]
    assert all(th.equal(before[name], ours[name]) for name in taken_over)
    task.learn(200)
    assert task.skill in range(4)
    for part in ("policy.world_model.reward_net", "policy.world_model.continue_net", "policy.actor", "policy.critic"):
        assert any(not th.equal(value, before[name]) for name, value in weights(task).items() if name.startswith(part)), part


def test_resume_is_the_same_run(tmp_path):
    def checkpoint(name):
        return ResumableCheckpoint(tmp_path / name, save_freq=100)

    whole, half = make_small(APTDreamer).learn(300, checkpoint("whole")), make_small(APTDreamer)
    half.learn(300, [checkpoint("half"), ConvertCallback(lambda *_: half.num_timesteps < 200)])
    model = resume(tmp_path / "half", DotEnv(), device="cpu")
    assert 0 < remaining_timesteps(model) < 300
    model.learn(remaining_timesteps(model), checkpoint("half"), reset_num_timesteps=False)
    assert all(th.equal(value, weights(model)[name]) for name, value in weights(whole).items())


def test_evaluation_by_skills():
    callback = SkillEvalCallback(DotEnv(), eval_freq=100, n_eval_episodes=8)
    make_small(DIAYNDreamer).learn(200, callback)
    assert np.isfinite(callback.best_mean_reward)


def test_what_there_is_not(tmp_path):
    with pytest.raises(ValueError, match="DreamerPolicy"):
        export_policy(make_small(APTDreamer), tmp_path)
    with pytest.raises(ValueError, match="leave -optimize out"):
        SearchSpace(CeSDDreamer, {}, {})


def test_a_buffer_without_room_for_a_sequence():
    with pytest.raises(ValueError, match="raise buffer_size"):
        make_small(APTDreamer, buffer_size=5).learn(70)


@pytest.mark.parametrize("kwargs", [{"ent_coef": "auto"}, {"intrinsic_kwargs": {"cluster_window": 5}}])
def test_what_imagination_lacks(kwargs):
    with pytest.raises(ValueError, match="leave ent_coef and cluster_window out"):
        make_small(CeSDDreamer, **kwargs)


@pytest.mark.parametrize("name", ["cesd_dreamer", "apt_dreamer", "diayn_dreamer"])
def test_yml(name):
    method = ALGORITHMS[name]
    entries = yaml.safe_load((hyperparams_folder() / f"{name}.yml").read_text())
    for env_id in entries:
        settings = preset("laptop", env_id, name)
        assert settings == preset("laptop", env_id, method) and settings.policy in method.policy_aliases
        method(settings.policy, DotEnv(32), device="cpu", **{**settings, "buffer_size": 2000})


@pytest.mark.slow
def test_a_task_is_learned_in_imagination():
    """Random actions get .44 per step, the best ones .875."""
    model = make_small(
        APTDreamer,
        DummyVecEnv([DotEnv] * 4),
        reward="extrinsic",
        learning_starts=400,
        buffer_size=5000,
        batch_size=8,
        learning_rate=1e-3,
        gamma=0.95,
        replay_buffer_kwargs={"sequence_length": 8},
        policy_kwargs={
            "net_arch": [64, 64],
            "horizon": 8,
            "n_starts": 64,
            "world_model_kwargs": {"deter_dim": 64, "n_categoricals": 8, "n_classes": 8, "hidden_dim": 64, "depth": 4},
        },
    )
    model.learn(1600)
    assert model.replay_buffer.rewards[:100].mean() < 0.5
    assert model.replay_buffer.rewards[300:400].mean() > 0.7
