"""Localize: from a program on arrays split over a mesh to the program that each device runs.

Every value is the block of one device, with the layout of the array that it belongs to. The
operands of a shard_map are laid out by its specs, and its body runs in place. Other operations run
on blocks along the axes that operands and results share (letters.py), in loops and branches too. If
a block is needed in another layout, it is computed from parts of the operands, or exchanged.
Operands that share no axis are gathered, and each device computes everything, which is always
right.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rune.core.evaluate import eval_program
from rune.core.higher import Runs, called_once, calls, subprograms
from rune.core.interpreter import Axis, current, type_of, use
from rune.core.lower import Exchange, Host
from rune.core.manual import Manual
from rune.core.memo import per_program
from rune.core.primitive import Effect, Primitive
from rune.core.program import Atom, Equation, Program, Var
from rune.core.staging import trace_program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.lowering.meetings import OnceCall
from rune.ops.branch import branch
from rune.ops.loop import loop
from rune.sharding import Mesh, NamedSharding, PartitionSpec
from rune.transforms.inspect.layouts import inspect_sharding
from rune.transforms.programs.call_rules import Params
from rune.transforms.programs.variation import untyped
from rune.transforms.sharding.block import Block, Computed, Layouts
from rune.transforms.sharding.blocks import Region, Specs
from rune.transforms.sharding.borders import bordered
from rune.transforms.sharding.branches import local_branch
from rune.transforms.sharding.constraint import CONSTRAINTS, argument_layout
from rune.transforms.sharding.cuts import cuts_of
from rune.transforms.sharding.letters import letters_beside_indices, letters_of
from rune.transforms.sharding.loops import local_loop
from rune.transforms.sharding.reshard import Layout, constrained_layout, finer, layout_of, spec_of
from rune.transforms.sharding.running import running
from rune.transforms.sharding.scattered_sums import economical

ORDERED = Effect.ORDERED


class Localize(Layouts):
    """Binds in its parent, inside the axes of the mesh, the operations of a device on blocks."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Any:
        """The device's work for its part of the results."""
        assert self.parent is not None
        body = body_of(primitive, args, params)
        if body is not None:
            with use(self.parent):
                return self._each_device(args, body, params["region"], params["in_specs"], params["out_specs"])
        if primitive in CONSTRAINTS:
            with use(self.parent):
                return self._laid_out(args[0], params["sharding"])
        if primitive is loop:
            with use(self.parent):
                return local_loop(self, args, **params)
        if primitive is branch:
            with use(self.parent):
                return local_branch(self, args, **params)
        if primitive is inspect_sharding:
            layout = self.layout(args[0])
            whole_array = {
                "sharding": NamedSharding(self.region.mesh, spec_of(layout)),
                "shape": type_of(args[0]).shape,
            }
            with use(self.parent):
                return inspect_sharding(self.at(args[0], layout), **{**params, **whole_array})
        # A callback runs once on all of the data, not once for each device.
        if isinstance(primitive.lower, Host):
            with use(self.parent):
                return self._undivided(primitive, args, {**params, "call": OnceCall(params["call"]), "effect": ORDERED})
        if primitive.lower is None and primitive.expand is not None:
            # Not in the parent: the operations of the expansion come back here, to be split one by
            # one.
            return primitive.expand(*args, **params)
        program = called_once(primitive, args, params)
        if program is not None:
            return eval_program(program, args)
        with use(self.parent):
            block = bordered(self, primitive, args, params)
            block = running(self, primitive, args, params) if block is None else block
            if block is not None:
                return block
            rule = letters_beside_indices if self.region.is_watched else letters_of
            letters = rule(primitive, [*map(type_of, args)], params)
            # Without letters the operation cannot be split: every device computes everything.
            if letters is None:
                return self._undivided(primitive, args, params)
            blocks = self._by_letters(Computed(primitive, args, params, letters))
            return blocks if primitive.multiple_results else blocks[0]

    def _each_device(
        self, args: Sequence[Value], program: Program, region: Region, in_specs: Specs, out_specs: Specs
    ) -> list[Block]:
        """The results of a program that each device runs on its blocks."""
        _require_same(region.mesh, self.region.mesh)
        program = untyped(program)
        if not region.is_whole:
            return self._with_other_axes(args, program, region, in_specs, out_specs)
        operands = [self.at(a, layout_of(s, type_of(a).ndim)) for a, s in zip(args, in_specs, strict=True)]
        outs = eval_program(program, operands)
        return [self.block(o, region.array_type(type_of(o), s), s) for o, s in zip(outs, out_specs, strict=True)]

    def _with_other_axes(
        self, args: Sequence[Value], program: Program, region: Region, in_specs: Specs, out_specs: Specs
    ) -> list[Block]:
        """The results of a body that may mention the mesh again, for the other axes.

        Along these, the body's arrays stay split as they come, and are split like those of a jit.
        """
        assert self.parent is not None
        outer_names = tuple(name for name in self.region.manual if name not in region.manual)
        inner = Localize(self.parent, replace(self.region, manual=outer_names))
        blocks = [self._split_by(inner, a, region.block(type_of(a), s), s) for a, s in zip(args, in_specs, strict=True)]
        results: list[Block] = []
        for out, spec in zip(inner.trace(eval_program, program, blocks), out_specs, strict=True):
            layout = inner.layout(out)
            type = region.array_type(type_of(out), spec)
            results.append(Block(self, inner.at(out, layout), type, finer(layout_of(spec, type.ndim), layout)))
        return results

    def _split_by(self, inner: Localize, value: Value, block: ArrayType, spec: PartitionSpec) -> Block:
        """A block by a spec, which the mesh axes of an inner interpreter split as they do now."""
        names, manual = self.layout(value), inner.region.manual
        present = (tuple(n for n in axis_names if n in manual) for axis_names in names)
        layout = tuple(map(inner.region.dividing, present, block.shape))
        target = finer(layout_of(spec, block.ndim), layout)
        return Block(inner, self.at(value, target), block, layout)

    def _laid_out(self, value: Value, sharding: NamedSharding) -> Block:
        _require_same(sharding.mesh, self.region.mesh)
        type = type_of(value)
        layout = constrained_layout(sharding.spec, self.layout(value))
        return Block(self, self.at(value, layout), type, layout)

    def _by_letters(self, operation: Computed) -> list[Block]:
        """The results of an operation, each device's part from parts of the operands."""
        primitive, letters = operation.primitive, operation.letters
        out = primitive.type_rule(*map(type_of, operation.args), **operation.params)
        types: Sequence[ArrayType] = out if primitive.multiple_results else (out,)
        cuts = cuts_of(letters, [*map(self.operand, operation.args)], types, self.region)
        layouts = [tuple(cuts.get(letter, ()) for letter in axes) for axes in letters.results]
        results = list(zip(types, layouts, strict=True))
        # Parts of one of several results would compute all of them again, and a collective send.
        source = None if primitive.multiple_results or isinstance(primitive.lower, Exchange) else operation
        values = self.parts(operation, cuts, results)
        return [Block(self, v, t, layout, source) for v, (t, layout) in zip(values, results, strict=True)]

    def _undivided(
        self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]
    ) -> Block | list[Block]:
        outs = primitive(*map(self.everything, args), **params)
        results = outs if primitive.multiple_results else [outs]
        blocks = [self.block(o, type_of(o), PartitionSpec()) for o in results]
        return blocks if primitive.multiple_results else blocks[0]


def _require_same(mesh: Mesh, other: Mesh) -> None:
    """Errors: ArgumentError for programs of two meshes."""
    if mesh != other:
        raise ArgumentError(
            f"jit: cannot run on two meshes in one program ({mesh} and {other})",
            hint="make one mesh of these devices; its specs name the axes that cut an array",
        )


@per_program
def localized(
    program: Program, region: Region, in_specs: Specs, out_specs: tuple[PartitionSpec | None, ...]
) -> tuple[Program, Specs]:
    """The program that each device runs on its blocks of the inputs, and the specs of its results.

    out_specs: the required specs of results; None for any.
    """
    layouts: list[Layout] = []
    types = [region.block(t, spec) for t, spec in zip(program.input_types, in_specs, strict=True)]

    def run(*values: Value) -> list[Value]:
        local = Localize(current(), region)
        blocks = [local.block(v, t, s) for v, t, s in zip(values, program.input_types, in_specs, strict=True)]
        outs = local.trace(eval_program, program, blocks)
        layouts.extend(
            local.layout(o) if s is None else layout_of(s, type_of(o).ndim)
            for o, s in zip(outs, out_specs, strict=True)
        )
        return [local.at(o, layout) for o, layout in zip(outs, layouts, strict=True)]

    axes: dict[Hashable, Axis] = {name: Axis(size) for name, size in region.mesh.shape.items()}
    local = trace_program(Manual(current(), axes), run, types, program.name).closed()
    # Without its unused equations, so that nothing is sent for a result that is not read.
    return economical(local), tuple(map(spec_of, layouts))


def body_of(primitive: Primitive, args: Sequence[object], params: Params) -> Program | None:
    """The program of one device that an equation holds, if it is one for all devices of a mesh."""
    bodies = (c.program for c in calls(primitive, args, params) if c.runs is Runs.EACH)
    return next(bodies, None)


@per_program
def meshes_within(program: Program) -> tuple[Mesh, ...]:
    """The meshes that a program, or a program within it, mentions; each once."""
    meshes: dict[Mesh, None] = {}
    for equation in program.equations:
        if body_of(equation.primitive, equation.operands, equation.params) is not None:
            meshes[equation.params["region"].mesh] = None
        if equation.primitive in CONSTRAINTS:
            meshes[equation.params["sharding"].mesh] = None
        for inner in subprograms(equation):
            meshes.update(dict.fromkeys(meshes_within(inner)))
    return tuple(meshes)


@per_program
def input_specs(program: Program, mesh: Mesh) -> Specs:
    """The specs for inputs that no user has laid out: those of their only shard_map or constraint.

    An input with any other reader is whole on every device.
    """
    specs_of: dict[Var, set[PartitionSpec]] = {v: set() for v in program.inputs}
    for equation in program.equations:
        for atom, spec in zip(equation.operands, _operand_specs(equation), strict=True):
            if isinstance(atom, Var) and atom in specs_of:
                specs_of[atom].add(spec)
    # The caller reads an input that is returned, too.
    for atom in program.outputs:
        if isinstance(atom, Var) and atom in specs_of:
            specs_of[atom].add(PartitionSpec())
    return tuple(next(iter(specs)) if len(specs) == 1 else PartitionSpec() for specs in specs_of.values())


@per_program
def input_shardings(program: Program) -> tuple[NamedSharding | None, ...]:
    """For each input the sharding that all its readers lay it out by; None without such a one."""
    shardings: dict[Atom, set[NamedSharding | None]] = {v: set() for v in program.inputs}
    for equation in program.equations:
        for atom in equation.operands:
            if atom in shardings:
                is_constraint = equation.primitive in CONSTRAINTS
                shardings[atom].add(equation.params["sharding"] if is_constraint else None)
    for atom in program.outputs:
        if atom in shardings:
            shardings[atom].add(None)
    return tuple(next(iter(s)) if len(s) == 1 else None for s in shardings.values())


@per_program
def argument_shardings(program: Program) -> tuple[NamedSharding | None, ...]:
    """For each input the sharding that `in_shardings` has for it; None without one."""
    layouts = (e for e in program.equations if e.primitive is argument_layout)
    shardings: dict[Atom, NamedSharding] = {e.operands[0]: e.params["sharding"] for e in layouts}
    return tuple(map(shardings.get, program.inputs))


@per_program
def output_shardings(program: Program) -> tuple[NamedSharding | None, ...]:
    """For each output the sharding by which the program lays it out; None where it says none."""
    return tuple(_sharding_of(a, program.definitions.get(a)) for a in program.outputs)


def _sharding_of(output: Atom, equation: Equation | None) -> NamedSharding | None:
    if equation is None:
        return None
    if equation.primitive in CONSTRAINTS:
        sharding: NamedSharding = equation.params["sharding"]
        return sharding.update(spec=sharding.spec.settled())
    program = called_once(equation.primitive, equation.operands, equation.params)
    return None if program is None else output_shardings(program)[equation.results.index(output)]


def _operand_specs(equation: Equation) -> Specs:
    if body_of(equation.primitive, equation.operands, equation.params) is not None:
        return equation.params["in_specs"]
    if equation.primitive in CONSTRAINTS:
        return (equation.params["sharding"].spec.settled(),)
    return (PartitionSpec(),) * len(equation.operands)
