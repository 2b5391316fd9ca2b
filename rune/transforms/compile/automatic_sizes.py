"""Automatic symbolic sizes: an axis of a jitted function becomes symbolic at its third size.

    with rune.configure(symbolic="auto"):  f(ones(5)), f(ones(6))     traces f32[5], f32[6]
                                           f(ones(7)), f(ones(8))     trace f32[n], n in 1..

Calls that differ only in sizes are a family. When an axis of a family has its third size, the
function is traced once more with a name for that size; axes that were always equal share a name.
The result is a form, which serves every call that fits it.

Invariant: a form is right for all sizes that it serves. A comparison with a number during tracing
           narrows the range; sizes for which the user's `==` would answer differently are excluded;
           a size of 0 is always exact, and a size of 1 never starts a form; the results of a form
           have the types of the exact traces. If no form satisfies this, the axes to blame stay
           exact from then on, with a warning.
Not done: relations between sizes other than equality.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from rune import config, dims, tree
from rune.core.interpreter import current
from rune.core.sizes import type_with_sizes
from rune.core.staging import Stage
from rune.core.types import ArrayType
from rune.dims import Dim, Size, UndecidedComparison
from rune.dims.guards import Questions, watched
from rune.errors import DimensionError, RuneError, user_frame, with_context
from rune.records import dataclass
from rune.transforms.arguments import leaf_path
from rune.transforms.inspect.cache_misses import Key

Types = tuple[ArrayType, ...]
Axis = tuple[int, int]  # the number of an argument, and of its axis
Range = tuple[int, int | None]
KEPT = 4096  # the most calls whose form is stored
ATTEMPTS = 8  # symbolic traces to try before giving up on a form


# Protocols, since trace_cache.py, which has the traces, imports this module.
class Trace(Protocol):
    """The attributes of a trace that are used here."""

    out_tree: tree.TreeDef
    out_types: Types

    @property
    def serves_one_call(self) -> bool:
        """True if the trace is not stored."""
        ...


Entry = tuple[Any, list[Any]]  # a Trace, and the values of its hidden inputs


@dataclass(frozen=True, slots=True)
class Traces:
    """Access to the traces of a function.

    fitting: the stored trace, or None.  get: the stored trace; if there is none, a new one, stored.
    make:    a new trace, not stored.    keep: stores such a trace.
    """

    fitting: Callable[[Key], Entry | None]
    get: Callable[[Key], Entry]
    make: Callable[[Key], Entry]
    keep: Callable[[Key, Entry], None]


@dataclass(frozen=True, slots=True)
class Form:
    """Argument types with named sizes, served by one trace; no size in `unequal` may be 0."""

    types: Types
    unequal: tuple[Size, ...]

    def sizes(self, types: Types) -> dict[str, int] | None:
        """The values of the named sizes in these types; None if the types do not fit."""
        sizes: dict[str, int] = {}
        # Ranks and dtypes agree, since the types are of one family.
        for form_type, call_type in zip(self.types, types, strict=True):
            for dim, size in zip(form_type.shape, call_type.shape, strict=True):
                if not isinstance(dim, Dim):
                    if dim != size:
                        return None
                elif not _is_within(dim, size) or sizes.setdefault(str(dim), int(size)) != size:
                    return None
        return sizes

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether these sizes differ wherever the trace found sizes unequal."""
        return all(dims.evaluate(difference, sizes) for difference in self.unequal)


@dataclass(frozen=True, slots=True)
class Family:
    """Calls that differ only in sizes: the types of those that were traced, and the forms."""

    call_types: list[Types] = field(default_factory=list)
    forms: list[Form] = field(default_factory=list)


class Automatic:
    """The families and forms of one jitted function."""

    def __init__(self, name: str):
        self.name = name
        self._families: dict[Hashable, Family] = {}
        self._exact: set[str] = set()  # the axes that stay exact, as messages call them
        self._form_keys: dict[Key, Key] = {}  # of calls, the key of the form that serves them

    def find(self, key: Key, traces: Traces) -> Entry:
        """The trace for a call without a stored exact trace."""
        form_key = self._form_keys.get(key)
        if form_key is not None:
            return traces.get(form_key)
        family = self._families.setdefault(_family(key), Family())
        for form in family.forms:
            sizes = form.sizes(key[1])
            # Sizes that the trace told apart, but that are equal here, need an exact trace.
            if sizes is not None:
                return traces.get(self._serve(key, form) if form.holds(sizes) else key)
        return self._first(key, family, traces)

    def _serve(self, key: Key, form: Form) -> Key:
        if len(self._form_keys) >= KEPT:
            self._form_keys.clear()
        form_key = self._form_keys[key] = with_types(key, form.types)
        return form_key

    def _first(self, key: Key, family: Family, traces: Traces) -> Entry:
        """The trace for types that fit no form: that of a new form, or an exact one."""
        # Ends: an attempt that fails makes at least one of these axes exact for good.
        while names := self._names(key, family):
            # The user's function may raise anything for a symbolic size, as for `int(n)`.
            try:
                form, entry = _new_form(key, names, family, traces)
            except Exception as error:
                traces.get(key)  # raises if the function fails for these sizes too
                self._give_up(names, family, key[0], error)
                continue
            family.forms.append(form)
            traces.keep(with_types(key, form.types), entry)
            family.call_types.append(key[1])
            # The form serves this call too, unless two of its sizes are equal here by chance.
            return self.find(key, traces)
        entry = traces.get(key)
        if not entry[0].serves_one_call:
            family.call_types.append(key[1])
        return entry

    def _names(self, key: Key, family: Family) -> dict[Axis, str]:
        """The axes to make symbolic; those that always had equal sizes share a name.

        Calls in which other axes have size 1 do not count, since those axes are broadcast.
        """
        similar_types = [t for t in (*family.call_types, key[1]) if _ones(t) == _ones(key[1])]
        classes: dict[tuple[Size, ...], list[Axis]] = {}
        for axis in _axes(key[1]):
            axis_sizes = tuple(_size(types, axis) for types in similar_types)
            if len({*axis_sizes} - {0}) > 2 and axis_sizes[-1] > 0 and _label(axis, key[0]) not in self._exact:
                classes.setdefault(axis_sizes, []).append(axis)
        return {a: name for axes, name in zip(classes.values(), _all_names()) for a in axes}

    def withdraw(self, key: Key, error: Exception) -> None:
        """Drop the form with this key: it was traced, but cannot be compiled or transformed."""
        family = self._families.setdefault(_family(key), Family())
        family.forms[:] = [form for form in family.forms if form.types != key[1]]
        self._form_keys.clear()
        sizes = {axis: _size(key[1], axis) for axis in _axes(key[1])}
        names = {axis: str(size) for axis, size in sizes.items() if isinstance(size, Dim)}
        self._give_up(names, family, key[0], error)

    def _give_up(self, names: Mapping[Axis, str], family: Family, treedef: tree.TreeDef, error: Exception) -> None:
        """Keep the axes to blame exact from now on. Warns, with the reason."""
        labels = [_label(axis, treedef) for axis in _to_blame(names, family, error)]
        self._exact.update(labels)
        reason, frame = f"{type(error).__name__}: {error}".partition("\n")[0], user_frame()
        place = frame
        if isinstance(error, RuneError):
            reason, place = error.message, error.frame
        message = f"jit: cannot make {' and '.join(labels)} of {self.name} symbolic ({reason})"
        hint = "each size is traced; declare sizes with dims, or do not ask for their values"
        # The warning is about the line of the call; the text names the line of the error.
        if frame is not None:
            text = with_context(message, hint, place)
            warnings.warn_explicit(text, UserWarning, frame.file, frame.line)


def applies(types: Types) -> bool:
    """Whether calls with these types may become symbolic here.

    Inside the trace of another jitted function they may not: that function decides about sizes.
    """
    if config.current().symbolic != "auto" or any(t.is_symbolic for t in types):
        return False
    interpreter = current()
    while interpreter.parent is not None and type(interpreter) is not Stage:
        interpreter = interpreter.parent
    return interpreter.parent is None


# --- finding a form ---------------------------------------------------------------------------


def _new_form(key: Key, names: Mapping[Axis, str], family: Family, traces: Traces) -> tuple[Form, Entry]:
    """A valid form with these names, and its trace.

    Errors: those of the function for such sizes; DimensionError if no range answers its questions.
    """
    values = {name: _size(key[1], axis) for axis, name in names.items()}
    ranges: dict[str, Range] = dict.fromkeys(values, (1, None))
    attempts_left = ATTEMPTS
    while True:
        attempts_left -= 1
        sizes = {name: dims.symbol(name, *bounds) for name, bounds in ranges.items()}
        types = _named(key[1], {axis: sizes[name] for axis, name in names.items()})
        # A question that the sizes do not decide narrows the ranges for the next attempt.
        try:
            entry, questions = watched(traces.make, with_types(key, types))
        except DimensionError as error:
            narrower = _narrower(ranges, sizes, values, error)
            if narrower is None or not attempts_left:
                raise
            ranges = narrower
            continue
        form = Form(types, _differences(questions, sizes))
        _check_results(form, entry, key, family, traces)
        return form, entry


def _narrower(
    ranges: Mapping[str, Range], sizes: Mapping[str, Dim], values: Mapping[str, int], error: DimensionError
) -> dict[str, Range] | None:
    """Ranges around the values in which the question of the error has one answer; or None."""
    if not isinstance(error, UndecidedComparison):
        return None
    fact = _fact(error.question, values)
    # A relation between two sizes is not a range, and neither is a bound on a square.
    names = [name for name, dim in sizes.items() if dims.symbols(dim) == dims.symbols(fact)]
    factor = dims.coefficient(fact, names[0]) if names else None
    if not isinstance(factor, int):
        return None
    # The fact is factor * size + at_0 >= 0, which bounds the size from one side.
    (name,) = names
    low, high = ranges[name]
    at_0 = fact - factor * sizes[name]
    assert isinstance(at_0, int)
    if factor > 0:
        low = max(low, -(at_0 // factor))
    else:
        high = min(at_0 // -factor, high or at_0 // -factor)
    return {**ranges, name: (low, high)}


def _fact(question: tuple[Size, str, Size], values: Mapping[str, int]) -> Size:
    """The answer for these values, as a size that is at least 0."""
    a, sign, b = question
    fact = a - b if sign in (">", ">=") else b - a
    # Sizes that differ here: the form serves only those that differ in the same direction.
    if sign == "==":
        return fact - 1 if dims.evaluate(fact, values) > 0 else -1 - fact
    # For integers, a > b is a - b - 1 >= 0, and the negation of x >= 0 is -1 - x >= 0.
    fact = fact - 1 if sign in ("<", ">") else fact
    return fact if dims.evaluate(fact, values) >= 0 else -1 - fact


def _differences(questions: Questions, sizes: Mapping[str, Dim]) -> tuple[Size, ...]:
    """The sizes that must not be 0 for the answers to hold."""
    differences: dict[Size, None] = {}
    symbols = {dims.as_symbol(dim) for dim in sizes.values()}
    # A size never equals a fraction, so such a comparison has one answer for all sizes.
    for size, other in questions:
        assert isinstance(size, Dim), "sizes are all that is watched"
        number = other if isinstance(other, Dim) else int(other) if other == int(other) else None
        if number is not None and dims.symbols(size - number) <= symbols:
            differences[size - number] = None
    return tuple(differences)


def _check_results(form: Form, entry: Entry, key: Key, family: Family, traces: Traces) -> None:
    """Errors: DimensionError if results of exact traces have another tree, or other types."""
    for types in family.call_types:
        sizes = form.sizes(types)
        exact = traces.fitting(with_types(key, types))
        if sizes is None or exact is None or not form.holds(sizes):
            continue
        trace, exact_trace = entry[0], exact[0]
        form_types = tuple(type_with_sizes(t, sizes) for t in trace.out_types)
        if form_types != exact_trace.out_types or trace.out_tree != exact_trace.out_tree:
            form_text, exact_text = (", ".join(map(str, ts)) for ts in (form_types, exact_trace.out_types))
            values = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            why = f"{form_text} for {values}, where {exact_text} was found before"
            raise DimensionError(f"jit: cannot trust the results ({why})")


# --- axes -------------------------------------------------------------------------------------


def _family(key: Key) -> Hashable:
    treedef, types, statics, settings = key
    return treedef, tuple((t.ndim, t.dtype, t.weak) for t in types), statics, settings


def with_types(key: Key, types: Types) -> Key:
    """The key of the same call with other types."""
    return key[0], types, *key[2:]


def _named(types: Types, dims_of: Mapping[Axis, Dim]) -> Types:
    """The types with these sizes for these axes."""
    return tuple(
        t.with_shape(tuple(dims_of.get((number, at), d) for at, d in enumerate(t.shape)))
        for number, t in enumerate(types)
    )


def _axes(types: Types) -> Iterator[Axis]:
    return ((number, at) for number, t in enumerate(types) for at in range(t.ndim))


def _size(types: Types, axis: Axis) -> Any:
    return types[axis[0]].shape[axis[1]]


def _ones(types: Types) -> list[bool]:
    return [_size(types, axis) == 1 for axis in _axes(types)]


def _is_within(dim: Dim, size: Size) -> bool:
    low, high = dims.bounds(dim)
    return (low or 0) <= size and (high is None or size <= high)


def _label(axis: Axis, treedef: tree.TreeDef) -> str:
    return f"axis {axis[1]} of argument{leaf_path(axis[0], treedef)}"


def _all_names() -> Iterator[str]:
    return itertools.chain("nmk", (f"n{number}" for number in itertools.count(3)))


def _to_blame(names: Mapping[Axis, str], family: Family, error: Exception) -> Sequence[Axis]:
    """The axes that the error mentions; else those without a form, if other axes have one."""
    text = error.message if isinstance(error, RuneError) else str(error)
    # Axes that other forms have made symbolic are probably innocent.
    known = {a for form in family.forms for a in _axes(form.types) if isinstance(_size(form.types, a), Dim)}
    new = [axis for axis in names if axis not in known] or list(names)
    named_axes = [axis for axis in new if re.search(rf"\b{names[axis]}\b", text)]
    return named_axes or new
