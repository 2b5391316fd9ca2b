"""Loops and branches of sharded arrays: what they compute, and what they send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import Mesh, NamedSharding, P, make_mesh
from rune.transforms.compile.run import on_mesh
from rune.transforms.sharding.exchanges import Exchange, exchanges
from tests.sharding.eight_devices.traffic import partitioned_traffic
from tests.support.sampling import IS_WHOLE, each_value

Step = Callable[[Any], Any]


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3 + 0.1).reshape(shape)


# --- the law: cut arrays give what whole ones give ----------------------------------------------


def damped(c: Any, r: Any) -> tuple[Any, Any]:
    c = rnp.tanh(0.5 * c + r)
    return c, c * r


def odd_rows(x: Any) -> Any:
    _, rows = lax.scan(damped, rnp.zeros(8), x[:5])
    return rnp.concatenate([rows, x[5:]])


def growing_sums(x: Any) -> Any:
    start = (0, rnp.zeros(8))
    _, total = lax.while_loop(lambda s: rnp.abs(s[1]).max() < 2.0, lambda s: (s[0] + 1, s[1] + x[s[0]] + 0.5), start)
    return x + total


def nested(x: Any) -> Any:
    def step(c: Any, r: Any) -> tuple[Any, Any]:
        return lax.fori_loop(0, 2, lambda _, v: rnp.tanh(v @ x / 8 + r), c), c.sum()

    last, sums = lax.scan(step, rnp.ones(8), x)
    return x * last + sums


def branch_of_each_row(x: Any) -> Any:
    def step(c: Any, r: Any) -> tuple[Any, Any]:
        c = lax.cond(r.sum() > 0, lambda: c + r, lambda: c * x.mean(axis=0))
        return c, c

    return lax.scan(step, rnp.ones(8), x)[1] / 4


def sums_of_sums(x: Any) -> Any:
    """Two nested loops that add up the values of the devices."""
    start = x[0]

    def outer(total: Any, r: Any) -> tuple[Any, None]:
        return lax.fori_loop(0, 2, lambda n, t: t + (x * (n + r[0])).sum(axis=0), total), None

    return x + lax.scan(outer, start, x[:3])[0] / 20


def steps_of_a_weight(x: Any) -> Any:
    """A loop whose number of steps the device computes, over a weight that all read."""
    w = x[:, 0]
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, rnp.tanh(s[1] * w + x)), (0, x))[1]


STEPS: dict[str, Step] = {
    "sums of sums": sums_of_sums,
    "steps of a weight": steps_of_a_weight,
    "rows": lambda x: lax.scan(damped, rnp.zeros(8), x)[1],
    "columns": lambda x: lax.scan(damped, x[0], x.T)[1].T,
    "backwards": lambda x: lax.scan(damped, x[3], x, reverse=True, unroll=2)[1],
    "odd rows": odd_rows,
    "no step": lambda x: lax.fori_loop(0, 0, lambda _, v: v @ v, x) + lax.scan(damped, x[0], x[:0])[0],
    "one step": lambda x: lax.scan(lambda c, r: (c.T * r, None), x, x[2:3])[0],
    "turned": lambda x: lax.fori_loop(0, 3, lambda _, v: 0.5 * v.T + 0.1, x),
    "swapped": lambda x: lax.fori_loop(0, 3, lambda _, s: (s[1], rnp.sin(s[0]) + 0.5), (x, rnp.zeros((8, 8))))[1],
    "product": lambda x: lax.fori_loop(0, 3, lambda n, v: rnp.tanh(v @ x) + 0.1 * n, x),
    "whole": lambda x: lax.fori_loop(0, 3, lambda _, v: rnp.cumsum(v, axis=0) / 8, x),
    "row of each": lambda x: rune.map(lambda r: r / (1 + rnp.abs(r).max()), x),
    "while": lambda x: lax.while_loop(lambda v: (v**2).sum() < 60, lambda v: 1.3 * v + 0.1, x) / 3,
    "while of rows": growing_sums,
    "nested": nested,
    "branch": lambda x: lax.cond(x.sum() > 0, rnp.sin, lambda v: 0.5 * v.T, x),
    "branches": lambda x: lax.switch((3 * x[0, 0] + 1).astype("i4"), [rnp.sin, rnp.zeros_like, lambda v: v + v[0]], x),
    "branch of each": branch_of_each_row,
    "recomputed": lambda x: lax.scan(rune.checkpoint(lambda c, r: (rnp.sin(c @ x) + r, c)), x[1], x)[1],
    "sorted": lambda x: rnp.sort(x, axis=0),
}
MESHES = {
    "line": ((8,), ("a",), [P(), P("a"), P(None, "a")]),
    "plane": ((4, 2), ("a", "b"), [P("a"), P("b", "a"), P(None, ("a", "b")), P("a", "b")]),
    "space": ((2, 2, 2), ("a", "b", "c"), [P("a", "b"), P(("c", "a")), P("b", ("a", "c")), P(("a", "b", "c"))]),
}
LAYOUTS = [(name, spec) for name, (_, _, specs) in MESHES.items() for spec in specs]


def mesh_of(name: str) -> Any:
    return make_mesh(*MESHES[name][:2])


@settings(max_examples=20 if IS_WHOLE else 3, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3), st.sampled_from(LAYOUTS), st.integers(0, 3))
def test_loops_of_sharded_arrays_equal_those_of_unsharded_arrays(names: list[str], layout: Any, out: int):
    mesh, specs = mesh_of(layout[0]), MESHES[layout[0]][2]
    x = numbers(8, 8)

    def program(x: Any) -> Any:
        for name in names:
            x = STEPS[name](x)
        return x

    def loss(x: Any) -> Any:
        return rnp.sin(program(x)).sum()

    f = rune.jit(
        program, in_shardings=NamedSharding(mesh, layout[1]), out_shardings=NamedSharding(mesh, specs[out % len(specs)])
    )
    np.testing.assert_allclose(f(x), program(rnp.asarray(x)), rtol=1e-4, atol=1e-5)
    x_on_devices = rune.device_put(x, NamedSharding(mesh, layout[1]))
    np.testing.assert_allclose(rune.jit(rune.grad(loss))(x_on_devices), rune.grad(loss)(x), rtol=2e-3, atol=2e-4)


@each_value()
@pytest.mark.parametrize("name", sorted(STEPS))
@pytest.mark.parametrize("spec", [P("a", "b"), P("b")], ids=repr)
def test_each_loop_computes_the_same_of_sharded_arrays(name: str, spec: P):
    mesh, x = make_mesh((4, 2), ("a", "b")), numbers(8, 8)
    weights = numbers(8, 8)[::-1]

    def loss(x: Any) -> Any:
        return (STEPS[name](x) * weights).sum()

    x_on_devices = rune.device_put(x, NamedSharding(mesh, spec))
    value, gradient = rune.jit(rune.value_and_grad(loss))(x_on_devices)
    expected, expected_gradient = rune.value_and_grad(loss)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-3, atol=1e-4)


def test_a_loop_of_integers_is_equal_to_the_last():
    x = np.arange(64, dtype="i4").reshape(8, 8) * 7919
    x_on_devices = rune.device_put(x, NamedSharding(make_mesh((4, 2), ("a", "b")), P("a", "b")))

    def squares(x: Any) -> Any:
        return lax.scan(lambda c, r: (c + r * r.sum(), c @ x), rnp.zeros(8, "i4"), x)[1]

    total, rows = np.zeros(8, "i4"), []
    for row in x:
        rows.append(total @ x)
        total = total + row * row.sum(dtype="i4")
    np.testing.assert_array_equal(rune.jit(squares)(x_on_devices), np.array(rows))


def test_the_last_carry_of_a_scan_stays_split():
    mesh = make_mesh((4, 2), ("a", "b"))
    x_on_devices = rune.device_put(numbers(8, 6), NamedSharding(mesh, P("a")))
    last, rows = rune.jit(lambda x: lax.scan(lambda c, _: (rnp.tanh(c), c), x, None, length=3))(x_on_devices)

    assert last.sharding == NamedSharding(mesh, P("a"))
    assert rows.sharding == NamedSharding(mesh, P(None, "a"))


# --- what loops send ----------------------------------------------------------------------------


def sent(function: Callable[..., Any], specs: tuple[P, ...], *args: Any, outs: tuple[P, ...] = (P(),)) -> Any:
    return partitioned_traffic(function, make_mesh((4, 2), ("a", "b")), specs, outs, *args)


MEGATRON = (P(None, None, "b"), P(None, "b"), P())


def megatron(ws: Any, vs: Any, x: Any) -> Any:
    return lax.scan(lambda x, wv: (x + rnp.tanh(x @ wv[0]) @ wv[1], None), x, (ws, vs))[0]


def test_a_scan_over_the_layers_of_a_megatron_mlp_sums_once_a_step():
    args = numbers(3, 6, 8), numbers(3, 8, 6), numbers(5, 6)

    assert sent(megatron, MEGATRON, *args) == {"psum": (1, 4 * 5 * 6)}


def test_its_gradient_sums_once_more_a_step_as_the_program_without_a_loop_does():
    ws, vs, x = numbers(3, 6, 8), numbers(3, 8, 6), numbers(5, 6)

    def unrolled(ws: Any, vs: Any, x: Any) -> Any:
        for w, v in zip(ws, vs, strict=True):
            x = x + rnp.tanh(x @ w) @ v
        return x

    def gradient(f: Any) -> Any:
        return rune.grad(lambda *args: (f(*args) ** 2).sum(), (0, 1, 2))

    messages_of_loop = sent(gradient(megatron), MEGATRON, ws, vs, x, outs=MEGATRON)
    messages_of_steps = sent(gradient(unrolled), MEGATRON, ws, vs, x, outs=MEGATRON)
    assert messages_of_loop == {"psum": (2, 2 * 4 * 5 * 6)}
    assert messages_of_steps == {"psum": (3 * 2, 3 * 2 * 4 * 5 * 6)}


def rnn(w: Any, u: Any, b: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> tuple[Any, Any]:
        h = rnp.tanh(x @ w + h @ u + b)
        return h, h

    return (lax.scan(step, rnp.zeros((8, 10)), xs)[1] ** 2).sum()


RNN = numbers(6, 10), numbers(10, 10), numbers(10), numbers(5, 8, 6)
DATA_PARALLEL = (P(), P(), P(), P(None, "a"))


def test_a_data_parallel_rnn_sends_only_its_loss():
    assert sent(rnn, DATA_PARALLEL, *RNN) == {"psum": (1, 4)}


def test_its_gradient_sums_all_weights_once_after_the_loop_in_one_message():
    gradient = rune.value_and_grad(rnn, (0, 1, 2))
    weight_bytes = sum(w.nbytes for w in RNN[:3])

    (message,) = local_exchanges(gradient, DATA_PARALLEL, *RNN)
    assert (message.kind, message.steps, message.bytes_in) == ("psum", 1, weight_bytes + 4)  # and the loss


def test_microbatches_sum_their_gradients_once():
    def step(w: Any, xs: Any) -> Any:
        def add_up(total: Any, x: Any) -> tuple[Any, None]:
            return total + rune.grad(lambda w: (rnp.tanh(x @ w) ** 2).sum())(w), None

        return lax.scan(add_up, rnp.zeros_like(w), xs)[0]

    (message,) = local_exchanges(step, (P(), P(None, "a")), numbers(6, 10), numbers(5, 8, 6))
    assert (message.kind, message.steps, message.bytes_in) == ("psum", 1, 4 * 6 * 10)


def test_a_sum_in_a_nested_loop_is_taken_after_both_loops():
    sums = [e for e in local_exchanges(sums_of_sums, (P("a"),), numbers(8, 8)) if e.kind == "psum"]

    assert [e.steps for e in sums] == [1, 1]  # one reads the first row


def test_the_gradient_of_a_while_loop_sums_a_weight_once_after_it():
    def loss(w: Any, x: Any) -> Any:
        steps = lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, rnp.tanh(s[1] * w + x)), (0, x))
        return steps[1].sum()

    (message,) = local_exchanges(rune.grad(loss), (P(), P("a")), numbers(6), numbers(8, 6))
    assert (message.kind, message.steps, message.bytes_in) == ("psum", 1, 4 * 6)


def test_recomputation_in_a_checkpoint_sends_nothing_that_cotangents_do_not_need():
    def loss(ws: Any, vs: Any, x: Any) -> Any:
        layer = rune.checkpoint(lambda x, w, v: x + rnp.tanh(x @ w) @ v)
        return (lax.scan(lambda x, wv: (layer(x, *wv), None), x, (ws, vs))[0] ** 2).sum()

    sums = local_exchanges(rune.grad(loss), MEGATRON, numbers(3, 6, 8), numbers(3, 8, 6), numbers(5, 6))
    assert [(e.kind, e.steps) for e in sums] == [("psum", 3), ("psum", 3)]


def test_a_sum_that_the_next_step_reads_stays_in_the_loop():
    def totals(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, s: s + (x * s).sum(axis=0), x[0])

    sums = [e for e in local_exchanges(totals, (P("a"),), numbers(8, 6)) if e.kind == "psum"]
    assert [e.steps for e in sums] == [1, 3]  # the first reads the first row


def test_an_array_that_a_loop_only_reads_is_gathered_once_outside_of_it():
    def products(w: Any, x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, v: rnp.tanh(v @ w), x)

    gathers = [e for e in local_exchanges(products, (P(None, "a"), P("a")), numbers(8, 8), numbers(8, 8))]

    assert [(e.kind, e.steps) for e in gathers] == [("all_gather", 1)]


def local_exchanges(function: Callable[..., Any], specs: tuple[P, ...], *args: Any) -> tuple[Exchange, ...]:
    mesh = make_mesh((4, 2), ("a", "b"))
    x_on_devices = [rune.device_put(a, NamedSharding(mesh, s)) for a, s in zip(args, specs, strict=True)]
    program_on_mesh = on_mesh(rune.make_program(function)(*args), x_on_devices)
    assert program_on_mesh is not None
    return exchanges(program_on_mesh.local, mesh)


def test_a_carry_that_every_step_needs_whole_is_gathered_once():
    def sorts(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, v: rnp.sort(v, axis=0) / 8, x)

    gathers = local_exchanges(sorts, (P("a"),), numbers(8, 6))
    assert [(e.kind, e.steps) for e in gathers] == [("all_gather", 1)]


def test_a_carry_that_is_turned_in_every_step_is_gathered_once():
    gathers = local_exchanges(STEPS["turned"], (P("a"),), numbers(8, 8))

    assert [(e.kind, e.steps) for e in gathers] == [("all_gather", 1)]


def test_a_carry_that_starts_whole_is_cut_as_its_steps_cut_it():
    def running(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, s: (s[1], 0.5 * s[0] + x), (rnp.zeros((8, 6)), x))[1]

    assert local_exchanges(running, (P("a"),), numbers(8, 6)) == ()


def test_rows_cut_along_the_steps_are_gathered_once_and_stay_cut_elsewhere():
    sums = local_exchanges(
        lambda x: lax.scan(lambda c, r: (c + r, None), rnp.zeros(6), x)[0], (P("a", "b"),), numbers(8, 6)
    )

    assert [(e.kind, e.axis, e.steps, e.blocks[0].shape) for e in sums] == [("all_gather", "a", 1, (2, 3))]


def test_a_collective_in_a_scan_counts_once_a_step():
    (row,) = local_exchanges(megatron, MEGATRON, numbers(3, 6, 8), numbers(3, 8, 6), numbers(5, 6))

    assert (row.kind, row.steps) == ("psum", 3)


def test_a_condition_of_cut_values_is_united_on_all_devices():
    def doubled(x: Any) -> Any:
        return lax.while_loop(lambda v: v.max() < 9.0, lambda v: 2.0 * v + 1.0, x)

    assert sent(doubled, (P("a"),), numbers(8, 8), outs=(P("a"),)) == {"pmax": (1, 4)}


def test_a_branch_sends_only_what_its_number_needs():
    def chosen(x: Any) -> Any:
        return lax.cond(x.sum() > 0, rnp.sin, rnp.zeros_like, x)

    assert sent(chosen, (P("a"),), numbers(8, 8), outs=(P("a"),)) == {"psum": (1, 4)}


def conditional(x: Any) -> Any:
    def step(v: Any) -> Any:
        return lax.cond(v[0, 0] > 0, lambda v: 2.0 * v + 1.0, lambda v: v - 3.0, v)

    return lax.while_loop(lambda v: v.sum() < 90.0, step, x)


def test_devices_of_several_makers_agree_on_conditions_of_floats():
    of_one_maker, of_two_makers = Mesh(["cpu:0", "cpu:1"], "a"), Mesh(["cpu:0", "reference:0"], "a")
    x = numbers(4, 4)
    count = lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]  # noqa: E731

    assert partitioned_traffic(conditional, of_one_maker, [P(None, "a")], [P()], x)["psum"] == (
        2,
        8,
    )  # a sum, and an element
    assert "pmax" not in partitioned_traffic(conditional, of_one_maker, [P(None, "a")], [P()], x)
    assert partitioned_traffic(conditional, of_two_makers, [P(None, "a")], [P()], x)["pmax"] == (2, 8)
    assert partitioned_traffic(count, of_two_makers, [P("a")], [P("a")], x) == {}
    x_on_devices = rune.device_put(x, NamedSharding(of_two_makers, P(None, "a")))
    np.testing.assert_allclose(rune.jit(conditional)(x_on_devices), conditional(rnp.asarray(x)), rtol=1e-5)
