"""Factorisations of matrices, and solutions by triangles, in native code.

lanes.py       many small matrices: a vector has the same element of one matrix per lane
cholesky.py, triangular.py, lu.py, reflections.py    one matrix, by blocks: nearly all work is
               in the tiles of matrix products (gemm/)
symmetric.py   eigenvalues of small real matrices: reduction to three diagonals (tridiagonal.py),
               then rotations (implicit_ql.py)
lapack.py      all other eigenvalues, and singular values
library.py     the functions for arrays, and their addresses
"""
