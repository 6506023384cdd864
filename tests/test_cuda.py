"""On a GPU: what the tests of fixed shapes and of stand-ins for graphs promise on the CPU."""

import pytest
import torch as th
from learned import parameters_of, state_of
from small import make_small

from sb3_cesd import METHODS
from sb3_cesd.checkpoints import ResumableCheckpoint, remaining_timesteps, resume
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.export import export_policy, import_policy
from sb3_cesd.metrics import play_and_measure

pytestmark = pytest.mark.skipif(not th.cuda.is_available(), reason="no GPU")

DEVICE = "cuda"
NO_NOISE = {"target_policy_noise": 0.0}
#: Their updates draw random numbers, which differ from those of the CPU
RANDOM_UPDATES = ("cesd", "csf", "disagreement", "lsd", "metra", "smm")


@pytest.fixture
def on_cuda():
    """Make a small model of a method on the GPU."""

    def make(method, graph=False, **kwargs):
        return make_small(METHODS[method], device=DEVICE, cuda_graph=graph, **kwargs)

    return make


def graph_of(model):
    return model._update_runner._graphed_update.graph


def largest_difference(first, second):
    return max((a.cpu() - b.cpu()).abs().max() for a, b in zip(parameters_of(first), parameters_of(second), strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_a_captured_graph_learns_the_same(on_cuda, name):
    """With random numbers, too: those of a graph continue where the ones before it ended."""
    plain, graphed = (on_cuda(name, graph).learn(100) for graph in (False, True))
    assert graph_of(plain) is None and graph_of(graphed) is not None
    assert largest_difference(plain, graphed) < 1e-3
    assert largest_difference(graphed, on_cuda(name)) > 1e-3, "something was learned"


@pytest.mark.parametrize("name", [name for name in METHODS if name not in RANDOM_UPDATES])
def test_an_update_is_that_of_the_cpu(name, tmp_path):
    """From the same weights and the same transitions."""
    trained = make_small(METHODS[name]).learn(60)
    trained.save(tmp_path / "model")
    drawn = [trained.replay_buffer.draw(32) for _ in range(trained.intrinsic.n_batches)]
    models = [
        METHODS[name].load(tmp_path / "model", "Pendulum-v1", device=device, **NO_NOISE).learn(2, reset_num_timesteps=False)
        for device in ("cpu", DEVICE)
    ]
    for model in models:
        model.set_parameters(trained.get_parameters())
        model.intrinsic.train()
        model._update([moved(trained.replay_buffer.gather(each), model.device) for each in drawn])
    assert largest_difference(*models) < 1e-4
    assert largest_difference(models[0], trained) > 1e-4, "something was learned"


def moved(batch, device):
    return type(batch)(*(value.to(device) if isinstance(value, th.Tensor) else value for value in batch))


@pytest.mark.parametrize("graph", [False, True])
def test_a_saved_model_moves_between_devices(on_cuda, tmp_path, graph):
    model = on_cuda("cesd", graph).learn(100)
    model.save(tmp_path / "model")
    on_cpu = METHODS["cesd"].load(tmp_path / "model", "Pendulum-v1", device="cpu")
    assert largest_difference(model, on_cpu) == 0
    on_cpu.learn(60, reset_num_timesteps=False)
    on_cpu.save(tmp_path / "model")
    back = METHODS["cesd"].load(tmp_path / "model", "Pendulum-v1", device=DEVICE)
    assert largest_difference(back, on_cpu) == 0
    back.learn(100, reset_num_timesteps=False)
    assert (graph_of(back) is not None) == graph
    assert largest_difference(back, on_cpu) > 0


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("name", ["cesd", "diayn", "metra", "aps"])
def test_a_task_is_learned_from_skills(on_cuda, name, graph, tmp_path):
    on_cuda(name).learn(80).save(tmp_path / "model")
    model = METHODS[name].from_pretrained(
        tmp_path / "model",
        "Pendulum-v1",
        skill="best",
        warm_up="skills",
        learning_starts=40,
        seed=1,
        device=DEVICE,
        cuda_graph=graph,
    )
    before = parameters_of(model)
    model.learn(120)
    assert (graph_of(model) is not None) == graph
    after = parameters_of(model)
    assert all(parameter.is_cuda and parameter.isfinite().all() for parameter in after)
    assert any((a != b).any() for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize("graph", [False, True])
def test_a_checkpoint_continues_as_if_it_had_never_stopped(on_cuda, graph, tmp_path):
    def train(folder, n_timesteps):
        env = MazeVecEnv("square_a", 2)
        model = make_small(METHODS["cesd"], env, device=DEVICE, cuda_graph=graph)
        return model.learn(n_timesteps, ResumableCheckpoint(folder, 100, keep=5))

    whole = train(tmp_path, 300)
    resumed = resume(tmp_path / "steps_000000000200", MazeVecEnv("square_a", 2), device=DEVICE)
    resumed.learn(remaining_timesteps(resumed), ResumableCheckpoint(tmp_path / "resumed", 100), reset_num_timesteps=False)
    assert resumed.num_timesteps == whole.num_timesteps
    assert largest_difference(whole, resumed) < 1e-3
    assert state_of(whole).keys() == state_of(resumed).keys()


def test_a_graph_reads_the_learning_rate(on_cuda):
    """Halfway it becomes zero, and nothing changes any more."""
    model = on_cuda("diayn", graph=True, learning_rate=lambda progress: 1e-3 if progress > 0.5 else 0.0)
    weights = {}

    def note(names, _):
        weights[model.num_timesteps] = next(iter(model.actor.parameters())).detach().clone()
        return True

    model.learn(200, callback=note)
    assert graph_of(model) is not None
    assert (weights[90] != weights[80]).any()
    assert (weights[190] == weights[110]).all()


def test_skills_are_measured_and_exported(on_cuda, tmp_path):
    env = MazeVecEnv("square_a", 4)
    model = make_small(METHODS["cesd"], env, device=DEVICE).learn(200)
    metrics, _ = play_and_measure(model, env, n_rollouts=2, n_steps=20, seed=0)
    assert all(value == value for value in metrics.values())
    export_policy(model, tmp_path / "policy.safetensors")
    policy = import_policy(tmp_path / "policy.safetensors")
    observation = env.observation_space.sample()
    expected, _ = model.predict(observation, deterministic=True)
    assert expected == pytest.approx(policy.predict(observation, deterministic=True)[0], abs=1e-5)
