"""Native code that decides whether arguments are those of a cached call.

    @match    walk the nodes of the arguments: fetch each, check it, take the memory of a leaf
    @fits     whether an object is a dense NumPy array with a given dtype and shape
    @release  drop the references that @match has counted

Fetching the value of a dict compares keys, which may run Python code that changes any list, dict or
array. So references to containers and memory are counted. Objects that are compared by identity, or
read at once, are borrowed: no code runs between fetching and reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from rune.backends.cpu.calls.process import Process, item
from rune.backends.cpu.routines import Code, definitions, false, is_null, null, true
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

_NODE_WORDS = ("fetch", "parent", "key", "check", "expected", "extra")  # in describe.py's order
_LARGEST_F32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Memory of one attempt on the stack, a row for each purpose."""

    nodes: Value  # the object of each node, borrowed
    data: Value  # the address of each leaf's memory
    numbers: Value  # a word for each leaf that is a number
    references: Value  # the number of counted references, then these


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the arguments during the walk."""

    process: Process
    code: Code
    words: Value  # of the call
    argv: Value
    rows: _Rows
    place: Value  # the address of the place of results
    description: Value  # the words of the node
    leaf: Value  # the number of earlier leaves

    def word(self, name: str, type: str = "i64") -> Value:
        """A word of the node."""
        return item(self.code, self.description, _NODE_WORDS.index(name), type)

    def object(self, word: str) -> Value:
        """An object that lives as long as the process."""
        return self.process.object(self.code, word)

    def hold(self, object: Value) -> None:
        """Count a reference until @release."""
        count = self.code.load("i64", self.rows.references)
        self.process.count_reference(self.code, object)
        self.code.store(object, self.code.item(self.rows.references, "ptr", count + 1))
        self.code.store(count + 1, self.rows.references)

    def lend(self, address: Value) -> None:
        """Set the address of the leaf's memory."""
        self.code.store(address, self.code.item(self.rows.data, "ptr", self.leaf))

    def lend_number(self, number: Value) -> Value:
        """Store the leaf, a number, in memory; returns true, since it fits."""
        slot = self.code.item(self.rows.numbers, "i64", self.leaf)
        self.code.store(number, slot)
        self.lend(slot)
        return true(self.code)


def text(process: Process) -> str:
    """The functions."""
    rows = "ptr nodes, ptr data, ptr numbers, ptr references"
    functions = [
        (("ptr", "match", f"ptr words, ptr argv, {rows}"), _match),
        (("i1", "fits", "ptr array, ptr table"), _fits),
        (("void", "release", "ptr references"), _release),
    ]
    return definitions(functions, process)


def _match(process: Process, code: Code, words: Value, argv: Value, *rows: Value) -> Value:
    """The place of the results; null if the arguments do not fit, or an interrupt is set."""
    # A committed argument decides the place of all results.
    memory, place, leaf = _Rows(*rows), code.allocate("ptr"), code.variable("i64", 0)
    code.store(process.word(code, words, "W_PLACE", "ptr"), place)
    code.store(code.constant("i64", 0), memory.references)
    nodes = code.item(words, "i64", process.word(code, words, "W_NODES_AT"))
    count = process.word(code, words, "W_NODES")

    def fits(k: Value) -> Value:
        description, leaves = code.item(nodes, "i64", k * len(_NODE_WORDS)), code.load("i64", leaf)
        node = _Node(process, code, words, argv, memory, place, description, leaves)
        object = _fetch(node)
        return code.choose(is_null(object), lambda: _is_absent(process, code), lambda: check(k, node, object))

    def check(k: Value, node: _Node, object: Value) -> Value:
        code.store(object, code.item(memory.nodes, "ptr", k))
        number = node.word("check")
        is_leaf = number >= process.numbers["C_ARRAY"]
        code.store(node.leaf + is_leaf.cast("zext", "i64"), leaf)
        cases = {process.numbers[word]: partial(write, node, object) for word, write in _CHECKS.items()}
        return code.switch(number, cases, lambda: false(code))

    all_fit = code.leading(count, fits).equals(count)
    return code.select(all_fit, code.load("ptr", place), null(code))


def _release(process: Process, code: Code, references: Value) -> None:
    """Drop the counted references."""
    count, objects = code.load("i64", references), code.item(references, "ptr", 1)
    code.tell("void", "drop", objects, code.constant("i64", 0), count)


# --- fetching: a borrowed reference, or null ----------------------------------------------------


def _fetch(node: _Node) -> Value:
    """The object of a node; null, perhaps with an error, if it does not exist."""
    numbers = node.process.numbers
    cases = {numbers[word]: partial(write, node) for word, write in _FETCHES.items()}
    return node.code.switch(node.word("fetch"), cases, lambda: null(node.code))


def _parent(node: _Node) -> Value:
    return item(node.code, node.rows.nodes, node.word("parent"), "ptr")


def _item_of_list(node: _Node) -> Value:
    # The list may have become shorter since its check, so Python's function checks the index again.
    return node.process.ask(node.code, "ptr", "LIST_ITEM", _parent(node), node.word("key"))


_FETCHES: dict[str, Callable[[_Node], Value]] = {
    "F_ARGUMENT": lambda node: item(node.code, node.argv, node.word("key"), "ptr"),
    "F_TUPLE": lambda node: node.process.tuple_item(node.code, _parent(node), node.word("key")),
    "F_LIST": _item_of_list,
    "F_DICT": lambda node: node.process.ask(node.code, "ptr", "DICT_ITEM", _parent(node), node.word("key", "ptr")),
    "F_CONSTANT": lambda node: node.word("key", "ptr"),
}


def _is_absent(process: Process, code: Code) -> Value:
    """False, because a missing object does not fit.

    If a comparison of keys has failed, the general call raises its own error. An error that is not
    an Exception, such as an interrupt, stays set, and @attempt raises it.
    """

    def forget() -> None:
        is_ordinary = process.ask(code, "i32", "ERROR_MATCHES", process.object(code, "EXCEPTION")).compare("ne", 0)
        code.either(is_ordinary, lambda: process.clear_error(code))

    is_error = is_null(process.ask(code, "ptr", "ERROR")).invert()
    code.either(is_error, forget)
    return false(code)


# --- checking: whether an object fits its node --------------------------------------------------


def _is_sequence(node: _Node, object: Value) -> Value:
    """Whether it is a tuple or list of the expected length, a field that both have in one place."""

    def has_length() -> Value:
        return _has_length(node, object, node.process.field(node.code, object, "SIZE", "i64"))

    return _of_class(node, object, node.word("extra", "ptr"), has_length)


def _is_dict(node: _Node, object: Value) -> Value:
    return _has_length(node, object, node.process.ask(node.code, "i64", "DICT_SIZE", object))


def _has_length(node: _Node, container: Value, length: Value) -> Value:
    """Whether the length is the expected one; if so, the container is counted until the call
    ends."""
    is_expected = length.equals(node.word("expected"))
    node.code.either(is_expected, lambda: node.hold(container))
    return is_expected


def _is_array(node: _Node, object: Value) -> Value:
    """Whether it is one of rune's arrays, of the type, on this device, and not deleted."""
    code = node.code
    type, place, buffer = _slots(node, object, "TYPE", "PLACE", "BUFFER")
    # Types and these two places are unique objects, so addresses tell them apart.
    is_committed = place.equals(node.object("COMMITTED"))
    is_here = is_committed | place.equals(node.object("FREE"))
    has_buffer = is_null(buffer).invert()

    def lend() -> Value:
        code.either(is_committed, lambda: code.store(place, node.place))
        return _is_memory(node, buffer)

    return code.where(type.equals(node.word("expected", "ptr")) & is_here & has_buffer, lend)


def _slots(node: _Node, array: Value, *names: str) -> Iterable[Value]:
    """The objects in some slots of one of rune's arrays, borrowed."""
    return (node.process.field(node.code, array, f"SLOT_{name}") for name in names)


def _is_donated(node: _Node, object: Value) -> Value:
    """The same for an array that the call deletes: counted, since its list may drop it
    meanwhile."""
    fits = _is_array(node, object)
    node.code.either(fits, lambda: node.hold(object))
    return fits


def _is_placed(node: _Node, object: Value) -> Value:
    """Whether it is one of rune's arrays, of the type, on the expected device, and not deleted."""
    process, code = node.process, node.code
    type, place, buffer = _slots(node, object, "TYPE", "PLACE", "BUFFER")
    expected = node.word("extra", "ptr")

    def has_same(slot: str) -> Value:
        return process.field(code, place, slot).equals(process.field(code, expected, slot))

    def is_alike() -> Value:
        return has_same("SLOT_DEVICE") & has_same("SLOT_COMMITTED")

    has_buffer = buffer.compare("ne", node.object("NONE")) & is_null(buffer).invert()
    is_there = code.where(type.equals(node.word("expected", "ptr")) & has_buffer, is_alike)
    code.either(is_there, lambda: _lend_object(node, buffer))
    return is_there


def _is_copied(node: _Node, object: Value) -> Value:
    """Whether it is an uncommitted array of the CPU, of the type, with a copy on the device."""
    process, code = node.process, node.code
    type, place, copy = _slots(node, object, "TYPE", "PLACE", "COPY")
    is_free = place.equals(node.object("FREE"))
    has_copy = copy.compare("ne", node.object("NONE")) & is_null(copy).invert()

    def is_on_device() -> Value:
        return process.tuple_item(code, copy, 0).equals(node.word("extra", "ptr"))

    is_there = code.where(type.equals(node.word("expected", "ptr")) & is_free & has_copy, is_on_device)
    code.either(is_there, lambda: _lend_object(node, process.tuple_item(code, copy, 1)))
    return is_there


def _lend_object(node: _Node, buffer: Value) -> None:
    """Pass the buffer object itself, counted until the call ends."""
    node.hold(buffer)
    node.lend(buffer)


def _is_memory(node: _Node, array: Value) -> Value:
    """Whether it is a NumPy array of the dtype and shape; if so, pass its memory."""
    code = node.code
    fits = code.ask("i1", "fits", array, code.item(node.words, "i64", node.word("extra")))

    def lend() -> None:
        node.hold(array)
        node.lend(node.process.field(code, array, "DATA"))

    code.either(fits, lend)
    return fits


def _is_float(node: _Node, object: Value) -> Value:
    """Whether a float fits: one beyond f32's range does not, and the general call rounds it."""
    number = node.process.ask(node.code, "double", "FLOAT_VALUE", object)

    def narrow() -> Value:
        is_in_range = number.abs().compare("ule", _LARGEST_F32)  # or not a number
        return node.code.where(is_in_range, lambda: node.lend_number(number.cast("fptrunc", "float")))

    return node.code.choose(_is_wide(node), lambda: node.lend_number(number), narrow)


def _is_int(node: _Node, object: Value) -> Value:
    """Whether an integer fits: for one that is out of range, the general call raises an error."""
    code = node.code
    overflow = code.variable("i32", 0)
    # This function sets no error for an exact int: it says by `overflow` what does not fit.
    number = node.process.ask(code, "i64", "INT_VALUE", object, overflow)
    low = number.cast("trunc", "i32")

    def narrow() -> Value:
        return code.where(low.cast("sext", "i64").equals(number), lambda: node.lend_number(low))

    def fit() -> Value:
        return code.choose(_is_wide(node), lambda: node.lend_number(number), narrow)

    return code.where(code.load("i32", overflow).equals(0), fit)


def _is_bool(node: _Node, object: Value) -> Value:
    return node.lend_number(object.equals(node.object("TRUE")).cast("zext", "i8"))


def _is_wide(node: _Node) -> Value:
    """Whether a number takes 8 bytes, not 4."""
    return node.word("extra").equals(8)


def _of_class(node: _Node, object: Value, cls: Value, check: Callable[[], Value]) -> Value:
    """Whether an object is of exactly this class, and passes the check, which relies on that."""
    is_class = node.process.field(node.code, object, "TYPE").equals(cls)
    return node.code.where(is_class, check)


def _of_known_class(word: str, check: Callable[[_Node, Value], Value]) -> Callable[[_Node, Value], Value]:
    return lambda node, object: _of_class(node, object, node.object(word), partial(check, node, object))


_CHECKS: dict[str, Callable[[_Node, Value], Value]] = {
    "C_SAME": lambda node, object: object.equals(node.word("expected", "ptr")),
    "C_SEQUENCE": _is_sequence,
    "C_DICT": _of_known_class("DICT_TYPE", _is_dict),
    "C_ARRAY": _of_known_class("ARRAY_TYPE", _is_array),
    "C_DONATED": _of_known_class("ARRAY_TYPE", _is_donated),
    "C_NUMPY": _is_memory,
    "C_FLOAT": _of_known_class("FLOAT_TYPE", _is_float),
    "C_INT": _of_known_class("INT_TYPE", _is_int),
    "C_BOOL": _of_known_class("BOOL_TYPE", _is_bool),
    "C_PLACED": _of_known_class("ARRAY_TYPE", _is_placed),
    "C_COPIED": _of_known_class("ARRAY_TYPE", _is_copied),
}


def _fits(process: Process, code: Code, array: Value, table: Value) -> Value:
    """Whether an object is exactly a NumPy array, dense, with the dtype and shape of a table."""
    is_array = process.field(code, array, "TYPE").equals(process.object(code, "NDARRAY"))

    def is_alike() -> Value:
        required_flags = process.numbers["REQUIRED_FLAGS"]
        is_dense = (process.field(code, array, "FLAGS", "i32") & required_flags).equals(required_flags)
        is_dtype = process.field(code, array, "DESCR").equals(code.load("ptr", table))
        ndim = process.field(code, array, "NDIM", "i32").cast("sext", "i64")
        is_rank = ndim.equals(item(code, table, 1))
        # Rank first: the shape is then as long as the table's.
        return code.where(is_dense & is_dtype & is_rank, lambda: has_shape(ndim))

    def has_shape(ndim: Value) -> Value:
        shape, expected = process.field(code, array, "SHAPE"), code.item(table, "i64", 2)
        return code.leading(ndim, lambda k: item(code, shape, k).equals(item(code, expected, k))).equals(ndim)

    return code.where(is_array, is_alike)
