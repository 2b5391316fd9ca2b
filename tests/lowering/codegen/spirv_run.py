"""Helpers of SPIR-V tests: a target with every type, every operation as a kernel, spirv-val."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rune import dims, dtypes
from rune.lowering.codegen.spirv.binary.module import KINDS
from rune.lowering.codegen.spirv.render import SpirvKernel, render
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Cast, Expr, Load, Op
from rune.lowering.kernel.nodes import Access, For, KernelCode, Kind, Param, Store
from rune.lowering.kernel.text import parse
from rune.lowering.scalar.table import OPERATIONS, result_dtype
from tests.lowering.kernel.examples import TEXTS

CONTROLS = frozenset((name, bits) for name in ("denormals", "specials", "nearest") for bits in (16, 32, 64))
TARGET = Target(
    "vulkan:0",
    "vulkan",
    "spirv",
    "a test",
    frozenset(KINDS),
    16,
    8,
    256,
    1 << 15,
    1 << 12,
    frozenset(),
    float_controls=CONTROLS,
)
VALIDATOR = shutil.which("spirv-val")
validated = pytest.mark.skipif(VALIDATOR is None, reason="spirv-val is absent: apt install spirv-tools")


def rendered(text: str, target: Target = TARGET) -> SpirvKernel:
    """The module of kernel code, or of an example by its name."""
    return render(parse(TEXTS.get(text, text)), target)


def complaint(words: bytes, folder: Path) -> str:
    """The errors of spirv-val for a module; empty if it is valid for Vulkan 1.3."""
    file = folder / "module.spv"
    file.write_bytes(words)
    command = [str(VALIDATOR), "--target-env", "vulkan1.3", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def operations(dtype: np.dtype) -> list[Op | Cast]:
    """Every operation on operands of a dtype, and its conversions to all others."""
    i = dims.symbol("i", 0, 7)
    loads = [Load(name, (i,), dtype) for name in "abc"]
    expressions: list[Op | Cast] = [Cast(loads[0], d) for d in sorted(KINDS, key=dtypes.short)]
    for name, op in OPERATIONS.items():
        if dtype not in op.dtypes:
            continue
        args: tuple[Expr, ...] = tuple(itertools.islice(itertools.cycle(loads), op.arity))
        if name == "select":
            args = (Op("lt", (loads[0], loads[1]), dtypes.bool_), *loads[1:])
        same = (d for d in sorted(KINDS, key=dtypes.short) if d.itemsize == dtype.itemsize)
        result = result_dtype(name, dtype)
        expressions += [Op(name, args, d) for d in (same if result is None else [result])]
    return expressions


def kernel_of(expr: Op | Cast, dtype: np.dtype) -> KernelCode:
    """y[i] = expr for 8 elements."""
    params = [Param(name, dtype, 8, Access.READ) for name in "abc"]
    params.append(Param("y", expr.dtype, 8, Access.WRITE))
    body = For("i", 8, Kind.GRID, (Store("y", dims.symbol("i", 0, 7), expr),))
    return KernelCode("f", tuple(params), (), (body,))
