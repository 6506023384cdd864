import pytest
import torch as th

from sb3_cesd.common.cuda import set_learning_rate
from sb3_cesd.common.type_aliases import SkillPairs, SkillReplayBufferSamples


def make_samples(observations, next_observations, skills, actions=None):
    """A batch of transitions as the replay buffer samples it, with zero extrinsic returns."""
    rewards = th.zeros(len(observations), 1)
    return SkillReplayBufferSamples(
        observations=observations,
        actions=th.zeros(len(observations), 2) if actions is None else actions,
        next_observations=next_observations,
        dones=th.zeros_like(rewards),
        rewards=rewards,
        discounts=th.full_like(rewards, 0.97),
        skills=skills if skills.is_floating_point() and skills.dim() > 1 else skills.long(),
    )


def make_batch(space, n=12, obs_dim=4, seed=0):
    """Random transitions and single steps in double precision."""
    th.manual_seed(seed)
    obs, one_step, next_obs = th.randn(3, n, obs_dim, dtype=th.float64)
    skills = th.arange(n) % space.n_skills if space.discrete else space.draw_tensor(n, th.device("cpu")).double()
    batch = make_samples(obs, next_obs, skills, th.rand(n, 2, dtype=th.float64) * 2 - 1)
    return batch._replace(one_step_observations=one_step)


def random_samples(clusters, n_skills, seed=1):
    """A batch in float64 with those clusters and any skills, and with ends of episodes among its transitions."""
    th.manual_seed(seed)
    n = len(clusters)
    skills = th.randint(n_skills, (n,))
    rewards = th.rand(n, 1, dtype=th.float64)
    return SkillReplayBufferSamples(
        observations=th.randn(n, 3, dtype=th.float64),
        actions=th.rand(n, 1, dtype=th.float64) * 2 - 1,
        next_observations=th.randn(n, 3, dtype=th.float64),
        dones=(th.rand(n, 1) < 0.3).double(),
        rewards=rewards,
        discounts=0.97 ** th.randint(1, 4, (n, 1)).double(),
        skills=skills,
        clusters=clusters,
        actor_skills=th.randint(n_skills, (n,)),
        pairs=SkillPairs(None, clusters, skills, rewards),
    )


def make_reward(reward_class, skill_space, obs_dim=4, action_dim=2, **kwargs):
    """An intrinsic reward with its optimizers, in training mode."""
    th.manual_seed(1)
    reward = reward_class(obs_dim, action_dim, skill_space, **kwargs)
    reward.set_optimizers(lambda parameters: th.optim.Adam(parameters, lr=1e-2))
    for name, learning_rate in reward.own_learning_rates().items():
        set_learning_rate(getattr(reward, name), learning_rate)
    return reward


def learn(reward, batch, n_updates=200):
    """Learn from one batch again and again, as training does; then rest in evaluation mode."""
    reward.train()
    for _ in range(n_updates):
        reward.update(batch)
        relabelled = reward.relabel(batch)
    reward.eval()
    return relabelled


def assert_same_gradients(loss, expected, parameters):
    """Compare two losses in double precision, and their gradients, of which some are not zero."""
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    gradients, others = (th.autograd.grad(each, parameters, allow_unused=True) for each in (loss, expected))
    assert [gradient is None for gradient in gradients] == [gradient is None for gradient in others]
    compared = [pair for pair in zip(gradients, others, strict=True) if pair[0] is not None]
    assert len(compared) >= 4 and any(gradient.abs().max() > 0 for gradient, _ in compared)
    assert all((gradient - other).norm() <= 1e-9 * other.norm() for gradient, other in compared)
    return gradients
