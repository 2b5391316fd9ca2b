"""The scalar operations that a language lacks, as functions of kernel code.

    store y[i] = log2(x[i])    ->    the same, and functions (log2_f32(a) { ... },)
    store y[i] = x[i] << 3     ->    store y[i] = shift_left(x[i], 3)

A function is straight-line code, with a few loops, over operations that the language has and other
functions. The code calls no function by name: a renderer calls those that the code has, and writes
all other operations in the language. `Native` says, as data, which operations a language has. A
partial operation of the language serves if an operand is a constant for which it is defined.

Before   code in the dtypes of its target
After    the same code, with a function for each operation that the language lacks
Cost:    linear in the code; each function is recorded once per process
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from rune import dtypes
from rune.errors import DtypeError
from rune.lowering.codegen.target import Native
from rune.lowering.kernel.expr import Cast, Const, Expr, Local, Op, const
from rune.lowering.kernel.nodes import Accumulate, Function, KernelCode, Store
from rune.lowering.kernel.rewrite import Body, expressions, map_exprs, updated, walk, walk_expr
from rune.lowering.legalize.recorder import Block, Recorded
from rune.lowering.scalar import floats
from rune.lowering.scalar.number import Ability, Number
from rune.lowering.scalar.table import PARTIAL_OF, ROWS


def attach_functions(code: KernelCode, native: Native) -> KernelCode:
    """The code with the functions that the language lacks, each after those that it calls.

    Errors: DtypeError for an operation that the language lacks and that has no expansion.
    """
    functions: dict[str, Function] = {}
    body = _plain(code.body, native)
    _attach(_roots(body), native, functions)
    return replace(code, body=body, functions=tuple(functions.values()))


def _plain(body: Body, native: Native) -> Body:
    """The statements with partial operations by constants, and casts to bool as comparisons."""

    def expr(part: Expr) -> Expr:
        match part:
            case Op(name=name, args=(_, Const() as by)) if _is_defined(name, by) and native.lacks(name, by.dtype):
                return replace(part, name=PARTIAL_OF[name])
            case Cast(arg=arg, dtype=dtypes.bool_) if native.lacks("ne", arg.dtype):
                return Op("ne", (arg, const(0, arg.dtype)), dtypes.bool_)
            case _:
                return part

    return map_exprs(expr, body)


def _is_defined(name: str, by: Const) -> bool:
    """Whether the partial operation is fully defined for this constant."""
    if name not in PARTIAL_OF or by.dtype not in dtypes.INTEGER:
        return False
    if name in ("shl", "shr"):
        return 0 <= int(by.value) < 8 * by.dtype.itemsize
    # Not -1, by which the quotient of the least integer overflows.
    return int(by.value) > 0


def _attach(roots: Iterable[Expr], native: Native, functions: dict[str, Function]) -> None:
    """Add what the expressions call to `functions`."""
    for root in roots:
        for part in walk_expr(root):
            function = _function(part, native)
            if function is not None and function.name not in functions:
                function = replace(function, body=_plain(function.body, native))
                _attach((*_roots(function.body), function.result), native, functions)
                functions[function.name] = function


def _roots(body: Body) -> Iterator[Expr]:
    """The expressions of all statements; for a reduction, the value that it stores."""
    for stmt in walk(body):
        if isinstance(stmt, Accumulate | Store):
            yield updated(stmt)
        else:
            yield from expressions(stmt)


def _function(expr: Expr, native: Native) -> Function | None:
    """The function that computes this node; None if the language has it."""
    match expr:
        case Cast(arg=arg, dtype=dtype) if (arg.dtype, dtype) not in native.conversions:
            return conversion(native.registers.get(arg.dtype, arg.dtype), dtype, native.loose)
        case Op(name=name, args=args) if native.lacks(name, args[-1].dtype):
            dtype = native.register(name, args[-1].dtype)
            function = expansion(name, dtype, native.abilities)
            if function is None:
                operation = f"{name} of {dtypes.short(dtype)}"
                raise DtypeError(f"legalize: cannot write {operation} (the language lacks it)")
            return function
        case _:
            return None


def function_name(operation: str, dtype: np.dtype) -> str:
    """The name of the function for an operation on operands of a dtype."""
    return f"{operation}_{dtypes.short(dtype)}"


@functools.cache
def expansion(name: str, dtype: np.dtype, abilities: frozenset[Ability] = frozenset()) -> Function | None:
    """The function for an operation on operands of a dtype; None if there is none.

    >>> log = expansion("log", dtypes.f32)
    >>> log.name, log.params[0].name, expansion("add", dtypes.f32)
    ('log_f32', 'a', None)
    """
    write = ROWS[name].expansion(dtype, abilities)
    return None if write is None else _recorded(name, dtype, ROWS[name].arity, write)


@functools.cache
def conversion(
    source: np.dtype, target: np.dtype, loose: frozenset[tuple[str, np.dtype]] = frozenset()
) -> Function | None:
    """The function that converts between two dtypes; None if every language does so itself.

    loose: the operations that a device does too loosely (see `Native`)

    >>> conversion(dtypes.f32, dtypes.i8).name, conversion(dtypes.i8, dtypes.f32)
    ('to_i8_f32', None)
    """
    name = f"to_{dtypes.short(target)}"
    if (name, source) in loose:
        return _recorded(name, source, 1, floats.widened if source == dtypes.f32 else floats.narrowed)
    if (source, target) == (dtypes.f64, dtypes.f16):
        return _recorded(name, source, 1, _to_f16)
    # Narrower floats are f32 here, or the language lacks them and says so.
    if source in (dtypes.f32, dtypes.f64) and target in dtypes.INTEGER:
        return _recorded(name, source, 1, functools.partial(floats.to_integer, dtype=target))
    return None


def conversion_name(source: np.dtype, target: np.dtype, native: Native) -> str:
    """The name that the function for a conversion would have."""
    return function_name(f"to_{dtypes.short(target)}", native.registers.get(source, source))


def _recorded(name: str, dtype: np.dtype, arity: int, write: Callable[..., Number]) -> Function:
    params = tuple(Local("abcdef"[k], dtype) for k in range(arity))
    block = Block()
    result = write(*(Recorded(block, p) for p in params))
    assert isinstance(result, Recorded)
    return Function(function_name(name, dtype), params, tuple(block.stmts), result.expr)


def _to_f16(x: Number) -> Number:
    """An f64 rounded once, although the device may convert by way of f32."""
    return floats.to_odd(x).convert(dtypes.f16)
