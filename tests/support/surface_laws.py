"""What holds of every call that NumPy (SciPy) and rune both understand: the laws of a `Case`.

The library computes in f64 what rune computes in f32; the program of all lanes, compiled once for
every number of them, agrees with the loop over lanes, operation after operation; so do, in one case
of four, what is jitted or batched alone; forward derivatives with central differences, and reverse
derivatives with the forward ones. The cases stand in tables; tests give each law the whole table.
What is asked of other sizes, strides and dtypes is in surface_variants.py.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from tests.numpy.spelling import Case
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import WHY, differences, directions, inner

ORDER = "other order of sums, other libm"


def dynamic(cases: Sequence[Case]) -> list[Case]:
    """Those that can be jitted and batched."""
    return [c for c in cases if c.specs and not c.static]


def one_in(count: int, cases: Sequence[Case]) -> list[Case]:
    """A sample, the same in every run; all of them with RUNE_TEST_WHOLE=1."""
    if "RUNE_TEST_WHOLE" in os.environ:
        return list(cases)
    return [c for c in cases if zlib.crc32(str(c).encode()) % count == 0]


def smooth(cases: Sequence[Case]) -> list[Case]:
    """Those that have derivatives."""
    return [c for c in cases if c.smooth and any(s.is_real for s in c.specs)]


def drawn(case: Case, lanes: tuple[int, ...] = ()) -> list[np.ndarray]:
    """The same numbers for the same case in every run."""
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    return [s.draw(rng, lanes) for s in case.specs]


def single(data: list[np.ndarray]) -> list[Any]:
    """As f32 and i32 arrays."""
    return [rnp.asarray(d) for d in data]


def silently(case: Case, library: Any, data: Sequence[Any]) -> Any:
    """The call, warnings about its numbers unheard."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return case.call(library, *data)


def means_what_the_library_means(case: Case) -> None:
    """The library in f64 on numbers rounded to f32, against rune in f32."""
    data = [d.astype(np.float32) if d.dtype == np.float64 else d for d in drawn(case)]
    wide = [d.astype(np.float64) if d.dtype == np.float32 else d for d in data]

    expected, actual = silently(case, case.oracle, wide), case.call(case.ours, *single(data))

    near(expected, actual, relative=2e-5 * case.slack, why="f32 against f64")


def jitted_is_eager(case: Case) -> None:
    """One compiled program against operation after operation."""
    args = single(drawn(case))

    compiled = rune.jit(lambda *xs: case.call(case.ours, *xs))(*args)

    near(case.call(case.ours, *args), compiled, relative=2e-6 * case.slack, why=ORDER)


def looped(case: Case, args: Sequence[Any], size: int) -> Any:
    """The call on lane after lane, stacked."""
    lanes = [case.call(case.ours, *(x[lane] for x in args)) for lane in range(size)]
    return tree.map(lambda *xs: rnp.stack(xs), *lanes)


def batched_is_looped(case: Case) -> None:
    """vmap against a loop over two lanes."""
    args = single(drawn(case, (2,)))

    batched = rune.vmap(lambda *xs: case.call(case.ours, *xs))(*args)

    near(looped(case, args, 2), batched, relative=2e-6 * case.slack, why=ORDER)


def compiled_for_every_batch_is_looped(case: Case) -> None:
    """One compiled program of a symbolic batch against loops over two and three lanes."""
    compiled = rune.jit(rune.vmap(lambda *xs: case.call(case.ours, *xs)), dims={"n": (1, 8)})

    for size in (2, 3):
        args = single(drawn(case, (size,)))
        expected = looped(case, args, size)
        near(expected, compiled(*args), relative=3e-6 * case.slack, why=ORDER)
    assert compiled.cache_size() == 1


def of_reals(case: Case, data: list[np.ndarray]) -> tuple[Any, list[Any]]:
    """The call as a function of its floating arguments alone, to one array; and those in f64."""
    reals = [k for k, s in enumerate(case.specs) if s.is_real]

    def function(*xs: Any) -> Any:
        given = dict(zip(reals, xs, strict=True))
        args = [given[k] if k in given else array(d) for k, d in enumerate(data)]
        outs = [rnp.ravel(o) for o in tree.leaves(case.call(case.ours, *args))]
        return rnp.concatenate([rnp.zeros(0, "f64"), *outs])

    return function, [array(data[k]) for k in reals]


def forward_is_the_limit_of_differences(case: Case) -> None:
    """jvp against central differences, in f64."""
    function, primals = of_reals(case, drawn(case))
    tangents = directions(np.random.default_rng(0), primals)

    _, found = rune.jvp(function, primals, tangents)

    expected = differences(function, primals, tangents)
    near(expected, found, relative=1e-6 * case.slack, why=WHY)


def reverse_is_the_transpose_of_forward(case: Case) -> None:
    """The inner products of vjp and jvp."""
    function, primals = of_reals(case, drawn(case))
    tangents = directions(np.random.default_rng(0), primals)

    out, forward = rune.jvp(function, primals, tangents)
    cotangents = directions(np.random.default_rng(1), [out])
    _, pull = rune.vjp(function, *primals)

    expected, found = inner(cotangents, [forward]), inner(pull(*cotangents), tangents)
    assert found == pytest.approx(expected, rel=1e-10 * case.slack, abs=1e-10 * case.slack)
