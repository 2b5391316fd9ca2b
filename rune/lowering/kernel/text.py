"""Kernel code as text that reads like C, and back: parse(str) == code, for checked code.

    code   := "code" name "(" [param {"," param}] ")" ["sizes" size {"," size}]
              ["aliases" name "=" name {"," name "=" name}]
              ["ordered" name {"," name}] "{" {stmt} "}"
    param  := name ":" ("read" | "write" | "readwrite") dtype "[" dim "]"
    size   := name [range]
    range  := "in" [dim] ".." [dim]                     bounds of an index symbol, inclusive
    stmt   := name ":" dtype [range] "=" expr           Let
            | "var" name ":" dtype "=" expr             Var
            | name "=" expr                             Assign
            | name combine "=" ["contract"] expr        Accumulate
            | "store" name "[" dim "]" "=" expr         Store
            | "update" name "[" dim "]" combine "=" ["contract"] expr
            | "atomic" name "[" dim "]" combine "=" expr
            | "for" name "in" dim kind "{" {stmt} "}"
            | "if" expr "{" {stmt} "}" ["else" "{" {stmt} "}"]
            | "alloc" name ":" dtype "[" number "]" ("shared" | "local")
            | "barrier" [", of" number]                 of all threads, or of each subgroup
            | "barrier, behind" number [", summed"]     with fetches and products in flight after it
            | "fetch" number "of" name "[" dim ["if" expr] "]" "into" name "[" dim "]"
            | "multiply" ["by" number "subgroups"] factor "by" factor "into" row {"," row}
    factor := name "[" dim "," number "," number "]"    with the strides of positions and of depths
    row    := "(" name {"," name} ")"                   accumulators of one row
    expr   := term [infix term]                         nested operations have parentheses
    term   := "(" expr ")" | name | "-" term | constant
            | name "[" dim ["if" expr] "]"              Load, with its guard
            | operation "(" expr {"," expr} ")"
            | dtype "(" expr ")"                        Cast
            | "bitcast_" dtype "(" expr ")" | "index" "(" dim ")"
    constant := number "_" dtype | "true" | "false" | ["-"] ("inf" | "nan") "_" dtype
            | "bits_" dtype "(" hex ")"                 values that no number gives exactly

Dimensions are read and printed by rune.dims. A `#` starts a comment.
"""

from __future__ import annotations

from collections.abc import Iterator

from rune import dims, dtypes
from rune.dims import Dim
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Assign,
    Barrier,
    Factor,
    Fetch,
    For,
    If,
    KernelCode,
    Let,
    MatrixProduct,
    Param,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.notation import const_text
from rune.lowering.kernel.parse import parse
from rune.lowering.kernel.rewrite import Body, symbols_used
from rune.lowering.scalar.table import SIGNS


def to_text(code: KernelCode) -> str:
    """The code in the grammar above."""
    # Bounds are printed where a name is bound, but only its uses carry them.
    symbols = symbols_used(code)
    head = f"code {code.name}({', '.join(map(_param, code.params))})"
    if code.sizes:
        head += " sizes " + ", ".join(name + range_text(symbols.get(name)) for name in code.sizes)
    if code.aliases:
        head += " aliases " + ", ".join(f"{a} = {b}" for a, b in code.aliases)
    if code.scalar_loops:
        head += f" ordered {', '.join(code.scalar_loops)}"
    return "\n".join([head + " {", *code_lines(code.body, symbols, 1), "}"])


def _param(p: Param) -> str:
    return f"{p.name}: {p.access.value} {dtypes.short(p.dtype)}[{p.size}]"


def range_text(symbol: Dim | None) -> str:
    """` in 1..4096`: the bounds of a symbol."""
    if symbol is None:
        return ""
    (s,) = dims.symbols(symbol)
    return f" in {s.low}..{'' if s.high is None else s.high}"


def code_lines(body: Body, symbols: dict[str, Dim], depth: int) -> Iterator[str]:
    """The lines of statements, `depth` levels in; `symbols` bounds the names they bind."""
    pad = "  " * depth
    for stmt in body:
        match stmt:
            case For(var=var, extent=extent, kind=kind, body=inner):
                yield f"{pad}for {var} in {extent} {kind.value} {{"
                yield from code_lines(inner, symbols, depth + 1)
                yield pad + "}"
            case If(condition=condition, body=inner, orelse=orelse):
                yield f"{pad}if {expr_text(condition)} {{"
                yield from code_lines(inner, symbols, depth + 1)
                if orelse:
                    yield pad + "} else {"
                    yield from code_lines(orelse, symbols, depth + 1)
                yield pad + "}"
            case _:
                yield pad + _line(stmt, symbols)


def _line(stmt: Stmt, symbols: dict[str, Dim]) -> str:
    match stmt:
        case Let(name=name, value=value):
            return f"{name}: {dtypes.short(value.dtype)}{range_text(symbols.get(name))} = " + expr_text(value)
        case Var(name=name, init=init):
            return f"var {name}: {dtypes.short(init.dtype)} = {expr_text(init)}"
        case Assign(name=name, value=value):
            return f"{name} = {expr_text(value)}"
        case Accumulate(name=name, combine=combine, value=value, contract=contract):
            return f"{name} {combine}= {'contract ' if contract else ''}{expr_text(value)}"
        case Store(buffer=buffer, index=index, value=value, combine=None):
            return f"store {buffer}[{index}] = {expr_text(value)}"
        case Store(buffer=buffer, index=index, value=value, combine=combine, atomic=True):
            return f"atomic {buffer}[{index}] {combine}= {expr_text(value)}"
        case Store(buffer=buffer, index=index, value=value, combine=combine, contract=contract):
            operator = f"{combine}= {'contract ' if contract else ''}"
            return f"update {buffer}[{index}] {operator}{expr_text(value)}"
        case Alloc(name=name, dtype=dtype, size=size, space=space):
            return f"alloc {name}: {dtypes.short(dtype)}[{size}] {space.value}"
        case Barrier(threads=threads, in_flight=in_flight, waits_for_products=waits):
            scope = "" if threads is None else f", of {threads}"
            return f"barrier{scope}{f', behind {in_flight}' * (in_flight > 0)}{', summed' * waits}"
        case Fetch(target=target, target_index=to, source=source, source_index=at, count=count, guard=guard):
            condition = "" if guard is None else f" if {expr_text(guard)}"
            return f"fetch {count} of {source}[{at}{condition}] into {target}[{to}]"
        case MatrixProduct(a=a, b=b, accumulators=rows, subgroups=subgroups):
            sums = ", ".join(f"({', '.join(row)})" for row in rows)
            head = "multiply" if subgroups == 1 else f"multiply by {subgroups} subgroups"
            return f"{head} {_factor(a)} by {_factor(b)} into {sums}"
        case For() | If():
            return "\n".join(code_lines((stmt,), symbols, 0))


def _factor(factor: Factor) -> str:
    block = f", {factor.block_stride}" if factor.block_stride else ""
    return f"{factor.buffer}[{factor.index}, {factor.position_stride}, {factor.depth_stride}{block}]"


def expr_text(expr: Expr) -> str:
    """One expression in the grammar above."""
    match expr:
        case Op(name=name, args=(a, b)) if name in SIGNS:
            return f"{_operand(a)} {SIGNS[name]} {_operand(b)}"
        # `-1_f32` would read back as a constant.
        case Op(name="neg", args=(arg,)) if not isinstance(arg, Const):
            return f"-{_operand(arg)}"
        case Op(name=name, args=args, dtype=dtype):
            name = f"bitcast_{dtypes.short(dtype)}" if name == "bitcast" else name
            return f"{name}({', '.join(map(expr_text, args))})"
        case Cast(arg=arg, dtype=dtype):
            return f"{dtypes.short(dtype)}({expr_text(arg)})"
        case Load(buffer=buffer, indices=indices, guard=guard):
            condition = "" if guard is None else f" if {expr_text(guard)}"
            return f"{buffer}[{', '.join(map(str, indices))}{condition}]"
        case Index(dim=dim):
            return f"index({dim})"
        case Local(name=name):
            return name
        case Const():
            return const_text(expr)


def _operand(expr: Expr) -> str:
    text = expr_text(expr)
    # Always parenthesised: the reader has no precedence.
    infix = isinstance(expr, Op) and expr.name in SIGNS
    return f"({text})" if infix else text


__all__ = ["code_lines", "expr_text", "parse", "to_text"]
