"""Run one kernel on NumPy arrays through LLVM, for the host or for a narrower machine."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from rune import dims, dtypes
from rune.backends.cpu.compiler import Code, compile_module, machine
from rune.dims import Size
from rune.lowering.codegen.llvm.render import render
from rune.lowering.codegen.machine import Machine
from rune.lowering.kernel.check import check
from rune.lowering.kernel.expr import Expr, Load, Op
from rune.lowering.kernel.nodes import Access, For, KernelCode, Kind, Param, Store
from rune.lowering.scalar.table import result_dtype

MACHINES = {"host": machine(), "wide": Machine(64, has_cheap_masks=True), "narrow": Machine(16, has_cheap_masks=False)}
SCALAR = Machine(1, has_cheap_masks=False)


def compiled(code: KernelCode, on: Machine | None = None) -> Code:
    """The kernel as machine code."""
    check(code)
    source = render(code, on or machine())
    return compile_module(code.name, "\n".join([*sorted(source.declarations), source.text]))


def run(
    code: KernelCode,
    buffers: Sequence[np.ndarray],
    on: Machine | None = None,
    span: tuple[int, int] | None = None,
    **sizes: int,
) -> None:
    """Run the kernel in place, over its whole range or over `span` of it."""
    machine_code = compiled(code, on)
    extent = render(code, on or machine()).range
    begin, end = span or (0, dims.evaluate(extent, sizes))
    types = [ctypes.c_void_p] * len(buffers) + [ctypes.c_int64] * (len(sizes) + 2)
    function = ctypes.CFUNCTYPE(None, *types)(machine_code.address(code.name))
    function(*(b.ctypes.data for b in buffers), *(sizes[n] for n in code.sizes), begin, end)


def op(name: str, *args: Expr) -> Op:
    """An operation with its result's dtype."""
    result = result_dtype(name, args[-1].dtype)
    assert result is not None
    return Op(name, args, result)


def elementwise(value: Sequence[np.dtype], compute, size: Size, out: np.dtype) -> KernelCode:
    """y[i] = compute(x0[i], x1[i], ...) for inputs of these dtypes."""
    i = dims.symbol("i", 0, size - 1)
    loads = [Load(f"x{k}", (i,), d) for k, d in enumerate(value)]
    params = [Param(f"x{k}", d, size, Access.READ) for k, d in enumerate(value)]
    sizes = tuple(s.name for s in dims.symbols(size)) if isinstance(size, dims.Dim) else ()
    body = For("i", size, Kind.GRID, (Store("y", i, compute(*loads)),))
    result = (*params, Param("y", out, size, Access.WRITE))
    return KernelCode("elementwise", result, sizes, (body,))


def apply(name: str, *arrays: np.ndarray, on: Machine | None = None) -> np.ndarray:
    """One scalar operation on arrays of one length."""
    dtypes_ = [a.dtype for a in arrays]
    out = result_dtype(name, dtypes_[-1])
    assert out is not None
    code = elementwise(dtypes_, lambda *args: op(name, *args), len(arrays[0]), out)
    result = np.empty(len(arrays[0]), out)
    run(code, [*arrays, result], on)
    return result


__all__ = ["MACHINES", "SCALAR", "apply", "compiled", "dtypes", "elementwise", "op", "run"]
