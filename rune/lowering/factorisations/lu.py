"""lu on devices with groups of threads: one group eliminates the columns of a block.

All other steps are those of ops/linalg/lu_expand.py: gather the rows, divide the rows of U right of
the block by its triangle (triangular.py), and subtract their product from the rows below.

Source: Golub & Van Loan 4e, §3.4; LAPACK's getrf.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.lowering.codegen.target import Target
from rune.lowering.factorisations import THREADS
from rune.lowering.factorisations.elimination import eliminate_columns
from rune.lowering.factorisations.panels import BLOCKS
from rune.ops.linalg.lu import dense_lu
from rune.ops.linalg.lu_expand import by_blocks
from rune.ops.matrix_helpers import is_static

BLOCK = BLOCKS[-1]
MOST_THREADS = 1024


def eliminated(target: Target, a: Value, **params: object) -> Sequence[Value]:
    """lu, pivots and permutation of [*B, M, N]."""
    type = type_of(a)
    if type.dtype not in (dtypes.f32, dtypes.f64) or not is_static(type.shape) or 0 in type.shape:
        assert dense_lu.expand is not None
        return dense_lu.expand(a, **params)
    # One group eliminates all rows of a panel, so it is as large as the device allows.
    threads = next(n for n in (MOST_THREADS, THREADS) if n <= target.threads_per_workgroup)
    return by_blocks(a, min(type.shape[-2:]), BLOCK, functools.partial(eliminate_columns, threads=threads))
