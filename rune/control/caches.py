"""What is cached from call to call, and how to clear it.

A program holds everything derived from it: rewrites, machine code, binaries of devices. So memory
grows with the programs that are remembered: the traces of jitted functions, which die with the
functions, and a bounded number of operations, loops and branches that were evaluated one by one.
The algebra of sizes remembers its last answers, 250 MB of them after thousands of programs.
"""

from __future__ import annotations

from rune.control import programs
from rune.control.while_loop import linear_loop, walk_back
from rune.dims import factors
from rune.transforms import eager
from rune.transforms.compile import trace_cache
from rune.transforms.programs import interned

__all__ = ["clear_caches"]

# Programs that no jitted function holds: of single operations, loops and branches in eager code.
_PROGRAMS = (eager.one_operation, programs.one_equation, interned.held, linear_loop.below, walk_back.above_zero)


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
    for remembered in _PROGRAMS:
        remembered.cache_clear()
    factors.forget()
    trace_cache.clear_all()
