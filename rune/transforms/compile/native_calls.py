"""Descriptions of calls, as data, from which native code makes further calls of the same kind.

A jitted function that has been called twice with the same kind of arguments describes the call:
every container and leaf of the arguments with its type, and the structure of the result
(backends/cpu/calls/describe.py). On a device the executable's player is called with the buffers of
arrays on that device, and of free CPU arrays that have a copy on it.

Calls that cannot be described are made as before: trees of registered classes, donations on a
device, traces with hidden inputs, complex Python numbers, static values that may change, host data
for a device.

Invariant: a description never fits a call for which the trace would not be found. It contains every
           part of the trace's key, with types and static values by identity, which is stricter than
           equality for objects with a constant hash.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from types import BuiltinFunctionType, MethodType, NoneType
from typing import Any, TypeVar, cast

import numpy as np

from rune import config, counts, dtypes
from rune.array import COMMITTED_CPU, CPU, Array, Place
from rune.backends import Device, cpu
from rune.backends.cpu.calls import describe, operators
from rune.backends.cpu.calls.code import Code, Memory
from rune.backends.cpu.calls.describe import Build, CallRecord, Check, Fetch, NativeCall, Node, Owner, Player, Result
from rune.backends.cpu.calls.operators import Table
from rune.backends.shared.executor import static_shape
from rune.backends.shared.protocol import Buffer, Playable
from rune.core.interpreter import dispatch
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.records import dataclass
from rune.tree.registry import DICT, LIST, NONE, TUPLE
from rune.tree.treedef import TreeDef

J = TypeVar("J")

_NUMBERS = {
    float: (Check.FLOAT, (dtypes.f32, dtypes.f64)),
    int: (Check.INT, (dtypes.i32, dtypes.i64)),
    bool: (Check.BOOL, (dtypes.bool_,)),
}
_BUILDS = {TUPLE: Build.TUPLE, LIST: Build.LIST, DICT: Build.DICT, NONE: Build.NONE}


class _Indescribable(Exception):
    """Something that native calls do not support."""


def is_waiting(executable: object) -> bool:
    """Whether native code may make the calls of an executable later, once they are worth it."""
    return isinstance(executable, cpu.CpuExecutable) and executable.is_waiting


def described(
    args: Sequence[object],
    kwargs: Mapping[str, object],
    is_static: Callable[[int | str], bool],
    captured_values: Sequence[Value],
    executable: object,
    out_types: Sequence[ArrayType],
    out_tree: TreeDef,
    place: Place,
    donations: tuple[int, ...],
) -> CallRecord | None:
    """The description of this call for native code; None if it cannot be described.

    donations: the leaves that the call deletes (and has deleted), counting captured values
    """
    walk = _Walk(place.device, frozenset(donations))
    try:
        walk.everything(captured_values, args, kwargs, is_static)
    except _Indescribable:
        return None
    prepare = _of_the_cpu if place.device is None else _of_a_device
    preparation = prepare(executable, walk, out_types)
    if preparation is None:
        return None
    build, finish = _build(out_tree)
    if max(len(preparation.nodes), len(build)) > describe.MOST_NODES:
        return None
    call = NativeCall(
        config.current(),
        len(args),
        tuple(kwargs),
        preparation.nodes,
        place,
        preparation.results,
        build,
        finish,
        preparation.code,
        counts.native_runs(),
    )
    return describe.record_of(call)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An executable's information on its native calls."""

    nodes: tuple[Node, ...]
    results: tuple[Result, ...]
    code: Code | Player


def _of_the_cpu(executable: object, walk: _Walk, out_types: Sequence[ArrayType]) -> _Prepared | None:
    """A call of machine code, which takes NumPy's memory directly."""
    call_plan = executable.for_native_calls(walk.buffers) if isinstance(executable, cpu.CpuExecutable) else None
    if call_plan is None or not walk.fits(call_plan.takes):
        return None
    lenders = walk.lenders(call_plan.lenders)
    results = zip(out_types, call_plan.gives, call_plan.makers, lenders, strict=True)
    typed_results = tuple(Result(t.with_shape(m.shape), m, maker, lender) for t, m, maker, lender in results)
    return _Prepared(walk.nodes_for(call_plan.takes), typed_results, call_plan.code)


def _of_a_device(executable: object, walk: _Walk, out_types: Sequence[ArrayType]) -> _Prepared | None:
    """A call of an executable's player."""
    call_plan = executable.player(walk.buffers) if isinstance(executable, Playable) else None
    if call_plan is None:
        return None
    results = tuple(Result(t.with_shape(s)) for t, s in zip(out_types, call_plan.shapes, strict=True))
    return _Prepared(tuple(walk.nodes), results, Player(call_plan.play))


_CONSTANT = (bool, int, float, complex, str, bytes, NoneType, BuiltinFunctionType, MethodType)


def _is_constant(static: Any) -> bool:
    """Whether an object's hash cannot change, so that its identity determines the trace."""
    pending = [static]
    while pending:
        value = pending.pop()
        cls = type(value)
        # The hash of an object without `__hash__` is its identity, which cannot change.
        if cls.__hash__ is object.__hash__ or cls in _CONSTANT:
            continue
        if cls in (tuple, frozenset) or cls.__hash__ is tuple.__hash__:
            pending.extend(value)
        elif is_dataclass(cls) and cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            pending.extend(getattr(value, f.name) for f in fields(cls))
        elif not issubclass(cls, (Enum, np.dtype)):
            return False
    return True


_Child = tuple[Any, Fetch, int, Any]  # a value, and how it is reached: the first fields of its Node


class _Walk:
    """The nodes of arguments, parents before children, and the buffers of their leaves.

    device:  where the call runs; None is the CPU
    donations: numbers of leaves
    """

    def __init__(self, device: Device | None, donations: frozenset[int]) -> None:
        self.device, self.donations = device, donations
        self.nodes: list[Node] = []
        self.buffers: list[Buffer] = []

    def everything(
        self,
        captured_values: Sequence[Value],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        is_static: Callable[[int | str], bool],
    ) -> None:
        """All inputs of the plan. Errors: _Indescribable."""
        # Closed-over arrays come before the arguments, as in the plan.
        for value in captured_values:
            self.leaf(value, Fetch.CONSTANT, 0, value)
        self.arguments(args, kwargs, is_static)

    def arguments(
        self, args: Sequence[object], kwargs: Mapping[str, object], is_static: Callable[[int | str], bool]
    ) -> None:
        """All arguments, with keyword arguments in the order of a tree."""
        # Native code gets keyword values in the order of the call, but leaves are sorted by name.
        numbers = {name: len(args) + k for k, name in enumerate(kwargs)}
        named_values = [*enumerate(args), *((name, kwargs[name]) for name in sorted(kwargs))]
        for where, value in named_values:
            number = where if isinstance(where, int) else numbers[where]
            if is_static(where):
                if not _is_constant(value):
                    raise _Indescribable
                self.add(Fetch.ARGUMENT, 0, number, Check.SAME, value)
            else:
                self.tree(value, Fetch.ARGUMENT, number)

    def tree(self, value: object, fetch: Fetch, key: object) -> None:
        """An argument: builtin containers, and leaves."""
        # The last child first, so that nodes come in the order of the leaves.
        pending: list[_Child] = [(value, fetch, 0, key)]
        while pending:
            pending.extend(reversed(self.children(*pending.pop())))

    def children(self, value: Any, fetch: Fetch, parent: int, key: object) -> list[_Child]:
        """Add one node; return its children, and how they are reached."""
        number = len(self.nodes)
        if value is None:
            self.add(fetch, parent, key, Check.SAME, None)
        elif type(value) in (tuple, list):
            cls = type(value)
            self.add(fetch, parent, key, Check.SEQUENCE, len(value), cls)
            child_fetch = Fetch.TUPLE if cls is tuple else Fetch.LIST
            return [(child, child_fetch, number, k) for k, child in enumerate(value)]
        elif type(value) is dict and all(type(k) is str for k in value):
            self.add(fetch, parent, key, Check.DICT, len(value))
            # As in a tree, whose leaves are in the order of the keys, whatever that of the dict.
            return [(value[k], Fetch.DICT, number, k) for k in sorted(value)]
        else:
            self.leaf(value, fetch, parent, key)
        return []

    def leaf(self, value: object, fetch: Fetch, parent: int, key: object) -> None:
        """A leaf; `nodes_for` adds the memory that the plan requires."""
        if self.device is not None:
            self.leaf_of_device(self.device, value, fetch, parent, key)
        elif type(value) is Array and value.place.device is None and len(self.buffers) in self.donations:
            self.add(fetch, parent, key, Check.DONATED, value.type)
            # The call has deleted its buffer; native code compares the memory in each call.
            self.buffers.append(Memory(value.type.dtype, static_shape(value.type)))
        elif type(value) is Array and value.place.device is None:
            self.add(fetch, parent, key, Check.ARRAY, value.type)
            self.buffers.append(value.buffer)
        elif type(value) is np.ndarray:
            self.add(fetch, parent, key, Check.NUMPY)
            self.buffers.append(value)
        elif type(value) in _NUMBERS:
            self.add(fetch, parent, key, _NUMBERS[type(value)][0])
            self.buffers.append(np.asarray(value))
        else:
            raise _Indescribable

    def leaf_of_device(self, device: Device, value: object, fetch: Fetch, parent: int, key: object) -> None:
        """A leaf whose buffer is on the device, or has a copy there."""
        if type(value) is not Array:
            raise _Indescribable
        if value.place.device is device:
            self.add(fetch, parent, key, Check.PLACED, value.type, value.place)
        elif value.place is CPU:
            self.add(fetch, parent, key, Check.COPIED, value.type, device)
        else:
            raise _Indescribable
        self.buffers.append(value.buffer_on(device))

    def add(self, *fields: Any) -> None:
        """Add a node."""
        self.nodes.append(Node(*fields))

    def fits(self, memories: Sequence[Memory]) -> bool:
        """Whether the plan takes the leaves without conversion."""
        # The checks are ordered: from ARRAY on they are those of leaves.
        leaves = [n for n in self.nodes if n.check >= Check.ARRAY]
        if len(leaves) != len(memories):
            return False
        # A Python number has one of two dtypes, depending on what was traced.
        numbers = {check: known for check, known in _NUMBERS.values()}
        for node, buffer, memory in zip(leaves, self.buffers, memories, strict=True):
            if buffer.shape != memory.shape or not (node.check is Check.DONATED or buffer.flags.c_contiguous):
                return False
            if node.check in numbers:
                if memory.dtype not in numbers[node.check]:
                    return False
            # Native code compares dtypes by identity, so equal but other objects would never fit.
            elif buffer.dtype is not memory.dtype:
                return False
        return True

    def lenders(self, leaves: Sequence[int | None]) -> list[int | None]:
        """Those of the leaves that are donated arrays, and so have memory to lend."""
        checks = [n.check for n in self.nodes if n.check >= Check.ARRAY]
        return [leaf if leaf is not None and checks[leaf] is Check.DONATED else None for leaf in leaves]

    def nodes_for(self, memories: Sequence[Memory]) -> tuple[Node, ...]:
        """The nodes, with the memory that the plan requires of each leaf."""
        remaining, nodes = iter(memories), []
        for n in self.nodes:
            if n.check < Check.ARRAY:
                nodes.append(n)
                continue
            memory = next(remaining)
            # Of Python's numbers native code only has to know how many bytes the plan reads.
            is_number = n.check > Check.NUMPY
            extra = memory.dtype.itemsize if is_number else memory
            nodes.append(replace(n, extra=extra))
        return tuple(nodes)


def _build(out_tree: TreeDef) -> tuple[Any, Callable[[list[Any]], Any] | None]:
    """How native code builds the tree: nodes after their children; by `unflatten` if it must."""
    records, pending = [], [out_tree]
    while pending:
        node = pending.pop()
        if node.kind is None:
            records.append((Build.LEAF, 0, None))
        elif node.kind in _BUILDS:
            keys = node.data if node.kind is DICT else None
            records.append((_BUILDS[node.kind], len(node.parts), keys))
            pending.extend(node.parts)
        else:
            # Registered classes are built by Python, from a flat list of leaves.
            leaves = [(Build.LEAF, 0, None)] * out_tree.num_leaves
            return (*leaves, (Build.LIST, len(leaves), None)), out_tree.unflatten
    # Each node was recorded before its parts, the last part first: reversed, parts come first, in
    # order.
    return tuple(reversed(records)), None


@functools.cache
def native_class(cls: type[J], slot: str, general: Callable[..., object]) -> type[J] | None:
    """The class with a native `__call__`; None without native code.

    A Python method around native code would double the time of a call.
    Errors: CompileError.
    """
    method = describe.method(_owner(cls, slot, general))
    if method is None:
        return None
    # Users see one class, by its name. Without slots, objects can change to it.
    namespace = {"__module__": cls.__module__, "__doc__": cls.__doc__, "__slots__": (), "__call__": method}
    return cast("type[J]", type(cls.__name__, (cls,), namespace))


def native_operator(
    jitted: type, slot: str, name: str, general: Callable[..., object], operands: int, table: Table
) -> Callable[..., object] | None:
    """A function that makes the calls of the table, and others by `general`; None without native
    code.

    jitted, slot: the class of jitted functions, and its slot with the calls of an instance
    operands:     how many it has; the first is an array
    Errors: CompileError.
    """
    known = describe.code_of(_owner(jitted, slot, jitted.__call__))
    return None if known is None else operators.native_operator(known, Array, name, general, operands, table)


def _owner(cls: type, slot: str, general: Callable[..., object]) -> Owner:
    """What native code has to know of the class of jitted functions, and of arrays."""
    interpreter, outermost = dispatch()
    return describe.Owner(
        cls, slot, general, Array, Place, CPU, COMMITTED_CPU, interpreter, outermost, config.variable(), config.Scope
    )
