"""Linear algebra: factorisations and solutions of matrices, batched over leading axes.

    cholesky      L with L Lᴴ = A                          lu        P A = L U, by blocks
    triangular    triangular_solve                         solve     linear_solve, by lu's factors
    direct        solve, det, slogdet
    qr            qr, geqrf, householder_product           tridiagonal   tridiagonal_solve
    eigh, svd     by rotations on devices (jacobi)         eig, schur    by the host
    hessenberg    by reflections                           tridiagonal   in tridiagonal_form
    pivoted_qr    geqp3
    sylvester     A X + X B = C, triangular_sqrt           commutator    L H - H L = C

On the CPU the library is LAPACK, called through NumPy; every other device runs the expansion, a
blocked algorithm in rune's own primitives. matrix_helpers has what they share. small decides when a
matrix is tiny: then its algorithm is written out over its elements, on every device.
"""

from rune.core.primitive import Primitive
from rune.ops.linalg.cholesky import cholesky
from rune.ops.linalg.commutator import hessenberg_commutator
from rune.ops.linalg.direct import matrix_det, matrix_solve, slogdet
from rune.ops.linalg.eig import eig
from rune.ops.linalg.eigh import eigh
from rune.ops.linalg.hessenberg import hessenberg
from rune.ops.linalg.lu import lu
from rune.ops.linalg.pivoted_qr import geqp3
from rune.ops.linalg.qr import geqrf, householder_product, qr
from rune.ops.linalg.schur import schur
from rune.ops.linalg.solve import linear_solve
from rune.ops.linalg.svd import svd
from rune.ops.linalg.sylvester import sylvester, triangular_sqrt
from rune.ops.linalg.triangular import triangular_solve
from rune.ops.linalg.tridiagonal import tridiagonal_solve
from rune.ops.linalg.tridiagonal_form import tridiagonal

_FACTORISATIONS = (cholesky, lu, qr, geqrf, geqp3, householder_product)
_SOLVES = (linear_solve, triangular_solve, tridiagonal_solve)
_SPECTRA = (eigh, svd, eig, schur, hessenberg, tridiagonal)
_FUNCTIONS = (sylvester, triangular_sqrt, hessenberg_commutator, matrix_solve, matrix_det, slogdet)
PRIMITIVES: tuple[Primitive, ...] = (*_FACTORISATIONS, *_SOLVES, *_SPECTRA, *_FUNCTIONS)

__all__ = ["PRIMITIVES", "cholesky", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "hessenberg_commutator"]
__all__ += ["householder_product", "linear_solve", "lu", "matrix_det", "matrix_solve", "qr", "schur", "slogdet"]
__all__ += ["svd", "sylvester", "triangular_solve", "triangular_sqrt", "tridiagonal", "tridiagonal_solve"]
