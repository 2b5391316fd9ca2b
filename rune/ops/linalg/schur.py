"""schur: A = Z T Zᴴ, Z unitary and T upper triangular; of real matrices quasi-triangular.

The T of a real matrix has 1 × 1 blocks for real eigenvalues, and 2 × 2 blocks of equal diagonals
and subdiagonal elements of opposite signs for conjugate pairs. Results T, Z, or T alone without
`vectors`; the order of eigenvalues is free. A matrix that is not finite gives NaN. There is no
derivative; functions of matrices have their own.

It is computed by the host on every device, since it is sequential. schur_numpy has the algorithms.
"""

from __future__ import annotations

import math

import numpy as np

from rune.core.lower import Library
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.ops.linalg.refusal import refused
from rune.ops.linalg.schur_numpy import schur_form
from rune.ops.matrix_helpers import batch_leading, require_matrices, require_square


def _type(a: ArrayType, *, vectors: bool) -> tuple[ArrayType, ...]:
    require_matrices("schur", a)
    require_square("schur", a)
    return (a.strong(), a.strong()) if vectors else (a.strong(),)


def both(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and Z of every lane, computed in double precision. Types: those of `a`."""
    wide = a.astype(np.complex128 if np.iscomplexobj(a) else np.float64)
    t, z = np.empty_like(wide), np.empty_like(wide)
    flat = [x.reshape(math.prod(a.shape[:-2]), *a.shape[-2:]) for x in (wide, t, z)]
    for lane, of_t, of_z in zip(*flat, strict=True):
        of_t[...], of_z[...] = schur_form(lane)
    return t.astype(a.dtype), z.astype(a.dtype)


def _reference(a: np.ndarray, *, vectors: bool) -> tuple[np.ndarray, ...]:
    return both(a) if vectors else both(a)[:1]


schur: Primitive = Primitive(
    "schur", "linalg", _type, _reference,
    multiple_results=True,
    jvp_equation=refused(
        "schur", "the form is not determined by the matrix",
        "functions of matrices (sqrtm, logm, expm) and eigenvalues have derivatives",
    ),
    batch=batch_leading(lambda: schur),
    lower=Library(),
)  # fmt: skip
