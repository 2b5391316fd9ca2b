"""rune.scipy.linalg: SciPy's linear algebra, the last two axes of stacks of matrices.

factorisations  cholesky, cho_factor, lu, lu_factor, lu_solve, qr, qr_multiply
solves          solve, solve_triangular, cho_solve, inv, det, lstsq, pinv
banded          solve_banded, solveh_banded, cholesky_banded, cho_solve_banded
structured      solve_toeplitz, matmul_toeplitz, solve_circulant
patterns        toeplitz, hankel, circulant, companion, leslie, convolution_matrix, fiedler, …
named           hadamard, hilbert, pascal, dft, helmert, …; block_diag, kron, khatri_rao
spectra         eigh, eig, svd, of bands and pairs      forms         schur, hessenberg, …
exponentials    expm, cosm, sinm, …                     functions     sqrtm, logm, funm, …
subspaces       polar, null_space, orth, …              equations     solve_sylvester, …
properties      norm, bandwidth, issymmetric, ishermitian
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.linalg.banded import cho_solve_banded, cholesky_banded, solve_banded, solveh_banded
from rune.scipy.linalg.equations import solve_continuous_lyapunov, solve_discrete_lyapunov, solve_sylvester
from rune.scipy.linalg.exponentials import coshm, cosm, expm, expm_frechet, sinhm, sinm, tanhm, tanm
from rune.scipy.linalg.factorisations import cho_factor, cholesky, lu, lu_factor, lu_solve, qr, qr_multiply
from rune.scipy.linalg.forms import cdf2rdf, hessenberg, rsf2csf, schur
from rune.scipy.linalg.functions import fractional_matrix_power, funm, logm, signm, sqrtm
from rune.scipy.linalg.named import (
    block_diag,
    dft,
    hadamard,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    khatri_rao,
    kron,
    pascal,
    tri,
    tril,
    triu,
)
from rune.scipy.linalg.patterns import (
    circulant,
    companion,
    convolution_matrix,
    fiedler,
    fiedler_companion,
    hankel,
    leslie,
    toeplitz,
)
from rune.scipy.linalg.properties import bandwidth, ishermitian, issymmetric, norm
from rune.scipy.linalg.solves import cho_solve, det, inv, lstsq, pinv, solve, solve_triangular
from rune.scipy.linalg.spectra import (
    diagsvd,
    eig,
    eig_banded,
    eigh,
    eigh_tridiagonal,
    eigvals,
    eigvalsh,
    eigvalsh_tridiagonal,
    svd,
    svdvals,
)
from rune.scipy.linalg.structured import matmul_toeplitz, solve_circulant, solve_toeplitz
from rune.scipy.linalg.subspaces import null_space, orth, orthogonal_procrustes, polar, subspace_angles

__all__ = ["bandwidth", "block_diag", "cdf2rdf", "cho_factor", "cho_solve", "cho_solve_banded", "cholesky"]
__all__ += ["cholesky_banded", "circulant", "companion", "convolution_matrix", "coshm", "cosm", "det", "dft"]
__all__ += ["diagsvd", "eig", "eig_banded", "eigh", "eigh_tridiagonal", "eigvals", "eigvalsh"]
__all__ += ["eigvalsh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion"]
__all__ += ["fractional_matrix_power", "funm", "hadamard", "hankel", "helmert", "hessenberg", "hilbert", "inv"]
__all__ += ["invhilbert", "invpascal", "ishermitian", "issymmetric", "khatri_rao", "kron", "leslie", "logm"]
__all__ += ["lstsq", "lu", "lu_factor", "lu_solve", "matmul_toeplitz", "norm", "null_space", "orth"]
__all__ += ["orthogonal_procrustes", "pascal", "pinv", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "signm"]
__all__ += ["sinhm", "sinm", "solve", "solve_banded", "solve_circulant", "solve_continuous_lyapunov"]
__all__ += ["solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz", "solve_triangular", "solveh_banded"]
__all__ += ["sqrtm", "subspace_angles", "svd", "svdvals", "tanhm", "tanm", "toeplitz", "tri", "tril", "triu"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
