"""Factorisations of matrices, and solutions by triangles, in native code.

lanes.py       many small matrices: a vector has the same element of as many as it has lanes
cholesky.py, triangular.py, lu.py    one matrix, by blocks: nearly all work is done by the
               tiles of matrix products (gemm/)
symmetric.py   eigenvalues of small real matrices, by three diagonals (tridiagonal.py) and their
               rotations (implicit_ql.py); lapack.py the other ones, and singular values
library.py     which function serves an array, and its address
"""
