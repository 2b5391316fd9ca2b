"""The collectives that the partitioner inserts into programs with sharded arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rune
from rune import lax
from rune import numpy as rnp
from rune.core.higher import subprograms
from rune.core.primitive import Collective
from rune.core.program import Program
from rune.sharding import NamedSharding, P, make_mesh
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.localize import localized
from tests.support.sampling import IS_WHOLE


def collectives(function: Callable[..., Any], specs: tuple[P, ...], *args: Any, outs: Any = None) -> Counter[str]:
    """How many collectives of each kind a device takes part in; `specs` cut the arguments."""
    program = rune.make_program(function)(*args)
    mesh = make_mesh((4, 2), ("a", "b"))
    out_specs = outs or (None,) * len(program.outputs)
    local, _ = localized(program, Region(mesh, mesh.axis_names), specs, out_specs)
    return Counter(kinds(local))


def kinds(program: Program) -> list[str]:
    outer = [e.primitive.name for e in program.equations if isinstance(e.primitive, Collective)]
    return outer + [kind for e in program.equations for p in subprograms(e) for kind in kinds(p)]


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3).reshape(shape)


def mlp_loss(params: Any, x: Any, y: Any) -> Any:
    for w, b in params[:-1]:
        x = rnp.tanh(x @ w + b)
    w, b = params[-1]
    return ((x @ w + b - y) ** 2).mean()


PARAMS = [(numbers(6, 10), numbers(10)), (numbers(10, 3), numbers(3))]


def test_a_data_parallel_step_sums_each_gradient_once():
    def step(params: Any, x: Any, y: Any) -> Any:
        loss, gradient = rune.value_and_grad(mlp_loss)(params, x, y)
        return loss, rune.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient)

    specs = (*(P(),) * 4, P("a"), P("a"))
    messages = collectives(step, specs, PARAMS, numbers(16, 6), numbers(16, 3), outs=(P(),) * 5)

    assert messages == {"psum": 5}  # the loss, and the gradient of four leaves


def with_every_collective(w: Any, x: Any) -> Any:
    """A body over "a" alone, whose arrays may be split along "b"."""

    def body(w: Any, x: Any) -> Any:
        y = rnp.tanh(x @ w)
        carry, _ = lax.scan(lambda c, row: (rnp.tanh(c * 0.5 + row), None), y[0], y)
        messages = lax.all_to_all(y[:, None] * rnp.ones((1, 4, 1)), "a", 1, 0, tiled=True)
        shifted = lax.ppermute(x, "a", [(n, (n + 1) % 4) for n in range(4)])
        scattered = lax.psum_scatter(rnp.ones((4, 1)) * carry, "a", tiled=True)
        return lax.psum(y.sum(0), "a"), lax.all_gather(y, "a", tiled=True) * 2, messages, shifted, scattered

    names: Any = {"mesh": make_mesh((4, 2), ("a", "b")), "axis_names": {"a"}, "check_vma": False}
    return rune.shard_map(body, in_specs=(P(), P("a")), out_specs=(P(), *[P("a")] * 4), **names)(w, x)


@pytest.mark.parametrize(
    ("weight", "rows", "out"),
    [
        (P(None, "b"), P("a"), [P("b"), P("a", "b"), P("a", None, "b"), P("a"), P("a", "b")]),
        (P("b"), P("a", "b"), [P(), P("a"), P("a"), P("a", "b"), P("a")]),
    ],
    ids=repr,
)
def test_a_body_over_one_mesh_axis_leaves_arrays_split_along_the_other(weight: P, rows: P, out: list[P]):
    w, x, mesh = numbers(6, 10), numbers(8, 6), make_mesh((4, 2), ("a", "b"))
    split = [rune.device_put(v, NamedSharding(mesh, s)) for v, s in ((w, weight), (x, rows))]

    def squares(w: Any, x: Any) -> Any:
        results = with_every_collective(w, x)
        return sum((r**2).sum() for r in results), results

    step = rune.jit(rune.value_and_grad(squares, has_aux=True))
    (_, results), gradient = step(*split)
    (_, expected), expected_gradient = step(w, x)
    assert [r.sharding.spec for r in results] == out
    for value, other in zip((*results, gradient), (*expected, expected_gradient), strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-4, atol=1e-4)


def test_a_megatron_layer_in_a_body_over_the_batch_sums_twice_along_the_other_mesh_axis():
    def step(w: Any, v: Any, x: Any) -> Any:
        body = rune.grad(lambda w, v, x: (rnp.tanh(x @ w) @ v).sum(), (0, 1))
        names: Any = {"mesh": make_mesh((4, 2), ("a", "b")), "axis_names": {"a"}}
        return rune.shard_map(body, in_specs=(P(), P(), P("a")), out_specs=P(), **names)(w, v, x)

    weights, specs = (numbers(6, 8), numbers(8, 6)), (P(None, "b"), P("b"), P("a"))
    assert collectives(step, specs, *weights, numbers(16, 6), outs=specs[:2]) == {"psum": 2}  # both over the batch


def test_a_megatron_layer_sums_once_forwards_and_once_backwards():
    def layer(w: Any, v: Any, x: Any) -> Any:
        return rnp.tanh(x @ w) @ v

    weights, specs = (numbers(6, 8), numbers(8, 6)), (P(None, "b"), P("b", None), P())

    assert collectives(layer, specs, *weights, numbers(5, 6), outs=(P(),)) == {"psum": 1}
    both = collectives(
        rune.grad(lambda w, v, x: (layer(w, v, x) ** 2).sum(), (0, 1, 2)),
        specs,
        *weights,
        numbers(5, 6),
        outs=(P(None, "b"), P("b", None), P()),
    )
    assert both == {"psum": 2}


def test_nothing_is_sent_for_operations_along_axes_that_are_not_cut():
    def rows(x: Any) -> Any:
        x = rnp.exp(x - x.max(axis=1, keepdims=True))
        x = (x / x.sum(axis=1, keepdims=True)).reshape(8, 3, 2).transpose(0, 2, 1)
        x = rnp.concatenate([x, rnp.cumsum(x, axis=1)], axis=2)[:, :, 1:]
        return lax.pad(x, rnp.float32(0), ((0, 0, 0), (1, -1, 0), (0, 2, 1)))

    assert collectives(rows, (P(("a", "b")),), numbers(8, 6)) == {}


def test_a_contraction_of_blocks_is_one_sum():
    assert collectives(lambda x, y: x @ y, (P("b", "a"), P("a")), numbers(4, 8), numbers(8, 6)) == {"psum": 1}


def test_heads_are_split_and_joined_where_they_are():
    def attention(q: Any, k: Any, v: Any, w: Any) -> Any:
        q, k, v = (x.reshape(2, 5, 4, 3).transpose(0, 2, 1, 3) for x in (q, k, v))
        shares = rune.nn.softmax(q @ k.transpose(0, 1, 3, 2))
        return (shares @ v).transpose(0, 2, 1, 3).reshape(2, 5, 12) @ w

    operands = numbers(2, 5, 12), numbers(2, 5, 12), numbers(2, 5, 12), numbers(12, 7)

    for axis in "ab":
        specs = (*(P(None, None, axis),) * 3, P(axis))
        assert collectives(attention, specs, *operands, outs=(P(),)) == {"psum": 1}


def test_a_cut_that_the_outer_factor_does_not_bear_is_gathered_as_far_as_it_has_to():
    messages = collectives(lambda x: x.reshape(4, 6), (P(("a", "b")),), numbers(24), outs=(P("a"),))

    assert messages == {"all_gather": 1}  # over b: the four rows are cut over a


@st.composite
def reshapes(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Two shapes of one size, and an axis of the first that eight devices divide."""
    factors = draw(st.lists(st.sampled_from([2, 3, 4, 8]), min_size=1, max_size=4))

    def grouped() -> tuple[int, ...]:
        ends = sorted({len(factors), *draw(st.sets(st.integers(1, len(factors)), max_size=3))})
        return tuple(int(np.prod(factors[a:b])) for a, b in zip([0, *ends], ends, strict=False))

    first, second = grouped(), tuple(draw(st.permutations(grouped())))
    return first, second, draw(st.integers(0, len(first) - 1))


@settings(max_examples=30 if IS_WHOLE else 8, deadline=None, derandomize=True)
@given(reshapes(), st.sampled_from(["a", "b", ("a", "b")]))
def test_a_cut_array_is_reshaped_as_a_whole_one_is(shapes: Any, names: Any):
    first, second, axis = shapes
    mesh = make_mesh((4, 2), ("a", "b"))
    parts = int(np.prod([mesh.shape[n] for n in names]))
    spec = P(*(None,) * axis, names) if first[axis] % parts == 0 else P()
    x = numbers(*first)
    x_on_devices = rune.device_put(x, NamedSharding(mesh, spec))

    np.testing.assert_array_equal(rune.jit(lambda x: x.reshape(second))(x_on_devices), x.reshape(second))


@pytest.mark.parametrize("step", [2, 3, 4])
def test_every_nth_row_is_that_of_all_rows(step: int):
    x = numbers(24, 5)
    x_on_devices = rune.device_put(x, NamedSharding(make_mesh((4, 2), ("a", "b")), P("a")))

    for start in range(step):
        np.testing.assert_array_equal(rune.jit(lambda x, s=start: x[s::step])(x_on_devices), x[start::step])


STEPS: dict[str, Callable[[Any], Any]] = {
    "sin": rnp.sin,
    "transpose": lambda x: x.T,
    "rows": lambda x: x - x.mean(axis=1, keepdims=True),
    "columns": lambda x: x / (1 + rnp.abs(x).max(axis=0)),
    "product": lambda x: x @ (x.T @ x) / 50,
    "outer": lambda x: x + x.sum(axis=1)[:, None] * x.sum(axis=0) / 50,
    "halves": lambda x: rnp.concatenate([x[: x.shape[0] // 2], x[x.shape[0] // 2 :] * 2]),
    "reshape": lambda x: x.reshape(-1, 2, x.shape[1] // 2).sum(axis=1).repeat(2, axis=0).reshape(-1, x.shape[1]),
    "heads": lambda x: (x.reshape(8, 4, 2) * rnp.arange(4.0)[:, None]).transpose(1, 0, 2).reshape(4, 16).reshape(8, 8),
    "odd and even": lambda x: rnp.concatenate([x[::2], x[1::2]]) + x[:, ::4].sum(axis=1, keepdims=True),
    "reversed": lambda x: x[::-1, :] + 1,
    "padded": lambda x: rnp.pad(x, ((0, 0), (1, 1)))[:, :-2],
    "rolled": lambda x: rnp.roll(x, 3, axis=0),
    "cumulative": lambda x: rnp.cumsum(x, axis=0) / 8,
    "sorted": lambda x: rnp.sort(x, axis=1),
    "masked": lambda x: rnp.where(x > 0, x, 0.1 * x),
    "loop": lambda x: lax.fori_loop(0, 3, lambda n, v: rnp.tanh(v) + 0.1, x),
    "jitted": rune.jit(lambda x: x * rnp.cos(x)),
}
SPECS = [P(), P("a"), P("b"), P(None, "a"), P("a", "b"), P("b", "a"), P(("a", "b")), P(None, ("b", "a"))]


@settings(max_examples=30 if IS_WHOLE else 3, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5), st.sampled_from(SPECS), st.sampled_from(SPECS))
def test_a_program_of_sharded_arrays_equals_that_of_unsharded_arrays(names: list[str], spec: P, out: P):
    mesh = make_mesh((4, 2), ("a", "b"))
    x = numbers(8, 8)

    def program(x: Any) -> Any:
        for name in names:
            x = STEPS[name](x)
        return x

    def loss(x: Any) -> Any:
        return (rnp.sin(program(x))).sum()

    f = rune.jit(program, in_shardings=NamedSharding(mesh, spec), out_shardings=NamedSharding(mesh, out))
    result = f(x)

    assert result.sharding.spec == out
    np.testing.assert_allclose(result, program(rnp.asarray(x)), rtol=1e-4, atol=1e-5)
    x_on_devices = rune.device_put(x, NamedSharding(mesh, spec))
    np.testing.assert_allclose(rune.jit(rune.grad(loss))(x_on_devices), rune.grad(loss)(x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_integers_are_equal_to_the_last(spec: P):
    x = np.arange(64, dtype="i4").reshape(8, 8) * 7919
    x_on_devices = rune.device_put(x, NamedSharding(make_mesh((4, 2), ("a", "b")), spec))

    np.testing.assert_array_equal(x_on_devices @ x_on_devices.T, x @ x.T)
    np.testing.assert_array_equal(x_on_devices.sum(axis=0), x.sum(axis=0, dtype="i4"))
