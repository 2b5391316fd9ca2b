"""Arrays that a kernel changes in place, and reads as they were before.

    y = x.at[1:n].set(x[0:n - 1])        point i writes y[i + 1], and reads x[i]

If y lies where x was, another point may have changed x[i] already. Such a kernel gets the array
twice, once to change it and once to read it, and the plan separates the two by a copy. Once is
enough if a point reads only elements that no other point writes, and reads them no later than it
writes them itself: in x.at[i].add(1), say.

Invariant: no other point, and no earlier statement, changes what a point reads of an input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from rune import dims
from rune.core.program import Var
from rune.dims import Size
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.rewrite import names_in, size_names, walk_expr
from rune.lowering.kernels import (
    Axes,
    Buffer,
    Kernel,
    Scan,
    Statement,
    Stream,
    Write,
    expressions,
    inner_axes,
    inner_lets,
)

Inputs = tuple[Var, ...]


def with_originals(kernel: Kernel, inputs: Inputs) -> tuple[Kernel, Inputs]:
    """The kernel and its inputs; an input that may be read after it has changed is there twice."""
    mutated_inputs = set[str]()
    for source, output in kernel.in_place:
        if source in mutated_inputs or _is_read_too_late(kernel, source, output):
            kernel, inputs = _with_two(kernel, inputs, source, output)
        mutated_inputs.add(source)
    return kernel, inputs


def _with_two(kernel: Kernel, inputs: Inputs, source: str, output: str) -> tuple[Kernel, Inputs]:
    """The kernel with the input a second time, which becomes the output."""
    number = [b.name for b in kernel.inputs].index(source)
    second = Buffer(f"x{len(kernel.inputs)}", kernel.inputs[number].type)
    pairs = tuple((second.name, output) if pair == (source, output) else pair for pair in kernel.in_place)
    return replace(kernel, inputs=(*kernel.inputs, second), in_place=pairs), (*inputs, inputs[number])


def _is_read_too_late(kernel: Kernel, source: str, output: str) -> bool:
    """Whether an element of the input may be read after it has changed."""
    reads = [(n, load) for n, s in enumerate(kernel.body) for load in _loads(s) if load.buffer == source]
    writes = [n for n, s in enumerate(kernel.body) if isinstance(s, Write) and s.output == output]
    return bool(reads) and (len(writes) != 1 or not all(_is_in_time(kernel, *read, writes[0]) for read in reads))


def _is_in_time(kernel: Kernel, reader: int, load: Load, writer: int) -> bool:
    """Whether no other point writes what a statement reads, and its own point writes only later."""
    write, reading = kernel.body[writer], kernel.body[reader]
    assert isinstance(write, Write)
    if reader > writer:
        return False
    places = [w for r, w in zip(load.indices, write.indices, strict=True) if r == w]
    if reader == writer:  # a value is complete before it is written
        return _several(kernel.domain) | _several(write.axes) <= _decided(places, _varying(kernel, write))
    # Two statements may use one name for axes or scalars of their own.
    local_names = _bound_within(write) | _bound_within(reading)
    outer = [place for place in places if not size_names(place) & local_names]
    return _several(kernel.domain) <= _decided(outer, _varying(kernel, None))


def _decided(places: Iterable[Size], varying: Set[str]) -> Set[str]:
    """The axes whose position follows from an index: those that are the only axis of an index."""
    alone = [(place, size_names(place) & varying) for place in places]
    return {name for place, names in alone for name in names if len(names) == 1 and _tells(place, name)}


def _tells(index: Size, name: str) -> bool:
    """Whether other values of the symbol give other indices."""
    step = dims.coefficient(index, name)
    return isinstance(step, int) and step != 0


def _varying(kernel: Kernel, within: Statement | None) -> Set[str]:
    """The names whose values may differ between points of the domain (or of a statement)."""
    varying = set(_several(kernel.domain))
    for statement in kernel.body:
        # A Let over varying names varies; sums and rows of a point always may.
        if isinstance(statement, Let):
            varying |= _following((statement,), varying)
        elif not isinstance(statement, Write | Scan | Stream) and kernel.domain:
            varying.add(statement.name)
    if within is not None:
        varying |= _several(inner_axes(within))
        varying |= _following(inner_lets(within), varying)
    return varying


def _following(lets: Sequence[Let], varying: Set[str]) -> Set[str]:
    """The names of lets that vary because their values read names that vary."""
    names = set[str]()
    for let in lets:
        if names_in(let.value) & (varying | names):
            names.add(let.name)
    return names


def _several(axes: Axes) -> frozenset[str]:
    """The axes with more than one point."""
    return frozenset(axis.name for axis in axes if axis.size != 1)


def _bound_within(statement: Statement) -> frozenset[str]:
    return frozenset(x.name for x in (*inner_axes(statement), *inner_lets(statement)))


def _loads(statement: Statement) -> Iterator[Load]:
    for expr in expressions(statement):
        yield from (part for part in walk_expr(expr) if isinstance(part, Load))
