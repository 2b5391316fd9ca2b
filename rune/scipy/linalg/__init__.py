"""rune.scipy.linalg: SciPy's linear algebra, the last two axes of stacks of matrices.

factorisations  cholesky, cho_factor, lu, lu_factor, lu_solve, qr, qr_multiply
solves          solve, solve_triangular, cho_solve, inv, det, lstsq, pinv
structured      solve_banded, solveh_banded, cholesky_banded, solve_toeplitz, solve_circulant, …
patterns        toeplitz, hankel, circulant, companion, leslie, convolution_matrix, fiedler, …
named           hadamard, hilbert, pascal, dft, helmert, …; block_diag, kron, khatri_rao
"""

from rune.scipy.linalg.factorisations import (
    cho_factor,
    cholesky,
    lu,
    lu_factor,
    lu_solve,
    qr,
    qr_multiply,
)
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
from rune.scipy.linalg.solves import (
    cho_solve,
    det,
    inv,
    lstsq,
    pinv,
    solve,
    solve_triangular,
)
from rune.scipy.linalg.structured import (
    cho_solve_banded,
    cholesky_banded,
    matmul_toeplitz,
    solve_banded,
    solve_circulant,
    solve_toeplitz,
    solveh_banded,
)

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cho_solve_banded", "cholesky", "cholesky_banded",
    "circulant", "companion", "convolution_matrix", "det", "dft", "fiedler", "fiedler_companion",
    "hadamard", "hankel", "helmert", "hilbert", "inv", "invhilbert", "invpascal", "khatri_rao",
    "kron", "leslie", "lstsq", "lu", "lu_factor", "lu_solve", "matmul_toeplitz", "pascal", "pinv",
    "qr", "qr_multiply", "solve", "solve_banded", "solve_circulant", "solve_toeplitz",
    "solve_triangular", "solveh_banded", "toeplitz", "tri", "tril", "triu",
]  # fmt: skip
