"""Calls of JAX's names by JAX's conventions; the answers of jax 0.10.2 are stored.

Each call takes the library and returns a tree of arrays and numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tests.as_jax.surface.corners import CORNERS

X = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
IDS = np.array([0, 2, 2, 1, 9])
IMAGES = np.random.default_rng(1).integers(-9, 10, (2, 7, 5, 3)).astype(np.float32)


def _segments(name: str, **how: Any) -> Callable[[Any], Any]:
    return lambda jax: getattr(jax.ops, name)(jax.numpy.asarray(X), IDS, num_segments=3, **how)


def _platforms(jax: Any) -> Any:
    return jax.lax.platform_dependent(X, cpu=lambda x: 2 * x, tpu=lambda x: x, default=lambda x: 3 * x)


def _composite(jax: Any) -> Any:
    scale = jax.lax.composite(lambda x, *, by: x * by, "my.scale", version=2)
    return jax.jit(lambda x: scale(x, by=3.0))(X)


def _two_passes(jax: Any) -> Any:
    forward, backward = jax.fwd_and_bwd(lambda x, y: jax.numpy.sin(x) * y, argnums=(0, 1))
    z, residuals = forward(X, 2 * X)
    return z, backward(residuals, z)


def _laid_out(jax: Any) -> Any:
    mesh = jax.make_mesh((1,), ("i",))
    with jax.set_mesh(mesh):
        x = jax.device_put(X[:4], jax.P("i"))
        double = jax.jit(lambda v: 2 * v, out_shardings=jax.P("i"))(x)
        return double, jax.reshard(x, jax.P(None, "i")), jax.sharding.get_abstract_mesh().size


def _lanes(jax: Any) -> Any:
    with jax.set_mesh(jax.make_mesh((1,), ("i",), (jax.sharding.AxisType.Auto,))):
        return jax.smap(lambda v: jax.lax.psum(v, "i"), in_axes=0, out_axes=0, axis_name="i")(X)


def _delete(jax: Any) -> Any:
    drop = jax.jit(jax.numpy.delete, static_argnames=["axis", "assume_unique_indices"])
    return drop(X, np.array([3, 0]), axis=1, assume_unique_indices=True)


def _padded(jax: Any) -> Any:
    def pad(row: Any, width: Any, axis: Any, options: Any) -> Any:
        return row.at[: width[0]].set(options["low"]).at[row.shape[0] - width[1] :].set(axis)

    return jax.numpy.pad(X, ((1, 2), (0, 3)), pad, low=-1)


def _pooling_layers(jax: Any) -> Any:
    """Windows with odd sizes, steps and padding."""
    import_module("jax.example_libraries.stax")
    kinds = (jax.example_libraries.stax.MaxPool, jax.example_libraries.stax.SumPool, jax.example_libraries.stax.AvgPool)
    windows = [((2, 3),), ((3, 2), (2, 1)), ((2, 2), (2, 2), "SAME"), ((2, 2), None, "VALID", "NCHW")]
    layers = [kind(*window) for kind in kinds for window in windows]
    return [(init(jax.random.key(0), IMAGES.shape)[0], apply((), IMAGES)) for init, apply in layers]


def _convolution_layers(jax: Any) -> Any:
    """Convolutions in several orders of axes, with weights whose sums of products are exact."""
    import_module("jax.example_libraries.stax")

    def weights(key: Any, shape: Any) -> Any:
        return jax.random.randint(key, shape, -8, 9).astype("float32")

    kinds = (jax.example_libraries.stax.GeneralConv, jax.example_libraries.stax.GeneralConvTranspose)
    numbers = [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NHWC")]
    windows = [(4, (3, 2), (1, 1), "VALID"), (3, (2, 2), (2, 1), "SAME")]
    layers = [kind(n, *w, weights, weights) for kind in kinds for n in numbers for w in windows]
    results = [(init(jax.random.key(n), IMAGES.shape), apply) for n, (init, apply) in enumerate(layers)]
    return [(shape, apply(params, IMAGES)) for (shape, params), apply in results]


CALLS: dict[str, Callable[[Any], Any]] = {
    **{f"ops.{n}": _segments(n) for n in ("segment_sum", "segment_prod", "segment_max", "segment_min")},
    "ops.segment_sum clip": _segments("segment_sum", mode="clip"),
    "lax.platform_dependent": _platforms,
    "lax.composite": _composite,
    "lax.broadcast_in_dim": lambda jax: jax.lax.broadcast_in_dim(X, (7, 2, 5), (2, 0)),
    "lax.exp": lambda jax: jax.lax.exp(X, accuracy=None),
    "fwd_and_bwd": _two_passes,
    "stax pooling": _pooling_layers,
    "stax convolutions": _convolution_layers,
    "set_mesh": _laid_out,
    "smap": _lanes,
    "numpy.delete": _delete,
    "numpy.pad": _padded,
    "numpy.extract": lambda jax: jax.numpy.extract((np.arange(50) % 3 == 0) & (np.arange(50) < 20), X[:3]),
    "numpy.piecewise": lambda jax: jax.numpy.piecewise(
        jax.numpy.asarray(X), jax.numpy.array([False, True]), [lambda x: 0 * x, lambda x: 2 * x, lambda x: x]
    ),
    "numpy.take_along_axis": lambda jax: [
        jax.numpy.take_along_axis(X[0], np.array([-1, 8, 2]), mode=mode, wrap_negative_indices=False)
        for mode in (None, "clip", "fill")
    ],
    "numpy.polyadd": lambda jax: [getattr(jax.numpy, n)(X[:3], X[:2]) for n in ("polyadd", "polysub")],
    "numpy.r_": lambda jax: [jax.numpy.r_[k, X[0], X[1]] for k in "rc"] + [jax.numpy.c_[k, X[0], X[1]] for k in "rc"],
    "numpy.ravel_multi_index": lambda jax: jax.numpy.ravel_multi_index(
        (jax.numpy.array([1, 0]), jax.numpy.array([2, 1])), (2, 3), dtype="int16"
    ),
    "numpy.gcd": lambda jax: jax.numpy.gcd(x1=jax.numpy.arange(9), x2=6),
    "x.byteswap": lambda jax: jax.numpy.arange(5, dtype="int16").byteswap(),
    "x.at.get": lambda jax: jax.numpy.asarray(X).at[7, 2:].get(mode="fill", fill_value=-1),
    "x.on_device_size_in_bytes": lambda jax: operator.methodcaller("on_device_size_in_bytes")(jax.numpy.asarray(X)),
    "stats modules": lambda jax: __import__("jax.scipy.stats.norm").scipy.stats.norm.logpdf(X, loc=1, scale=2),
    "linalg.lu_pivots": lambda jax: jax.lax.linalg.lu_pivots_to_permutation(np.array([2, 2, 2], np.int32), 4),
    "optimization_barrier": lambda jax: jax.grad(lambda x: jax.lax.optimization_barrier(x).sum())(X),
    **CORNERS,
}
