"""rune.numpy.linalg: linear algebra of stacks of matrices, the last two axes.

solves          solve, inv, lstsq, pinv, tensorinv, tensorsolve
factorisations  cholesky, qr          determinants   det, slogdet, cond, matrix_rank
products        matrix_power, multi_dot, trace, diagonal, outer, cross, …
"""

from rune.numpy.linalg.determinants import cond, det, matrix_rank, slogdet
from rune.numpy.linalg.factorisations import cholesky, qr
from rune.numpy.linalg.products import (
    cross,
    diagonal,
    matmul,
    matrix_power,
    matrix_transpose,
    multi_dot,
    outer,
    tensordot,
    trace,
    vecdot,
)
from rune.numpy.linalg.solves import inv, lstsq, pinv, solve, tensorinv, tensorsolve

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "inv", "lstsq", "matmul", "matrix_power",
    "matrix_rank", "matrix_transpose", "multi_dot", "outer", "pinv", "qr", "slogdet", "solve",
    "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
]  # fmt: skip
