"""Calls of functions of functions, of ufuncs, and on the bits of numbers."""

from __future__ import annotations

import numpy as np

from tests.numpy.complex_cases import z
from tests.numpy.spelling import b, big, case, f, i, n, named, pos

FUNCTIONS = [
    case("apply_along_axis", lambda xp, x: xp.apply_along_axis(lambda v: v.sum() * v, 1, x), f(2, 3, 4)),
    case("apply_along_axis to a number", lambda xp, x: xp.apply_along_axis(lambda v: v.sum(), 0, x), f(2, 3)),
    case("apply_over_axes", lambda xp, x: xp.apply_over_axes(xp.sum, x, (0, 2)), f(2, 3, 4)),
    case("piecewise", lambda xp, x: xp.piecewise(x, [x < 0, x > 1], [lambda v: v * v, 7.0, -1.0]), f(2, 3)),
    case("piecewise without default", lambda xp, x: xp.piecewise(x, [x < 0], [lambda v, k: v * k], 3.0), f(2, 3)),
    case("fromfunction", lambda xp: xp.fromfunction(lambda i, j: i * 2 + j, (2, 3), dtype="float32")),
    case("vectorize", lambda xp, x, y: xp.vectorize(lambda a, b: a * b + a)(x, y), f(2, 1), f(3)),
    case(
        "vectorize with a signature",
        lambda xp, x, y: xp.vectorize(lambda a, b: a @ b, signature="(n,m),(m)->(n)")(x, y),
        f(4, 2, 3),
        f(3),
    ),
    case(
        "frompyfunc",
        lambda xp, x, y: xp.frompyfunc(lambda a, b: a * b + 1, 2, 1)(x, y).astype("float32"),
        f(2, 1),
        f(3),
        smooth=False,
    ),
]

_REDUCING = "add multiply maximum minimum logical_and logical_or"
UFUNCS = [
    *[
        case(
            f"{name}.reduce",
            lambda xp, x, name=name: getattr(xp, name).reduce(x),
            f(3, 4),
            smooth="logical" not in name,
        )
        for name in _REDUCING.split()
    ],
    *[
        case(
            f"{name}.accumulate",
            lambda xp, x, name=name: getattr(xp, name).accumulate(x, axis=1),
            f(3, 4),
            smooth="logical" not in name,
        )
        for name in (*_REDUCING.split(), "subtract")
    ],
    *[
        case(f"{name}.reduce one by one", lambda xp, x, name=name: getattr(xp, name).reduce(x, 1), f(3, 4))
        for name in ("subtract", "logaddexp", "logaddexp2")
    ],
    *[
        case(
            f"{name}.reduce of integers",
            lambda xp, x, name=name: getattr(xp, name).reduce(x, axis=1, keepdims=True),
            i(3, 4),
            smooth=False,
        )
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor")
    ],
    case("add.reduce over all", lambda xp, x: xp.add.reduce(x, axis=None, initial=2.0), f(3, 4)),
    case("multiply.outer", lambda xp, x, y: xp.multiply.outer(x, y), f(2, 3), f(4)),
    case("maximum.reduceat", lambda xp, x: xp.maximum.reduceat(x, np.array([0, 3, 1]), axis=1), f(3, 4)),
    case("add.reduceat", lambda xp, x: xp.add.reduceat(x, np.array([0, 2, 2])), f(4, 3)),
    case("logaddexp.accumulate", lambda xp, x: xp.logaddexp.accumulate(x), f(4, 3)),
]

BITS = [
    *named("bitwise_invert", i(2, 3), smooth=False),
    *named("bitwise_left_shift bitwise_right_shift", i(2, 3), n(3), smooth=False),
    *named("asinh atan", f(2, 3)),
    *named("atan2", f(2, 3), f(3)),
    *named("pow", pos(2, 3), f(3)),
    *named("gcd lcm", i(2, 3), i(3), smooth=False),
    case("gcd with 0", lambda xp, x: xp.gcd(x, 0), n(5), smooth=False),
    case("frexp", lambda xp, x: xp.frexp(x)[0], big(2, 3)),
    case("frexp's exponent", lambda xp, x: xp.frexp(x)[1], f(2, 3), smooth=False),
    *named("ldexp", f(2, 3), i(3)),
    # The spacing of f64 is another: the arguments stay f32.
    case("spacing", lambda xp, x: xp.spacing(xp.asarray(x, dtype="float32")), f(2, 3), smooth=False),
    *named("packbits", b(20), smooth=False),
    case("packbits by rows", lambda xp, x: xp.packbits(x, axis=0, bitorder="little"), n(11, 3), smooth=False),
    case("unpackbits", lambda xp, x: xp.unpackbits(xp.packbits(x), count=-3), b(20), smooth=False),
    case(
        "unpackbits by columns",
        lambda xp, x: xp.unpackbits(x.astype("uint8"), axis=1, bitorder="little"),
        n(3, 2),
        smooth=False,
    ),
]

ASKED = [
    *named("shape size ndim iscomplexobj isrealobj isscalar iterable", f(2, 3), static=True, smooth=False),
    *named("iterable", f(), static=True, smooth=False),
    case("size of an axis", lambda xp, x: xp.size(x, 1), f(2, 3), static=True, smooth=False),
    case("real_if_close", lambda xp, x: xp.real_if_close(x), z(2, 3), static=True),
    case(
        "real_if_close of reals", lambda xp, x: xp.real_if_close(x * (1 + 1e-16j)), f(2, 3), static=True, smooth=False
    ),
    case("broadcast_shapes", lambda xp, x: xp.zeros(xp.broadcast_shapes(x.shape, (4, 1, 3))), f(2, 1), smooth=False),
    case("astype", lambda xp, x: xp.astype(x, "int32"), f(2, 3), smooth=False),
    case("common_type", lambda xp, x: xp.zeros(2, xp.common_type(x)), f(2, 3), smooth=False),
]

SEQUENCES = [
    case("geomspace", lambda xp, x: xp.geomspace(x, 8.0, 5), pos()),
    case("geomspace of arrays", lambda xp, x, y: xp.geomspace(x, y, 4, endpoint=False, axis=-1), pos(2), pos(2)),
    case("geomspace down", lambda xp: xp.geomspace(-8.0, -1.0, 4)),
]

CALLED = [*FUNCTIONS, *UFUNCS, *BITS, *ASKED, *SEQUENCES]
