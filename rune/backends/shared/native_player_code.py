"""The machine code of native players (native_player.py).

    @play      the function of Python
    @attempt   takes memory for the results, then the lock, and makes the call
    @is_valid  whether the list may be played
    @take      a block from a stock             @wrap   a buffer over it
    @enqueue   the call, under the lock         @note   have its end noted
    @number    note the call's number at the memory that it uses
    @follow    have an unfinished call counted, with an error set

Each that returns an object returns a new reference, or null if Python has set an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial

from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.calls import describe
from rune.backends.cpu.calls.process import Process, item
from rune.backends.cpu.routines import Code, definitions, is_null, null, true
from rune.backends.shared import call_list, lists_code, ring_code
from rune.backends.shared.pool import Block, Chunk
from rune.backends.shared.stock import Stock
from rune.backends.shared.turns import Arena, DeviceBuffer, Turns
from rune.backends.shared.work import KEPT
from rune.errors import OutOfMemory
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value

HEAD = """
    OTHERWISE ARGUMENTS RESULTS RESULTS_AT PAIRS PAIRS_AT TURNS TAKE FREE ARENA ARENA_BYTES ARENA_WORD
    POOL PLACES PLACES_AT LISTS RING BEGIN RUN STARTS COUNT FINISH REFUSE ANSWER END OPTION HAS_ENDED
    NOTED NOTE FOLLOW FOLLOW_MARKER
""".split()
_RESULT_WORDS = 5  # stock, its `take`, its pool's count, type, shape
_DONE, _INVALID, _FAILED, _FAILED_NOTED = range(4)  # how an attempt ends
_SLOTS = (
    (Block, "number"),
    (Block, "bytes"),
    (Block, "pool"),
    (Block, "span"),
    (Block, "writer"),
    (Chunk, "uses"),
    (DeviceBuffer, "memory"),
    (DeviceBuffer, "type"),
    (DeviceBuffer, "shape"),
    (Stock, "_blocks"),
    (Arena, "block"),
    (Turns, "caller"),
    (Turns, "loss"),
    (Turns, "last"),
)


def compiled() -> compiler.Code | None:
    """The code; None if this interpreter is not a known one. Errors: CompileError."""
    return None if _process() is None else _code()


@compiler.lasting
def _code() -> compiler.Code:
    functions = [
        (("ptr", "play", "ptr self, ptr argv, i64 count"), _play),
        (("i64", "attempt", "ptr words, ptr argv, ptr numbers, ptr buffers"), _attempt),
        (("i1", "is_valid", "ptr words"), _is_valid),
        (("i1", "is_read", "ptr words, ptr buffer, ptr number"), _is_read),
        (("ptr", "take", "ptr result"), _take),
        (("ptr", "wrap", "ptr result, ptr block"), _wrap),
        (("i64", "enqueue", "ptr words, ptr argv, ptr numbers, ptr buffers"), _enqueue),
        (("i1", "number", "ptr words, ptr argv, ptr buffers, ptr arena"), _number),
        (("i1", "use", "ptr block, ptr number"), _use),
        (("i1", "refused", "ptr words, ptr argv, ptr buffers, i64 count"), _refused),
        (("i64", "note", "ptr words"), _note),
        (("void", "release", "ptr words, i64 outcome"), _release),
    ]
    player = definitions(functions, _process(), exported=("play",))
    text = "\n\n".join([player, lists_code.text(), ring_code.text(call_list.helpers().run)])
    return compiler.compile_module("player", text, conventions.LITTLE)


@functools.cache
def _process() -> Process | None:
    """The process, with the classes of a device's arrays."""
    host = describe.host()
    offsets = {f"{cls.__name__}.{slot}": describe.slot_offset(cls, slot) for cls, slot in _SLOTS}
    known = {word: offset for word, offset in offsets.items() if offset is not None}
    if host is None or len(known) < len(offsets):
        return None
    objects = {"BLOCK": Block, "BUFFER": DeviceBuffer, "NONE": None, "OUT_OF_MEMORY": OutOfMemory, "PARTIAL": partial}
    pointers = {word: pointer_to(id(x)) for word, x in objects.items()}
    words = {f"W_{name}": number for number, name in enumerate(HEAD)}
    return Process({**host.pointers, **pointers}, {**host.numbers, **known, **words})


# --- a call -----------------------------------------------------------------------------------


def _play(process: Process, code: Code, instance: Value, argv: Value, count: Value) -> Value:
    """A tuple of buffers, or what Python's way returns. `self` is the address of the words."""
    words = process.ask(code, "i64", "INT_BITS", instance).cast("inttoptr", "ptr")
    results = process.word(code, words, "W_RESULTS")
    numbers, buffers = code.row("i64", count + results), code.row("ptr", results)
    zero = code.constant("i64", 0)
    # Null, so that all can be dropped however many there are.
    code.count_up(zero, results, 1, lambda k: code.store(null(code), code.item(buffers, "ptr", k)))
    outcome = code.ask("i64", "attempt", words, argv, numbers, buffers)

    def in_tuple() -> Value:
        answer = process.ask(code, "ptr", "TUPLE_NEW", results)
        return code.choose(is_null(answer), drop, lambda: fill(answer))

    def fill(answer: Value) -> Value:
        def put(k: Value) -> None:
            slot = code.item(process.field_at(code, answer, "TUPLE_ITEMS"), "ptr", k)
            code.store(item(code, buffers, k, "ptr"), slot)

        code.count_up(zero, results, 1, put)
        return answer

    def drop() -> Value:
        code.count_up(zero, results, 1, lambda k: process.drop_reference(code, item(code, buffers, k, "ptr")))
        return null(code)

    def otherwise() -> Value:
        drop()
        return process.ask(
            code, "ptr", "VECTORCALL", process.word(code, words, "W_OTHERWISE", "ptr"), argv, count, null(code)
        )

    return code.switch(outcome, {_DONE: in_tuple, _INVALID: otherwise}, drop)


def _attempt(process: Process, code: Code, words: Value, argv: Value, numbers: Value, buffers: Value) -> Value:
    """Make the call; INVALID if nothing was done."""
    arguments, results = (process.word(code, words, f"W_{word}") for word in ("ARGUMENTS", "RESULTS"))

    def is_known(k: Value) -> Value:
        return code.ask("i1", "is_read", words, item(code, argv, k, "ptr"), code.item(numbers, "i64", k))

    def is_made(k: Value) -> Value:
        result = code.item(code.item(words, "i64", process.word(code, words, "W_RESULTS_AT")), "i64", k * _RESULT_WORDS)
        block = code.ask("ptr", "take", result)
        return code.where(is_null(block).invert(), lambda: is_wrapped(k, result, block))

    def is_wrapped(k: Value, result: Value, block: Value) -> Value:
        buffer = code.ask("ptr", "wrap", result, block)
        code.store(buffer, code.item(buffers, "ptr", k))
        at = code.item(numbers, "i64", arguments + k)
        return code.where(is_null(buffer).invert(), lambda: code.ask("i1", "is_read", words, buffer, at))

    def with_results() -> Value:
        count = code.leading(results, is_made)
        return code.choose(count.equals(results), in_turn, lambda: _without_memory(process, code))

    def in_turn() -> Value:
        answer = _call(process, code, process.word(code, words, "W_TAKE", "ptr"))
        return code.choose(is_null(answer), lambda: code.constant("i64", _FAILED), lambda: locked(answer))

    def locked(answer: Value) -> Value:
        process.drop_reference(code, answer)
        outcome = code.ask("i64", "enqueue", words, argv, numbers, buffers)
        code.tell("void", "release", words, outcome)
        return outcome

    is_valid = code.ask("i1", "is_valid", words)
    fits = code.where(is_valid, lambda: code.leading(arguments, is_known).equals(arguments))
    return code.choose(fits, with_results, lambda: code.constant("i64", _INVALID))


def _call(process: Process, code: Code, function: Value, *args: Value) -> Value:
    """The result of a Python function."""
    row = code.allocate("ptr", max(1, len(args)))
    for k, x in enumerate(args):
        code.store(x, code.item(row, "ptr", k))
    return process.ask(code, "ptr", "VECTORCALL", function, row, code.constant("i64", len(args)), null(code))


def _is_valid(process: Process, code: Code, words: Value) -> Value:
    """Whether all pairs of words are equal, and no callback runs, and the device is there."""
    pairs = code.item(words, "i64", process.word(code, words, "W_PAIRS_AT"))
    count = process.word(code, words, "W_PAIRS")

    def is_equal(k: Value) -> Value:
        a, b = (code.load("i64", item(code, pairs, k * 2 + n, "ptr")) for n in range(2))
        return a.equals(b)

    turns, none_object = process.word(code, words, "W_TURNS", "ptr"), process.object(code, "NONE")
    is_free, is_there = (process.field(code, turns, f"Turns.{slot}").equals(none_object) for slot in ("caller", "loss"))
    return is_free & is_there & code.leading(count, is_equal).equals(count)


def _is_read(process: Process, code: Code, words: Value, buffer: Value, number: Value) -> Value:
    """Store the number of a buffer's memory; false for memory of other libraries, and of a device
    that was opened before."""
    block = process.field(code, buffer, "DeviceBuffer.memory")

    def is_own() -> Value:
        code.store(process.ask(code, "i64", "INT_BITS", process.field(code, block, "Block.number")), number)
        return process.field(code, block, "Block.pool").equals(process.word(code, words, "W_POOL", "ptr"))

    return code.where(process.field(code, block, "TYPE").equals(process.object(code, "BLOCK")), is_own)


def _without_memory(process: Process, code: Code) -> Value:
    """INVALID if memory is short: Python then raises the error with the plan's arena and lines."""
    error = process.object(code, "OUT_OF_MEMORY")

    def forget() -> Value:
        process.clear_error(code)
        return code.constant("i64", _INVALID)

    is_short = process.ask(code, "i32", "ERROR_MATCHES", error).compare("ne", 0)
    return code.choose(is_short, forget, lambda: code.constant("i64", _FAILED))


# --- memory -----------------------------------------------------------------------------------


def _take(process: Process, code: Code, result: Value) -> Value:
    """A block of the stock that only the stock refers to; else its `take`.

    Between the look at a count and the new reference no other code runs.
    """
    blocks = process.field(code, item(code, result, 0, "ptr"), "Stock._blocks")
    count = process.field(code, blocks, "SIZE", "i64")

    def block_at(k: Value) -> Value:
        return process.ask(code, "ptr", "LIST_ITEM", blocks, k)

    def is_used(k: Value) -> Value:
        return process.field(code, block_at(k), "REFERENCES", "i32").compare("ne", 1)

    def again(k: Value) -> Value:
        block = block_at(k)
        process.count_reference(code, block)
        process.drop_reference(code, process.ask(code, "ptr", "NEXT", item(code, result, 2, "ptr")))
        return block

    number = code.leading(count, is_used)
    fresh = partial(_call, process, code, item(code, result, 1, "ptr"))
    return code.choose(number < count, lambda: again(number), fresh)


def _wrap(process: Process, code: Code, result: Value, block: Value) -> Value:
    """A buffer, which takes over the reference to its block."""
    zero = code.constant("i64", 0)
    buffer = process.ask(code, "ptr", "GENERIC_ALLOC", process.object(code, "BUFFER"), zero)

    def fill() -> None:
        type, shape = item(code, result, 3, "ptr"), item(code, result, 4, "ptr")
        for object in (type, shape):
            process.count_reference(code, object)
        for slot, object in (("memory", block), ("type", type), ("shape", shape)):
            code.store(object, process.field_at(code, buffer, f"DeviceBuffer.{slot}"))

    code.either(is_null(buffer), lambda: process.drop_reference(code, block), fill)
    return buffer


# --- under the lock ---------------------------------------------------------------------------


def _enqueue(process: Process, code: Code, words: Value, argv: Value, numbers: Value, buffers: Value) -> Value:
    """Play the list on the call's memory."""
    places = code.item(words, "i64", process.word(code, words, "W_PLACES_AT"))

    def write(k: Value) -> None:
        position, at = item(code, places, k * 2), item(code, places, k * 2 + 1, "ptr")
        code.store(item(code, numbers, position), at)

    def play() -> Value:
        arena = _take_arena(process, code, words)
        code.count_up(code.constant("i64", 0), process.word(code, words, "W_PLACES"), 1, write)
        code.either(has_ring, lambda: code.tell("void", "begin", ring))
        run = process.word(code, words, "W_RUN", "ptr")
        count = code.ask("i64", run, item(code, calls, 0, "ptr"))
        is_numbered = code.choose(
            has_ring, lambda: code.ask("i1", "number", words, argv, buffers, arena), lambda: true(code)
        )
        process.drop_reference(code, arena)
        is_whole = count.equals(item(code, calls, 1))
        is_made = code.where(is_numbered, lambda: code.choose(is_whole, is_finished, lambda: is_mended(count)))
        return code.choose(is_made, lambda: code.ask("i64", "note", words), failed)

    def is_finished() -> Value:
        function = process.word(code, words, "W_FINISH", "ptr")
        return code.choose(is_null(function), lambda: true(code), lambda: is_good(_call(process, code, function)))

    def is_good(answer: Value) -> Value:
        process.drop_reference(code, answer)
        is_none = answer.equals(process.object(code, "NONE"))
        mended = partial(code.choose, is_none, lambda: true(code), lambda: is_mended(item(code, calls, 1)))
        return code.where(is_null(answer).invert(), mended)

    def is_mended(count: Value) -> Value:
        return code.ask("i1", "refused", words, argv, buffers, count).invert()

    def failed() -> Value:
        return code.constant("i64", _FAILED)

    def begin() -> Value:
        function = process.word(code, words, "W_BEGIN", "ptr")
        return code.choose(
            is_null(function), play, lambda: code.choose(_is_called(process, code, function), play, failed)
        )

    ring = process.word(code, words, "W_RING", "ptr")
    has_ring = is_null(ring).invert()
    # First, as others run while the driver is asked.
    is_free = code.choose(has_ring, lambda: code.ask("i1", "is_free", ring), lambda: true(code))
    # Again, because another thread may have had its turn in between.
    is_valid = code.where(is_free, lambda: code.ask("i1", "is_valid", words))
    has_arena = code.where(is_valid, lambda: _has_arena(process, code, words))
    calls = code.choose(has_arena, lambda: _calls(process, code, words, numbers), lambda: null(code))
    is_ready = is_null(calls).invert()
    return code.choose(is_ready, begin, lambda: code.constant("i64", _INVALID))


def _calls(process: Process, code: Code, words: Value, numbers: Value) -> Value:
    """The address of the list's `starts` and number of calls; null if there is none for this
    memory."""
    lists = process.word(code, words, "W_LISTS", "ptr")
    only = code.item(words, "i64", process.numbers["W_STARTS"])
    return code.choose(is_null(lists), lambda: only, lambda: code.ask("ptr", "find", lists, numbers))


def _is_called(process: Process, code: Code, function: Value, *args: Value) -> Value:
    """Call a Python function; false if it has raised an error."""
    answer = _call(process, code, function, *args)
    process.drop_reference(code, answer)
    return is_null(answer).invert()


def _has_arena(process: Process, code: Code, words: Value) -> Value:
    """Write the arena's number, if the list has a word for it; false if the arena has to grow."""
    at = process.word(code, words, "W_ARENA_WORD", "ptr")

    def is_there() -> Value:
        block = process.field(code, process.word(code, words, "W_ARENA", "ptr"), "Arena.block")
        return code.where(block.compare("ne", process.object(code, "NONE")), lambda: is_large(block))

    def is_large(block: Value) -> Value:
        nbytes = process.ask(code, "i64", "INT_BITS", process.field(code, block, "Block.bytes"))
        code.store(process.ask(code, "i64", "INT_BITS", process.field(code, block, "Block.number")), at)
        return nbytes >= process.word(code, words, "W_ARENA_BYTES")

    return code.choose(is_null(at), lambda: true(code), is_there)


def _take_arena(process: Process, code: Code, words: Value) -> Value:
    """A new reference to the arena, as others may replace it while the driver is called; null if
    the list has no word for it."""
    at = process.word(code, words, "W_ARENA_WORD", "ptr")

    def take() -> Value:
        block = process.field(code, process.word(code, words, "W_ARENA", "ptr"), "Arena.block")
        process.count_reference(code, block)
        return block

    return code.choose(is_null(at), lambda: null(code), take)


def _number(process: Process, code: Code, words: Value, argv: Value, buffers: Value, arena: Value) -> Value:
    """Note the number of the call at its ring, and at the memory that it uses; false if Python has
    raised an error."""
    ring = process.word(code, words, "W_RING", "ptr")
    arguments, results = (process.word(code, words, f"W_{word}") for word in ("ARGUMENTS", "RESULTS"))
    # Before anything else: no code of others may run while an entry is in use but looks free.
    code.tell("void", "end", ring)
    number = process.ask(code, "ptr", "INT", ring_code.last(code, ring))

    def block_of(row: Value, k: Value) -> Value:
        return process.field(code, item(code, row, k, "ptr"), "DeviceBuffer.memory")

    def is_written(k: Value) -> Value:
        block = block_of(buffers, k)
        at = process.field_at(code, block, "Block.writer")
        before = code.load("ptr", at)
        process.count_reference(code, number)
        code.store(number, at)
        process.drop_reference(code, before)
        return code.ask("i1", "use", block, number)

    def are_used() -> Value:
        is_read = code.leading(arguments, lambda k: code.ask("i1", "use", block_of(argv, k), number)).equals(arguments)
        return code.where(is_read, lambda: code.leading(results, is_written).equals(results))

    def is_arena_used() -> Value:
        return code.choose(is_null(arena), lambda: true(code), lambda: code.ask("i1", "use", arena, number))

    is_noted = code.where(is_null(number).invert(), lambda: code.where(are_used(), is_arena_used))
    process.drop_reference(code, number)
    return is_noted


def _use(process: Process, code: Code, block: Value, number: Value) -> Value:
    """Note a call's number as the last use of a block, as `Block.use` does."""
    span = process.field(code, block, "Block.span")
    uses = process.field(code, process.tuple_item(code, span, 0), "Chunk.uses")
    return process.ask(code, "i32", "DICT_SET", uses, process.tuple_item(code, span, 1), number).equals(0)


def _refused(process: Process, code: Code, words: Value, argv: Value, buffers: Value, count: Value) -> Value:
    """Let Python go on after `count` calls; true if it has raised an error."""
    arguments, results = (process.word(code, words, f"W_{word}") for word in ("ARGUMENTS", "RESULTS"))
    row, zero = code.row("ptr", arguments + results + 1), code.constant("i64", 0)
    number = process.ask(code, "ptr", "INT", count)
    code.store(number, row)

    def copier(source: Value, first: Value) -> Callable[[Value], None]:
        return lambda k: code.store(item(code, source, k, "ptr"), code.item(row, "ptr", first + k))

    def call() -> Value:
        code.count_up(zero, arguments, 1, copier(argv, code.constant("i64", 1)))
        code.count_up(zero, results, 1, copier(buffers, arguments + 1))
        function, total = process.word(code, words, "W_REFUSE", "ptr"), arguments + results + 1
        return process.ask(code, "ptr", "VECTORCALL", function, row, total, null(code))

    answer = code.choose(is_null(number), lambda: null(code), call)
    for object in (number, answer):
        process.drop_reference(code, object)
    return is_null(answer)


def _note(process: Process, code: Code, words: Value) -> Value:
    """Remember the end of the call, and have it counted."""

    def word(name: str) -> Value:
        return process.word(code, words, f"W_{name}", "ptr")

    def failed() -> Value:
        return code.constant("i64", _FAILED)

    def end_of(answer: Value) -> Value:
        end = code.choose(is_null(word("END")), lambda: answer, lambda: converted(answer))
        return code.choose(is_null(end), failed, lambda: remember(end))

    def converted(answer: Value) -> Value:
        row, option = code.allocate("ptr", 2), word("OPTION")
        for k, x in enumerate((answer, option)):
            code.store(x, code.item(row, "ptr", k))
        count = code.select(is_null(option), code.constant("i64", 1), 2)
        end = process.ask(code, "ptr", "VECTORCALL", word("END"), row, count, null(code))
        process.drop_reference(code, answer)
        return end

    def remember(end: Value) -> Value:
        at = process.field_at(code, word("TURNS"), "Turns.last")
        # The old one is dropped last: that may run Python code, which must see a valid slot.
        before = code.load("ptr", at)
        code.store(end, at)
        process.count_reference(code, end)
        process.drop_reference(code, before)
        question = _call(process, code, process.object(code, "PARTIAL"), word("HAS_ENDED"), end)
        process.drop_reference(code, end)
        return code.choose(is_null(question), failed, lambda: count(question))

    def count(question: Value) -> Value:
        at = word("NOTED")
        noted = code.load("i64", at) + 1
        is_many = noted >= KEPT
        code.store(code.select(is_many, 0, noted), at)
        is_noted = _is_called(process, code, code.select(is_many, word("FOLLOW"), word("NOTE")), question)
        process.drop_reference(code, question)
        return code.choose(is_noted, lambda: code.constant("i64", _DONE), lambda: code.constant("i64", _FAILED_NOTED))

    answer = process.ask(code, "ptr", "INT", code.load("i64", word("ANSWER")))
    return code.choose(is_null(answer), failed, lambda: end_of(answer))


def _release(process: Process, code: Code, words: Value, outcome: Value) -> None:
    """Release the lock. A call that failed before it was counted is counted first."""
    errors = [code.allocate("ptr") for _ in range(3)]
    # Functions of Python must not be called while an error is set.
    code.tell("void", process.object(code, "FETCH_ERROR"), *errors)

    def follow() -> None:
        # An error of its own gives way to the first one.
        code.either(
            _is_called(process, code, process.word(code, words, "W_FOLLOW_MARKER", "ptr")),
            lambda: None,
            lambda: process.clear_error(code),
        )

    code.either(outcome.equals(_FAILED), follow)
    _is_called(process, code, process.word(code, words, "W_FREE", "ptr"))
    code.tell("void", process.object(code, "RESTORE_ERROR"), *(code.load("ptr", error) for error in errors))
