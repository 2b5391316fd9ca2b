"""Helpers of tests of kernel code passes: the passes, and one pass applied to a body's text."""

from __future__ import annotations

from dataclasses import replace

from rune.backends.reference import TARGET
from rune.lowering.kernel.check import check
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse, to_text
from rune.lowering.optimize import (
    eliminate_common,
    eliminate_dead,
    hoist_invariant,
    join_rounds,
    simplify_index,
    split_sums,
    sum_in_blocks,
    unroll,
)
from rune.lowering.optimize.vectorize import vectorize
from rune.lowering.passes import Pass, run_passes

CPU = replace(TARGET, threads_per_workgroup=1, vector_bytes=16)
MESA = replace(TARGET, language="spirv", is_processor=True)  # whose accesses are made lane by lane
PASSES = [
    simplify_index.PASS,
    hoist_invariant.PASS,
    eliminate_common.PASS,
    eliminate_dead.PASS,
    unroll.PASS,
    sum_in_blocks.PASS,
    vectorize(TARGET),
    vectorize(CPU),
    join_rounds.join_rounds(MESA),
    split_sums.split_sums(MESA),
]
HEAD = "code f(x: read f32[64], k: read i32[64], y: write f32[64]) sizes n in 1..8"


def code(body: str) -> KernelCode:
    """The kernel with this body."""
    kernel = parse(f"{HEAD} {{ {body} }}")
    check(kernel)
    return kernel


def after(p: Pass[KernelCode], body: str) -> str:
    """The body's text after the pass."""
    result = run_passes([p], code(body), check, to_text)
    return "\n".join(line.removeprefix("  ") for line in to_text(result).splitlines()[1:-1])
