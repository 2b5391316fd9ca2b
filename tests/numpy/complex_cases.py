"""Calls on complex arrays that NumPy and rune.numpy both understand: see cases.py."""

from __future__ import annotations

from tests.numpy.spelling import Spec, case, f, named


def z(*shape: int) -> Spec:
    """Complex numbers off the axes, where the branch cuts are."""
    return Spec("z", shape)


_CIRCULAR = "sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh"
COMPLEX = [
    *named("positive negative square reciprocal conj conjugate", z(2, 3)),
    *named("real imag absolute abs angle sign", z(2, 3)),
    *named(f"sqrt exp exp2 expm1 log log2 log10 log1p sinc {_CIRCULAR}", z(2, 3)),
    *named("iscomplex isreal isfinite isnan isinf logical_not", z(2, 3), smooth=False),
    *named("round rint around", z(2, 3), smooth=False),
    *named("add subtract multiply divide power float_power", z(2, 3), z(3)),
    case(
        "logaddexp",
        lambda xp, x, y: xp.log(xp.exp(3 * x) + xp.exp(y)) if xp.__name__ == "numpy" else xp.logaddexp(3 * x, y),
        z(2, 3),
        z(3),
    ),
    *named("equal not_equal", z(2, 3), z(2, 3), smooth=False),
    *named("sum prod mean var std cumsum cumprod diff nansum nanmean nanvar", z(3, 4)),
    *named("count_nonzero any all", z(3, 4), smooth=False),
    *named("dot matmul", z(2, 3), z(3, 4)),
    *named("vdot outer inner kron", z(3), z(3)),
    *named("vecdot", z(2, 3), z(2, 3)),
    *named("vecmat", z(3), z(3, 2)),
    case("complex of reals", lambda xp, x, y: x + 1j * y, f(2, 3), f(2, 3)),
    case("squared length", lambda xp, x: (x * xp.conj(x)).real, z(2, 3)),
    case("angle in degrees", lambda xp, x: xp.angle(x, deg=True), z(3)),
    case("angle of reals", lambda xp, x: xp.angle(x), f(3), smooth=False),
    case("imag of reals", lambda xp, x: xp.imag(x), f(3)),
    case("methods", lambda xp, x: x.real * x.imag + abs(x.conj()), z(2, 3)),
    case("power by 3", lambda xp, x: x**3, z(2, 3)),
    case("power by -2", lambda xp, x: x**-2, z(2, 3)),
    case("power by a half", lambda xp, x: x**0.5, z(2, 3)),
    case("a real to i", lambda xp, x: (x * x + 1) ** 1j, f(2, 3)),
    case("where both", lambda xp, x, y: xp.where(x.real > 0, x, y), z(2, 3), z(3)),
    case("mean where", lambda xp, x: xp.mean(x, where=x.real > -9, axis=0), z(3, 4)),
    case("var by columns", lambda xp, x: xp.var(x, axis=0, ddof=1), z(3, 4)),
    case("average", lambda xp, x, w: xp.average(x, axis=0, weights=w * w + 1), z(3, 4), f(3)),
    case("einsum", lambda xp, x, y: xp.einsum("ij,kj->ki", x, y), z(2, 3), z(4, 3)),
    case("trace", lambda xp, x: xp.trace(x), z(3, 3)),
    case("transpose", lambda xp, x: xp.transpose(x)[::-1, 1:], z(3, 4)),
    case("concatenate", lambda xp, x, y: xp.concatenate([x, y]), z(2), f(3)),
    case("pad", lambda xp, x: xp.pad(x, 1), z(2, 3)),
    case("linspace", lambda xp, x: xp.linspace(x, 1 + 2j, 4), z()),
    case("isclose", lambda xp, x: xp.isclose(x, x + 1e-9j), z(2, 3), smooth=False),
    case("nan_to_num", lambda xp, x: xp.nan_to_num(xp.where(x.real > 0, x, xp.nan)), z(3, 4), smooth=False),
]
