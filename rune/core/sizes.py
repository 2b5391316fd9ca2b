"""Symbolic sizes of a program, and their values in one call of it.

A program traced for f32[n] may be called with f32[3], or inside another program with f32[m]. Sizes
are read from the shapes of arguments, one axis for each: an axis that is affine in one size once
the sizes before it are known, as n in 2*n + 1, then m in n*m. Programs, plans and executors all
determine the source and the value of a size by these functions.

Invariant: every size is a whole number within its range, and fits every axis; otherwise an error.
Not done: sizes that only several axes together determine (n + m and n - m), and n from n//2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NoReturn

from rune import dims
from rune.core.program import Program
from rune.core.types import ArrayType, Shape
from rune.dims import Dim, Size, substitute
from rune.errors import DimensionError
from rune.records import dataclass

Sizes = Mapping[str, Size]


@dataclass(frozen=True, slots=True)
class SizeSource:
    """The source of a size: axis `axis` of an argument is factor*name + offset.

    The bounds are inclusive; `high` is None for no bound. Bounds, factor and offset may mention
    sizes that are read before, and the factor is never 0.
    """

    name: str
    argument: int
    axis: int
    low: Size
    high: Size | None
    offset: Size = 0
    factor: Size = 1

    @property
    def dim(self) -> Size:
        """The size of the axis in the type of the argument."""
        return dims.symbol(self.name, self.low, self.high) * self.factor + self.offset


# --- where sizes stand ------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def size_sources(types: tuple[ArrayType, ...]) -> tuple[SizeSource, ...]:
    """A source for every size that these types determine, in the order in which they are read.

    Axes that are a size itself come first, except those whose bounds are read later.
    """
    axes: dict[Dim, tuple[int, int]] = {}
    for argument, type in enumerate(types):
        for axis, dim in enumerate(type.shape):
            if isinstance(dim, Dim):
                axes.setdefault(dim, (argument, axis))
    pending = sorted(axes, key=lambda dim: dims.as_symbol(dim) is None)
    sources: dict[str, SizeSource] = {}
    # Rounds, since an axis may be solved only after sizes of later axes are known.
    count = -1
    while len(sources) > count:
        count = len(sources)
        for dim in pending:
            source = _source(dim, axes[dim], sources)
            if source is not None:
                sources[source.name] = source
    return tuple(sources.values())


def _source(dim: Dim, at: tuple[int, int], known: Mapping[str, SizeSource]) -> SizeSource | None:
    """The source of the one unknown size in `dim`; None if `dim` does not determine it."""
    unknown = [s for s in dims.symbols(dim) if s.name not in known]
    if len(unknown) != 1:
        return None
    (s,) = unknown
    factor = dims.coefficient(dim, s.name)
    within = dims.symbols_within(s.low, 0 if s.high is None else s.high)
    if factor is None or dims.equal(factor, 0) is not False or within.keys() - known.keys():
        return None
    offset = dim - factor * dims.symbol(s.name, s.low, s.high)
    return SizeSource(s.name, *at, s.low, s.high, offset, factor)


def untold_sizes(program: Program) -> dict[str, Dim]:
    """The sizes that a program mentions and its inputs do not determine, by name."""
    determined = {source.name for source in size_sources(program.input_types)}
    return {n: d for n, d in sorted(mentioned_sizes(program).items()) if n not in determined}


def mentioned_sizes(program: Program) -> dict[str, Dim]:
    """The sizes in the types and parameters of a program, by name, without inner programs."""
    return dims.symbols_within(*_dims_of(program))


def _dims_of(program: Program) -> Iterator[Dim]:
    for var in program.inputs:
        yield from _dims_in(var.type.shape)
    for equation in program.equations:
        yield from _dims_in(tuple(equation.params.values()))
        for var in equation.results:
            yield from _dims_in(var.type.shape)


def _dims_in(value: object) -> Iterator[Dim]:
    if isinstance(value, Dim):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            if type(item) is not int:  # most items are
                yield from _dims_in(item)
    elif is_dataclass(value) and not isinstance(value, type | Program):
        yield from _dims_in(tuple(getattr(value, f.name) for f in fields(value)))


def carriers(types: Sequence[ArrayType], names: Iterable[str]) -> set[int]:
    """The numbers of the arguments that determine these sizes.

    For a size that no argument determines by itself, such as n and m with only an axis of n*m: all
    arguments that mention it. The enclosing program of a loop knows such a size.
    """
    sources = {source.name: source for source in size_sources(tuple(types))}
    needed: dict[str, SizeSource] = {}
    untold: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        source = sources.get(name)
        if source is None:
            untold.add(name)
        elif name not in needed:
            needed[name] = source
            pending += dims.symbols_within(source.dim)
    mentioning = {
        number
        for number, type in enumerate(types)
        if untold and untold & dims.symbols_within(*_dims_in(type.shape)).keys()
    }
    return mentioning | {source.argument for source in needed.values()}


# --- reading them -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arguments:
    """The shapes of the arguments of a program, with words for messages.

    action: the beginning of every message, "f: cannot run"; label: the name of an argument.
    """

    action: str
    declared: tuple[ArrayType, ...]
    shapes: Sequence[Shape]
    label: Callable[[int], str] = "argument {}".format

    def refuse(self, why: str, hint: str | None = None) -> NoReturn:
        """Errors: DimensionError, always."""
        raise DimensionError(f"{self.action} {why}", hint)


def read_sizes(arguments: Arguments, sources: Sequence[SizeSource]) -> dict[str, Size]:
    """The sizes of a call, in the order of the sources, checked against every axis.

    Errors: DimensionError for a size that is not an integer, "f: cannot run with 2*n = 7 (no
    whole n; axis 0 of argument 0)", for one out of its range, and for axes that contradict.
    """
    sizes: dict[str, Size] = {}
    for source in sources:
        sizes[source.name] = _read(arguments, source, sizes)
        _check_range(arguments, source, sizes)
    for number, shape in enumerate(arguments.shapes):
        _check_shape(arguments, number, shape, sizes)
    return sizes


def _read(arguments: Arguments, source: SizeSource, known: Sizes) -> Size:
    shape = arguments.shapes[source.argument]
    if source.axis >= len(shape):
        _check_shape(arguments, source.argument, shape, known)
    length = shape[source.axis]
    factor = substitute(source.factor, known)
    multiple = length - substitute(source.offset, known)
    if dims.divides(factor, multiple):
        return multiple // factor
    reading = f"with {source.dim} = {length}{_for(source.dim, known)}"
    if isinstance(multiple, int):
        arguments.refuse(f"{reading} (no whole {source.name}; {_place(arguments, source)})")
    arguments.refuse(
        f"{reading} ({factor} may not divide {multiple}; {_place(arguments, source)})",
        f"declare a size of its own whose multiple {length} is",
    )


def _check_range(arguments: Arguments, source: SizeSource, sizes: Sizes) -> None:
    value, low = sizes[source.name], substitute(source.low, sizes)
    high = None if source.high is None else substitute(source.high, sizes)
    above, below = dims.at_most(low, value), high is None or dims.at_most(value, high)
    if above and below:
        return
    name, limits = source.name, f"{source.low}..{'' if source.high is None else source.high}"
    inside = f"{dims.ranges(value)}, " if isinstance(value, Dim) else ""
    arguments.refuse(
        f"with {name} = {value} ({inside}{name} in {limits}; {_place(arguments, source)})", _range_hint(source, value)
    )


def _range_hint(source: SizeSource, value: Size) -> str | None:
    name, low, high = source.name, source.low, source.high
    if isinstance(value, Dim):
        return f"declare bounds for {value} that keep it in the range of {name}"
    if isinstance(low, Dim) or isinstance(high, Dim) or value < 0:
        return None
    wider = min(low, value), value if high is None else max(high, value)
    return f'widen the range: dims={{"{name}": {wider}}}'


def _place(arguments: Arguments, source: SizeSource) -> str:
    return f"axis {source.axis} of {arguments.label(source.argument)}"


def _for(x: Size, known: Sizes) -> str:
    """The known sizes in x: ` for n = 3, m = 4`; nothing if x is a size itself."""
    names = {s.name for s in dims.symbols(x)} & known.keys()
    if not names or dims.as_symbol(x) is not None:
        return ""
    return " for " + ", ".join(f"{name} = {known[name]}" for name in sorted(names))


def _check_shape(arguments: Arguments, number: int, shape: Shape, sizes: Sizes) -> None:
    declared_type = arguments.declared[number]
    expected_shape = tuple(substitute(dim, sizes) for dim in declared_type.shape)
    if expected_shape == tuple(shape):
        return
    label = arguments.label(number)
    if len(expected_shape) != len(shape):
        arguments.refuse(f"with shape {list(shape)} ({label} is {declared_type})")
    axis = next(axis for axis, size in enumerate(expected_shape) if size != shape[axis])
    dim = declared_type.shape[axis]
    if isinstance(dim, int):
        arguments.refuse(f"with shape {list(shape)} (axis {axis} of {label}, {declared_type}, is {dim})")
    arguments.refuse(
        f"with {dim} = {expected_shape[axis]}{_for(dim, sizes)} (axis {axis} of {label} is {shape[axis]})",
        "sizes that may differ need two names in dims, and equal ones the same name",
    )


def match_sizes(declared: tuple[ArrayType, ...], actual: Sequence[ArrayType], action: str) -> dict[str, Size]:
    """The values that the declared sizes take in the actual types; empty if no type is symbolic.

    Errors: DimensionError "<action> with n = 3 (axis 0 of argument 1 is 4)".
    """
    if all(a is b or not a.is_symbolic for a, b in zip(declared, actual, strict=True)):
        return {}
    arguments = Arguments(action, declared, [t.shape for t in actual])
    return read_sizes(arguments, size_sources(declared))


# --- filling them in --------------------------------------------------------------------------


def with_sizes(value: Any, sizes: Sizes) -> Any:
    """A static parameter with the sizes filled in.

    A program does not change: it is matched against its own arguments when it is evaluated.
    """
    if isinstance(value, Dim):
        return substitute(value, sizes)
    if isinstance(value, tuple):
        return tuple(with_sizes(item, sizes) for item in value)
    if is_dataclass(value) and not isinstance(value, type | Program):
        return replace(value, **{f.name: with_sizes(getattr(value, f.name), sizes) for f in fields(value)})
    return value


def params_with_sizes(params: Mapping[str, object], sizes: Sizes) -> Mapping[str, object]:
    """The parameters of an equation with the sizes filled in."""
    return {k: with_sizes(v, sizes) for k, v in params.items()} if sizes else params


def type_with_sizes(type: ArrayType, sizes: Sizes) -> ArrayType:
    """A type with the sizes filled in."""
    return type.with_shape(tuple(substitute(d, sizes) for d in type.shape)) if sizes else type
