import sys

import numpy as np
import pytest
import torch as th
from dots import make_small
from gymnasium import spaces

from sb3_cesd import APTDreamer
from sb3_cesd.common.observations import skill_observation_space
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.dreamer.sequences import SequenceReplayBuffer
from sb3_cesd.dreamer.world_model import Latent, WorldModel

IMAGE = spaces.Box(0, 255, (1, 16, 16), np.uint8)


def small(space=IMAGE):
    th.manual_seed(0)
    return WorldModel(space, 2, deter_dim=8, n_categoricals=4, n_classes=4, hidden_dim=8, depth=2)


def test_episodes_of_a_sequence_do_not_know_each_other():
    """Latent states after ``is_first`` don't depend on what was before; those within an episode do."""
    model, is_first = small(), th.zeros(2, 6, dtype=th.bool)
    is_first[:, 0] = is_first[0, 3] = True
    pictures, actions = th.rand(2, 6, 1, 16, 16, requires_grad=True), th.randn(2, 6, 2, requires_grad=True)
    observed = model.observe(pictures, actions, is_first)
    for outputs in (observed.logits, observed.prior_logits, observed.latents.deter, observed.reached):
        for row, reaches_back in ((0, False), (1, True)):
            of_pictures, of_actions = th.autograd.grad(outputs[row, 3:].sum(), (pictures, actions), retain_graph=True)
            assert bool(of_pictures[row, :3].abs().sum() > 0) == reaches_back
            assert bool(of_actions[row, :3].abs().sum() > 0) == reaches_back
    # An episode begins as a sequence does
    assert th.equal(observed.latents.deter[0, 3], observed.latents.deter[0, 0])
    assert th.equal(observed.prior_logits[0, 3], observed.prior_logits[0, 0])
    # What the last action of an episode leads to is known, though not seen
    assert not th.equal(observed.reached[0, 2], observed.latents.deter[0, 3])
    assert th.equal(observed.reached[1, 2], observed.latents.deter[1, 3])


def test_steps_of_acting_are_those_of_sequences():
    model = small()
    pictures, actions = th.rand(1, 3, 1, 16, 16), th.randn(1, 3, 2)
    is_first = th.tensor([[True, False, True]])
    th.manual_seed(1)
    latents, before = [], [each + 5 for each in model.zeros(1)]
    for step in range(3):
        latents.append(model.step(before, pictures[:, step], is_first[:, step], deterministic=True))
        before = [*latents[-1], actions[:, step]]
    # With latent states that leave no choice, nothing depends on what is drawn
    model.posterior.forward = lambda deter, _, forward=model.posterior.forward: _most_likely(forward(deter, _)[0])
    observed = model.observe(pictures, actions, is_first)
    for step, latent in enumerate(latents):
        assert th.allclose(observed.latents.deter[:, step], latent.deter, atol=1e-6)
        assert th.equal(observed.latents.stoch[:, step], latent.stoch)


def _most_likely(logits):
    return logits, th.nn.functional.one_hot(logits.argmax(dim=-1), logits.shape[-1]).float().flatten(1)


def test_imagination_follows_the_prior():
    model, start = small(), Latent(*small().zeros(3)[:2])
    latents, actions = model.imagine(start, lambda features: features[:, :2] + 1, 4)
    assert latents.deter.shape == (5, 3, 8) and latents.stoch.shape == (5, 3, 16) and actions.shape == (4, 3, 2)
    for step in range(4):
        assert th.allclose(latents.deter[step + 1], model.prior(latents.stoch[step], latents.deter[step], actions[step])[2])
        assert th.equal(actions[step], latents.features[step, :, :2] + 1)
    assert model.decode(latents.map(lambda part: part[0])).shape == (3, 1, 16, 16)


def test_vectors_are_observed_too():
    model = small(spaces.Box(-1.0, 1.0, (3,), np.float32))
    assert model.decode(Latent(*model.zeros(2)[:2])).shape == (2, 3)


@pytest.mark.parametrize(
    ("space", "remedy"),
    [
        (spaces.Box(0, 255, (3, 84, 84), np.uint8), "ResizeObservation"),
        (spaces.Dict(a=IMAGE), "FlattenObservation"),
        (spaces.Box(-1.0, 1.0, (2, 2), np.float32), "FlattenObservation"),
    ],
)
def test_what_can_not_be_observed(space, remedy):
    with pytest.raises(ValueError, match=remedy):
        small(space)


def test_without_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("torchrl")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchrl", None)
    with pytest.raises(ImportError, match=r"pip install 'sb3_cesd\[dreamer\]'"):
        make_small(APTDreamer)


def test_sequences_of_a_ring():
    """Consecutive transitions of one environment, from the oldest to the newest; episodes begin after others have ended."""
    skills = DiscreteSkills(4)
    space = skill_observation_space(spaces.Box(-np.inf, np.inf, (1,), np.float32), skills)
    kwargs = {"n_envs": 2, "device": "cpu", "skill_space": skills, "sequence_length": 3}
    buffer = SequenceReplayBuffer(14, space, spaces.Box(-1.0, 1.0, (1,), np.float32), **kwargs)
    assert buffer.begins().all()
    ends, times_out = np.array([[4, 9], [6, 11]]), np.array([False, True])
    for step in range(10):
        dones = np.array([step in row for row in ends])
        obs = {"observation": np.array([[step], [100.0 + step]], np.float32), "skill": skills.vectors[[step % 4, 0]]}
        following = {"observation": obs["observation"] + 1, "skill": obs["skill"]}
        infos = [{"TimeLimit.truncated": bool(done and times_out[idx])} for idx, done in enumerate(dones)]
        buffer.add(obs, following, np.full((2, 1), step / 10), np.array([step, step]), dones, infos)
    assert buffer.full and buffer.begins().tolist() == [True, False]
    batch = buffer.sample(300)
    first = batch.observations[:, 0, 0] % 100
    assert set(first.tolist()) == {3.0, 4.0, 5.0, 6.0, 7.0}
    steps = first[:, None] + th.arange(3)
    of_first = (batch.observations[:, :1, 0] < 100).expand(-1, 3)
    assert th.equal(batch.observations[..., 0] % 100, steps) and th.equal(batch.rewards, steps)
    assert th.allclose(batch.actions[..., 0], steps / 10)
    ended = th.where(of_first, (steps == 4) | (steps == 9), steps == 6)
    assert th.equal(batch.terminated, (ended & of_first).float())
    assert batch.is_first[:, 0].all() and th.equal(batch.is_first[:, 1:], ended[:, :-1])
    assert th.equal(batch.skills, th.where(of_first, steps.long() % 4, 0))
