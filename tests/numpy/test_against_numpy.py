"""Every name of rune.numpy against NumPy, then against itself under jit, vmap and derivatives.

The table of calls is cases.py. NumPy computes in f64 what rune computes in f32; a jitted call is
one compiled program and must agree with the eager one; a batched call with the loop over lanes,
and with a program compiled once for all batch sizes; forward derivatives with central differences,
and reverse derivatives with the forward ones.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from tests.numpy.cases import CASES, Case
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import WHY, differences, directions, inner

DYNAMIC = [c for c in CASES if c.specs and not c.static]
SMOOTH = [c for c in CASES if c.smooth and any(s.is_real for s in c.specs)]


def drawn(case: Case, lanes: tuple[int, ...] = ()) -> list[np.ndarray]:
    """The same numbers for the same case in every run."""
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    return [s.draw(rng, lanes) for s in case.specs]


def single(data: list[np.ndarray]) -> list[Any]:
    """As f32 and i32 arrays."""
    return [rnp.asarray(d) for d in data]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_function_means_what_numpy_means(case: Case):
    data = [d.astype(np.float32) if d.dtype == np.float64 else d for d in drawn(case)]
    wide = [d.astype(np.float64) if d.dtype == np.float32 else d for d in data]

    expected, actual = case.call(np, *wide), case.call(rnp, *single(data))

    near(expected, actual, relative=2e-5, why="f32 against f64")


@pytest.mark.parametrize("case", DYNAMIC, ids=str)
def test_a_jitted_call_gives_what_the_eager_call_gives(case: Case):
    args = single(drawn(case))

    compiled = rune.jit(lambda *xs: case.call(rnp, *xs))(*args)

    near(case.call(rnp, *args), compiled, relative=2e-6, why="other order of sums, other libm")


@pytest.mark.parametrize("case", DYNAMIC, ids=str)
def test_a_batched_call_is_the_loop_over_lanes(case: Case):
    args = single(drawn(case, (2,)))

    batched = rune.vmap(lambda *xs: case.call(rnp, *xs))(*args)

    lanes = [case.call(rnp, *(x[lane] for x in args)) for lane in range(2)]
    looped = tree.map(lambda *xs: rnp.stack(xs), *lanes)
    near(looped, batched, relative=2e-6, why="other order of sums")


@pytest.mark.parametrize("case", DYNAMIC, ids=str)
def test_a_symbolic_batch_compiles_once_for_every_size(case: Case):
    batched = rune.vmap(lambda *xs: case.call(rnp, *xs))
    compiled = rune.jit(batched, dims={"n": (1, 8)})

    for size in (2, 3):
        args = single(drawn(case, (size,)))
        near(batched(*args), compiled(*args), relative=3e-6, why="other order of sums, other libm")
    assert compiled.cache_size() == 1


def of_reals(case: Case, data: list[np.ndarray]) -> tuple[Any, list[Any]]:
    """The call as a function of its floating arguments alone, to one array; and those in f64."""
    reals = [k for k, s in enumerate(case.specs) if s.is_real]

    def function(*xs: Any) -> Any:
        given = dict(zip(reals, xs, strict=True))
        args = [given[k] if k in given else array(d) for k, d in enumerate(data)]
        outs = [rnp.ravel(o) for o in tree.leaves(case.call(rnp, *args))]
        return rnp.concatenate([rnp.zeros(0, "f64"), *outs])

    return function, [array(data[k]) for k in reals]


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_a_forward_derivative_is_the_limit_of_differences(case: Case):
    function, primals = of_reals(case, drawn(case))
    tangents = directions(np.random.default_rng(0), primals)

    _, found = rune.jvp(function, primals, tangents)

    near(differences(function, primals, tangents), found, relative=1e-6, why=WHY)


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_a_reverse_derivative_is_the_transpose_of_the_forward_one(case: Case):
    function, primals = of_reals(case, drawn(case))
    tangents = directions(np.random.default_rng(0), primals)

    out, forward = rune.jvp(function, primals, tangents)
    cotangents = directions(np.random.default_rng(1), [out])
    _, pull = rune.vjp(function, *primals)

    expected, found = inner(cotangents, [forward]), inner(pull(*cotangents), tangents)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)
