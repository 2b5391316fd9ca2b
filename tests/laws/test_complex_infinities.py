"""Functions of complex numbers at infinities, NaN, zeros and the ends of the range.

For every pair of hard real and imaginary parts the eager and the compiled result are NumPy's, which
follows C99's annex G. NumPy's differs in these cases:

- `expm1` makes NaN of what is infinite: here it is exp(x) - 1, as in the array API standard;
- `log1p` loses small arguments, which are kept;
- `sign` has a direction where one part is infinite and one NaN: here it is NaN, as in the standard;
- `reciprocal` divides 0 by 0: here it is the quotient 1 / x;
- `multiply` and `square` fuse a product with a sum on some processors: here each term is rounded;
- `divide` takes the reciprocal of a divisor so small that it has none.

The sign of a zero or an infinity is unspecified if the other part is NaN, or if the argument has no
finite part. RUNE_TEST_WHOLE=1 tries every executor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import ulp_distance
from tests.support.sampling import IS_WHOLE

Plane = Any  # a NumPy array, of complex numbers or of their parts
UNARY = """
sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh
arccosh arctanh reciprocal absolute sign square negative conjugate angle isnan isinf isfinite
""".split()
BINARY = ("add", "subtract", "multiply", "divide", "power")
PLAIN = (-np.inf, -1.5, -0.0, 0.0, 1.5, np.inf, np.nan)
DEVICES = [d.name for d in rune.devices() if IS_WHOLE and d.target.backend not in ("null", "cpu")]
WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "compiled": rune.jit,
    **{name: lambda f, name=name: rune.jit(f, device=name) for name in DEVICES},
}
CASES = [
    (way, kind)
    for way in WAYS
    for kind in ("complex64", "complex128")
    if kind == "complex64" or not way.startswith("wgpu")  # which has no f64
]
ULPS = 16  # docs/accuracy.md: two complex answers may each be some from the truth


def grid(parts: tuple[float, ...], kind: str) -> Plane:
    """Every pair of parts."""
    z = np.empty((len(parts), len(parts)), kind)
    z.real, z.imag = np.array(parts)[:, None], np.array(parts)[None, :]
    return z.reshape(-1)


def ends(kind: str) -> tuple[float, ...]:
    """The smallest normal number, and those whose sums with themselves are just finite."""
    info = np.finfo(kind)
    return float(info.tiny), float(info.max) / 4, -float(info.max) / 4


def meaning(name: str, *z: Plane) -> Plane:
    """NumPy's answer, save where it is not the standard's."""
    with np.errstate(all="ignore"):
        if name == "reciprocal":
            return np.divide(z[0].dtype.type(1), z[0])
        if name in ("multiply", "square"):
            return by_definition(z[0], z[-1])
        value = getattr(np, name)(*z)
        if name == "expm1":
            return np.where(np.isfinite(value), value, np.exp(z[0]) - 1)
        if name == "sign":
            return np.where(np.isnan(z[0]), complex(np.nan, np.nan), value).astype(value.dtype)
        small = (np.abs(z[0]) < 0.5) & (z[0].real != 0)
        return np.where(small, z[0], value) if name == "log1p" else value


def by_definition(x: Plane, y: Plane) -> Plane:
    """x · y from four products."""
    z = np.empty_like(x)
    z.real = x.real * y.real - x.imag * y.imag
    z.imag = x.real * y.imag + x.imag * y.real
    return z


def is_open(z: Plane) -> Plane:
    """Where no part is finite."""
    return ~np.isfinite(z.real) & ~np.isfinite(z.imag)


def wrong(expected: Plane, actual: Plane, is_open: Plane) -> Plane:
    """Where a part is another number, infinity or NaN, or has the other sign."""
    if not np.iscomplexobj(expected):
        return ~_same(expected, actual, is_open)
    with np.errstate(all="ignore"):
        near = ulp_distance(expected, actual) <= ULPS
    near &= np.isfinite(expected) & np.isfinite(actual)
    sides = [(expected.real, actual.real, expected.imag), (expected.imag, actual.imag, expected.real)]
    zeros = [_signs_differ(p, q) & ~is_open for p, q, _ in sides]
    same = [_same(p, q, is_open | np.isnan(other)) for p, q, other in sides]
    return ~((near & ~zeros[0] & ~zeros[1]) | (same[0] & same[1]))


def _signs_differ(p: Plane, q: Plane) -> Plane:
    return (p == 0) & (q == 0) & (np.signbit(p) != np.signbit(q))


def _same(p: Plane, q: Plane, is_open: Plane) -> Plane:
    if p.dtype == bool:
        return p == q
    with np.errstate(all="ignore"):
        near = np.isfinite(p) & np.isfinite(q) & (ulp_distance(p, q) <= ULPS)
        kind = np.where(np.isfinite(p), p == q, np.abs(p) == np.abs(q))
    signs_agree = is_open | (np.signbit(p) == np.signbit(q))
    return (np.isnan(p) & np.isnan(q)) | (near & ~_signs_differ(p, q)) | (kind & signs_agree)


def differences(names: tuple[str, ...] | list[str], way: str, is_loose: Plane, *z: Plane) -> list[str]:
    """The calls, with their arguments, that are not NumPy's."""

    def all_of(*xs: Any) -> dict[str, Any]:
        return {name: getattr(rnp, name)(*xs) for name in names}

    outputs = WAYS[way](all_of)(*(rnp.asarray(x, dtype=x.dtype) for x in z))
    lines = []
    for name in names:
        expected, actual = meaning(name, *z), np.asarray(outputs[name])
        for k in np.flatnonzero(wrong(expected, actual, is_loose)):
            lines.append(f"{name}{[x[k] for x in z]}: {actual[k]} for {expected[k]}")
    return lines


@pytest.mark.parametrize(("way", "kind"), CASES)
def test_functions_of_hard_parts_agree_with_numpy(way: str, kind: str):
    z = grid((*PLAIN, *ends(kind)), kind)

    assert differences([n for n in UNARY if n != "square"], way, is_open(z), z) == []


@pytest.mark.parametrize(("way", "kind"), CASES)
def test_quotients_and_sums_of_hard_parts_agree_with_numpy(way: str, kind: str):
    z = grid((*PLAIN, *ends(kind)), kind)
    x, y = np.repeat(z, len(z)), np.tile(z, len(z))

    assert differences(["divide", "add", "subtract"], way, np.zeros(x.shape, bool), x, y) == []


@pytest.mark.parametrize(("way", "kind"), CASES)
def test_products_and_powers_follow_the_definition_where_terms_overflow(way: str, kind: str):
    most = float(np.finfo(kind).max)
    z = grid((*PLAIN, *ends(kind), most, -most, math.sqrt(most), -1.5 * math.sqrt(most)), kind)
    x, y = np.repeat(z, len(z)), np.tile(z, len(z))

    assert differences(["square"], way, np.zeros(z.shape, bool), z) == []
    assert differences(["multiply"], way, np.zeros(x.shape, bool), x, y) == []
    # NumPy's powers of large numbers have few digits, but where they leave the range they are C's.
    z = grid((*PLAIN, most, -most), kind)
    x, y = np.repeat(z, len(z)), np.tile(z, len(z))
    assert differences(["power"], way, np.ones(x.shape, bool), x, y) == []


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_a_quotient_by_the_smallest_numbers_is_finite_or_has_a_direction(way: str):
    least = float(np.finfo("complex64").smallest_subnormal)
    x, y = (grid(p, "complex64") for p in ((-1.5, 0.0, 1.5), (-3 * least, 0.0, least)))
    x, y = np.repeat(x, 8), np.tile(y[y != 0], len(x))

    value = np.asarray(WAYS[way](rnp.divide)(rnp.asarray(x), rnp.asarray(y)))

    with np.errstate(all="ignore"):  # no quotient of theirs leaves the range of f64
        expected = (x.astype("c16") / y.astype("c16")).astype("c8")
    assert not wrong(expected, value, np.zeros(x.shape, bool)).any()
