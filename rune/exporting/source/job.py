"""The content of a folder: a plan, its weights, and calls to compare with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rune import dims, dtypes, tree
from rune.array import CPU, Array, put
from rune.backends.shared.executor import Concrete, Shape, concrete, concrete_type, size_values, static_shape
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.dims import Dim
from rune.errors import DimensionError
from rune.exporting.exported import Exported
from rune.exporting.storable import writable
from rune.exporting.trace import exported_function
from rune.lowering.codegen.target import Target
from rune.lowering.plan import Plan
from rune.lowering.stages import stages
from rune.records import dataclass
from rune.transforms.arguments import as_value
from rune.transforms.eval_shape import described

# The C type that holds an element, or a part of one, and the number of parts.
ELEMENTS: Mapping[np.dtype, tuple[str, int]] = {
    dtypes.f32: ("float", 1),
    dtypes.f64: ("double", 1),
    dtypes.c64: ("float", 2),
    dtypes.c128: ("double", 2),
    dtypes.f16: ("uint16_t", 1),
    dtypes.bf16: ("uint16_t", 1),
    **dict.fromkeys((dtypes.bool_, dtypes.f8_e4m3, dtypes.f8_e5m2, dtypes.u4), ("uint8_t", 1)),
    dtypes.i4: ("int8_t", 1),
    **dict.fromkeys(dtypes.KEYS, ("uint32_t", 2)),
}


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call with the results that rune computed."""

    sizes: Mapping[str, int]
    arguments: tuple[np.ndarray, ...]
    results: tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A function to write. sizes: the open ones by name, which are arguments of the entry."""

    name: str
    plan: Plan
    steps: Concrete
    weights: tuple[np.ndarray, ...]
    sizes: Mapping[str, Dim]
    calls: tuple[StoredCall, ...]  # the user's call, then others
    types: tuple[ArrayType, ...]
    out_types: tuple[ArrayType, ...]

    @property
    def arguments(self) -> tuple[np.ndarray, ...]:
        """The arguments of the user's call."""
        return self.calls[0].arguments

    @property
    def results(self) -> tuple[np.ndarray, ...]:
        """The results of the user's call."""
        return self.calls[0].results


@dataclass(frozen=True, slots=True)
class Request:
    """A function to write, the arguments of a call, and the sizes that stay open."""

    function: Callable[..., object]
    args: Sequence[object]
    name: str | None
    dims: Mapping[str, tuple[int | str, int | str | None]] | None
    in_dims: object


def job(request: Request, target: Target) -> Job:
    """The function for arguments like these, lowered for the target. Errors: those of lowering."""
    function = request.function
    leaves, treedef = tree.flatten((request.args, {}))
    values = [_sample_values(t, n) if (t := described(x)) is not None else as_value(x) for n, x in enumerate(leaves)]
    positional, _ = tree.unflatten(treedef, values)
    python_function = (lambda *xs: function.call(*xs)) if isinstance(function, Exported) else function
    language = target.language if f"{target.language}_source" in target.routines else None
    export = exported_function(
        python_function, positional, {}, request.dims, request.in_dims, lambda program: writable(program, language)
    )
    open_types = [t for t in (*export.in_avals, *export.out_avals) if t.is_symbolic]
    plan = stages(export.program, _without_f64(target, export.program)).plan
    label = identifier(request.name or (function.fun_name if isinstance(function, Exported) else export.fun_name))
    weights = tuple(w.numpy() for w in export.weights)
    sizes = dims.symbols_within(*(d for t in open_types for d in t.shape)) if open_types else {}
    steps = concrete(plan, None if open_types else size_values(plan, [*map(static_shape, plan.arguments)]))
    arrays = tuple(np.asarray(v.numpy() if isinstance(v, Array) else v, type_of(v).dtype) for v in values)
    calls = tuple(_calls(export, plan, arrays))
    return Job(label, plan, steps, weights, sizes, calls, export.in_avals, export.out_avals)


# The sizes of further calls, from those of the first one; calls out of range are left out. They
# try empty arrays, single elements, and odd sizes, which no vector width divides.
_CHANGES: tuple[Callable[[int], int], ...] = (
    lambda n: n,
    lambda n: 0,
    lambda n: 1,
    lambda n: n - 1,
    lambda n: 2 * n + 1,
)


def _calls(export: Exported, plan: Plan, arrays: Sequence[np.ndarray]) -> Iterator[StoredCall]:
    """The call with these arguments, and calls of other sizes that repeat or drop elements."""
    weights = [static_shape(w.type) for w in export.weights]
    first_sizes = size_values(plan, [*weights, *(x.shape for x in arrays)])
    for sizes in _unique({name: change(n) for name, n in first_sizes.items()} for change in _CHANGES):
        types = [concrete_type(t, sizes) for t in export.in_avals]
        if not _fit(plan, [*weights, *(static_shape(t) for t in types)]):
            continue
        arguments = [
            np.resize(x, static_shape(t)).astype(t.dtype, copy=False) for x, t in zip(arrays, types, strict=True)
        ]
        outs = export.run(*(put(x, t, CPU) for x, t in zip(arguments, types, strict=True)))
        yield StoredCall(sizes, tuple(arguments), tuple(x.numpy() for x in outs if isinstance(x, Array)))


def _fit(plan: Plan, shapes: Sequence[Shape]) -> bool:
    """Whether a call may have these shapes."""
    try:
        size_values(plan, shapes)
    except DimensionError:
        return False
    return True


def _unique(assignments: Iterable[Mapping[str, int]]) -> Iterator[Mapping[str, int]]:
    """The assignments of sizes without repetitions."""
    earlier: list[Mapping[str, int]] = []
    for sizes in assignments:
        if sizes not in earlier:
            yield sizes
            earlier.append(sizes)


def _without_f64(target: Target, program: Program) -> Target:
    """The target, without f64 unless the program uses it, since many devices lack f64."""
    uses_f64 = any(word in str(program) for word in ("f64", "c128"))
    return target if uses_f64 else replace(target, dtypes=target.dtypes - {dtypes.f64})


def _sample_values(type: ArrayType, number: int) -> Array:
    """Values for an argument that is known by its type alone: normal floats, or zeros."""
    data = np.zeros(type.shape, type.dtype)
    if type.dtype in dtypes.INEXACT:
        data = np.random.default_rng(number).normal(size=type.shape).astype(type.dtype)
    return as_value(data)


_WORDS = frozenset("auto break case char const default do double else enum extern float for goto if int".split())


def identifier(name: str) -> str:
    """The name of the function as a C identifier.

    >>> identifier("softmax"), identifier("for"), identifier("2d")
    ('softmax', 'f_for', 'f_2d')
    """
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return word if word[:1].isalpha() and word not in _WORDS | {"main", "lambda"} else f"f_{word}"


def element(dtype: np.dtype) -> str:
    """The C type that holds an element, or a part of one."""
    if dtype in ELEMENTS:
        return ELEMENTS[dtype][0]
    return f"{'u' if dtype in dtypes.UNSIGNED else ''}int{8 * dtype.itemsize}_t"
