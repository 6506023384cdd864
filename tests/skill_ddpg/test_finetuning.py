"""From a pre-trained model to a task."""

import warnings
from typing import get_args

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from batches import make_samples
from gymnasium.envs.classic_control import PendulumEnv
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import VecNormalize
from tuning import Push, saved

from sb3_cesd import APT, CIC, DADS, DIAYN, RND, CeSD, SkillOptions, VecSkillObservation
from sb3_cesd.common.observations import add_skill
from sb3_cesd.intrinsic import ExtrinsicReward
from sb3_cesd.skill_ddpg import finetuning

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)
SMALL = {"net_arch": [16]}
#: Arguments of the intrinsic rewards of the other methods
OTHERS = {
    DIAYN: SMALL,
    DADS: SMALL,
    CIC: {**SMALL, "features_dim": 4, "entropy_kwargs": {"k": 3}},
    APT: {"encoder_kwargs": {**SMALL, "features_dim": 4}, "entropy_kwargs": {"k": 3}},
    RND: {**SMALL, "features_dim": 4},
}


@pytest.fixture
def released(make_released):
    """Without a value that skills share."""
    return make_released().learn(100)


def equal(first, second):
    return {name: bool((value == second[name]).all()) for name, value in first.items() if name in second}


# What is loaded


def test_actor_and_trunk_are_loaded_and_the_rest_is_fresh(pretrained, finetune):
    model = finetune(skill=2)
    assert all(equal(model.actor.state_dict(), pretrained.actor.state_dict()).values())
    same = equal(model.critic.state_dict(), pretrained.critic.state_dict())
    assert {name.split(".")[0] for name, is_same in same.items() if is_same} == {"trunk"}
    assert not same["shared_networks.0.0.weight"] and not same["shared_networks.1.2.weight"]
    assert not model.actor.optimizer.state and not model.critic.optimizer.state
    assert all(equal(model.critic.state_dict(), model.critic_target.state_dict()).values())
    assert (model.num_timesteps, model._n_updates, model.replay_buffer.size()) == (0, 0, 0)


def test_what_is_not_loaded_is_that_of_a_model_from_scratch(finetune, make_model):
    scratch = make_model(reward="extrinsic", seed=3).policy.state_dict()
    model = finetune(transfer=[]).policy.state_dict()
    assert model.keys() == scratch.keys() and all(equal(model, scratch).values())
    model = finetune().policy.state_dict()
    different = {name for name, same in equal(model, scratch).items() if not same}
    assert {".".join(name.split(".")[:2]) for name in different} == {"actor.mu", "critic.trunk", "critic_target.trunk"}


def test_from_scratch_and_no_transfer_learn_the_same(finetune, make_model):
    """Also with the same skill, as the one-hot is an input."""
    first = make_model(reward="extrinsic", seed=3).learn(80)
    second = finetune(transfer=[], skill=0).learn(80)
    assert first._n_updates == second._n_updates > 0
    assert all(equal(first.policy.state_dict(), second.policy.state_dict()).values())


@pytest.mark.parametrize("part", ["actor", "critic_trunk"])
def test_parts_can_be_left_out(pretrained, finetune, part):
    model = finetune(transfer=[part])
    same = {
        "actor": equal(model.actor.state_dict(), pretrained.actor.state_dict())["mu.0.weight"],
        "critic_trunk": equal(model.critic.state_dict(), pretrained.critic.state_dict())["trunk.0.weight"],
    }
    assert same == {"actor": part == "actor", "critic_trunk": part == "critic_trunk"}


def test_head_of_the_skill_is_loaded_on_demand(released, finetune):
    model = finetune(model=released, skill=2, transfer=["critic_trunk", "critic_head"])
    observations, actions = th.as_tensor(OBS), th.zeros(2, 1)
    expected = released.critic.q_values(observations, actions, th.tensor([2, 2]))
    for values, expected_values in zip(model.critic.q_values(observations, actions, th.tensor([2, 2])), expected, strict=True):
        th.testing.assert_close(values, expected_values)
    for values in (released.critic.q_values(observations, actions, th.tensor([1, 1])), expected[::-1]):
        assert (values[0] != expected[0]).all(), "heads and twins differ"


def test_moments_are_loaded_on_demand(released, finetune):
    model = finetune(model=released, skill=3, transfer=get_args(finetuning.Part))
    ours, theirs = model.critic.q_networks[1].layers[0].weight, released.critic.q_networks[1].layers[0].weight
    assert ours.shape[0] == 1 and (ours[0] == theirs[3]).all()
    for key in ("exp_avg", "exp_avg_sq"):
        assert (model.critic.optimizer.state[ours][key][0] == released.critic.optimizer.state[theirs][key][3]).all()
    steps = {float(state["step"]) for state in model.actor.optimizer.state.values()}
    assert steps == {released._n_updates} and len(model.actor.optimizer.state) == len(list(model.actor.parameters()))
    model.learn(60)  # the optimizers take these moments
    # Without heads they are those of the trunk alone
    model = finetune(model=released, transfer=["critic_trunk", "optimizers"])
    assert len(model.critic.optimizer.state) == 4 and not model.actor.optimizer.state


def test_arguments_are_those_of_the_pretraining_unless_changed(make_model, finetune):
    model = make_model(gamma=0.9, n_steps=2, exploration_noise=0.1, learning_rate=1e-3, gradient_steps=None).learn(60)
    tuned = finetune(model=model, batch_size=16, tau=0.5, env=make_vec_env("Pendulum-v1", 3))
    for name in ("gamma", "n_steps", "exploration_noise", "buffer_size", "learning_rate", "policy_kwargs", "intrinsic_kwargs"):
        assert getattr(tuned, name) == getattr(model, name), name
    assert (tuned.batch_size, tuned.tau, tuned.learning_starts) == (16, 0.5, 40)
    assert tuned.replay_buffer.gamma == 0.9 and tuned.gradient_steps == 3
    assert tuned.seed == 3 and tuned.verbose == 0


def test_arguments_of_the_policy_add_to_those_of_the_pretraining(make_model, finetune):
    policy_kwargs = {"net_arch": [8, 8], "activation_fn": th.nn.ELU, "optimizer_kwargs": {"eps": 1e-6}}
    model = make_model(policy_kwargs=policy_kwargs).learn(60)
    task = finetune(model=model, skill=1, policy_kwargs={"task_ensemble_size": 2})
    assert task.policy_kwargs == {**policy_kwargs, "task_ensemble_size": 2} and task.policy.n_heads == 2
    assert (task.predict(OBS)[0] == model.predict(OBS, skill=1)[0]).all()
    with pytest.raises(ValueError, match=r"activation_fn=.*Tanh.* turn the skills of .*ELU.*: leave activation_fn out"):
        finetune(model=model, policy_kwargs={"activation_fn": th.nn.Tanh})
    with pytest.raises(ValueError, match=r"makes networks of other shapes than those of .*: leave policy_kwargs out"):
        finetune(model=model, policy_kwargs={"net_arch": [8, 4]})
    assert finetune(model=model, policy_kwargs={"optimizer_class": th.optim.Adam}).policy.optimizer_kwargs["eps"] == 1e-6
    other = finetune(model=model, policy_kwargs={"optimizer_class": th.optim.SGD})
    assert isinstance(other.actor.optimizer, th.optim.SGD) and not other.policy.optimizer_kwargs, "those of Adam do not fit"


def test_task_has_the_updates_of_urlb_whatever_the_pretraining_had(make_model, tmp_path):
    model = make_model(env=make_vec_env("Pendulum-v1", 4), train_freq=16, gradient_steps=3, learning_starts=8).learn(64)
    model.learning_starts = 5000
    model.save(tmp_path / "model.zip")
    tuned = CeSD.from_pretrained(tmp_path / "model.zip", "Pendulum-v1", device="cpu")
    assert tuned.learning_starts == 4000
    tuned = CeSD.from_pretrained(tmp_path / "model.zip", "Pendulum-v1", device="cpu", learning_starts=40).learn(60)
    assert tuned.train_freq.frequency == 2 and tuned._n_updates == 10
    changed = {"train_freq": 5, "gradient_steps": 2, "learning_starts": 4500}
    tuned = CeSD.from_pretrained(tmp_path / "model.zip", "Pendulum-v1", device="cpu", **changed)
    assert (tuned.train_freq.frequency, tuned.gradient_steps, tuned.learning_starts) == (5, 2, 4500)
    # A task that goes on keeps its own
    tuned.save(tmp_path / "tuned.zip")
    again = CeSD.load(tmp_path / "tuned.zip", env="Pendulum-v1", device="cpu")
    assert (again.train_freq.frequency, again.gradient_steps, again.learning_starts) == (5, 2, 4500)


def test_without_a_seed_runs_differ(pretrained):
    """The seed of the pre-training must not leak into fine-tuning."""
    models = [CeSD.from_pretrained(saved(pretrained), "Pendulum-v1", device="cpu") for _ in range(2)]
    first, second = (model.critic.shared_networks[0][0].weight for model in models)
    assert (first != second).any()


# Only one head, only the task


@pytest.mark.parametrize("which", ["pretrained", "released"])
def test_only_one_head_exists_and_all_that_exists_is_trained(finetune, request, which):
    model = finetune(model=request.getfixturevalue(which))
    heads = [name for name, _ in model.critic.named_parameters() if name.startswith(("q_networks", "shared_networks"))]
    assert len(heads) == 2 * 2 * 2, "two critics of two layers, weight and bias"
    for parameter in model.critic.q_networks.parameters():
        assert parameter.shape[0] == 1
    before = {name: value.clone() for name, value in model.policy.named_parameters()}
    model.learn(80)
    # The one-hot of other skills is never on, so their columns get no gradient
    assert all((value != before[name]).any() for name, value in model.policy.named_parameters())
    column = model.actor.mu[0].weight[:, 3 + (model.skill + 1) % 4]
    assert (column == before["actor.mu.0.weight"][:, 3 + (model.skill + 1) % 4]).all()


def test_reward_of_the_task_reaches_the_critic(finetune):
    """Hand-made: with a discount of 0, values are regressed on the n-step return in the buffer."""
    model = finetune(skill=1, target_policy_noise=0.0)
    batch = make_samples(th.as_tensor(OBS), th.as_tensor(OBS), th.tensor([3, 1]), th.zeros(2, 1))
    returns = th.tensor([[2.0], [-5.0]])
    batch = batch._replace(rewards=returns, discounts=th.zeros(2, 1))
    relabelled = model.intrinsic.relabel(batch)
    assert relabelled.rewards is returns and model.intrinsic.logs["train/n_step_return"].item() == -1.5
    assert all(value is getattr(batch, name) for name, value in relabelled._asdict().items() if name != "skills")
    assert relabelled.skills.tolist() == [1, 1], "of the skill that learns, whoever acted"
    q_values = model.critic.q_values(batch.observations, batch.actions, th.tensor([1, 1]))
    expected = sum(((q - returns) ** 2).mean() for q in q_values)
    th.testing.assert_close(model.critic_loss(model._task_batch(relabelled)), expected)


def test_the_buffer_holds_the_reward_of_the_task(finetune):
    model = finetune().learn(80)
    assert isinstance(model.intrinsic, ExtrinsicReward)
    buffer = model.replay_buffer
    samples = buffer.sample(200)
    pairs = model._task_batch(model.intrinsic.relabel(samples)).pairs
    assert (samples.rewards < 0).all() and (pairs.rewards == samples.rewards).all()
    rewards = buffer.rewards[:80]
    assert 3 * rewards.min() <= samples.rewards.min() < samples.rewards.max() <= rewards.max()


@pytest.mark.parametrize("sign", [-1, 1])
def test_learns_the_task(make_model, finetune, sign):
    pretrained = make_model(Push()).learn(100)
    env = gym.wrappers.TransformReward(Push(), lambda reward: sign * reward)
    model = finetune(env, model=pretrained, learning_rate=3e-3, gamma=0.5)
    before = evaluate_policy(model, env, 5, warn=False)[0]
    model.learn(400)
    assert evaluate_policy(model, env, 5, warn=False)[0] > max(before, 15)


# The skill


def test_random_skill_is_drawn_once_by_the_seed(finetune):
    skills = [finetune(seed=seed).skill for seed in range(12)]
    assert len(set(skills)) == 4 and skills == [finetune(seed=seed).skill for seed in range(12)]


def test_a_drawn_skill_learns_as_the_same_skill_chosen(finetune):
    drawn = finetune().learn(60)
    chosen = finetune(skill=drawn.skill).learn(60)
    assert all(equal(drawn.policy.state_dict(), chosen.policy.state_dict()).values())


@pytest.mark.filterwarnings("ignore:Training and eval env are not of the same type")
def test_skill_is_followed_in_training_predictions_and_evaluations(finetune):
    model = finetune(skill=2).learn(250)
    assert (model.replay_buffer.skills[:250] == 2).all()
    state = None
    for _ in range(3):
        actions, state = model.predict(OBS, state=state, episode_start=np.ones(2, dtype=bool))
        assert (actions == model.predict(OBS, skill=2)[0]).all()
    assert (model.predict(OBS, skill=1)[0] != actions).any()
    # An observation that bears another skill does not count
    other = add_skill(OBS, np.eye(4, dtype=np.float32)[[0, 1]])
    assert (model.predict(other)[0] == actions).all()
    reference, _ = evaluate_policy(model, seeded_env(), 3, warn=False)
    for env in (seeded_env(), VecSkillObservation(seeded_env(), 4)):
        callback = EvalCallback(env, n_eval_episodes=3, eval_freq=10, verbose=0)
        callback.init_callback(model)
        assert evaluate_policy(model, callback.eval_env, 3, warn=False)[0] == pytest.approx(reference)


def seeded_env():
    env = make_vec_env("Pendulum-v1")
    env.seed(5)
    return env


def test_environments_that_come_with_skills_follow_the_skill_of_the_task(finetune, make_model):
    env = VecSkillObservation(make_vec_env("Pendulum-v1", 2), 4, skill_duration=5)
    model = finetune(env, skill=3).learn(60)
    assert (model.replay_buffer.skills[:30] == 3).all()
    model = make_model(VecSkillObservation(make_vec_env("Pendulum-v1", 2), 4, skill_duration=5), reward="extrinsic")
    assert (model.learn(60).replay_buffer.skills[:30] == 0).all()
    model.set_env(VecSkillObservation(make_vec_env("Pendulum-v1", 2), 4, skill_duration=5))
    assert (model.learn(60).replay_buffer.skills[:60] == 0).all()


class Pushing:
    """A policy whose skills push by a constant."""

    n_skills = 4
    pushes = (0.1, 0.5, -0.3, 0.2)

    def predict(self, observation, deterministic=False, skill=None):
        return np.full((len(observation), 1), self.pushes[skill], dtype=np.float32), None


@pytest.mark.parametrize(("n_envs", "n_episodes", "n_steps"), [(1, 2, 40), (3, 2, 20 * 3), (2, 3, 40 * 2)])
def test_every_skill_is_played_for_whole_episodes(n_envs, n_episodes, n_steps):
    zero_shot = finetuning.play_skills(Pushing(), make_vec_env(Push, n_envs), n_episodes, seed=0)
    np.testing.assert_allclose(zero_shot.returns, 20 * np.array(Pushing.pushes), rtol=1e-5)
    assert zero_shot.n_timesteps == 4 * n_steps
    assert str(zero_shot) == f"2, 10, -6, 4 (took {4 * n_steps} steps, not part of num_timesteps)"


def test_returns_are_not_normalised_and_statistics_are_left_alone():
    env = VecNormalize(make_vec_env(Push), gamma=0.9)
    env.reset()
    env.ret_rms.var = np.array(100.0)
    mean = env.obs_rms.mean.copy()
    zero_shot = finetuning.play_skills(Pushing(), env, 2)
    np.testing.assert_allclose(zero_shot.returns, 20 * np.array(Pushing.pushes), rtol=1e-5)
    assert (env.obs_rms.mean == mean).all() and env.training


def test_best_skill_is_the_one_with_the_highest_return(make_model, finetune):
    pretrained = make_model(Push(), seed=1).learn(100)
    model = finetune(Push(), model=pretrained, skill="best", n_eval_episodes=2)
    returns = []
    for skill in range(4):
        pretrained.set_skill(skill)
        env = make_vec_env(Push)
        env.seed(3)
        returns.append(evaluate_policy(pretrained, env, 2)[0])
    np.testing.assert_allclose(model.zero_shot.returns, returns, rtol=1e-5)
    assert model.skill == np.argmax(returns) and len(set(returns)) == 4
    assert model.zero_shot.n_timesteps == 4 * 2 * 20 and model.num_timesteps == 0
    assert all(equal(model.actor.state_dict(), pretrained.actor.state_dict()).values())


def test_steps_of_the_choice_are_logged_and_printed(finetune, capsys):
    model = finetune(skill="best", n_eval_episodes=1, verbose=1)
    output = capsys.readouterr().out
    assert f"Zero-shot returns of all skills: {model.zero_shot}" in output and f"Fine-tuning skill {model.skill} of" in output
    seen = {}

    class Writer(KVWriter):
        def write(self, key_values, key_excluded, step=0):
            seen.update(key_values)

    model.set_logger(Logger(None, [Writer()]))
    model.learn(250, log_interval=1)
    assert seen["time/zero_shot_timesteps"] == 4 * 200
    assert seen["train/n_step_return"] < 0 and seen[f"rollout/ep_rew_skill_{model.skill:02d}"] < 0
    assert not [name for name in seen if name.startswith(("intrinsic/", "clusters/"))]


@pytest.mark.parametrize("warm_up", ["random", "policy"])
def test_first_steps_only_collect(finetune, warm_up):
    model = finetune(skill=1, warm_up=warm_up, learning_starts=60, exploration_noise=0.0)
    policy = model.policy.state_dict()
    policy = {name: value.clone() for name, value in policy.items()}
    model.learn(60)
    assert model._n_updates == 0 and all(equal(policy, model.policy.state_dict()).values())
    buffer = model.replay_buffer
    expected = model.policy.scale_action(model.predict(buffer.observations["observation"][:60, 0])[0])
    np.testing.assert_allclose(expected, buffer.actions[:60, 0], atol=1e-5) if warm_up == "policy" else None
    assert (np.abs(expected - buffer.actions[:60, 0]) > 0.01).any() == (warm_up == "random")


# A model as any other


def test_save_load_and_learn_on(finetune, tmp_path):
    model = finetune(skill="best", n_eval_episodes=1).learn(80)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    loaded = CeSD.load(tmp_path / "model", env=make_vec_env("Pendulum-v1"), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer")
    assert (loaded.skill, loaded.reward, loaded.num_timesteps) == (model.skill, "extrinsic", 80)
    assert (loaded.zero_shot.returns == model.zero_shot.returns).all()
    assert (loaded.predict(OBS)[0] == model.predict(OBS, skill=model.skill)[0]).all()
    assert (CeSD.load(tmp_path / "model").predict(OBS)[0] == model.predict(OBS)[0]).all()
    for each in (model, loaded):
        each.set_env(make_vec_env("Pendulum-v1"))
        each.set_random_seed(7)
        each.learn(40, reset_num_timesteps=False)
        assert each.num_timesteps == 120
    assert all(equal(model.policy.state_dict(), loaded.policy.state_dict()).values())
    assert (loaded.replay_buffer.skills[:120] == model.skill).all() and loaded.replay_buffer.size() == 120


def test_load_with_extrinsic_reward_is_from_pretrained(pretrained, tmp_path):
    """What RL Zoo does for -i."""
    pretrained.save(tmp_path / "model.zip")
    kwargs = {"seed": 3, "device": "cpu", "skill": 2, "learning_starts": 30}
    loaded = CeSD.load(tmp_path / "model.zip", env=make_vec_env("Pendulum-v1"), reward="extrinsic", **kwargs)
    expected = CeSD.from_pretrained(tmp_path / "model", "Pendulum-v1", **kwargs)
    assert loaded.skill == 2 and all(equal(loaded.policy.state_dict(), expected.policy.state_dict()).values())
    # Without it, pre-training goes on
    assert CeSD.load(tmp_path / "model.zip", env=make_vec_env("Pendulum-v1")).reward == "intrinsic"
    # The same arguments go on with a model that is fine-tuned already
    loaded.learn(60).save(tmp_path / "tuned.zip")
    again = CeSD.load(tmp_path / "tuned.zip", reward="extrinsic", skill="best", n_eval_episodes=3, transfer=["actor"])
    assert again.skill == 2 and again._n_updates == loaded._n_updates > 0
    assert not hasattr(again, "n_eval_episodes") and not hasattr(again, "transfer")


@pytest.mark.parametrize("arguments", [{"transfer": ["actor"]}, {"n_eval_episodes": 3}], ids=["transfer", "n_eval_episodes"])
def test_arguments_of_a_task_are_refused_where_pretraining_goes_on(pretrained, arguments):
    with pytest.raises(ValueError, match=rf"{next(iter(arguments))} only matter.*pass reward='extrinsic' or .*leave them out"):
        CeSD.load(saved(pretrained), env="Pendulum-v1", **arguments)


def test_learning_starts_may_be_a_whole_float(pretrained):
    """As in a yml file that says ``!!float 1e2``."""
    model = CeSD.from_pretrained(saved(pretrained), "Pendulum-v1", learning_starts=1e2, device="cpu").learn(110)
    assert model._n_updates == 5


def test_buffer_of_the_pretraining_is_left_out(pretrained, finetune, tmp_path):
    pretrained.save_replay_buffer(tmp_path / "buffer.pkl")
    model = finetune()
    with pytest.warns(UserWarning, match="holds the pre-training, not the task.*Move the file away"):
        model.load_replay_buffer(tmp_path / "buffer.pkl")
    assert model.replay_buffer.size() == 0
    model.learn(60)


def test_buffer_of_another_task_is_left_out(pretrained, tmp_path):
    gym.register("OtherPendulum-v1", "gymnasium.envs.classic_control:PendulumEnv", max_episode_steps=200)
    path = tmp_path / "buffer.pkl"
    try:
        task = CeSD.from_pretrained(saved(pretrained), "Pendulum-v1", device="cpu").learn(60)
        task.save_replay_buffer(path)
        same, other, unknown = (
            CeSD.from_pretrained(saved(pretrained), env, device="cpu")
            for env in ("Pendulum-v1", "OtherPendulum-v1", PendulumEnv())
        )
        for model in (same, unknown):
            model.load_replay_buffer(path)
            assert model.replay_buffer.size() == 60
        with pytest.warns(UserWarning, match="holds the task Pendulum-v1, not OtherPendulum-v1: it was not loaded, .* Move"):
            other.load_replay_buffer(path)
        assert other.replay_buffer.size() == 0
    finally:
        del gym.registry["OtherPendulum-v1"]


def test_normalised_observations(make_model, tmp_path):
    env = VecNormalize(make_vec_env("Pendulum-v1"))
    pretrained = make_model(env).learn(100)
    model = CeSD.from_pretrained(saved(pretrained), env, skill="best", n_eval_episodes=1, warm_up="random", device="cpu")
    assert (model.zero_shot.returns < -100).all(), "not normalised"
    model.learn(80)
    assert model.get_vec_normalize_env() is env and model._n_updates == 20


def test_a_task_that_is_normalised_unlike_its_pretraining_warns(pretrained):
    message = r"pre-trained on observations as they are, .*: pass the task without VecNormalize, or with norm_obs=False"
    with pytest.warns(UserWarning, match=message):
        CeSD.from_pretrained(saved(pretrained), VecNormalize(make_vec_env("Pendulum-v1")), device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CeSD.from_pretrained(saved(pretrained), VecNormalize(make_vec_env("Pendulum-v1"), norm_obs=False), device="cpu")


@pytest.mark.parametrize("model_class", list(OTHERS))
def test_other_methods_fine_tune_as_well(model_class, tmp_path):
    kwargs = {"n_skills": 4, "learning_starts": 40, "batch_size": 32, "buffer_size": 1000, "device": "cpu"}
    kwargs.update(policy_kwargs={"net_arch": [16, 16]}, intrinsic_kwargs=OTHERS[model_class])
    pretrained = model_class("MlpPolicy", "Pendulum-v1", seed=0, **kwargs).learn(80)
    pretrained.save(tmp_path / "model.zip")
    model = model_class.from_pretrained(tmp_path / "model.zip", "Pendulum-v1", skill=1, warm_up="random", seed=3, device="cpu")
    assert all(equal(model.actor.state_dict(), pretrained.actor.state_dict()).values())
    same = equal(model.critic.state_dict(), pretrained.critic.state_dict())
    assert same["trunk.0.weight"] and not same["q_networks.0.0.weight"]
    vectors = model.skill_space.vectors
    assert (model.learn(80).replay_buffer.skills[:80] == model.skill_space.decode(vectors[1])).all()
    assert (model.predict(OBS)[0] == model.predict(OBS, skill=1)[0]).all()
    model.save(tmp_path / "tuned.zip")
    assert (model_class.load(tmp_path / "tuned.zip").predict(OBS)[0] == model.predict(OBS)[0]).all()
    scratch = model_class("MlpPolicy", "Pendulum-v1", reward="extrinsic", **kwargs).learn(80)
    assert scratch._n_updates == 20


# Bad input


def test_a_fine_tuned_model_has_one_skill(finetune):
    model = finetune(skill=1)
    model.set_skill(1)
    for skill in (2, None):
        with pytest.raises(ValueError, match=r"Skill 1 learns the task.*fine-tune the pre-trained model again"):
            model.set_skill(skill)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"skill": 4}, "Unknown skill 4: .* choose an integer from 0 to 3"),
        ({"skill": -1}, "Unknown skill -1"),
        ({"skill": "worst"}, "Unknown skill 'worst': choose 'random', 'best' or an integer from 0 to 3"),
        ({"skill": None}, "Unknown skill None: .* choose an integer"),
        ({"transfer": ["actor", "critic"]}, r"choose some of 'actor', 'critic_trunk', 'critic_head', 'optimizers'"),
        ({"transfer": "actor"}, "choose some of .*, as a list"),
        ({"n_eval_episodes": 0}, "set n_eval_episodes above 0"),
        ({"n_skills": 8}, "n_skills=8 does not fit .* pass n_skills=4 or leave it out"),
        ({"ent_coef": 0.1}, "ent_coef=0.1 does not fit .* pass ent_coef=None or leave it out"),
        ({"reward": "intrinsic"}, r"leave reward out, or use load\(\) to go on pre-training"),
        ({"warm_up": "none"}, "Unknown warm_up 'none': choose 'random', 'policy' or 'skills'"),
        (
            {"warm_up": "skills", "learning_starts": 3},
            "less than one step for each of 4 skills: raise it, or choose a warm_up other than 'skills'",
        ),
        ({"warm_up": "skills", "skill": "best", "transfer": ["critic_head"]}, "leave 'critic_head' out, or choose another"),
        (
            {"env": "MountainCarContinuous-v0", "n_skills": 8},
            "pre-trained in another domain: choose a task with the same observations",
        ),
        ({"env": "CartPole-v1"}, "use an environment with a Box action space"),
    ],
)
def test_bad_arguments(finetune, kwargs, message):
    with pytest.raises(ValueError, match=message):
        finetune(**kwargs)


def test_unknown_reward(make_model):
    with pytest.raises(ValueError, match="Unknown reward 'task': choose 'intrinsic' or 'extrinsic'"):
        make_model(reward="task")


def test_files_that_hold_no_pretrained_model(make_model, finetune, pretrained, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no pre-trained model .*missing.zip: pass the path of the zip file"):
        CeSD.from_pretrained(tmp_path / "missing.zip", "Pendulum-v1")
    with pytest.raises(ValueError, match=r"never pre-trained \(0 updates after 30 steps\): let it learn for more"):
        finetune(model=make_model().learn(30))
    with pytest.raises(ValueError, match="trained on a task already, with skill 2: load it to go on"):
        finetune(model=finetune(skill=2).learn(60))
    unsettled = finetune(skill="best", warm_up="skills", learning_starts=200)
    with pytest.raises(ValueError, match="with the skill that does best in the warm-up: load it to go on"):
        finetune(model=unsettled)
    with pytest.raises(ValueError, match=r"^The skill that does best in the warm-up learns the task, the others do not"):
        unsettled.set_skill(2)
    with pytest.raises(ValueError, match="learned a task with the skill that does best in the warm-up alone"):
        SkillOptions(gym.make("Pendulum-v1"), unsettled)
    pretrained.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match=r"not saved by DIAYN.*load it with the class that saved it"):
        DIAYN.from_pretrained(tmp_path / "model.zip", "Pendulum-v1")
    (tmp_path / "model.zip").write_bytes((tmp_path / "model.zip").read_bytes()[:500])
    with pytest.raises(ValueError, match="not a complete saved model"):
        CeSD.from_pretrained(tmp_path / "model.zip", "Pendulum-v1")


def test_what_was_settled_stays(finetune, pretrained, tmp_path):
    finetune(skill=2).save(tmp_path / "tuned.zip")
    with pytest.raises(ValueError, match="in which skill 2 learns the task: leave skill out"):
        CeSD.load(tmp_path / "tuned.zip", skill=1)
    with pytest.raises(ValueError, match="pass reward='extrinsic' or leave it out"):
        CeSD.load(tmp_path / "tuned.zip", reward="intrinsic")
    pretrained.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match="can't be fine-tuned without a task: pass env"):
        CeSD.load(tmp_path / "model.zip", reward="extrinsic")


class Narrow(gym.ObservationWrapper):
    """The same observations, of which other bounds are known."""

    def __init__(self):
        super().__init__(gym.make("Pendulum-v1"))
        self.observation_space = gym.spaces.Box(-20, 20, (3,))

    def observation(self, observation):
        return observation


def test_other_bounds_are_told_from_another_domain(finetune):
    message = "The shapes match, but bounds or dtypes do not: give the task those of the pre-training"
    with pytest.raises(ValueError, match=message):
        finetune(env=Narrow())


def test_predictions_of_a_skill_that_did_not_learn_the_task_warn(finetune):
    model = finetune(skill=1)
    model.predict(OBS, skill=2)
    model.learn(60)
    model.predict(OBS, skill=1)
    model.predict(OBS)
    with pytest.warns(UserWarning, match="^Skill 1 learned the task, the others did not: leave skill out"):
        model.predict(OBS, skill=2)
