"""Numbers that are not finite: they enter neither weights nor files, and the error says what to do."""

import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from learned import parameters_of
from sb3_cesd.common.gradient_steps import GradientSteps, RunningStatistics, TrainingDiverged
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd import RND, CeSD, registry
from sb3_cesd.common.cuda import fixed_shapes
from sb3_cesd.common.tensors import frozen

NAN_OR_INF = [math.nan, math.inf, -math.inf]


def all_tensors(state):
    """List the tensors of nested dictionaries and lists."""
    if isinstance(state, th.Tensor):
        return [state]
    values = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else []
    return [tensor for value in values for tensor in all_tensors(value)]


def is_finite(model):
    return all(tensor.isfinite().all() for tensor in all_tensors(model.get_parameters()))


def spoil(context, name, when, factor=math.nan):
    """From an update on, multiply a loss of CeSD, so that it is not finite."""
    loss, n_calls = getattr(CeSD, name), []

    def spoilt(self, data):
        n_calls.append(None)
        value = loss(self, data)
        return value * factor if when(len(n_calls)) else value

    context.setattr(CeSD, name, spoilt)


@pytest.mark.parametrize("factor", NAN_OR_INF)
@pytest.mark.parametrize("name", ["critic_loss", "actor_loss"])
def test_a_loss_stops_training_and_the_last_good_state_stays(make_model, monkeypatch, name, factor):
    later = {"constraint_kwargs": {"start": 10_000}}
    reference = make_model(**later).learn(120)
    n_updates = reference._n_updates
    model = make_model(**later)
    spoil(monkeypatch, name, lambda n_calls: n_calls > n_updates, factor)
    module = model.critic if name == "critic_loss" else model.actor
    with pytest.raises(TrainingDiverged) as error:
        model.learn(400)
    message = str(error.value)
    assert (
        f"update {n_updates + 1}: the {name.replace('_', ' ')} (" in message and f"Time step {model.num_timesteps}" in message
    )
    assert "Lower learning_rate" in message and "VecNormalize" in message and "on_non_finite='skip'" in message
    assert is_finite(model) and model._n_updates == n_updates + 1
    same = reference.critic if module is model.critic else reference.actor
    assert all((a == b).all() for a, b in zip(module.parameters(), same.parameters(), strict=True)), "as before that update"
    assert not model.intrinsic.training
    monkeypatch.undo()
    model.learn(50, reset_num_timesteps=False)
    assert model._n_updates > n_updates + 1 and is_finite(model)


@pytest.mark.parametrize("name", sorted(registry.METHODS))
def test_the_intrinsic_loss_of_every_method_is_checked(name, tiny, monkeypatch):
    del tiny["intrinsic_kwargs"]
    method = registry.METHODS[name]
    model = method("MlpPolicy", "Pendulum-v1", **tiny).learn(60)
    for name, optimizer in model.intrinsic.optimizers.items():
        parameter = optimizer.param_groups[0]["params"][0]
        handle = parameter.register_hook(lambda gradient: gradient * math.inf)
        before = parameter.detach().clone()
        with pytest.raises(TrainingDiverged, match=r"the gradient of intrinsic\.\S+ by the \w+ loss is not finite"):
            model.train(1, model.batch_size)
        handle.remove()
        assert is_finite(model)
        if name != "prototype_optimizer":  # normalised in place
            assert (parameter == before).all()


def test_a_gradient_is_named(make_model):
    model = make_model().learn(60)
    name, parameter = next(iter(model.policy.named_parameters()))
    parameter.register_hook(lambda gradient: gradient * math.nan)
    before = [tensor.clone() for tensor in parameters_of(model)]
    with pytest.raises(TrainingDiverged, match=rf"the gradient of policy\.{name} by the actor loss is not finite"):
        model.train(1, model.batch_size)
    actor = {id(tensor) for tensor in model.actor.parameters()}
    assert all((a == b).all() for a, b in zip(before, parameters_of(model), strict=True) if id(b) in actor) and is_finite(
        model
    )


def test_skipped_steps_are_counted_and_said_once(make_model, monkeypatch):
    model = make_model(on_non_finite="skip")
    spoil(monkeypatch, "critic_loss", lambda n_calls: n_calls % 5 == 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.learn(300)
    (said,) = [str(warning.message) for warning in caught if "is not finite" in str(warning.message)]
    assert "update 5: the critic loss (nan) is not finite: skipped" in said
    assert model.n_skipped_steps == model._n_updates // 5 > 1
    assert model.logger.name_to_value["train/n_skipped_steps"] == model.n_skipped_steps
    assert math.isfinite(model.logger.name_to_value["train/critic_loss"]), "that of the others"
    assert is_finite(model)


def test_what_to_do_is_chosen_among_two(make_model):
    with pytest.raises(ValueError, match=r"on_non_finite.*'raise'.*'skip'"):
        make_model(on_non_finite="ignore")


def test_normal_training_skips_nothing(make_model):
    model = make_model(on_non_finite="skip").learn(200)
    same = make_model().learn(200)
    assert model.n_skipped_steps == 0
    assert all((a == b).all() for a, b in zip(parameters_of(model), parameters_of(same), strict=True))


@pytest.mark.parametrize("optimizer_class", [th.optim.Adam, th.optim.SGD, th.optim.RMSprop])
def test_a_step_is_left_out_whole(optimizer_class):
    parameters = [th.nn.Parameter(th.ones(3)), th.nn.Parameter(th.ones(2))]
    optimizer, steps = optimizer_class(parameters, lr=0.1), GradientSteps()

    def loss(scale=1.0):
        return sum((parameter * parameter).sum() for parameter in parameters) + (parameters[1] * scale).sum()

    steps.take("loss", optimizer, loss())
    before = [tensor.clone() for tensor in parameters]
    state = [tensor.clone() for tensor in all_tensors(optimizer.state_dict())]
    for scale in NAN_OR_INF:
        steps.take("loss", optimizer, loss(scale))
        assert len(steps.left_out()) == 1
    assert all((a == b).all() for a, b in zip(before, parameters, strict=True))
    assert all((a == b).all() for a, b in zip(state, all_tensors(optimizer.state_dict()), strict=True))
    assert steps.left_out() == []
    steps.take("loss", optimizer, loss())
    assert steps.left_out() == [] and (parameters[0] != before[0]).all()


def test_a_gradient_whose_square_overflows_is_left_out():
    """In Adam's second moment it would be infinite, and its weight never move again."""
    parameter = th.nn.Parameter(th.ones(1))
    optimizer, steps = th.optim.Adam([parameter]), GradientSteps()
    steps.take("loss", optimizer, parameter.sum() * 1e20)
    assert steps.left_out() == ["the square of the loss (1e+20)"] and not optimizer.state
    steps.take("loss", optimizer, (parameter - 1).sum() * 1e20)
    assert steps.left_out() == ["the square of the gradient of a weight by the loss"] and not optimizer.state


def test_running_statistics_are_brought_back():
    norm = th.nn.BatchNorm1d(2, affine=False)
    statistics = RunningStatistics({"intrinsic": norm})
    norm(th.tensor([[1.0, 2.0], [3.0, 5.0]]))
    before = statistics.copy()
    assert statistics.restore(before) == []
    norm(th.tensor([[1e30, 2.0], [-1e30, 5.0]]))
    assert not norm.running_var.isfinite().all()
    assert statistics.restore(before) == ["the running statistics intrinsic.running_var"]
    assert norm.running_var.isfinite().all() and (norm.running_var == before[1]).all()


class Nan(BaseCallback):
    """Make a weight infinite at the last step."""

    def _on_step(self):
        return True

    def _on_training_end(self):
        next(self.model.actor.parameters()).data.view(-1)[0] = math.inf


def test_what_diverged_in_the_end_is_neither_passed_over_nor_saved(make_model, tmp_path):
    model = make_model().learn(100)
    model.save(tmp_path / "model")
    saved = (tmp_path / "model.zip").read_bytes()
    with pytest.raises(TrainingDiverged, match=r"not finite at time step 150: parameters\.policy\.actor"):
        model.learn(50, callback=Nan(), reset_num_timesteps=False)
    with pytest.raises(TrainingDiverged, match=r"It was not saved; a file that was saved before is untouched"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model.zip").read_bytes() == saved


def test_the_state_of_optimizers_is_checked_too(make_model, tmp_path):
    model = make_model().learn(60)
    next(iter(model.critic.optimizer.state.values()))["exp_avg"][0] = math.nan
    with pytest.raises(TrainingDiverged, match=r"parameters\.critic\.optimizer\.state\.0\.exp_avg"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("learning_starts", NAN_OR_INF)
def test_learning_starts_is_a_number_of_steps(make_model, learning_starts):
    with pytest.raises(ValueError, match="learning_starts"):
        make_model(learning_starts=learning_starts)


@pytest.mark.parametrize("rate", [*NAN_OR_INF, -1e-3])
def test_a_schedule_returns_a_finite_rate(make_model, rate):
    model = make_model(learning_rate=lambda progress: rate if progress < 0.5 else 1e-3)
    with pytest.raises(ValueError, match=rf"learning_rate is {rate} at time step \d+: pass"):
        model.learn(200)
    assert is_finite(model)


@pytest.mark.parametrize("train_freq", [16, (1, "episode")])
def test_a_rate_that_falls_to_0_may_do_so_within_the_last_rollout(make_model, train_freq):
    """A rollout goes on beyond the total, where the remaining progress would be negative."""
    seen = []

    def falling(progress):
        seen.append(progress)
        return 1e-3 * progress

    model = make_model(learning_rate=falling, train_freq=train_freq).learn(150)
    assert model.num_timesteps > 150
    assert seen[-1] == min(seen) == model.policy.actor.optimizer.param_groups[0]["lr"] == 0.0


class Huge(gym.Env):
    """An environment whose observations or rewards are finite, but not their squares."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (1,))

    def __init__(self, observation=1.0, reward=1.0):
        self.values = observation, reward
        self.n_steps = 0

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(2), {}

    def step(self, action):
        self.n_steps += 1
        observation, reward = self.values if self.n_steps > 30 else (1.0, 1.0)
        return np.full(2, observation * (-1) ** self.n_steps), reward, False, self.n_steps % 20 == 0, {}


#: DummyVecEnv makes float32 of rewards: they overflow before VecNormalize sees them
OVERFLOWS = {
    "observation": r"in VecNormalize has overflowed at time step 3.*Scale or clip the observations before VecNormalize",
    "reward": r"time step 3.: the reward is not finite \(\[0\] = inf\).*clip the reward",
}


@pytest.mark.parametrize("kind", OVERFLOWS)
def test_an_overflow_under_vec_normalize_is_named(tiny, kind):
    env = VecNormalize(DummyVecEnv([lambda: Huge(**{kind: 1e200})]))
    model = CeSD("MlpPolicy", env, **tiny)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match=OVERFLOWS[kind]):
        model.learn(200)
    assert is_finite(model) and np.isfinite(model.replay_buffer.rewards).all()


def test_frozen_parameters_are_thawed_after_an_error():
    parameter = th.nn.Parameter(th.ones(1))
    with pytest.raises(ZeroDivisionError), frozen([parameter]):
        1 / 0  # noqa: B018
    assert parameter.requires_grad


def test_vec_normalize_in_normal_training_is_left_alone(tiny):
    assert CeSD("MlpPolicy", VecNormalize(make_vec_env("Pendulum-v1")), **tiny).learn(100)._n_updates > 0


@pytest.mark.parametrize(
    ("optimizer_class", "kwargs"),
    [
        (th.optim.Adam, {"fused": True}),
        (th.optim.Adam, {}),
        (th.optim.AdamW, {"weight_decay": 0.1}),
        (th.optim.SGD, {"momentum": 0.9}),
        (th.optim.RMSprop, {"momentum": 0.9}),
    ],
)
def test_a_gpu_leaves_steps_out_without_the_host(optimizer_class, kwargs):
    """What it computes, on the CPU: weights and the state of the optimizer stay as they were."""
    parameters = [th.nn.Parameter(th.ones(3)), th.nn.Parameter(th.ones(2))]
    optimizer, steps = optimizer_class(parameters, lr=0.1, **kwargs), GradientSteps()
    with fixed_shapes():
        steps.take("loss", optimizer, sum(parameter.square().sum() for parameter in parameters))
        assert steps.left_out() == []
        before = [tensor.clone() for tensor in [*parameters, *all_tensors(optimizer.state_dict())]]
        for scale in NAN_OR_INF:
            steps.take("loss", optimizer, parameters[0].sum() + parameters[1].sum() * scale)
        after = [*parameters, *all_tensors(optimizer.state_dict())]
        assert all(tensor.isfinite().all() for tensor in after)
        assert all((a == b).all() for a, b in zip(before, after, strict=True))
        assert steps.left_out() == ["the loss or its gradient"] * 3 and steps.left_out() == []
        steps.take("loss", optimizer, sum(parameter.square().sum() for parameter in parameters))
        assert steps.left_out() == [] and all((a != b).all() for a, b in zip(before, parameters, strict=False))


@pytest.mark.parametrize("on_non_finite", ["raise", "skip"])
def test_running_statistics_are_those_of_the_last_finite_update(monkeypatch, on_non_finite):
    """What makes a loss infinite gets into the statistics first."""
    model = make_small(RND, on_non_finite=on_non_finite).learn(60)
    before = model.intrinsic.obs_norm.running_mean.clone()
    loss = model.intrinsic.loss

    def spoilt(samples):
        model.intrinsic.obs_norm.running_mean.fill_(math.inf)
        return loss(samples) * math.inf

    monkeypatch.setattr(model.intrinsic, "loss", spoilt)
    if on_non_finite == "raise":
        with pytest.raises(TrainingDiverged, match="intrinsic loss"):
            model.train(3, 32)
    else:
        with pytest.warns(UserWarning, match="intrinsic loss"):
            model.train(3, 32)
    assert (model.intrinsic.obs_norm.running_mean == before).all() and is_finite(model)
