"""JAX's classes and helpers for jaxprs, over rune's programs.

Jaxpr(...)        makes an OpenProgram, which isinstance accepts as a Jaxpr; ClosedJaxpr a Program
JaxprEqn(...)     makes an Equation
Var, Literal      are rune's; DropVar has no instances, since an unused result is a variable
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from rune import dtypes
from rune.array import Array
from rune.core import primitive as primitives
from rune.core.check import check_program
from rune.core.interpreter import Interpreter, Tracer, current, is_evaluating, use
from rune.core.jax_names import DebugInfo as DebugInfo
from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, OpenProgram, Program, Var
from rune.core.staging import Stage
from rune.core.types import ArrayType
from rune.errors import ArgumentError, ConcretizationTypeError
from rune.transforms.batching.batch import Batch
from rune.transforms.eager import EVALUATE
from rune.transforms.eval_shape import typeof
from rune.transforms.programs.make_program import program_maker

no_effects: frozenset[primitives.Effect] = frozenset()


class StandIn(type):
    """The metaclass of a JAX class whose instances are those of rune's class `kind`."""

    kind: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.kind)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.kind)


class Jaxpr(metaclass=StandIn):
    """The class of programs that receive their constants when they are evaluated."""

    kind = OpenProgram

    def __new__(
        cls,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Equation],
        effects: object = no_effects,
        debug_info: object = None,
    ) -> Any:
        """A program made of these parts, with the effects of its equations."""
        body = Program((*constvars, *invars), tuple(eqns), tuple(outvars))
        return OpenProgram(body, len(constvars))


class ClosedJaxpr(metaclass=StandIn):
    """The class of programs with their constants."""

    kind = Program

    def __new__(cls, jaxpr: OpenProgram, consts: Sequence[Any] = ()) -> Any:
        """The program with these constants. Errors: ValueError for another number of them."""
        return jaxpr.with_constants(consts)


class JaxprEqn(metaclass=StandIn):
    """The class of equations; `new_jaxpr_eqn` makes them."""

    kind = Equation


class Effect(metaclass=StandIn):
    """The class of side effects of equations. Flax derives one that no equation has."""

    kind = primitives.Effect


class DropVar(Var):
    """JAX's class of results that nothing reads. In rune they are ordinary variables."""


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: Mapping[str, Any],
    effects: object = no_effects,
    source_info: Any = None,
    ctx: object = None,
) -> Equation:
    """An equation made of these parts, with the effects of its primitive."""
    return Equation(primitive, tuple(invars), dict(params), tuple(outvars), getattr(source_info, "frame", None))


def gensym(suffix: str = "") -> Callable[[ArrayType], Var]:
    """A function from types to new variables, which have no names until they are printed."""
    return Var


def check_jaxpr(jaxpr: OpenProgram | Program) -> None:
    """Raise CheckError for a program that breaks a rule of the language."""
    check_program(jaxpr.body if isinstance(jaxpr, OpenProgram) else jaxpr)


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[OpenProgram]:
    """The programs among the parameters of an equation, also inside tuples and lists."""
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Program):
                yield item.jaxpr
            elif isinstance(item, OpenProgram):
                yield item


def subjaxprs(jaxpr: OpenProgram | Program) -> Iterator[OpenProgram]:
    """The programs that the equations of a program hold."""
    for equation in jaxpr.eqns:
        yield from jaxprs_in_params(equation.params)


def get_opaque_trace_state(convention: str = "flax") -> object:
    """An object that is equal within one transformation's trace, and differs between traces."""
    return weakref.ref(current())


def trace_state_clean() -> bool:
    """Whether no transformation is being traced."""
    return is_evaluating()


def valid_jaxtype(value: object) -> bool:
    """Whether a value is an array, or can be converted to one."""
    try:
        typeof(value)
    except ArgumentError:
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: object, context: str = "") -> Any:
    """`force(val)` for a concrete value.

    Errors: ConcretizationTypeError for a traced one, with `context` as its hint.
    """
    if isinstance(val, Tracer):
        raise ConcretizationTypeError(f"tracer: cannot use a traced value {val.type} as a concrete one", context)
    return val if force is None else force(val)


def eval_context() -> AbstractContextManager[None]:
    """A block outside all transformations: its operations are evaluated at once."""
    return use(EVALUATE)


def call_impl(f: Any, *args: object, **params: object) -> Any:
    """Call a wrapped function directly."""
    return f.call_wrapped(*args)


def primal_dtype_to_tangent_dtype(primal_dtype: object) -> Any:
    """The dtype of the tangents; float0 for a dtype without derivatives."""
    return ArrayType((), dtypes.as_dtype(primal_dtype)).to_tangent().dtype


def _around() -> Iterator[Interpreter]:
    """The interpreters in force, from the innermost outwards."""
    interpreter: Interpreter | None = current()
    while interpreter is not None:
        yield interpreter
        interpreter = interpreter.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether the code is being traced into a program, as by jit."""
    return any(isinstance(i, Stage) for i in _around())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a vmap is in force."""
    return any(isinstance(i, Batch) for i in _around())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the batch axes in force."""
    return [i.axis.name for i in _around() if isinstance(i, Batch) and i.axis is not None and i.axis.name is not None]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a batch axis in force has a name."""
    return bool(unsafe_get_axis_names_DO_NOT_USE())


array_types = frozenset({Array, np.ndarray, *(d.type for d in dtypes.ANY)})


class ConstantsStage(Stage):
    """A stage that makes constants of arrays of rank 0, too, where rune writes literals."""

    __slots__ = ()

    def atom(self, value: Any) -> Atom:
        """The variable or literal that stands for `value`."""
        return self._capture(value) if type(value) is Array else super().atom(value)


def make_jaxpr(fun: Callable[..., Any], *args: Any, **options: Any) -> Callable[..., Any]:
    """As `rune.make_program`, with as many constants as JAX makes (Optimistix compares them)."""
    return program_maker(ConstantsStage, fun, *args, **options)
