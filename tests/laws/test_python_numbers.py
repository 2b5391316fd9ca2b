"""Python's numbers have the derivatives of arrays, and keep all digits in operations of 64 bits.

First the derivatives of every smooth function of one number, also at a pole, where Python itself
would raise; then every function of a number and an array of 64 bits against NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, tree
from rune.ops.promote import promoted
from rune.scipy import special
from tests.support.close import same
from tests.support.sampling import IS_WHOLE, each_value

NUMPY = """
sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh
arcsinh arccosh arctanh sinc deg2rad square reciprocal i0 positive negative absolute
"""
SPECIAL = """
erf erfc erfcx erfi erfinv erfcinv dawsn ndtr log_ndtr ndtri ndtri_exp expit logit log_expit exprel
cosm1 expm1 log1p gamma gammaln loggamma psi digamma exp1 expi spence entr fresnel sici ellipk
ellipe ellipkm1 i0 i0e i1 i1e k0 k0e k1 k1e j0 j1 y0 y1 zeta
"""
UNARY = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module, names in ((rnp, NUMPY), (special, SPECIAL))
    for name in names.split()
}
POINTS = (0.5, 0.0, 1.0, -1.5)
OF_MORE = [
    (special.beta, (0.5, 1.5)),
    (special.betaln, (0.5, 1.5)),
    (special.xlogy, (0.0, 0.0)),
    (special.xlog1py, (-1.0, -1.0)),
    (special.expn, (0.0, 0.0)),
    (special.gammainc, (0.0, 0.0)),
    (special.betainc, (0.5, 1.5, 0.0)),
    (special.hyp1f1, (0.0, 1.0, 0.0)),
    (lax.igamma, (0.0, 0.0)),
    (special.gammaincinv, (0.5, 0.3)),
    (special.gammainccinv, (0.5, 0.3)),
    (special.betaincinv, (0.5, 1.5, 0.3)),
    (special.betainccinv, (0.5, 1.5, 0.3)),
    (rnp.hypot, (0.0, 0.0)),
    (rnp.logaddexp, (0.5, 0.5)),
    (rnp.arctan2, (0.0, 0.0)),
]


@pytest.fixture(autouse=True)
def _quiet():
    """No warnings: poles are intended."""
    with np.errstate(all="ignore"):
        yield


def derivatives(function: Callable[..., Any], *xs: Any) -> list[Any]:
    """The gradient of the first result, and the results and tangents of all."""

    def first(*values: Any) -> Any:
        return tree.leaves(function(*values))[0]

    argnums = tuple(range(len(xs)))
    return tree.leaves((rune.grad(first, argnums)(*xs), rune.jvp(function, xs, tuple(x * 0 + 1 for x in xs))))


@pytest.mark.parametrize("name", UNARY)
def test_a_derivative_at_a_python_number_is_that_at_an_array(name: str):
    for x in POINTS:
        expected = derivatives(UNARY[name], rnp.array(x))

        for derivative, value in zip(derivatives(UNARY[name], x), expected, strict=True):
            same(np.asarray(value), np.asarray(derivative))


@pytest.mark.parametrize(
    ("function", "at"), OF_MORE if IS_WHOLE else OF_MORE[::2], ids=lambda x: getattr(x, "__name__", "")
)
def test_a_derivative_at_several_python_numbers_is_that_at_arrays(function: Callable[..., Any], at: tuple[float, ...]):
    expected = derivatives(function, *map(rnp.array, at))

    for derivative, value in zip(derivatives(function, *at), expected, strict=True):
        same(np.asarray(value), np.asarray(derivative))


@pytest.mark.parametrize("transform", [rune.grad, rune.jacfwd, rune.jacrev, rune.hessian])
def test_a_rule_is_given_arrays_where_a_python_number_is_differentiated(transform: Any):
    values = []

    @rune.custom_jvp
    def double(x: Any) -> Any:
        return x * 2

    @double.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        values.extend([*primals, *tangents])
        return double(*primals), tangents[0] * 2

    transform(double)(0.5)
    rune.jvp(double, (0.5,), (1.0,))

    assert values
    assert not any(isinstance(x, float) for x in values)


def test_a_python_number_stays_weak_in_a_derivative():
    value, tangent = rune.jvp(rnp.sin, (0.5,), (1.0,))

    assert value.type.weak
    assert tangent.type.weak
    gradient = rune.grad(lambda x: (x * rnp.ones(2, "f64")).sum())(0.5)
    assert rnp.asarray(gradient).dtype == rnp.float32


# --- combined with 64 bits ------------------------------------------------------------------------

# Numbers that 32 bits cannot hold: Python's, and NumPy's of rank 0 and 1, which count as 32 bits.
NUMBERS: dict[str, Any] = {
    "1/3": 1 / 3,
    "0.1": 0.1,
    "2**53 - 1": 2**53 - 1,
    "float64": np.float64(1 / 3),
    "rank 0": np.array(0.1),
    "int64": np.int64(2**53 - 1),
}
WIDE = np.array([-2.0, 0.0, 0.25, 1.5])
BINARY = """
add subtract multiply divide true_divide floor_divide remainder mod fmod power float_power maximum
minimum fmax fmin arctan2 hypot copysign logaddexp logaddexp2 heaviside nextafter equal not_equal
less less_equal greater greater_equal isclose append outer inner dot
"""
Call = Callable[[Any, Any, Any], Any]
CALLS: dict[str, Call] = {
    **{name: lambda xp, x, n, name=name: getattr(xp, name)(x, n) for name in BINARY.split()},
    **{f"{name}, the number first": lambda xp, x, n, name=name: getattr(xp, name)(n, x) for name in BINARY.split()},
    "x - n": lambda xp, x, n: x - n,
    "n - x": lambda xp, x, n: n - x,
    "x % n": lambda xp, x, n: x % n,
    "n ** x": lambda xp, x, n: n ** abs(x),
    "divmod": lambda xp, x, n: xp.divmod(x, n)[1],
    "clip": lambda xp, x, n: xp.clip(x, -n, n),
    "clip of the number": lambda xp, x, n: xp.clip(n, x - 1, x),
    "where": lambda xp, x, n: xp.where(x > 0, x, n),
    "where, the number first": lambda xp, x, n: xp.where(x > 0, n, x),
    "full_like": lambda xp, x, n: xp.full_like(x, n),
    "full of float64": lambda xp, x, n: xp.full(3, n, dtype="f8"),
    "pad": lambda xp, x, n: xp.pad(x, 1, constant_values=n),
    "pad by two": lambda xp, x, n: xp.pad(x, 1, constant_values=(0, n)),
    "pad by a ramp": lambda xp, x, n: xp.pad(x, 2, mode="linear_ramp", end_values=n),
    "select": lambda xp, x, n: xp.select([x > 1], [x], n),
    "select of the number": lambda xp, x, n: xp.select([x > 1], [n], x),
    "choose": lambda xp, x, n: xp.choose(xp.array([0, 1, 0, 1]), [x, xp.full_like(x, n)]),
    "nan_to_num": lambda xp, x, n: xp.nan_to_num(x / x, nan=n),
    "sum from": lambda xp, x, n: xp.sum(x, initial=n),
    "max from": lambda xp, x, n: xp.max(-abs(x), initial=n),
    "min from": lambda xp, x, n: xp.min(abs(x) * 1e17 + 1e17, initial=n),
    "prod from": lambda xp, x, n: xp.prod(x, initial=n),
    "linspace": lambda xp, x, n: xp.linspace(x, n, 4),
    **{
        f"{name} of float64": lambda xp, x, n, name=name: getattr(xp, name)(n, 2.0, 4, dtype="f8")
        for name in ("linspace", "geomspace")
    },
    "logspace of float64": lambda xp, x, n: xp.logspace(n % 3, 2.0, 4, dtype="f8"),
    "arange of float64": lambda xp, x, n: xp.arange(n, n + 2, dtype="f8"),
    "quantile": lambda xp, x, n: xp.quantile(x, n % 1),
    "percentile": lambda xp, x, n: xp.percentile(x, n % 100),
    "interp": lambda xp, x, n: xp.interp(x, x, x + n, left=n, right=n),
    "interp at the number": lambda xp, x, n: xp.interp(n, x, x),
    "interp beyond": lambda xp, x, n: xp.interp(x, x[1:2], x[1:2], left=n, right=n),
    "searchsorted": lambda xp, x, n: xp.searchsorted(x + n, n),
    "digitize": lambda xp, x, n: xp.digitize(x, xp.array([n], dtype="f8")),
    "insert": lambda xp, x, n: xp.insert(x, 1, n),
    "concatenate": lambda xp, x, n: xp.concatenate([x, np.array([n])]),
    "stack": lambda xp, x, n: xp.stack([x, np.full(4, n)]),
    "hstack": lambda xp, x, n: xp.hstack([x, n]),
    "matmul": lambda xp, x, n: xp.matmul(x, np.full(4, n)),
    "tensordot": lambda xp, x, n: xp.tensordot(x, np.full(4, n), 1),
    "einsum": lambda xp, x, n: xp.einsum("i,i", x, np.full(4, n)),
    "vdot": lambda xp, x, n: xp.vdot(np.full(4, n), x),
    "kron": lambda xp, x, n: xp.kron(x, np.full(2, n)),
    "convolve": lambda xp, x, n: xp.convolve(x, np.full(2, n)),
    "average": lambda xp, x, n: xp.average(x, weights=np.array([n, 1, 1, 1])),
    "polyval": lambda xp, x, n: xp.polyval(np.array([n, 1]), x),
    "polyval at the number": lambda xp, x, n: xp.polyval(x, n),
    "diff": lambda xp, x, n: xp.diff(x, prepend=n, append=n),
    "ediff1d": lambda xp, x, n: xp.ediff1d(x, to_end=n, to_begin=n),
    "gradient": lambda xp, x, n: xp.gradient(x, n),
    "trapezoid": lambda xp, x, n: xp.trapezoid(x, dx=n),
    "unwrap": lambda xp, x, n: xp.unwrap(x * 9, period=n % 7),
}
# What rune alone has, and what it means.
UPDATES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[np.ndarray, Any], Any]]] = {
    "at.set": (lambda x, n: x.at[1:].set(n), lambda x, n: _with(x, n)),
    "at.add": (lambda x, n: x.at[1:].add(n), lambda x, n: _with(x, x[1:] + n)),
    "at.subtract": (lambda x, n: x.at[1:].subtract(n), lambda x, n: _with(x, x[1:] - n)),
    "at.multiply": (lambda x, n: x.at[1:].multiply(n), lambda x, n: _with(x, x[1:] * n)),
    "at.divide": (lambda x, n: x.at[1:].divide(n), lambda x, n: _with(x, x[1:] / n)),
    "at.power": (lambda x, n: x.at[1:].power(n), lambda x, n: _with(x, np.power(x[1:], n))),
    "at.min": (lambda x, n: x.at[1:].min(n), lambda x, n: _with(x, np.minimum(x[1:], n))),
    "at.max": (lambda x, n: x.at[1:].max(n), lambda x, n: _with(x, np.maximum(x[1:], n))),
    "at positions": (lambda x, n: x.at[rnp.array([1, 2, 3])].add(n), lambda x, n: _with(x, x[1:] + n)),
    "at.get": (lambda x, n: x.at[rnp.array([9])].get(mode="fill", fill_value=n), lambda x, n: np.array([n])),
    "put_along_axis": (
        lambda x, n: rnp.put_along_axis(x, rnp.array([1, 2, 3]), n, 0, inplace=False),
        lambda x, n: _with(x, n),
    ),
    "put": (lambda x, n: rnp.put(x, rnp.array([1, 2, 3]), n, inplace=False), lambda x, n: _with(x, n)),
    "place": (lambda x, n: rnp.place(x, x > -2, n, inplace=False), lambda x, n: _with(x, n)),
    "fill_diagonal": (
        lambda x, n: rnp.fill_diagonal(x.reshape(2, 2), n, inplace=False),
        lambda x, n: np.array([[n, x[1]], [x[2], n]]),
    ),
    "take": (lambda x, n: rnp.take(x, rnp.array([9]), mode="fill", fill_value=n), lambda x, n: np.array([n])),
}
# Functions of lax take numbers of the kind of the array, and NumPy's of its dtype.
STRICT: dict[str, tuple[Callable[[Any, float], Any], Callable[[np.ndarray, float], Any]]] = {
    **{
        name: (lambda x, n, name=name: getattr(lax, name)(x, n), lambda x, n, meaning=meaning: meaning(x, n))
        for name, meaning in {
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "div": np.divide,
            "rem": np.fmod,
            "max": np.maximum,
            "min": np.minimum,
            "atan2": np.arctan2,
            "nextafter": np.nextafter,
            "eq": np.equal,
            "lt": np.less,
            "ge": np.greater_equal,
        }.items()
    },
    "pow": (lambda x, n: lax.pow(abs(x), n), lambda x, n: np.power(abs(x), n)),
    "sub, the number first": (lambda x, n: lax.sub(n, x), lambda x, n: n - x),
    "clamp": (lambda x, n: lax.clamp(-n, x, n), lambda x, n: np.clip(x, -n, n)),
    "select": (lambda x, n: lax.select(x > 0, x, rnp.full_like(x, n)), lambda x, n: np.where(x > 0, x, n)),
    "pad": (lambda x, n: lax.pad(x, n, [(1, 0, 0)]), lambda x, n: np.pad(x, (1, 0), constant_values=n)),
    "complex": (lambda x, n: lax.complex(x, n), lambda x, n: x + 1j * n),
}


def _with(x: np.ndarray, values: Any) -> np.ndarray:
    """x with other numbers behind the first."""
    return np.concatenate([x[:1], np.broadcast_to(values, 3)])


def differences(actual: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """The calls whose result is not that of 64 bits."""
    return [
        f"{name}: {np.asarray(actual[name])} for {expected[name]}"
        for name in expected
        if not np.allclose(np.asarray(actual[name]), expected[name], rtol=1e-14, atol=0, equal_nan=True)
    ]


ways = pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])


@each_value()
@ways
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_combined_with_64_bits_keeps_all_its_digits(number: str, way: Callable[..., Any]):
    n = NUMBERS[number]

    results = way(lambda x: {name: call(rnp, x, n) for name, call in CALLS.items()})(wide())

    assert differences(results, {name: call(np, WIDE, n) for name, call in CALLS.items()}) == []


@each_value()
@ways
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_in_an_update_of_64_bits_keeps_all_its_digits(number: str, way: Callable[..., Any]):
    n = NUMBERS[number]

    results = way(lambda x: {name: call(x, n) for name, (call, _) in UPDATES.items()})(wide())

    assert differences(results, {name: call(WIDE, n) for name, (_, call) in UPDATES.items()}) == []


@ways
@pytest.mark.parametrize("n", [1 / 3, 0.1])
def test_a_number_in_a_lax_function_of_64_bits_keeps_all_its_digits(n: float, way: Callable[..., Any]):
    results = way(lambda x: {name: call(x, n) for name, (call, _) in STRICT.items()})(wide())

    assert differences(results, {name: call(WIDE, n) for name, (_, call) in STRICT.items()}) == []


def wide() -> Any:
    return rnp.asarray(WIDE, dtype="float64")


@pytest.mark.parametrize("kind", ["any", "numeric", "inexact"])
@pytest.mark.parametrize("numbers", [(1 / 3,), (1 / 3, 1), (0.1, True), (2**24 + 1, 0.5)])
def test_numbers_that_are_promoted_twice_keep_their_values(numbers: tuple[Any, ...], kind: str):
    (first, *_) = promoted("law", *promoted("law", *numbers, kind=kind), kind=kind)

    assert np.asarray(promoted("law", first, wide())[0]) == numbers[0]
