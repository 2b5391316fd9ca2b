"""Localize: from a program on arrays that a mesh has cut to the program that each device runs.

Every value is the block that one device has, with the layout of the array that it is a block of.
Where an equation holds a shard_map, its operands are laid out as it asks and its body runs in
place. An elementwise operation runs on blocks of one layout. Before anything else the devices
gather what they have, and each computes everything, which is always right.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from rune.core.evaluate import eval_program
from rune.core.higher import called_once, subprograms
from rune.core.interpreter import Axis, Interpreter, current, type_of, use
from rune.core.lower import Convert, Parts, Scalar
from rune.core.manual import Manual
from rune.core.primitive import Primitive
from rune.core.program import Program, map_programs
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.sharding import PartitionSpec
from rune.transforms.programs.call_rules import Params
from rune.transforms.programs.memo import per_program
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.primitive import Specs, shard_map_primitive
from rune.transforms.sharding.reshard import Layout, layout_of, resharded, spec_of, uncut
from rune.transforms.tracers import ValueTracer


class Block(ValueTracer):
    """What one device has of an array; the type is the array's."""

    __slots__ = ("array_type", "layout", "value")

    def __init__(self, interpreter: Localize, value: Value, array_type: ArrayType, layout: Layout):
        self.interpreter, self.value, self.frame = interpreter, value, None
        self.array_type, self.layout = array_type, layout

    @property
    def type(self) -> ArrayType:
        """The array's type."""
        return self.array_type


class Localize(Interpreter):
    """Binds in its parent, inside the axes of the mesh, what a device does with its blocks."""

    __slots__ = ("region",)

    def __init__(self, parent: Interpreter, region: Region):
        super().__init__(parent)
        self.region = region

    def block(self, value: Value, type: ArrayType, spec: PartitionSpec) -> Block:
        """The tracer of a block."""
        return Block(self, value, type, layout_of(spec, type.ndim))

    def split(self, value: Value) -> tuple[Value, Layout]:
        """What the device has of a value, and the value's layout."""
        if isinstance(value, Block) and value.interpreter is self:
            return value.value, value.layout
        return value, uncut(type_of(value).ndim)

    def at(self, value: Value, target: Layout) -> Value:
        """What the device has of a value by another layout."""
        block, layout = self.split(value)
        return resharded(block, self.region.mesh, layout, target)

    def everything(self, value: Value) -> Value:
        """All of a value, on every device."""
        return self.at(value, uncut(type_of(value).ndim))

    def process(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Any:
        """What the device does for its part of the results."""
        assert self.parent is not None
        if primitive is shard_map_primitive:
            with use(self.parent):
                return self._shard_map(args, **params)
        program = called_once(primitive, args, params)
        if program is not None:
            return eval_program(program, args)
        with use(self.parent):
            if isinstance(primitive.lower, Scalar | Convert | Parts):
                return self._elementwise(primitive, args, params)
            return self._whole(primitive, args, params)

    def _shard_map(
        self, args: Sequence[Value], program: Program, region: Region, in_specs: Specs, out_specs: Specs
    ) -> list[Block]:
        _require_same(region, self.region)
        operands = [self.at(a, layout_of(s, type_of(a).ndim)) for a, s in zip(args, in_specs, strict=True)]
        outs = eval_program(program, operands)
        return [self.block(o, region.whole(type_of(o), s), s) for o, s in zip(outs, out_specs, strict=True)]

    def _elementwise(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Block:
        types = [type_of(a) for a in args]
        result = primitive.type_rule(*types, **params)
        layouts = [layout for _, layout in map(self.split, args) if len(layout) == result.ndim]
        layout = max(layouts, key=lambda names: sum(map(len, names)))
        operands = [self.at(a, layout if t.ndim == result.ndim else ()) for a, t in zip(args, types, strict=True)]
        return Block(self, primitive(*operands, **params), result, layout)

    def _whole(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Block | list[Block]:
        outs = primitive(*map(self.everything, args), **_with_local_programs(params, self.region))
        results = outs if primitive.multiple_results else [outs]
        blocks = [self.block(o, type_of(o), PartitionSpec()) for o in results]
        return blocks if primitive.multiple_results else blocks[0]


def _require_same(region: Region, other: Region) -> None:
    """Errors: ArgumentError for programs of two meshes."""
    if region.mesh != other.mesh:
        raise ArgumentError(f"jit: cannot run on two meshes in one program ({region.mesh} and {other.mesh})")


def _with_local_programs(params: Mapping[str, object], region: Region) -> Mapping[str, object]:
    """The parameters, with programs that each device runs on whole values."""
    return map_programs(params, lambda p: _on_everything(p, region) if has_regions(p) else p)


def _on_everything(program: Program, region: Region) -> Program:
    copies = (PartitionSpec(),)
    return localized(program, region, copies * len(program.inputs), copies * len(program.outputs))[0]


@per_program
def localized(
    program: Program, region: Region, in_specs: Specs, out_specs: tuple[PartitionSpec | None, ...]
) -> tuple[Program, Specs]:
    """What each device runs on its blocks of the inputs, and how the results are cut.

    out_specs: how they have to be cut; None where any way will do.
    """
    layouts: list[Layout] = []
    types = [region.block(t, spec) for t, spec in zip(program.input_types, in_specs, strict=True)]

    def run(*values: Value) -> list[Value]:
        local = Localize(current(), region)
        blocks = [local.block(v, t, s) for v, t, s in zip(values, program.input_types, in_specs, strict=True)]
        outs = local.trace(eval_program, program, blocks)
        layouts.extend(
            local.split(o)[1] if s is None else layout_of(s, type_of(o).ndim)
            for o, s in zip(outs, out_specs, strict=True)
        )
        return [local.at(o, layout) for o, layout in zip(outs, layouts, strict=True)]

    axes: dict[Hashable, Axis] = {name: Axis(size) for name, size in region.mesh.shape.items()}
    staged = Manual(current(), axes).trace_program(run, types, program.name)
    return staged.closed(), tuple(map(spec_of, layouts))


@per_program
def regions_within(program: Program) -> tuple[Region, ...]:
    """The regions of a program, those of programs within it included; each once."""
    regions: dict[Region, None] = {}
    for equation in program.equations:
        if equation.primitive is shard_map_primitive:
            regions[equation.params["region"]] = None
        for inner in subprograms(equation):
            regions.update(dict.fromkeys(regions_within(inner)))
    return tuple(regions)


def has_regions(program: Program) -> bool:
    """Whether any part of the program is of a shard_map."""
    return bool(regions_within(program))
