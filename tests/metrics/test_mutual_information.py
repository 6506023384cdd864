import numpy as np
import pytest

from sb3_cesd.metrics import mine_mutual_information, plug_in_mutual_information

N_SKILLS = 4


def make_states(kind, n_per_skill=1500, seed=0):
    """States whose skills can all be told, none, or in pairs, and their skills."""
    rng = np.random.default_rng(seed)
    skills = np.repeat(np.arange(N_SKILLS), n_per_skill)
    shift = {"disjoint": skills, "same": 0 * skills, "pairs": skills // 2}[kind]
    return rng.random((len(skills), 2)) + np.stack([2 * shift, 0 * shift], axis=1), skills


KNOWN = {"disjoint": np.log(N_SKILLS), "same": 0.0, "pairs": np.log(2)}


@pytest.mark.parametrize("kind", KNOWN)
def test_plug_in(kind):
    states, skills = make_states(kind)
    # 16 bins a square, 4 skills and 6000 states: the bias is 45 / 12000 for one square
    assert plug_in_mutual_information(states, skills) == pytest.approx(KNOWN[kind], abs=1e-9 if kind == "disjoint" else 0.01)


def test_one_skill_tells_nothing():
    states = np.random.default_rng(0).normal(size=(1000, 2))
    assert plug_in_mutual_information(states, np.zeros(1000, dtype=int)) == pytest.approx(0.0, abs=1e-9)


def test_plug_in_by_hand():
    # Skill 0: both in one bin. Skill 1: one in the same, one in another
    states, skills = np.array([[0.1, 0.1], [0.2, 0.2], [0.1, 0.2], [0.3, 0.1]]), np.array([7, 7, 9, 9])
    expected = 0.5 * np.log(0.5 / (0.75 * 0.5)) + 0.25 * np.log(0.25 / (0.75 * 0.5)) + 0.25 * np.log(0.25 / (0.25 * 0.5))
    assert plug_in_mutual_information(states, skills) == pytest.approx(expected)
    assert plug_in_mutual_information(states, skills, bin_size=0.5) == pytest.approx(0.0)


@pytest.mark.parametrize("kind", KNOWN)
def test_mine(kind):
    states, skills = make_states(kind)
    estimate = mine_mutual_information(states, skills, n_iterations=600)
    assert estimate.mutual_information == pytest.approx(KNOWN[kind], abs=0.1)
    assert estimate.bounds.shape == (600,) and estimate.mutual_information == estimate.bounds[-50:].mean()


def test_mine_says_when_it_is_above_its_bound():
    states, skills = np.eye(4), np.repeat(np.arange(2), [1, 3])
    with pytest.warns(UserWarning, match=r"above the entropy of the skills \(0\.562\).* Pass more rollouts"):
        estimate = mine_mutual_information(states, skills, n_iterations=300, batch_size=8, window=1, seed=5)
    assert estimate.mutual_information > estimate.entropy == pytest.approx(0.25 * np.log(4) + 0.75 * np.log(4 / 3))


def test_mine_takes_any_names_of_skills():
    states, skills = make_states("pairs", 100)
    plain, named = (mine_mutual_information(states, each, n_iterations=20).bounds for each in (skills, 10 * skills - 7))
    assert np.array_equal(plain, named)


def test_mine_needs_several_skills_and_states_of_the_order_of_one():
    states, skills = make_states("disjoint", 20)
    with pytest.raises(ValueError, match=r"All samples have skill 3, .*: pass those of several skills"):
        mine_mutual_information(states, 0 * skills + 3, n_iterations=1)
    with pytest.raises(ValueError, match="not finite: pass states of the order of 1, or a lower learning_rate"):
        mine_mutual_information(1e30 * states, skills, n_iterations=20)


def test_mine_memorises_paths_whose_skills_were_shuffled():
    """So an estimate means something only beside that of shuffled skills, which ``show`` and the benchmark compute."""
    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.normal(0, 0.1, (80, 51, 2)), axis=1).reshape(80, -1)
    estimate = mine_mutual_information(paths, rng.permutation(np.repeat(np.arange(4), 20)), n_iterations=2000)
    assert estimate.mutual_information > 0.5 * np.log(4)


def test_mine_is_reproducible():
    states, skills = make_states("pairs", 100)
    runs = [mine_mutual_information(states, skills, n_iterations=20, seed=seed).bounds for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


def test_mine_takes_whole_rollouts():
    rng = np.random.default_rng(0)
    skills = np.repeat(np.arange(10), 100)
    angles = 2 * np.pi * skills / 10
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rollouts = np.arange(51)[:, None] / 10 * directions[:, None] + rng.normal(0, 0.05, (1000, 51, 2))
    estimate = mine_mutual_information(rollouts.reshape(1000, 102), skills, n_iterations=600, learning_rate=3e-3)
    assert estimate.mutual_information == pytest.approx(np.log(10), abs=0.35)


def test_gradient_of_mine_goes_by_a_moving_average():
    """Without it (``ema=0``) the gradient is that of each batch alone, which is biased (Belghazi et al., section 3.2)."""
    states, skills = make_states("pairs", 100)
    kwargs = {"n_iterations": 5, "batch_size": 16, "learning_rate": 0.1}
    averaged, alone = (mine_mutual_information(states, skills, ema=ema, **kwargs).bounds for ema in (0.99, 0.0))
    assert averaged[0] == alone[0] and (averaged[1:] != alone[1:]).all()
