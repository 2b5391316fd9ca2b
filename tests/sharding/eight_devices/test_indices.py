"""Reads and writes by index along a split axis do not move the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from rune.transforms.compile.run import on_mesh
from rune.transforms.sharding.exchanges import exchanges

EIGHT, GRID = make_mesh((8,), ("x",)), make_mesh((4, 2), ("a", "b"))
ROWS = 40
INDICES = np.array([3, -1, 39, 27, -41, 3, 200, 17, 3, 40, -40], "i4")
COMBINATIONS = ("set", "add", "multiply", "max", "min")


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3).reshape(shape)


X, U = numbers(ROWS, 3), numbers(len(INDICES), 3)[::-1].copy()


def sent(function: Callable[..., Any], specs: tuple[P, ...], *args: Any) -> list[tuple[str, int, int | None]]:
    """The kinds, bytes and steps of the messages of a device for arguments on eight devices."""
    on_devices = [rune.device_put(a, NamedSharding(EIGHT, s)) for a, s in zip(args, specs, strict=True)]
    program_on_mesh = on_mesh(rune.make_program(function)(*args), on_devices)
    assert program_on_mesh is not None
    return [(e.kind, int(e.bytes_in), e.steps) for e in exchanges(program_on_mesh.local, EIGHT)]


def require_same(function: Callable[..., Any], mesh: Any, specs: tuple[P, ...], *args: Any) -> None:
    """Results of arrays on a mesh are those of NumPy on one device, to the last bit."""
    on_devices = [rune.device_put(a, NamedSharding(mesh, s)) for a, s in zip(args, specs, strict=True)]
    results, expected = rune.jit(function)(*on_devices), function(*map(rnp.asarray, args))
    for number, (a, b) in enumerate(zip(rune.tree.leaves(results), rune.tree.leaves(expected), strict=True)):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=str(number))


def test_nothing_is_sent_for_updates_that_every_device_has():
    def updated(x: Any, i: Any, u: Any) -> Any:
        written = [getattr(x.at[i], name)(u) for name in COMBINATIONS]
        return written, x.at[-5].set(1.0), x.at[i[0], 1].set(2.0), lax.dynamic_update_slice(x, u, (i[3], 0))

    assert sent(updated, (P("x"), P(), P()), X, INDICES, U) == []


def test_of_updates_in_parts_the_updates_are_sent_and_not_the_array():
    def updated(x: Any, i: Any, u: Any) -> Any:
        return x.at[i].set(u)

    messages = sent(updated, (P("x"),) * 3, X, INDICES[:8], U[:8])
    assert sorted(messages) == [("all_gather", 16, 1)]  # an index and a row in one message


@pytest.mark.parametrize(
    ("read", "size"),
    [
        (lambda x, i: x[i], 12 * len(INDICES)),
        (lambda x, i: rnp.take(x, i, axis=0), 12 * len(INDICES)),
        (lambda x, i: x[5], 12),
        (lambda x, i: x[i[0]], 12),
        (lambda x, i: x[i[0], 2], 4),
        (lambda x, i: x[13:18], 12 * 5),
        (lambda x, i: x[3:30:9, 1:], 8 * 3),
        (lambda x, i: lax.dynamic_slice(x, (i[1], 1), (5, 2)), 8 * 5),
    ],
    ids=["indices", "take", "number", "traced", "element", "slice", "steps", "dynamic_slice"],
)
def test_what_is_read_is_sent_and_not_the_array(read: Any, size: int):
    assert sent(read, (P("x"), P()), X, INDICES) == [("psum", size, 1)]


def test_rows_that_the_devices_share_are_sent_to_where_they_are_wanted():
    messages = sent(lambda x, i: x[i], (P("x"), P("x")), numbers(400, 3), INDICES[:8])

    assert sorted(messages) == [("all_gather", 4, 1), ("psum_scatter", 12 * 8, 1)]


def test_a_large_part_is_read_from_the_gathered_array():
    assert [kind for kind, *_ in sent(lambda x, i: x[1:-1], (P("x"), P()), X, INDICES)] == ["all_gather"]


def test_a_step_with_a_table_in_parts_sends_rows_of_the_batch():
    def step(table: Any, i: Any) -> Any:
        return table - 0.1 * rune.grad(lambda table: (table[i] ** 2).sum())(table)

    messages = sent(step, (P("x"), P("x")), numbers(4096, 3), INDICES[:8] % 4096)

    assert sorted(messages) == [("all_gather", 4, 1), ("all_gather", 12, 1), ("psum_scatter", 96, 1)]


def test_a_loop_writes_rows_of_its_carry_in_place():
    def cache(x: Any, u: Any) -> Any:
        return lax.fori_loop(0, 9, lambda n, x: lax.dynamic_update_slice(x.at[n].set(u[n]), u[:2] * n, (n + 7, 0)), x)

    assert sent(cache, (P("x"), P()), X, U) == []
    require_same(cache, EIGHT, (P("x"), P()), X, U)


def test_a_loop_gathers_what_it_reads_once_if_its_steps_would_send_more():
    def rows(x: Any, i: Any) -> Any:
        return lax.scan(lambda total, n: (total + x[n], None), rnp.zeros(3), i)[0]

    assert sent(rows, (P("x"), P()), X, INDICES[:4]) == [("psum", 12, 4)]
    assert sent(rows, (P("x"), P()), X, np.tile(INDICES, 9)) == [("all_gather", 4 * X.size // 8, 1)]


LAYOUTS = {"rows": (EIGHT, P("x")), "rows by both": (GRID, P(("b", "a"))), "rows by one": (GRID, P("b"))}


@pytest.mark.parametrize(("layout", "mode"), [*zip(LAYOUTS, ["fill", "clip", "promise_in_bounds"], strict=True)])
def test_indexing_a_split_array_gives_the_same_elements(layout: str, mode: str):
    mesh, spec = LAYOUTS[layout]

    def all_of_them(x: Any, i: Any, u: Any) -> Any:
        written = [getattr(x.at[i], name)(u, mode=mode) for name in COMBINATIONS]
        windows = x[i[4], 2], lax.dynamic_slice(x, (i[6], 1), (5, 2)), lax.dynamic_update_slice(x, u[:, :2], (i[1], 1))
        return written, x.at[i].get(mode=mode), x[i[0]], x[5:9], x[2:30:9], windows

    i = INDICES % ROWS if mode == "promise_in_bounds" else INDICES
    require_same(all_of_them, mesh, (spec, P(), P()), X, i, U)
    require_same(all_of_them, mesh, (spec, spec, spec), X, i[:8], U[:8])


def test_indices_along_two_axes_in_parts():
    x, i, j = numbers(8, 6), np.array([[7, -8, 2], [2, 9, 0]]), np.array([[5, 0, -6], [-6, 1, 6]])

    def both(x: Any, i: Any, j: Any) -> Any:
        return x[i, j], x.at[i, j].set(7.0), x.at[i, j].add(x[i, j]), x[2:4, 1:3], x.at[:, j].add(1.0), x[i[0]]

    require_same(both, GRID, (P("a", "b"), P(), P()), x, i, j)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "?", "c8"])
def test_elements_of_every_dtype_are_read_and_written(dtype: str):
    x = (X * 50).astype(dtype)

    require_same(lambda x, i, u: (x[i], x.at[i].set(u)), EIGHT, (P("x"), P(), P()), x, INDICES % ROWS, x[:11])


@pytest.mark.parametrize("dtype", ["i1", "u2", "u4"])
def test_indices_of_every_dtype_address_all_devices(dtype: str):
    i = (INDICES % ROWS).astype(dtype)

    require_same(lambda x, i: (x[i], x.at[i].set(2.0)), EIGHT, (P("x"), P()), X, i)


def test_zeros_keep_their_sign_and_nan_stays_alone():
    x = np.where(np.arange(ROWS * 3).reshape(ROWS, 3) % 2 == 0, np.float32(-0.0), np.float32(np.nan))

    require_same(lambda x, i: (x[i], rnp.signbit(x[i])), EIGHT, (P("x"), P()), x, INDICES % ROWS)


def test_lanes_read_and_write_arrays_in_parts():
    def lanes(x: Any, i: Any, u: Any) -> Any:
        shared = rune.vmap(lambda n, r: (x[n], lax.dynamic_update_slice(x, r[None], (n, 0))))(i, u)
        separate = rune.vmap(lambda x, n, r: (x[n], x.at[n].set(r)), (1, 0, 0))(x, i[:3], u[:3, 0])
        return shared, separate

    require_same(lanes, EIGHT, (P("x"), P(), P()), X, INDICES, U)


@pytest.mark.parametrize("spec", [P("x"), P(None, "x"), P(None, None, "x")], ids=["lanes", "rows", "columns"])
@pytest.mark.parametrize("length", [1, 3])
def test_windows_of_lanes_are_read_and_written_however_the_lanes_are_in_parts(spec: P, length: int):
    cache, starts = numbers(8, 16, 24), np.array([0, 15, 3, -2, 14, 13, 7, 20], "i4")

    def step(cache: Any, rows: Any, starts: Any) -> Any:
        written = rune.vmap(lambda c, r, n: lax.dynamic_update_slice(c, r, (n, 0)))(cache, rows, starts)
        return written, rune.vmap(lambda c, n: lax.dynamic_slice(c, (n, 0), (length, 24)))(cache, starts)

    require_same(step, EIGHT, (spec, P(), P()), cache, numbers(8, length, 24), starts)


STARTS = np.array([0, 37, 3, -2, 36, 20, 7], "i4")


def test_of_windows_at_computed_starts_the_elements_are_sent_and_not_the_array():
    def windows(x: Any, starts: Any) -> Any:
        return rune.vmap(lambda n: lax.dynamic_slice(x, (n, 0), (3, 3)))(starts)

    assert sent(windows, (P("x"), P()), numbers(400, 3), STARTS) == [("psum", 7 * 3 * 12, 1)]
    assert [kind for kind, *_ in sent(windows, (P("x"), P()), X, STARTS)] == ["all_gather"]  # which is less


@pytest.mark.parametrize(("layout", "mode"), [*zip(LAYOUTS, ["fill", "clip", "promise_in_bounds"], strict=True)])
def test_windows_at_computed_starts_of_a_split_array_are_right(layout: str, mode: str):
    mesh, spec = LAYOUTS[layout]
    starts = STARTS % 36 if mode == "promise_in_bounds" else STARTS
    rows = lax.ScatterDimensionNumbers((1, 2), (), (0,))
    columns = lax.GatherDimensionNumbers((0, 2), (), (0,))  # the elements of a window lead

    def all_of_them(x: Any, starts: Any, u: Any) -> Any:
        at = starts[:, None]
        read = lax.gather(x, at, columns, (5, 3), mode=mode, fill_value=7.0)
        written = lax.scatter(x, at, u, rows, mode=mode), lax.scatter_add(x, at, u, rows, mode=mode)
        return read, written, rune.vmap(lambda n, m: lax.dynamic_slice(x, (n, m), (5, 2)))(starts, starts % 3)

    x = np.tile(numbers(ROWS, 3), (10, 1))
    require_same(
        all_of_them, mesh, (spec, P(), P()), x, starts * 11 % 396 if mode != "fill" else starts * 11, numbers(7, 5, 3)
    )


def test_gradients_through_indices_of_an_array_in_parts():
    def loss(x: Any, i: Any, u: Any) -> Any:
        read = (rnp.sin(x[i % ROWS]) * u).sum() + (x[7] * x[30:33]).sum() + x.at[i].get(mode="fill", fill_value=2).sum()
        written = [(getattr(x.at[i], name)(u) ** 2).sum() for name in COMBINATIONS[:2]]
        return read + sum(written) + (lax.dynamic_update_slice(x, u, (i[3], 0)) ** 3).sum()

    gradient = rune.grad(loss, (0, 2))
    expected = gradient(*map(rnp.asarray, (X, INDICES, U)))
    x = rune.device_put(X, NamedSharding(EIGHT, P("x")))
    for a, b in zip(rune.jit(gradient)(x, INDICES, U), expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-5)
