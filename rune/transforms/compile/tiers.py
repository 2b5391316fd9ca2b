"""Functions of several operations, compiled once they are called often: tiers.

The fourteen operations of `gradient` of ten numbers take some µs each, one after another; a
compiled call takes a fraction of one.

But compiling takes as long as hundreds of calls, so it waits for as many similar calls: with equal
settings, types and places of arrays, and all other arguments equal by value. The results do not
reveal it: code is compiled only where it gives the bits of eager evaluation (exact.py), in one
piece or in several, with the functions of eager evaluation between them (pieces.py). Functions that
only move elements become a line of NumPy views. All other calls stay eager: those that cannot be
compiled so, those under checks, on a device, or under a transformation.

On a mesh a call is compiled at once: between its operations, parts that the devices do not share
evenly would be gathered on all of them (the two slices that `roll` joins).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import ParamSpec, TypeVar, cast

import numpy as np

from rune import config, tree
from rune.array import CPU, Array
from rune.core.evaluate import eval_program
from rune.core.interpreter import is_evaluating
from rune.core.program import Program
from rune.errors import RuneError
from rune.lowering.live import live
from rune.ops import movement
from rune.options import FIRST_CPU
from rune.sharding import Mesh
from rune.sharding.context import is_checked
from rune.sharding.memory import Spread
from rune.transforms.compile.exact import is_exact
from rune.transforms.compile.jit import jit
from rune.transforms.compile.pieces import flat, in_order, line_of, pieces_of
from rune.transforms.compile.trace_cache import Traced
from rune.transforms.programs.straight_line import Line, straight_line
from rune.tree import TreeDef

P = ParamSpec("P")
R = TypeVar("R")
Specialised = Callable[..., R]  # only on the arrays among the arguments

OFTEN = 256  # calls of a kind before it is compiled
KINDS = 256  # the most kinds that are counted for a function
LARGE = 1 << 18  # elements from which the second call makes up for compiling (numpy/composites.py)
LARGE_RESULT = 1 << 19  # the same for intermediate values
# NumPy gives views for these, at less than the cost of a copy: not worth compiling.
_VIEWS = frozenset({movement.reshape, movement.transpose, movement.reverse, movement.slice_})
_BY_VALUE = frozenset({bool, int, str, type(None)})  # types of arguments that are compared by value


def tiered(function: Callable[P, R]) -> Callable[P, R]:
    """`function` of arrays, whose eager calls are compiled after many similar ones.

    >>> import rune.numpy as rnp
    >>> twice = tiered(lambda x: x + x)
    >>> [float(twice(rnp.array(1.5))) for _ in range(OFTEN + 2)] == [3.0] * (OFTEN + 2)
    True
    """
    # For each kind of call: how often it was made, its compiled code, or None if it stays eager.
    kinds: dict[Hashable, int | Specialised[R] | None] = {}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # What is compiled unchecked must not serve calls that are checked.
        if not is_evaluating() or (Mesh.has_explicit and not is_checked()):
            return function(*args, **kwargs)
        arrays: list[Array] = []
        parts: list[Hashable] = [config.current()]
        for x in args:
            # What `_kind` does, without the call, which is most of the cost of a short function.
            if type(x) is Array and x.place is CPU:
                arrays.append(x)
                parts.append(x.type)
            else:
                parts.append(_kind(x, arrays))
        if kwargs:
            parts += [*kwargs, *[_kind(x, arrays) for x in kwargs.values()]]
        key = tuple(parts)
        state = kinds.get(key, 0)
        if state is None or None in key:
            return function(*args, **kwargs)
        if not isinstance(state, int):
            try:
                return state(*arrays)
            except RuneError:  # the function itself gives a better error
                return function(*args, **kwargs)
        if len(kinds) >= KINDS:
            _forget_seldom(kinds)
        if state == 0 and any(map(_is_on_mesh, arrays)):
            kinds[key] = _as_one_program(function, args, kwargs, arrays)
            return call(*args, **kwargs)
        result = function(*args, **kwargs)
        kinds[key] = _next(state, function, args, kwargs, arrays)
        return result

    return call


def _kind(argument: object, arrays: list[Array]) -> Hashable:
    """The key of an argument, whose arrays are appended to `arrays`; None if it has no key."""
    if type(argument) is Array:
        arrays.append(argument)
        if argument.place is CPU:
            return argument.type
        return (argument.type, argument.place) if _is_on_mesh(argument) else None
    if type(argument) in _BY_VALUE:
        return type(argument), argument
    if type(argument) is float:
        return float, argument.hex()  # tells -0.0 from 0.0, which are equal
    if type(argument) is tuple or type(argument) is list:
        parts = [_kind(x, arrays) for x in argument]
        return None if None in parts else (type(argument), *parts)
    return (type(argument), argument) if isinstance(argument, type | np.dtype) else None


def _is_on_mesh(x: Array) -> bool:
    return isinstance(x.place.device, Spread)


def _forget_seldom(kinds: dict[Hashable, int | Specialised[R] | None]) -> None:
    """Drop the kinds that are not compiled; if nearly all are, drop everything."""
    for key, state in list(kinds.items()):
        if not callable(state):
            kinds.pop(key, None)
    if len(kinds) > KINDS // 2:
        kinds.clear()


def _next(
    count: int, function: Callable[..., R], args: tuple, kwargs: Mapping[str, object], arrays: Sequence[Array]
) -> int | Specialised[R] | None:
    """The state of a kind of calls after one more call."""
    # Asked once: settings and shapes are part of the key, so later calls would get the same answer.
    if count == 0 and not _is_worth_it(arrays):
        return None
    return count + 1 if count < OFTEN else _specialised(function, args, kwargs, arrays)


def _is_worth_it(arrays: Sequence[Array]) -> bool:
    """Whether no array is large, and no setting needs operations one by one."""
    return not is_watched(config.current()) and all([x.size < LARGE for x in arrays])


def is_watched(s: config.Config) -> bool:
    """Whether settings ask for more of an operation than its result on the CPU, or compiled code
    has other results than NumPy."""
    is_checked = s.check_nans or s.check_infs or s.check_bounds or s.check_keys or s.check_leaks
    is_elsewhere = s.device not in FIRST_CPU
    return bool(is_checked or is_elsewhere or s.disable_jit or s.checkified or s.profile or s.flush_denormals)


def _specialised(
    function: Callable[..., R], args: tuple, kwargs: Mapping[str, object], arrays: Sequence[Array]
) -> Specialised[R] | None:
    """The function of the arrays alone, as compiled code or as a line; None if neither works."""
    # All other arguments are constants: calls with others are of another kind.
    jitted = jit(_of_arrays(function, args, kwargs))
    try:
        trace = jitted.traced(*arrays)
    except RuneError:  # such as a size that depends on values
        return None
    program = live(trace.program)
    # A draw without a key, say, needs another answer in each call.
    if trace.needs or any(v.type.size >= LARGE_RESULT for e in program.equations for v in e.results):
        return None
    if all(equation.primitive in _VIEWS for equation in program.equations):
        line = _line(program, trace)
        return None if line is None else _on_buffers(line, trace)
    return jitted if is_exact(program) else _in_pieces(program, trace)


def _as_one_program(
    function: Callable[..., R], args: tuple, kwargs: Mapping[str, object], arrays: Sequence[Array]
) -> Specialised[R] | None:
    """The function of the arrays alone, for devices of a mesh; None if it stays eager."""
    if is_watched(config.current()):
        return None
    jitted = jit(_of_arrays(function, args, kwargs))
    try:
        trace = jitted.traced(*arrays)
    except RuneError:
        return None
    # A single operation is a program of its own already.
    return jitted if len(live(trace.program).equations) > 1 and not trace.needs else None


def _of_arrays(function: Callable[..., R], args: tuple, kwargs: Mapping[str, object]) -> Specialised[R]:
    leaves, treedef = tree.flatten((args, kwargs))
    static_leaves = [None if type(x) is Array else x for x in leaves]
    places = [k for k, x in enumerate(leaves) if type(x) is Array]

    def of_arrays(*arrays: object) -> R:
        full_leaves = list(static_leaves)
        for place, array in zip(places, arrays, strict=True):
            full_leaves[place] = array
        positional, keywords = tree.unflatten(treedef, full_leaves)
        return function(*positional, **keywords)

    of_arrays.__name__ = of_arrays.__qualname__ = getattr(function, "__name__", "function")
    return of_arrays


def _line(program: Program, trace: Traced) -> Line | None:
    """The function as a line of NumPy functions; None if they cannot compute it."""
    line = straight_line(program)
    # A captured value that is not an array on the CPU has no buffer for NumPy.
    return None if len(_captured(trace)) < len(trace.captured) else line


def _captured(trace: Traced) -> list[Array]:
    """The captured values, which are CPU arrays."""
    return [x for x in trace.captured if type(x) is Array and x.place is CPU]


def _in_pieces(program: Program, trace: Traced) -> Specialised[R] | None:
    """Compiled pieces and NumPy's functions; only the latter for arrays in another order."""
    program = live(flat(program))  # without the results of inlined programs that nothing reads
    by_functions = _line(program, trace)
    if by_functions is None:
        return None
    parts = pieces_of(program)
    if len(parts) == 1 and isinstance(parts[0], Program):
        any_layout: Specialised[R] = _on_buffers(by_functions, trace)
        return _in_one_piece(jit(_of_program(in_order(program), trace)), any_layout)
    by_pieces = line_of(program, parts) if any(isinstance(part, Program) for part in parts) else None
    line = by_functions if by_pieces is None else _by_layout(by_pieces, by_functions)
    specialised: Specialised[R] = _on_buffers(line, trace)
    return specialised


def _in_one_piece(compiled: Specialised[R], by_functions: Specialised[R]) -> Specialised[R]:
    def call(*arrays: Array) -> R:
        for x in arrays:
            if not x.buffer.flags.c_contiguous:
                return by_functions(*arrays)
        return compiled(*arrays)

    return call


def _by_layout(by_pieces: Line, by_functions: Line) -> Line:
    def line(buffers: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        # Pieces were compiled for C order; NumPy's functions read views in any order.
        for x in buffers:
            if not x.flags.c_contiguous:
                return by_functions(buffers)
        return by_pieces(buffers)

    return line


def _on_buffers(line: Line, trace: Traced) -> Specialised[R]:
    """A line as a function of arrays."""
    before, types = [x.buffer for x in _captured(trace)], trace.out_types

    if trace.out_tree.kind is None and not before:
        (type,) = types

        def of_one_result(*arrays: Array) -> Array:
            (out,) = line([x.buffer for x in arrays])
            return Array(out, type, CPU)

        return cast("Specialised[R]", of_one_result)

    build: Specialised[R] = _builder(trace.out_tree)

    def call(*arrays: Array) -> R:
        outs = line([*before, *[x.buffer for x in arrays]])
        return build([*map(Array, outs, types, repeat(CPU))])

    return call


def _builder(treedef: TreeDef) -> Specialised[R]:
    """`treedef.unflatten` of enough leaves; at once, where no container has another."""
    is_flat = treedef.kind is not None and all([part.kind is None for part in treedef.parts])
    return partial(treedef.kind.join, treedef.data) if treedef.kind and is_flat else treedef.unflatten


def _of_program(program: Program, trace: Traced) -> Specialised[R]:
    """A program as a function of arrays."""

    def of_arrays(*arrays: Array) -> R:
        return trace.out_tree.unflatten(eval_program(program, [*trace.captured, *arrays]))

    of_arrays.__name__ = of_arrays.__qualname__ = program.name
    return of_arrays
