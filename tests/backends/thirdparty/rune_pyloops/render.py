"""Render kernel code as a Python function.

    code scale(x: read f32[n], y: write f32[n]) sizes n {       def scale(x, y, n):
      for i in n grid {                                           c0 = _f32(2.0)
        store y[i] = 2.0_f32 * x[i]                       ->      for i in range(n):
      }                                                             y[i] = c0 * x[i]
    }

Buffers are flat NumPy arrays, values NumPy scalars, indices Python integers: Python's // and %
are the ones of index expressions. What is no operator of Python is a helper function whose name
begins with an underscore; names of the kernel that Python or a helper claims get one at the end.
Threads of a workgroup run one after the other, so a kernel with barriers is refused.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rune import dtypes
from rune.dims import Size
from rune.errors import CompileError
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.nodes import Accumulate, Alloc, Assign, Barrier, For, If, KernelCode, Let, Stmt, Store, Var
from rune.lowering.kernel.rewrite import all_names, rename, rename_size, symbols_used
from rune.lowering.kernel.scalar import SCALAR_MEANING, convert

# What NumPy's scalars do as kernel code wants it; the rest goes through rune's table of meanings.
INFIX = {"add": "+", "sub": "-", "mul": "*", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _from_bits(dtype: np.dtype, bits: str) -> np.generic:
    return np.frombuffer(bytes.fromhex(bits), dtype)[0]


# The names that rendered functions can use, besides their arguments.
NAMESPACE: dict[str, Any] = {
    **{f"_{name}": function for name, function in SCALAR_MEANING.items()},
    **{f"_{short}": dtype for short, dtype in dtypes.FROM_SHORT.items()},
    "_bits": _from_bits,
    "_convert": convert,
    "_empty": np.empty,
    "_int64": np.int64,
    "range": range,
    "int": int,
}


def render(code: KernelCode) -> str:
    """The function, named as the kernel; it takes the buffers, then the sizes.

    Errors: CompileError for a kernel with barriers.
    """
    code = _python_names(code)
    renderer = _Renderer(frozenset(symbols_used(code)))
    renderer.body(code.body)
    arguments = ", ".join([*(p.name for p in code.params), *code.sizes])
    constants = [
        f"  {name} = _bits(_{dtypes.short(c.dtype)}, {c.bits.hex()!r})  # {c.value}"
        for c, name in renderer.constants.items()
    ]
    lines = renderer.lines or ["  pass"]
    return "\n".join([f"def {code.name}({arguments}):", *constants, *lines])


def _python_names(code: KernelCode) -> KernelCode:
    """The code without names that mean something else in Python."""
    names = {name: f"{name}_" for name in all_names(code) if _is_taken(name)}
    if not names:
        return code
    params = tuple(replace(p, name=names.get(p.name, p.name)) for p in code.params)
    sizes = tuple(names.get(size, size) for size in code.sizes)
    return replace(code, params=params, sizes=sizes, body=rename(code.body, names))


def _is_taken(name: str) -> bool:
    return keyword.iskeyword(name) or name in NAMESPACE or name.startswith("_")


@dataclass(slots=True)
class _Renderer:
    symbols: frozenset[str]  # names that an index mentions
    lines: list[str] = field(default_factory=list)
    constants: dict[Const, str] = field(default_factory=dict)
    integers: dict[str, str] = field(default_factory=dict)  # of a Let: its name as a Python int
    depth: int = 1

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    # --- statements ------------------------------------------------------------------------

    def body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.stmt(stmt)

    def block(self, head: str, body: tuple[Stmt, ...]) -> None:
        self.emit(head)
        self.depth += 1
        self.body(body)
        if not body:
            self.emit("pass")
        self.depth -= 1

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let(name=name, value=value):
                self.emit(f"{name} = {self.expr(value)}")
                if name in self.symbols:  # an i32 would overflow inside an index
                    self.integers[name] = f"_at_{name}"
                    self.emit(f"_at_{name} = int({name})")
            case Var(name=name, init=value) | Assign(name=name, value=value):
                self.emit(f"{name} = {self.expr(value)}")
            case Accumulate(name=name, combine=combine, value=value):
                self.emit(f"{name} = {_operation(combine, [name, self.expr(value)])}")
            case Store(buffer=buffer, index=index, value=value, combine=combine):
                element, new = f"{buffer}[{self.size(index)}]", self.expr(value)
                both = new if combine is None else _operation(combine, [element, new])
                self.emit(f"{element} = {both}")
            case For(var=var, extent=extent, body=body):
                self.block(f"for {var} in range({self.size(extent)}):", body)
            case If(condition=condition, body=body, orelse=orelse):
                self.block(f"if {self.expr(condition)}:", body)
                if orelse:
                    self.block("else:", orelse)
            case Alloc(name=name, dtype=dtype, size=size):
                self.emit(f"{name} = _empty({size}, _{dtypes.short(dtype)})")
            case Barrier():
                raise CompileError("render: cannot wait at a barrier (threads are loops here)")

    # --- expressions -----------------------------------------------------------------------

    def size(self, x: Size) -> str:
        return str(rename_size(x, self.integers))

    def expr(self, expr: Expr) -> str:
        match expr:
            case Const():
                return self.constants.setdefault(expr, f"_c{len(self.constants)}")
            case Local(name=name):
                return name
            case Index(dim=dim):
                return f"_int64({self.size(dim)})"
            case Load(buffer=buffer, indices=(index,), guard=guard, dtype=dtype):
                element = f"{buffer}[{self.size(index)}]"
                if guard is None:
                    return element
                zero = self.expr(Const(bytes(dtype.itemsize), dtype))
                return f"({element} if {self.expr(guard)} else {zero})"
            case Op(name="bitcast", args=(arg,), dtype=dtype):
                return f"_bitcast({self.expr(arg)}, _{dtypes.short(dtype)})[()]"
            case Op(name=name, args=args):
                return _operation(name, [self.expr(a) for a in args])
            case Cast(arg=arg, dtype=dtype):
                return f"_convert({self.expr(arg)}, _{dtypes.short(dtype)})"
            case Load():
                raise CompileError(f"render: cannot load {expr.buffer} (one index, flat)")


def _operation(name: str, args: list[str]) -> str:
    if name in INFIX:
        return f"({f' {INFIX[name]} '.join(args)})"
    return f"_{name}({', '.join(args)})"
