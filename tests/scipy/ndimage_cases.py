"""Calls of rune.scipy.ndimage, spatial and cluster: filters, resampling, distances."""

from __future__ import annotations

import math
from typing import Any

from tests.numpy.spelling import Case, case, f, i, pos, unit


def _case(name: str, call: Any, *specs: Any, **flags: Any) -> Case:
    return case(name, call, *specs, module="scipy", **flags)


_MODES = ("reflect", "mirror", "nearest", "wrap", "constant")
# Between the last element and the padding, rune and JAX interpolate.
_BEYOND = {"wrap": "grid-wrap", "constant": "grid-constant"}
_PLANE = {2: "the image has two axes"}


def _mapped(order: int, mode: str) -> Case:
    return _case(
        f"ndimage.map_coordinates {order} {mode}",
        lambda sp, x, u: sp.ndimage.map_coordinates(x, u * 5.0 + 1.3, order=order, mode=mode, cval=2.0),
        f(5, 4),
        f(2, 6),
        smooth=order == 1,
        slack=5.0,
        keeps=_PLANE,
    )


FILTERS = [
    *[
        _case(
            f"ndimage.{name} {mode}",
            lambda sp, x, w, name=name, mode=mode: getattr(sp.ndimage, name)(x, w, mode=mode, cval=1.5),
            f(5, 4),
            f(3, 2),
        )
        for name in ("correlate", "convolve")
        for mode in _MODES
    ],
    *[
        _case(
            f"ndimage.{name} {mode}",
            lambda sp, x, w, name=name, mode=mode: getattr(sp.ndimage, name)(x, w, 0, mode=mode, origin=-1),
            f(5, 4),
            f(4),
        )
        for name in ("correlate1d", "convolve1d")
        for mode in _MODES
    ],
    # Up to 16 weights are multiplied with shifted views, more of them are a convolution.
    *[
        _case(
            f"ndimage.{name} of {count} weights",
            lambda sp, x, w, name=name: getattr(sp.ndimage, name)(x, w, 0, mode="mirror", origin=3),
            f(5, 4),
            f(count),
        )
        for name in ("correlate1d", "convolve1d")
        for count in (16, 17)
    ],
    _case("ndimage.correlate of 5 x 7 weights", lambda sp, x, w: sp.ndimage.correlate(x, w), f(6, 7), f(5, 7)),
    _case(
        "ndimage.convolve of volumes",
        lambda sp, x, w: sp.ndimage.convolve(x, w, mode="nearest", origin=(1, 0, -1)),
        f(3, 4, 5),
        f(3, 2, 3),
    ),
    _case(
        "ndimage.convolve of an origin", lambda sp, x, w: sp.ndimage.convolve(x, w, origin=(0, -1)), f(5, 4), f(3, 2)
    ),
    *[
        _case(f"ndimage.{name}", lambda sp, x, name=name: getattr(sp.ndimage, name)(x), f(5, 4))
        for name in ("sobel", "prewitt", "laplace", "uniform_filter")
    ],
    *[
        _case(
            f"ndimage.{name} of a size",
            lambda sp, x, name=name: getattr(sp.ndimage, name)(x, size=(2, 3), mode="nearest"),
            f(5, 4),
        )
        for name in ("uniform_filter", "maximum_filter", "minimum_filter", "median_filter")
    ],
    _case("ndimage.maximum_filter of integers", lambda sp, x: sp.ndimage.maximum_filter(x, 3), i(5, 4), smooth=False),
    _case("ndimage.uniform_filter1d", lambda sp, x: sp.ndimage.uniform_filter1d(x, 4, axis=0), f(5, 4)),
    *[
        _case(
            f"ndimage.gaussian_filter {order}",
            lambda sp, x, order=order: sp.ndimage.gaussian_filter(x, 0.6, order, mode="wrap"),
            f(5, 6),
        )
        for order in (0, 1, 2)
    ],
    _case(
        "ndimage.gaussian_filter of axes",
        lambda sp, x: sp.ndimage.gaussian_filter(x, (0.4, 0.6), (0, 1), mode=("nearest", "reflect"), truncate=3.0),
        f(5, 6),
    ),
    _case(
        "ndimage.gaussian_filter1d",
        lambda sp, x: sp.ndimage.gaussian_filter1d(x, 0.5, axis=0, order=3),
        f(9, 2),
        slack=10.0,
    ),
    *[
        _case(f"ndimage.{name}", lambda sp, x, name=name: getattr(sp.ndimage, name)(x, 0.5), f(5, 6), slack=10.0)
        for name in ("gaussian_laplace", "gaussian_gradient_magnitude")
    ],
]

RESAMPLING = [
    *[_mapped(order, mode) for order in (0, 1) for mode in ("reflect", "mirror", "nearest")],
    *[_mapped(order, mode) for order in (0, 1) for mode in _BEYOND.values()],
    _case(
        "ndimage.affine_transform",
        lambda sp, x, m: sp.ndimage.affine_transform(x, m, (0.3, 0.2), order=1, mode="nearest"),
        f(5, 4),
        f(2, 2),
        slack=20.0,
        keeps=_PLANE,
    ),
    _case(
        "ndimage.affine_transform by a diagonal",
        lambda sp, x, m: sp.ndimage.affine_transform(x, m, 0.3, order=1, mode="mirror", output_shape=(3, 6)),
        f(5, 4),
        pos(2),
        slack=20.0,
        keeps=_PLANE,
    ),
    _case("ndimage.shift", lambda sp, x: sp.ndimage.shift(x, (0.3, -1.2), order=1, mode="nearest"), f(5, 4), slack=5.0),
    _case("ndimage.zoom", lambda sp, x: sp.ndimage.zoom(x, (1.5, 0.7), order=1, mode="nearest"), f(5, 4), slack=5.0),
    _case(
        "ndimage.zoom of a grid",
        lambda sp, x: sp.ndimage.zoom(x, 1.7, order=1, mode="nearest", grid_mode=True),
        f(5, 4),
        slack=5.0,
        without={"c*": "SciPy forgets `grid_mode` where numbers are complex"},
    ),
    _case("ndimage.rotate", lambda sp, x: sp.ndimage.rotate(x, 30.0, order=1, mode="nearest"), f(5, 4), slack=5.0),
    _case(
        "ndimage.rotate in its box",
        lambda sp, x: sp.ndimage.rotate(x, -50.0, (0, 1), False, order=1, mode="mirror"),
        f(5, 4),
        slack=5.0,
    ),
]

_METRICS = (
    "euclidean",
    "sqeuclidean",
    "cityblock",
    "chebyshev",
    "cosine",
    "correlation",
    "canberra",
    "braycurtis",
    "minkowski",
)
DISTANCES = [
    *[
        _case(
            f"spatial.distance.cdist {metric}",
            lambda sp, x, y, metric=metric: sp.spatial.distance.cdist(x, y, metric),
            pos(3, 4),
            pos(2, 4),
            slack=10.0,
        )
        for metric in _METRICS
    ],
    *[
        _case(
            f"spatial.distance.pdist {metric}",
            lambda sp, x, metric=metric: sp.spatial.distance.pdist(x, metric),
            pos(4, 4),
            slack=10.0,
        )
        for metric in _METRICS
    ],
    _case(
        "spatial.distance.hamming", lambda sp, x: sp.spatial.distance.cdist(x, x[:1], "hamming"), f(3, 4), smooth=False
    ),
    _case(
        "spatial.distance.squareform",
        lambda sp, x: [
            sp.spatial.distance.squareform(x),
            sp.spatial.distance.squareform(sp.spatial.distance.squareform(x)),
        ],
        pos(6),
    ),
    _case("cluster.vq.vq", lambda sp, x, y: list(sp.cluster.vq.vq(x, y)), f(5, 3), f(4, 3)),
    _case("cluster.vq.whiten", lambda sp, x: sp.cluster.vq.whiten(x), f(5, 3)),
]


_SPACE = {
    4: "a quaternion has four numbers",
    3: "space has three dimensions",
    2: "as many angles as axes",
    1: "as many angles as axes",
}


def _turned(name: str, call: Any, *specs: Any, **flags: Any) -> Case:
    return _case(
        f"spatial.Rotation.{name}",
        lambda sp, *xs: call(sp.spatial.transform.Rotation, *xs),
        *specs,
        keeps=_SPACE,
        **flags,
    )


def _turn(angles: Any) -> Any:
    """The angles counted from -1, so that π and -π, between which rounding decides, are equal."""
    return (angles + 1) % (2 * math.pi)


ROTATIONS = [
    *[
        _turned(name, lambda R, q, name=name: getattr(R.from_quat(q), name)(), f(5, 4), slack=10.0)
        for name in ("as_matrix", "as_rotvec", "as_mrp", "as_quat", "magnitude")
    ],
    *[
        _turned(f"as_euler {seq}", lambda R, q, seq=seq: _turn(R.from_quat(q).as_euler(seq)), f(5, 4), slack=50.0)
        for seq in ("xyz", "ZYX", "zxz", "XYX")
    ],
    *[
        _turned(f"from_euler {seq}", lambda R, a, seq=seq: R.from_euler(seq, a).as_matrix(), f(5, len(seq)), slack=10.0)
        for seq in ("xyz", "ZYX", "zx")
    ],
    _turned("from_euler of one axis", lambda R, a: R.from_euler("y", 50.0 * a, True).as_matrix(), f(5, 1), slack=10.0),
    _turned("from_rotvec", lambda R, v: R.from_rotvec(v).as_matrix(), f(5, 3), slack=10.0),
    _turned("from_mrp", lambda R, v: R.from_mrp(v).as_matrix(), f(5, 3), slack=10.0),
    _turned("from_matrix", lambda R, q: R.from_matrix(R.from_quat(q).as_matrix()).as_matrix(), f(5, 4), slack=10.0),
    _turned(
        "apply",
        lambda R, q, v: [R.from_quat(q).apply(v), R.from_quat(q).apply(v, inverse=True), R.from_quat(q).inv().apply(v)],
        f(5, 4),
        f(5, 3),
        slack=10.0,
    ),
    _turned("mul", lambda R, p, q: (R.from_quat(p) * R.from_quat(q)).as_matrix(), f(5, 4), f(5, 4), slack=10.0),
    _turned(
        "concatenate",
        lambda R, p, q: R.concatenate([R.from_quat(p), R.from_quat(q)])[1:3].as_matrix(),
        f(2, 4),
        f(4),
        slack=10.0,
    ),
    _turned("identity", lambda R: R.identity(2).as_matrix()),
    _case(
        "spatial.Slerp",
        lambda sp, q, u: sp.spatial.transform.Slerp(_times(q), sp.spatial.transform.Rotation.from_quat(q))(
            1.5 + 1.5 * u
        ).as_matrix(),
        pos(5, 4),
        unit(6),
        slack=20.0,
        keeps=_SPACE,
    ),
]


def _times(q: Any) -> Any:
    """0, 1, 2, … for each quaternion."""
    return (q[:, 0] * 0.0 + 1.0).cumsum() - 1.0


NDIMAGE = [*FILTERS, *RESAMPLING, *DISTANCES, *ROTATIONS]
