"""Looking into programs while they run: print and callback, in eager and compiled code.

    rune.debug.print("x = {x:.3f}", x=x)

What is printed is the value when the program runs. Under vmap it is printed once per lane, under
grad once, for the primal; where no argument has lanes, once.
"""

from __future__ import annotations

import builtins
import itertools
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rune import tree
from rune.errors import ArgumentError
from rune.transforms.callback import debug_callback

__all__ = ["callback", "print"]


def callback(callback: Callable[..., Any], *args: Any, ordered: bool = False, **kw: Any) -> None:
    """Call a Python function of concrete arrays, for its side effects, when the program runs.

    ordered: after the ordered callbacks before it, and before those after it.
    What it returns is not looked at. Leaves that are no arrays are handed over as they are.

    >>> import rune
    >>> seen = []
    >>> rune.vmap(lambda x: rune.debug.callback(seen.append, x))(rune.numpy.arange(3))
    >>> [int(x) for x in seen]
    [0, 1, 2]
    """
    debug_callback(callback, *args, ordered=ordered, **kw)


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print values when the program runs, as `fmt.format(*args, **kwargs)` says.

    ordered: after what was printed in order before.
    Errors:  ArgumentError when the format and the arguments do not fit, at the time of tracing.

    >>> import rune
    >>> rune.jit(lambda x: rune.debug.print("x = {x:.1f}", x=x))(2.0)
    x = 2.0
    """
    _require_fit(fmt, args, kwargs)

    def show(*values: Any, **named: Any) -> None:
        hosts, by_name = tree.map(_host, (values, named))
        builtins.print(fmt.format(*hosts, **by_name))

    debug_callback(show, *args, ordered=ordered, **kwargs)


def _host(value: Any) -> Any:
    """An array as NumPy's, a number as NumPy's scalar, which have formats."""
    return np.asarray(value)[()] if hasattr(value, "type") else value


def _require_fit(fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise ArgumentError unless every field has an argument and every argument a field."""
    given = [*map(str, range(len(args))), *kwargs]
    fields = list(_fields(fmt))
    lacking = [name for name in fields if name not in given]
    unused = [name for name in given if name not in fields]
    if lacking or unused:
        why = f"no argument {lacking[0]}" if lacking else f"no field for argument {unused[0]}"
        raise ArgumentError(f"debug.print: cannot fill {fmt!r} ({why})")


def _fields(fmt: str) -> Iterator[str]:
    """The arguments that a format names: `0`, `x`; fields without a name are counted."""
    count = itertools.count()
    for _, name, spec, _ in string.Formatter().parse(fmt):
        if name is not None:
            yield re.split(r"[.\[]", name)[0] or str(next(count))
            yield from _fields(spec or "")
