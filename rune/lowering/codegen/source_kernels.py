"""Kernels that users wrote, called from a kernel that takes its arguments as rune's do.

    void scale(const float* x, float* y, long long n)      what the user wrote, __global__
    void run_source(const unsigned long long* table) {     what is launched
      scale((..)table[1], (..)table[0], (long long)table[2]);
    }

A CUDA graph can then hold it like any other kernel, and an OpenCL buffer may begin anywhere in
memory. In CUDA C a kernel cannot call another, so the user's kernel becomes a __device__ function
with the same text, without its __launch_bounds__. In OpenCL C it can. Each user kernel is a program
of its own that begins with the user's text: its names cannot clash with rune's, and compilers
report the user's line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from rune.core.source import Bound
from rune.core.types import ArrayType
from rune.dims import Dim, Size, product
from rune.lowering.codegen.braces import helpers
from rune.lowering.codegen.c.dialect import Dialect
from rune.lowering.codegen.c.helpers import helper
from rune.lowering.codegen.c.render import Rendered
from rune.lowering.codegen.infix import index_text
from rune.lowering.kernel.nodes import Access, Param

ENTRY = "run_source"
_BOUNDS = re.compile(r"__launch_bounds__\s*\([^)]*\)")
_ADDRESS = """\
struct run_address {
  unsigned long long at;
  template <class T> __device__ operator T*() const { return (T*)at; }
};"""


def source_kernel(
    kernel: Bound, results: Sequence[ArrayType], operands: Sequence[ArrayType], dialect: Dialect
) -> Rendered:
    """The kernel as a complete program. Its parameters are the results, then the operands."""
    params = (
        *(_param(f"result_{n}", t, Access.WRITE) for n, t in enumerate(results)),
        *(_param(f"operand_{n}", t, Access.READ) for n, t in enumerate(operands)),
    )
    # The user's kernel takes the operands first.
    order = [*range(len(results), len(params)), *range(len(results))]
    write = _in_cuda if kernel.source.language == "cuda" else _in_opencl
    text = write(kernel, params, order)
    helper_texts = helpers(text, (), partial(helper, dialect=dialect)).values()
    program = "\n\n".join([_callable(kernel), *helper_texts, text]) + "\n"
    launch, dtypes_used = kernel.launch, frozenset(p.dtype for p in params)
    shared_bytes = launch.shared_bytes if kernel.source.language == "cuda" else 0
    return Rendered(ENTRY, program, params, kernel.sizes, launch.grid, launch.group, dtypes_used, 0, (), shared_bytes)


def _param(name: str, type: ArrayType, access: Access) -> Param:
    return Param(name, type.dtype, product(type.shape), access)


def _callable(kernel: Bound) -> str:
    """The user's text, with its kernels made callable from another kernel."""
    text = kernel.source.text
    if kernel.source.language == "cuda":
        text = re.sub(r"\b__global__\b", "__device__", _BOUNDS.sub("", text))
    return text.rstrip("\n")


def _in_cuda(kernel: Bound, params: Sequence[Param], order: Sequence[int]) -> str:
    sizes = {name: f"(long long)table[{len(params) + n}]" for n, name in enumerate(kernel.sizes)}
    arguments = [f"run_address{{table[{n}]}}" for n in order]
    arguments += [_number(x, "long long", "ll", sizes.__getitem__) for x in kernel.numbers]
    call = f"  {kernel.source.entry}({', '.join(arguments)});"
    return "\n".join([_ADDRESS, f'extern "C" __global__ void {ENTRY}(const unsigned long long* table) {{', call, "}"])


def _in_opencl(kernel: Bound, params: Sequence[Param], order: Sequence[int]) -> str:
    sizes = {name: f"size_{n}" for n, name in enumerate(kernel.sizes)}
    pieces = [f"__global uchar *{p.name}, const long {p.name}_at" for p in params]
    pieces += [f"const long {name}" for name in sizes.values()]
    arguments = [f"(__global void *)({p.name} + {p.dtype.itemsize} * {p.name}_at)" for p in (params[n] for n in order)]
    arguments += [_number(x, "long", "l", sizes.__getitem__) for x in kernel.numbers]
    lines = []
    if kernel.launch.shared_bytes:
        lines.append(f"  __local uchar shared[{kernel.launch.shared_bytes}] __attribute__((aligned(16)));")
        arguments.append("(__local void *)shared")
    lines.append(f"  {kernel.source.entry}({', '.join(arguments)});")
    return "\n".join([f"__kernel void {ENTRY}({', '.join(pieces)}) {{", *lines, "}"])


def _number(x: Size | float, integer: str, suffix: str, symbol: Callable[[str], str]) -> str:
    """A number as the kernel takes it: a 64-bit integer or a double."""
    if isinstance(x, Dim):
        return f"({integer})({index_text(x, symbol)})"
    return f"{int(x)}{suffix}" if isinstance(x, int) else float(x).hex()
