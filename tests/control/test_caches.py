"""Caches between calls, and that clear_caches empties them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu.fft import reals, rows, stage_lists
from rune.core.program import Program
from rune.dims.factors import Interned
from tests.support.arrays import array
from tests.support.close import same

X = array([0.5, 1.0, 1.5])
pytestmark = pytest.mark.usefixtures("small_heap")

# Each makes separate programs, because the number is part of them.
JITTED: dict[str, Callable[[float], Any]] = {
    "a gradient": lambda k: rune.grad(rune.jit(lambda v: rnp.sum(rnp.sin(v) * k)))(X),
    "the gradient of a scan": lambda k: rune.grad(
        rune.jit(lambda v: rune.scan(lambda c, a: (rnp.sin(c * a + k), c), 1.0, v)[0])
    )(X),
    "a loop of unknown length": lambda k: rune.jvp(
        rune.jit(lambda v: rune.while_loop(lambda c: c.sum() < 99.0, lambda c: c * 2.0 + k, v)), (X,), (X,)
    ),
    "the gradient of a branch": lambda k: rune.grad(
        rune.jit(lambda v: rune.cond(v.sum() > 0, lambda: (v * k).sum(), lambda: (v * 2.0).sum()))
    )(X),
    "a factorisation": lambda k: rune.jit(rnp.linalg.cholesky)(rnp.eye(3) * (k + 2.0)),
}
EAGER: dict[str, Callable[[float], Any]] = {
    "a loop": lambda k: rune.fori_loop(0, 3, lambda i, c: rnp.sin(c) * k, X),
    "the gradient of a loop": lambda k: rune.grad(lambda v: rune.fori_loop(0, 3, lambda i, c: rnp.sin(c) * k, v).sum())(
        X
    ),
    "the gradient of a branch": lambda k: rune.grad(
        lambda v: rune.cond(v.sum() > 0, lambda: (v * k).sum(), lambda: (v * 2.0).sum())
    )(X),
}


def programs() -> int:
    """How many programs are alive."""
    gc.collect()
    return sum(isinstance(obj, Program) for obj in gc.get_objects())


@pytest.mark.parametrize("name", JITTED)
def test_no_program_outlives_the_jitted_function_that_it_was_made_for(name: str):
    JITTED[name](0.5)  # rune's own functions, traced once
    before = programs()

    JITTED[name](1.5)

    assert programs() <= before


def sizes() -> int:
    """The number of live symbolic sizes, and of their parts."""
    gc.collect()
    return sum(isinstance(obj, Interned) for obj in gc.get_objects())


def test_few_sizes_outlive_the_programs_that_mention_them_once_all_is_forgotten():
    def differences(letter: str) -> Any:
        f = rune.jit(lambda v: rnp.diff(v[:-2])[:, None] + rnp.cumsum(v[3:]), dims={letter: (5, 99)}, in_dims=letter)
        return f(rnp.arange(8.0))

    differences("n")
    rune.clear_caches()
    before = sizes()

    differences("m")
    during = sizes() - before
    rune.clear_caches()

    assert during > 50
    assert sizes() - before < during / 5, "a few stand in types that are remembered"


@pytest.mark.parametrize("name", EAGER)
def test_programs_of_eager_loops_live_until_the_caches_are_cleared(name: str):
    EAGER[name](0.5)
    rune.clear_caches()
    before = programs()

    EAGER[name](1.5)
    assert programs() > before
    rune.clear_caches()
    assert programs() <= before


def test_a_jitted_function_forgets_and_answers_as_before():
    f = rune.jit(lambda v: v * 2.0)
    first = f(X)

    rune.clear_caches()
    with rune.counting() as counts:
        second = f(X)

    same(np.asarray(first), second)
    assert (counts.traces, counts.compiles) == (1, 1)


@pytest.mark.parametrize("name", EAGER)
def test_a_loop_or_branch_is_compiled_once_until_all_is_forgotten(name: str):
    def run() -> Any:
        return EAGER[name](1.25)

    run()
    with rune.counting() as counts:
        run()
    assert counts.compiles == 0

    rune.clear_caches()
    with rune.counting() as counts:
        run()
    assert counts.compiles > 0


def test_tables_of_eager_transforms_are_dropped_and_the_next_transform_is_right() -> None:
    x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    transforms = [lambda a: rnp.fft.rfft(a.reshape(4, 2048)), lambda a: rnp.fft.fft(a, axis=0)]
    before = [np.asarray(f(rnp.asarray(x))) for f in transforms]
    tables = rows.length_of, stage_lists.stages_of, reals.turns_of

    sizes = [t.cache_info().currsize for t in tables]
    rune.clear_caches()

    assert all(sizes)
    assert [t.cache_info().currsize for t in tables] == [0, 0, 0]
    same(before, [np.asarray(f(rnp.asarray(x))) for f in transforms])
