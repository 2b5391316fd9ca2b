"""`jax.experimental.sparse`: BCOO, and what computes with it; other formats are not here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rune import absent, tree
from rune.errors import ArgumentError
from rune.sparse import *
from rune.sparse import BCOO


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """`f` of dense arrays (e3nn wraps functions of constants that may be sparse).

    Errors: ArgumentError for a sparse argument, which `bcoo_dot_general` would take.
    """

    @functools.wraps(f)
    def of_dense(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, BCOO) for x in tree.leaves((args, kwargs), is_leaf=lambda x: isinstance(x, BCOO))):
            raise ArgumentError("sparsify: cannot take a BCOO (rune has no sparse rules of dense operations)")
        return f(*args, **kwargs)

    return of_dense


__getattr__ = absent.of(__name__)
