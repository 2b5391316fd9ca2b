"""shard_map as a primitive: an equation whose program each device runs on blocks of the operands.

    %1: f32[8] = shard_map %0 {program=p, region=..., in_specs=(P('data'),), out_specs=(P('data'),)}

Each rule rewrites the program of one device and binds shard_map again, so derivatives and batches
run on the same devices. If the types of the body tell how values vary, they also tell which
cotangents are summed. Without them, an input that is not split along an axis is a copy on each
device along it, whose cotangent is the sum over them; and a result that is not split along it
counts once, so the copy of each device has a share of its cotangent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from rune import config, ops
from rune.array import Array
from rune.core.axes import Name, batching, free_axes, own_axis
from rune.core.higher import Calls, HigherOrder, Runs
from rune.core.interpreter import Axis, current, literal_like
from rune.core.manual import Manual
from rune.core.memo import per_program
from rune.core.program import Atom, Equation, Program, Var
from rune.core.staging import stage
from rune.core.types import ArrayType, Axes
from rune.core.values import Value
from rune.core.varying import Variation
from rune.dims import Size
from rune.sharding import NamedSharding, PartitionSpec
from rune.sharding.memory import Spread
from rune.transforms.batching.batch import batch_program
from rune.transforms.checks.nans_and_bounds import is_watching
from rune.transforms.derivatives.held_programs import jvp_program, split_program, transpose_program
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs import call_rules
from rune.transforms.programs.call_rules import Params
from rune.transforms.programs.size_witnesses import own_size
from rune.transforms.programs.variation import axes_of, typed, untyped
from rune.transforms.sharding.blocks import Region, Specs
from rune.transforms.sharding.localize import localized, meshes_within
from rune.transforms.sharding.refusal import require_there
from rune.transforms.sharding.run import mesh_program
from rune.transforms.sharding.watched import run_watched

T = TypeVar("T")
COPIES = PartitionSpec()  # of values that every device has whole


def _chosen(items: Iterable[T], choice: Iterable[bool]) -> tuple[T, ...]:
    """The items that are flagged."""
    return tuple(item for item, is_chosen in zip(items, choice, strict=True) if is_chosen)


class Inside(Manual):
    """A stage inside a region, whose named axes the body and the rules may ask for."""

    __slots__ = ("region",)

    def __init__(self, region: Region):
        axes = {n: Axis(region.mesh.shape[n], region.is_typed, True) for n in region.manual}
        super().__init__(current(), axes, region.mesh)
        self.region = region


def bind(region: Region, program: Program, in_specs: Specs, out_specs: Specs, args: Sequence[Value]) -> list[Array]:
    """The results of an equation for a program that may have constants and sizes of its own."""
    operands, params = _equation(region, program, in_specs, out_specs, args)
    return shard_map_primitive(*operands, **params)


def _equation(
    region: Region, program: Program, in_specs: Specs, out_specs: Specs, args: Sequence[Value]
) -> tuple[Sequence[Value], Params]:
    """Operands and parameters of such an equation: constants and witnesses lead the operands."""
    if region.is_typed:
        # A split result varies along the axis, even if the body computes the same on all devices.
        results = tuple(a | region.cut(s) for a, s in zip(axes_of(program.outputs), out_specs, strict=True))
        program = Inside(region).trace(typed, program, axes_of(program.inputs), results)
    closed_program, operands = call_rules.closed_call(program, {}, args)
    # Constants and witnesses are the same on every device.
    specs = (*(COPIES,) * (len(operands) - len(args)), *in_specs)
    return operands, {"program": closed_program, "region": region, "in_specs": specs, "out_specs": out_specs}


def _type_rule(
    *types: ArrayType, program: Program, region: Region, in_specs: Specs, out_specs: Specs
) -> tuple[ArrayType, ...]:
    blocks = [region.block(t, spec) for t, spec in zip(types, in_specs, strict=True)]
    results = call_rules.type_rule(*blocks, program=program)
    return tuple(region.array_type(t, spec) for t, spec in zip(results, out_specs, strict=True))


def _vary(axes: Sequence[Axes], params: Params) -> Variation:
    region, program = params["region"], params["program"]
    inputs = tuple(a | region.cut(spec) for a, spec in zip(axes, params["in_specs"], strict=True))
    body = Inside(region).trace(typed, program, inputs)
    return {**params, "program": body}, [a.difference(region.manual) for a in axes_of(body.outputs)]


def _calls(*args: object, program: Program, region: Region, **_: object) -> tuple[Calls, ...]:
    return (Calls(program, (None,) * len(args), Runs.EACH, frozenset(region.manual)),)


def _run(*args: Value, program: Program, region: Region, in_specs: Specs, out_specs: Specs) -> list[Array]:
    for arg in args:
        if type(arg) is Array:
            require_there("shard_map", arg.type, arg.place, region.mesh)
    program = untyped(program)
    settings = config.current()
    watched = replace(region, is_watched=settings.check_bounds, has_spans=not is_watching(settings))
    local, layouts = program, _Layouts(in_specs, out_specs)
    # A program that mentions the mesh again must first become one that a single device can run.
    if not region.is_whole or meshes_within(program):
        operand_specs = tuple(_spec_of(a, s, region) for a, s in zip(args, in_specs, strict=True))
        local, layouts = _localized(program, watched, layouts, operand_specs)
    if is_watching(settings):
        return run_watched(local, region.mesh, layouts.operands, layouts.results, args)
    return mesh_program(local, region.mesh, layouts.operands, layouts.results)(args)


class _Layouts(NamedTuple):
    """How operands and results are split."""

    operands: Specs
    results: Specs


def _spec_of(arg: Value, spec: PartitionSpec, region: Region) -> PartitionSpec:
    """How an operand is split: by the spec of a body over all axes, else as the array is now."""
    devices = arg.place.device if type(arg) is Array and not region.is_whole else None
    if isinstance(devices, Spread) and devices.sharding.mesh == region.mesh:
        return devices.sharding.spec
    return spec


@per_program
def _localized(program: Program, region: Region, body: _Layouts, operand_specs: Specs) -> tuple[Program, _Layouts]:
    """The program of a device for operands that are split by these specs."""
    params = {"program": program, "region": region, "in_specs": body.operands, "out_specs": body.results}
    types = [region.array_type(t, spec) for t, spec in zip(program.input_types, body.operands, strict=True)]
    # An interpreter takes equations, so the body is put back into one.
    equation = stage(lambda *args: shard_map_primitive(*args, **params), types, program.name)
    everywhere = replace(region, manual=region.mesh.axis_names, is_typed=False)
    if region.is_whole:
        return localized(equation.program, everywhere, operand_specs, body.results)[0], body
    # Along the other axes results stay as the body computes them.
    local, result_specs = localized(equation.program, everywhere, operand_specs, (None,) * len(body.results))
    return local, _Layouts(operand_specs, result_specs)


# --- forward derivatives ------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Value | None], params: Params
) -> tuple[list[Array], list[Array | None]]:
    region, in_specs, out_specs = params["region"], params["in_specs"], params["out_specs"]
    has_tangent = tuple(t is not None for t in tangents)
    # Rules of collectives look up the axes of the mesh, which exist only inside the region.
    jvp_of_body, nonzero = Inside(region).trace(jvp_program, params["program"], has_tangent)
    outs = bind(
        region,
        jvp_of_body,
        (*in_specs, *_chosen(in_specs, has_tangent)),
        (*out_specs, *_chosen(out_specs, nonzero)),
        [*primals, *(t for t in tangents if t is not None)],
    )
    out_tangents = iter(outs[len(out_specs) :])
    return outs[: len(out_specs)], [next(out_tangents) if n else None for n in nonzero]


def _partial(partial: Partial, args: Sequence[Value], unknown: Sequence[bool], params: Params) -> list[Value]:
    region, in_specs, out_specs = params["region"], params["in_specs"], params["out_specs"]
    known, split = [not u for u in unknown], Inside(region).trace(split_program, params["program"], tuple(unknown))
    known_args, known_specs = _chosen(args, known), _chosen(in_specs, known)
    count = sum(split.known_outputs)
    known_part, residual_specs = _giving_residuals(split.known, count, region)
    outs = bind(
        region, known_part, known_specs, (*_chosen(out_specs, split.known_outputs), *residual_specs), known_args
    )
    # A residual is a known argument, or a result of the known part after its outputs.
    known_outs, computed_residuals = iter(outs), zip(outs[count:], residual_specs, strict=True)
    residuals = [
        next(computed_residuals) if source is None else (known_args[source], known_specs[source])
        for source in split.residual_inputs
    ]
    operands, equation = _equation(
        region,
        _taking_residuals(split.unknown, split.residual_inputs),
        (*(spec for _, spec in residuals), *_chosen(in_specs, unknown)),
        _chosen(out_specs, [not k for k in split.known_outputs]),
        [*(value for value, _ in residuals), *_chosen(args, unknown)],
    )
    unknown_outs = iter(partial.write(shard_map_primitive, operands, equation))
    return [next(known_outs) if k else next(unknown_outs) for k in split.known_outputs]


@per_program
def _giving_residuals(program: Program, count: int, region: Region) -> tuple[Program, Specs]:
    """The program whose results after `count` are rows, one on each device, of stacked arrays.

    A residual of rank 0 could not be split, and one of any rank differs between devices.
    """
    rows = [Var(a.type.with_shape((1, *a.type.shape))) for a in program.outputs[count:]]
    specs = tuple(PartitionSpec(_differing(a, region)) for a in program.outputs[count:])
    stack = [_reshaped(a, v) for a, v in zip(program.outputs[count:], rows, strict=True)]
    return program.with_equations((*program.equations, *stack), (*program.outputs[:count], *rows)), specs


def _differing(atom: Atom, region: Region) -> tuple[Name, ...]:
    """The axes along which the devices may have different values."""
    # Without types any value may differ along any axis.
    return tuple(n for n in region.manual if n in atom.type.varying) if region.is_typed else region.manual


@per_program
def _taking_residuals(program: Program, sources: tuple[int | None, ...]) -> Program:
    """The program that takes such blocks of the residuals that are not inputs of the known part."""
    is_block = [*(source is None for source in sources), *(False for _ in program.inputs[len(sources) :])]
    inputs = [
        Var(v.type.with_shape((1, *v.type.shape))) if b else v for v, b in zip(program.inputs, is_block, strict=True)
    ]
    unstack = [_reshaped(i, v) for i, v, b in zip(inputs, program.inputs, is_block, strict=True) if b]
    return replace(program, inputs=tuple(inputs), equations=(*unstack, *program.equations))


def _reshaped(source: Atom, result: Var) -> Equation:
    return Equation(ops.reshape, (source,), {"shape": result.type.shape}, (result,))


# --- transpose ----------------------------------------------------------------------------------


def _transpose(
    cts: Sequence[Value | None],
    linear: Sequence[bool],
    *inputs: Value,
    program: Program,
    region: Region,
    in_specs: Specs,
    out_specs: Specs,
) -> list[Value | None]:
    nonzero = tuple(ct is not None for ct in cts)
    transposed_program, out_nonzero = Inside(region).trace(transpose_program, program, tuple(linear), nonzero)
    known, linear_specs = [not lin for lin in linear], _chosen(_chosen(in_specs, linear), out_nonzero)
    # Without types it is not known which results are the same on all devices. Each device takes a
    # share of the cotangent of a copied result, and cotangents of a copied input are added up.
    if not region.is_typed:
        cts = [_share(ct, region.copies(spec)) for ct, spec in zip(cts, out_specs, strict=True)]
        transposed_program = _summed(transposed_program, tuple(map(region.copied, linear_specs)))
    ct_specs = (*_chosen(in_specs, known), *_chosen(out_specs, nonzero))
    operands = [*_chosen(inputs, known), *(ct for ct in cts if ct is not None)]
    outs = iter(bind(region, transposed_program, ct_specs, linear_specs, operands))
    input_cts = iter([next(outs) if n else None for n in out_nonzero])
    return [next(input_cts) if lin else None for lin in linear]


def _share(ct: Value | None, copies: int) -> Value | None:
    """A device's share of a result's cotangent, if several devices have a copy of the result."""
    return ct if ct is None or copies == 1 else ops.div(ct, literal_like(copies, ct))


@per_program
def _summed(program: Program, axes: tuple[tuple[Name, ...], ...]) -> Program:
    """The program with each result summed over some axes."""
    outputs, sums = [], []
    for atom, names in zip(program.outputs, axes, strict=True):
        for name in names:
            total = Var(atom.type)
            sums.append(Equation(ops.psum, (atom,), {"axis_name": name}, (total,)))
            atom = total
        outputs.append(atom)
    return program.with_equations((*program.equations, *sums), outputs)


# --- batches and dead code ----------------------------------------------------------------------


def _batch(
    batched: Sequence[bool],
    size: Size,
    *args: Value,
    program: Program,
    region: Region,
    in_specs: Specs,
    out_specs: Specs,
) -> tuple[list[Array], Sequence[bool]]:
    axis, split = own_axis(), _split_of_lanes(program)
    if split:
        NamedSharding(region.mesh, PartitionSpec(split))  # refuses names that the mesh lacks
        region = replace(region, manual=tuple(dict.fromkeys((*region.manual, *split))))
        size = size // region.size(split)
    # Each device has the lanes of its own block, which are not split further there.
    with batching(axis and replace(axis, split=())):
        lane_program, out_batched = Inside(region).trace(
            batch_program, program, tuple(batched), own_size(size, program)
        )
    lane_in_specs, lane_out_specs = _with_lanes(batched, in_specs, split), _with_lanes(out_batched, out_specs, split)
    return bind(region, lane_program, lane_in_specs, lane_out_specs, args), out_batched


def _split_of_lanes(program: Program) -> tuple[Name, ...]:
    """The mesh axes that split the lanes of a body; none if it mentions these, or the lanes."""
    axis = own_axis()
    if axis is None or not free_axes(program).isdisjoint({axis.name, *axis.split}):
        return ()
    return axis.split


def _with_lanes(batched_values: Sequence[bool], specs: Specs, split: tuple[Name, ...]) -> Specs:
    """The specs of values that may have a leading batch axis."""
    return tuple(PartitionSpec(split or None, *s) if b else s for s, b in zip(specs, batched_values, strict=True))


def _dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    in_specs, out_specs = equation.params["in_specs"], equation.params["out_specs"]
    # As `call_rules.dead_code`, but specs go with their operands and results.
    smaller, used_inputs = call_rules.of_results(equation.params["program"], tuple(used_results))
    return replace(
        equation,
        operands=_chosen(equation.operands, used_inputs),
        results=_chosen(equation.results, used_results),
        params={
            **equation.params,
            "program": smaller,
            "in_specs": _chosen(in_specs, used_inputs),
            "out_specs": _chosen(out_specs, used_results),
        },
    )


# No rule to expand it: the programs of devices are made (localize.py) before anything is lowered.
shard_map_primitive: HigherOrder = HigherOrder(
    "shard_map",
    "program",
    _type_rule,
    calls=_calls,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
    run=_run,
    jvp_equation=_jvp,
    partial_equation=_partial,
    dead_code=_dead_code,
    vary=_vary,
)
