"""Traces belong to functions: who shares them, that nothing of a dropped one stays, and the bound.

Counted, never timed: traces, compilations, evictions, and estimated bytes beside real ones.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.transforms.compile import trace_cache as traces


def double(x, k=2):
    return x * k


class Scale:
    def __init__(self, k):
        self.k = k

    def apply(self, x):
        return x * self.k

    __call__ = apply


def counts_of_calls(make: Any, calls: int = 20, x: Any = 3.0) -> Any:
    """The counts while a function is jitted again for each of some calls."""
    with rune.counting() as counts:
        for _ in range(calls):
            make()(x)
    return counts


# --- who shares -------------------------------------------------------------------------------


def test_a_function_that_is_jitted_in_every_call_is_traced_and_compiled_once():
    counts = counts_of_calls(lambda: rune.jit(double))

    assert (counts.traces, counts.compiles, counts.runs) == (1, 1, 20)


@pytest.mark.parametrize("transform", [rune.grad, rune.value_and_grad, rune.jacrev, rune.vmap])
def test_its_transformations_are_traced_once_too(transform):
    x = np.ones(3, np.float32) if transform is rune.vmap else 3.0
    first = counts_of_calls(lambda: transform(rune.jit(double)), calls=1, x=x)
    more = counts_of_calls(lambda: transform(rune.jit(double)), x=x)

    assert first.traces == 1
    assert (more.traces, more.compiles) == (0, 0)


def test_each_partial_object_is_a_different_function():
    triple = functools.partial(double, k=3)

    assert counts_of_calls(lambda: rune.jit(triple)).traces == 1
    assert counts_of_calls(lambda: rune.jit(functools.partial(double, k=3))).traces == 20


def test_a_bound_method_is_its_equals_function_while_one_is_held():
    scale, other = Scale(2.0), Scale(3.0)
    method = rune.jit(scale.apply)

    assert counts_of_calls(lambda: rune.jit(scale.apply)).traces == 1
    assert rune.jit(other.apply)(2.0) == 6
    assert method(2.0) == 4


def test_a_callable_object_is_a_function():
    scale = Scale(2.0)

    assert counts_of_calls(lambda: rune.jit(scale)).traces == 1
    assert rune.jit(Scale(3.0))(2.0) == 6


def test_an_unhashable_object_is_traced_again():
    class Odd(Scale):
        __hash__ = None  # type: ignore[assignment]
        __slots__ = ()

    odd = Odd(2.0)
    assert [float(rune.jit(odd)(1.0)) for _ in range(2)] == [2, 2]


def test_new_lambdas_are_new_functions_even_at_the_address_of_an_old_one():
    results = [float(rune.jit(lambda x, k=k: x * k)(1.0)) for k in range(50)]

    assert results == [*range(50)]


def test_other_options_are_other_traces():
    def add(x, k):
        return x + k

    assert rune.jit(add)(1.0, 2) == 3
    assert rune.jit(add, static_argnums=1)(1.0, 2) == 3
    assert rune.jit(add, static_argnames="k")(1.0, k=2) == 3
    n = rune.jit(add, dims={"n": (1, 9)}, in_dims=("n", None))
    m = rune.jit(add, dims={"n": (1, 9)}, in_dims=("n", None))
    with rune.counting() as counts:
        for size in (2, 5):
            assert n(np.ones(size), 1).shape == m(np.ones(size), 2).shape == (size,)
    assert counts.traces == 1


def test_a_cache_that_is_cleared_is_the_functions():
    f, g = rune.jit(double), rune.jit(double)
    for _ in range(4):
        f(2.0)
        g(2.0)
    g.clear_cache()

    assert f.cache_size() == 0
    assert counts_of_calls(lambda: f, calls=3).traces == 1
    assert f(2.0) == 4


# --- nothing of a dropped function stays ------------------------------------------------------


@pytest.mark.parametrize("transform", [lambda f: f, rune.grad])
def test_dropping_a_function_frees_everything_made_from_it(transform):
    def run():
        def f(x):
            return x * 2.0 + 1.0

        wrapper = rune.jit(f)
        for _ in range(4):
            transform(wrapper)(3.0)
        return weakref.ref(f), weakref.ref(wrapper), weakref.ref(wrapper.program(3.0))

    references = run()
    gc.collect()

    assert [r() for r in references] == [None, None, None]


def test_the_byte_count_returns_to_its_initial_value():
    gc.collect()
    before = traces.compiled_bytes()
    functions = [rune.jit(lambda x, k=k: x + k) for k in range(10)]
    assert [float(f(1.0)) for f in functions] == [1.0 + k for k in range(10)]
    assert traces.compiled_bytes() >= before + 10 * traces.TRACE_BYTES
    del functions
    gc.collect()

    assert traces.compiled_bytes() == before


# --- the bound --------------------------------------------------------------------------------


def test_unlimited_static_values_are_evicted_and_compile_again():
    f = rune.jit(double, static_argnums=1)
    limit = traces.compiled_bytes() + (4 << 20)
    with rune.configure(compiled_bytes=limit), rune.counting() as counts:
        for k in range(100):
            assert f(2.0, k) == 2 * k
            assert traces.compiled_bytes() <= 1.5 * limit
    assert counts.traces == 100
    assert counts.evictions > 20
    assert f.cache_size() == 100 - counts.evictions

    with rune.counting() as recompilation:
        assert f(2.0, 0) == 0
    assert recompilation.traces == recompilation.compiles == 1


def test_a_trace_in_constant_use_is_not_evicted():
    f, often = rune.jit(double, static_argnums=1), rune.jit(lambda x: x - 1)
    limit = traces.compiled_bytes() + (4 << 20)
    with rune.configure(compiled_bytes=limit):
        for k in range(120):
            f(2.0, k)
            often.program(rnp.float32(1))
        with rune.counting() as counts:
            assert often(rnp.float32(1)) == 0
    assert counts.traces == 0


def test_a_program_that_is_evicted_during_a_call_gives_right_results():
    f = rune.jit(double, static_argnums=1)
    wrong, errors = [], []

    def work(start):
        try:
            for k in range(start, start + 60):
                value = k % 23
                if float(f(2.0, value)) != 2 * value:
                    wrong.append(value)
        except Exception as error:  # set by the thread that started this one
            errors.append(error)

    setting = rune.configure(compiled_bytes=traces.compiled_bytes() + (1 << 20))
    try:
        threads = [threading.Thread(target=work, args=(7 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        rune.configure(compiled_bytes=rune.config.Config().compiled_bytes)
    del setting
    assert not wrong
    assert not errors


def test_a_bound_of_zero_bytes_keeps_little_and_gives_right_results():
    with rune.configure(compiled_bytes=0):
        for _ in range(3):
            for k in range(5):
                assert rune.jit(lambda x, k=k: x * k)(2.0) == 2 * k


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_given_back_to_the_system():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    f = rune.jit(lambda x: rnp.tanh(x) * 2 + 1)
    for k in range(10):
        f(np.ones(k + 1, np.float32))
    before = resident()
    for k in range(10, 90):
        f(np.ones(k + 1, np.float32))
    growth = resident() - before
    rune.clear_caches()

    assert resident() - before < max(0.6 * growth, 2 << 20)
