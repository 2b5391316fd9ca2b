"""Contraction: a sum of products is fused only if the target itself has the fused operation.

Before   total add= contract x[i] * y[i]       a device whose fma is a function in software
After    total add= x[i] * y[i]                a product, rounded, and a sum

Invariant: fusing an accumulation is optional, so either result is correct.
Cost:      linear in the code.
"""

from __future__ import annotations

from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import Accumulate, KernelCode, Stmt, Store
from rune.lowering.kernel.rewrite import Body, map_bodies
from rune.lowering.passes import Pass
from rune.records import replace


def separate_products(target: Target) -> Pass[KernelCode]:
    """The pass for one target."""

    def stmt(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Accumulate | Store) and stmt.contract:
            # In software a fused step takes tens of operations, and fusing is optional.
            return replace(stmt, contract=target.has("fma", stmt.value.dtype))
        return map_bodies(stmt, body)

    def body(body: Body) -> Body:
        return tuple(map(stmt, body))

    def run(code: KernelCode) -> KernelCode:
        new_body = body(code.body)
        return code if new_body == code.body else replace(code, body=new_body)

    return Pass("separate-products", "no fused multiply-add that is done in software", run)
