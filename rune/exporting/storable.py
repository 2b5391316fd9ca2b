"""Programs that a file can hold: what they consist of, and how a traced program becomes one.

The text of a program can hold parameters that are values: numbers, strings, dtypes, types, sizes,
programs, and tuples and records of these. It cannot hold a Python function, so `storable` turns an
operation with a custom rule into a call of its program, and refuses callbacks by name.

Invariant: parse(text(program)) is the same program, and passes every type rule.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import NoReturn

import numpy as np

from rune import ops
from rune.control.text import CONTROL
from rune.control.while_loop.checkpoints import Checkpoints, GrowingResiduals
from rune.control.while_loop.primitive import while_, while_linear
from rune.core.check import check_program
from rune.core.higher import called_once
from rune.core.lower import Library
from rune.core.memo import per_program
from rune.core.parse import parse as parse_text
from rune.core.primitive import EXTENSION, Primitive, Rule
from rune.core.program import Equation, Program, map_programs
from rune.core.same import same_program
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Dim
from rune.errors import ArgumentError, CheckError, RuneError, at_line
from rune.ops import IndexDims
from rune.transforms.checkpoint.checkpoint import apart, checkpoint_primitive
from rune.transforms.checkpoint.policies import name_primitive
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.custom.jvp import custom_jvp_call
from rune.transforms.custom.linear_call import linear_call_primitive
from rune.transforms.custom.vjp import custom_vjp_call
from rune.transforms.custom.vmap import custom_vmap_call

_MEMBERS = (*ops.PRIMITIVES, *ops.LIBRARY, *CONTROL, jit_primitive, apart, name_primitive)
PRIMITIVES: Mapping[str, Primitive] = {p.name: p for p in _MEMBERS}
RECORDS: Mapping[str, type] = {r.__name__: r for r in (IndexDims, Checkpoints, GrowingResiduals)}
# Calls of programs that also hold a Python function or name a device; files keep the program only.
_CUSTOM = (custom_jvp_call, custom_vjp_call, custom_vmap_call, linear_call_primitive)
_CALLS = (jit_primitive, checkpoint_primitive, *_CUSTOM)
# Their type rules take all parameters as one record, which refuses unknown ones itself.
_BY_RECORD = (ops.conv_general_dilated, ops.reduce_window)
# Parameters that the rules of loops pass on as **params, so that no signature names them.
_PASSED_ON: Mapping[Primitive, frozenset[str]] = {
    while_: frozenset({"reverse"}),
    while_linear: frozenset("consts shared checkpoints linear_consts reverse".split()),
}
REWRITE = "leave it out of the exported function, or write it with operations of rune"
_PLAIN = (bool, int, float, str, ArrayType, type(None))


@per_program
def storable(program: Program) -> Program:
    """The program without custom rules and without devices, as a file holds it.

    Errors: ArgumentError "export: cannot store <operation> (<why>)" with the user's line.
    """
    result = writable(program, None)
    _require_round_trip(result)
    return result


@per_program
def writable(program: Program, language: str | None) -> Program:
    """As `storable`, for a source folder, which can also hold users' kernels in this language.

    Errors: ArgumentError, as above.
    """
    if program.constants:
        raise ArgumentError(f"export: cannot store {program.name} (it holds arrays that are not inputs)")
    return program.with_equations((_equation(e, language) for e in program.equations), program.outputs)


def text(program: Program) -> str:
    """The text of a storable program in a file."""
    return str(program)


def parse(source: str) -> Program:
    """Parse and check a program: every name must be known, and every type rule must agree.

    Errors: CheckError.
    """
    program = parse_text(source, PRIMITIVES, RECORDS)
    if program.constants:
        raise CheckError(f"load: cannot accept {program.name} (its text holds arrays)")
    _require_values(program)
    check_program(program)
    return program


# --- from a trace -----------------------------------------------------------------------------


def _equation(equation: Equation, language: str | None) -> Equation:
    primitive = equation.primitive
    if primitive in _CALLS:
        body = called_once(primitive, equation.operands, equation.params)
        assert body is not None
        return replace(equation, primitive=jit_primitive, params={"program": writable(body, language)})
    if isinstance(primitive.lower, Library) and any(s.language == language for s in primitive.lower.sources):
        return equation
    if primitive.family == EXTENSION and primitive.expand is not None:
        return _expanded(equation, primitive.expand, language)
    if PRIMITIVES.get(primitive.name) is not primitive:
        _refuse(equation, *_why_not(primitive, language))
    params = map_programs(equation.params, lambda p: writable(p, language))
    for name, value in params.items():
        if not _is_value(value):
            _refuse(equation, f"its parameter {name} is {type(value).__name__}, which is not a value")
    return replace(equation, params=params)


def _expanded(equation: Equation, expand: Rule, language: str | None) -> Equation:
    """A user's operation as a call of its expansion, which consists of rune's own operations."""

    def flat(*args: Value) -> list[Value]:
        outs = expand(*args, **equation.params)
        return list(outs) if equation.primitive.multiple_results else [outs]

    types = tuple(x.type for x in equation.operands)
    trace = stage(flat, types, equation.primitive.name)
    if trace.captured:
        _refuse(equation, "its expansion reads arrays that are not its operands", "make them operands")
    return replace(equation, primitive=jit_primitive, params={"program": writable(trace.program, language)})


def _why_not(primitive: Primitive, language: str | None) -> tuple[str, str]:
    """Why a file or folder cannot hold this operation, and a hint at what to do."""
    expand = "define it by rune's operations with expand="
    if primitive.effect is not None:
        return "it calls Python, or the host", REWRITE
    if primitive.family == EXTENSION and language is not None:
        hint = f'pass its kernel by sources=[extend.Source("{language}", ...)], or {expand}'
        return f"it has no source in the language of the folder, {language!r}", hint
    if primitive.family == EXTENSION:
        return "a file holds no Python or C code", expand
    return "a file holds rune's own operations, on one device", REWRITE


def _refuse(equation: Equation, why: str, hint: str = REWRITE) -> NoReturn:
    with at_line(equation.frame):
        raise ArgumentError(f"export: cannot store {equation.primitive.name} ({why})", hint=hint)


def _is_value(value: object) -> bool:
    """Whether a text can hold this value, so that parsing returns an equal one."""
    if isinstance(value, tuple):
        return all(map(_is_value, value))
    if type(value) in RECORDS.values():
        return all(_is_value(getattr(value, f.name)) for f in fields(value))  # type: ignore[arg-type]
    return type(value) in _PLAIN or isinstance(value, Program | Dim | np.dtype)


def _require_round_trip(program: Program) -> None:
    # Without this, the machine that loads the file would be the first to find out.
    try:
        same = same_program(parse(text(program)), program)
    except RuneError as error:
        raise ArgumentError(f"export: cannot store {program.name} ({error.message})") from error
    if not same:
        raise ArgumentError(f"export: cannot store {program.name} (its text is that of another program)")


# --- from a text ------------------------------------------------------------------------------


def _require_values(program: Program) -> None:
    pending = [program]
    while pending:
        current = pending.pop()
        for equation in current.equations:
            _require_names(equation)
            for name, value in equation.params.items():
                if not _is_value(value):
                    raise CheckError(f"load: cannot accept {equation.primitive.name} ({name}={value!r} is not a value)")
                pending += _programs_in(value)


def _require_names(equation: Equation) -> None:
    """Errors: CheckError unless the parameters are those that the primitive's rules name."""
    required_names, permitted_names = _names(equation.primitive)
    missing = ", ".join(sorted(required_names - equation.params.keys()))
    extra_names = set() if equation.primitive in _BY_RECORD else equation.params.keys() - permitted_names
    foreign = ", ".join(sorted(extra_names))
    if missing or foreign:
        difference = f"without {missing}" if missing else f"with {foreign}"
        raise CheckError(f"load: cannot accept {equation.primitive.name} ({difference})")


@functools.cache
def _names(primitive: Primitive) -> tuple[frozenset[str], frozenset[str]]:
    """The required and the permitted parameters of an equation, from the signatures of its rules.

    `device` is not among them: `jit` may name a device, a file may not.
    """
    rules = [getattr(primitive, name, None) for name in ("type_rule", "reference", "expand", "calls", "interpret")]
    parameters = [p for r in rules if r is not None for p in inspect.signature(r).parameters.values()]
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "device"]
    required_names = frozenset(p.name for p in by_name if p.default is p.empty)
    return required_names, frozenset(p.name for p in by_name) | _PASSED_ON.get(primitive, frozenset())


def _programs_in(value: object) -> list[Program]:
    if isinstance(value, Program):
        return [value]
    return [p for item in value for p in _programs_in(item)] if isinstance(value, tuple) else []
