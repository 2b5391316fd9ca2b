"""rune.lax: control flow and collectives under the names of jax.lax.

control       cond, switch, while_loop, fori_loop, scan, map, associative_scan
collectives   psum, pmean, pmax, pmin, all_gather, psum_scatter, all_to_all, ppermute, pshuffle,
              pswapaxes, axis_index, axis_size
derivatives   stop_gradient

Not here yet: the array operations of jax.lax; `rune.numpy` has most of them under NumPy's names.
"""

from typing import Any

from rune import tree
from rune.control import (
    associative_scan,
    cond,
    fori_loop,
    map,
    scan,
    switch,
    while_loop,
)
from rune.core.interpreter import is_differentiable
from rune.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)
from rune.ops import stop_gradient as _stop_gradient


def stop_gradient(x: Any) -> Any:
    """The values of a tree of arrays, constants of every derivative.

    >>> import rune
    >>> float(rune.grad(lambda x: rune.lax.stop_gradient(x) * x)(3.0))
    3.0
    """
    return tree.map(lambda leaf: _stop_gradient(leaf) if is_differentiable(leaf) else leaf, x)


__all__ = [
    "all_gather", "all_to_all", "associative_scan", "axis_index", "axis_size", "cond", "fori_loop",
    "map", "pmax", "pmean", "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes",
    "scan", "stop_gradient", "switch", "while_loop",
]  # fmt: skip
