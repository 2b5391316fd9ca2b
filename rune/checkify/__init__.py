"""rune.checkify: returns the errors of traced functions as values.

    error, out = checkify(f)(x)        error.get() is None, or the message of the first failed check

The state of a checked call is an array of words in a reference (decision 0080): which `check`
failed first, and the numbers that its message shows. So loops and branches carry the state, batched
calls combine theirs into one, and it is a result like any other. The checks of every operation (for
NaN, indices out of bounds and zero divisors) use the instrumented programs of `rune.debug.checks`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes, lax, tree
from rune.array import Array
from rune.checkify.calls import NullState, Site, State, Wider, carrier, within
from rune.config import setting
from rune.context import innermost, inside
from rune.core.interpreter import Tracer, type_of
from rune.core.staging import stage
from rune.errors import ArgumentError
from rune.listing import names as _names
from rune.random.keys import key_data
from rune.transforms import late_modules
from rune.transforms.arguments import require_callable, value_leaves
from rune.transforms.callers import Callers
from rune.transforms.checks.failures import of_lanes
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.sharding.localize import meshes_within
from rune.typing import ArrayLike

__all__ = ["DivisionByZeroError", "Error", "ErrorCategory", "FailedCheckError", "JaxException", "JaxRuntimeError"]
__all__ += ["NaNError", "OOBError", "all_checks", "automatic_checks", "check", "check_error", "checkify"]
__all__ += ["debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks"]


# --- what may fail ------------------------------------------------------------------------------


class JaxRuntimeError(ValueError):
    """The exception of a failed check, which `Error.throw` raises.

    >>> issubclass(JaxRuntimeError, ValueError)
    True
    """


class JaxException(Exception):
    """The failure that an Error reports; each kind of failure is a subclass.

    >>> str(DivisionByZeroError("division by zero"))
    'division by zero'
    """


class DivisionByZeroError(JaxException):
    """A divisor is 0.

    >>> issubclass(DivisionByZeroError, JaxException)
    True
    """


class NaNError(JaxException):
    """An operation produced a NaN from operands without one.

    >>> issubclass(NaNError, JaxException)
    True
    """


class OOBError(JaxException):
    """An index is out of bounds.

    >>> issubclass(OOBError, JaxException)
    True
    """


class FailedCheckError(JaxException):
    """The predicate of a `check` is false.

    >>> issubclass(FailedCheckError, JaxException)
    True
    """


ErrorCategory = type[JaxException]
user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """The first failure in a checked call, as a tree of arrays; a batch of calls returns a batch.

    Errors: none.

    >>> import rune
    >>> error, _ = rune.checkify.checkify(lambda x: rune.checkify.check(x > 0, "not {}", x))(-1.0)
    >>> error.get()
    'not -1.0 (`check` failed)'
    """

    __slots__ = ("faults", "operation_sites", "sites", "words")

    def __init__(self, words: Any, faults: Any, sites: Mapping[int, Site], operation_sites: tuple[Any, ...]):
        self.words, self.faults = words, faults  # u32[1 + N]: a site, its message's numbers; i32[2]
        self.sites, self.operation_sites = sites, operation_sites

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Any, ...]]:
        """The arrays as children, and as data the sites that explain their numbers."""
        return (self.words, self.faults), (tuple(self.sites.items()), self.operation_sites)

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], leaves: tuple[Any, Any]) -> Error:
        """The error with these arrays."""
        return cls(*leaves, dict(aux[0]), aux[1])

    def get_exception(self) -> JaxException | None:
        """The first failure as an exception; None if there is none.

        Errors: TracerArrayConversionError if the arrays are traced.
        """
        words, faults = np.asarray(self.words), np.asarray(self.faults)
        lanes = words.shape[:-1]
        if not lanes:
            return self._of(words, faults)
        errors = {index: self._of(words[index], faults[index]) for index in np.ndindex(*lanes)}
        texts = [f"at mapped index {', '.join(map(str, i))}: {e}" for i, e in errors.items() if e is not None]
        return JaxException("\n".join(texts)) if texts else None

    def _of(self, words: np.ndarray, faults: np.ndarray) -> JaxException | None:
        if words[0]:
            return FailedCheckError(self.sites[int(words[0])].text(words[1:]))
        return _fault(self.operation_sites[faults[0] - 1], int(faults[1])) if faults[0] else None

    def get(self) -> str | None:
        """The message of the first failure; None if there is none."""
        error = self.get_exception()
        return None if error is None else str(error)

    def throw(self) -> None:
        """Raise JaxRuntimeError if there is a failure."""
        check_error(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"


tree.register_node_class(Error)


def _fault(site: Any, value: int) -> JaxException:
    if site.kind == "NaN":
        return NaNError(f"nan generated by primitive: {site.operation}.")
    if site.kind == "zero divisor":
        return DivisionByZeroError("division by zero")
    shape = tuple(site.type.shape)
    return OOBError(
        f"out-of-bounds indexing for array of shape {shape}: index {value} is out of bounds for axis {site.axis} "
        f"with size {shape[site.axis]}. "
    )


init_error = Error(np.zeros(1, np.uint32), np.zeros(2, np.int32), {}, ())


def _numbers_of(value: ArrayLike) -> Array:
    """The array that a message shows; for keys, their words."""
    x = rnp.asarray(value)
    return key_data(x) if type_of(x).dtype in dtypes.KEYS else x


def _words_of(value: Any) -> Array:
    x = rnp.asarray(lax.stop_gradient(value))
    x = x.astype(carrier(x.dtype))
    if rnp.iscomplexobj(x):
        x = rnp.stack([x.real, x.imag], -1)
    return lax.bitcast_convert_type(x, rnp.uint32).ravel()


_numbers = itertools.count(1)


# --- functions ----------------------------------------------------------------------------------


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check at run time that `pred` is true, inside a function that is checkified.

    msg:   a format string for the other arguments, which are trees of arrays
    debug: do nothing outside checkified functions
    Shapes: pred []. Types: pred bool.
    Errors: ArgumentError if `pred` is not one bool, or is traced outside checkified functions;
            JaxRuntimeError if it is false, and not traced.

    >>> import rune
    >>> rune.checkify.check(1 < 2, "less")
    """
    (flag,) = value_leaves("checkify.check", [pred], tree.structure(0))
    if type_of(flag).shape or type_of(flag).dtype != dtypes.bool_:
        raise ArgumentError(f"checkify.check: cannot check {type_of(flag)} (one bool[] required)")
    leaves, treedef = tree.flatten((fmt_args, fmt_kwargs))
    values = [_numbers_of(x) for x in value_leaves("checkify.check", leaves, treedef)]
    site = Site(msg, treedef, tuple((v.dtype, tuple(map(int, v.shape))) for v in values))
    state = innermost(State)
    if state is not None:
        number = next(_numbers)
        state.sites[number] = site
        words = rnp.concatenate([rnp.asarray([number], rnp.uint32), *map(_words_of, values)])
        state.note_failure(rnp.logical_not(flag), words)
    elif not debug and isinstance(flag, Tracer):
        raise ArgumentError("checkify.check: cannot be traced", hint="transform the function: checkify(f)(...)")
    elif not debug and not bool(flag):
        words = np.concatenate([np.zeros(0, np.uint32), *(np.asarray(_words_of(v)) for v in values)])
        raise JaxRuntimeError(site.text(words))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """As `check`, but without effect outside checkified functions.

    Shapes: pred []. Types: pred bool.
    Errors: ArgumentError if `pred` is not one bool.

    >>> import rune
    >>> rune.checkify.debug_check(False, "nobody asks")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise JaxRuntimeError if there is a failure; inside a checkified function, pass it on.

    Shapes: those of one call, or of a batch of calls. Types: an Error.
    Errors: ArgumentError if it is not an Error; inside a checkified function also for an Error
            that can hold failures of operations (NaN, indices, divisors).

    >>> import rune
    >>> rune.checkify.check_error(rune.checkify.init_error)
    """
    if not isinstance(error, Error):
        raise ArgumentError(f"check_error: cannot take {type(error).__name__} (an Error required)")
    state = innermost(State)
    if state is None:
        text = error.get()
        if text is not None:
            raise JaxRuntimeError(text)
        return
    if error.operation_sites:
        raise ArgumentError("check_error: cannot pass on failures of operations", hint="checkify the outer function")
    state.sites.update(error.sites)
    words = rnp.asarray(error.words)
    if words.ndim > 1:
        words = rnp.asarray(of_lanes(words.reshape(-1, words.shape[-1])))
    state.note_failure(words[0] != 0, words)


def checkify(f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """A function that returns (error, result), and does not raise for a failed check.

    errors:  a union of `user_checks`, the calls of `check`, and of checks of every operation:
             `nan_checks`, `div_checks`, and `index_checks` for indexing without an explicit mode
    The function may be jitted, and `f` as well. With checks of operations, it cannot be
    differentiated or batched: check the derivative of `f`, or the batched `f`.
    Shapes: those of `f`. Types: those of `f`.
    Errors: TransformError if it is not a function; ArgumentError for another set of errors.

    >>> import rune
    >>> from rune import checkify
    >>> def root(x):
    ...     checkify.check(x >= 0, "negative: {x}", x=x)
    ...     return rune.numpy.sqrt(x)
    >>> error, y = rune.jit(checkify.checkify(root))(-4.0)
    >>> error.get(), float(y)
    ('negative: -4.0 (`check` failed)', nan)
    """
    require_callable("checkify", f)
    if not isinstance(errors, frozenset | set) or not errors <= all_checks:
        raise ArgumentError(f"checkify: cannot look for {errors!r} (a set of kinds required, such as all_checks)")
    run = _watched if errors & automatic_checks else _checked

    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        width = 0
        while True:
            try:
                return run(f, frozenset(errors), width, args, kwargs)
            except Wider as wider:
                width = wider.width

    return checked


def _checked(f: Callable[..., Any], errors: Any, width: int, args: Any, kwargs: Any) -> tuple[Error, Any]:
    """Call `f` with its `check` calls active (or ignored), and no checks of operations."""
    if FailedCheckError not in errors:
        with inside(State, NullState(rnp.zeros(1, rnp.uint32))), inside(Callers, None):
            return init_error, f(*args, **kwargs)
    state = State(rnp.zeros(1 + width, rnp.uint32))
    result = within(state, f, args, kwargs)
    if state.width > width:
        raise Wider(state.width)
    return Error(state[...], rnp.zeros(2, rnp.int32), dict(state.sites), ()), result


def _watched(f: Callable[..., Any], errors: Any, width: int, args: Any, kwargs: Any) -> tuple[Error, Any]:
    """Call `f` as a program that is instrumented with checks of its operations."""
    leaves, treedef = tree.flatten((args, kwargs))
    values = value_leaves("checkify", leaves, treedef)
    trees: list[tree.TreeDef] = []

    def flat(*inputs: Any) -> list[Any]:
        positional, keywords = tree.unflatten(treedef, inputs)
        outs, out_tree = tree.flatten(_checked(f, errors, width, positional, keywords))
        trees.append(out_tree)
        return value_leaves("checkify", outs, out_tree)

    with setting(check_bounds=OOBError in errors):  # then traces write indices that can be checked
        trace = stage(flat, [type_of(v) for v in values], "checked")
    if meshes_within(trace.program):
        raise ArgumentError(
            "checkify: cannot check operations on several devices (a mesh)",
            hint="use checkify.check, or rune.configure(check_nans=True), which checks all operations",
        )
    watch = late_modules.watch()
    modes = watch.Modes(OOBError in errors, NaNError in errors, False, DivisionByZeroError in errors)
    program = watch.watched(trace.program, modes)
    *outs, site, value = jit_primitive(*trace.captured, *values, program=program.program)
    error, result = tree.unflatten(trees[-1], outs)
    return Error(error.words, rnp.stack([site, value]), error.sites, program.sites), result


__dir__ = _names(globals())
