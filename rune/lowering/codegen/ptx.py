"""PTX text written directly, without a compiler: elementwise kernels and sums. The rest is refused.

    for i in n grid {                   mov.u32 %r1, %ctaid.x; ...    one thread for each point
      var s: f32 = 0.0_f32       ->     mov.f32 %f1, 0f00000000;
      for j in 8 serial {               L1: setp.ge.s64 %p2, %d4, %d5; @%p2 bra L2;
        s add= x[8*i + j]               ... add.rn.f32 %f1, %f1, %f2; bra L1;
      }                                 L2: st.global.f32 [%d9], %f1;
      store y[i] = s
    }

A second way to the device beside CUDA C: it needs no NVRTC, only the driver, which assembles it.
Kernels take their arguments as those in CUDA C do, from a table of words (cuda_c.py), and are
launched likewise. Every value has a register of its own; the assembler allocates them. Indices are
64-bit. Arithmetic is rounded explicitly (.rn), so that nothing is contracted.

Not here: If, scratch, barriers, workgroups, 8- and 16-bit numbers, integer division, and functions
that PTX only approximates (exp, sin). Each is a DtypeError or CompileError that names it.
Source: PTX ISA 7.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rune import dtypes
from rune.dims import Size, product
from rune.errors import CompileError
from rune.lowering.codegen.cstyle import Rendered
from rune.lowering.codegen.infix import ascii_name
from rune.lowering.codegen.ptx_expr import Values, type_of
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import (
    Access,
    Accumulate,
    Alloc,
    Assign,
    Barrier,
    For,
    If,
    KernelCode,
    Kind,
    Let,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.rewrite import Body, perfect_nest

HEAD = ".version 7.0\n.target sm_70\n.address_size 64"


def render(code: KernelCode) -> Rendered:
    """One kernel as a PTX entry.

    Errors: CompileError "ptx: cannot render softmax (it has an alloc; ...)"; DtypeError for an
    operation or dtype that is not here.
    """
    return _Renderer(code).kernel()


def assemble(kernels: Sequence[Rendered]) -> str:
    """A whole module."""
    return "\n\n".join([HEAD, *(k.text for k in kernels)]) + "\n"


@dataclass(slots=True)
class _Renderer:
    code: KernelCode
    values: Values = field(init=False)
    labels: int = 0

    def __post_init__(self) -> None:
        aliased = {name for pair in self.code.aliases for name in pair}
        read = {p.name for p in self.code.params if p.access is Access.READ}
        self.values = Values(self.code.name, frozenset(read - aliased))

    def emit(self, line: str) -> None:
        self.values.emit(line)

    def kernel(self) -> Rendered:
        code, name = self.code, f"run_{ascii_name(self.code.name)}"
        self.arguments()
        loops, body = perfect_nest(code.body, Kind.GRID)
        self.position(loops)
        self.body(body)
        self.emit("ret;")
        lines = "\n".join([*self.values.declarations(), *self.values.lines])
        text = f".visible .entry {name}(.param .u64 table)\n{{\n{lines}\n}}"
        grid = (product(loop.extent for loop in loops),) if loops else ()
        used = frozenset(p.dtype for p in code.params)
        return Rendered(name, text, code.params, code.sizes, grid, (), used, 0)

    def arguments(self) -> None:
        """Addresses and sizes, from the table."""
        values, count = self.values, len(self.code.params)
        table = values.new("d")
        self.emit(f"ld.param.u64 {table}, [table];")
        self.emit(f"cvta.to.global.u64 {table}, {table};")
        for number, p in enumerate(self.code.params):
            address = values.bases[p.name] = values.new("d")
            self.emit(f"ld.global.nc.u64 {address}, [{table}+{8 * number}];")
            self.emit(f"cvta.to.global.u64 {address}, {address};")
        for number, name in enumerate(self.code.sizes, count):
            size = values.names[name] = (values.new("d"), dtypes.i64)
            self.emit(f"ld.global.nc.u64 {size[0]}, [{table}+{8 * number}];")

    def position(self, loops: Sequence[For]) -> None:
        """Bind the variables of the grid; threads beyond it leave."""
        if not loops:
            return
        values, block, thread = self.values, self.values.new("r"), self.values.new("r")
        at, wide = values.new("d"), values.new("d")
        self.emit(f"mov.u32 {block}, %ctaid.x;")
        self.emit(f"mov.u32 {thread}, %ntid.x;")
        self.emit(f"mul.wide.u32 {at}, {block}, {thread};")
        self.emit(f"mov.u32 {thread}, %tid.x;")
        self.emit(f"cvt.u64.u32 {wide}, {thread};")
        self.emit(f"add.s64 {at}, {at}, {wide};")
        total, outside = values.size(product(loop.extent for loop in loops)), values.new("p")
        self.emit(f"setp.ge.s64 {outside}, {at}, {total};")
        self.emit(f"@{outside} ret;")
        for number, loop in enumerate(loops):
            self.unfold(loop, at, product(x.extent for x in loops[number + 1 :]), number)

    def unfold(self, loop: For, at: str, inner: Size, number: int) -> None:
        """One variable from the position: divided by what varies faster, modulo its extent."""
        values, var = self.values, at
        if inner != 1:
            var = values.do("div.s64", "d", var, values.size(inner))
        if number:
            var = values.do("rem.s64", "d", var, values.size(loop.extent))
        values.names[loop.var] = (var, dtypes.i64)

    def body(self, body: Body) -> None:
        for stmt in body:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        values = self.values
        match stmt:
            case Let(name=name, value=value) | Var(name=name, init=value):
                # A Var needs a register that nothing else reads.
                values.names[name] = (values.copied(values.expr(value), value.dtype), value.dtype)
            case Assign(name=name, value=value):
                values.move(values.names[name][0], values.expr(value), value.dtype)
            case Accumulate(name=name):
                old, dtype = values.names[name]
                values.move(old, values.combined(stmt, old), dtype)
            case Store():
                self.store(stmt)
            case For(kind=kind) if kind is not Kind.WORKGROUP:
                self.loop(stmt)
            case For() | If() | Alloc() | Barrier():
                what = "a workgroup" if isinstance(stmt, For) else type(stmt).__name__.lower()
                raise CompileError(
                    f"ptx: cannot render {self.code.name} (it has {what}; "
                    "elementwise kernels and sums only)",
                    hint="CUDA C renders every kernel",
                )

    def store(self, stmt: Store) -> None:
        values, dtype = self.values, stmt.value.dtype
        if stmt.combine is None:
            value = values.expr(stmt.value)
        else:
            old = values.expr(Load(stmt.buffer, (stmt.index,), dtype))
            value = values.combined(stmt, old)
        address = values.address(stmt.buffer, stmt.index, dtype)
        if dtype == dtypes.bool_:
            byte = values.new("r")
            self.emit(f"selp.u32 {byte}, 1, 0, {value};")
            self.emit(f"st.global.u8 [{address}], {byte};")
        else:
            self.emit(f"st.global.{type_of(dtype)} [{address}], {value};")

    def loop(self, loop: For) -> None:
        values = self.values
        self.labels += 1
        start, end = f"L{self.labels}", f"E{self.labels}"
        var, done = values.new("d"), values.new("p")
        values.names[loop.var] = (var, dtypes.i64)
        extent = values.size(loop.extent)
        self.emit(f"mov.b64 {var}, 0;")
        self.emit(f"{start}:")
        self.emit(f"setp.ge.s64 {done}, {var}, {extent};")
        self.emit(f"@{done} bra {end};")
        self.body(loop.body)
        self.emit(f"add.s64 {var}, {var}, 1;")
        self.emit(f"bra {start};")
        self.emit(f"{end}:")
