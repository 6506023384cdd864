"""ProtoRL: against its formulas, and the constants of URLB's code (agent/proto.py and proto.yaml)."""

import math

import pytest
import torch as th
from batches import learn, make_batch, make_reward
from small import make_small
from torch.nn import functional as F
from tuning import saved

from sb3_cesd import DIAYN, CeSD, ProtoRL
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods import protorl
from sb3_cesd.methods.protorl import ProtoRLReward

SKILLS = DiscreteSkills(3)
BATCH = make_batch(SKILLS)


def make(**kwargs):
    sizes = {"net_arch": [8], "features_dim": 5, "n_prototypes": 6, "queue_size": 14}
    return make_reward(ProtoRLReward, SKILLS, **{**sizes, **kwargs}).double()


def sinkhorn(scores, n_iterations):
    """URLB's, in its words: Q of prototypes times states; rows share the mass evenly, then columns do."""
    q = scores.exp().T
    q = q / q.sum()
    for _ in range(n_iterations):
        q = q * (1 / len(q) / q.sum(dim=1, keepdim=True))
        q = q * (1 / q.shape[1] / q.sum(dim=0, keepdim=True))
    return (q / q.sum(dim=0, keepdim=True)).T


@pytest.mark.parametrize(("temperature", "n_iterations"), [(0.1, 3), (0.3, 1)])
def test_loss_is_the_cross_entropy_with_the_assignment_of_the_next_state(temperature, n_iterations):
    """-mean_j sum_i q_i(s'_j) log p_i(s_j), with the projector on the side of s alone, and the slow copy on that of s'."""
    reward = make(temperature=temperature, sinkhorn_iterations=n_iterations, target_tau=0.2)
    learn(reward, BATCH, 3)  # so that the copy differs from what it follows
    with th.no_grad():
        vectors = F.normalize(reward.prototypes.vectors, dim=1)
        p = F.normalize(reward.projector(reward.predictor(BATCH.observations)), dim=1) @ vectors.T / temperature
        target = F.normalize(BATCH.next_observations @ reward.target_weight.T + reward.target_bias, dim=1)
        q = sinkhorn(target @ vectors.T / temperature, n_iterations)
    before = reward.target_weight.clone()
    reward.update(BATCH)
    expected = -(q * p.log_softmax(dim=1)).sum(dim=1).mean().item()
    assert reward.logs["train/intrinsic_loss"].item() == pytest.approx(expected, rel=1e-9)
    th.testing.assert_close(reward.target_weight, 0.8 * before + 0.2 * reward.predictor.weight)


def test_reward_is_the_distance_to_the_kth_neighbour_in_the_queue(monkeypatch):
    """Each prototype enqueues the state it draws from softmax_j(z_j . c); the oldest ones make room, in a ring."""
    reward, seen = make(k=2, scale=3.0), []

    def draw(probabilities):
        seen.append((probabilities, th.arange(6) * (len(seen) + 1) % 12))
        return seen[-1][1]

    monkeypatch.setattr(protorl, "sample_categorical", draw)
    queue = [[0.0] * 5 for _ in range(14)]
    for n_calls in range(4):
        batch = make_batch(SKILLS, seed=n_calls)
        rewards = reward.reward(batch)
        with th.no_grad():
            features = F.normalize(reward.predictor(batch.next_observations), dim=1)
            scores = F.normalize(reward.prototypes.vectors, dim=1) @ features.T
        probabilities, drawn = seen[-1]
        th.testing.assert_close(probabilities, scores.softmax(dim=1))
        for idx in range(6):
            queue[(6 * n_calls + idx) % 14] = features[drawn[idx]].tolist()
        expected = [3.0 * sorted(math.dist(z, q) for q in queue)[1] for z in features.tolist()]
        assert rewards.tolist() == pytest.approx(expected, rel=1e-9)
    # In evaluation, the queue is left alone
    assert (reward.eval().reward(batch) == reward.reward(batch)).all() and reward.n_queued == 24


def test_fine_tuning_takes_over_the_whole_critic():
    """Others take its trunk."""
    pretrained = make_small(ProtoRL).learn(100)
    model = ProtoRL.from_pretrained(saved(pretrained), "Pendulum-v1", 2, device="cpu")
    for name, value in pretrained.critic.state_dict().items():
        assert (model.critic.state_dict()[name] == value).all() and (model.critic_target.state_dict()[name] == value).all()
    assert CeSD.published_transfer == DIAYN.published_transfer == ("actor", "critic_trunk")


def test_a_queue_without_room_is_refused():
    for sizes in ({"queue_size": 7, "n_prototypes": 8}, {"queue_size": 8, "n_prototypes": 8, "k": 9}):
        with pytest.raises(ValueError, match="raise queue_size"):
            make(**sizes)
