"""Where a plan reads its sizes: the text shows it, the check compares it with the arguments.

A size is computed from an axis that is affine in it. Every executor computes the same number, and
before anything runs it refuses a size that is out of range or not a whole number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
from rune import dims, ops
from rune.backends import device_named
from rune.backends.shared.plan_check import check_plan
from rune.core.sizes import SizeSource
from rune.errors import CheckError, DimensionError
from rune.lowering.plan import Plan
from rune.lowering.plan_check import check_sizes
from rune.lowering.plan_text import parse, to_text
from rune.lowering.stages import lower
from tests.support.lowering import PLAIN, f32, program_of

N, M = dims.symbol("n", 1, 9), dims.symbol("m", 0, 9)
COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]


def doubled(*shapes: tuple) -> Plan:
    """Each argument twice."""
    program = program_of(lambda *xs: [ops.add(x, x) for x in xs], *(f32(*s) for s in shapes))
    return lower(program, PLAIN)


def test_the_text_shows_how_a_size_is_read(expect):
    plan = doubled((2 * N + 1,), (N * M + N - 1, 4))

    expect(
        "\n".join(to_text(plan, codes=False).splitlines()[:5]),
        """
        plan f on test:0 {
          size n = (argument 0 axis 0 - 1)/2 in 1..9
          size m = (argument 1 axis 0 - (n - 1))/n in 0..9
          argument 0: f32[2*n + 1]
          argument 1: f32[m*n + n - 1,4]
        """,
    )


@pytest.mark.parametrize(
    "shapes",
    [
        [(N,)],
        [(2 * N,), (N + M,)],
        [(dims.symbol("k", 0, N),), (N, 3)],
        [(dims.symbol("k", N, 3 * N + 1) * 2,), (N, 3)],
        [(3 - N * M, N)],
    ],
)
def test_every_source_is_read_back(shapes: list[tuple]):
    plan = doubled(*shapes)

    assert parse(to_text(plan)) == plan
    check_sizes(plan)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (SizeSource("n", 1, 0, 1, 9), "there is no argument 1"),
        (SizeSource("n", 0, 2, 1, 9), "argument 0 has no axis 2"),
        (SizeSource("n", 0, 1, 1, 9), r"axis 1 of argument 0 is m, not n"),
        (SizeSource("n", 0, 0, 1, 9), r"axis 0 of argument 0 is 2\*n, not n"),
        (SizeSource("n", 0, 0, 1, 8, 0, 2), r"axis 0 of argument 0 is 2\*n, not 2\*n"),
        (SizeSource("n", 0, 0, 1, 9, 2 * N, 0), "the factor 0 may be 0"),
        (SizeSource("n", 0, 0, 1, 9, 2 * N - N * (M + 1), M + 1), r"m, n is not known before"),
    ],
)
def test_a_source_that_contradicts_the_types_is_found(source: SizeSource, reason: str):
    plan = doubled((2 * N, M))

    with pytest.raises(CheckError, match=f"plan f: cannot read the size n .*{reason}"):
        check_sizes(replace(plan, size_sources=(source, *plan.size_sources[:1])))


def test_a_size_that_is_only_a_bound_needs_a_source_too():
    plan = doubled((dims.symbol("k", 0, N), N))

    with pytest.raises(CheckError, match=r"cannot read the size k \(n is not known before\)"):
        check_plan(replace(plan, size_sources=plan.size_sources[1:]))


# --- on executors -------------------------------------------------------------------------------


def run(device: str, plan: Plan, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """The results on arrays of ones, as host arrays."""
    backend: Any = device_named(device).backend
    arrays = [np.ones(s, np.float32) for s in shapes]
    results = backend.record(plan)([backend.copy_in(a) for a in arrays])
    return [backend.copy_out(b, t.with_shape(tuple(b.shape))) for b, t in zip(results, plan.results, strict=True)]


def affine(device: str) -> Plan:
    """A vector of 2*n + 1, and a matrix of n*m + n - 1 by 2, each doubled."""

    def function(x: Any, y: Any) -> Any:
        return ops.add(x, x), ops.add(y, y)

    program = program_of(function, f32(2 * N + 1), f32(N * M + N - 1, 2))
    return lower(program, device_named(device).target)


@pytest.mark.parametrize("device", COMPUTING)
def test_every_executor_reads_affine_sizes(device: str):
    plan = affine(device)

    for n, m in ((1, 2), (1, 9), (3, 0), (9, 9)):
        shapes = (2 * n + 1,), (n * m + n - 1, 2)
        assert [r.tolist() for r in run(device, plan, *shapes)] == [np.full(s, 2.0).tolist() for s in shapes]


@pytest.mark.parametrize("device", [*COMPUTING, "null:0"])
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(6,), (2, 2)], r"with 2\*n \+ 1 = 6 \(no whole n; axis 0 of argument 0\)"),
        ([(7,), (7, 2)], r"with m\*n \+ n - 1 = 7 for n = 3 \(no whole m; axis 0 of argument 1\)"),
        ([(21,), (7, 2)], r"with n = 10 \(n in 1..9; axis 0 of argument 0\)"),
        ([(1,), (7, 2)], r"with n = 0 \(n in 1..9; axis 0 of argument 0\)"),
        ([(3,), (10, 2)], r"with m = 10 \(m in 0..9; axis 0 of argument 1\)"),
        ([(3,), (7, 3)], r"with shape \[7, 3\] \(axis 1 of argument 1, f32.*, is 2\)"),
    ],
)
def test_every_executor_refuses_what_no_sizes_fit(device: str, shapes: list, message: str):
    plan = affine(device)

    with pytest.raises(DimensionError, match=f"f: cannot run {message}"):
        run(device, plan, *shapes)


@pytest.mark.parametrize("device", COMPUTING)
def test_a_size_may_bound_another(device: str):
    k = dims.symbol("k", 0, N)
    program = program_of(lambda x, y: ops.add(y, y), f32(k), f32(N))
    plan = lower(program, device_named(device).target)

    assert run(device, plan, (3,), (3,))[0].tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(DimensionError, match=r"with k = 4 \(k in 0..n; axis 0 of argument 0\)"):
        run(device, plan, (4,), (3,))
