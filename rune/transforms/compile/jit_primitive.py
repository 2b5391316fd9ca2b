"""jit as a primitive: an equation that holds a program, with all its rules.

Each rule rewrites the inner program and binds jit again, so `grad(jit(f))` stays compiled, as two
programs joined by residuals, and transformations compose in every order. `device` is the user's
choice of a device, if any; every rule passes it on, so derived programs run there too.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.array import Array, committed_to, on
from rune.core.higher import HigherOrder
from rune.core.interpreter import type_of
from rune.core.jax_names import Translation, ignored
from rune.core.lists import merge, omit, pick
from rune.core.program import Program
from rune.core.values import Params, Value
from rune.transforms.compile.direct_runs import run_call
from rune.transforms.compile.run import run_program
from rune.transforms.derivatives.held_programs import split_program
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs import call_rules


def _run(*args: Value, program: Program, device: str | None = None) -> list[Array]:
    if device is not None:
        return run_program(program, args, committed_to(on(device)))
    return run_call("jit", program, args)


def _partial(partial: Partial, args: Sequence[Value], unknown: Sequence[bool], params: Params) -> list[Value]:
    program: Program = params["program"]
    # Both parts run where the unsplit program would have run.
    device = {name: value for name, value in params.items() if name == "device"}
    split = split_program(program, tuple(unknown))
    sizes = call_rules.sizes_of(program, [type_of(a) for a in args])
    known_args = omit(args, unknown)
    outs = call_rules.bind_call(jit_primitive, device, split.known, sizes, known_args)
    inputs = [*split.residuals(known_args, outs), *pick(args, unknown)]
    # The residuals may not determine all sizes of the unknown part, so witnesses are added.
    closed_program, operands = call_rules.closed_call(split.unknown, sizes, inputs)
    unknown_outs = partial.write(jit_primitive, operands, {**device, "program": closed_program})
    return merge(split.known_outputs, outs, unknown_outs)


jit_primitive = HigherOrder(
    "jit",
    "program",
    call_rules.type_rule,
    calls=call_rules.calls,
    transpose=call_rules.transpose_rule(lambda: jit_primitive),
    batch=call_rules.batch_rule(lambda: jit_primitive),
    multiple_results=True,
    run=_run,
    interpret=call_rules.interpret,
    series=call_rules.series,
    jvp_equation=call_rules.jvp_rule(lambda: jit_primitive),
    partial_equation=_partial,
    dead_code=call_rules.dead_code,
    vary=call_rules.vary,
    jax_names={
        "jaxpr": "program",
        "name": Translation(lambda params: params["program"].name, lambda name, params: {}),
        # What was inlined has left no equation, and keep_unused is without effect.
        "inline": ignored(False),
        "keep_unused": ignored(False),
    },
)
