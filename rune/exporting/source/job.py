"""What is written: a plan for one choice of sizes, its weights, and a call to compare with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.backends.shared.executor import Concrete, concrete, size_values, static_shape
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.errors import ArgumentError
from rune.exporting.exported import Exported
from rune.exporting.trace import exported_function
from rune.lowering.codegen.target import Target
from rune.lowering.pipeline import stages
from rune.lowering.plan import Plan
from rune.transforms.arguments import as_value
from rune.transforms.compile.jit import jit
from rune.transforms.eval_shape import described

# The type of C that holds an element, and how many of them one has.
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
class Job:
    """A function to be written: `arguments` and `results` are a call of it, computed by rune."""

    name: str
    plan: Plan
    steps: Concrete
    weights: tuple[np.ndarray, ...]
    arguments: tuple[np.ndarray, ...]
    results: tuple[np.ndarray, ...]
    types: tuple[ArrayType, ...]
    out_types: tuple[ArrayType, ...]


def job(function: Callable[..., object], args: Sequence[object], name: str | None, target: Target) -> Job:
    """The function for arguments like these, lowered for the target."""
    leaves, treedef = tree.flatten((args, {}))
    values = [_drawn(t, n) if (t := described(x)) is not None else as_value(x) for n, x in enumerate(leaves)]
    positional, _ = tree.unflatten(treedef, values)
    called = jit(lambda *xs: function.call(*xs)) if isinstance(function, Exported) else function
    exported = exported_function(called, positional, {}, None, None)
    open_types = [t for t in (*exported.in_avals, *exported.out_avals) if t.is_symbolic]
    if open_types:
        raise ArgumentError(
            f"source: cannot write {exported.fun_name} with open sizes ({open_types[0]})",
            hint="the folder is for arguments of one size: leave dims out",
        )
    plan = stages(exported.program, _without_f64(target, exported.program)).plan
    steps = concrete(plan, size_values(plan, [*map(static_shape, plan.arguments)]))
    label = identifier(name or (function.fun_name if isinstance(function, Exported) else exported.fun_name))
    arrays = tuple(np.asarray(v.numpy() if isinstance(v, Array) else v, type_of(v).dtype) for v in values)
    outs = tuple(x.numpy() for x in exported.run(*values) if isinstance(x, Array))
    weights = tuple(w.numpy() for w in exported.weights)
    return Job(label, plan, steps, weights, arrays, outs, exported.in_avals, exported.out_avals)


def _without_f64(target: Target, program: Program) -> Target:
    """The target; one that need not have f64, unless the program has."""
    has = any(word in str(program) for word in ("f64", "c128"))
    return target if has else replace(target, dtypes=target.dtypes - {dtypes.f64})


def _drawn(type: ArrayType, number: int) -> Array:
    """Values for an argument that is known by its type alone: floats around 0, and zeros."""
    data = np.zeros(type.shape, type.dtype)
    if type.dtype in dtypes.INEXACT:
        data = np.random.default_rng(number).normal(size=type.shape).astype(type.dtype)
    return as_value(data)


_WORDS = frozenset("auto break case char const default do double else enum extern float for goto if int".split())


def identifier(name: str) -> str:
    """A name of the function that C takes.

    >>> identifier("softmax"), identifier("for"), identifier("2d")
    ('softmax', 'f_for', 'f_2d')
    """
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return word if word[:1].isalpha() and word not in _WORDS | {"main", "lambda"} else f"f_{word}"


def element(dtype: np.dtype) -> str:
    """The type of C that holds an element, or a part of one."""
    if dtype in ELEMENTS:
        return ELEMENTS[dtype][0]
    return f"{'u' if dtype in dtypes.UNSIGNED else ''}int{8 * dtype.itemsize}_t"
