"""jit as a primitive: an equation that holds a program, with all its rules.

Each rule rewrites the inner program and binds jit again, so `grad(jit(f))` stays compiled, as two
programs joined by residuals, and every order of transformations composes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rune import config
from rune.array import Array, on
from rune.core.dead_code import prune
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program
from rune.core.sizes import match_sizes, type_with_sizes
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.transforms.checks import check_results
from rune.transforms.compile import run_program
from rune.transforms.jvp import jvp_program
from rune.transforms.linearize import Partial, split_program
from rune.transforms.transpose import transpose_program
from rune.transforms.vmap import batch_program


def _type_rule(*types: ArrayType, program: Program) -> tuple[ArrayType, ...]:
    """The program's output types, with its symbolic sizes as the arguments have them."""
    sizes = match_sizes(program.input_types, types)
    return tuple(type_with_sizes(t, sizes) for t in program.output_types)


def _run(*args: Any, program: Program) -> list[Array]:
    outs = run_program(program, args, placement("jit", args))
    check_results(program, args, outs)
    return outs


def placement(name: str, args: Sequence[Any]) -> Any:
    """The device of the arguments, or the default; rank-0 CPU values go anywhere.

    Errors: DeviceError names the devices when they differ.
    """
    placed = {a.device for a in args if isinstance(a, Array) and (a.type.shape or a.device)}
    if len(placed) > 1:
        names = " and ".join(sorted(d.name if d else "cpu:0" for d in placed))
        raise DeviceError(
            f"{name}: cannot run on arguments on {names}",
            hint="move them with rune.device_put, or pass jit(device=...)",
        )
    if placed:
        return placed.pop()
    default = config.current().device
    return on(default) if default else None


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]) -> Any:
    program: Program = params["program"]
    rewritten, nonzero = jvp_program(program, tuple(t is not None for t in tangents))
    given = [t for t in tangents if t is not None]
    outs = jit_primitive(*primals, *given, program=rewritten)
    count = len(program.outputs)
    made = iter(outs[count:])
    return outs[:count], [next(made) if n else None for n in nonzero]


def _partial(
    partial: Partial, args: Sequence[Any], unknown: Sequence[bool], params: Mapping[str, Any]
) -> list[Any]:
    split = split_program(params["program"], tuple(unknown))
    known_args = [a for a, u in zip(args, unknown, strict=True) if not u]
    outs = jit_primitive(*known_args, program=split.known)
    count = sum(split.known_outputs)
    computed = iter(outs[count:])
    residuals = [
        next(computed) if source is None else known_args[source] for source in split.residual_inputs
    ]
    unknown_args = [a for a, u in zip(args, unknown, strict=True) if u]
    rest = partial.write(jit_primitive, [*residuals, *unknown_args], {"program": split.unknown})
    known_outs, unknown_outs = iter(outs[:count]), iter(rest)
    return [next(known_outs) if k else next(unknown_outs) for k in split.known_outputs]


def _transpose(
    cts: Sequence[Any], linear: Sequence[bool], *inputs: Any, program: Program
) -> list[Any]:
    nonzero = tuple(ct is not None for ct in cts)
    rewritten, out_nonzero = transpose_program(program, tuple(linear), nonzero)
    known = [x for x, lin in zip(inputs, linear, strict=True) if not lin]
    outs = iter(jit_primitive(*known, *(ct for ct in cts if ct is not None), program=rewritten))
    found = iter([next(outs) if n else None for n in out_nonzero])
    return [next(found) if lin else None for lin in linear]


def _batch(batched: Sequence[bool], size: Any, *args: Any, program: Program) -> Any:
    rewritten, out_batched = batch_program(program, tuple(batched), size)
    return jit_primitive(*args, program=rewritten), out_batched


def _dead_code(wanted: Sequence[bool], equation: Equation) -> Equation:
    program, kept = prune(equation.params["program"], wanted)
    return replace(
        equation,
        operands=tuple(a for a, k in zip(equation.operands, kept, strict=True) if k),
        results=tuple(v for v, w in zip(equation.results, wanted, strict=True) if w),
        params={**equation.params, "program": program},
    )


jit_primitive = Primitive(
    "jit", "program", _type_rule,
    transpose=_transpose, batch=_batch, multiple_results=True,
    run=_run, jvp_equation=_jvp, partial_equation=_partial, dead_code=_dead_code,
)  # fmt: skip
