"""Matrix products through the system's BLAS, where that beats our own code: Accelerate on macOS,
which alone reaches Apple's matrix units.

`dot_address` wraps cblas_?gemm as the function that plans call, with the signature of gemm/'s
@dot. NumPy's OpenBLAS is not used: its threads spin for the cores that our pool works on, and
alone it is no faster than gemm/ (measured).
"""

from __future__ import annotations

import ctypes
import functools
import sys
from dataclasses import dataclass

import numpy as np

from rune import dtypes
from rune.backends.cpu import compiler

_ACCELERATE = "/System/Library/Frameworks/Accelerate.framework/Accelerate"
_LETTER = {dtypes.f32: "s", dtypes.f64: "d"}
_TYPE = {dtypes.f32: "float", dtypes.f64: "double"}

_TEXT = """
declare i64 @llvm.smax.i64(i64, i64)

define void @dot(ptr %a, ptr %b, ptr %c, i64 %batch, i64 %m, i64 %n, i64 %k, i1 %ta, i1 %tb) #0 {
entry:
  %lda0 = select i1 %ta, i64 %m, i64 %k
  %ldb0 = select i1 %tb, i64 %k, i64 %n
  %lda1 = call i64 @llvm.smax.i64(i64 %lda0, i64 1)
  %ldb1 = call i64 @llvm.smax.i64(i64 %ldb0, i64 1)
  %ldc1 = call i64 @llvm.smax.i64(i64 %n, i64 1)
  %m1 = trunc i64 %m to INT
  %n1 = trunc i64 %n to INT
  %k1 = trunc i64 %k to INT
  %lda = trunc i64 %lda1 to INT
  %ldb = trunc i64 %ldb1 to INT
  %ldc = trunc i64 %ldc1 to INT
  %fa = select i1 %ta, i32 112, i32 111
  %fb = select i1 %tb, i32 112, i32 111
  %step.a = mul i64 %m, %k
  %step.b = mul i64 %k, %n
  %step.c = mul i64 %m, %n
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %more = icmp slt i64 %i, %batch
  br i1 %more, label %one, label %leave
one:
  %ia = mul i64 %i, %step.a
  %ib = mul i64 %i, %step.b
  %ic = mul i64 %i, %step.c
  %pa = getelementptr REAL, ptr %a, i64 %ia
  %pb = getelementptr REAL, ptr %b, i64 %ib
  %pc = getelementptr REAL, ptr %c, i64 %ic
  call void inttoptr (i64 ADDRESS to ptr)(i32 101, i32 %fa, i32 %fb, INT %m1, INT %n1, INT %k1,
    REAL 1.0, ptr %pa, INT %lda, ptr %pb, INT %ldb, REAL 0.0, ptr %pc, INT %ldc)
  %next = add i64 %i, 1
  br label %test
leave:
  ret void
}
"""


@dataclass(frozen=True, slots=True)
class Gemm:
    """cblas_?gemm of one dtype: its address, and the IR type of its integers."""

    address: int
    integer: str


@functools.cache
def find_gemm(dtype: np.dtype) -> Gemm | None:
    """Accelerate's routine for f32 or f64, None where there is no Accelerate."""
    if sys.platform != "darwin":
        return None
    return gemm_in(ctypes.CDLL(_ACCELERATE), f"cblas_{_LETTER[dtype]}gemm", "i32")


def gemm_in(library: ctypes.CDLL, name: str, integer: str) -> Gemm:
    """The routine of that name in a library."""
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return Gemm(address, integer)


def dot_text(gemm: Gemm, dtype: np.dtype) -> str:
    """The module with @dot over a BLAS routine."""
    text = _TEXT.replace("INT", gemm.integer).replace("REAL", _TYPE[dtype])
    return text.replace("ADDRESS", str(gemm.address))


@functools.cache
def dot_address(gemm: Gemm, dtype: np.dtype) -> int:
    """The address of @dot, compiled once; the code lives as long as the process."""
    return _compiled(gemm, dtype).address("dot")


@functools.cache
def _compiled(gemm: Gemm, dtype: np.dtype) -> compiler.Code:
    return compiler.compile_module("blas", dot_text(gemm, dtype))
