"""Descriptions of calls, as data, from which native code makes further calls of the same kind.

A jitted function that has been called twice with the same kind of arguments describes the call:
every container and leaf of the arguments with its type, and how the result's tree is made
(backends/cpu/calls/describe.py). What cannot be described is called as before: trees of registered
classes, other devices, donated arguments, traces with hidden inputs, complex Python numbers, static
values that may change.

Invariant: a description fits no call that the trace would not be found for. Every part of the
trace's key is in it, types and static values by identity, which is stricter than equality for what
keeps its hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from types import BuiltinFunctionType, MethodType, NoneType
from typing import Any

import numpy as np

from rune import config, counts, dtypes
from rune.array import COMMITTED_CPU, CPU, Array, Place
from rune.backends import cpu
from rune.backends.cpu.calls import describe
from rune.backends.cpu.calls.describe import Build, Check, Fetch, Kept, NativeCall, Node, Result
from rune.core.interpreter import dispatch
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.tree.registry import DICT, LIST, NONE, TUPLE
from rune.tree.treedef import TreeDef

_NUMBERS = {
    float: (Check.FLOAT, (dtypes.f32, dtypes.f64)),
    int: (Check.INT, (dtypes.i32, dtypes.i64)),
    bool: (Check.BOOL, (dtypes.bool_,)),
}
_BUILDS = {TUPLE: Build.TUPLE, LIST: Build.LIST, DICT: Build.DICT, NONE: Build.NONE}


class _Indescribable(Exception):
    """Something that native calls do not have."""


def described(
    args: Sequence[object],
    kwargs: Mapping[str, object],
    is_static: Callable[[int | str], bool],
    captured: Sequence[Value],
    executable: object,
    out_types: Sequence[ArrayType],
    out_tree: TreeDef,
    place: Place,
) -> Kept | None:
    """The kind of this call for native code; None where it has to be made as before."""
    # Only the CPU executor has machine code that takes NumPy's memory directly.
    if not isinstance(executable, cpu.CpuExecutable):
        return None
    walk = _Walk()
    try:
        for value in captured:
            # Closed-over arrays come before the arguments, as in the plan.
            walk.leaf(value, Fetch.CONSTANT, 0, value)
        walk.arguments(args, kwargs, is_static)
    except _Indescribable:
        return None
    prepared = executable.for_native_calls(walk.buffers)
    if prepared is None or not walk.fits(prepared.takes):
        return None
    results = zip(out_types, prepared.gives, prepared.makers, strict=True)
    build, finish = _build(out_tree)
    nodes = walk.nodes_for(prepared.takes)
    if max(len(nodes), len(build)) > describe.MOST_NODES:
        return None
    call = NativeCall(
        config.current(),
        len(args),
        tuple(kwargs),
        nodes,
        place,
        tuple(Result(t.with_shape(m.shape), m, maker) for t, m, maker in results),
        build,
        finish,
        prepared.code,
        counts.native_runs(),
    )
    return describe.kept(call)


_CONSTANT = (bool, int, float, complex, str, bytes, NoneType, BuiltinFunctionType, MethodType)


def _is_constant(static: Any) -> bool:
    """Whether an object's hash stays what it is, so that the object itself tells the trace."""
    waiting = [static]
    while waiting:
        value = waiting.pop()
        cls = type(value)
        # Hashed by identity: it cannot change its hash.
        if cls.__hash__ is object.__hash__ or cls in _CONSTANT:
            continue
        if cls in (tuple, frozenset) or cls.__hash__ is tuple.__hash__:
            waiting.extend(value)
        elif is_dataclass(cls) and cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            waiting.extend(getattr(value, f.name) for f in fields(cls))
        elif not issubclass(cls, (Enum, np.dtype)):
            return False
    return True


_Found = tuple[Any, Fetch, int, Any]  # a node, and how it is reached: Node's first fields


class _Walk:
    """The nodes of arguments, parents before children, and the buffers of their leaves."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.buffers: list[np.ndarray] = []

    def arguments(
        self, args: Sequence[object], kwargs: Mapping[str, object], is_static: Callable[[int | str], bool]
    ) -> None:
        """All arguments, those by name in the order in which a tree has them."""
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
        """An argument: containers of the plain kinds, and leaves."""
        # Last first, so that nodes come in the order of the leaves.
        waiting: list[_Found] = [(value, fetch, 0, key)]
        while waiting:
            waiting.extend(reversed(self.children(*waiting.pop())))

    def children(self, value: Any, fetch: Fetch, parent: int, key: object) -> list[_Found]:
        """Add one node; its children, and where they come from."""
        number = len(self.nodes)
        if value is None:
            self.add(fetch, parent, key, Check.SAME, None)
        elif type(value) in (tuple, list):
            cls = type(value)
            self.add(fetch, parent, key, Check.SEQUENCE, len(value), cls)
            inside = Fetch.TUPLE if cls is tuple else Fetch.LIST
            return [(child, inside, number, k) for k, child in enumerate(value)]
        elif type(value) is dict and all(type(k) is str for k in value):
            self.add(fetch, parent, key, Check.DICT, len(value))
            return [(value[k], Fetch.DICT, number, k) for k in sorted(value)]
        else:
            self.leaf(value, fetch, parent, key)
        return []

    def leaf(self, value: object, fetch: Fetch, parent: int, key: object) -> None:
        """A leaf; Memory and bytes follow when it is known what the plan takes."""
        if type(value) is Array and value.place.device is None:
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

    def add(self, *fields: Any) -> None:
        """Add a node."""
        self.nodes.append(Node(*fields))

    def fits(self, memories: Sequence[describe.Memory]) -> bool:
        """Whether the leaves are what the plan takes, without conversion."""
        leaves = [n for n in self.nodes if n.check >= Check.ARRAY]
        if len(leaves) != len(memories):
            return False
        # A Python number has one of two dtypes, depending on what was traced.
        numbers = {check: known for check, known in _NUMBERS.values()}
        for node, buffer, memory in zip(leaves, self.buffers, memories, strict=True):
            if buffer.shape != memory.shape or not buffer.flags.c_contiguous:
                return False
            if node.check in numbers:
                if memory.dtype not in numbers[node.check]:
                    return False
            elif buffer.dtype is not memory.dtype:
                return False
        return True

    def nodes_for(self, memories: Sequence[describe.Memory]) -> tuple[Node, ...]:
        """The nodes, with what the plan takes."""
        remaining, nodes = iter(memories), []
        for n in self.nodes:
            if n.check < Check.ARRAY:
                nodes.append(n)
                continue
            memory = next(remaining)
            is_number = n.check > Check.NUMPY
            extra = memory.dtype.itemsize if is_number else memory
            nodes.append(replace(n, extra=extra))
        return tuple(nodes)


def _build(out_tree: TreeDef) -> tuple[Any, Callable[[list[Any]], Any] | None]:
    """How native code makes the tree: nodes after their children; by `unflatten` if it must."""
    records, waiting = [], [out_tree]
    while waiting:
        node = waiting.pop()
        if node.kind is None:
            records.append((Build.LEAF, 0, None))
        elif node.kind in _BUILDS:
            keys = node.data if node.kind is DICT else None
            records.append((_BUILDS[node.kind], len(node.parts), keys))
            waiting.extend(node.parts)
        else:
            # Registered classes are built by Python, from a flat list of leaves.
            leaves = [(Build.LEAF, 0, None)] * out_tree.num_leaves
            return (*leaves, (Build.LIST, len(leaves), None)), out_tree.unflatten
    return tuple(reversed(records)), None


def native_method(cls: type, slot: str, general: Callable[..., object]) -> Any:
    """The method `__call__` of `cls` that makes the calls kept in the slot; None if there is none.

    Errors: CompileError.
    """
    interpreter, outermost = dispatch()
    owner = describe.Owner(
        cls, slot, general, Array, CPU, COMMITTED_CPU, interpreter, outermost, config.variable(), config.Scope
    )
    return describe.method(owner)
