"""Calls about positions: grids, diagonals, index tricks, and elements put in and taken out."""

from __future__ import annotations

from tests.numpy.spelling import b, case, f, i, n

GRIDS = [
    case("indices", lambda xp: xp.indices((2, 3)), smooth=False),
    case("indices sparse", lambda xp: list(xp.indices((2, 3), sparse=True)), smooth=False),
    case("indices of nothing", lambda xp: xp.indices(()), smooth=False),
    case("ix_", lambda xp, x, i, j: x[xp.ix_(i, j)], f(3, 4), n(2), n(3)),
    case("ix_ of a mask", lambda xp, x: x[xp.ix_(xp.asarray([True, False, True]), xp.asarray([1, 0]))], f(3, 4)),
    case("diag_indices", lambda xp: list(xp.diag_indices(3, 3)), smooth=False),
    *[
        case(name, lambda xp, x, name=name: list(getattr(xp, name)(x)), f(3, 3), smooth=False)
        for name in ("diag_indices_from", "tril_indices_from", "triu_indices_from")
    ],
    case("tril_indices_from above", lambda xp, x: list(xp.tril_indices_from(x, 1)), f(3, 5), smooth=False),
    case("mask_indices", lambda xp: list(xp.mask_indices(3, xp.triu, 1)), smooth=False, static=True),
    case("unravel_index", lambda xp, i: list(xp.unravel_index(i, (3, 4))), n(2, 3), smooth=False),
    case(
        "ravel_multi_index",
        lambda xp, i, j: xp.ravel_multi_index((i, j), (3, 4), mode="clip"),
        n(5),
        n(5),
        smooth=False,
    ),
    case(
        "ravel_multi_index by columns",
        lambda xp, i, j: xp.ravel_multi_index((i, j), (3, 4), mode=("wrap", "clip"), order="F"),
        i(5),
        i(5),
        smooth=False,
    ),
    case("mgrid", lambda xp: xp.mgrid[0:3, 1:7:2], smooth=False),
    case("mgrid counted", lambda xp: xp.mgrid[0:1:5j, 0:2], smooth=False),
    case("ogrid", lambda xp: list(xp.ogrid[0:3, 1:7:2]), smooth=False),
    case("r_", lambda xp, x, y: xp.r_[x, 0.0, y, 1:3], f(3), f(2)),
    case("r_ of matrices", lambda xp, x, y: xp.r_["-1", x, y], f(2, 3), f(2, 1)),
    case("r_ of rank 2", lambda xp, x, y: xp.r_["0,2", x, y], f(3), f(3)),
    case("r_ in columns", lambda xp, x, y: xp.r_["1,2,0", x, y], f(3), f(3)),
    case("c_", lambda xp, x, y: xp.c_[x, y], f(3), f(3, 2)),
    case("s_", lambda xp, x: x[xp.s_[1:, ::-1]], f(3, 4)),
    case("index_exp", lambda xp, x: x[xp.index_exp[1]], f(3, 4)),
]

PIECES = [
    case("delete one", lambda xp, x: xp.delete(x, 1, axis=1), f(2, 3)),
    case("delete some", lambda xp, x: xp.delete(x, [0, -1], axis=0), f(4, 3)),
    case("delete a slice", lambda xp, x: xp.delete(x, slice(0, 3, 2)), f(2, 3)),
    case("insert one", lambda xp, x: xp.insert(x, 1, 5.0, axis=1), f(2, 3)),
    case("insert some", lambda xp, x, y: xp.insert(x, [0, 2], y, axis=1), f(2, 3), f(2, 2)),
    case("insert rows", lambda xp, x, y: xp.insert(x, 1, y, axis=0), f(2, 3), f(2, 3)),
    case("insert flat", lambda xp, x, y: xp.insert(x, 2, y), f(2, 3), f(4)),
    case("resize", lambda xp, x: xp.resize(x, (3, 5)), f(2, 3)),
    case("resize to less", lambda xp, x: xp.resize(x, (2, 2)), f(2, 3)),
    case("trim_zeros", lambda xp, x: xp.trim_zeros(x), n(6), smooth=False, static=True),
    case("trim_zeros of a number", lambda xp, x: xp.trim_zeros(x), n(), smooth=False, static=True),
    case("trim_zeros of no elements", lambda xp, x: xp.trim_zeros(x), n(0, 3), smooth=False, static=True),
    case("trim_zeros in front", lambda xp, x: xp.trim_zeros(x, "f"), n(6), smooth=False, static=True),
    case("choose", lambda xp, i, x, y: xp.choose(i, [x, y, x], mode="clip"), n(2, 3), f(3), f(3)),
    case("choose wrapped", lambda xp, i, x: xp.choose(i, x, mode="wrap"), i(3), f(4, 3)),
    case("block", lambda xp, x, y: xp.block([[x, y], [y, x]]), f(2, 3), f(2, 1)),
    case("block of vectors", lambda xp, x, y: xp.block([x, y]), f(3), f(2)),
    case("compress", lambda xp, m, x: xp.compress(m, x, axis=0), b(3), f(3, 2), static=True, smooth=False),
    case("compress flat", lambda xp, m, x: xp.compress(m, x), b(3), f(3, 2), static=True, smooth=False),
    case("extract", lambda xp, m, x: xp.extract(m, x), n(3, 2), f(3, 2), static=True, smooth=False),
]

POSITIONS = [*GRIDS, *PIECES]
