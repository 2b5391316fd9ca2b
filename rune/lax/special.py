"""Special functions of floats of one dtype, under lax's names; rune.scipy.special computes them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature

from rune import ops
from rune.array import Array
from rune.core.interpreter import literal_like, type_of
from rune.errors import ArgumentError
from rune.lax.arguments import alike
from rune.numpy import docstrings
from rune.ops.elementwise_rows import FLOATS
from rune.scipy import special
from rune.transforms.derivatives.directional import jvp
from rune.typing import ArrayLike


def _special(
    name: str, rule: Callable[..., Array], doc: str, call: str, result: str, operands: str = "x"
) -> Callable[..., Array]:
    names = operands.split()

    def function(*xs: ArrayLike, **keywords: object) -> Array:
        arguments = [*xs, *(keywords.pop(n) for n in names[len(xs) :] if n in keywords)]
        if keywords:
            raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(keywords))!r}")
        if len(arguments) != len(names):
            raise ArgumentError(f"{name}: cannot take {len(arguments)} operands ({len(names)} required: {operands})")
        return rule(*alike(name, *arguments))

    function.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, annotation=ArrayLike) for n in names], return_annotation=Array
    )
    return docstrings.documented(function, name, doc, docstrings.alike(FLOATS), f"lax.{name}({call})", result)


def _result(number: str, dtype: str) -> str:
    return f"Array({number}, {dtype}[], cpu:0)"


lgamma = _special("lgamma", special.gammaln, "log |Γ(x)|.", "3.0", _result("0.6931473", "f32*"))
digamma = _special("digamma", special.digamma, "The derivative of log Γ(x).", "1.0", _result("-0.5772157", "f32*"))
polygamma = _special(
    "polygamma",
    special.polygamma,
    "The m-th derivative of digamma, for (m, x).",
    "1.0, 1.0",
    _result("1.644934", "f32*"),
    "m x",
)
zeta = _special(
    "zeta", special.zeta, "The sum of (q + k)⁻ˣ, for (x, q).", "2.0, 1.0", _result("1.644934", "f32*"), "x q"
)
igamma = _special(
    "igamma",
    special.gammainc,
    "The regularised lower incomplete gamma function of (a, x).",
    "1.0, 1.0",
    _result("0.63212055", "f32"),
    "a x",
)
igammac = _special(
    "igammac",
    special.gammaincc,
    "1 - igamma(a, x), accurate where that is small.",
    "1.0, 1.0",
    _result("0.36787945", "f32"),
    "a x",
)
betainc = _special(
    "betainc",
    special.betainc,
    "The regularised incomplete beta function of (a, b, x).",
    "2.0, 1.0, 1.0",
    _result("1.", "f32"),
    "a b x",
)
bessel_i0e = _special("bessel_i0e", special.i0e, "exp(-|x|) I₀(x).", "0.0", _result("1.", "f32*"))
bessel_i1e = _special("bessel_i1e", special.i1e, "exp(-|x|) I₁(x).", "0.0", _result("0.", "f32*"))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of igamma(a, x) with respect to a.

    Shapes: equal, or [] of Python numbers. Types: one floating dtype, unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes.

    >>> from rune import lax
    >>> round(float(lax.igamma_grad_a(1.0, 1.0)), 4)
    -0.4317
    """
    at, of = alike("igamma_grad_a", a, x)
    one = ops.fit(literal_like(1, at), type_of(at).shape)
    return jvp(lambda v: special.gammainc(v, of), (at,), (one,))[1]


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a gamma number x in its parameter: -(∂P/∂a) / p for P = igamma(a, x).

    Shapes: equal, or [] of Python numbers. Types: one floating dtype, unchanged.
    Source: Figurnov, Mohamed & Mnih 2018, arXiv:1805.08498.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes.

    >>> from rune import lax
    >>> round(float(lax.random_gamma_grad(1.0, 1.0)), 4)
    1.1736
    """
    at, of = alike("random_gamma_grad", a, x)
    density = ops.exp((at - 1.0) * ops.log(of) - of - special.gammaln(at))
    return -igamma_grad_a(at, of) / density
