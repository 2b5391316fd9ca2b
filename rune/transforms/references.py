"""References: mutable boxes for one array, and how transformations treat them.

A reference has a value that belongs to the function, or to the body of a loop or branch, that is
being traced. Programs have no references: a body that writes an outer reference takes its value as
one more argument, and returns its last value. The references that a body writes are known only
after it has run, so it is traced without them, `Written` reports them, and it is traced again.

    Frame     a body being traced: the references in it have values of its trace, and their outer
              values are restored when it ends
    threaded  a loop or branch, traced until it writes no reference that it does not carry
    Box       a value in place of a reference that is an argument of a separately traced function
              (of jit, vmap, a step over rows): inside it becomes a new reference, whose last
              value is returned

A value of an inner transformation cannot be written to an outer reference: that is refused. All of
this costs nothing as long as there are no references.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn, TypeVar

import numpy as np

from rune import dtypes, tree
from rune.context import innermost, put
from rune.core.interpreter import Interpreter, Tracer, current, type_of
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, BoundsError, DtypeError, ShapeError, TransformError
from rune.ops import conventions

R = TypeVar("R")
T = TypeVar("T")
_HINT = "make it inside the function, or pass its value and return the new one"


class Ref:
    """A box for an array of one shape and dtype; `rune.new_ref` makes it.

    ref[...] is the array, ref[i] a part of it; `ref[i] = x` and `ref[i] += x` change the results of
    later reads, while arrays read before are unchanged. A Python number takes the dtype of the
    array; any other value must have the dtype of the array and the shape of the part.
    Shapes: those of the array. Types: those of the array.
    Errors: ShapeError and DtypeError for another shape or dtype; BoundsError for an integer out of
            bounds; TransformError where a value of an inner transformation is written.

    >>> import rune, rune.numpy as rnp
    >>> ref = rune.new_ref(rnp.zeros(3))
    >>> ref[1] = 5.0
    >>> ref[...] += 1.0
    >>> ref
    Ref([1., 6., 1.], f32[3], cpu:0)
    """

    __slots__ = ("__weakref__", "frame", "home", "value")

    def __init__(self, value: Any):
        self.value = value
        # Only values of this interpreter, and of those around it, may be written.
        self.home: Interpreter = current()
        self.frame = innermost(Frame)  # the body in which it is not an outer reference
        _alive.add(self)

    @property
    def type(self) -> ArrayType:
        """The type of the array."""
        return self.value.type

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the array."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.ndim

    @property
    def size(self) -> Size:
        """The number of elements."""
        return conventions.size_of(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: object) -> Any:
        _require_within(self, index)
        _note(self, _READ)
        part = self.value if index is Ellipsis else self.value[index]
        return conventions.distinct(part, self.value)

    def __setitem__(self, index: object, value: object) -> None:
        _require_within(self, index)
        part = type_of(self.value) if index is Ellipsis else type_of(self.value[index])
        _write(self, self.value.at[index].set(_fitting(part, value)))

    def get(self, index: object = ...) -> Any:
        """ref[index]."""
        return self[index]

    def set(self, value: object, index: object = ...) -> None:
        """ref[index] = value."""
        self[index] = value

    def swap(self, value: object, index: object = ...) -> Any:
        """ref[index] = value; returns the old value."""
        old_value = self[index]
        self[index] = value
        return old_value

    def addupdate(self, value: object, index: object = ...) -> None:
        """ref[index] += value; if an index occurs several times, all its values are added."""
        _require_within(self, index)
        fitting = _fitting(type_of(self.value[index]), value)
        _write(self, self.value.at[index].add(fitting))

    def settled(self, value: Any) -> Any:
        """The value to write; refused if it belongs to an inner transformation."""
        return value

    def refuse(self, owner: str, use: str) -> NoReturn:
        """Raise: a body has used an outer reference that it may not use."""
        raise Outside(f"{owner}: cannot {use} a reference from outside ({self.type})", hint=_HINT)

    def __array__(self, *how: object, **options: object) -> NoReturn:
        raise ArgumentError(f"Ref: cannot compute with a reference ({self.type})", hint="read it: ref[...]")

    def __repr__(self) -> str:
        value_text = repr(self.value)
        return f"Ref{value_text.removeprefix('Array')}" if value_text.startswith("Array(") else f"Ref({self.type})"


def _require_within(ref: Ref, index: object) -> None:
    parts = index if isinstance(index, tuple) else (index,)
    if any(p is None or p is Ellipsis for p in parts):  # then parts do not correspond to axes
        return
    for axis, (part, size) in enumerate(zip(parts, ref.shape)):
        if type(part) is int and isinstance(size, int) and not -size <= part < size:
            raise BoundsError(f"Ref: cannot find index {part} (axis {axis} of {ref.type})")


def _fitting(part: ArrayType, value: object) -> Any:
    """The value, if it can be written unchanged."""
    if isinstance(value, Ref):
        raise ArgumentError("Ref: cannot hold a reference", hint="read it: ref[...]")
    type = type_of(value)
    if tuple(type.shape) != tuple(part.shape):
        raise ShapeError(f"Ref: cannot write {type} (into {part})", hint="broadcast it first")
    if type.dtype != part.dtype:
        # Only a weak value that promotes to the dtype of the reference is converted.
        result_dtype = dtypes.promote((part.dtype, False), (type.dtype, type.weak))[0] if type.weak else None
        if result_dtype != part.dtype:
            raise DtypeError(f"Ref: cannot write {type} (into {part})", hint="convert it first")
    return value


# --- bodies -------------------------------------------------------------------------------------


class Outside(TransformError):
    """A separately traced function has used an outer reference."""


# Not an Exception, which code of the user in the body might catch.
class Written(BaseException):
    """A body has used outer references that it has to carry. Caught by the loop, branch or call."""

    def __init__(self, refs: Sequence[Ref]):
        super().__init__()
        self.refs = tuple(refs)


_READ, _WRITE = "read", "write"


class Frame:
    """A body being traced.

    On entry the references get these values; on exit `values` becomes their last ones.

    owner:   the loop, branch or call, for messages
    refuses: the uses of outer references that are refused
    notes:   the uses after which the body has to carry the reference
    """

    __slots__ = ("_outer", "_saved_states", "_used_refs", "notes", "owner", "refs", "refuses", "values")

    def __init__(
        self,
        owner: str,
        refs: Sequence[Ref] = (),
        values: Sequence[Value] = (),
        refuses: Sequence[str] = (),
        notes: Sequence[str] = (_WRITE,),
    ):
        self.owner, self.refs, self.values = owner, refs, values
        self.refuses, self.notes = refuses, notes
        self._saved_states: list[tuple[Ref, Any, Interpreter, Frame | None]] = []
        self._used_refs: dict[int, Ref] = {}

    def __enter__(self) -> Frame:
        self._outer = innermost(Frame)
        put(Frame, self)
        for ref, value in zip(self.refs, self.values, strict=True):
            self._hold(ref)
            ref.value, ref.home, ref.frame = value, current(), self
        return self

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        self.values = [ref.value for ref in self.refs]
        # Reversed, so that a reference that was held twice gets its first value back.
        for ref, content, home, frame in reversed(self._saved_states):
            ref.value, ref.home, ref.frame = content, home, frame
        put(Frame, self._outer)
        if error is None and self._used_refs:
            raise Written(tuple(self._used_refs.values()))

    def note(self, ref: Ref, use: str) -> None:
        """Handle the use of an outer reference here."""
        if use in self.refuses:
            ref.refuse(self.owner, use)
        if use in self.notes and id(ref) not in self._used_refs:
            # A write is undone on exit: the body is traced again, and would write once more.
            self._hold(ref)
            self._used_refs[id(ref)] = ref

    def _hold(self, ref: Ref) -> None:
        self._saved_states.append((ref, ref.value, ref.home, ref.frame))


_alive: weakref.WeakSet[Ref] = weakref.WeakSet()


def _note(ref: Ref, use: str) -> bool:
    """Tell the current body about the use of a reference; whether that is an outer one."""
    # A reference made in the body itself is not outer: it needs no carrying.
    frame = innermost(Frame)
    if frame is None or ref.frame is frame:
        return False
    frame.note(ref, use)
    return True


def _write(ref: Ref, value: object) -> None:
    if not _is_around(value, ref.home):
        value = ref.settled(value)
    # In a body that does not carry the reference yet any value will do: this trace is dropped.
    if not _note(ref, _WRITE) and not _is_around(value, ref.home):
        raise TransformError(
            f"Ref: cannot write {type_of(value)} of an inner transformation (into a reference from outside)", hint=_HINT
        )
    ref.value = value


def _is_around(value: object, home: Interpreter | None) -> bool:
    """Whether a value is valid in this interpreter: traced by it, or by one around it."""
    if not isinstance(value, Tracer):
        return True
    while home is not None and home is not value.interpreter:
        home = home.parent
    return home is not None


def surroundings(owner: str, refs: Sequence[Ref], values: Sequence[Value]) -> Frame:
    """The body of a function whose trace outlives the call, carrying the references it uses."""
    return Frame(owner, refs, values, notes=(_READ, _WRITE))


def closed(owner: str) -> AbstractContextManager[object]:
    """The body of a function whose trace outlives the call; it may not use outer references."""
    return Frame(owner, refuses=(_READ, _WRITE)) if _alive else nullcontext()


def threaded(run: Callable[[Sequence[Ref]], R]) -> R:
    """run(references), for those references that the bodies in it write.

    run: carries the values of these references through its bodies, each of which is a Frame, and
         writes their last values to them
    """
    refs: tuple[Ref, ...] = ()
    # Ends: each round adds at least one reference that is alive.
    while _alive:
        try:
            return run(refs)
        except Written as signal:
            refs = (*refs, *signal.refs)
    return run(())


def are_there() -> bool:
    """Whether any references exist."""
    return bool(_alive)


def values_of(refs: Sequence[Ref]) -> list[Value]:
    """The values of references, as arguments of a loop or branch."""
    return [ref[...] for ref in refs]


def write_all(refs: Sequence[Ref], values: Sequence[Value]) -> None:
    """Write the last values returned by a loop or branch."""
    for ref, value in zip(refs, values, strict=True):
        _write(ref, value)


# --- references as arguments --------------------------------------------------------------------


class Box:
    """A node of a tree whose leaf is the value of a reference."""

    __slots__ = ("value",)

    def __init__(self, value: Value):
        self.value = value


tree.register_node(Box, lambda box: ((box.value,), None), lambda _, values: Box(*values))


def boxed(owner: str, args: T) -> tuple[T, list[Ref]]:
    """Arguments with boxes in place of references, and the references.

    Errors: ArgumentError if a reference occurs twice: inside, a write to one would not change the
            other.
    """
    leaves, treedef = tree.flatten(args)
    refs = [x for x in leaves if isinstance(x, Ref)]
    if len({*map(id, refs)}) < len(refs):
        twice = next(r for r in refs if sum(r is x for x in refs) > 1)
        raise ArgumentError(f"{owner}: cannot take one reference twice ({twice.type})", hint="pass it once")
    # The tree is built again only if there is something to replace: it is on the path of every
    # call.
    if not refs:
        return args, refs
    return tree.unflatten(treedef, [Box(x[...]) if isinstance(x, Ref) else x for x in leaves]), refs


def unboxed(args: T) -> tuple[T, list[Ref]]:
    """Arguments with new references in place of boxes, and the references."""
    leaves, treedef = tree.flatten(args, is_leaf=lambda x: isinstance(x, Box))
    # A new reference belongs to the trace that is running, so its value is a tracer of this trace.
    values = [Ref(x.value) if isinstance(x, Box) else x for x in leaves]
    return tree.unflatten(treedef, values), [x for x in values if isinstance(x, Ref)]


class RefNode:
    """A node of a tree without leaves, for a reference that is passed on unchanged."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref):
        self.ref = ref


tree.register_node(RefNode, lambda node: ((), node.ref), lambda ref, _: ref)


def as_nodes(args: T) -> T:
    """Arguments whose references are nodes, not leaves; rebuilding the tree restores them."""
    return tree.map(lambda x: RefNode(x) if isinstance(x, Ref) else x, args) if _alive else args


def require_none(owner: str, result: object) -> None:
    """Errors: ArgumentError for a reference among results."""
    for leaf in tree.leaves(result):
        if isinstance(leaf, Ref):
            raise ArgumentError(f"{owner}: cannot return a reference ({leaf.type})", hint="return its value: ref[...]")
