"""Lowering of library primitives: NumPy's routine on the host, rune's own algorithm elsewhere."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rune
import rune.lax
import rune.numpy
from rune import dtypes, ops
from rune.backends import device_named
from rune.core.lower import Library, lanes_of_rows
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.errors import CheckError, HostFallbackWarning
from rune.lowering.decompose import decompose
from rune.lowering.host_calls import host_call
from rune.lowering.plan import Call, all_steps
from rune.lowering.stages import stages
from rune.ops.repeat import repeat, repeat_while
from tests.support.lowering import f32

NUMPY = frozenset({"numpy"})
X = np.arange(5, dtype=np.float32)


def library(name: str = "twice", pays: Any = None, **rules: Any) -> Primitive:
    """A primitive that doubles."""
    lower = Library(lanes_of_rows) if pays is None else Library(lanes_of_rows, pays)
    rule_fields = {"expand": lambda x: ops.add(x, x), "reference": lambda x: x + x, **rules}
    return Primitive(name, "test", lambda x: x, jvp=(), lower=lower, **rule_fields)


def lowered(primitive: Primitive, routines: frozenset[str]) -> Program:
    return decompose(rune.make_program(lambda x: primitive(x))(f32(5)), routines)


def test_a_program_without_anything_to_expand_is_not_traced_again():
    program = rune.make_program(lambda x: ops.add(x, x))(f32(5))

    assert decompose(program, NUMPY) is program


def primitives(program: Program) -> list[Primitive]:
    return [e.primitive for e in program.equations]


def test_the_host_calls_its_library():
    assert primitives(lowered(library(), NUMPY)) == [host_call]


def test_every_other_device_has_the_expansion():
    assert primitives(lowered(library(), frozenset())) == [ops.add]


@pytest.mark.parametrize("function", [rune.numpy.sort, rune.numpy.argsort, lambda x: rune.lax.top_k(x, 17)])
def test_a_short_row_is_sorted_without_a_call_of_numpy(function):
    target = device_named("cpu").target
    plans = [stages(rune.make_program(function)(f32(size)), target).plan for size in (64, 65)]

    assert [any(isinstance(step, Call) for step in all_steps(plan)) for plan in plans] == [False, True]


def test_a_few_of_the_largest_elements_are_taken_without_a_call_of_numpy():
    target = device_named("cpu").target
    programs = [rune.make_program(lambda x, k=k: rune.lax.top_k(x, k))(f32(5000)) for k in (12, 13)]

    plans = [stages(program, target).plan for program in programs]

    assert [any(isinstance(step, Call) for step in all_steps(plan)) for plan in plans] == [False, True]


def test_a_library_that_does_not_pay_is_not_called():
    twice = library(pays=lambda x: x.shape[0] > 5)

    assert primitives(lowered(twice, NUMPY)) == [ops.add]


def test_without_an_expansion_a_device_asks_the_host_and_warns_once():
    twice = library("twice_on_the_host", expand=None)

    with pytest.warns(HostFallbackWarning, match="twice_on_the_host"):
        assert primitives(lowered(twice, frozenset())) == [host_call]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lowered(twice, frozenset())


@pytest.mark.parametrize("device", ["cpu:0", "reference:0"])
def test_several_results_can_be_computed_in_either_way(device: str):
    both = Primitive(
        "both",
        "test",
        lambda x: (x, x.with_dtype(dtypes.i32)),
        lambda x: (x + x, x.astype(np.int32)),
        jvp=(),
        lower=Library(lanes_of_rows),
        multiple_results=True,
        expand=lambda x: [ops.add(x, x), ops.convert(x, dtype=dtypes.i32)],
    )

    for run in (both, rune.jit(both, device=device)):
        double, integers = run(X)

        assert np.array_equal(double, X + X)
        assert np.array_equal(integers, X.astype(np.int32))


def test_complex_arrays_reach_the_library_whole():
    reverse = library(reference=lambda x: x[::-1].conj().copy())
    z = (X + 1j * X[::-1]).astype(np.complex64)

    assert np.array_equal(rune.jit(lambda x: reverse(x) * 1.0)(z), z[::-1].conj())


# --- loops of expansions ------------------------------------------------------------------------


def horner(x: Any) -> Any:
    """x⁵ + 0 x⁴ + 1 x³ + … by five steps, which close over x."""
    one = ops.fit(np.float32(1), x.type.shape)
    step = lambda i, y: [ops.add(ops.mul(y, x), ops.convert(i, dtype=dtypes.f32))]  # noqa: E731
    return repeat(5, step, one)[0]


def halvings(x: Any) -> Any:
    """How many halvings bring the largest element below one."""
    largest = ops.reduce_max(x, axes=(0,))
    _, count = repeat_while(
        lambda y, n: ops.ge(y, np.float32(1)),
        lambda y, n: [ops.mul(y, np.float32(0.5)), ops.add(n, np.int32(1))],
        largest,
        np.int32(0),
    )
    return ops.add(ops.mul(x, np.float32(0)), ops.convert(count, dtype=dtypes.f32))


@pytest.mark.parametrize("device", [d for d in rune.devices() if d.target.backend != "null"], ids=lambda d: d.name)
def test_an_expansion_loops_on_every_device(device: Any):
    polynomial = library(expand=horner, pays=lambda x: False)
    count = library(expand=halvings, pays=lambda x: False)

    outputs = rune.jit(lambda x: (polynomial(x), count(x)), device=device.name)(X)

    assert np.array_equal(outputs[0], np.polyval([1, 0, 1, 2, 3, 4], X))
    assert np.array_equal(outputs[1], np.full(5, 3))


def test_a_loop_of_any_length_in_an_expansion_is_one_equation():
    def run(x: Any, count: int) -> Any:
        return repeat(count, lambda i, y: [ops.add(y, x)], x)[0]

    short, long = (
        decompose(rune.make_program(lambda x, n=n: library(expand=lambda v: run(v, n))(x))(f32(5))) for n in (3, 3000)
    )
    assert len(short.equations) == len(long.equations)


def test_a_carry_that_changes_its_dtype_is_refused():
    growing = library(expand=lambda x: repeat(2, lambda i, y: [ops.convert(y, dtype=dtypes.f64)], x)[0])

    with pytest.raises(CheckError, match="repeat: cannot carry f64"):
        lowered(growing, frozenset())
