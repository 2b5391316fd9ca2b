"""Eager evaluation: the outermost interpreter.

On the CPU NumPy computes a primitive at once, without compilation. On another device an operation
becomes a program of one equation, compiled once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rune import config, dtypes, float_errors
from rune.array import COMMITTED_CPU, CPU, Array, Place
from rune.backends.cpu.meanings import Meaning, meaning_of
from rune.backends.shared.apart import apart, is_long
from rune.backends.shared.host_memory import out_of_memory
from rune.core.escapes import escaped
from rune.core.interpreter import Interpreter, Tracer, type_of, use
from rune.core.lower import Contraction, Library
from rune.core.primitive import EXTENSION, Direct, Primitive
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.types import LARGEST_SIZE, ArrayType
from rune.core.value_keys import Parameters
from rune.core.values import Operand, Params, Value
from rune.errors import BoundsError, MissingRule, NaNError
from rune.options import FIRST_CPU
from rune.profiling import moment
from rune.sharding import Mesh
from rune.transforms.checks.key_reuse import note_use
from rune.transforms.checks.nans_and_bounds import check_eager, watched_families
from rune.transforms.compile.placement import placement
from rune.transforms.compile.run import run_program
from rune.transforms.inspect.profiled import tell
from rune.transforms.sharding.explicit.stage import eager_layouts, put_as_known
from rune.transforms.tracers import TracedArray

_ROUTINES = (Library, Contraction)  # the lowerings of operations for which NumPy may take long


class Evaluate(Interpreter):
    """Computes at once. Values are Arrays, NumPy arrays and Python scalars."""

    __slots__ = ()
    # Stages are core's, which knows no arithmetic: the outermost interpreter gives their tracers
    # some.
    stage_tracer = TracedArray

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """The result as an Array, or a list of them."""
        # Written out, as it is all that most eager operations do besides NumPy's work.
        if type(primitive) is Primitive and primitive.family != EXTENSION and is_plain(config.current()):
            data: list[np.ndarray] = []
            types: list[ArrayType] = []
            for arg in args:
                if type(arg) is Array and arg.place is CPU:
                    data.append(arg.buffer)
                    types.append(arg.type)
                elif type(arg) is np.ndarray:
                    data.append(arg)
                    types.append(ArrayType(arg.shape, arg.dtype))
                else:
                    break
            else:
                operation = operation_on(primitive, tuple(types), tuple(params.items()))
                if operation.is_short:
                    return Array(_at_once(operation, data), operation.results[0])
        return self._process(primitive, args, params)

    def _process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """The same for any operands and settings."""
        layouts = eager_layouts(primitive, args, params) if Mesh.has_explicit else None
        results = self._computed(primitive, args, params)
        return results if layouts is None else put_as_known(results, layouts)

    def _computed(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Array | list[Array]:
        if isinstance(primitive, Direct) and primitive.run is not None:
            with use(self):
                return primitive.run(*args, **params)
        settings = config.current()
        begin = moment() if settings.profile else None
        data, types, place = _operands(primitive.name, args, settings.device)
        # Before computing, so that wrong operands get rune's error and not NumPy's.
        items = params.items()
        # Rune's own operations have no parameters that equal others: keys would only take time.
        is_own = primitive.family != EXTENSION
        operation = operation_on(primitive, types, tuple(items) if is_own else Parameters(items))
        if primitive.multiple_results:
            results = _results(operation, primitive, data, types, args, params, place)
            if begin is not None and place.device is None:
                tell(primitive.name, data, results, begin)
            return results
        # Only watched programs detect an index out of bounds.
        if place.device is None and not settings.check_bounds:
            if settings.check_keys:
                note_use(primitive, data)
            result = Array(np.asarray(computed(operation, data)), operation.results[0], place)
            if begin is not None:
                tell(primitive.name, data, (result,), begin)
            is_checked = settings.check_nans or settings.check_infs
            if is_checked and primitive.family in watched_families():
                check_eager(primitive, data, result)
        else:
            program = one_operation(primitive, types, Parameters(sorted(params.items())))
            try:
                (result,) = run_program(program, args, place)
            except (BoundsError, NaNError) as error:
                # Callers share the program, whose equation has the line of the first call.
                raise error.__class__(error.message, error.hint) from None
        return result


class Operation(NamedTuple):
    """A primitive on operands of known types, as eager evaluation needs it for each call.

    results: the types of the results
    run:     its meaning in NumPy
    is_long: whether it is a routine that has much to do, which must not block Ctrl-C
    is_short: whether it has one small result and is not such a routine
    """

    results: tuple[ArrayType, ...]
    run: Meaning
    is_long: bool
    is_short: bool


@functools.lru_cache(maxsize=16384)
def operation_on(primitive: Primitive, types: tuple[ArrayType, ...], params: tuple) -> Operation:
    """The operation, memoised: eager programs apply the same few again and again."""
    if primitive.reference is None:
        raise MissingRule(f"evaluate: cannot run {primitive} (it has no meaning in NumPy)")
    results = primitive.type_rule(*types, **dict(params))
    is_routine = isinstance(primitive.lower, _ROUTINES) and primitive.family != EXTENSION
    shapes = [tuple(d for d in t.shape if isinstance(d, int)) for t in types]
    run = meaning_of(primitive, types, dict(params))
    if primitive.multiple_results:
        return Operation(results, run, is_routine and is_long(shapes), False)
    is_small = not results.is_symbolic and results.size <= _SMALL
    takes_long = is_routine and is_long(shapes)
    return Operation((results,), run, takes_long, is_small and not takes_long)


_SMALL = 1 << 20  # elements that NumPy can be expected to find memory for


@functools.lru_cache(maxsize=64)
def is_plain(settings: config.Config) -> bool:
    """Whether settings ask for no more of an operation than its result on the CPU."""
    checks = settings.check_nans or settings.check_infs or settings.check_bounds or settings.check_keys
    return not (checks or settings.profile) and settings.device in FIRST_CPU


def _at_once(operation: Operation, data: Sequence[Value]) -> np.ndarray:
    """NumPy's result of a short operation."""
    settings = float_errors.ignore()
    try:
        out = operation.run(*data)
    finally:
        float_errors.restore(settings)
    return out if type(out) is np.ndarray else np.asarray(out)


def computed(operation: Operation, data: Sequence[Value]) -> Any:
    """NumPy's result. Errors: OutOfMemory if there is no memory for it."""
    run = operation.run
    # IEEE results such as 1 / 0 = inf are values here, not warnings.
    settings = float_errors.ignore()
    try:
        if operation.is_long:
            return apart(partial(run, *data))
        return run(*data)
    except (MemoryError, ValueError) as error:
        sizes = [math.prod(d for d in t.shape if isinstance(d, int)) * t.dtype.itemsize for t in operation.results]
        if isinstance(error, ValueError) and sum(sizes) <= LARGEST_SIZE:
            raise  # an error of another kind: NumPy refuses only larger sizes by a ValueError
        raise out_of_memory(sum(sizes)) from error
    finally:
        float_errors.restore(settings)


def _results(
    operation: Operation,
    primitive: Primitive,
    data: Sequence[Value],
    types: tuple,
    args: Sequence[Value],
    params: Mapping[str, object],
    place: Place,
) -> list[Array]:
    """The results of a primitive with several: by NumPy on the CPU, otherwise compiled."""
    if place.device is not None:
        program = one_operation(primitive, types, Parameters(sorted(params.items())))
        return run_program(program, args, place)
    outs = computed(operation, data)
    return [Array(np.asarray(x, t.dtype), t, place) for x, t in zip(outs, operation.results, strict=True)]


def _operands(name: str, args: Sequence[Any], default: str | None) -> tuple[Sequence[Any], tuple, Place]:
    """The data of the arguments if the operation runs on the CPU; their types; the place."""
    data, types, place = [], [], CPU
    # One pass serves arrays on the CPU, the common case; all else starts again after the loop.
    for arg in args:
        kind = type(arg)
        if kind is Array:
            if arg.place is not CPU:
                if arg.place is not COMMITTED_CPU:
                    break
                place = COMMITTED_CPU
            data.append(arg.buffer)
            types.append(arg.type)
        elif kind is np.ndarray:
            data.append(arg)
            types.append(ArrayType(arg.shape, arg.dtype))
        else:
            break
    else:
        # Free arrays on the CPU follow to another default device.
        if default in FIRST_CPU or place is COMMITTED_CPU:
            return data, tuple(types), place
    for arg in args:
        if isinstance(arg, Tracer):
            raise escaped(arg)
    place = placement(name, args)
    arg_types = tuple([type_of(a) for a in args])
    return () if place.device else [_host(a) for a in args], arg_types, place


def _host(value: Operand) -> np.ndarray:
    if type(value) is Array:
        return value.buffer_on(None)
    scalar = dtypes.scalar_type(value)
    return np.asarray(value) if scalar is None else np.asarray(value, scalar[0])


@functools.lru_cache(maxsize=4096)
def one_operation(primitive: Primitive, types: tuple, params: tuple) -> Program:
    """The program of one operation; the same object each time, since it holds its compiled code."""

    def run(*xs: Value) -> list[Array]:
        out = primitive(*xs, **dict(params))
        return out if primitive.multiple_results else [out]

    return stage(run, types, primitive.name).program


EVALUATE = Evaluate(None)
