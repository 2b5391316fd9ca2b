"""Render kernel code as a WGSL module, with few bindings however many buffers the kernel takes.

    for i in n grid {                     let point = i32(...);
      var s: f32 = 0.0_f32                if (point >= args.points) { return; }
      for j in 8 serial {          ->     let i = point;
        s add= x[8*i + j]                 var s: f32 = 0.0f;
      }                                   for (var j = 0i; j < 8; j++) {
      store y[i] = s                        s = s + bitcast<f32>(memory0[args.at_x + 8 * i + j]);
    }                                     }
                                          memory1[args.at_y + i] = bitcast<u32>(s);

Binding 0 is a uniform block: `zero`, the number of grid points, the number of the launch's first
group, the offset of each parameter in its memory [elements], and the sizes. The other bindings are
memories, which are arrays of 32-bit words: parameters of any dtypes may share one, and elements
narrower than a word are parts of words. The words of a memory are atomic if the kernel writes
narrow elements there, since other threads may write the other parts of a word, or if it changes
elements atomically: atomic u32 serve for i32, too, because their sums have the same bits.

All GRID loops together count one number, which is folded over x and y of the dispatch; WORKGROUP
loops together count the threads of a group. Index arithmetic is 32-bit; the launch checks that all
`extents` allow it.

Invariant: the source means what interpret.py does, floats within docs/accuracy.md's ulps. Only an
Accumulate that says so may be contracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from rune import dtypes
from rune.dims import Size
from rune.lowering.codegen.braces import Statements, helpers
from rune.lowering.codegen.groups import Spread, spread
from rune.lowering.codegen.infix import ascii_name, bare
from rune.lowering.codegen.target import Native, every
from rune.lowering.codegen.wgsl.expr import NATIVE, Expressions, Place, require_stored
from rune.lowering.codegen.wgsl.helpers import FUNCTIONS, accessors
from rune.lowering.kernel.expr import Expr, Index, Op
from rune.lowering.kernel.nodes import Accumulate, AddressSpace, Alloc, Barrier, For, Function, KernelCode, Param, Store
from rune.lowering.kernel.rewrite import (
    buffers_read,
    buffers_written,
    expressions,
    size_names,
    updated,
    walk,
    walk_expr,
)
from rune.lowering.legalize.scalars import attach_functions
from rune.records import dataclass

THREADS = 64  # of a workgroup, where the kernel leaves the choice

# Keywords and reserved words of WGSL, and the built-in functions that expressions call.
_RESERVED = frozenset(
    """alias break case const const_assert continue continuing default diagnostic discard else
    enable false fn for if let loop override requires return struct switch true var while
    NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become
    cast catch class co_await co_return co_yield coherent column_major common compile
    compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype
    delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external
    fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements
    import inline instanceof interface layout lowp macro macro_rules match mediump meta mod module
    move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent
    noperspective null nullptr of operator package packoffset partial pass patch pixelfragment
    precise precision premerge priv protected pub public readonly ref regardless register
    reinterpret_cast require resource restrict self set shared sizeof smooth snorm static
    static_assert static_cast std subroutine super target template this thread_local throw trait
    try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying
    virtual volatile wgsl where with writeonly yield
    bool i32 u32 f32 f16 vec2 vec3 vec4 array atomic ptr sampler texture bitcast select abs clamp
    min max sign floor ceil trunc round sqrt fma countOneBits countLeadingZeros atomicLoad
    atomicStore atomicAnd atomicOr atomicAdd atomicMin atomicMax workgroupBarrier storageBarrier args point group thread
    group_id group_count thread_id""".split()
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """One kernel as a module, for one way in which its parameters share memories.

    `memories` has the number of each parameter's memory. The words of the uniform block are 0, the
    value of `points`, the number of the first group, an offset [elements] for each of `params`, and
    the values of `sizes`. A workgroup of `threads` threads computes one grid point if
    `is_point_per_group`; otherwise each of its threads computes one. At a launch, the values of all
    `extents` must be below 2³¹.
    """

    name: str
    text: str
    params: tuple[Param, ...]
    memories: tuple[int, ...]
    sizes: tuple[str, ...]
    points: Size
    threads: int
    is_point_per_group: bool
    extents: tuple[Size, ...]


def render(code: KernelCode, memories: Sequence[int] | None = None, loose: frozenset[str] = frozenset()) -> Rendered:
    """The module of a kernel whose parameters lie in these memories; by default each in its own.

    loose: as in Target.

    Errors: DtypeError "render: cannot use f64 in WGSL (no such type in the language)".
    """
    native = NATIVE.less(every(loose, [dtypes.f32]))
    complete = attach_functions(code, native)
    return _Renderer(complete, tuple(memories or range(len(code.params))), native).module()


@dataclass(slots=True)
class _Renderer(Statements[Expressions]):
    memories: tuple[int, ...]
    native: Native
    outside: list[str] = field(default_factory=list)  # shared arrays
    # Buffers that the kernel also reads: a compiler may replace a load by the value stored before.
    read_back: frozenset[str] = frozenset()
    atomic: frozenset[str] = frozenset()  # arrays with elements that are changed atomically

    def __post_init__(self) -> None:
        self.reserved_words, self.prefixes = _RESERVED, (*self.prefixes, "memory")
        self.read_back = buffers_read(self.code.body)
        self.atomic = frozenset(s.buffer for s in walk(self.code.body) if isinstance(s, Store) and s.atomic)
        self.expressions = Expressions(self.names, {}, frozenset(self.code.sizes), self.native)

    @property
    def language(self) -> str:
        return "wgsl"

    @property
    def index_type(self) -> str:
        return "i32"

    def result(self, expr: Expr) -> str:
        """A value that no further arithmetic uses, so it need not be pinned."""
        if isinstance(expr, Op) and expr.name != "bitcast":
            return bare(self.expressions.result(expr))
        return self.expr(expr)

    # --- the module --------------------------------------------------------------------------

    def module(self) -> Rendered:
        code = self.code
        self.places()
        for size in code.sizes:
            self.name(size)
        shape = spread(code, lambda points: THREADS)
        self.position(shape)
        self.body(shape.before)
        if shape.nest:
            self.threads(shape.nest)
        self.body(shape.innermost)
        name = f"run_{ascii_name(code.name)}"
        head = [
            f"@compute @workgroup_size({shape.threads})",
            f"fn {name}(@builtin(workgroup_id) group_id: vec3<u32>,",
            "    @builtin(num_workgroups) group_count: vec3<u32>,",
            "    @builtin(local_invocation_index) thread_id: u32) {",
        ]
        text = self.assemble("\n".join(head))
        launch = shape.points, shape.threads, bool(shape.nest), (shape.points, *_extents(code))
        return Rendered(name, text, code.params, self.memories, code.sizes, *launch)

    def places(self) -> None:
        """Record where each parameter lies."""
        written_buffers = buffers_written(self.code.body)
        atomic = {
            memory
            for p, memory in zip(self.code.params, self.memories, strict=True)
            if (p.dtype.itemsize < 4 and p.name in written_buffers) or p.name in self.atomic
        }
        for p, memory in zip(self.code.params, self.memories, strict=True):
            require_stored(p.dtype)
            place = Place(self.name(p.name), f"memory{memory}", memory in atomic)
            self.expressions.places[p.name] = place

    def assemble(self, head: str) -> str:
        """The module: bindings, helper functions, and the entry point, which begins with `head`."""
        function = "\n".join([head, *self.lines, "}"])
        fields = ["zero: u32", "points: u32", "first: u32"]
        fields += [f"at_{self.name(p.name)}: i32" for p in self.code.params]
        fields += [f"size_{self.name(s)}: i32" for s in self.code.sizes]
        block = "".join(f"  {field},\n" for field in fields)
        pieces = [f"struct Args {{\n{block}}}", self.bindings(), *self.outside]
        scalar_functions = {f"rune_{f.name}": _function(f, self.native) for f in self.code.functions}
        functions = [*self.accessors(function), *scalar_functions.values()]
        helper_functions = helpers("\n".join([function, *functions]), scalar_functions, FUNCTIONS.__getitem__)
        if "rune_zero" in helper_functions:
            function = function.replace(head, f"{head}\n  rune_zero = args.zero & group_id.x;", 1)
        texts = [text for name, text in FUNCTIONS.items() if name in helper_functions]
        return "\n\n".join([*pieces, *texts, *functions, function]) + "\n"

    def bindings(self) -> str:
        lines = ["@group(0) @binding(0) var<uniform> args: Args;"]
        for place in self.memory_places():
            number = int(place.memory.removeprefix("memory")) + 1
            word = "atomic<u32>" if place.is_atomic else "u32"
            lines.append(f"@group(0) @binding({number}) var<storage, read_write> {place.memory}: array<{word}>;")
        return "\n".join(lines)

    def memory_places(self) -> list[Place]:
        """One place in each memory."""
        params = (self.expressions.places[p.name] for p in self.code.params)
        by_memory = {place.memory: place for place in params}
        return [by_memory[name] for name in sorted(by_memory, key=lambda m: int(m[6:]))]

    def accessors(self, function: str) -> list[str]:
        """The functions that the text calls to access narrow elements."""
        known: dict[str, str] = {}
        for place in self.memory_places():
            for bits in (8, 16):
                known |= accessors(place.memory, bits, place.is_atomic)
        return [text for name, text in known.items() if f"{name}(" in function]

    def position(self, shape: Spread) -> None:
        """Bind the variables of the grid. A dispatch is rounded up: threads beyond it return."""
        self.emit("let group = args.first + group_id.x + group_id.y * group_count.x;")
        at = "group" if shape.nest else f"group * {THREADS}u + thread_id"
        self.emit(f"if ({at} >= args.points) {{ return; }}")
        if shape.grid:
            self.declare_index("point", f"i32({at})")
        self.unfold(shape.grid, "point")

    # --- statements --------------------------------------------------------------------------

    def var(self, name: str, init: Expr) -> None:
        Statements.var(self, name, init)
        self.expressions.sums.discard(name)

    def assign(self, name: str, value: Expr) -> None:
        Statements.assign(self, name, value)
        self.expressions.sums.discard(name)

    def let(self, name: str, value: Expr) -> None:
        Statements.let(self, name, value)
        if value.dtype in dtypes.UNSIGNED:
            self.expressions.unsigned_locals.add(name)

    def accumulate(self, stmt: Accumulate) -> None:
        # Unpinned within its own sum, in which each step needs the result of the one before.
        self.expressions.sums.discard(stmt.name)
        self.emit(f"{self.name(stmt.name)} = {self.result(updated(stmt))};")
        if stmt.value.dtype == dtypes.f32:
            self.expressions.sums.add(stmt.name)

    def barrier(self, stmt: Barrier) -> None:
        self.emit("workgroupBarrier();")
        self.emit("storageBarrier();")

    def store(self, stmt: Store) -> None:
        if stmt.atomic:
            self.emit(f"{self.expressions.changed(stmt)};")
            return
        value = updated(stmt)
        text = self.expr(value) if stmt.buffer in self.read_back else self.result(value)
        self.emit(f"{self.expressions.stored(stmt.buffer, stmt.index, text, value.dtype)};")

    def threads(self, nest: Sequence[For]) -> None:
        self.declare_index("thread", "i32(thread_id)")
        self.unfold(nest, "thread")

    def alloc(self, stmt: Alloc) -> None:
        name = self.name(stmt.name)
        # Truth values are words: NVIDIA's driver loses some elements of bool arrays of workgroups.
        dtype = dtypes.u32 if stmt.dtype == dtypes.bool_ else stmt.dtype
        element, is_atomic = self.expressions.register(dtype), stmt.name in self.atomic
        type_ = f"array<{f'atomic<{element}>' if is_atomic else element}, {stmt.size}>"
        self.expressions.places[stmt.name] = Place(name, is_atomic=is_atomic)
        if stmt.space is AddressSpace.SHARED:
            self.outside.append(f"var<workgroup> {name}: {type_};")
        else:
            self.emit(f"var {name}: {type_};")


def _function(function: Function, native: Native) -> str:
    return _Renderer(KernelCode(function.name, (), (), function.body), (), native).function(function)


def _extents(code: KernelCode) -> list[Size]:
    """The numbers of elements and iterations, and the index values, that depend on sizes alone."""
    sizes = {p.size for p in code.params}
    parts = (p for s in walk(code.body) for e in expressions(s) for p in walk_expr(e))
    sizes |= {part.dim for part in parts if isinstance(part, Index)}
    sizes |= {s.extent for s in walk(code.body) if isinstance(s, For)}
    known = frozenset(code.sizes)
    return sorted((s for s in sizes if size_names(s) <= known), key=str)
