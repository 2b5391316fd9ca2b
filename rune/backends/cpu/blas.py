"""Matrix products through the system's BLAS, where that is faster than our own code: Accelerate on
macOS, which alone has access to Apple's matrix units.

`dot_address` wraps cblas_?gemm as the function that plans call, with the signature of gemm/'s
@dot. NumPy's OpenBLAS is not used: its threads spin on the cores that our pool uses, and by itself
it is no faster than gemm/ (measured).
"""

from __future__ import annotations

import ctypes
import functools
import sys
from functools import partial

import numpy as np

from rune import dtypes
from rune.backends.cpu import compiler
from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

_ACCELERATE = "/System/Library/Frameworks/Accelerate.framework/Accelerate"
_LETTER = {dtypes.f32: "s", dtypes.f64: "d"}
_TYPE = {dtypes.f32: "float", dtypes.f64: "double"}

_ROW_MAJOR, _AS_IT_IS, _TRANSPOSED = 101, 111, 112  # constants of CBLAS


@dataclass(frozen=True, slots=True)
class Gemm:
    """cblas_?gemm of one dtype: its address, and the IR type of its integers."""

    address: int
    integer: str


@functools.cache
def find_gemm(dtype: np.dtype) -> Gemm | None:
    """Accelerate's routine for f32 or f64; None on systems without Accelerate."""
    if sys.platform != "darwin":
        return None
    return gemm_in(ctypes.CDLL(_ACCELERATE), f"cblas_{_LETTER[dtype]}gemm", "i32")


def address(dtype: np.dtype) -> int:
    """The address of @dot through Accelerate, 0 if there is none."""
    gemm = find_gemm(dtype)
    return 0 if gemm is None else dot_address(gemm, dtype)


def gemm_in(library: ctypes.CDLL, name: str, integer: str) -> Gemm:
    """The routine of that name in a library."""
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return Gemm(address, integer)


def dot_text(gemm: Gemm, dtype: np.dtype) -> str:
    """The module with @dot over a BLAS routine."""
    signature = ("void", "dot", "ptr a, ptr b, ptr c, i64 batch, i64 m, i64 n, i64 k, i1 ta, i1 tb, ptr watch")
    return define(signature, partial(_dot, gemm, _TYPE[dtype]), "")


def _dot(gemm: Gemm, real: str, code: Code, a: Value, b: Value, c: Value, batch: Value, *product: Value) -> None:
    """c = a @ b for each pair of matrices of a batch. It cannot be interrupted."""
    m, n, k, trans_a, trans_b, _ = product

    def order(trans: Value) -> Value:
        return code.select(trans, code.constant("i32", _TRANSPOSED), _AS_IT_IS)

    def integer(size: Value) -> Value:
        return size.cast("trunc", gemm.integer)

    def stride(length: Value) -> Value:
        return integer(length.call("smax", 1))  # BLAS refuses 0, even for an empty matrix

    one, zero = code.constant(real, 1.0), code.constant(real, 0.0)
    head = [code.constant("i32", _ROW_MAJOR), order(trans_a), order(trans_b), *map(integer, (m, n, k)), one]
    lhs_stride, rhs_stride = stride(code.select(trans_a, m, k)), stride(code.select(trans_b, k, n))
    out_stride, steps = stride(n), (m * k, k * n, m * n)

    def multiply(i: Value) -> None:
        lhs, rhs, out = (code.item(x, real, i * step) for x, step in zip((a, b, c), steps, strict=True))
        tail = [lhs, lhs_stride, rhs, rhs_stride, zero, out, out_stride]
        code.tell("void", code.at(gemm.address), *head, *tail)

    code.count_up(code.constant("i64", 0), batch, 1, multiply)


@functools.cache
def dot_address(gemm: Gemm, dtype: np.dtype) -> int:
    """The address of @dot, compiled once."""
    return _compiled(gemm, dtype).address("dot")


@compiler.lasting
def _compiled(gemm: Gemm, dtype: np.dtype) -> compiler.Code:
    return compiler.compile_module("blas", dot_text(gemm, dtype))
