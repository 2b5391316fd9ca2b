"""The groups of operands in which a primitive is linear, and the error for all others.

A rule of `linear_in` is tested numerically: ⟨ȳ, f(x)⟩ = ⟨fᵀ ȳ, x⟩ if it says linear; if not, the
transpose is refused by name, never wrong and never an error of NumPy's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, lax, ops
from rune.core.primitive import Primitive
from rune.errors import MissingRule, TransformError
from tests.ops.calls import Sample
from tests.ops.samples import smooth_samples
from tests.ops.test_derivatives import STEPS, call
from tests.support.close import near
from tests.support.derivatives import directions, inner

LINEAR = [p for p in ops.PRIMITIVES if p.transpose is not None and p not in STEPS]


def is_linear(sample: Sample, numbers: tuple[int, ...]) -> bool:
    """Whether the record claims it; sums and maxima of windows are one primitive."""
    if sample.params.get("combine", "add") != "add":
        return False
    groups = sample.primitive.linear_in
    return not groups or any(set(numbers) <= set(group) for group in groups)


def is_real(sample: Sample) -> bool:
    """Whether there are no complex numbers, and the result can have a cotangent."""
    result = sample.primitive.type_rule(*sample.types, **sample.params)
    complex_types = [t for t in (*sample.types, result) if t.dtype in dtypes.COMPLEX]
    return not complex_types and result.dtype in dtypes.FLOATING


def trials(primitive: Primitive) -> Iterator[tuple[Sample, tuple[int, ...]]]:
    """The first samples of real numbers, with every choice of operands that may vary."""
    for sample in itertools.islice(filter(is_real, smooth_samples(primitive)), 3):
        for count in range(1, min(3, len(sample.active)) + 1):
            for numbers in itertools.combinations(sample.active, count):
                yield sample, numbers


@pytest.mark.parametrize("primitive", LINEAR, ids=str)
def test_a_primitive_is_transposed_in_its_linear_operands_and_refused_in_others(primitive: Primitive):
    for sample, numbers in trials(primitive):
        function, primals = call(sample, numbers)
        if not is_linear(sample, numbers):
            with pytest.raises((TransformError, MissingRule), match="transpose: cannot transpose"):
                rune.linear_transpose(function, *primals)(function(*primals))
            continue
        tangents = directions(sample.rng, primals)
        zero = function(*(0 * x for x in primals))
        y = function(*tangents) - zero  # the other operands may be a constant part
        (weight,) = directions(np.random.default_rng(0), [y])

        cotangents = rune.linear_transpose(function, *primals)(weight)

        near(inner([y], [weight]), inner(tangents, cotangents), relative=1e-9, why=str(sample))


RULES: dict[str, Any] = {
    "a convolution with itself": lambda t: lax.conv(t[None, None], t[None, None], (1,), "VALID"),
    "a triangle": lambda t: lax.linalg.triangular_solve(rnp.diag(t), t[:, None], left_side=True),
    "a matrix": lambda t: rnp.linalg.solve(rnp.diag(t), t),
    "an index": lambda t: rnp.take(t, t.astype("int32")),
    "a start": lambda t: lax.dynamic_slice(t, (t[0].astype("int32"),), (2,)),
    "a place to write": lambda t: rnp.zeros(4).at[t.astype("int32")].set(t),
    "a condition": lambda t: rnp.where(t > 0, t, 0),
    "a branch": lambda t: lax.cond(t[0] > 0, lambda t: t, lambda t: 2 * t, t),
    "a divisor": lambda t: 1 / t,
    "a product of steps": lambda t: lax.fori_loop(0, 3, lambda i, c: c * t, t),
    "a rounding to integers": lambda t: t.astype("int32").astype("float32"),
    "a maximum of windows": lambda t: lax.reduce_window(t, -rnp.inf, lax.max, (2,), (1,), "VALID"),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_is_not_linear_is_refused_with_its_line(name: str):
    @rune.custom_jvp
    def f(x: Any) -> Any:
        return rnp.sum(x)

    f.defjvp(lambda primals, tangents: (f(*primals), rnp.sum(RULES[name](tangents[0]))))

    with pytest.raises(TransformError, match="transpose: cannot transpose") as error:
        rune.grad(f)(rnp.arange(1.0, 5.0))
    assert "must be linear in the tangents" in str(error.value)
    assert "test_linearity.py" in str(error.value)
