"""jit: one trace and one compilation per kind of call, and the same answer as without.

First when it traces again and when not, counted; then what may be an argument; then what is
closed over; then nesting and derivatives; then donation, devices, symbolic sizes; last, that
large and strange programs work.
"""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops, tree
from rune.errors import ArgumentError, DeletedArrayError, DimensionError
from tests.support.arrays import array
from tests.support.close import close, near, same

X = array([0.5, 1.0, 2.0])


def affine(x: Any) -> Any:
    return x * 2.0 + 1.0


def counted(call: Any) -> tuple[int, int, int]:
    """Traces, compilations and runs of one call."""
    with rune.counting() as counts:
        call()
    return counts.traces, counts.compiles, counts.runs


# --- when it traces ---------------------------------------------------------------------------


def test_the_second_call_neither_traces_nor_compiles():
    f = rune.jit(lambda x: ops.sin(x) * x)

    assert counted(lambda: f(X)) == (1, 1, 1)
    assert counted(lambda: f(X + 1.0)) == (0, 0, 1)


@pytest.mark.parametrize(
    "other",
    [array([1.0, 2.0]), array([1, 2, 3]), array(np.ones((1, 3), np.float32)), 2.0, [X, X], None],
    ids=["shape", "dtype", "rank", "weak scalar", "tree", "none"],
)
def test_another_kind_of_argument_is_another_trace(other: Any):
    f = rune.jit(lambda x: tree.map(lambda leaf: leaf + leaf, x))
    f(X)

    assert counted(lambda: f(other))[0] == 1
    assert counted(lambda: f(X))[0] == 0


def test_a_python_scalar_and_an_array_scalar_are_two_kinds():
    f = rune.jit(affine)

    assert counted(lambda: f(1.0))[0] == 1
    assert counted(lambda: f(np.float32(1.0)))[0] == 1
    assert counted(lambda: f(3.0))[0] == 0
    assert f.cache_size() == 2


def test_weakness_survives_a_jitted_function():
    half = array(np.ones(2, np.float16))

    assert (rune.jit(lambda x: x * 2.0)(1.5) * half).dtype == dtypes.f16


def test_settings_are_part_of_the_key():
    f = rune.jit(lambda x: x + ops.iota(shape=(3,), axis=0, dtype=dtypes.f32))
    f(X)

    with rune.configure(check_stages=False):
        assert counted(lambda: f(X)) == (1, 1, 1)
    assert counted(lambda: f(X)) == (0, 0, 1)


def test_clearing_the_cache_traces_again():
    f = rune.jit(affine)
    f(X)
    f.clear_cache()

    assert counted(lambda: f(X))[0] == 1


def test_threads_that_call_at_once_share_one_trace():
    f, go, results = rune.jit(lambda x: ops.sin(x) * x), threading.Barrier(6), []

    def call() -> None:
        go.wait()
        results.append(np.asarray(f(X)))

    threads = [threading.Thread(target=call) for _ in range(6)]
    with rune.counting() as counts:
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    assert (counts.traces, counts.compiles, counts.runs) == (1, 1, 6)
    same(results[:1] * 6, results)


# --- arguments --------------------------------------------------------------------------------


@dataclass
class Parameters:
    w: Any
    b: Any


tree.register_dataclass(Parameters, data_fields=["w", "b"], meta_fields=[])


def test_arguments_and_results_are_any_trees():
    def function(p: Any, data: Any, *, scale: Any) -> Any:
        return Parameters(p.w * data["x"][0], p.b + scale), (data["x"][1], None)

    args = Parameters(X, array(1.0)), {"x": (X, X)}
    result = rune.jit(function)(*args, scale=2.0)

    expected = function(*args, scale=2.0)
    assert isinstance(result[0], Parameters)
    same(tree.leaves(expected), tree.leaves(result))
    assert result[1][1] is None


def test_numpy_arrays_and_python_numbers_are_arguments():
    f = rune.jit(lambda x, n, s: x * s + ops.convert(n, dtype=dtypes.f32))

    same(np.array([3.0, 5.0], np.float32), f(np.array([1.0, 2.0]), 1, 2.0))


@pytest.mark.parametrize("value", ["text", object(), {1, 2}], ids=["str", "object", "set"])
def test_an_argument_that_is_not_an_array_is_an_error_that_names_its_path(value: Any):
    with pytest.raises(ArgumentError, match=r"jit: cannot take \w+ as an array .*\['w'\]"):
        rune.jit(lambda p: p["x"])({"x": X, "w": value})


def test_static_arguments_are_python_values_and_part_of_the_key():
    f = rune.jit(lambda x, n, flag: x * float(n) if flag else x, static_argnums=(1, 2))

    same(np.asarray(X) * 3, f(X, 3, True))
    assert counted(lambda: f(X, 3, True))[0] == 0
    assert counted(lambda: f(X, 4, True))[0] == 1
    same(np.asarray(X), f(X, 4, False))


def test_static_arguments_by_name_in_either_position():
    f = rune.jit(lambda x, mode: x * 2.0 if mode == "double" else x, static_argnames="mode")

    same(np.asarray(X) * 2, f(X, mode="double"))
    same(np.asarray(X) * 2, f(X, "double"))
    same(np.asarray(X), f(X, "other"))


def test_a_static_argument_may_be_counted_from_the_end():
    f = rune.jit(lambda x, mode: x * 2.0 if mode == "double" else x, static_argnums=-1)

    same(np.asarray(X) * 2, f(X, "double"))


def test_a_static_argument_given_by_number_may_be_passed_by_name():
    f = rune.jit(lambda x, mode="single": x * 2.0 if mode == "double" else x, static_argnums=-1)

    same(np.asarray(X) * 2, f(X, mode="double"))
    same(np.asarray(X), f(X))


def test_equal_static_values_of_different_types_are_different():
    f = rune.jit(lambda x, n: x * 1.0 if isinstance(n, bool) else x * 2.0, static_argnums=1)

    same(np.asarray(X), f(X, True))
    same(np.asarray(X) * 2, f(X, 1))


def test_an_unhashable_static_argument_is_an_error():
    with pytest.raises(ArgumentError, match=r"static argument 1 of lambda .*not hashable"):
        rune.jit(lambda x, n: x, static_argnums=1)(X, [1, 2])


def test_an_integer_out_of_range_names_the_users_line():
    with pytest.raises(OverflowError, match=rf"cannot hold {2**40} in i32(.*\n)*at .*test_jit"):
        rune.jit(lambda x: x)(2**40)


def test_a_method_can_be_jitted():
    class Model:
        def __init__(self, w: Any):
            self.w = w

        @rune.jit
        def apply(self: Any, x: Any) -> Any:
            return self.w * x

    tree.register_node(Model, lambda m: ((m.w,), None), lambda _, c: Model(*c))

    same(np.asarray(X) * np.asarray(X), Model(X).apply(X))


def test_jit_is_a_decorator_with_options():
    @rune.jit(static_argnums=1)
    def function(x: Any, n: int) -> Any:
        """Its own words."""
        return x * float(n)

    same(np.asarray(X) * 2, function(X, 2))
    assert function.__doc__ == "Its own words."


# --- what is closed over ----------------------------------------------------------------------


def test_closed_over_arrays_are_captured_and_not_copied_into_the_code():
    f = rune.jit(lambda x: x * X)

    same(np.asarray(X) ** 2, f(X))
    assert len(f.program(X).inputs) == 2


def test_a_closed_over_traced_value_is_an_input():
    derivative = rune.grad(lambda x: rune.jit(lambda y: x * y)(2.0))(3.0)

    assert float(derivative) == 2.0


def test_a_trace_that_closed_over_a_traced_value_is_not_kept():
    inner = []

    def outer(x: Any) -> Any:
        f = rune.jit(lambda y: x * y)
        inner.append(f)
        return f(x)

    rune.grad(outer)(3.0)

    assert inner[0].cache_size() == 0


def test_a_result_may_be_an_argument_a_constant_or_a_python_number():
    f = rune.jit(lambda x: (x, X, 2.0, x, 3))

    result = f(X)

    same((np.asarray(X), np.asarray(X), np.float32(2), np.asarray(X), np.int32(3)), tuple(map(np.asarray, result)))


def test_a_function_without_results_or_without_arguments():
    assert rune.jit(lambda x: None)(X) is None
    assert float(rune.jit(lambda: array(1.0) + 1.0)()) == 2.0


def test_an_empty_array_in_and_out():
    assert rune.jit(lambda x: ops.sin(x) * 2.0)(array(np.zeros((0, 3), np.float32))).shape == (0, 3)


def test_side_effects_happen_while_tracing_only():
    calls = []
    f = rune.jit(lambda x: calls.append(1) or x)
    for _ in range(3):
        f(X)

    assert calls == [1]


def test_a_function_can_be_traced_again_after_an_error_while_tracing():
    switch = [True]

    def function(x: Any) -> Any:
        if switch[0]:
            raise ValueError("not yet")
        return x

    f = rune.jit(function)
    with pytest.raises(ValueError, match="not yet"):
        f(X)
    switch[0] = False

    same(np.asarray(X), f(X))


# --- nesting and derivatives ------------------------------------------------------------------


def test_a_nested_jit_compiles_into_the_outer_one():
    inner = rune.jit(ops.sin)
    outer = rune.jit(lambda x: inner(x) + inner(x))

    assert counted(lambda: outer(X)) == (2, 1, 1)


def test_an_inner_jit_that_was_traced_before_is_not_traced_again():
    inner = rune.jit(ops.sin)
    inner(X)

    assert counted(lambda: rune.jit(lambda x: inner(x) * 2.0)(X))[0] == 1


def test_jitting_a_jitted_function_keeps_both_sets_of_options():
    inner = rune.jit(lambda x, n: x * float(n), static_argnums=1)
    outer = rune.jit(lambda x: inner(x, 2), donate_argnums=0)
    x = array([1.0, 2.0])

    same(np.array([2.0, 4.0], np.float32), outer(x))
    assert x.is_deleted()


def test_grad_of_jit_runs_compiled_forward_and_backward():
    f = rune.jit(lambda x: (ops.sin(x) * x).sum())
    gradient = rune.grad(f)

    assert counted(lambda: gradient(X)) == (1, 2, 2)
    assert counted(lambda: gradient(X)) == (0, 0, 2)
    host = np.asarray(X)
    near(np.cos(host) * host + np.sin(host), gradient(X), relative=1e-6, why="f32")


def test_second_derivatives_of_jit_stay_compiled():
    f = rune.jit(lambda x: (ops.sin(x) * x).sum())
    product = lambda v: rune.jvp(rune.grad(f), (X,), (v,))[1]  # noqa: E731
    product(X)

    traces, compiles, _ = counted(lambda: product(X))
    assert (traces, compiles) == (0, 0)


def test_vmap_of_jit_compiles_the_batched_program_once():
    f = rune.vmap(rune.jit(lambda row: ops.sin(row).sum()))
    rows = array(np.ones((4, 3), np.float32))
    f(rows)

    assert counted(lambda: f(rows)) == (0, 0, 1)


def test_only_the_residuals_that_are_read_leave_the_forward_program():
    f = rune.jit(lambda x: (x + 1.0).sum() * 2.0)

    program = rune.make_program(rune.grad(f))(X)

    forward = program.equations[0].params["program"] if program.equations else None
    assert forward is None or len(forward.outputs) <= 1


def test_dead_results_of_a_nested_jit_are_not_computed():
    inner = rune.jit(lambda x: (ops.sin(x), ops.exp(x)))

    program = rune.make_program(rune.grad(lambda x: inner(x)[0].sum()))(X)

    backward = program.equations[-1]
    assert "exp" not in str(backward.params.get("program", backward))


# --- donation ---------------------------------------------------------------------------------


def test_using_a_donated_argument_reports_that_it_was_deleted():
    f = rune.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = array([1.0, 2.0]), array([3.0, 4.0])

    same(np.array([4.0, 6.0], np.float32), f(x, y))

    assert x.is_deleted()
    assert not y.is_deleted()
    with pytest.raises(DeletedArrayError, match="it was donated"):
        ops.neg(x)


def test_using_a_deleted_array_reports_that_it_was_deleted():
    x = array([1.0, 2.0])
    x.delete()

    assert x.is_deleted()
    with pytest.raises(DeletedArrayError, match="or deleted"):
        ops.neg(x)


def test_donation_of_trees_by_name():
    f = rune.jit(lambda state, x: tree.map(lambda s: s + x, state), donate_argnames="state")
    state = {"a": array([1.0]), "b": array([2.0])}

    result = f(state, 1.0)

    assert [a.is_deleted() for a in tree.leaves(state)] == [True, True]
    assert [float(v[0]) for v in tree.leaves(result)] == [2.0, 3.0]


def test_numpy_memory_is_never_donated():
    host = np.array([1.0, 2.0], np.float32)
    f = rune.jit(lambda x: x * 2.0, donate_argnums=0)

    f(host)

    assert host.tolist() == [1.0, 2.0]


# --- symbolic sizes ---------------------------------------------------------------------------


def test_one_compilation_covers_every_size_in_the_range():
    f = rune.jit(lambda x: (ops.sin(x) * x).sum(), dims={"n": (0, 64)})
    f(X)

    for size in (1, 2, 7, 64, 0):
        x = array(np.linspace(0, 1, size), np.float32)
        with rune.counting() as counts:
            result = f(x)
        assert (counts.traces, counts.compiles) == (0, 0)
        host = np.asarray(x)
        near(np.sum(np.sin(host) * host), result, relative=1e-5, why="sums in another order")


def test_a_size_out_of_the_range_is_an_error():
    f = rune.jit(lambda x: x, dims={"n": (1, 4)})

    with pytest.raises(DimensionError, match=r"n = 5 \(n in 1..4; axis 0 of argument"):
        f(array(np.ones(5, np.float32)))


def test_derivatives_of_a_function_with_a_symbolic_size():
    f = rune.jit(lambda x, w: (ops.tanh(x @ w)).sum(), dims={"n": (1, 16)}, in_dims=("n,_", None))
    w = array(np.ones((3, 2), np.float32))
    gradient = rune.grad(f, argnums=1)

    for size in (2, 5):
        x = array(np.full((size, 3), 0.1), np.float32)
        expected = rune.grad(lambda v, x=x: ops.tanh(x @ v).sum())(w)
        near(expected, gradient(x, w), relative=1e-5, why="sums in another order")


# --- large and strange ------------------------------------------------------------------------


def test_a_program_of_thousands_of_operations_compiles_and_differentiates():
    def function(x: Any) -> Any:
        for _ in range(1000):
            x = x * 1.0009765625 + 0.0009765625
        return x.sum()

    result = rune.jit(function)(X)

    close(np.asarray(function(X)), np.asarray(result), ulps=64, why="a sum of three in one order")
    assert np.isfinite(np.asarray(rune.grad(rune.jit(function))(X))).all()


def test_many_levels_of_jit_need_no_exponential_time():
    f = ops.sin
    for _ in range(12):
        f = rune.jit(lambda x, f=f: f(x) + 1.0)

    near(np.sin(np.asarray(X)) + 12, f(X), relative=1e-6, why="f32")
    assert np.isfinite(np.asarray(rune.grad(lambda x: f(x).sum())(X))).all()


def test_strided_views_are_arguments():
    x = array(np.arange(12.0).reshape(3, 4), np.float32)

    same(np.asarray(x).T * 2, rune.jit(lambda v: v * 2.0)(x.T))


def test_dropping_a_function_frees_its_programs_and_everything_made_from_them():
    def used() -> tuple[Any, Any]:
        f = rune.jit(lambda x: (ops.sin(x) * x).sum())
        rune.hessian(f)(X)
        rune.vmap(rune.grad(f))(array(np.ones((2, 3), np.float32)))
        return weakref.ref(f), weakref.ref(f.program(X))

    function, program = used()
    gc.collect()

    assert function() is None
    assert program() is None
