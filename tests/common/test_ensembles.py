import pytest
import torch as th

from sb3_cesd.common.ensembles import EnsembleLinear, RoutedEnsembleMLP, route
from sb3_cesd.common.torch_layers import select

N_HEADS = 5
# (rows of each head): usual, one empty, one-row heads, all on one head
LAYOUTS = [[3, 4, 2, 6, 5], [0, 7, 1, 12, 0], [1, 1, 1, 1, 1], [0, 0, 20, 0, 0]]


def rows_of(layout):
    heads = th.cat([th.full((n,), head) for head, n in enumerate(layout)])
    return heads[th.randperm(len(heads), generator=th.Generator().manual_seed(0))]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tile_size", [None, 1, 3, 64])
def test_routed_equals_dense(layout, tile_size):
    th.manual_seed(0)
    heads = rows_of(layout)
    mlp = RoutedEnsembleMLP(N_HEADS, 7, 2, [11, 9]).double()
    inputs = th.randn(len(heads), 7, dtype=th.float64, requires_grad=True)
    weights = th.randn(len(heads), 2, dtype=th.float64)

    dense = mlp.forward_dense(inputs)[heads, th.arange(len(heads))]
    dense_gradients = th.autograd.grad((dense * weights).sum(), [inputs, *mlp.parameters()])
    routing = route(heads, N_HEADS, tile_size)
    routed = mlp(select(inputs, routing.order), routing)
    gradients = th.autograd.grad((routed * weights).sum(), [inputs, *mlp.parameters()])

    th.testing.assert_close(routed, dense, rtol=1e-12, atol=1e-12)
    for gradient, dense_gradient in zip(gradients, dense_gradients, strict=True):
        th.testing.assert_close(gradient, dense_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tile_size", [None, 4])
def test_head_without_rows_gets_zero_gradient(tile_size):
    heads = th.tensor([0, 0, 2])
    mlp = RoutedEnsembleMLP(3, 4, 1, [8])
    mlp(th.randn(3, 4), route(heads, 3, tile_size)).sum().backward()
    for parameter in mlp.parameters():
        assert parameter.grad is not None
        assert (parameter.grad[1] == 0).all()
    assert (mlp.layers[0].weight.grad[0] != 0).any()


def test_tiled_plan_has_shapes_that_do_not_depend_on_the_data():
    plans = [route(rows_of(layout), N_HEADS, 4) for layout in LAYOUTS if sum(layout) == 20]
    assert len(plans) == 3
    assert len({(plan.n_slots, len(plan.heads)) for plan in plans}) == 1


def test_tiles_hold_rows_of_one_head():
    heads = rows_of([0, 7, 1, 12, 0])
    plan = route(heads, N_HEADS, 3)
    assert len(plan.slots.unique()) == len(heads)
    assert (plan.heads[plan.slots // 3] == heads).all()


def test_initial_fan_is_that_of_each_head():
    layer = EnsembleLinear(16, 400, 10)
    # U(-1/sqrt(fan_in), 1/sqrt(fan_in)), whatever the number of heads
    assert layer.weight.abs().max() <= 1 / 20
    assert layer.weight.std().item() == pytest.approx(1 / 20 / 3**0.5, rel=0.05)
