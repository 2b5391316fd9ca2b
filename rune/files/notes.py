"""The notes that rune stores in the metadata of a file, as JSON under the name "rune".

    {"version": 1,
     "leaves": {"step": {"dtype": "i64", "shape": [], "number": true}},
     "crc32": {"layers.0": "1ad2bc32", "step": "5d4d1cc2"},
     "tree": [["dict", ["layers", "step"]], ["list", 1], "layers.0", "step"]}

leaves: the types of leaves that differ from their stored form (stored.py), are weak, or were Python
        numbers.
crc32:  the checksum of each array's bytes, always in eight digits: the header is first written with
        zeros, and later overwritten by one of the same length with the checksums.
tree:   the nodes in depth-first order, parents first; a string is the name of a leaf. The list is
        flat, so that nesting of any depth works. Nodes of classes that a file cannot describe are
        ["other", children, class]; reading such a tree requires `like`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.types import ArrayType
from rune.files.stored import Form, Unreadable, checked_shape
from rune.records import dataclass
from rune.tree import TreeDef

KEY, VERSION = "rune", 1
_SUM = re.compile("[0-9a-f]{8}")
_SEQUENCES = {"list": list, "tuple": tuple}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf that was saved under a name: an array of this type, or a Python number."""

    type: ArrayType
    is_number: bool = False

    def __str__(self) -> str:
        return f"a number {dtypes.short(self.type.dtype)}" if self.is_number else str(self.type)


@dataclass(frozen=True, slots=True)
class Notes:
    """The leaves that differ from their stored form, and the nodes of the tree, if noted.

    sums: checksums of arrays by name
    """

    leaves: Mapping[str, Leaf]
    nodes: Sequence[object] | None
    sums: Mapping[str, int] = field(default_factory=dict)


NONE = Notes({}, None)


def stored_as(dtype: np.dtype, shape: tuple[int, ...]) -> Leaf:
    """The leaf whose type is that of the stored array."""
    return Leaf(ArrayType(shape, dtype))


def loads(text: str | bytes) -> Any:
    """Parse JSON from an untrusted file. Errors: Unreadable, even for a name that occurs twice."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"bad JSON: {str(error)[:80]}") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        name = next(name for n, (name, _) in enumerate(pairs) if name in dict(pairs[:n]))
        raise ValueError(f"the name {name[:60]!r} comes twice")
    return members


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


# --- writing ------------------------------------------------------------------------------------


def written(
    leaves: Mapping[str, Leaf], forms: Mapping[str, Form], treedef: TreeDef, sums: Mapping[str, int] | None = None
) -> str:
    """The notes on a tree whose leaves have these names, forms and checksums."""
    notes: dict[str, object] = {"version": VERSION}
    notes["leaves"] = {name: _note(leaf) for name, leaf in leaves.items() if leaf != stored_as(*forms[name])}
    if sums is not None:
        notes["crc32"] = {name: f"{number:08x}" for name, number in sums.items()}
    return json.dumps({**notes, "tree": [*_nodes(treedef, iter(leaves))]})


def _note(leaf: Leaf) -> dict[str, object]:
    flags = {"weak": leaf.type.weak, "number": leaf.is_number}
    shape = [int(n) for n in leaf.type.shape]
    return {"dtype": dtypes.short(leaf.type.dtype), "shape": shape, **{k: True for k, v in flags.items() if v}}


def _nodes(treedef: TreeDef, names: Iterator[str]) -> Iterator[object]:
    stack = [treedef]
    while stack:
        node = stack.pop()
        stack += reversed(node.parts)
        yield _node(node, names)


def _node(node: TreeDef, names: Iterator[str]) -> object:
    class_and_data = node.node_data()
    if class_and_data is None:
        return next(names)
    cls, data = class_and_data
    if cls is type(None):
        return None
    if cls is dict and all(type(key) in (str, int) for key in data):
        return ["dict", data]
    name = next((name for name, known in _SEQUENCES.items() if cls is known), None)
    return [name, len(node.parts)] if name else ["other", len(node.parts), cls.__name__]


# --- reading ------------------------------------------------------------------------------------


def read(text: str | None) -> Notes:
    """The notes of a file. Errors: Unreadable if they do not have the form shown above."""
    if text is None:
        return NONE
    notes = loads(text)
    version = notes.get("version") if isinstance(notes, dict) else None
    if version != VERSION:
        raise Unreadable(f"notes of version {str(version)[:20]}, and only version {VERSION} is known")
    leaves, nodes = notes.get("leaves"), notes.get("tree")
    if not isinstance(leaves, dict) or not isinstance(nodes, list):
        raise Unreadable("notes without leaves and tree")
    sums = notes.get("crc32", {})
    if not isinstance(sums, dict):
        raise Unreadable("checksums without names in its notes")
    numbers = {name: _checksum(name, text) for name, text in sums.items()}
    return Notes({name: _leaf(name, note) for name, note in leaves.items()}, nodes, numbers)


def _checksum(name: str, text: object) -> int:
    if not isinstance(text, str) or not _SUM.fullmatch(text):
        raise Unreadable(f"a checksum of {name[:60]!r} that is not eight hexadecimal digits")
    return int(text, 16)


def _leaf(name: str, note: object) -> Leaf:
    dtype = dtypes.FROM_SHORT.get(str(note.get("dtype"))) if isinstance(note, dict) else None
    if dtype is None or not isinstance(note, dict):
        raise Unreadable(f"a note on {name[:60]!r} without a known dtype")
    shape, is_number = checked_shape(note.get("shape")), note.get("number") is True
    if is_number and shape:
        raise Unreadable(f"a note on {name[:60]!r} of a number with axes")
    return Leaf(ArrayType(shape, dtype, note.get("weak") is True), is_number)


def structure(nodes: Sequence[object]) -> tuple[TreeDef, list[str]]:
    """The noted structure, and the names of its leaves.

    Errors: Unreadable for inconsistent nodes; Foreign for a class defined outside rune.
    """
    stack: list[TreeDef] = []
    for node in reversed(nodes):
        class_and_data, count = _class_and_data(node)
        if count > len(stack):
            raise Unreadable("a note of a tree with too few nodes")
        children = [stack.pop() for _ in range(count)]
        stack.append(TreeDef.from_node_data_and_children(None, class_and_data, children))
    if len(stack) != 1:
        raise Unreadable(f"a note of {len(stack)} trees")
    return stack[0], [node for node in nodes if isinstance(node, str)]


class Foreign(Exception):
    """A node of a class that a file cannot describe."""


def _class_and_data(node: object) -> tuple[tuple[type, object] | None, int]:
    """The class and data of a node, and how many children it has."""
    if node is None:
        return (type(None), None), 0
    match node:
        case str():
            return None, 0
        case ["dict", [*keys]] if all(type(key) in (str, int) for key in keys) and len({*keys}) == len(keys):
            return (dict, keys), len(keys)
        case ["list" | "tuple" as name, int(count)] if count >= 0:
            return (_SEQUENCES[name], None), count
        case ["other", int(), str(name)]:
            raise Foreign(name[:60])
    raise Unreadable(f"a note of a tree with the node {str(node)[:60]}")
