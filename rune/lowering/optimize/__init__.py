"""Rewrites of kernel code, one file each: kernel code -> kernel code, the same results.

Any sequence of them is correct; `kernel_passes` is the one that pays.
"""

from __future__ import annotations

from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.optimize import (
    eliminate_common,
    eliminate_dead,
    hoist_invariant,
    simplify_index,
    unroll,
)
from rune.lowering.optimize.vectorize import vectorize
from rune.lowering.passes import Pass, fixpoint


def kernel_passes(target: Target) -> list[Pass[KernelCode]]:
    """The passes for one target, in order."""
    return [
        unroll.PASS,  # first: its copies have constant indices, which the rest simplifies
        fixpoint(
            simplify_index.PASS,
            hoist_invariant.PASS,
            eliminate_common.PASS,
        ),
        eliminate_dead.PASS,  # orphans of the passes before
        vectorize(target),  # last: it asks what memory a loop touches in the end
    ]
