"""Render kernel code as a SPIR-V module: one compute entry point, written as binary words.

    for i in n grid {              ->   t = group * 256 + thread;  if (t < n) { i = t; ... }
      store y[i] = x[i] * 2.0           y = load table[1];  y[i] = x[i] * 2.0
    }

The push constants are the device address of the launch's table, and the number of its first group.
The table has an address for each buffer in the order of the kernel's parameters, then an i64 for
each of its sizes. Grid points are numbered with the innermost loop fastest, and thread n computes
point n. In a kernel with a WORKGROUP nest, group n computes point n, and its threads are the points
of the nest. Groups are numbered along x, and then along y if there are more of them than one
dimension of a launch may have.

Invariant: the module means what interpret.py does, floats within the functions' ulps. No float
operation may be contracted unless an Accumulate or a Store says so.
Not done: VECTOR loops run in order, as lanes are threads here.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune import dims, dtypes
from rune.dims import Size, product
from rune.lowering.codegen.mesa import lanes, lines
from rune.lowering.codegen.mesa.body import SubgroupBody
from rune.lowering.codegen.runs import apart_from_barriers
from rune.lowering.codegen.spirv.binary.module import Module, width
from rune.lowering.codegen.spirv.binary.words import (
    ALIGNED,
    NO_CONTROL,
    BuiltIn,
    Capability,
    Decoration,
    ExecutionMode,
    Op,
    StorageClass,
    instruction,
)
from rune.lowering.codegen.spirv.binary.writer import Pointer
from rune.lowering.codegen.spirv.body import Body, Functions, write_function
from rune.lowering.codegen.spirv.index import SIGNED, UNSIGNED, index_kind
from rune.lowering.codegen.spirv.scalar import NATIVE, Value, loose_operations, resized
from rune.lowering.codegen.subgroups import subgroup_of
from rune.lowering.codegen.target import Native, Target
from rune.lowering.kernel.nodes import Access, Barrier, For, KernelCode, Param
from rune.lowering.kernel.rewrite import symbols_used, walk
from rune.lowering.kernel.work import counted_work
from rune.lowering.legalize.scalars import attach_functions
from rune.lowering.legalize.short_indices import compare_in_32_bits
from rune.lowering.legalize.zeros import hide_zeros
from rune.records import dataclass

ENTRY = "main"
_CONTROLS = {
    "denormals": (Capability.DenormPreserve, ExecutionMode.DenormPreserve),
    "specials": (Capability.SignedZeroInfNanPreserve, ExecutionMode.SignedZeroInfNanPreserve),
    "nearest": (Capability.RoundingModeRTE, ExecutionMode.RoundingModeRTE),
}


@dataclass(frozen=True, slots=True)
class SpirvKernel:
    """One kernel as a module. The table has the addresses of `params`, then `sizes`, as 8 bytes.

    `count` groups of `threads` threads run, at most `launch_groups` along one dimension; `work` is
    the work of all of them (kernel/work.py), if the target limits it.
    """

    name: str
    words: bytes
    entry: str
    params: tuple[Param, ...]
    sizes: tuple[str, ...]
    count: Size
    threads: int
    launch_groups: int
    work: Size


def render(code: KernelCode, target: Target) -> SpirvKernel:
    """The module of one kernel.

    Errors: DtypeError "render: cannot use f64 in SPIR-V on vulkan:0 (no such type ...)".
    """
    native = NATIVE.less(loose_operations(target))
    code, zero = hide_zeros(compare_in_32_bits(code))
    return _Renderer(attach_functions(code, native), target, native, zero).kernel()


class _Renderer:
    """One kernel under construction."""

    def __init__(self, code: KernelCode, target: Target, native: Native, zero: str | None):
        self.code, self.zero, self.target = code, zero, target
        self.shape, self.subgroup = lines.spread_for(code, target)
        self.module = Module(target)
        self.writer = lanes.writer_for(code, target)(self.module)
        self.functions = Functions(self.module, native, frozenset(f.name for f in code.functions))
        self.body = (Body if self.subgroup is None else SubgroupBody)(self.writer, self.functions)

    def kernel(self) -> SpirvKernel:
        """The module and how to launch it."""
        entry, label = self.module.new_id(), self.module.new_id()
        self.writer.block = label
        self.bind_table()
        self.write_points()
        self.finish(entry, label)
        code, shape = self.code, self.shape
        words = self.module.words(entry, ENTRY)
        description = (code.name, words, ENTRY, code.params, code.sizes)
        launch = shape.count, shape.threads, self.target.launch_groups, counted_work(code, self.target)
        return SpirvKernel(*description, *launch)

    def finish(self, entry: int, label: int) -> None:
        """The entry point around what was written, and the functions that it calls."""
        module = self.module
        void = module.type("void")
        signature = module.function_type(void)
        module.functions += [
            *instruction(Op.Function, void, entry, NO_CONTROL, signature),
            *instruction(Op.Label, label),
            *self.writer.variables,
            *self.writer.lines,
            *instruction(Op.Return),
            *instruction(Op.FunctionEnd),
        ]
        module.name(entry, self.code.name)
        for function in self.code.functions:
            write_function(self.functions, function)
        module.mode(entry, ExecutionMode.LocalSize, self.shape.threads, 1, 1)
        for name, bits in sorted(self.target.float_controls):
            if (Op.TypeFloat, (bits,)) in module.known:
                capability, mode = _CONTROLS[name]
                module.need(capability)
                module.mode(entry, mode, bits)

    # --- arguments ---------------------------------------------------------------------------

    def bind_table(self) -> None:
        """Load the addresses of all buffers, and the sizes: low words, where those are enough."""
        module, code, symbols = self.module, self.code, symbols_used(self.code)
        pointers = [self.buffer_type(p) for p in code.params]
        kinds = [index_kind(symbols.get(name, 0)) for name in code.sizes]
        members = (*pointers, *map(module.type, kinds))
        offsets = tuple(8 * k for k in range(len(members)))
        read_only = ((Decoration.NonWritable,),) * len(members)
        block = module.structure(members, offsets, read_only)
        table, self.first = self.push_constants(module.pointer(StorageClass.PhysicalStorageBuffer, block))
        for k, (p, type) in enumerate(zip(code.params, pointers, strict=True)):
            address = self.parameter_pointer(p, type, self.member(table, k, type, 8))
            space = StorageClass.PhysicalStorageBuffer
            self.body.arrays[p.name] = Pointer(address, self.stored(p), space, in_block=True)
        self.body.paired_buffers = apart_from_barriers(code, self.subgroup is not None)
        for k, (name, kind) in enumerate(zip(code.sizes, kinds, strict=True), len(pointers)):
            size_id = self.member(table, k, module.type(kind), width(kind) // 8)
            self.body.bind(name, self.body.value(UNSIGNED[kind], size_id))

    @property
    def has_barrier(self) -> bool:
        """Whether threads wait for what others have written."""
        return any(isinstance(s, Barrier) for s in walk(self.code.body))

    def stored(self, p: Param) -> str:
        """The type of an element in memory."""
        return "i8" if p.dtype == dtypes.bool_ else self.module.kind(p.dtype)

    def buffer_type(self, p: Param) -> int:
        """The type of a pointer to a parameter's elements, marked if they are only read."""
        kind = self.stored(p)
        if p.access is Access.READ:
            return self.module.buffer(kind, (Decoration.NonWritable,))
        # Coherent, so that a thread sees after a barrier what others wrote before it.
        return self.module.buffer(kind, (Decoration.Coherent,) if self.has_barrier else ())

    def push_constants(self, type: int) -> tuple[int, Value]:
        """The address of the table, and the first group's number: the low word, if it is enough."""
        module, kind = self.module, self.position_kind()
        members = type, module.type(kind)
        self.arguments = push = lines.push_constants(self.writer, members, self.target)
        module.name(push, "arguments")
        places = [module.pointer(StorageClass.PushConstant, member) for member in members]
        table, first = (
            self.writer.effect(Op.Load, m, self.writer.member(p, push, k))
            for k, (m, p) in enumerate(zip(members, places))
        )
        return table, self.body.value(UNSIGNED[kind], first)

    def member(self, table: int, number: int, type: int, size: int) -> int:
        """An entry of the table."""
        place = self.module.pointer(StorageClass.PhysicalStorageBuffer, type)
        return self.writer.effect(Op.Load, type, self.writer.member(place, table, number), ALIGNED, size)

    def parameter_pointer(self, p: Param, type: int, address: int) -> int:
        """A parameter's address, read from a variable: only on variables can SPIR-V say whether
        other addresses may point to the same memory."""
        variable = self.writer.variable(type)
        has_alias = any(p.name in pair for pair in self.code.aliases)
        decoration = Decoration.AliasedPointer if has_alias else Decoration.RestrictPointer
        self.module.decorate(variable, decoration)
        self.module.name(variable, p.name)
        self.writer.do(Op.Store, variable, address)
        return self.writer.effect(Op.Load, type, variable)

    # --- grid points -------------------------------------------------------------------------

    def write_points(self) -> None:
        """The body, for the grid point that is this thread or group, if there is one."""
        shape, thread, kind = self.shape, self.builtin(BuiltIn.LocalInvocationIndex), self.position_kind()
        if isinstance(self.writer, lanes.LaneWriter):
            lane = self.builtin(BuiltIn.SubgroupLocalInvocationId).id
            self.writer.truth = lines.truth(self.writer, lane, self.arguments)
        position = self.group(kind)
        if self.zero is not None:
            # n (n + 1) is even, so this is always 0, which optimisers do not know.
            word = self.component(BuiltIn.WorkgroupId, 0)
            self.body.bind(self.zero, word * (word + 1) & 1)
        if not shape.nest:
            position = position * shape.threads + resized(thread, kind)
            self.body.subgroup = subgroup_of(shape.grid, self.code.sizes, shape.threads, self.target)
        if self.body.subgroup is not None:
            self.module.need(Capability.GroupNonUniform)
            self.body.lane = self.builtin(BuiltIn.SubgroupLocalInvocationId)

        def write() -> None:
            self.unfold(shape.grid, position)
            self.body.body(shape.before)
            self.unfold(shape.nest, thread)
            self.body.body(shape.innermost)

        if self.subgroup is None:
            self.writer.either((position.as_dtype(SIGNED[kind]) < self.body.size(shape.points, kind)).id, write)
            return
        # There are as many threads as points, and a condition would hide from the driver that all
        # of them are at work.
        lane = self.builtin(BuiltIn.SubgroupLocalInvocationId)
        assert isinstance(self.body, SubgroupBody)
        self.body.begin(shape, self.subgroup, lane, self.arguments)
        write()

    @property
    def is_folded(self) -> bool:
        """Whether there may be more groups than one dimension of a launch takes."""
        return not dims.at_most(self.shape.count, self.target.launch_groups)

    def position_kind(self) -> str:
        """The narrowest type that holds every thread's number, also beyond the last grid point."""
        spare = self.target.launch_groups if self.is_folded else 1
        return index_kind(self.shape.points + spare * self.shape.threads)

    def group(self, kind: str) -> Value:
        """The number of this workgroup among those of all launches that run parts of the kernel."""
        x = self.first + resized(self.component(BuiltIn.WorkgroupId, 0), kind)
        if not self.is_folded:
            return x
        y = resized(self.component(BuiltIn.WorkgroupId, 1), kind)
        return y * resized(self.component(BuiltIn.NumWorkgroups, 0), kind) + x

    def component(self, builtin: BuiltIn, number: int) -> Value:
        """A component of a built-in vector."""
        module = self.module
        word = module.type("i32")
        vector = module.input(builtin, module.declare(Op.TypeVector, word, 3))
        place = self.writer.member(module.pointer(StorageClass.Input, word), vector, number)
        return self.body.value(dtypes.u32, self.writer.effect(Op.Load, word, place))

    def builtin(self, builtin: BuiltIn) -> Value:
        """A built-in number."""
        word = self.module.type("i32")
        return self.body.value(dtypes.u32, self.writer.effect(Op.Load, word, self.module.input(builtin, word)))

    def unfold(self, loops: Sequence[For], position: Value) -> None:
        """Bind the variables of a nest by the number of a point, the last varying fastest."""
        number = position
        for depth in reversed(range(len(loops))):
            kind = index_kind(product(x.extent for x in loops[: depth + 1]))
            if width(kind) < width(number.kind):
                number = resized(number, kind)
            value = number
            if depth:
                extent = self.body.size(loops[depth].extent, number.kind)
                number = value.emit(Op.UDiv, extent)
                value = value - number * extent
            self.body.bind(loops[depth].var, value)
