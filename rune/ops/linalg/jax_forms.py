"""JAX's parameters for solves and decompositions: sides, transposes, the order of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.jax_names import Form, Names, always
from rune.core.primitive import Primitive
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.ops.complex_numbers import conj
from rune.ops.matrix_helpers import swapped

if TYPE_CHECKING:
    from rune.array import Array

TRIANGULAR_NAMES: Names = {"left_side": always(True), "transpose_a": always(False), "conjugate_a": always(False)}
_ALL_OF_THEM: Names = {"subset_by_index": always(None), "algorithm": always(None)}
EIGH_NAMES: Names = {"sort_eigenvalues": always(True), **_ALL_OF_THEM}
SVD_NAMES: Names = {"compute_uv": "vectors", **_ALL_OF_THEM}
QR_NAMES: Names = {"pivoting": always(False), "use_magma": always(None)}


def triangular_form(triangular_solve: Callable[[], Primitive]) -> Form:
    """JAX's form of a solve from either side, by the matrix, its transpose or its adjoint."""

    def bind(
        a: Value,
        b: Value,
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool = False,
        conjugate_a: bool = False,
        unit_diagonal: bool = False,
    ) -> Array:
        if conjugate_a and type_of(a).dtype in dtypes.COMPLEX:
            a = conj(a)
        is_swapped = transpose_a == left_side  # x a = b is aᵀ xᵀ = bᵀ
        a, lower = (swapped(a), not lower) if is_swapped else (a, lower)
        options = {"lower": lower, "unit_diagonal": unit_diagonal}
        if left_side:
            return triangular_solve()(a, b, **options)
        return swapped(triangular_solve()(a, swapped(b), **options))

    return Form("left_side", bind)


def _require_all(name: str, subset_by_index: object) -> None:
    if subset_by_index is not None:
        raise ArgumentError(
            f"{name}: cannot bind with subset_by_index={subset_by_index} (all are computed)",
            hint=f"lax.linalg.{name}, which returns a part",
        )


def eigh_form(eigh: Callable[[], Primitive]) -> Form:
    """JAX's form of eigh: vectors before values."""

    def bind(
        a: Value, *, lower: bool, sort_eigenvalues: bool, subset_by_index: object = None, algorithm: object = None
    ) -> list[Array]:
        _require_all("eigh", subset_by_index)
        return list(eigh()(a, lower=lower, vectors=True))[::-1]

    return Form("sort_eigenvalues", bind)


def svd_form(svd: Callable[[], Primitive]) -> Form:
    """JAX's form of svd: singular values before vectors."""

    def bind(
        a: Value, *, full_matrices: bool, compute_uv: bool, subset_by_index: object = None, algorithm: object = None
    ) -> list[Array]:
        _require_all("svd", subset_by_index)
        outs = svd()(a, full_matrices=full_matrices, vectors=compute_uv)
        return [outs[1], outs[0], outs[2]] if compute_uv else list(outs)

    return Form("compute_uv", bind)


def qr_form(qr: Callable[[], Primitive]) -> Form:
    """JAX's form of qr: the factors, of columns in their order."""

    def bind(a: Value, *, pivoting: bool, full_matrices: bool, use_magma: object = None) -> list[Array]:
        if pivoting:
            raise ArgumentError("qr: cannot bind with pivoting=True", hint="lax.linalg.qr, which pivots")
        return list(qr()(a, full_matrices=full_matrices))

    return Form("pivoting", bind)
