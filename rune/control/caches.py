"""What is cached from call to call, and how to clear it.

A program holds everything derived from it: rewrites, machine code, binaries of devices. So memory
grows with the number of cached programs: the traces of jitted functions, which die with the
functions, and a bounded number of operations, loops and branches that ran eagerly.
The algebra of sizes caches its latest answers, which take 250 MB after thousands of programs, and
eager Fourier transforms the tables of 64 lengths.
"""

from __future__ import annotations

from rune.backends.cpu import meanings
from rune.control import programs
from rune.control.while_loop import linear_loop, walk_back
from rune.dims import factors
from rune.transforms import eager
from rune.transforms.compile import trace_cache
from rune.transforms.programs import interned

__all__ = ["clear_caches"]

# Caches of programs that no jitted function holds: single operations, loops and branches in eager
# code.
_CACHES = (eager.one_operation, programs.one_equation, interned.long_lived, linear_loop.below, walk_back.above_zero)


def clear_caches() -> None:
    """Drop every trace and the code compiled from it; the next calls trace and compile again.

    Arrays stay, and so do binaries in the user's cache directory. This is for long processes that
    go through thousands of different programs, and for measuring a first call. `f.clear_cache()`
    does the same for one jitted function.
    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> f = rune.jit(lambda x: x + 1.0)
    >>> x = f(rnp.arange(3.0))
    >>> f.cache_size(), rune.clear_caches(), f.cache_size()
    (1, None, 0)
    """
    for cache in _CACHES:
        cache.cache_clear()
    # These are not caches of programs, but they grow as programs do.
    factors.forget()
    meanings.forget_tables()
    trace_cache.clear_all()
