"""CPU devices that run and exchange data without Python: every collective, bit for bit.

NumPy is the oracle: sums in a tree, neighbours first, for any size.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, lax
from rune import numpy as rnp
from rune.backends import device_named
from rune.backends.cpu import compiler
from rune.backends.cpu.crew.run import ALONE_BYTES
from rune.backends.shared.work import WorkStats
from rune.errors import CollectiveError
from rune.lowering.meetings import CollectiveCall
from rune.sharding import P, make_mesh
from tests.support.eventually import HANG_S

Arrays = Sequence[np.ndarray] | np.ndarray
DRAW = np.random.default_rng(0)
SMALL, LARGE = (8, 3), (8, ALONE_BYTES // 4 + 5)  # one does all the work, and each a part of it
GROUPS = [[0, 2, 4], [7, 3], [1, 5, 6]]


def on_devices(body: Any, count: int = 8) -> Any:
    mesh = make_mesh((count,), ("a",))
    return rune.jit(rune.shard_map(body, mesh=mesh, in_specs=P("a"), out_specs=P("a"), check_vma=False))


def in_tree(combine: Callable[..., Any], arrays: Arrays) -> np.ndarray:
    """Two by two, neighbours first."""
    arrays = [*arrays]
    while len(arrays) > 1:
        pairs = [combine(a, b) for a, b in zip(arrays[::2], arrays[1::2], strict=False)]
        arrays = [*pairs, *arrays[len(arrays) // 2 * 2 :]]
    return arrays[0]


def with_edges(x: np.ndarray) -> np.ndarray:
    """The array with zeros of both signs, infinities and NaN in places where they meet others."""
    for n, row in enumerate(x.reshape(len(x), -1)):
        row[:4] = [0.0, -0.0][n % 2], np.inf * (-1) ** n, np.nan if n == 5 else n, -0.0
    return x


def refuse(*args: Any) -> Any:
    raise AssertionError("Python combines operands")


def test_collectives_need_no_python(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CollectiveCall, "among", refuse)

    np.testing.assert_array_equal(on_devices(lambda v: lax.psum(v, "a"))(np.ones(8, "f")), np.full(8, 8.0))


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "c8", "c16", "bf16"])
def test_sums_are_those_of_the_tree_to_the_bit(dtype: str, shape: tuple[int, ...]):
    x = (DRAW.normal(size=shape) * 100).astype(dtypes.bf16 if dtype == "bf16" else dtype)
    f = on_devices(lambda v: lax.psum(v, "a"))

    expected = in_tree(np.add, x)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(rnp.asarray(x, x.dtype))), np.broadcast_to(expected, shape))


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["pmax", "pmin", "psum"])
def test_extremes_and_sums_of_zeros_infinities_and_nan_agree_with_numpy(kind: str, shape: tuple[int, ...]):
    x = with_edges(np.resize(DRAW.normal(size=8 * 40).astype("f"), (8, max(40, shape[1]))))
    combine = {"pmax": np.maximum, "pmin": np.minimum, "psum": np.add}[kind]

    with np.errstate(invalid="ignore"):
        expected = np.broadcast_to(in_tree(combine, x), x.shape)
    result = np.asarray(on_devices(lambda v: getattr(lax, kind)(v, "a"))(x))
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result)[:, [0, 3]], np.signbit(expected)[:, [0, 3]])


@pytest.mark.parametrize("dtype", ["i4", "u4", "i1", "u1"])
def test_extremes_of_integers_agree_with_numpy(dtype: str):
    info = np.iinfo(dtype)
    x = DRAW.integers(info.min, info.max, size=(8, 300), dtype=dtype, endpoint=True)

    for kind, combine in (("pmax", np.maximum), ("pmin", np.minimum)):
        result = on_devices(functools.partial(getattr(lax, kind), axis_name="a"))(x)
        np.testing.assert_array_equal(result, np.broadcast_to(in_tree(combine, x), x.shape))


def test_truths_along_a_split_axis_are_united_without_python(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CollectiveCall, "among", refuse)
    x = DRAW.normal(size=(24, 131)).astype("f")
    split = rune.device_put(x, rune.NamedSharding(make_mesh((8,), ("a",)), P("a")))

    some, every = rune.jit(lambda x: ((x > 2).any(0), (x < 2).all(0)))(split)
    np.testing.assert_array_equal(some, (x > 2).any(0))
    np.testing.assert_array_equal(every, (x < 2).all(0))


@pytest.mark.parametrize("length", [7, ALONE_BYTES // 4])
def test_sums_in_groups_are_those_of_the_members_alone(length: int):
    x = DRAW.normal(size=(8, length)).astype("f")
    result = np.asarray(on_devices(lambda v: lax.psum(v, "a", axis_index_groups=GROUPS))(x))

    for group in GROUPS:
        np.testing.assert_array_equal(result[group], np.broadcast_to(in_tree(np.add, x[group]), (len(group), length)))


@pytest.mark.parametrize("length", [5, ALONE_BYTES // 32])
def test_blocks_that_move_arrive_whole(length: int):
    x = DRAW.normal(size=(8, 8, 3, length)).astype("f")  # of each device [8, 3, length]
    senders = {receiver: sender for sender, receiver in [(0, 3), (3, 1), (5, 5), (6, 0)]}

    def collective_result(collective: Any) -> np.ndarray:
        return np.asarray(on_devices(lambda v: collective(v[0])[None])(x))

    for axis in range(3):
        rows = collective_result(lambda v, axis=axis: lax.all_gather(v, "a", axis=axis))
        np.testing.assert_array_equal(rows, np.broadcast_to(np.stack([*x], axis), rows.shape))
    for concat in range(3):
        exchange = collective_result(lambda v, concat=concat: lax.all_to_all(v, "a", 0, concat))
        np.testing.assert_array_equal(exchange, [np.stack([*x[:, n]], concat) for n in range(8)])
    back = collective_result(lambda v: lax.all_to_all(rnp.moveaxis(v, 0, 2), "a", 2, 0))
    np.testing.assert_array_equal(back, [x[:, n] for n in range(8)])
    np.testing.assert_array_equal(
        collective_result(lambda v: lax.psum_scatter(v, "a")), [in_tree(np.add, x[:, n]) for n in range(8)]
    )
    permutation = collective_result(lambda v: lax.ppermute(v, "a", [(s, r) for r, s in senders.items()]))
    np.testing.assert_array_equal(permutation, [x[senders[n]] if n in senders else 0 * x[n] for n in range(8)])


def test_keys_and_booleans_and_nothing_at_all_move_too():
    keys = rune.random.split(rune.random.key(0), 8)
    reverse = on_devices(lambda k: lax.ppermute(k, "a", [(n, 7 - n) for n in range(8)]))(keys)
    np.testing.assert_array_equal(rune.random.key_data(reverse), np.asarray(rune.random.key_data(keys))[::-1])
    masks = DRAW.normal(size=(8, 5)) > 0
    np.testing.assert_array_equal(on_devices(lambda m: lax.all_gather(m[0], "a")[None])(masks)[3], masks)
    assert on_devices(lambda v: lax.psum(v, "a"))(np.zeros((8, 0), "f")).shape == (8, 0)


def test_psum_reduces_along_each_axis_of_a_mesh():
    x = DRAW.normal(size=(4, 2, 50)).astype("f")
    mesh = make_mesh((4, 2), ("a", "b"))

    def body(v: Any) -> Any:
        place = 10 * lax.axis_index("a") + lax.axis_index("b")
        return lax.psum(v, "a"), lax.psum(v, "b"), lax.psum(v, ("a", "b")), (v * 0 + place)

    spec = P("a", "b")
    columns, rows, total, places = rune.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)
    np.testing.assert_array_equal(columns, np.broadcast_to(in_tree(np.add, x), x.shape))
    np.testing.assert_array_equal(rows, np.broadcast_to(x.sum(1, keepdims=True), x.shape))
    np.testing.assert_allclose(total, np.broadcast_to(x.sum((0, 1)), x.shape), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(places[..., 0], 10 * np.arange(4)[:, None] + np.arange(2))


def test_loops_and_branches_communicate_each_time_they_run():
    def step(carry: Any, row: Any) -> Any:
        total = lax.psum(carry + row, "a")
        return lax.cond(total[0] > 0, lambda t: lax.pmax(t, "a") / 9, lambda t: lax.pmin(t, "a") / 7, total), total

    def body(v: Any) -> Any:
        last, totals = lax.scan(step, v[0], rnp.stack([v[0] * k for k in range(20)]))
        return last[None], totals[None]

    x = DRAW.normal(size=(8, 3)).astype("f")
    carries, totals = x.copy(), []
    for k in range(20):
        totals.append(in_tree(np.add, carries + x * np.float32(k)))
        carries[:] = totals[-1] / np.float32(9 if totals[-1][0] > 0 else 7)
    last, sums = on_devices(body)(x)
    np.testing.assert_allclose(last, carries, rtol=1e-5)
    np.testing.assert_allclose(sums, np.broadcast_to(np.stack(totals), (8, 20, 3)), rtol=1e-5)


def test_devices_in_different_branches_meet_for_the_same_collective():
    def body(v: Any) -> Any:
        return lax.cond(lax.axis_index("a") % 2 == 0, lambda v: lax.psum(v, "a"), lambda v: lax.psum(v * 2, "a") + 1, v)

    result = on_devices(body)(np.arange(8.0, dtype="f"))
    np.testing.assert_array_equal(result, np.where(np.arange(8) % 2 == 0, 44, 45))


def test_operands_of_different_types_are_refused():
    def body(v: Any) -> Any:
        def shorter(v: Any) -> Any:
            return rnp.broadcast_to(lax.psum(v[:, :2], "a").sum(), v.shape)

        return lax.cond(lax.axis_index("a") == 3, shorter, lambda v: lax.psum(v, "a"), v)

    with pytest.raises(CollectiveError, match=r"cannot meet cpu:\d \(float32\[1, \d\] and float32\[1, \d\]\)"):
        on_devices(body)(np.ones((8, 4), "f"))


def test_a_program_that_failed_runs_again():
    def body(v: Any) -> Any:
        return lax.cond(v[0] > 0, lambda v: v, lambda v: lax.psum(v, "a"), v)

    f = on_devices(body)
    for _ in range(3):
        with pytest.raises(CollectiveError, match=r"in vain \(cpu:1, .*cpu:7 in psum over 'a' for cpu:0\)"):
            f(np.array([1.0, *[0.0] * 7], "f"))
        np.testing.assert_array_equal(f(-np.ones(8, "f")), -8 * np.ones(8))


def test_several_callers_take_turns():
    wide, narrow = on_devices(lambda v: lax.psum(v, "a")), on_devices(lambda v: lax.psum(v, "a"), 2)

    def call(n: int) -> float:
        x = np.full((8, 4), n, "f")
        return float(wide(x)[0, 0]) + float(narrow(x[:2])[0, 0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(100))) == [10.0 * n for n in range(100)]


def test_work_of_every_device_is_counted():
    f = on_devices(lambda v: lax.psum(v, "a"))
    f(np.ones(8, "f"))

    def stats() -> list[WorkStats]:
        backends: list[Any] = [device_named(f"cpu:{n}").backend for n in range(8)]
        return [b.work_stats() for b in backends]

    before = stats()
    f(np.ones(8, "f"))
    assert [b.finished - a.finished for a, b in zip(before, stats(), strict=True)] == [1] * 8
    assert all(s.in_flight == 0 for s in stats())


def test_calls_of_python_among_collectives_still_work():
    def body(v: Any) -> Any:
        double = rune.pure_callback(lambda x: 2 * x, rune.ShapeDtypeStruct(v.shape, v.dtype), lax.psum(v, "a"))
        return lax.psum(double, "a")

    np.testing.assert_array_equal(on_devices(body)(np.ones(8, "f")), np.full(8, 128.0))


def test_a_forked_child_runs_programs_on_new_threads():
    f = on_devices(lambda v: lax.psum(v, "a"))
    x = DRAW.normal(size=LARGE).astype("f")
    expected = np.asarray(f(x))

    def child(results: Any) -> None:
        results.put(bool(np.array_equal(np.asarray(f(x)), expected)))

    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=child, args=(results,))
    process.start()
    assert results.get(timeout=HANG_S)
    process.join(HANG_S)
    assert process.exitcode == 0


@pytest.mark.parametrize(("length", "count"), [(1, 1), (40_001, 3)], ids=["in turn", "by a crew"])
def test_a_crew_of_one_plan_compiles_it_once_with_effort(monkeypatch: pytest.MonkeyPatch, length: int, count: int):
    compile_module, names = compiler.compile_module, []
    monkeypatch.setattr(
        compiler, "compile_module", lambda name, *args: names.append(name) or compile_module(name, *args)
    )

    def alone(v: Any) -> Any:
        return rnp.tanh(v) * 5

    on_devices(alone)(DRAW.normal(size=8 * length))

    # As a draft; for a crew also with effort, and then the checks of its arguments.
    modules = [name for name in names if "alone" in name]
    assert modules == ["shard_map_alone", "shard_map_alone", "shard_map_alone.prepare"][:count]


_INTERRUPTED = """
import os, signal, threading
import numpy as np
import rune
from rune import dtypes, lax
from rune.sharding import P, make_mesh

def on_two(body, out_specs):
    mesh = make_mesh((2,), ("a",))
    return rune.jit(rune.shard_map(body, mesh=mesh, in_specs=P("a"), out_specs=out_specs, check_vma=False))

endless = on_two(lambda v: lax.while_loop(lambda c: lax.psum(c[0], "a") >= 0, lambda c: c + 1e-9, v), P("a"))
endless.lower(np.ones(2, "f")).compile()
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    endless(np.ones(2, "f"))
except KeyboardInterrupt:
    print("interrupted")
print(np.asarray(on_two(lambda v: lax.psum(v, "a"), P())(np.ones(2, "f"))).tolist())
"""


def test_an_interrupt_ends_a_loop_on_all_devices():
    environment = {**os.environ, "RUNE_CPU_DEVICES": "2"}
    arguments: Any = {"env": environment, "capture_output": True, "text": True, "timeout": 120, "check": False}
    result = subprocess.run([sys.executable, "-c", _INTERRUPTED], **arguments)

    assert result.stdout.split() == ["interrupted", "[2.0]"], result.stderr
