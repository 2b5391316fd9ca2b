"""Derivatives at a Python number are those at an array of rank 0.

Of every smooth function of one number, also where it has a pole and a Python number would raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, tree
from rune.scipy import special
from tests.support.close import same

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
    (special.beta, (0.5, 1.5)), (special.betaln, (0.5, 1.5)), (special.xlogy, (0.0, 0.0)),
    (special.xlog1py, (-1.0, -1.0)), (special.expn, (0.0, 0.0)), (special.gammainc, (0.0, 0.0)),
    (special.betainc, (0.5, 1.5, 0.0)), (special.hyp1f1, (0.0, 1.0, 0.0)), (lax.igamma, (0.0, 0.0)),
    (special.gammaincinv, (0.5, 0.3)), (special.gammainccinv, (0.5, 0.3)),
    (special.betaincinv, (0.5, 1.5, 0.3)), (special.betainccinv, (0.5, 1.5, 0.3)),
    (rnp.hypot, (0.0, 0.0)), (rnp.logaddexp, (0.5, 0.5)), (rnp.arctan2, (0.0, 0.0)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet():
    """Poles are meant."""
    with np.errstate(all="ignore"):
        yield


def derivatives(function: Callable[..., Any], *xs: Any) -> list[Any]:
    """The gradient of the first result, and the results and tangents of all."""

    def first(*values: Any) -> Any:
        return tree.leaves(function(*values))[0]

    every = tuple(range(len(xs)))
    return tree.leaves(
        (rune.grad(first, every)(*xs), rune.jvp(function, xs, tuple(x * 0 + 1 for x in xs)))
    )


@pytest.mark.parametrize("name", UNARY)
def test_a_derivative_at_a_python_number_is_that_at_an_array(name: str):
    for x in POINTS:
        expected = derivatives(UNARY[name], rnp.array(x))

        for found, value in zip(derivatives(UNARY[name], x), expected, strict=True):
            same(np.asarray(value), np.asarray(found))


@pytest.mark.parametrize(("function", "at"), OF_MORE, ids=lambda x: getattr(x, "__name__", ""))
def test_so_it_is_of_functions_of_more_numbers(function: Callable[..., Any], at: tuple[float, ...]):
    expected = derivatives(function, *map(rnp.array, at))

    for found, value in zip(derivatives(function, *at), expected, strict=True):
        same(np.asarray(value), np.asarray(found))


@pytest.mark.parametrize("transform", [rune.grad, rune.jacfwd, rune.jacrev, rune.hessian])
def test_a_rule_is_given_arrays_where_a_python_number_is_differentiated(transform: Any):
    seen = []

    @rune.custom_jvp
    def double(x: Any) -> Any:
        return x * 2

    @double.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        seen.extend([*primals, *tangents])
        return double(*primals), tangents[0] * 2

    transform(double)(0.5)
    rune.jvp(double, (0.5,), (1.0,))

    assert seen
    assert not any(isinstance(x, float) for x in seen)


def test_a_python_number_stays_weak_in_a_derivative():
    value, tangent = rune.jvp(rnp.sin, (0.5,), (1.0,))

    assert value.type.weak
    assert tangent.type.weak
    assert rune.grad(lambda x: (x * rnp.ones(2, "f64")).sum())(0.5).dtype == rnp.float32


# --- beside 64 bits -------------------------------------------------------------------------------

THIRD = 1 / 3  # a number that f32 cannot hold
WIDE = np.array([-2.0, 0.0, 0.25, 1.5])
BINARY = """
add subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin arctan2
hypot copysign logaddexp logaddexp2 heaviside nextafter
"""
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: lambda xp, x, name=name: getattr(xp, name)(x, THIRD) for name in BINARY.split()},
    **{
        f"{name}, the number first": lambda xp, x, name=name: getattr(xp, name)(THIRD, x)
        for name in BINARY.split()
    },
    "clip": lambda xp, x: xp.clip(x, -THIRD, THIRD),
    "where": lambda xp, x: xp.where(x > 0, x, THIRD),
    "full_like": lambda xp, x: xp.full_like(x, THIRD),
    "pad": lambda xp, x: xp.pad(x, 1, constant_values=THIRD),
    "select": lambda xp, x: xp.select([x > 1], [x], THIRD),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x / x, nan=THIRD),
    "sum from": lambda xp, x: xp.sum(x, initial=THIRD),
    "max from": lambda xp, x: xp.max(-abs(x), initial=THIRD),
    "prod from": lambda xp, x: xp.prod(x, initial=THIRD),
    "linspace": lambda xp, x: xp.linspace(x, THIRD, 4),
    **{
        f"{name} of float64": lambda xp, x, name=name: getattr(xp, name)(THIRD, 2.0, 4, dtype="f8")
        for name in ("linspace", "logspace", "geomspace")
    },
    "full of float64": lambda xp, x: xp.full(3, THIRD, dtype="f8"),
    "arange of float64": lambda xp, x: xp.arange(THIRD, 2.0, THIRD, dtype="f8"),
    "quantile": lambda xp, x: xp.quantile(x, THIRD),
    "interp": lambda xp, x: xp.interp(x, x, x, left=THIRD, right=THIRD),
}


@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CALLS)
def test_a_python_number_beside_64_bits_keeps_all_of_its_own(name: str, way: Callable[..., Any]):
    found = way(lambda x: CALLS[name](rnp, x))(rnp.asarray(WIDE, dtype="float64"))

    np.testing.assert_allclose(np.asarray(found), CALLS[name](np, WIDE), rtol=1e-14)
