"""Legalize units: write out fetches and matrix products that a target has no instruction for.

Before   fetch 2 of x[2*i] into panel[2*i]      multiply a[i, 24, 1] by b[j, 1, 40] into ...
After    p: f32 = x[2*i];  q: f32 = x[2*i + 1]  for k in 16 serial { ... }
         store panel[2*i] = p;  ...

Invariant: all values stay the same, except for the order of the sums of products.
Cost:      linear in the resulting code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rune.dims import Dim
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Load, Local
from rune.lowering.kernel.matrices import written_out
from rune.lowering.kernel.nodes import Fetch, For, KernelCode, Kind, Let, MatrixProduct, Stmt, Store
from rune.lowering.kernel.rewrite import Body, all_names, fresh, loop_symbol, map_stmts, walk
from rune.lowering.passes import Pass


def write_out(target: Target) -> Pass[KernelCode]:
    """The pass for one target."""

    def run(code: KernelCode) -> KernelCode:
        if not any(isinstance(s, Fetch | MatrixProduct) for s in walk(code.body)):
            return code
        names, param_dtypes = all_names(code), {p.name: p.dtype for p in code.params}

        def new(base: str) -> str:
            name = fresh(base, names)
            names.add(name)
            return name

        def on_stmt(stmt: Stmt) -> Body:
            match stmt:
                case Fetch(source=source) if ("fetch", param_dtypes[source]) not in target.native:
                    return _copied(stmt, param_dtypes[source], new)
                case MatrixProduct(a=a) if (_ability(stmt), a.dtype) not in target.native:
                    return (written_out(stmt, thread_of(code), new),)
                case _:
                    return (stmt,)

        body = map_stmts(on_stmt, code.body)
        return code if body == code.body else replace(code, body=body)

    return Pass("write-out-units", "no instructions for matrices and copies that a target lacks", run)


def _ability(stmt: MatrixProduct) -> str:
    return "multiply" if stmt.subgroups == 1 else "multiply_together"


def thread_of(code: KernelCode) -> Dim:
    """The number of a thread in its workgroup; check.py allows products in one loop only."""
    return next(loop_symbol(s) for s in walk(code.body) if isinstance(s, For) and s.kind is Kind.WORKGROUP)


def _copied(fetch: Fetch, dtype: np.dtype, new: Callable[[str], str]) -> Body:
    """Copy neighbours through registers: loads come first, so that one access may cover them."""
    at = range(fetch.count)
    loads = (Load(fetch.source, (fetch.source_index + k,), dtype, fetch.guard) for k in at)
    lets = [Let(new("element"), load) for load in loads]
    stores = (Store(fetch.target, fetch.target_index + k, Local(let.name, dtype)) for k, let in zip(at, lets))
    return (*lets, *stores)


__all__ = ["thread_of", "write_out"]
