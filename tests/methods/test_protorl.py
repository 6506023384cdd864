"""ProtoRL: against its formulas, and the constants of URLB's code (agent/proto.py and proto.yaml)."""

import copy
import inspect
import math

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from torch import nn
from tuning import saved

from sb3_cesd import DIAYN, CeSD, ProtoRL
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods import protorl
from sb3_cesd.methods.protorl import ProtoRLReward

SKILLS = DiscreteSkills(3)


def make(reward_class=ProtoRLReward, **kwargs):
    sizes = {"net_arch": [8], "features_dim": 5, "n_prototypes": 6, "queue_size": 14}
    return make_reward(reward_class, SKILLS, **{**sizes, **kwargs}).double()


def make_batch(n=12, seed=0):
    th.manual_seed(seed)
    obs, next_obs = th.randn(2, n, 4, dtype=th.float64)
    return make_samples(obs, next_obs, th.arange(n) % 3)


def unit(vectors):
    return vectors / vectors.square().sum(dim=1, keepdim=True).sqrt()


def sinkhorn(scores, n_iterations):
    """URLB's, in its words: Q of prototypes times states; rows share the mass evenly, then columns do."""
    q = scores.exp().T
    q = q / q.sum()
    for _ in range(n_iterations):
        q = q * (1 / len(q) / q.sum(dim=1, keepdim=True))
        q = q * (1 / q.shape[1] / q.sum(dim=0, keepdim=True))
    return (q / q.sum(dim=0, keepdim=True)).T


@th.no_grad()
def loss_of(reward, batch, temperature=0.1, n_iterations=3):
    """-mean_j sum_i q_i(s'_j) log p_i(s_j), with the projector on the side of s alone, and the slow copy on that of s'."""
    vectors = unit(reward.prototypes.vectors)
    hidden = (reward.projector[0](reward.predictor(batch.observations))).clamp(min=0)
    p = (unit(reward.projector[2](hidden)) @ vectors.T / temperature).exp()
    p = p / p.sum(dim=1, keepdim=True)
    target = unit(batch.next_observations @ reward.target_weight.T + reward.target_bias)
    q = sinkhorn(target @ vectors.T / temperature, n_iterations)
    return -(q * p.log()).sum(dim=1).mean().item()


@pytest.mark.parametrize(("temperature", "n_iterations"), [(0.1, 3), (0.3, 1)])
def test_loss_is_the_cross_entropy_with_the_assignment_of_the_next_state(temperature, n_iterations):
    reward, batch = make(temperature=temperature, sinkhorn_iterations=n_iterations), make_batch()
    learn(reward, batch, 3)  # so that the copy differs from what it follows
    reward.train()
    assert (reward.target_weight != reward.predictor.weight).any()
    expected = loss_of(reward, batch, temperature, n_iterations)
    reward.prototypes.normalize()
    loss = reward.loss(batch)
    assert loss.item() == pytest.approx(expected, rel=1e-9) and loss.item() > 0
    swapped = batch._replace(observations=batch.next_observations, next_observations=batch.observations)
    assert reward.loss(swapped).item() != pytest.approx(expected, rel=1e-3)
    loss.backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in reward.parameters())


def test_update_normalises_the_prototypes_before_and_lets_the_copy_follow_after():
    reward, batch = make(target_tau=0.2), make_batch()
    learn(reward, batch, 3)
    with th.no_grad():
        reward.prototypes.vectors.mul_(3.0)
    expected, before = loss_of(reward, batch), (reward.target_weight.clone(), reward.target_bias.clone())
    reward.update(batch)
    assert reward.logs["train/intrinsic_loss"].item() == pytest.approx(expected, rel=1e-9)
    predictor = (reward.predictor.weight, reward.predictor.bias)
    for now, old, followed in zip((reward.target_weight, reward.target_bias), before, predictor, strict=True):
        th.testing.assert_close(now, 0.8 * old + 0.2 * followed)
        assert (now != old).any()


def test_reward_is_the_distance_to_the_kth_neighbour_in_the_queue(monkeypatch):
    """Each prototype enqueues the state it draws from softmax_j(z_j . c); the oldest ones make room, in a ring."""
    reward, seen = make(k=2, scale=3.0), []

    def draw(probabilities):
        seen.append((probabilities, th.arange(6) * (len(seen) + 1) % 12))
        return seen[-1][1]

    monkeypatch.setattr(protorl, "sample_categorical", draw)
    queue = [[0.0] * 5 for _ in range(14)]
    for n_calls in range(4):
        batch = make_batch(seed=n_calls)
        reward.update(batch)
        rewards = reward.relabel(batch).rewards.squeeze(1)
        with th.no_grad():
            features = unit(reward.predictor(batch.next_observations))
            scores = unit(reward.prototypes.vectors) @ features.T
        probabilities, drawn = seen[-1]
        th.testing.assert_close(probabilities, scores.exp() / scores.exp().sum(dim=1, keepdim=True))
        for idx in range(6):
            queue[(6 * n_calls + idx) % 14] = features[drawn[idx]].tolist()
        expected = [3.0 * sorted(math.dist(z, q) for q in queue)[1] for z in features.tolist()]
        assert rewards.tolist() == pytest.approx(expected, rel=1e-9)
        th.testing.assert_close(reward.queue, th.tensor(queue, dtype=th.float64))
    assert reward.n_queued == 24


def test_distances_near_zero_are_exact_in_single_precision():
    reward, batch = make(k=1).float(), make_batch()
    batch = batch._replace(next_observations=batch.next_observations.float())
    with th.no_grad():
        reward.queue[:12] = unit(reward.predictor(batch.next_observations))
    reward.eval()
    assert reward.reward(batch).max() < 1e-6, "the expansion of the square alone would give 3e-4"


def test_reward_in_evaluation_leaves_the_queue_alone():
    reward, batch = make(), make_batch()
    learn(reward, batch, 5)
    before = copy.deepcopy(reward.state_dict())
    first, second = reward.reward(batch), reward.reward(batch)
    assert (first == second).all()
    assert all((before[name] == value).all() for name, value in reward.state_dict().items())
    assert (reward.reward(batch._replace(skills=batch.skills.flip(0), observations=-batch.observations)) == first).all()


class WrongSign(ProtoRLReward):
    """A negative control: it learns to be wrong about assignments."""

    def loss(self, samples):
        return -super().loss(samples)


@th.no_grad()
def use_of_prototypes(reward, observations):
    """How many prototypes are the most likely one of a state, and what prototypes tell of states [nats]."""
    features = unit(reward.projector(reward.predictor(observations)))
    p = (features @ unit(reward.prototypes.vectors).T / 0.1).softmax(dim=1)
    usage = p.mean(dim=0)
    information = -(usage * usage.log()).sum() + (p * p.log()).sum(dim=1).mean()
    return len(p.argmax(dim=1).unique()), information.item()


def learned(reward_class):
    """A reward before and after it learned from clusters of states, and these."""
    th.manual_seed(0)
    centers = 2 * th.randn(8, 4, dtype=th.float64)
    obs = (centers[th.arange(256) % 8] + 0.1 * th.randn(256, 4)).double()
    batch = make_samples(obs, obs + 0.01, th.zeros(256))
    reward = make(reward_class, features_dim=8, n_prototypes=16, queue_size=64)
    before = use_of_prototypes(reward, batch.observations)
    learn(reward, batch, 150)
    return reward, batch, before, use_of_prototypes(reward, batch.observations)


def test_prototypes_spread_over_states():
    reward, batch, (n_before, information_before), (n_used, information) = learned(ProtoRLReward)
    assert n_before < 8 and n_used >= 12, "of 16, for 8 clusters"
    assert information > information_before + 0.3
    novel = batch._replace(next_observations=2 * th.randn(256, 4, dtype=th.float64))
    assert reward.reward(novel).mean() > 3 * reward.reward(batch).mean(), "what is unlike the queue pays"


def test_a_wrong_sign_would_be_noticed():
    _, _, (n_before, information_before), (n_used, information) = learned(WrongSign)
    assert n_used <= n_before and information < information_before


def test_constants_are_those_of_urlb():
    reward = make_reward(ProtoRLReward, SKILLS)
    assert (reward.predictor.in_features, reward.predictor.out_features) == (4, 128)
    assert [type(layer) for layer in reward.projector] == [nn.Linear, nn.ReLU, nn.Linear]
    assert reward.projector[0].weight.shape == (512, 128) and reward.projector[2].weight.shape == (128, 512)
    vectors = reward.prototypes.vectors
    assert vectors.shape == (512, 128)
    th.testing.assert_close(vectors.T @ vectors, th.eye(128), atol=1e-4, rtol=0)  # orthogonal
    assert (reward.prototypes.temperature, reward.prototypes.sinkhorn_temperature) == (0.1, 0.1)
    assert (reward.prototypes.sinkhorn_iterations, reward.target_tau, reward.k, reward.scale) == (3, 0.05, 3, 1.0)
    assert reward.queue.shape == (2048, 128) and (reward.queue == 0).all()
    assert (reward.target_weight == reward.predictor.weight).all() and (reward.target_bias == 0).all()


@pytest.fixture(scope="module")
def pretrained():
    return make_small(ProtoRL).learn(100)


def test_queue_and_copy_are_saved_and_loaded(pretrained):
    loaded = ProtoRL.load(saved(pretrained), device="cpu").intrinsic
    assert pretrained.intrinsic.n_queued == 8 * pretrained._n_updates and (loaded.queue != 0).any()
    assert {"queue", "n_queued", "target_weight", "target_bias"} <= {*loaded.state_dict()}
    for name, value in pretrained.intrinsic.state_dict().items():
        assert (value == loaded.state_dict()[name]).all(), name


@pytest.mark.parametrize("skill", [2, "best"])
def test_fine_tuning_takes_over_the_whole_critic(pretrained, skill):
    """Also before it is known which skill is the best: skills share it."""
    model = ProtoRL.from_pretrained(saved(pretrained), "Pendulum-v1", skill, device="cpu", learning_starts=40)
    for name, value in pretrained.critic.state_dict().items():
        assert (model.critic.state_dict()[name] == value).all() and (model.critic_target.state_dict()[name] == value).all()
    model.learn(60)
    assert model._n_updates > 0


def test_what_fine_tuning_takes_over_is_a_choice_and_others_take_the_trunk(pretrained):
    trunk = ProtoRL.from_pretrained(saved(pretrained), "Pendulum-v1", 2, ["actor", "critic_trunk"], device="cpu")
    heads = [name for name in pretrained.critic.state_dict() if name.startswith("q_networks") and name.endswith("weight")]
    assert all((trunk.critic.state_dict()[name] != pretrained.critic.state_dict()[name]).any() for name in heads)
    assert inspect.signature(ProtoRL.from_pretrained).parameters["transfer"].default is None
    assert CeSD.published_transfer == DIAYN.published_transfer == ("actor", "critic_trunk")
    other = make_small(DIAYN).learn(60)
    model = DIAYN.from_pretrained(saved(other), "Pendulum-v1", 2, device="cpu")
    assert all((model.critic.state_dict()[name] != other.critic.state_dict()[name]).any() for name in heads)
    assert (model.critic.trunk[0].weight == other.critic.trunk[0].weight).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"queue_size": 7, "n_prototypes": 8}, "queue_size=7 has no room .*: raise queue_size, or lower n_prototypes or k"),
        ({"queue_size": 8, "n_prototypes": 8, "k": 9}, "queue_size=8 has no room .*: raise queue_size"),
        ({"target_tau": 1.5}, "must be a number from 0 to 1: pass such a number"),
        ({"temperature": 0.0}, "set temperature above 0"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(ProtoRL, intrinsic_kwargs=kwargs)
