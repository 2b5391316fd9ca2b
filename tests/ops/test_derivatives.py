"""Every primitive: its jvp against differences, its transpose against its jvp; then second order.

All in f64, in a random direction, on samples away from jumps and ties. The conventions at jumps,
ties and zeros are pinned in test_conventions.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.core.interpreter import type_of
from rune.core.primitive import NOT_DIFFERENTIABLE, Primitive
from rune.errors import MissingRule, TransformError
from rune.transforms.derivatives.linearize import linearize_flat
from tests.ops.calls import Sample
from tests.ops.samples import each_primitive, samples, smooth_samples
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import WHY, differences, directions, inner
from tests.support.expect import expect_file

REFUSING = [
    (p, i)
    for p in ops.PRIMITIVES
    if isinstance(p.jvp, tuple)
    for i, rule in enumerate(p.jvp)
    if isinstance(rule, NOT_DIFFERENTIABLE)
]
# Zero by definition, whatever the values do.
CUTS = (ops.stop_gradient, ops.bitcast)
STEPS = (ops.reduce_precision,)  # flat between jumps, and their tangents are rounded in the same way


def differentiable(primitive: Primitive) -> list[Sample]:
    """Samples whose result can carry a tangent, unless every derivative is refused."""
    refuses = primitive in (*CUTS, *STEPS) or any(p is primitive for p, _ in REFUSING)
    smooth = [s for s in smooth_samples(primitive) if _result(s).dtype in dtypes.INEXACT]
    return [] if refuses else smooth


def _result(sample: Sample) -> Any:
    return sample.primitive.type_rule(*sample.types, **sample.params)


def call(sample: Sample, active: Sequence[int]) -> tuple[Callable[..., Any], list[Any]]:
    """The primitive as a function of its active operands, and where to call it."""
    arrays = [array(a) for a in sample.draw()]

    def function(*values: Any) -> Any:
        full = list(arrays)
        for number, value in zip(active, values, strict=True):
            full[number] = value
        return sample.primitive(*full, **sample.params)

    return function, [arrays[i] for i in active]


def subsets(active: Sequence[int]) -> list[tuple[int, ...]]:
    """Every choice of operands to differentiate."""
    return [c for n in range(1, len(active) + 1) for c in itertools.combinations(active, n)]


@each_primitive
def test_jvp_agrees_with_differences_for_every_choice_of_arguments(primitive: Primitive):
    for sample in differentiable(primitive):
        for active in subsets(sample.active):
            function, primals = call(sample, active)
            tangents = directions(sample.rng, primals)

            _, tangent = rune.jvp(function, primals, tangents)

            near(differences(function, primals, tangents), tangent, relative=1e-6, why=WHY)


@each_primitive
def test_transposition_is_the_adjoint_for_every_choice_of_arguments(primitive: Primitive):
    for sample in differentiable(primitive):
        for active in subsets(sample.active):
            function, primals = call(sample, active)
            tangents = directions(sample.rng, primals)
            (ct,) = directions(sample.rng, [function(*primals)])

            _, push = rune.linearize(function, *primals)
            _, pull = rune.vjp(function, *primals)

            forwards, backwards = inner([ct], [push(*tangents)]), inner(pull(ct), tangents)
            scale = 1 + sum(float(np.abs(np.asarray(t)).sum()) for t in (*tangents, ct))
            assert abs(forwards - backwards) <= 1e-11 * scale, str(sample)


@each_primitive
def test_the_second_derivative_agrees_with_differences_of_the_first(primitive: Primitive):
    for sample in differentiable(primitive):
        function, primals = call(sample, sample.active)
        tangents = directions(sample.rng, primals)
        (weight,) = directions(sample.rng, [function(*primals)])

        def gradient(*xs: Any, function: Any = function, weight: Any = weight) -> Any:
            return rune.vjp(function, *xs)[1](weight)

        _, second = rune.jvp(gradient, primals, tangents)

        for number, part in enumerate(second):
            expected = differences(lambda *xs, n=number: gradient(*xs)[n], primals, tangents)
            near(expected, part, relative=1e-5, why=WHY)


@each_primitive
def test_forward_over_forward_agrees_with_forward_over_reverse(primitive: Primitive):
    for sample in differentiable(primitive)[:2]:
        function, primals = call(sample, sample.active)
        u, v = directions(sample.rng, primals), directions(np.random.default_rng(1), primals)
        (weight,) = directions(sample.rng, [function(*primals)])

        def along_v(*xs: Any, function: Any = function, v: Any = v) -> Any:
            return rune.jvp(function, xs, v)[1]

        def gradient(*xs: Any, function: Any = function, weight: Any = weight) -> Any:
            return rune.vjp(function, *xs)[1](weight)

        forward = rune.jvp(along_v, primals, u)[1]
        reverse = rune.jvp(gradient, primals, u)[1]
        near(inner([forward], [weight]), inner(reverse, v), relative=1e-9, why="sums reordered")


def test_the_residuals_of_the_forward_pass_are_the_reviewed_list(request: pytest.FixtureRequest):
    lines = ["What transposition reads, per primitive, where every operand is differentiated.", ""]
    for primitive in ops.PRIMITIVES:
        for sample in differentiable(primitive)[:1]:
            function, primals = call(sample, sample.active)
            active = [True] * len(primals)
            _, linear = linearize_flat(lambda *xs, f=function: [f(*xs)], primals, active)
            residuals = ", ".join(str(type_of(r)) for r in linear.residuals) or "nothing"
            operands = ", ".join(map(str, sample.types))
            lines.append(f"{sample.primitive.name}({operands}): {residuals}")

    expect_file(request.config, Path(__file__).parent / "residuals.txt", "\n".join(lines))


@each_primitive
def test_a_result_without_tangents_is_a_constant_of_differentiation(primitive: Primitive):
    for sample in samples(primitive):
        if not sample.active or _result(sample).dtype in dtypes.INEXACT:
            continue
        function, primals = call(sample, sample.active)
        tangents = [array(np.ones(p.shape, p.dtype)) for p in primals]

        _, tangent = rune.jvp(function, primals, tangents)

        assert np.asarray(tangent).dtype == dtypes.float0


@pytest.mark.parametrize("primitive", CUTS, ids=str)
def test_a_primitive_that_stops_derivatives_has_derivative_zero(primitive: Primitive):
    sample = smooth_samples(primitive)[0]
    function, primals = call(sample, sample.active)

    _, tangent = rune.jvp(function, primals, primals)

    assert not np.asarray(tangent).any()


@pytest.mark.parametrize(("primitive", "number"), REFUSING, ids=str)
def test_a_refused_derivative_is_an_error_naming_the_primitive(primitive: Primitive, number: int):
    sample = smooth_samples(primitive)[0]
    function, primals = call(sample, (number,))

    with pytest.raises(TransformError, match=f"jvp: cannot differentiate {primitive.name}"):
        rune.jvp(function, primals, primals)


def test_a_primitive_without_a_derivative_is_an_error_and_never_a_zero():
    bare = Primitive("bare", "test", lambda x: x, lambda x: x)

    with pytest.raises(MissingRule, match="jvp: cannot differentiate bare"):
        rune.grad(lambda x: bare(x))(1.0)


def test_a_primitive_without_a_meaning_in_numpy_is_refused_by_eager_code():
    with pytest.raises(MissingRule, match=r"evaluate: cannot run bare \(it has no meaning in NumPy\)"):
        Primitive("bare", "test", lambda x: x)(1.0)


def test_an_error_of_numpy_keeps_its_message():
    def refuse(_: object) -> None:
        raise ValueError("no such mode")

    with pytest.raises(ValueError, match="no such mode"):
        Primitive("bare", "test", lambda x: x, refuse)(1.0)


def test_a_linear_primitive_without_a_transpose_is_an_error_and_never_a_zero():
    bare = Primitive("bare", "test", lambda x: x, lambda x: x, jvp=(lambda dx, x, y: bare(dx),))

    with pytest.raises(MissingRule, match="transpose: cannot transpose bare"):
        rune.grad(lambda x: bare(x))(1.0)
