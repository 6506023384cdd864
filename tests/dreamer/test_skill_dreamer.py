import numpy as np
import pytest
import torch as th
from dots import DotEnv, make_small
from stable_baselines3.common.callbacks import ConvertCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd import APTDreamer, CeSDDreamer, DIAYNDreamer, SkillOptions
from sb3_cesd.callbacks import SkillEvalCallback
from sb3_cesd.checkpoints import ResumableCheckpoint, remaining_timesteps, resume
from sb3_cesd.export import export_policy
from sb3_cesd.show import show_skills
from sb3_cesd.show.environments import load_model
from sb3_cesd.zoo.tuning import SearchSpace


def weights(model):
    """Copy all weights, by name."""
    parts = {name: part for name, part in model.get_parameters().items() if "optimizer" not in name}
    return {f"{name}.{key}": value.clone() for name, part in parts.items() for key, value in part.items()}


def changed(model, before):
    """Find the parts of a model of which a weight has changed."""
    return {name.rpartition(".")[0] for name, value in weights(model).items() if not th.equal(value, before[name])}


def played(model):
    """Actions of a skill in an episode, with the latent states carried on."""
    env, state, actions = DummyVecEnv([DotEnv]), None, []
    env.seed(3)
    observations = env.reset()
    for step in range(6):
        action, state = model.predict(observations, state, np.array([step == 0]), deterministic=True, skill=1)
        actions.append(action)
        observations = env.step(action)[0]
    return np.concatenate(actions)


@pytest.fixture(scope="module")
def trained():
    model = make_small(CeSDDreamer, DummyVecEnv([DotEnv] * 2))
    before = weights(model)
    model.learn(300)
    assert model._n_updates == 24 and model.is_constrained
    learned = " ".join(changed(model, before))
    for part in ("world_model.prior", "world_model.encoder", "world_model.decoder", "actor", "critic.q", "intrinsic"):
        assert part in learned, part
    # The rewards of the environment are of no concern
    assert "reward_net" not in learned
    return model


def test_logs_do_not_keep_the_graph_of_the_imagination(trained):
    assert {name for name, value in trained.intrinsic.logs.items() if value.requires_grad} == set()


def test_save_load_and_go_on(trained, tmp_path):
    trained.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model.zip")
    assert type(loaded) is CeSDDreamer and np.array_equal(played(loaded), played(trained))
    states = [each.policy.world_model.optimizer.state_dict()["state"][0]["exp_avg"] for each in (loaded, trained)]
    assert th.equal(*states)
    again = CeSDDreamer.load(tmp_path / "model", DummyVecEnv([DotEnv] * 2), device="cpu")
    again.learn(100, reset_num_timesteps=False)
    assert again.num_timesteps == 400 and again._n_updates > 24
    trained.save_replay_buffer(tmp_path / "buffer")
    lengths = {"replay_buffer_kwargs": {"sequence_length": 4}}
    shorter = CeSDDreamer.load(tmp_path / "model", DummyVecEnv([DotEnv] * 2), device="cpu", **lengths)
    shorter.load_replay_buffer(tmp_path / "buffer")
    assert shorter.replay_buffer.sample(3).is_first.shape == (3, 4)


def test_latent_states_are_carried_on(trained):
    observations = np.zeros((1, 16, 16, 1), np.uint8)
    first, state = trained.predict(observations, deterministic=True, skill=0)
    second, _ = trained.predict(observations, state, np.array([False]), deterministic=True, skill=0)
    again, _ = trained.predict(observations, state, np.array([True]), deterministic=True, skill=0)
    assert not np.array_equal(first, second) and np.array_equal(first, again)
    # By whatever plays skills
    assert np.isfinite(evaluate_policy(trained, trained.env, n_eval_episodes=2, warn=False)[0])
    shown = show_skills(trained, DotEnv(), n_steps=5, n_rollouts=2, n_frames=0)
    assert np.isfinite(shown.metrics["knn_accuracy"])
    options = SkillOptions(DotEnv(), trained, duration=6)
    options.reset(seed=3)
    options.step(1)
    assert len(options._memory["state"][0]) == 1


def test_fine_tune_in_imagination(trained, tmp_path):
    trained.save(tmp_path / "model")
    arguments = {"skill": "best", "learning_starts": 60, "seed": 0, "device": "cpu"}
    task = CeSDDreamer.from_pretrained(tmp_path / "model", DotEnv(), **arguments)
    ours, before = weights(trained), weights(task)
    taken_over = [name for name in ours if name.startswith(("policy.world_model.", "policy.actor."))]
    assert all(th.equal(before[name], ours[name]) for name in taken_over)
    task.learn(120)
    learned = " ".join(changed(task, before))
    assert task.skill in range(4) and all(part in learned for part in ("reward_net", "continue_net", "actor", "critic."))


def test_resume_is_the_same_run(tmp_path):
    def checkpoint(name):
        return ResumableCheckpoint(tmp_path / name, save_freq=100)

    whole, half = make_small(APTDreamer).learn(200, checkpoint("whole")), make_small(APTDreamer)
    half.learn(200, [checkpoint("half"), ConvertCallback(lambda *_: half.num_timesteps < 120)])
    model = resume(tmp_path / "half", DotEnv(), device="cpu")
    model.learn(remaining_timesteps(model), checkpoint("half"), reset_num_timesteps=False)
    assert model.num_timesteps == 200 and changed(model, weights(whole)) == set()


def test_what_there_is_not(tmp_path):
    model = make_small(DIAYNDreamer, buffer_size=100)
    model.learn(100, SkillEvalCallback(DotEnv(), eval_freq=100, n_eval_episodes=8))
    with pytest.raises(ValueError, match="DreamerPolicy"):
        export_policy(model, tmp_path)
    with pytest.raises(ValueError, match="leave -optimize out"):
        SearchSpace(CeSDDreamer, {}, {})
    with pytest.raises(ValueError, match="raise buffer_size"):
        make_small(APTDreamer, buffer_size=5).learn(70)
    with pytest.raises(TypeError, match=r"pass policy_kwargs=dict\(world_model_kwargs=dict\(deter_dim="):
        APTDreamer("MlpPolicy", DotEnv(), deter_dim=8)
    for kwargs in ({"ent_coef": "auto"}, {"intrinsic_kwargs": {"cluster_window": 5}}):
        with pytest.raises(ValueError, match="leave ent_coef and cluster_window out"):
            make_small(CeSDDreamer, **kwargs)


@pytest.mark.slow
def test_a_task_is_learned_in_imagination():
    """Random actions get .44 per step, the best ones .875."""
    sizes = {"deter_dim": 64, "n_categoricals": 8, "n_classes": 8, "hidden_dim": 64, "depth": 4}
    policy_kwargs = {"net_arch": [64, 64], "horizon": 8, "n_starts": 64, "world_model_kwargs": sizes}
    arguments = {"learning_starts": 400, "batch_size": 8, "learning_rate": 1e-3, "gamma": 0.95, "policy_kwargs": policy_kwargs}
    model = make_small(APTDreamer, DummyVecEnv([DotEnv] * 4), reward="extrinsic", **arguments)
    rewards = model.learn(1600).replay_buffer.rewards
    assert rewards[:100].mean() < 0.5 and rewards[300:400].mean() > 0.7
