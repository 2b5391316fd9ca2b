"""rune.numpy.linalg: linear algebra of stacks of matrices, the last two axes.

solves          solve, inv, tensorinv, tensorsolve
factorisations  cholesky, qr          determinants   det, slogdet, cond, matrix_rank
spectra         eigh, eig, svd, …     norms          norm, vector_norm, matrix_norm
products        matrix_power, multi_dot, trace, diagonal, outer, cross, …
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.numpy.linalg.determinants import cond, det, matrix_rank, slogdet
from rune.numpy.linalg.factorisations import cholesky, qr
from rune.numpy.linalg.generalised_inverses import lstsq, pinv
from rune.numpy.linalg.norms import matrix_norm, norm, vector_norm
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
from rune.numpy.linalg.solves import inv, solve, tensorinv, tensorsolve
from rune.numpy.linalg.spectra import eig, eigh, eigvals, eigvalsh, svd, svdvals

__all__ = ["cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq"]
__all__ += ["matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm"]
__all__ += ["outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve"]
__all__ += ["trace", "vecdot", "vector_norm"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
