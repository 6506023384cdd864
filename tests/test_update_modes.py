"""The update as a GPU does it, on the CPU: with fixed shapes and addresses, and without the host."""

from contextlib import contextmanager

import pytest
import torch as th
from learned import parameters_of
from small import make_small
from torch.utils._python_dispatch import TorchDispatchMode

from sb3_cesd import METHODS
from sb3_cesd.cesd import constraint
from sb3_cesd.common import cuda as update_runner
from sb3_cesd.common import ensembles
from sb3_cesd.common.cuda import GraphedFunction

#: No random numbers whose count depends on shapes
NO_NOISE = {"target_policy_noise": 0.0}
VARIANTS = {
    "exploring": {"constraint_kwargs": {"start": 1.0}},
    "constrained": {"constraint_kwargs": {"start": 0.0}},
    "averages": {"constraint_kwargs": {"start": 0.0}, "cluster_window": 5},
    "released": {"constraint_kwargs": {"start": 0.0}, "relabel_kwargs": {"critic": "cluster", "actor": "skill"}},
}


@contextmanager
def fixed_shapes():
    """Shapes as on a GPU."""
    with pytest.MonkeyPatch.context() as context:
        for module in (constraint, ensembles):
            context.setattr(module, "shapes_may_vary", lambda device: False)
        yield


@pytest.mark.parametrize("variant", VARIANTS)
def test_fixed_shapes_learn_the_same(make_model, variant):
    def learn():
        return make_model(**NO_NOISE, **VARIANTS[variant]).learn(80)

    expected, start = parameters_of(learn()), parameters_of(make_model(**NO_NOISE, **VARIANTS[variant]))
    with fixed_shapes():
        actual = parameters_of(learn())
    assert all((a - b).abs().max() < 1e-5 for a, b in zip(expected, actual, strict=True))
    assert max((a - b).abs().max() for a, b in zip(expected, start, strict=True)) > 1e-4, "something was learned"


class ReadsBack(TorchDispatchMode):
    """Notes operations for which a GPU would have to answer the host."""

    HOST = ("_local_scalar_dense", "nonzero", "masked_select", "bincount", "unique", "equal", "is_nonzero", "_to_copy")

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        boolean_index = name == "index" and any(index is not None and index.dtype in (th.bool, th.uint8) for index in args[1])
        # A copy to another dtype stays where it is
        copies = name == "_to_copy" and (kwargs or {}).get("device") is not None
        if boolean_index or copies or (name in self.HOST and name != "_to_copy"):
            self.found.append(name)
        return func(*args, **(kwargs or {}))


#: Methods of tensors that read: on the CPU some of them are no operation of PyTorch
READS = ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__", "nonzero")


def refuse(*args, **kwargs):
    raise AssertionError("an update read a value from the device")


@pytest.mark.parametrize("variant", [*VARIANTS, "extrinsic", *METHODS])
def test_no_update_reads_from_the_device(make_model, monkeypatch, variant):
    kwargs = {"reward": "extrinsic"} if variant == "extrinsic" else VARIANTS.get(variant, {})
    model = (make_small(METHODS[variant]) if variant in METHODS else make_model(**kwargs)).learn(60)
    model.intrinsic.train()
    drawn = [model.replay_buffer.draw(32) for _ in range(model.intrinsic.n_batches)]
    learned = parameters_of(model)
    with fixed_shapes(), ReadsBack() as reads, monkeypatch.context() as context:
        for method in READS:
            context.setattr(th.Tensor, method, refuse)
        model._update([model.replay_buffer.gather(each) for each in drawn])
    assert reads.found == [] and any((a != b).any() for a, b in zip(parameters_of(model), learned, strict=True))
    if variant == "constrained":
        with ReadsBack() as reads:
            model._update([model.replay_buffer.gather(each) for each in drawn])
        assert reads.found, "with varying shapes they are found"


class Replay:
    """Stands for a captured graph: what is replayed is the function as it was."""

    def __init__(self, function, inputs):
        self.function, self.inputs, self.n_replays = function, inputs, 0

    def replay(self):
        self.n_replays += 1
        self.function(self.inputs)


@pytest.fixture
def captured(monkeypatch):
    """Graphs that are captured, as if the CPU could."""
    graphs = []

    def capture(self):
        graphs.append(Replay(self.function, self.inputs))
        return graphs[-1]

    monkeypatch.setattr(update_runner, "can_capture", lambda device: True)
    monkeypatch.setattr(GraphedFunction, "_capture", capture)
    monkeypatch.setattr(GraphedFunction, "_run_aside", lambda self: self.function(self.inputs))
    return graphs


def test_each_call_runs_the_function_once(captured):
    seen = []
    function = GraphedFunction(lambda inputs: seen.append(inputs.tolist()))
    for value in range(6):
        function(th.tensor([value]), "a")
    function(th.tensor([6]), "b")
    function(th.tensor([7, 8]), "b")
    assert seen == [[0], [1], [2], [3], [4], [5], [6], [7, 8]]
    assert [graph.n_replays for graph in captured] == [6 - GraphedFunction.N_WARM_UP]


@pytest.mark.parametrize("name", METHODS)
def test_a_graph_learns_the_same(captured, name):
    """But for the learning rate, a float32 in a graph. A graph is captured anew where another phase begins."""
    plain, graphed = (make_small(METHODS[name], cuda_graph=graph).learn(100) for graph in (False, True))
    assert all((a - b).abs().max() < 1e-5 for a, b in zip(parameters_of(plain), parameters_of(graphed), strict=True))
    assert len(captured) == (2 if name == "cesd" else 1)
    n_captures = len(captured)
    assert sum(graph.n_replays for graph in captured) == graphed._n_updates - n_captures * GraphedFunction.N_WARM_UP


def test_addresses_stay_the_same(captured, copied, make_model):
    """What a graph reads and writes between updates: parameters, optimizers, statistics, logs and the copies of the buffer."""
    model = make_model(cuda_graph=True, buffer_size=50, constraint_kwargs={"start": 0.0}).learn(60)

    def addresses():
        states = [model.actor.optimizer, model.critic.optimizer, model.intrinsic.prototype_optimizer]
        moments = [value for optimizer in states for state in optimizer.state.values() for value in state.values()]
        tensors = [*model.policy.parameters(), *model.intrinsic.parameters(), *model.intrinsic.buffers(), *moments]
        tensors += [total for _, total in model._mean_logs._sums.values()]
        tensors += model.replay_buffer._tensors._tensors.values()
        return [tensor.data_ptr() for tensor in tensors]

    before, generation = addresses(), model.replay_buffer.generation
    model.learn(100, reset_num_timesteps=False)
    assert model.replay_buffer.generation == generation
    assert addresses() == before


def test_a_graph_is_captured_anew_with_another_learning_rate_tensor(captured, make_model):
    """It would go on reading the old one, whose memory may hold something else by then."""
    model = make_model(cuda_graph=True, buffer_size=50, constraint_kwargs={"start": 0.0}).learn(60)
    optimizer = model.actor.optimizer
    for replace in (
        lambda: optimizer.load_state_dict(optimizer.state_dict()),
        lambda: optimizer.param_groups[0].update(lr=1e-3),
    ):
        n_captured = len(captured)
        model.learn(60, reset_num_timesteps=False)
        assert len(captured) == n_captured
        replace()
        model.learn(60, reset_num_timesteps=False)
        assert len(captured) == n_captured + 1


def test_learning_rates_follow_their_schedule_in_a_graph(captured, make_model):
    model = make_model(cuda_graph=True, learning_rate=lambda progress: 1e-3 * progress).learn(100)
    for optimizer in (model.actor.optimizer, model.critic.optimizer, model.intrinsic.prototype_optimizer):
        assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(1e-3 * model._current_progress_remaining, rel=1e-5)
