"""rune.sparse: arrays that store only their nonzero elements: numbers, and their positions.

A BCOO of shape [*batch, *sparse, *dense] has data [*batch, N, *dense] and indices [*batch, N, K],
where K is the number of sparse axes: a list of elements for each index of the batch. An element
whose position is out of bounds does not count; lists of a batch are padded with such elements.
Elements at the same position add up. A BCOO is a tree of two arrays, so all transformations accept
it. BCSR, COO, CSR and CSC store the same in other forms, and have the same operations.

A product gathers, for each element, the rows of the other operand that it is multiplied by, and
adds up the results: work and memory grow with the number of elements, not with the shape.
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.sparse.array import BCOO, bcoo_fromdense
from rune.sparse.coordinates import Sparse
from rune.sparse.creation import empty, eye, random_bcoo, todense
from rune.sparse.derivatives import grad, jacfwd, jacrev, value_and_grad
from rune.sparse.forms import (
    bcoo_extract,
    bcoo_reduce_sum,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
)
from rune.sparse.layouts import SparseEfficiencyError, SparseEfficiencyWarning, bcoo_update_layout
from rune.sparse.matrices import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from rune.sparse.movement import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)
from rune.sparse.products import bcoo_dot_general, bcoo_dot_general_sampled, bcoo_multiply_dense, bcoo_multiply_sparse
from rune.sparse.rows import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from rune.sparse.sparsify import sparsify

jacobian = jacrev

__all__ = ["BCOO", "BCSR", "COO", "CSC", "CSR", "Sparse", "SparseEfficiencyError", "SparseEfficiencyWarning"]
__all__ += ["bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dot_general", "bcoo_dot_general_sampled"]
__all__ += ["bcoo_dynamic_slice", "bcoo_extract", "bcoo_fromdense", "bcoo_multiply_dense", "bcoo_multiply_sparse"]
__all__ += ["bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_squeeze"]
__all__ += ["bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout", "bcsr_broadcast_in_dim"]
__all__ += ["bcsr_concatenate", "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense", "bcsr_sum_duplicates"]
__all__ += ["bcsr_todense", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense", "csr_fromdense"]
__all__ += ["csr_matmat", "csr_matvec", "csr_todense", "empty", "eye", "grad", "jacfwd", "jacobian", "jacrev"]
__all__ += ["random_bcoo", "sparsify", "todense", "value_and_grad"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
