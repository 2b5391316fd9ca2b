"""PTX text written directly, without a compiler: elementwise kernels and sums. The rest is refused.

    for i in n grid {                   mov.u32 %r0, %ctaid.x; ...    one thread for each point
      var s: f32 = 0.0_f32       ->     mov.f32 %f0, 0f00000000;
      for j in 8 serial {               L1: setp.ge.s64 %p0, %d3, 8; @%p0 bra E1;
        s add= x[8*i + j]               ... add.rn.f32 %f0, %f0, %f1; bra L1;
      }                                 E1: st.global.f32 [%d0], %f0;
      store y[i] = s
    }

A second way to the device beside CUDA C: it needs no NVRTC, only the driver, which assembles it.
Kernels take their arguments as those in CUDA C do, from a table of words (cuda_c.py), and are
launched likewise. Indices are 64-bit. Arithmetic is rounded explicitly (.rn), so that nothing is
contracted. Registers are those of registers.py: no more than the device has, the rest in .local
memory.

Not here: If, scratch, barriers, workgroups, 8- and 16-bit numbers, integer division, and functions
that PTX only approximates (exp, sin). Each is a DtypeError or CompileError that names it.
Source: PTX ISA 7.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rune import dtypes
from rune.dims import Size, product
from rune.errors import CompileError
from rune.lowering.codegen.cstyle import Rendered
from rune.lowering.codegen.infix import ascii_name
from rune.lowering.codegen.ptx_expr import DECLARED, LONG, PREDICATE, WORD, Values, type_of
from rune.lowering.codegen.registers import Allocation, Step, Value, allocate
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
# Of a thread: 255 registers of 32 bits, of which the assembler wants some for itself; 7 predicates.
LIMITS = {"words": 255 - 7, "predicates": 7}


def render(code: KernelCode, limits: Mapping[str, int] = LIMITS) -> Rendered:
    """One kernel as a PTX entry. `limits`: registers of 32 bits ("words"), and "predicates".

    Errors: CompileError "ptx: cannot render softmax (it has an alloc; ...)"; DtypeError for an
    operation or dtype that is not here.
    """
    return _Renderer(code).kernel(limits)


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

    def kernel(self, limits: Mapping[str, int]) -> Rendered:
        code, name = self.code, f"run_{ascii_name(self.code.name)}"
        self.arguments()
        loops, body = perfect_nest(code.body, Kind.GRID)
        self.position(loops)
        self.body(body)
        self.values.emit("ret;")
        lines = "\n".join(_text(allocate(self.values.steps, limits)))
        text = f".visible .entry {name}(.param .u64 table)\n{{\n{lines}\n}}"
        grid = (product(loop.extent for loop in loops),) if loops else ()
        used = frozenset(p.dtype for p in code.params)
        return Rendered(name, text, code.params, code.sizes, grid, (), used, 0)

    def arguments(self) -> None:
        """Addresses and sizes, from the table."""
        values, count = self.values, len(self.code.params)
        table = values.do("ld.param.u64", LONG, "[table]")
        table = values.do("cvta.to.global.u64", LONG, table)
        for number, p in enumerate(self.code.params):
            address = self.word(table, number)
            values.bases[p.name] = values.do("cvta.to.global.u64", LONG, address)
        for number, name in enumerate(self.code.sizes, count):
            values.bind(name, self.word(table, number), dtypes.i64)

    def word(self, table: Value, number: int) -> Value:
        made = self.values.new(LONG)
        self.values.emit(f"ld.global.nc.u64 {{0}}, [{{1}}+{8 * number}];", (made,), (table,))
        return made

    def position(self, loops: Sequence[For]) -> None:
        """Bind the variables of the grid; threads beyond it leave."""
        if not loops:
            return
        do = self.values.do
        block, threads = do("mov.u32", WORD, "%ctaid.x"), do("mov.u32", WORD, "%ntid.x")
        first = do("mul.wide.u32", LONG, block, threads)
        thread = do("cvt.u64.u32", LONG, do("mov.u32", WORD, "%tid.x"))
        at = do("add.s64", LONG, first, thread)
        total = self.values.size(product(loop.extent for loop in loops))
        outside = do("setp.ge.s64", PREDICATE, at, total)
        self.values.emit("@{0} ret;", reads=(outside,))
        for number, loop in enumerate(loops):
            self.unfold(loop, at, product(x.extent for x in loops[number + 1 :]), number)

    def unfold(self, loop: For, at: Value, inner: Size, number: int) -> None:
        """One variable from the position: divided by what varies faster, modulo its extent."""
        values, var = self.values, at
        if inner != 1:
            var = values.do("div.s64", LONG, var, values.size(inner))
        if number:
            var = values.do("rem.s64", LONG, var, values.size(loop.extent))
        values.bind(loop.var, var, dtypes.i64)

    def body(self, body: Body) -> None:
        for stmt in body:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        values = self.values
        match stmt:
            case Let(name=name, value=value) | Var(name=name, init=value):
                # A Var needs a value that nothing else reads.
                values.bind(name, values.copied(values.expr(value), value.dtype), value.dtype)
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
        type_ = type_of(dtype)
        if dtype == dtypes.bool_:
            type_, value = "u8", values.do("selp.u32", WORD, "1", "0", value)
        values.emit(f"st.global.{type_} [{{0}}], {{1}};", reads=(address, value))

    def loop(self, loop: For) -> None:
        values = self.values
        self.labels += 1
        start, end = f"L{self.labels}", f"E{self.labels}"
        extent = values.size(loop.extent)
        var = values.do("mov.b64", LONG, "0")
        values.bind(loop.var, var, dtypes.i64)
        values.emit(f"{start}:", nests=1)
        done = values.do("setp.ge.s64", PREDICATE, var, extent)
        values.emit(f"@{{0}} bra {end};", reads=(done,))
        self.body(loop.body)
        values.compute(var, "add.s64", var, "1")
        values.emit(f"bra {start};", nests=-1)
        values.emit(f"{end}:")


# --- text -------------------------------------------------------------------------------------


def _text(allocation: Allocation) -> list[str]:
    """The lines of a body: what it declares, and its instructions; labels stand at the margin."""
    used, places = allocation.used, allocation.places
    lines = [f"  .reg .{DECLARED[kind]} %{kind.name}<{n}>;" for kind, n in used.items()]
    for kind, n in places.items():
        lines.append(f"  .local .align {kind.bytes} .b8 local_{kind.name}[{kind.bytes * n}];")
    for step in allocation.steps:
        line = _line(step, allocation.registers)
        lines.append(line if line.endswith(":") else f"  {line}")
    return lines


def _line(step: Step, registers: Mapping[Value, int]) -> str:
    names = (f"%{v.kind.name}{registers[v]}" for v in (*step.writes, *step.reads))
    return step.code.format(*names, *step.numbers)
