"""The relabelling of a batch, step by step, against its description."""

import pytest
import torch as th
from batches import make_samples
from torch.nn import functional as F

N_SKILLS, BATCH_SIZE = 4, 48


@pytest.fixture
def batch():
    th.manual_seed(3)
    skills = th.randint(N_SKILLS, (BATCH_SIZE,))
    observations = th.randn(BATCH_SIZE, 3)
    actions = th.rand(BATCH_SIZE, 1) * 2 - 1
    samples = make_samples(observations, th.randn(BATCH_SIZE, 3), skills, actions)
    return samples._replace(rewards=th.full((BATCH_SIZE, 1), -7.0))


@pytest.fixture
def make_intrinsic(make_released):
    """An untrained reward in evaluation mode, with prototypes that are not of unit length."""

    def make(**kwargs):
        intrinsic = make_released(**kwargs).intrinsic.eval()
        with th.no_grad():
            intrinsic.prototypes.vectors.mul_(th.tensor([[3.0], [0.2], [1.0], [5.0]]))
        return intrinsic

    return make


def test_clusters_are_those_of_the_next_state(make_intrinsic, batch, monkeypatch):
    intrinsic = make_intrinsic()
    seen = []
    monkeypatch.setattr(intrinsic.prototypes, "sample", lambda scores: seen.append(scores) or scores.argmax(dim=1))
    clusters = intrinsic.relabel(batch).clusters
    features = F.normalize(intrinsic.encoder(batch.next_observations), dim=1)
    cosine = features @ F.normalize(intrinsic.prototypes.vectors, dim=1).T
    th.testing.assert_close(seen[0], cosine)
    assert (clusters == cosine.argmax(dim=1)).all()
    of_this_state = F.normalize(intrinsic.encoder(batch.observations), dim=1) @ intrinsic.prototypes.vectors.T
    assert (clusters != of_this_state.argmax(dim=1)).any()


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_with_a_window_averages_are_clustered(make_released, batch, monkeypatch, start):
    """The entropy is still that of states, where distances are measured apart from clusters."""
    window = {"cluster_window": 7, "distance_encoder": "identity", "constraint_kwargs": {"start": start}}
    intrinsic = make_released(**window).intrinsic
    averages = batch.observations + 1, batch.next_observations - 1
    batch = batch._replace(average_observations=averages[0], average_next_observations=averages[1])
    clustered, measured, learned = [], [], []
    entropy, similarities = intrinsic.entropy.forward, intrinsic.prototypes.similarities
    monkeypatch.setattr(intrinsic.prototypes, "similarities", lambda u: clustered.append(u) or similarities(u))
    monkeypatch.setattr(intrinsic.entropy, "forward", lambda *args: measured.append(args[0]) or entropy(*args))
    monkeypatch.setattr(intrinsic.encoder, "loss", lambda samples: learned.extend(samples))
    relabelled = intrinsic.relabel(batch)
    th.testing.assert_close(clustered[0], intrinsic.encoder(averages[1]))
    th.testing.assert_close(measured[0], batch.next_observations)
    th.testing.assert_close(relabelled.observations, batch.observations)
    intrinsic.update(batch)
    assert learned[0] is averages[0] and learned[2] is averages[1]
    # Swapped prediction of the released setting: features of s and s'
    monkeypatch.setattr(intrinsic.prototypes, "loss", lambda *scores: scores[0].sum() + scores[1].sum())
    scored, scores = [], intrinsic.prototypes.scores
    monkeypatch.setattr(intrinsic.prototypes, "scores", lambda u: scored.append(u) or scores(u))
    intrinsic.update_clusters(relabelled)
    th.testing.assert_close(scored[0], intrinsic.encoder(averages[0]).detach())


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_the_distance_encoder_measures_and_the_encoder_clusters(make_intrinsic, batch, monkeypatch, start):
    temporal = {"distance_encoder": "temporal", "distance_encoder_kwargs": {"net_arch": [8], "features_dim": 3}}
    intrinsic = make_intrinsic(**temporal, constraint_kwargs={"start": start})
    measured, compared = [], []
    entropy, similarities = intrinsic.entropy.forward, intrinsic.prototypes.similarities
    monkeypatch.setattr(intrinsic.entropy, "forward", lambda *args: measured.append(args[0]) or entropy(*args))
    monkeypatch.setattr(intrinsic.prototypes, "similarities", lambda u: compared.append(u) or similarities(u))
    relabelled = intrinsic.relabel(batch)
    th.testing.assert_close(measured[0], intrinsic.distance_encoder(batch.next_observations))
    of_clusters = intrinsic.encoder(batch.next_observations)
    assert measured[0].shape == (BATCH_SIZE, 3) and not measured[0].requires_grad
    th.testing.assert_close(compared[0], of_clusters)
    th.testing.assert_close(relabelled.next_features, of_clusters)


def test_each_encoder_learns_from_its_own_loss(make_released, batch):
    intrinsic = make_released(distance_encoder="temporal", distance_encoder_kwargs={"net_arch": [8]}).intrinsic
    for learning, other in (("distance_encoder", "encoder"), ("encoder", "distance_encoder")):
        resting = getattr(intrinsic, other)
        resting.loss = lambda samples: None
        before = {name: value.clone() for name, value in intrinsic.state_dict().items()}
        intrinsic.update(batch)
        changed = {name for name, value in intrinsic.state_dict().items() if (value != before[name]).any()}
        assert changed == {f"{learning}.{name}" for name, _ in getattr(intrinsic, learning).named_parameters()}
        del resting.loss
    assert {"train/encoder_loss", "train/distance_encoder_loss"} <= intrinsic.logs.keys()


@pytest.mark.parametrize("count", ["released", "paper"])
@pytest.mark.parametrize("alpha", [0.0, 2.5])
def test_bonus_is_alpha_over_count_plus_lambda_in_large_clusters_only(make_intrinsic, batch, count, alpha):
    k = 11
    intrinsic = make_intrinsic(alpha=alpha, constraint_kwargs={"count": count, "lambda_": 2.0}, entropy_kwargs={"k": k})
    # Some clusters have k members or fewer; clusters are drawn, so that they differ from call to call
    for _ in range(20):
        relabelled = intrinsic.relabel(batch)
        clusters = relabelled.clusters
        sizes = th.bincount(clusters, minlength=N_SKILLS)
        if 0 < ((sizes > 0) & (sizes <= k)).sum() and (sizes > k).any():
            break
    else:
        pytest.fail("no batch had both small and large clusters")
    entropy, _ = intrinsic.entropy(intrinsic.encoder(batch.next_observations), clusters, N_SKILLS)
    for j, cluster in enumerate(clusters.tolist()):
        collected, members = (batch.skills == cluster), (clusters == cluster)
        n_foreign = (members & ~collected).sum() if count == "released" else (collected & ~members).sum()
        bonus = alpha / (n_foreign.item() + 2.0) if sizes[cluster] > k else 0.0
        assert relabelled.rewards[j].item() == pytest.approx(entropy[j].item() + bonus, rel=1e-5)
    assert (relabelled.rewards[sizes[clusters] <= k] == 0).all(), "neither entropy nor bonus"
    assert relabelled.pairs.rows is None and relabelled.pairs.weights is None, "but they train the critic"


@pytest.mark.parametrize(("swap", "predicted_from"), [("next", "observations"), ("self", "next_observations")])
def test_prototypes_learn_to_predict_the_assignment_of_the_next_state(
    make_intrinsic, batch, monkeypatch, swap, predicted_from
):
    intrinsic = make_intrinsic(prototype_kwargs={"swap": swap})
    seen, loss = [], intrinsic.prototypes.loss
    monkeypatch.setattr(intrinsic.prototypes, "loss", lambda *args: seen.append(args) or loss(*args))
    intrinsic.train()
    vectors = F.normalize(intrinsic.prototypes.vectors.detach(), dim=1)
    intrinsic.update_clusters(intrinsic.relabel(batch))
    for scores, name in zip(seen[0], (predicted_from, "next_observations"), strict=True):
        features = F.normalize(intrinsic.encoder(getattr(batch, name)), dim=1)
        th.testing.assert_close(scores, features @ vectors.T)


def test_exploration_is_particle_entropy_of_the_whole_batch_for_the_skill_that_collected(make_intrinsic, batch):
    intrinsic = make_intrinsic(
        alpha=5.0,
        constraint_kwargs={"start": 0.5},
        relabel_kwargs={"critic": "hindsight", "actor": "random"},
        entropy_kwargs={"k": 3, "scale": "none"},
    )
    assert not intrinsic.is_constrained
    relabelled = intrinsic.relabel(batch)
    features = intrinsic.encoder(batch.next_observations)
    expected = th.cdist(features, features).sort(dim=1).values[:, :3].sub(0.0005).clamp(min=0).mean(dim=1).log1p()
    th.testing.assert_close(relabelled.rewards.squeeze(1), expected)
    pairs = relabelled.pairs
    assert (pairs.rewards == relabelled.rewards).all() and pairs.rows is None
    for skills in (pairs.skills, pairs.target_skills, relabelled.actor_skills):
        assert (skills == batch.skills).all()
    assert len(relabelled.clusters.unique()) > 1, "clusters are there already"

    intrinsic.is_constrained = True
    relabelled = intrinsic.relabel(batch)
    assert len(relabelled.pairs.rows) > 3 * BATCH_SIZE and (relabelled.actor_skills != batch.skills).any()
    assert (relabelled.rewards > expected[:, None]).any()


@pytest.mark.parametrize("start", [0.5, 100])
def test_heads_learn_once_the_constraint_has_started(make_model, start):
    model = make_model(constraint_kwargs={"start": start})
    heads = model.critic.q_networks.state_dict()
    before = {name: value.clone() for name, value in heads.items()}
    shared = model.critic.shared_networks[0][0].weight.detach().clone()
    states = []

    def note(locals_, globals_):
        states.append({name: (value != before[name]).any().item() for name, value in heads.items()})
        return True

    model.learn(200, callback=note)
    assert not any(states[95].values()) and all(states[-1].values())
    assert (model.critic.shared_networks[0][0].weight != shared).any()
    assert model.critic.use_heads and model.critic_target.use_heads

    released = make_model(constraint_kwargs={"start": 0.5}, policy_kwargs={"net_arch": [16, 16], "shared_value": False})
    before = released.critic.q_networks[0].layers[0].weight.detach().clone()
    released.learn(90)
    assert (released.critic.q_networks[0].layers[0].weight != before).any(), "without a shared value heads explore"
