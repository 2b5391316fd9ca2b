"""Order: put the axes of the domain in another order; neighbouring points lie along the last one.

Before   for i0 in 64, i1 in 4096: y[4096*i0 + i1] = x[i0 + 64*i1]      neighbours write neighbours
After    for i1 in 4096, i0 in 64: y[4096*i0 + i1] = x[i0 + 64*i1]      neighbours read neighbours

Cores divide the outermost axis; vector lanes, or threads that run in step, take the last one. Which
order is best depends on what lies along these axes in memory, and on caches.

Invariant: the same points, each once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from rune.lowering.build.schedule import Order
from rune.lowering.kernels import Kernel

MOST_AXES = 3  # up to here every order is tried; with more axes, only the ends of the domain change


def reordered(kernel: Kernel, order: Order) -> Kernel:
    """The kernel with its domain in that order."""
    axes = {a.name: a for a in kernel.domain}
    return replace(kernel, domain=tuple(axes[name] for name in order.axes))


def orders(kernel: Kernel) -> Iterator[Order]:
    """Other orders that may pay."""
    names = tuple(a.name for a in kernel.domain)
    if len(names) <= MOST_AXES:
        yield from (Order(p) for p in itertools.permutations(names) if p != names)
        return
    for name in names:
        others = tuple(n for n in names if n != name)
        yield from (Order(p) for p in ((*others, name), (name, *others)) if p != names)
