"""The statements of a kernel whose vector may be scaled."""

from __future__ import annotations

from dataclasses import field

from rune.lowering.codegen.llvm.body import Body
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.llvm.tiny.scaling import lower_sum, scaled
from rune.lowering.codegen.llvm.tiny.vectors import TinyVector, tiny_vector
from rune.lowering.codegen.llvm.underflow.body import UnderflowBody
from rune.lowering.codegen.llvm.values import Env
from rune.lowering.codegen.machine import Machine
from rune.lowering.kernel.nodes import For, KernelCode
from rune.lowering.lanes.layout import Layout
from rune.records import dataclass, replace


@dataclass(slots=True)
class ScalingBody(UnderflowBody):
    """Writes a kernel that multiplies by a vector. `tiny`: whether that is scaled."""

    vector: TinyVector = field(kw_only=True)
    tiny: Value = field(kw_only=True)

    def loop(self, loop: For) -> None:
        """A loop over its whole extent; a sum that it completes is scaled back."""
        # Not `super()`, which a dataclass with slots has made another class of.
        Body.loop(self, loop)
        if self.vector.loop == id(loop):
            lower_sum(self.writer, self.tiny, self.env.slots[self.vector.total])


def body_of(writer: Writer, machine: Machine, env: Env, code: KernelCode, lanes: Layout) -> Body:
    """The writer of a kernel's statements, by a longer way if denormal numbers slow it down."""
    if not machine.waits_for_denormals:
        return Body(writer, machine.has_cheap_masks, env, lanes.lanes, lanes.loops)
    vector = tiny_vector(code) if lanes.transposition is None else None
    if vector is None:
        return UnderflowBody(writer, machine.has_cheap_masks, env, lanes.lanes, lanes.loops)
    name = vector.param.name
    tiny, memory = scaled(writer, vector, env.memory[name], machine.vector_bytes)
    env = replace(env, memory={**env.memory, name: memory})
    return ScalingBody(writer, machine.has_cheap_masks, env, lanes.lanes, lanes.loops, vector=vector, tiny=tiny)
