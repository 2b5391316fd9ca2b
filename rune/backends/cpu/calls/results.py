"""Results, arenas and trees of a cached call, as native code.

    @make        one result: an array over uninitialised memory
    @lend        the same over the memory of a donated argument, if nothing else refers to that
    @is_lent     whether a result has the memory of an argument
    @take_back   return lent memory to the arguments of a call that is not made
    @delete      delete the donated arguments
    @wrap        an array over an existing buffer
    @take_arena  an arena that no other call uses
    @build       the tree of the results       @join   one node of it, over its children
    @drop        drop references

Each returns a new reference, or null if Python has set an error; in that case it has released all
references that it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rune.backends.cpu.calls.process import Process, item
from rune.backends.cpu.routines import Code, definitions, is_null, null, true
from rune.lowering.codegen.llvm.ir.text import Value

_RESULT_WORDS = 5  # type, maker, table of the memory, lender: its node + 1 or 0, its leaf
_BUILD_WORDS = 3  # operation, length, keys


def text(process: Process) -> str:
    """The functions."""
    functions = [
        (("void", "drop", "ptr objects, i64 begin, i64 end"), _drop),
        (("ptr", "wrap", "ptr words, i64 number, ptr place, ptr buffer"), _wrap),
        (("ptr", "make", "ptr words, i64 number, ptr place, ptr datum"), _make),
        (("ptr", "lend", "ptr words, i64 number, ptr place, ptr nodes, ptr data"), _lend),
        (("i1", "is_lent", "ptr words, i64 number, ptr data"), _is_lent),
        (("void", "take_back", "ptr words, i64 count, ptr nodes, ptr data, ptr arrays"), _take_back),
        (("void", "delete", "ptr words, ptr nodes"), _delete),
        (("ptr", "take_arena", "ptr words, i64 bytes"), _take_arena),
        (("ptr", "join", "i64 operation, i64 length, ptr keys, ptr children"), _join),
        (("ptr", "build", "ptr words, ptr arrays"), _build),
    ]
    return definitions(functions, process)


def _drop(process: Process, code: Code, objects: Value, begin: Value, end: Value) -> None:
    """Drop the references begin..end of a row."""
    code.count_up(begin, end, 1, lambda k: process.drop_reference(code, item(code, objects, k, "ptr")))


# --- arrays -----------------------------------------------------------------------------------


def _make(process: Process, code: Code, words: Value, number: Value, place: Value, datum: Value) -> Value:
    """An array over new memory, whose address is written to `datum`."""
    result = _result(process, code, words, number)
    maker, table = item(code, result, 1, "ptr"), code.item(words, "i64", item(code, result, 2))
    buffer = code.choose(
        is_null(maker),
        lambda: _new_buffer(process, code, table),
        lambda: process.ask(code, "ptr", "CALL_NO_ARGS", maker),
    )

    def wrap() -> Value:
        # Read first: if there is no memory for the array, @wrap frees the buffer.
        data = process.field(code, buffer, "DATA")
        code.store(data, datum)
        return code.ask("ptr", "wrap", words, number, place, buffer)

    return code.choose(is_null(buffer), lambda: null(code), wrap)


def _result(process: Process, code: Code, words: Value, number: Value) -> Value:
    """The words of one result."""
    results = code.item(words, "i64", process.word(code, words, "W_RESULTS_AT"))
    return code.item(results, "i64", number * _RESULT_WORDS)


def _new_buffer(process: Process, code: Code, table: Value) -> Value:
    """An uninitialised NumPy array, with the dtype and shape of a table."""
    dtype, ndim = code.load("ptr", table), item(code, table, 1).cast("trunc", "i32")
    shape = code.item(table, "i64", 2)
    process.count_reference(code, dtype)  # NumPy takes this reference, even where it fails
    no, flags, ndarray = null(code), code.constant("i32", 0), process.object(code, "NDARRAY")
    return process.ask(code, "ptr", "NEW_FROM_DESCR", ndarray, dtype, ndim, shape, no, no, flags, no)


def _wrap(process: Process, code: Code, words: Value, number: Value, place: Value, buffer: Value) -> Value:
    """One of rune's arrays, which takes over the reference to its buffer."""
    array = _new_array(process, code)
    fill = partial(_fill_array, process, code, array, words, number, place, buffer)
    code.either(is_null(array), lambda: process.drop_reference(code, buffer), fill)
    return array


def _new_array(process: Process, code: Code) -> Value:
    """One of rune's arrays with empty slots."""
    return process.ask(code, "ptr", "GENERIC_ALLOC", process.object(code, "ARRAY_TYPE"), code.constant("i64", 0))


def _fill_array(
    process: Process, code: Code, array: Value, words: Value, number: Value, place: Value, buffer: Value
) -> None:
    """Fill the slots of an array, which takes over the reference to its buffer."""
    none_object, type = process.object(code, "NONE"), code.load("ptr", _result(process, code, words, number))
    # The reference to the buffer is taken over; those to the others are new.
    for object in (none_object, type, place):
        process.count_reference(code, object)
    slots = {"BUFFER": buffer, "COPY": none_object, "TYPE": type, "PLACE": place}
    for name, object in slots.items():
        code.store(object, process.field_at(code, array, f"SLOT_{name}"))


# --- donated memory ---------------------------------------------------------------------------


def _lend(process: Process, code: Code, words: Value, number: Value, place: Value, nodes: Value, data: Value) -> Value:
    """An array over the memory of a donated argument, which loses it, or over new memory.

    The array object is allocated first: allocation may run the collector, and between the check of
    the reference count and the end no other Python code may run.
    """
    result = _result(process, code, words, number)
    at = code.item(data, "ptr", process.word(code, words, "W_INPUTS") + number)
    make = partial(code.ask, "ptr", "make", words, number, place, at)
    lender = item(code, result, 3)

    def from_lender() -> Value:
        argument = item(code, nodes, lender - 1, "ptr")
        array = _new_array(process, code)
        return code.choose(is_null(array), lambda: array, lambda: fill(argument, array))

    def fill(argument: Value, array: Value) -> Value:
        buffer = process.field(code, argument, "SLOT_BUFFER")
        return code.choose(
            _is_lendable(process, code, buffer), lambda: take(argument, array, buffer), lambda: without(array)
        )

    def take(argument: Value, array: Value, buffer: Value) -> Value:
        none_object = process.object(code, "NONE")
        process.count_reference(code, none_object)
        code.store(none_object, process.field_at(code, argument, "SLOT_BUFFER"))
        code.store(process.field(code, buffer, "DATA"), at)
        _fill_array(process, code, array, words, number, place, buffer)
        return array

    def without(array: Value) -> Value:
        process.drop_reference(code, array)
        return make()

    return code.choose(lender.equals(0), make, from_lender)


def _is_lendable(process: Process, code: Code, buffer: Value) -> Value:
    """Whether memory may be overwritten: no view, and only the argument and this call refer to it.

    An argument that was passed twice is counted twice (match.py).
    """
    is_array = process.field(code, buffer, "TYPE").equals(process.object(code, "NDARRAY"))

    def is_alone() -> Value:
        count, base = process.field(code, buffer, "REFERENCES", "i32"), process.field(code, buffer, "BASE")
        is_writeable = (process.field(code, buffer, "FLAGS", "i32") & process.numbers["WRITEABLE"]).compare("ne", 0)
        # The argument's reference, and the one that @match has counted.
        return code.where(count.equals(2) & is_writeable, lambda: is_whole(base))

    def is_whole(base: Value) -> Value:
        def has_other_base() -> Value:
            return process.field(code, base, "TYPE").compare("ne", process.object(code, "NDARRAY"))

        return code.choose(is_null(base), lambda: true(code), has_other_base)

    return code.where(is_array, is_alone)


def _is_lent(process: Process, code: Code, words: Value, number: Value, data: Value) -> Value:
    """Whether a result has the address of its lender."""
    result = _result(process, code, words, number)
    at = item(code, data, process.word(code, words, "W_INPUTS") + number, "ptr")
    # Its lender may have been refused, in which case it has memory of its own.
    has_lender = item(code, result, 3).compare("ne", 0)
    return code.where(has_lender, lambda: at.equals(item(code, data, item(code, result, 4), "ptr")))


def _take_back(
    process: Process, code: Code, words: Value, count: Value, nodes: Value, data: Value, arrays: Value
) -> None:
    """Return the memory of the first results to the arguments that lent it."""

    def give(k: Value) -> None:
        argument = item(code, nodes, item(code, _result(process, code, words, k), 3) - 1, "ptr")
        _put(process, code, argument, "SLOT_BUFFER", process.field(code, item(code, arrays, k, "ptr"), "SLOT_BUFFER"))

    def visit(k: Value) -> None:
        code.either(code.ask("i1", "is_lent", words, k, data), lambda: give(k))

    code.count_up(code.constant("i64", 0), count, 1, visit)


def _delete(process: Process, code: Code, words: Value, nodes: Value) -> None:
    """Delete donated arguments, whether or not a result took their memory, which is still
    counted."""
    donated_nodes = code.item(words, "i64", process.word(code, words, "W_DONATED_AT"))

    def delete(k: Value) -> None:
        array = item(code, nodes, item(code, donated_nodes, k), "ptr")
        for slot in ("SLOT_BUFFER", "SLOT_COPY"):
            _put(process, code, array, slot, process.object(code, "NONE"))

    code.count_up(code.constant("i64", 0), process.word(code, words, "W_DONATED"), 1, delete)


def _put(process: Process, code: Code, array: Value, slot: str, object: Value) -> None:
    """Replace the object in a slot."""
    # The old one is dropped last: freeing it may run Python code, which must see a valid slot.
    before = process.field(code, array, slot)
    process.count_reference(code, object)
    code.store(object, process.field_at(code, array, slot))
    process.drop_reference(code, before)


# --- arenas -----------------------------------------------------------------------------------


def _take_arena(process: Process, code: Code, words: Value, nbytes: Value) -> Value:
    """The last free arena, if it is large enough; else a new one.

    An arena that is too small is freed: kept, it would stay in the list for ever, which would grow.
    """
    arenas = process.word(code, words, "W_ARENAS", "ptr")
    size = process.field(code, arenas, "SIZE", "i64")

    def fresh() -> Value:
        maker = process.word(code, words, "W_ARENA_MAKER", "ptr")
        return process.ask(code, "ptr", "CALL_NO_ARGS", maker)

    def let_go(arena: Value) -> Value:
        process.drop_reference(code, arena)
        return null(code)

    def replace(arena: Value) -> Value:
        let_go(arena)
        return fresh()

    def take() -> Value:
        arena = process.ask(code, "ptr", "LIST_ITEM", arenas, size - 1)
        # LIST_ITEM borrows the list's reference, which the next line drops.
        process.count_reference(code, arena)
        status = process.ask(code, "i32", "LIST_SET_SLICE", arenas, size - 1, size, null(code))
        return code.choose(status.equals(0), lambda: fit(arena), lambda: let_go(arena))

    def fit(arena: Value) -> Value:
        room = code.load("i64", process.field(code, arena, "SHAPE"))
        return code.choose(room >= nbytes, lambda: arena, lambda: replace(arena))

    return code.choose(size > 0, take, fresh)


# --- trees ------------------------------------------------------------------------------------


def _build(process: Process, code: Code, words: Value, arrays: Value) -> Value:
    """The tree over the arrays, whose references it takes over: a stack machine, children first."""
    count = process.word(code, words, "W_BUILD")
    nodes = code.item(words, "i64", process.word(code, words, "W_BUILD_AT"))
    stack = code.row("ptr", count)
    number, top, leaf, failure = (code.variable("i64", 0) for _ in range(4))

    def is_going() -> tuple[Value, Value]:
        k = code.load("i64", number)
        return (k < count) & code.load("i64", failure).equals(0), k

    def next_array() -> Value:
        k = code.load("i64", leaf)
        code.store(k + 1, leaf)
        return item(code, arrays, k, "ptr")

    def push(k: Value) -> None:
        node = code.item(nodes, "i64", k * _BUILD_WORDS)
        operation, length = item(code, node, 0), item(code, node, 1)
        keys, is_leaf = item(code, node, 2, "ptr"), operation.equals(process.numbers["B_LEAF"])
        base = code.load("i64", top) - code.select(is_leaf, 0, length)
        slot = code.item(stack, "ptr", base)
        join = partial(code.ask, "ptr", "join", operation, length, keys, slot)
        object = code.choose(is_leaf, next_array, join)
        code.store(object, slot)
        code.store(base + 1, top)
        code.store(k + 1, number)
        code.store(is_null(object).cast("zext", "i64"), failure)

    def undo() -> Value:
        zero, results = code.constant("i64", 0), process.word(code, words, "W_RESULTS")
        # The top of the stack is the null of the node that failed.
        code.tell("void", "drop", stack, zero, code.load("i64", top) - 1)
        code.tell("void", "drop", arrays, code.load("i64", leaf), results)
        return null(code)

    code.loop(is_going, push)
    has_failed = code.load("i64", failure).compare("ne", 0)
    return code.choose(has_failed, undo, lambda: _finish(process, code, words, stack))


def _finish(process: Process, code: Code, words: Value, stack: Value) -> Value:
    """The bottom of the stack, or the result of a Python function that takes it."""
    tree = code.load("ptr", stack)
    function = process.word(code, words, "W_FINISH", "ptr")

    def call() -> Value:
        answer = process.ask(code, "ptr", "CALL_ONE_ARG", function, tree)
        process.drop_reference(code, tree)
        return answer

    return code.choose(is_null(function), lambda: tree, call)


def _join(process: Process, code: Code, operation: Value, length: Value, keys: Value, children: Value) -> Value:
    """A node over its children, whose references it takes over, even if it fails."""
    is_none, is_tuple, is_list = (operation.equals(process.numbers[f"B_{kind}"]) for kind in ("NONE", "TUPLE", "LIST"))

    def none() -> Value:
        process.count_reference(code, process.object(code, "NONE"))
        return process.object(code, "NONE")

    def new_sequence() -> Value:
        new = partial(process.ask, code, "ptr")
        return code.choose(is_tuple, lambda: new("TUPLE_NEW", length), lambda: new("LIST_NEW", length))

    def sequence() -> Value:
        def put(k: Value, node: Value, child: Value) -> Value:
            # Both take over the child's reference, and cannot fail on a new node.
            return code.choose(
                is_tuple,
                lambda: process.ask(code, "i32", "TUPLE_SET", node, k, child),
                lambda: process.ask(code, "i32", "LIST_SET", node, k, child),
            )

        return _fill(process, code, new_sequence(), length, children, put)

    def dictionary() -> Value:
        def put(k: Value, node: Value, child: Value) -> Value:
            key = process.tuple_item(code, keys, k)
            status = process.ask(code, "i32", "DICT_SET", node, key, child)
            process.drop_reference(code, child)  # a dict counts a reference of its own
            return status

        node = process.ask(code, "ptr", "DICT_NEW")
        return _fill(process, code, node, length, children, put)

    return code.choose(is_none, none, lambda: code.choose(is_tuple | is_list, sequence, dictionary))


def _fill(
    process: Process,
    code: Code,
    node: Value,
    length: Value,
    children: Value,
    put: Callable[[Value, Value, Value], Value],
) -> Value:
    """Put each child into a new node; null, with all references dropped, if the node is null or one
    child fails."""
    number, failure = code.variable("i64", 0), code.variable("i32", 0)

    def is_going() -> tuple[Value, Value]:
        k = code.load("i64", number)
        return (k < length) & code.load("i32", failure).equals(0), k

    def step(k: Value) -> None:
        # Counted first: `put` takes over the child's reference even where it fails.
        code.store(k + 1, number)
        code.store(put(k, node, item(code, children, k, "ptr")), failure)

    def undo() -> Value:
        process.drop_reference(code, node)
        return let_children_go()

    def let_children_go() -> Value:
        code.tell("void", "drop", children, code.load("i64", number), length)
        return null(code)

    def fill() -> Value:
        code.loop(is_going, step)
        has_failed = code.load("i32", failure).compare("ne", 0)
        return code.choose(has_failed, undo, lambda: node)

    return code.choose(is_null(node), let_children_go, fill)
