import pytest
import torch as th
from batches import random_samples
from torch.nn import functional as F

from sb3_cesd.common import ensembles

N_SKILLS = 4
# Heads with many rows, one row and none
CLUSTERS = th.tensor([0] * 9 + [1] * 6 + [2])


@pytest.fixture
def model(make_released):
    """In float64 and without noise, so that two forms can be compared to the last digits."""
    model = make_released(n_skills=N_SKILLS, target_policy_noise=0.0)
    model.policy.double()
    return model


@pytest.fixture
def batch():
    return random_samples(CLUSTERS, N_SKILLS)


def mask_of(skills):
    return F.one_hot(skills, N_SKILLS).T[:, :, None].double()


def dense_critic_loss(model, batch):
    """As released: mean squared error over all heads and transitions, those of other clusters masked to zero."""
    mask = mask_of(batch.clusters)
    with th.no_grad():
        next_actions = model.actor.act(batch.next_observations, batch.skills)
        next_q = th.stack(model.critic_target.q_values_dense(batch.next_observations, next_actions)).min(dim=0).values
        target = batch.rewards + (1 - batch.dones) * batch.discounts * next_q
    return sum(F.mse_loss(q * mask, target * mask) for q in model.critic.q_values_dense(batch.observations, batch.actions))


def dense_actor_loss(model, batch):
    actions = model.actor.act(batch.observations, batch.actor_skills)
    q = th.stack(model.critic.q_values_dense(batch.observations, actions)).min(dim=0).values
    return -(q * mask_of(batch.actor_skills)).mean()


@pytest.mark.parametrize("tile_size", [None, 1, 4, 64])
@pytest.mark.parametrize(("name", "dense"), [("critic_loss", dense_critic_loss), ("actor_loss", dense_actor_loss)])
def test_routed_loss_and_gradients_equal_the_dense_masked_form(model, batch, monkeypatch, tile_size, name, dense):
    plan = ensembles.route
    monkeypatch.setattr("sb3_cesd.cesd.policies.route", lambda heads, n_heads: plan(heads, n_heads, tile_size))
    parameters = [*model.actor.parameters(), *model.critic.parameters()]
    loss = getattr(model, name)(batch)
    expected = dense(model, batch)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    gradients = th.autograd.grad(loss, parameters, allow_unused=True)
    expected_gradients = th.autograd.grad(expected, parameters, allow_unused=True)
    n_compared = 0
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert (gradient is None) == (expected_gradient is None)
        if gradient is not None:
            assert (gradient - expected_gradient).norm() <= 1e-9 * expected_gradient.norm()
            n_compared += 1
    assert n_compared >= 8


def test_head_of_an_empty_cluster_has_a_zero_gradient_and_moving_moments(model, batch):
    for _ in range(2):
        model.critic.optimizer.zero_grad()
        model.critic_loss(batch).backward()
        model.critic.optimizer.step()
    weight = model.critic.q_networks[0].layers[0].weight
    assert (weight.grad[3] == 0).all() and (weight.grad[0] != 0).any()
    # After a batch in which cluster 3 does have members, the moments of its head decay in batches where it has none
    model.critic_loss(batch._replace(pairs=batch.pairs._replace(skills=th.full_like(CLUSTERS, 3)))).backward()
    model.critic.optimizer.step()
    before = model.critic.optimizer.state[weight]["exp_avg"][3].clone()
    model.critic.optimizer.zero_grad()
    model.critic_loss(batch).backward()
    model.critic.optimizer.step()
    th.testing.assert_close(model.critic.optimizer.state[weight]["exp_avg"][3], before * 0.9)
    assert (before != 0).any()


def test_actor_step_leaves_the_critic_alone(make_model, monkeypatch):
    model = make_model().learn(60)
    actor_loss, critic_step = model.actor_loss, model.critic.optimizer.step
    gradients_of_the_critic = []

    def step_and_clear():
        critic_step()
        model.critic.optimizer.zero_grad()

    def loss_and_look(batch):
        loss = actor_loss(batch)
        assert not any(parameter.requires_grad for parameter in model.critic.parameters())
        loss.register_hook(lambda _: gradients_of_the_critic.append([p.grad for p in model.critic.parameters()]))
        return loss

    monkeypatch.setattr(model.critic.optimizer, "step", step_and_clear)
    monkeypatch.setattr(model, "actor_loss", loss_and_look)
    model.train(1, 32)
    assert all(parameter.grad is None for parameter in model.critic.parameters())
    assert all(parameter.requires_grad for parameter in model.critic.parameters())
    assert all(parameter.grad is not None for parameter in model.actor.parameters())
    assert len(gradients_of_the_critic) == 1


def test_gradient_passes_a_clipped_action(model, batch, monkeypatch):
    # Noise that clips every action: the value is that of the clipped action, the gradient that without clipping
    monkeypatch.setattr(model, "_clipped_noise", lambda actions: th.full_like(actions, 3.0))
    loss = model.actor_loss(batch)
    q = model.critic.q_values(batch.observations, th.ones_like(batch.actions), batch.actor_skills)
    assert loss.item() == pytest.approx(-(th.stack(q).min(dim=0).values.sum() / (N_SKILLS * len(CLUSTERS))).item())
    assert any(gradient.abs().max() > 0 for gradient in th.autograd.grad(loss, list(model.actor.parameters())))


def test_fewer_heads_than_skills_share_them(make_released):
    model = make_released(n_skills=4, ensemble_size=2)
    assert model.critic.q_networks[0].layers[0].weight.shape[0] == 2
    obs, actions = th.randn(5, 3), th.rand(5, 1)
    values = [model.critic.q_values(obs, actions, th.full((5,), skill))[0] for skill in range(4)]
    th.testing.assert_close(values[0], values[2])
    th.testing.assert_close(values[1], values[3])
    assert (values[0] != values[1]).any()


@pytest.mark.parametrize("critic", ["cluster", "union", "hindsight"])
def test_every_pair_has_weight_and_shape(make_released, critic):
    model = make_released(relabel_kwargs={"critic": critic}).learn(60)
    model.intrinsic.eval()
    batch = model.intrinsic.relabel(model.replay_buffer.sample(32))
    n_pairs = len(batch.pairs.rows)
    assert n_pairs == 32 if critic == "cluster" else n_pairs > 32
    for entry in batch.pairs:
        assert len(entry) == n_pairs
    assert batch.rewards.shape == (32, 1) and batch.clusters.shape == (32,)
    assert th.isfinite(model.critic_loss(batch))


def test_small_clusters_get_no_reward_but_train_their_head(make_released):
    model = make_released(entropy_kwargs={"k": 20}, batch_size=32).learn(60)
    model.intrinsic.eval()
    for _ in range(20):
        batch = model.intrinsic.relabel(model.replay_buffer.sample(32))
        sizes = th.bincount(batch.clusters, minlength=4)[batch.clusters]
        assert (batch.rewards[sizes <= 20] == 0).all()
        assert len(batch.pairs.rows) == 32 and (batch.pairs.weights == 1).all()
    assert (sizes <= 20).any()
