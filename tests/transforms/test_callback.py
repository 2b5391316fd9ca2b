"""Callbacks: Python functions called while a program runs, in eager and in compiled code.

First what they take and give, then how often they are called (under vmap, under derivatives, in
loops), their order, what may be dropped, then errors. Most claims are tested in eager code and on
every executor; what is printed was compared with jax 0.10.2.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import devices
from rune.errors import ArgumentError, DeviceError, OutOfMemory, TransformError
from tests.support.arrays import array
from tests.support.close import near, same

F32 = rune.ShapeDtypeStruct((), "f32")
X = array([0.0, 1.0, 2.0])
COMPUTING = [d.name for d in devices() if d.name != "null:0"]


def on(device: str) -> Callable[[Any], Any]:
    """jit for a device; "eager" runs operation by operation."""
    return (lambda f: f) if device == "eager" else lambda f: rune.jit(f, device=device)


everywhere = pytest.mark.parametrize("device", ["eager", *COMPUTING])


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The printed lines."""
    return capsys.readouterr().out.splitlines()


# --- what they take and give --------------------------------------------------------------------


@everywhere
def test_a_pure_callback_gives_what_the_function_returns(device: str):
    def function(x: Any) -> Any:
        shape = rune.ShapeDtypeStruct(x.shape, x.dtype)
        return rune.pure_callback(lambda a: np.sin(a) + 1, shape, x * 2.0) * 3.0

    result = on(device)(function)(X)

    near(3 * (np.sin(2 * np.asarray(X)) + 1), result, relative=1e-6, why="f32")


@everywhere
def test_results_are_a_tree_and_arguments_keywords_and_constants(device: str):
    def host(a: Any, *, factor: Any, name: str) -> Any:
        assert name == "sum"
        return {"total": np.asarray(a).sum(), "scaled": np.asarray(a) * np.asarray(factor)}

    result_types = {"total": F32, "scaled": rune.ShapeDtypeStruct((3,), "f32")}
    result = on(device)(lambda x: rune.pure_callback(host, result_types, x, factor=2.0, name="sum"))(X)

    same({"total": np.float32(3), "scaled": np.array([0.0, 2.0, 4.0], np.float32)}, result)


DTYPES = ["bool", "int8", "i32", "f16", "bf16", "f32", "c64"]


@pytest.mark.parametrize("dtype", DTYPES)
@everywhere
def test_arrays_of_every_kind_go_there_and_back(device: str, dtype: str):
    def function(x: Any) -> Any:
        return rune.pure_callback(lambda a: a, rune.ShapeDtypeStruct(x.shape, x.dtype), x)

    x = X.astype(dtype)
    same(np.asarray(x), on(device)(function)(x))


@everywhere
def test_the_function_may_keep_its_arguments(device: str):
    arguments: list[Any] = []

    def function(x: Any) -> Any:
        y = rnp.exp(x) * 2.0
        rune.debug.callback(arguments.append, y)
        return rnp.sin(y) * 2.0

    for _ in range(3):
        on(device)(function)(X)

    near(2 * np.exp(np.asarray(X)), arguments[0], relative=1e-6, why="f32")


@pytest.mark.parametrize("device", COMPUTING)
def test_one_compiled_program_calls_back_for_every_size(device: str):
    def function(x: Any) -> Any:
        return rune.pure_callback(lambda a: np.asarray(a) * 2, rune.ShapeDtypeStruct(x.shape, "f32"), x)

    f = rune.jit(function, dims={"n": (1, 9)}, device=device)

    for n in (3, 5):
        same(2 * np.arange(n, dtype=np.float32), f(rnp.arange(float(n))))
    assert f.cache_size() == 1


def test_the_host_s_double_becomes_the_declared_single():
    assert rune.pure_callback(lambda x: np.float64(0.5), F32, 1.0).dtype == np.float32


@everywhere
@pytest.mark.parametrize("ordered", [False, True])
def test_effects_of_programs_with_complex_numbers_happen_too(
    device: str, ordered: bool, capsys: pytest.CaptureFixture[str]
):
    def step(_: Any, z: Any) -> Any:
        rune.debug.print("{} {}", z, z.real.sum(), ordered=ordered)
        return rune.io_callback(lambda a: a * 1j, z, z, ordered=ordered)

    def function(z: Any) -> Any:
        z = rune.lax.cond(z.real[0] > 0, lambda z: step(0, z), lambda z: z, z)
        return rune.lax.fori_loop(0, 2, step, z)

    result = on(device)(function)(np.array([1, 2j], np.complex64))

    near(np.array([-1j, 2], np.complex64), result, relative=0, why="exact")
    assert sorted(lines(capsys)) == sorted(["[1.+0.j 0.+2.j] 1.0", "[ 0.+1.j -2.+0.j] -2.0", "[-1.+0.j -0.-2.j] -1.0"])


# --- how often ----------------------------------------------------------------------------------


@everywhere
def test_print_prints_once_per_lane(device: str, capsys: pytest.CaptureFixture[str]):
    def function(x: Any) -> Any:
        rune.debug.print("lane")
        rune.debug.print("x = {x:.1f}", x=x)
        return x

    on(device)(rune.vmap(function))(X)

    assert lines(capsys) == ["lane", "x = 0.0", "x = 1.0", "x = 2.0"]


@everywhere
def test_print_prints_the_primal_once_under_a_derivative(device: str, capsys: pytest.CaptureFixture[str]):
    def function(x: Any) -> Any:
        rune.debug.print("x = {}", x)
        return rnp.sin(x)

    jit = on(device)
    for f in (jit(rune.grad(function)), rune.grad(jit(function)), jit(lambda x: rune.jvp(function, (x,), (x,)))):
        f(1.0)
        assert lines(capsys) == ["x = 1.0"]


@everywhere
def test_loops_print_every_step_and_branches_only_the_one_taken(device: str, capsys: pytest.CaptureFixture[str]):
    def step(c: Any, y: Any) -> Any:
        rune.debug.print("step {} {}", c, y)
        return c + y, None

    def function(x: Any) -> Any:
        total, _ = rune.scan(step, x, rnp.arange(3.0))
        return rune.cond(total > 5.0, lambda: rune.debug.print("large"), lambda: rune.debug.print("small {}", total))

    on(device)(function)(1.0)

    assert lines(capsys) == ["step 1.0 0.0", "step 1.0 1.0", "step 2.0 2.0", "small 4.0"]


@everywhere
def test_a_while_loop_prints_every_step(device: str, capsys: pytest.CaptureFixture[str]):
    def body(c: Any) -> Any:
        rune.debug.print("{}", c)
        return c + 1.0

    on(device)(lambda x: rune.while_loop(lambda c: c < 3.0, body, x))(1.0)

    assert lines(capsys) == ["1.0", "2.0"]


@everywhere
def test_a_scan_under_grad_prints_the_forward_pass_once(device: str, capsys: pytest.CaptureFixture[str]):
    def step(c: Any, y: Any) -> Any:
        rune.debug.print("{} {}", c, y)
        return c * y, None

    gradient = on(device)(rune.grad(lambda x: rune.scan(step, x, rnp.arange(1.0, 3.0))[0]))

    assert float(gradient(2.0)) == 2.0
    assert lines(capsys) == ["2.0 1.0", "2.0 2.0"]


# Shapes that the function sees when x has lanes and y has none, as in jax 0.10.2.
METHODS: dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "sequential": [((), ()), ((), ()), ((), ())],
    "sequential_unrolled": [((), ()), ((), ()), ((), ())],
    "expand_dims": [((3,), (1,))],
    "broadcast_all": [((3,), (3,))],
    "legacy_vectorized": [((3,), ())],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("device", ["eager", "cpu:0"])
def test_vmap_of_a_pure_callback_follows_the_method(device: str, method: Any):
    shapes: list[Any] = []

    def host(a: Any, b: Any) -> Any:
        shapes.append((a.shape, b.shape))
        return np.sin(a) * np.asarray(b)

    lanes = rune.vmap(lambda x, y: rune.pure_callback(host, F32, x, y, vmap_method=method), in_axes=(0, None))

    near(2 * np.sin(np.asarray(X)), on(device)(lanes)(X, 2.0), relative=1e-6, why="f32")
    assert shapes == METHODS[method]


# --- order --------------------------------------------------------------------------------------


@everywhere
def test_ordered_callbacks_happen_in_the_order_of_the_program(device: str):
    numbers: list[int] = []

    def function(x: Any) -> Any:
        for i in range(6):
            # Large and small values take turns, so that a schedule by size would mix them.
            value = rnp.exp(rnp.full(1000 if i % 2 else 1, 1.0) * x)
            rune.io_callback(lambda v, i=i: numbers.append(i), None, value, ordered=True)
        return x

    on(device)(function)(1.0)

    assert numbers == list(range(6))


@everywhere
def test_order_holds_through_nested_loops(device: str, capsys: pytest.CaptureFixture[str]):
    def inner(c: Any, y: Any) -> Any:
        rune.debug.print("  inner {}", y, ordered=True)
        return c + y, None

    def outer(c: Any, row: Any) -> Any:
        rune.debug.print("outer {}", row, ordered=True)
        return rune.scan(inner, c, row)[0], None

    def function(x: Any) -> Any:
        total = rune.scan(outer, x, rnp.arange(4.0).reshape(2, 2))[0]
        rune.debug.print("done", ordered=True)
        return total

    assert float(on(device)(function)(0.0)) == 6.0
    assert lines(capsys) == [
        "outer [0. 1.]",
        "  inner 0.0",
        "  inner 1.0",
        "outer [2. 3.]",
        "  inner 2.0",
        "  inner 3.0",
        "done",
    ]


# --- what may be dropped ------------------------------------------------------------------------


@pytest.mark.parametrize("device", COMPUTING)
def test_an_unread_pure_callback_is_dropped_and_an_io_callback_is_not(device: str):
    labels: list[str] = []

    def function(x: Any) -> Any:
        rune.pure_callback(lambda a: labels.append("pure"), F32, x)
        rune.io_callback(lambda a: (labels.append("io"), np.float32(1))[1], F32, x)
        return x * 2.0

    on(device)(function)(1.0)

    assert labels == ["io"]


def test_equal_io_callbacks_are_both_called():
    values: list[float] = []
    note = lambda v: values.append(float(v))  # noqa: E731 - one function, called from two places

    rune.jit(lambda x: [rune.io_callback(note, None, x) for _ in range(2)])(1.0)

    assert values == [1.0, 1.0]


def test_a_function_that_only_calls_back_can_be_jitted(capsys: pytest.CaptureFixture[str]):
    rune.jit(lambda: rune.debug.print("hello"))()

    assert lines(capsys) == ["hello"]


# --- derivatives --------------------------------------------------------------------------------


def test_a_custom_rule_says_what_the_derivative_is():
    sine = rune.custom_jvp(lambda x: rune.pure_callback(lambda a: np.sin(a), F32, x))
    sine.defjvps(lambda t, y, x: t * rune.pure_callback(lambda a: np.cos(a), F32, x))

    for f in (rune.grad(sine), rune.jit(rune.grad(sine)), rune.grad(rune.jit(sine))):
        near(np.cos(1.0), f(1.0), relative=1e-6, why="f32")


# --- errors -------------------------------------------------------------------------------------


@everywhere
def test_an_error_in_the_function_is_raised_unchanged_and_leaves_everything_usable(device: str):
    jit = on(device)
    function = jit(lambda x: rune.pure_callback(lambda a: 1 / 0, F32, x) + 1.0)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            function(1.0)

    assert float(jit(lambda x: x + 1.0)(1.0)) == 2.0


@everywhere
def test_a_memory_error_in_the_users_function_is_raised_unchanged(device: str):
    def refuse(_: Any) -> Any:
        raise OutOfMemory("no room for the answer")

    with pytest.raises(OutOfMemory, match="no room for the answer"):
        on(device)(lambda x: rune.pure_callback(refuse, F32, x) + 1.0)(1.0)


def test_after_an_error_nothing_more_is_called():
    values: list[int] = []

    def step(i: Any, c: Any) -> Any:
        rune.io_callback(lambda i: values.append(int(i)) or 1 / (int(i) - 2), None, i)
        return c

    with pytest.raises(ZeroDivisionError):
        rune.jit(lambda: rune.fori_loop(0, 9, step, 0.0))()

    assert values == [0, 1, 2]


def test_an_error_belongs_to_the_thread_that_called():
    failing = rune.jit(lambda x: rune.pure_callback(lambda a: 1 / 0, F32, x))
    fine = rune.jit(lambda x: rune.pure_callback(lambda a: a, F32, x))
    errors: list[type] = []

    def other() -> None:
        try:
            failing(1.0)
        except ZeroDivisionError as error:
            errors.append(type(error))

    thread = threading.Thread(target=other)
    thread.start()
    assert float(fine(1.0)) == 1.0
    thread.join()

    assert errors == [ZeroDivisionError]
    assert float(fine(1.0)) == 1.0


WRONG: list[tuple[str, Any, str]] = [
    ("shape", lambda a: np.zeros(3, np.float32), r"result is f32\[3\], declared f32\[\]"),
    ("dtype", lambda a: np.int32(1), r"result is i32\[\], declared f32\[\]"),
    ("tree", lambda a: (np.float32(1),), "declared a single value, it is"),
]


@pytest.mark.parametrize(("name", "function", "message"), WRONG, ids=[w[0] for w in WRONG])
@pytest.mark.parametrize("device", ["eager", "cpu:0"])
def test_a_result_that_is_not_as_declared_is_refused(device: str, name: str, function: Any, message: str):
    with pytest.raises(TransformError, match=message):
        on(device)(lambda x: rune.pure_callback(function, F32, x))(1.0)


def test_a_callback_has_no_derivative():
    for kind in (rune.pure_callback, rune.io_callback):
        with pytest.raises(TransformError, match="cannot differentiate host"):
            rune.grad(lambda x, kind=kind: kind(host, F32, x))(1.0)


def host(a: Any) -> Any:
    return np.sin(a)


def test_vmap_needs_a_method_and_no_order():
    with pytest.raises(TransformError, match="pass vmap_method='sequential'"):
        rune.vmap(lambda x: rune.pure_callback(host, F32, x))(X)
    with pytest.raises(TransformError, match="lanes have no order"):
        rune.vmap(lambda x: rune.io_callback(host, F32, x, ordered=True))(X)
    with pytest.raises(ArgumentError, match="cannot use vmap_method 'parallel'"):
        rune.pure_callback(host, F32, 1.0, vmap_method="parallel")  # type: ignore[arg-type]


def test_side_effects_are_refused_where_lanes_part_their_ways():
    def branch(x: Any) -> Any:
        return rune.cond(x > 0, lambda v: rune.io_callback(host, F32, v), lambda v: v, x)

    def loop(x: Any) -> Any:
        body = lambda c: rune.io_callback(host, F32, c) * 0.0 + c + 1.0  # noqa: E731
        return rune.while_loop(lambda c: c < 3.0, body, x)

    for function in (branch, loop):
        with pytest.raises(TransformError, match=r"io_callback in it .the lanes take different branches"):
            rune.vmap(function)(X)


@pytest.mark.skipif("opencl:0" not in COMPUTING, reason="no OpenCL device")
def test_a_callback_cannot_run_a_program_on_the_device_that_waits_for_it():
    inner = rune.jit(lambda x: x + 1.0, device="opencl:0")
    outer = rune.jit(lambda x: rune.pure_callback(lambda a: inner(a), F32, x), device="opencl:0")

    with pytest.raises(DeviceError, match="from a callback"):
        outer(1.0)
    assert float(inner(1.0)) == 2.0


def test_a_callback_may_run_programs_on_the_cpu():
    inner = rune.jit(lambda x: rnp.sin(x) + 1.0)
    outer = rune.jit(lambda x: rune.pure_callback(lambda a: inner(a), F32, x) * 2.0)

    near(2 * (np.sin(1.0) + 1), outer(1.0), relative=1e-6, why="f32")


# --- calls within calls ---------------------------------------------------------------------------


def countdown(device: str) -> Any:
    """A jitted function that calls itself from its callback, `n` times for the argument n."""

    def step(n: Any) -> Any:
        return np.int32(1 + int(count(n - 1))) if n > 0 else np.int32(0)

    count = rune.jit(lambda n: rune.pure_callback(step, rune.ShapeDtypeStruct((), "i4"), n), device=device)
    return count


@pytest.mark.parametrize("device", ["cpu:0", "reference:0"])
def test_a_jitted_function_may_call_itself_from_its_callback(device: str):
    assert int(countdown(device)(np.int32(20))) == 20


@pytest.mark.parametrize("device", ["cpu:0", "reference:0"])
def test_calls_within_calls_end_in_an_error_before_the_native_stack_does(device: str):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with pytest.raises(RecursionError, match=r"callback: cannot call .*\(64 callbacks are"):
            countdown(device)(np.int32(5000))
    finally:
        sys.setrecursionlimit(limit)

    assert int(countdown(device)(np.int32(3))) == 3
