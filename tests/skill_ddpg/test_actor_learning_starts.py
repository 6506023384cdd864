"""A critic that learns alone at first."""

import pytest
from small import make_small

from sb3_cesd import APT, CeSD
from sb3_cesd.skill_ddpg.estimate import CostPhase


def first_changes(model, n_timesteps, **kwargs):
    """Environment steps after which actor and critic differ from what they were at first."""
    networks = {"actor": model.actor.mu[-1].weight, "critic": model.critic.trunk[0].weight}
    before = {name: weight.detach().clone() for name, weight in networks.items()}
    steps = {}

    def note(locals_, globals_):
        for name, weight in networks.items():
            if (weight != before[name]).any():
                steps.setdefault(name, model.num_timesteps - 1)
        return True

    model.learn(n_timesteps, callback=note, **kwargs)
    return steps


@pytest.mark.parametrize("method", [CeSD, APT])
@pytest.mark.parametrize(("start", "step"), [(0.6, 120), (120, 120), (0.0, 42), (30, 42)])
def test_the_critic_learns_alone_until_then(method, start, step):
    model = make_small(method, actor_learning_starts=start)
    assert first_changes(model, 200) == {"critic": 42, "actor": step}


def test_a_pretrained_skill_acts_as_it_was_until_then(tmp_path):
    make_small(CeSD).learn(80).save(tmp_path / "model.zip")
    model = CeSD.from_pretrained(tmp_path / "model.zip", "Pendulum-v1", skill=1, actor_learning_starts=0.5, seed=0)
    assert first_changes(model, 160) == {"critic": 42, "actor": 80}
    assert CeSD.load(_saved(model, tmp_path), env="Pendulum-v1").actor_learning_starts == 0.5


def test_once_it_has_started_the_actor_goes_on(tmp_path):
    model = make_small(APT, actor_learning_starts=0.6).learn(100)
    loaded = APT.load(_saved(model, tmp_path), env="Pendulum-v1", device="cpu")
    # At the first update, although 60 % of the steps of both runs are not over
    assert first_changes(loaded, 100, reset_num_timesteps=False)["actor"] == 102
    assert first_changes(loaded, 200) == {"critic": 42, "actor": 120}, "a new run"


def _saved(model, folder):
    model.save(folder / "task.zip")
    return folder / "task.zip"


def test_estimate_of_time_knows_that_the_actor_joins():
    model = make_small(CeSD, actor_learning_starts=0.5, intrinsic_kwargs={"constraint_kwargs": {"start": 0.25}})
    model._total_timesteps = 1000
    first, second = model.cost_phases()
    assert first.name == "the constraint" and first.start == 250
    assert second == CostPhase(500, pytest.approx(second.factor), "the actor") and second.factor > 1
    # It starts with the critic
    model = make_small(APT, actor_learning_starts=40)
    model._total_timesteps = 1000
    assert model.cost_phases() == []


def test_a_training_that_ends_before_the_actor_learns_warns():
    with pytest.warns(
        UserWarning, match=r"from step 300 on .*, but this training ends at step 200, .* lower actor_learning_starts"
    ):
        assert "actor" not in first_changes(make_small(APT, actor_learning_starts=300), 200)
