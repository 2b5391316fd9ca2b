"""User-defined operations: a user's rules as the primitive that every transformation reads.

An operation with an expansion inherits each rule that the user leaves out: types, derivatives,
transposition and batching follow from the operations in the expansion. The first of these that the
user has given computes the results:

    eagerly on the CPU      native, meaning, expand
    compiled for the CPU    native, expand, meaning
    on any other device     sources, expand; on the host, with a warning: native, meaning
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from rune import tree
from rune.backends.cpu.foreign import Foreign, address_of
from rune.control.scan.scan import map as map_rows
from rune.core.axes import own_axis
from rune.core.interpreter import type_of
from rune.core.lists import merge, omit, pick, scatter
from rune.core.lower import Library, always
from rune.core.primitive import EXTENSION, NOT_DIFFERENTIABLE, ZERO, Direct, JvpRule, Primitive, Rule
from rune.core.source import Source
from rune.core.staging import Staged, stage
from rune.core.types import ArrayType
from rune.core.value_keys import Parameters
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, MissingRule, at_line
from rune.extend.signatures import Docstring, Signature, require_callable, require_operands
from rune.ops.movement import repeat_lane
from rune.records import dataclass
from rune.transforms.arguments import array_leaves
from rune.transforms.batching.batch import batch_flat
from rune.transforms.compile.placement import placement
from rune.transforms.compile.run import run_program
from rune.transforms.custom.rules import as_arrays
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.derivatives.transpose import backward
from rune.transforms.eager import one_operation

Itself = Callable[[], Primitive]  # a rule's own primitive, which exists only after its rules do


@dataclass(frozen=True, slots=True)
class Native:
    """A C function that computes the operation on the CPU.

    function: from ctypes or numba's `cfunc`, or an address. It takes a pointer to each operand,
              then one to each result, and then the numbers that `sizes` returns.
    sizes:    rule(*types, **params) -> integers (int64_t) and floats (double)

    >>> import ctypes, rune
    >>> from rune import extend
    >>> @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_float))
    ... def doubled(x, out):
    ...     out[0] = 2 * x[0]
    >>> extend.primitive("doubled", types=lambda x: x, native=extend.Native(doubled))(3.0)
    Array(6., f32*[], cpu:0)
    """

    function: Any
    sizes: Rule = lambda *types, **params: ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Operation(Direct):
    """A user-defined operation. `meaning` computes it in NumPy; None if the user gave no such rule.

    form: the function that lends the operation its signature and docstring

    >>> from rune import extend
    >>> extend.primitive("twice", expand=lambda x: x + x)
    twice
    """

    meaning: Rule | None = None
    form: Rule | None = None
    __doc__ = Docstring(__doc__)  # type: ignore[assignment]
    __signature__ = Signature()

    def __call__(self, *args: Any, **params: object) -> Any:
        """Apply the operation to arrays and numbers, in the current context."""
        require_operands(self.name, self.meaning, args, params)
        values = array_leaves(self.name, args, tree.structure(args))
        try:
            return Direct.__call__(self, *values, **params)
        except TypeError:
            require_callable(self.name, (self.form, self.meaning), args, params)
            raise


def primitive(
    name: str,
    *,
    types: Rule | None = None,
    meaning: Rule | None = None,
    expand: Rule | None = None,
    native: Native | None = None,
    sources: Sequence[Source] = (),
    jvp: Sequence[JvpRule] | Rule | None = None,
    transpose: Rule | None = None,
    batch: Rule | None = None,
    multiple_results: bool = False,
) -> Operation:
    """Define an operation, called like a function: operands by position, parameters by name.

    types:     rule(*types, **params) -> the type of the result, or a tuple; follows from `expand`
    meaning:   rule(*numpy arrays, **params) -> an array, or a tuple of several
    expand:    rule(*arrays, **params) -> the same results by rune's operations, for all devices
    native:    a C function, for the CPU
    sources:   kernels in CUDA C or OpenCL C, each for the devices that take its language
    jvp:       one rule(tangent, *operands, result, **params) for each operand, linear in the
               tangent, or ZERO, or NOT_DIFFERENTIABLE("why"); or one rule for all operands,
               rule(primals, tangents, **params) -> (results, tangents), where None means zero
    transpose: rule(cotangent, is_linear, *operands, **params) -> a cotangent or None for each;
               it receives the types of the linear operands in place of their values
    batch:     rule(is_batched, size, *operands, **params) -> (result, is_batched), with the batch
               axis first; or `leading`, or `lane_by_lane`

    Types: those of the rule `types`; parameters are static and hashable. `help` shows the docstring
    of expand or meaning. Errors: ArgumentError if no rule computes the results, or their types.

    >>> import numpy as np, rune, rune.numpy as rnp
    >>> from rune import extend
    >>> rules = dict(types=lambda x: x, jvp=[lambda t, x, y: t * (1 - rnp.exp(-y))])
    >>> softplus = extend.primitive("softplus", meaning=lambda x: np.logaddexp(x, 0), **rules)
    >>> rune.jit(rune.grad(softplus))(0.0)
    Array(0.5, f32*[], cpu:0)
    """
    _require(name, meaning or expand or native or sources, "one of meaning, expand, native and sources required")
    _require(name, types or expand, "types= or expand= required, for the types of its results")
    _require(name, not (multiple_results and isinstance(jvp, Sequence)), "with several results, jvp= is one function")
    expansion = None if expand is None else _Expansion(name, expand, multiple_results)
    type_rule: Rule = types or (lambda *ts, **params: expansion.types(ts, params))  # type: ignore[union-attr]
    operation: Operation = Operation(
        name,
        EXTENSION,
        type_rule,
        _foreign(name, native, type_rule) if native else meaning,
        jvp=tuple(map(_linear_rule, jvp)) if isinstance(jvp, Sequence) else None,
        transpose=_transpose_rule(transpose) if transpose else expansion and expansion.transpose,
        batch=_batch_rule(batch, lambda: operation) if batch else expansion and expansion.batch,
        lower=_library(native is not None, bool(expand), tuple(sources)),
        expand=expansion and expansion.results,
        multiple_results=multiple_results,
        jvp_equation=_jvp_of(jvp, expansion, lambda: operation),
        run=None if native or meaning else _eager(expansion, bool(sources), lambda: operation),  # they run themselves
        meaning=meaning,
        form=expand or meaning or types,
    )
    return operation


def _library(is_native: bool, has_expansion: bool, sources: tuple[Source, ...]) -> Library | None:
    """How the compiler calls the operation; None if it compiles the expansion alone."""
    if has_expansion and not is_native and not sources:
        return None
    # With an expansion, compiled code never calls the NumPy meaning: only `check` compares with it.
    pays = (lambda *ts, **params: is_native) if has_expansion else always
    return Library(lambda *ts, **params: (), pays, borrows=is_native, sources=sources)


def _eager(expansion: _Expansion | None, has_sources: bool, itself: Itself) -> Rule | None:
    """The eager rule of an operation without a meaning: its expansion, or on a device a kernel."""
    if not has_sources:
        return expansion and expansion.results

    def run(*args: Value, **params: object) -> object:
        operation, place = itself(), placement(itself().name, args)
        if place.device is None and expansion is not None:
            return expansion.results(*args, **params)
        program = one_operation(operation, tuple(map(type_of, args)), Parameters(sorted(params.items())))
        outs = run_program(program, args, place)
        return outs if operation.multiple_results else outs[0]

    return run


def _foreign(name: str, native: Native, type_rule: Rule) -> Foreign:
    return Foreign(name, address_of(name, native.function), type_rule, native.sizes)


def _require(name: str, condition: object, why: str) -> None:
    if not condition:
        raise ArgumentError(f"extend: cannot define {name} ({why})")


# --- rules as users write them ------------------------------------------------------------------


def _linear_rule(rule: Any) -> JvpRule:
    if rule is ZERO or isinstance(rule, NOT_DIFFERENTIABLE):
        return rule

    def adapted(*values: Value, **params: object) -> Any:
        with at_line(None):  # errors in the user's rule name its own lines, not the equation's
            return _value(rule(*as_arrays(values), **params))

    return adapted


def _jvp_of(jvp: object, expansion: _Expansion | None, itself: Itself) -> Rule | None:
    """The derivative rule of the whole equation; None if each operand has a rule of its own."""
    if callable(jvp):
        return _equation_rule(jvp, itself)
    if jvp is None and expansion is not None:
        return expansion.jvp(itself)
    return _no_tangents(itself) if jvp is None else None


def _no_tangents(itself: Itself) -> Rule:
    def refuse(primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, object]) -> NoReturn:
        raise MissingRule(f"jvp: cannot differentiate {itself()} (it has no jvp rule)")

    return refuse


def _equation_rule(rule: Rule, itself: Itself) -> Rule:
    def adapted(primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, object]) -> Any:
        directions = [None if t is None else as_arrays([t])[0] for t in tangents]
        with at_line(None):
            outs, out_tangents = rule(tuple(as_arrays(primals)), tuple(directions), **params)
        if not itself().multiple_results:
            outs, out_tangents = [outs], [out_tangents]
        return [*map(_value, outs)], [None if t is None else _value(t) for t in out_tangents]

    return adapted


def _transpose_rule(rule: Rule) -> Rule:
    def adapted(ct: Any, linear: Sequence[bool], *inputs: Any, **params: object) -> list[Any]:
        values = [x if lin else as_arrays([x])[0] for x, lin in zip(inputs, linear, strict=True)]
        with at_line(None):
            return [None if c is None else _value(c) for c in rule(ct, tuple(linear), *values, **params)]

    return adapted


def leading(operation: Primitive, batched: Sequence[bool], size: Size, *args: Value, **params: object) -> Any:
    """The batch rule of an operation that accepts extra leading axes: the batch axis becomes one.

    Shapes: the operation takes any leading axes. Errors: those of the operation.

    >>> import numpy as np, rune
    >>> from rune import extend
    >>> flipped = lambda x: x[..., ::-1]
    >>> flip = extend.primitive("flip", types=lambda x: x, meaning=flipped, batch=extend.leading)
    >>> rune.vmap(flip)(np.arange(4).reshape(2, 2))
    Array([[1, 0],
           [3, 2]], i32[2,2], cpu:0)
    """
    lanes = [x if b else repeat_lane(x, size) for x, b in zip(args, batched, strict=True)]
    out = operation(*lanes, **params)
    return (out, (True,) * len(out)) if operation.multiple_results else (out, True)


def lane_by_lane(operation: Primitive, batched: Sequence[bool], size: Size, *args: Value, **params: object) -> Any:
    """The batch rule of an operation that takes one lane at a time: it is called once for each.

    Shapes: those of one lane. Cost: one call for each lane. Errors: those of the operation.

    >>> import numpy as np, rune
    >>> from rune import extend
    >>> one = lambda x: x.with_shape(())
    >>> last = lambda x: x[-1]
    >>> last = extend.primitive("last", types=one, meaning=last, batch=extend.lane_by_lane)
    >>> rune.vmap(last)(np.arange(4).reshape(2, 2))
    Array([1, 3], i32[2], cpu:0)
    """

    def one(lane: Sequence[Value]) -> Any:
        return operation(*merge(batched, lane, omit(args, batched)), **params)

    out = map_rows(one, pick(args, batched))
    return (out, (True,) * len(out)) if operation.multiple_results else (out, True)


def _batch_rule(rule: Rule, itself: Itself) -> Rule:
    if rule in (leading, lane_by_lane):
        return lambda is_batched, size, *args, **params: rule(itself(), is_batched, size, *args, **params)

    def adapted(is_batched: Sequence[bool], size: Size, *args: Value, **params: object) -> Any:
        with at_line(None):
            return rule(tuple(is_batched), size, *as_arrays(args), **params)

    return adapted


def _value(x: Any) -> Any:
    (value,) = array_leaves("extend", [x], tree.structure([x]))
    return value


# --- rules that follow from an expansion --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Expansion:
    """An operation as a function of other operations, and the rules that follow from it."""

    name: str
    function: Rule
    multiple_results: bool

    def flat(self, params: Mapping[str, object]) -> Callable[..., list[Any]]:
        """The expansion as a function that returns a list."""

        def results(*args: Value) -> list[Any]:
            with at_line(None):
                out = self.function(*as_arrays(args), **params)
            return [*map(_value, out)] if self.multiple_results else [_value(out)]

        return results

    def results(self, *args: Value, **params: object) -> Any:
        """The results as the primitive returns them: a list, or the only one."""
        outs = self.flat(params)(*args)
        return outs if self.multiple_results else outs[0]

    def staged(self, types: Sequence[ArrayType], params: Mapping[str, object]) -> Staged:
        """The program of the expansion."""
        return stage(self.flat(params), types, self.name)

    def types(self, types: Sequence[ArrayType], params: Mapping[str, object]) -> Any:
        """The types of the results."""
        outs = _types_of(self, tuple(types), Parameters(params.items()))
        return outs if self.multiple_results else outs[0]

    def jvp(self, itself: Itself) -> Rule:
        """The rule that takes tangents from the expansion, and results from the operation itself.

        An operation with NumPy or C code computes its results itself, as its rounding may differ.
        """

        def rule(primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, object]) -> Any:
            outs, out_tangents = jvp_flat(self.flat(params), primals, tangents)
            if itself().reference is not None:
                out = itself()(*primals, **params)
                outs = list(out) if self.multiple_results else [out]
            return outs, out_tangents

        return rule

    def transpose(self, ct: Any, linear: Sequence[bool], *inputs: Any, **params: object) -> list[Any]:
        """The cotangents of the linear operands, from the transposed expansion."""
        types = [x if lin else type_of(x) for x, lin in zip(inputs, linear, strict=True)]
        trace = self.staged(types, params)
        # The first inputs of the program are the values that the expansion captured.
        known = dict(zip(trace.program.inputs, trace.captured, strict=False))
        known |= zip(omit(trace.own_inputs, linear), omit(inputs, linear), strict=True)
        return scatter(backward(trace.program, known, ct if self.multiple_results else [ct]), linear)

    def batch(self, is_batched: Sequence[bool], size: Size, *args: Value, **params: object) -> Any:
        """The results of the batched expansion, and whether each of them is batched."""
        outs, are_batched = batch_flat(self.flat(params), size, args, is_batched, own_axis())
        return (outs, are_batched) if self.multiple_results else (outs[0], are_batched[0])


@functools.lru_cache(maxsize=1024)
def _types_of(expansion: _Expansion, types: tuple[ArrayType, ...], params: tuple) -> tuple[ArrayType, ...]:
    return expansion.staged(types, dict(params)).program.output_types
