"""SMM: against its formulas, and the constants of URLB's code (agent/smm.py and smm.yaml)."""

import math

import pytest
import torch as th
from batches import make_batch, make_reward
from small import make_small
from torch.nn import functional as F
from tuning import saved

from sb3_cesd import SMM
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.smm import SMMReward

SKILLS = DiscreteSkills(3)
BATCH = make_batch(SKILLS)


def make(**kwargs):
    return make_reward(SMMReward, SKILLS, **{"net_arch": [8], "vae_net_arch": [8], "code_dim": 3, **kwargs}).double()


@th.no_grad()
def terms_of(reward):
    """Squared errors of (s, z), divergences of the codes, and -log q(z | s), with the noise that seed 5 draws."""
    th.manual_seed(5)
    noise = th.randn(12, 3, dtype=th.float64)
    th.manual_seed(5)
    inputs = th.cat([BATCH.observations, th.eye(3, dtype=th.float64)[BATCH.skills]], dim=1)
    hidden = reward.vae.encoder(inputs)
    mean, log_variance = reward.vae.mean(hidden), reward.vae.log_variance(hidden)
    outputs = reward.vae.decoder(mean + noise * log_variance.exp().sqrt())
    divergences = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(dim=1)
    surprisal = F.cross_entropy(reward.discriminator(BATCH.observations), BATCH.skills, reduction="none")
    return (inputs - outputs) ** 2, divergences, surprisal


@pytest.mark.parametrize(("term", "sign"), [("paper", -1), ("released", 1)])
def test_reward_is_that_of_the_paper_or_that_of_the_released_code(term, sign):
    """-log rho + log q + log n in the paper; URLB's code adds h_s_z, h_z and the cross-entropy h_z_s."""
    reward = make(state_coef=2.0, skill_coef=0.3, skill_term=term)
    squares, _, surprisal = terms_of(reward)
    expected = 2.0 * squares.sum(dim=1) + 0.3 * (math.log(3) + sign * surprisal)
    th.testing.assert_close(reward.reward(BATCH).detach(), expected)


def test_losses_are_those_of_vae_and_discriminator():
    reward = make(beta=2.0)
    squares, divergences, surprisal = terms_of(reward)
    reward.update(BATCH)
    assert reward.logs["train/vae_loss"].item() == pytest.approx((squares.mean() + 2 * divergences.mean()).item(), rel=1e-9)
    assert reward.logs["train/discriminator_loss"].item() == pytest.approx(surprisal.mean().item(), rel=1e-9)


def test_learning_rates_are_its_own():
    """Those of URLB by default; the schedule of the algorithm leaves them alone, and they are saved."""

    def rates(model):
        return [getattr(model.intrinsic, name).param_groups[0]["lr"] for name in ("vae_optimizer", "discriminator_optimizer")]

    assert rates(make_small(SMM, learning_rate=lambda progress: 1e-4 * progress).learn(100)) == [1e-2, 1e-3]
    kwargs = {"net_arch": [16], "vae_net_arch": [16], "vae_learning_rate": 2e-3, "discriminator_learning_rate": 3e-4}
    model = make_small(SMM, intrinsic_kwargs=kwargs).learn(60)
    loaded = SMM.load(saved(model), "Pendulum-v1", device="cpu").learn(60)
    assert rates(model) == rates(loaded) == [2e-3, 3e-4]
