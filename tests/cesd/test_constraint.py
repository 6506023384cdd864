import pytest
import torch as th

from sb3_cesd.cesd.constraint import ClusterConstraint, CriticRelabelling

SKILLS = th.tensor([0, 0, 0, 1, 1, 2])
CLUSTERS = th.tensor([0, 1, 1, 1, 2, 1])
ENTROPY = th.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
BONUS = th.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def pairs_of(**kwargs):
    return CriticRelabelling(**kwargs).pairs(SKILLS, CLUSTERS, ENTROPY, BONUS, 4)


def test_released_count_is_of_foreign_members_of_the_cluster():
    # Cluster 1 holds two states of skill 0 and one of skill 2; cluster 2 one of skill 1
    reward = ClusterConstraint(lambda_=1.0, count="released")(CLUSTERS, SKILLS, 4)
    assert reward.tolist() == pytest.approx([1.0, 1 / 4, 1 / 2, 1.0])


def test_paper_count_is_of_states_of_the_skill_outside_its_cluster():
    # Skill 0 has two states outside cluster 0, skill 1 one outside cluster 1, skill 2 one outside cluster 2
    reward = ClusterConstraint(lambda_=0.5, count="paper")(CLUSTERS, SKILLS, 4)
    assert reward.tolist() == pytest.approx([1 / 2.5, 1 / 1.5, 1 / 1.5, 2.0])


@pytest.mark.parametrize(("critic", "acting"), [("cluster", SKILLS), ("paper", CLUSTERS)])
def test_the_head_of_the_cluster_alone_is_trained(critic, acting):
    pairs = pairs_of(critic=critic)
    assert pairs.rows is None and pairs.weights is None, "each transition once"
    assert (pairs.skills == CLUSTERS).all() and (pairs.target_skills == acting).all()
    assert pairs.rewards.squeeze(1).tolist() == pytest.approx((ENTROPY + BONUS).tolist())


def test_union_adds_the_collecting_skill_with_no_reward_off_its_cluster():
    pairs = pairs_of(critic="union")
    assert (pairs.skills == pairs.target_skills).all()
    columns = (pairs.rows, pairs.skills, pairs.rewards.squeeze(1))
    added = list(zip(*(column.tolist()[6:] for column in columns), strict=True))
    # Where skill and cluster agree (rows 0 and 3) nothing is added
    assert added == [(1, 0, 0.0), (2, 0, 0.0), (4, 1, 0.0), (5, 2, 0.0)]


def test_hindsight_trains_random_heads_too():
    th.manual_seed(0)
    counts = th.zeros(4)
    for _ in range(300):
        pairs = pairs_of(critic="hindsight", n_random_heads=2, kappa=0.5)
        assert len(pairs.rows) == 6 + 4 + 12
        random_part = slice(10, None)
        counts += th.bincount(pairs.skills[random_part], minlength=4)
        on_cluster = pairs.skills == CLUSTERS[pairs.rows]
        expected = th.where(on_cluster, (ENTROPY + BONUS)[pairs.rows], 0.5 * ENTROPY[pairs.rows])
        th.testing.assert_close(pairs.rewards.squeeze(1), expected)
    assert (counts / counts.sum()).tolist() == pytest.approx([0.25] * 4, abs=0.03)


def test_constraint_sets_in_after_a_share_or_a_number_of_steps():
    constraint = ClusterConstraint(start=0.7)
    assert [constraint.is_on(1 - progress, 500) for progress in (0.0, 0.69, 0.71, 1.0)] == [False, False, True, True]
    assert ClusterConstraint(start=0.0).is_on(1.0, 0)
    assert [ClusterConstraint(start=100).is_on(0.0, steps) for steps in (0, 99, 100)] == [False, False, True]


def test_actor_skills():
    th.manual_seed(0)
    skills, clusters = th.zeros(4000, dtype=th.long), th.full((4000,), 3)
    assert (CriticRelabelling(actor="skill").actor_skills(skills, clusters, 4) == 0).all()
    by_cluster = CriticRelabelling(actor="cluster", actor_probability=0.25).actor_skills(skills, clusters, 4)
    assert set(by_cluster.tolist()) == {0, 3} and (by_cluster == 3).float().mean().item() == pytest.approx(0.25, abs=0.03)
    at_random = CriticRelabelling(actor="random", actor_probability=0.5).actor_skills(skills, clusters, 4)
    shares = th.bincount(at_random, minlength=4) / 4000
    assert shares.tolist() == pytest.approx([0.625, 0.125, 0.125, 0.125], abs=0.03)
