"""JAX's names for the parts of programs, so that code that walks jaxprs can walk programs.

    Program      jaxpr, consts, eqns, invars, outvars, constvars, in_avals, out_avals, effects
    OpenProgram  the same without consts: its constants are passed when it is evaluated
    Equation     invars, outvars, source_info, effects, replace (primitive and params are alike)
    params       of the equations in `eqns` have JAX's names too, and `bind` accepts these
    Var, Literal aval, val
    Interpreter, Tracer    main, _trace

Each is a mixin without fields, which computes its properties from the fields under rune's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self

from rune.core.values import Params
from rune.errors import ArgumentError, Frame
from rune.records import dataclass

Effects = frozenset["Effect"]

if TYPE_CHECKING:
    from rune.core.interpreter import Interpreter
    from rune.core.primitive import Effect, Primitive
    from rune.core.program import Atom, Equation, Var
    from rune.core.types import ArrayType


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """The origin of an equation: the user's line, and the names of the scopes around it.

    >>> str(SourceInfo(Frame("demo.py", 3, "step", "net/layer")).name_stack)
    'net/layer'
    """

    frame: Frame | None

    @property
    def name_stack(self) -> str:
        """The names of `named_scope`, the outermost first, "net/layer"."""
        return "" if self.frame is None else self.frame.scope

    def __str__(self) -> str:
        return "" if self.frame is None else str(self.frame)


class InterpreterNames:
    """An interpreter."""

    __slots__ = ()

    @property
    def main(self) -> Self:
        """The interpreter itself, which all its tracers share."""
        return self


class TracerNames:
    """A tracer. Equinox reads the interpreter that it belongs to."""

    __slots__ = ()
    interpreter: Interpreter

    @property
    def _trace(self) -> Interpreter:
        return self.interpreter


class AtomNames:
    """A variable or a literal."""

    __slots__ = ()
    type: ArrayType

    @property
    def aval(self) -> ArrayType:
        """Its type."""
        return self.type


@dataclass(frozen=True, slots=True)
class Translation:
    """A JAX parameter without a single counterpart here, and the functions that read and write it.

    read:   parameters of an equation -> the value of the JAX parameter
    write:  the value of the JAX parameter, and the others bound with it -> parameters here
    """

    read: Callable[[Params], object]
    write: Callable[..., Params]


@dataclass(frozen=True, slots=True)
class OfOperands:
    """A JAX parameter that follows from the operands: read(params, operands) -> its value."""

    read: Callable[[Params, Sequence[Atom]], object]


@dataclass(frozen=True, slots=True)
class Form:
    """JAX's way to bind an operation whose operands or results are different here.

    told_by:  a parameter that only JAX's equations have
    bind:     bind(*operands, **JAX's parameters) -> the results, in JAX's order
    """

    told_by: str
    bind: Callable[..., object]


Names = Mapping[str, str | Callable[[Params], object] | Translation | OfOperands]
# JAX parameters that have no effect when they are None.
_OPTIONAL = frozenset({"accuracy", "out_sharding", "sharding", "precision", "preferred_element_type", "dimensions"})


def ignored(value: object) -> Translation:
    """A JAX parameter that changes no result here; it always reads as this value."""
    return Translation(lambda params: value, lambda value, params: {})


def always(value: object) -> Translation:
    """A JAX parameter that has one value here. Errors: ArgumentError for another value."""

    def write(bound: object, params: Params) -> Params:
        if bound != value:
            raise ArgumentError(f"bind: cannot say {bound!r} where JAX has a choice (only {value!r} is there)")
        return {}

    return Translation(lambda params: value, write)


def own_params(names: Names | None, params: Params) -> Params:
    """The parameters by rune's names, from arguments of `bind` by these names or JAX's.

    >>> own_params({"dimension": "axis"}, {"dimension": 0, "accuracy": None})
    {'axis': 0}
    """
    params_here: dict[str, object] = {}
    for name, value in params.items():
        meaning = name if names is None else names.get(name, name)
        if isinstance(meaning, Translation):
            params_here.update(meaning.write(value, params))
        elif value is not None or name not in _OPTIONAL:
            params_here[meaning if isinstance(meaning, str) else name] = value
    return params_here


class NamedParams(dict[str, object]):
    """The parameters of an equation, which have JAX's names too; the keys are rune's names.

    names:    the meaning of each JAX name: another name, or a function of the parameters
    operands: those of the equation, from which the values of some names follow
    A copy may be changed: a JAX name for a parameter here sets that parameter.
    """

    __slots__ = ("names", "operands")

    def __init__(self, params: Params, names: Names, operands: Sequence[Atom]):
        super().__init__(params)
        self.names, self.operands = names, operands

    def __missing__(self, name: str) -> object:
        meaning = self.names[name]
        if isinstance(meaning, str):
            return self[meaning]
        if isinstance(meaning, OfOperands):
            return meaning.read(self, self.operands)
        return meaning.read(self) if isinstance(meaning, Translation) else meaning(self)

    def _key(self, name: str) -> str:
        meaning = self.names.get(name)
        return meaning if isinstance(meaning, str) else name

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(self._key(name), value)

    def copy(self) -> NamedParams:
        """The same parameters, under the same names."""
        return NamedParams(self, self.names, self.operands)

    def pop(self, name: str, *default: object) -> object:
        """Remove and return the parameter of that name; the default if there is none."""
        return super().pop(self._key(name), *default)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.names

    def get(self, name: str, default: object = None) -> object:
        """The parameter of that name, rune's or JAX's, or the default."""
        return self[name] if name in self else default


def named(equations: tuple[Equation, ...]) -> tuple[Equation, ...]:
    """The equations, with parameters that have JAX's names too."""
    return tuple(_named(e) for e in equations)


def _named(equation: Equation) -> Equation:
    names = equation.primitive.jax_names
    if names is None:
        return equation
    return replace(equation, params=NamedParams(equation.params, names, equation.operands))


class EquationNames:
    """An equation."""

    __slots__ = ()
    primitive: Primitive
    operands: tuple[Atom, ...]
    params: Params
    results: tuple[Var, ...]
    frame: Frame | None

    @property
    def invars(self) -> tuple[Atom, ...]:
        """The operands, in the order of JAX."""
        return self.primitive.reordered(self.operands)

    @property
    def outvars(self) -> tuple[Var, ...]:
        """The results."""
        return self.results

    @property
    def source_info(self) -> SourceInfo:
        """The user's line, and the names of the scopes around it."""
        return SourceInfo(self.frame)

    @property
    def effects(self) -> Effects:
        """The side effects of the equation and of the programs in it."""
        rule = self.primitive.effect
        direct = None if rule is None else rule(**self.params)
        effect_sets = (p.effects for p in _programs(tuple(self.params.values())))
        return frozenset(() if direct is None else (direct,)).union(*effect_sets)

    def replace(
        self,
        primitive: Primitive | None = None,
        params: Params | None = None,
        invars: Sequence[Atom] | None = None,
        outvars: Sequence[Var] | None = None,
    ) -> Self:
        """The equation with other parts; None leaves a part as it is."""
        operands = None if invars is None else (primitive or self.primitive).reordered(invars)
        results = None if outvars is None else tuple(outvars)
        changes = {"primitive": primitive, "params": params, "operands": operands, "results": results}
        return replace(self, **{k: v for k, v in changes.items() if v is not None})  # type: ignore[type-var]


class DebugInfo(NamedTuple):
    """Which function is traced, and by which transformation; only messages show it."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] = ()
    result_paths: tuple[str, ...] = ()


class ProgramNames:
    """A program, open or not."""

    __slots__ = ()

    if TYPE_CHECKING:  # fields of a program, properties of an open one

        @property
        def inputs(self) -> tuple[Var, ...]: ...
        @property
        def equations(self) -> tuple[Equation, ...]: ...
        @property
        def outputs(self) -> tuple[Atom, ...]: ...
        @property
        def eqns(self) -> tuple[Equation, ...]: ...
        @property
        def name(self) -> str: ...

    @property
    def invars(self) -> tuple[Var, ...]:
        """The inputs."""
        return self.inputs

    @property
    def outvars(self) -> tuple[Atom, ...]:
        """The outputs."""
        return self.outputs

    @property
    def in_avals(self) -> list[ArrayType]:
        """The types of the inputs."""
        return [v.type for v in self.inputs]

    @property
    def out_avals(self) -> list[ArrayType]:
        """The types of the outputs."""
        return [a.type for a in self.outputs]

    @property
    def effects(self) -> Effects:
        """The side effects of its equations."""
        return frozenset().union(*(e.effects for e in self.equations))

    @property
    def debug_info(self) -> DebugInfo:
        """The name of the traced function. Its arguments and results are numbered."""
        arguments = tuple(f"args[{i}]" for i in range(len(self.inputs)))
        return DebugInfo("jit", self.name, arguments, tuple(f"result[{i}]" for i in range(len(self.outputs))))

    def pretty_print(self, *, source_info: bool = False, name_stack: bool = False, **layout: object) -> str:
        """The text; with `source_info` or `name_stack` the user's line of each equation.

        layout: JAX's options for line breaks and colours (use_color, print_shapes, ...), without
                effect: the text of a program is the same everywhere.
        """
        return self.text(frames=source_info or name_stack)

    def text(self, *, frames: bool = False) -> str:
        """The printed form; with `frames`, the user's line of each equation as a comment."""
        raise NotImplementedError


def _programs(values: tuple[object, ...]) -> Iterator[ProgramNames]:
    for value in values:
        if isinstance(value, ProgramNames):
            yield value
        elif isinstance(value, tuple):
            yield from _programs(value)
