"""From a pre-trained model to a task."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from batches import make_samples
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
from tuning import Push, saved

from sb3_cesd import DIAYN, CeSD
from sb3_cesd.common.observations import add_skill

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


@pytest.fixture
def released(make_released):
    """Without a value that skills share."""
    return make_released().learn(100)


def equal(first, second):
    return {name: bool((value == second[name]).all()) for name, value in first.items() if name in second}


def test_actor_and_trunk_are_loaded_and_the_rest_is_that_of_a_model_from_scratch(pretrained, finetune, make_model):
    model = finetune(skill=2)
    assert all(equal(model.actor.state_dict(), pretrained.actor.state_dict()).values())
    same = equal(model.critic.state_dict(), pretrained.critic.state_dict())
    assert {name.split(".")[0] for name, is_same in same.items() if is_same} == {"trunk"}
    assert not model.actor.optimizer.state and not model.critic.optimizer.state
    assert all(equal(model.critic.state_dict(), model.critic_target.state_dict()).values())
    assert (model.num_timesteps, model._n_updates, model.replay_buffer.size()) == (0, 0, 0)
    scratch = make_model(reward="extrinsic", seed=3)
    different = {name for name, same in equal(model.policy.state_dict(), scratch.policy.state_dict()).items() if not same}
    assert {".".join(name.split(".")[:2]) for name in different} == {"actor.mu", "critic.trunk", "critic_target.trunk"}
    # It begins with the random numbers of its seed
    scratch, nothing = make_model(reward="extrinsic", seed=3).learn(80), finetune(transfer=[], skill=0).learn(80)
    assert all(equal(scratch.policy.state_dict(), nothing.policy.state_dict()).values())


def test_head_of_the_skill_is_loaded_on_demand(released, finetune):
    model = finetune(model=released, skill=2, transfer=["critic_trunk", "critic_head"])
    observations, actions = th.as_tensor(OBS), th.zeros(2, 1)
    expected = released.critic.q_values(observations, actions, th.tensor([2, 2]))
    for values, expected_values in zip(model.critic.q_values(observations, actions, th.tensor([2, 2])), expected, strict=True):
        th.testing.assert_close(values, expected_values)
    assert (released.critic.q_values(observations, actions, th.tensor([1, 1]))[0] != expected[0]).all()


def test_arguments_are_those_of_the_pretraining_unless_changed(make_model, finetune):
    policy_kwargs = {"net_arch": [8, 8], "activation_fn": th.nn.ELU, "optimizer_kwargs": {"eps": 1e-6}}
    kwargs = {"gamma": 0.9, "n_steps": 2, "learning_rate": 1e-3, "train_freq": 16, "gradient_steps": 3}
    model = make_model(make_vec_env("Pendulum-v1", 4), **kwargs, policy_kwargs=policy_kwargs).learn(64)
    model.learning_starts = 5000
    task = CeSD.from_pretrained(saved(model), "Pendulum-v1", device="cpu", tau=0.5, policy_kwargs={"task_ensemble_size": 2})
    for name in ("gamma", "n_steps", "exploration_noise", "buffer_size", "learning_rate", "batch_size", "intrinsic_kwargs"):
        assert getattr(task, name) == getattr(model, name), name
    assert task.policy_kwargs == {**policy_kwargs, "task_ensemble_size": 2} and task.policy.n_heads == 2
    assert (task.tau, task.seed, task.verbose) == (0.5, None, 0)
    # The updates of URLB, whatever the pre-training had
    assert (task.train_freq.frequency, task.gradient_steps, task.learning_starts) == (2, 1, 4000)
    changed = {"train_freq": 5, "gradient_steps": 2, "learning_starts": 4500}
    task = CeSD.from_pretrained(saved(model), "Pendulum-v1", device="cpu", **changed)
    # A task that goes on keeps its own
    for each in (task, CeSD.load(saved(task), env="Pendulum-v1", device="cpu")):
        assert (each.train_freq.frequency, each.gradient_steps, each.learning_starts) == (5, 2, 4500)


@pytest.mark.parametrize("which", ["pretrained", "released"])
def test_only_one_head_exists_and_all_that_exists_is_trained(finetune, request, which):
    model = finetune(model=request.getfixturevalue(which))
    heads = [name for name, _ in model.critic.named_parameters() if name.startswith(("q_networks", "shared_networks"))]
    assert len(heads) == 2 * 2 * 2, "two critics of two layers, weight and bias"
    before = {name: value.clone() for name, value in model.policy.named_parameters()}
    model.learn(80)
    assert all((value != before[name]).any() for name, value in model.policy.named_parameters())
    # The one-hot of other skills is never on, so their columns get no gradient
    column = model.actor.mu[0].weight[:, 3 + (model.skill + 1) % 4]
    assert (column == before["actor.mu.0.weight"][:, 3 + (model.skill + 1) % 4]).all()


def test_reward_of_the_task_reaches_the_critic(finetune):
    """Hand-made: with a discount of 0, values are regressed on the n-step return in the buffer."""
    model = finetune(skill=1, target_policy_noise=0.0)
    batch = make_samples(th.as_tensor(OBS), th.as_tensor(OBS), th.tensor([3, 1]), th.zeros(2, 1))
    returns = th.tensor([[2.0], [-5.0]])
    relabelled = model.replay_buffer.relabel(batch._replace(rewards=returns, discounts=th.zeros(2, 1)))
    assert relabelled.rewards is returns and model.intrinsic.logs["train/n_step_return"].item() == -1.5
    assert relabelled.skills.tolist() == [1, 1], "of the skill that learns, whoever acted"
    q_values = model.critic.q_values(batch.observations, batch.actions, th.tensor([1, 1]))
    th.testing.assert_close(model.critic_loss(relabelled), sum(((q - returns) ** 2).mean() for q in q_values))


@pytest.mark.slow
@pytest.mark.parametrize("sign", [-1, 1])
def test_learns_the_task(make_model, finetune, sign):
    pretrained = make_model(Push()).learn(100)
    env = gym.wrappers.TransformReward(Push(), lambda reward: sign * reward)
    model = finetune(env, model=pretrained, learning_rate=3e-3, gamma=0.5)
    before = evaluate_policy(model, env, 5, warn=False)[0]
    assert evaluate_policy(model.learn(400), env, 5, warn=False)[0] > max(before, 15)


def test_random_skill_is_drawn_by_the_seed_and_learns_as_if_it_was_chosen(finetune):
    skills = [finetune(seed=seed).skill for seed in range(12)]
    assert len(set(skills)) == 4 and skills[:3] == [finetune(seed=seed).skill for seed in range(3)]
    drawn = finetune().learn(60)
    chosen = finetune(skill=drawn.skill).learn(60)
    assert all(equal(drawn.policy.state_dict(), chosen.policy.state_dict()).values())


def test_the_skill_of_the_task_is_followed_whatever_an_observation_bears(finetune):
    model = finetune(skill=2).learn(60)
    actions, _ = model.predict(OBS)
    for observation in (OBS, add_skill(OBS, np.eye(4, dtype=np.float32)[[0, 1]])):
        assert (model.predict(observation)[0] == model.predict(OBS, skill=2)[0]).all()
    with pytest.warns(UserWarning, match="Skill 2 learned the task"):
        assert (model.predict(OBS, skill=1)[0] != actions).any()
    with pytest.raises(ValueError, match="from_pretrained"):
        model.set_skill(1)


def test_statistics_of_the_task_are_those_of_the_pretraining(make_model):
    env = VecNormalize(make_vec_env(Push))
    pretrained = make_model(env).learn(100)
    file = saved(pretrained)
    for task in (make_vec_env(Push), VecNormalize(make_vec_env(Push))):
        file.seek(0)
        with pytest.warns(UserWarning, match=r"VecNormalize\.load"):
            CeSD.from_pretrained(file, task, device="cpu")
    file.seek(0)
    env.ret_rms.var = np.array(100.0)
    CeSD.from_pretrained(file, env, device="cpu")
    assert env.ret_rms.var == 1 and env.obs_rms.count > 100, "returns are those of other rewards"


def test_loading_with_the_reward_of_the_task_begins_one_and_loading_a_task_goes_on(pretrained):
    task = CeSD.load(saved(pretrained), "Pendulum-v1", device="cpu", reward="extrinsic", skill=3, learning_starts=40)
    assert (task.reward, task.skill, task.warm_up, task.num_timesteps) == ("extrinsic", 3, "skills", 0)
    again = CeSD.load(saved(task.learn(60)), "Pendulum-v1", device="cpu", skill="best", transfer=["actor"])
    assert (again.reward, again.skill, again.num_timesteps) == ("extrinsic", 3, 60)
    assert again.learn(60, reset_num_timesteps=False)._n_updates > task._n_updates


@pytest.mark.parametrize(
    ("kwargs", "name"),
    [
        ({"skill": 4}, "skill"),
        ({"skill": "good"}, "skill"),
        ({"transfer": ["nothing"]}, "transfer"),
        ({"learning_rat": 1e-3}, "learning_rate"),
        ({"gamma": 2.0}, "gamma"),
        ({"n_skills": 8}, "n_skills"),
        ({"skill": "best", "warm_up": "policy"}, "warm_up"),
        ({"policy_kwargs": {"net_arch": [8]}}, r"net_arch.*leave them out, or pass transfer=\(\)"),
        ({"warm_up": "skills", "learning_starts": 3}, "learning_starts"),
        ({"env": "MountainCarContinuous-v0"}, "Observation spaces"),
        ({"env": None}, "pass env"),
        ({"env": "CartPole-v1"}, "action space"),
    ],
)
def test_bad_arguments(finetune, kwargs, name):
    with pytest.raises(ValueError, match=name):
        finetune(**kwargs)


def test_the_head_of_the_best_skill_is_not_known_yet(released, finetune):
    with pytest.raises(ValueError, match="choose a skill"):
        finetune(model=released, skill="best", warm_up="skills", transfer=["critic_head"])


def test_files_that_hold_no_pretrained_model(make_model, finetune, pretrained, tmp_path):
    with pytest.raises(FileNotFoundError):
        CeSD.from_pretrained(tmp_path / "missing.zip", "Pendulum-v1")
    for model in (make_model().learn(30), finetune(skill=2).learn(60)):
        with pytest.raises(ValueError, match="pre-trained"):
            finetune(model=model)
    with pytest.raises(ValueError, match="DIAYN"):
        DIAYN.from_pretrained(saved(pretrained), "Pendulum-v1")
