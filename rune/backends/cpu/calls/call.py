"""A cached call, from Python's arguments to Python's results, as native code.

    @call      the first cached call of an instance that fits, else the general call
    @call_by   the first of the given cached calls that fits, else a call of the given function
    @general   the call through the Python function that handles all calls
    @settings  the settings in force
    @attempt   one cached call; returns UNFIT, having done nothing, if this is another call

Each returns a new reference, or null if Python has set an error; @settings returns a borrowed one.
If memory is short, the general call is made, which raises the error with details; all other errors
are raised here.

Invariant: objects that are used while other Python code may run are counted, and released on every
path.
"""

from __future__ import annotations

from functools import partial

from rune.backends.cpu.calls.process import Process, item
from rune.backends.cpu.routines import Code, define, is_null, null, true
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

_MOST_COPIED = 256  # arguments of a general call that are copied to the stack
_DATA = "@unfit = internal global i8 0"  # its address is the result UNFIT: no object can have it


def text(process: Process) -> str:
    """The functions."""
    call = "ptr instance, ptr argv, i64 count, ptr names"
    functions = [
        (("ptr", "general", call), _general),
        (("ptr", "settings", ""), _settings),
        (("ptr", "attempt", "ptr words, ptr argv, i64 count, ptr names, ptr settings"), _attempt),
    ]
    exported = [
        (("ptr", "call", call), _call),
        (("ptr", "call_by", "ptr calls, ptr function, ptr argv, i64 count, ptr names"), _call_by),
    ]
    internal = [define(s, partial(write, process)) for s, write in functions]
    return "\n\n".join([_DATA, *internal, *(define(s, partial(write, process), "") for s, write in exported)])


def _unfit(code: Code) -> Value:
    return code.symbol("unfit")


# --- cached or general --------------------------------------------------------------------------


def _call(process: Process, code: Code, instance: Value, argv: Value, count: Value, names: Value) -> Value:
    """The method: tries the cached calls of the instance, then makes the general call."""
    # Null until a call of the instance has been described.
    answer = _cached(process, code, process.field(code, instance, "SLOT_CALLS"), argv, count, names)
    general = partial(code.ask, "ptr", "general", instance, argv, count, names)
    return code.choose(answer.equals(_unfit(code)), general, lambda: answer)


def _call_by(
    process: Process, code: Code, calls: Value, function: Value, argv: Value, count: Value, names: Value
) -> Value:
    """The call with a tuple of cached calls, or null, that belongs to no instance."""
    answer = _cached(process, code, calls, argv, count, names)
    general = partial(process.ask, code, "ptr", "VECTORCALL", function, argv, count, names)
    return code.choose(answer.equals(_unfit(code)), general, lambda: answer)


def _cached(process: Process, code: Code, calls: Value, argv: Value, count: Value, names: Value) -> Value:
    """The result of the first cached call that fits, else UNFIT; `calls` may be null."""

    def by_settings() -> Value:
        settings = code.ask("ptr", "settings")
        attempt = partial(_first_that_fits, process, code, calls, argv, count, names, settings)
        return code.choose(is_null(settings), lambda: _unfit(code), attempt)

    return code.choose(is_null(calls), lambda: _unfit(code), by_settings)


def _first_that_fits(process: Process, code: Code, calls: Value, *call: Value) -> Value:
    """The result of the first cached call that fits, else UNFIT."""
    answer = code.allocate("ptr")
    code.store(_unfit(code), answer)

    def is_unfit(k: Value) -> Value:
        record = process.tuple_item(code, process.tuple_item(code, calls, k), 0)
        words = process.field_at(code, record, "BYTES_DATA")
        code.store(code.ask("ptr", "attempt", words, *call), answer)
        return code.load("ptr", answer).equals(_unfit(code))

    # Counted, because the instance may get another tuple during a call, which frees this one.
    process.count_reference(code, calls)
    code.leading(process.field(code, calls, "SIZE", "i64"), is_unfit)
    process.drop_reference(code, calls)
    return code.load("ptr", answer)


def _settings(process: Process, code: Code) -> Value:
    """The settings in force, borrowed.

    Null while a transformation is being traced, and after a change by `configure` that has not been
    resolved. Only their address is compared, so they need not be kept alive.
    """
    slot = code.allocate("ptr")

    def read(variable: str) -> Value:
        code.store(null(code), slot)
        return process.ask(code, "i32", "GET_VARIABLE", process.object(code, variable), null(code), slot)

    def is_outermost() -> Value:
        interpreter = code.load("ptr", slot)
        # Dropped at once: the context has its own reference. Unset means the outermost interpreter.
        process.drop_reference(code, interpreter)
        return is_null(interpreter) | interpreter.equals(process.object(code, "OUTERMOST"))

    def of_scope() -> Value:
        read("CONFIG_VARIABLE")
        scope = code.load("ptr", slot)
        return code.choose(is_null(scope), forget, lambda: borrow(scope))

    def borrow(scope: Value) -> Value:
        settings = process.field(code, scope, "SLOT_SETTINGS")
        process.drop_reference(code, scope)
        return settings

    def forget() -> Value:
        process.clear_error(code)  # of a variable that could not be read
        return null(code)

    is_readable = read("INTERPRETER_VARIABLE").equals(0)
    return code.choose(code.where(is_readable, is_outermost), of_scope, forget)


# --- general calls ------------------------------------------------------------------------------


def _general(process: Process, code: Code, instance: Value, argv: Value, count: Value, names: Value) -> Value:
    """The call through the general Python function."""
    # The values of keyword arguments follow the positional ones in argv.
    total = count + _keyword_count(process, code, names)
    on_stack = partial(_call_from_stack, process, code, instance, argv, count, total, names)
    bound = partial(_call_bound, process, code, instance, argv, count, names)
    return code.choose(total > _MOST_COPIED, bound, on_stack)


def _call_bound(process: Process, code: Code, instance: Value, argv: Value, count: Value, names: Value) -> Value:
    """Call a bound method: the interpreter then copies the arguments, and not to the stack."""
    method = process.ask(code, "ptr", "METHOD_NEW", process.object(code, "GENERAL"), instance)

    def call() -> Value:
        answer = process.ask(code, "ptr", "VECTORCALL", method, argv, count, names)
        process.drop_reference(code, method)
        return answer

    return code.choose(is_null(method), lambda: null(code), call)


def _call_from_stack(
    process: Process, code: Code, instance: Value, argv: Value, count: Value, total: Value, names: Value
) -> Value:
    """Call with the instance and the arguments copied to the stack."""
    copy = code.row("ptr", total + 1)
    code.store(instance, copy)

    def copy_one(k: Value) -> None:
        code.store(item(code, argv, k, "ptr"), code.item(copy, "ptr", k + 1))

    code.count_up(code.constant("i64", 0), total, 1, copy_one)
    return process.ask(code, "ptr", "VECTORCALL", process.object(code, "GENERAL"), copy, count + 1, names)


def _keyword_count(process: Process, code: Code, names: Value) -> Value:
    """The number of keyword arguments; the tuple of their names is null if there are none."""
    has_names = is_null(names).invert()
    return code.where(has_names, lambda: process.field(code, names, "SIZE", "i64"))


# --- an attempt ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A cached call that is being made: its words, and its memory on the stack."""

    process: Process
    code: Code
    words: Value
    inputs: Value  # their number
    results: Value  # their number
    nodes: Value  # the objects of all nodes, borrowed; donated arrays are counted
    data: Value  # the addresses that the code takes: inputs, results, the arena, sizes
    arrays: Value  # the results, whose references the attempt owns until @build takes them

    def word(self, word: str, type: str = "i64") -> Value:
        """One of the first words of the call."""
        return self.process.word(self.code, self.words, word, type)

    def datum(self, number: Value) -> Value:
        """The place of one of the addresses."""
        return self.code.item(self.data, "ptr", number)

    def drop_arrays(self, end: Value) -> None:
        """Release the results before `end`."""
        self.code.tell("void", "drop", self.arrays, self.code.constant("i64", 0), end)

    def count(self, word: str) -> None:
        """Add one to the counter to which a word points."""
        counter = self.word(word, "ptr")
        self.code.store(self.code.load("i64", counter) + 1, counter)


def _attempt(
    process: Process, code: Code, words: Value, argv: Value, count: Value, names: Value, settings: Value
) -> Value:
    """Make the call, if settings, number and names of the arguments are those of the cached
    call."""
    has_settings = process.word(code, words, "W_CONFIG", "ptr").equals(settings)
    has_count = process.word(code, words, "W_POSITIONAL").equals(count)
    is_alike = code.where(has_settings & has_count, lambda: _has_names(process, code, words, names))
    return code.choose(is_alike, lambda: _match_arguments(process, code, words, argv), lambda: _unfit(code))


def _has_names(process: Process, code: Code, words: Value, names: Value) -> Value:
    """Whether the keyword names are those of the cached call, in its order."""
    # By identity: names in source code are interned, and other calls go the general way.
    count = process.word(code, words, "W_NAMES")
    expected_names = code.item(words, "i64", process.word(code, words, "W_NAMES_AT"))

    def is_name(k: Value) -> Value:
        return process.tuple_item(code, names, k).equals(item(code, expected_names, k, "ptr"))

    is_as_many = _keyword_count(process, code, names).equals(count)
    return code.where(is_as_many, lambda: code.leading(count, is_name).equals(count))


def _match_arguments(process: Process, code: Code, words: Value, argv: Value) -> Value:
    """Make the call, if each argument is as described. Nothing is done before all are checked."""
    counts = (process.word(code, words, f"W_{word}") for word in ("NODES", "INPUTS", "RESULTS", "SIZES"))
    nodes, inputs, results, sizes = counts
    data, arrays = code.row("ptr", inputs + results + 1 + sizes), code.row("ptr", results)
    # Their number, then one for each node at most, and one more for each donated array.
    references = code.row("ptr", nodes + process.word(code, words, "W_DONATED") + 1)
    objects = code.row("ptr", nodes)
    rows = (objects, data, code.row("i64", inputs), references)
    place = code.ask("ptr", "match", words, argv, *rows)
    attempt = _Attempt(process, code, words, inputs, results, objects, data, arrays)
    player = attempt.word("W_PLAYER", "ptr")

    def run() -> Value:
        return code.choose(
            is_null(player), lambda: _make_results(attempt, place), lambda: _play(attempt, player, place)
        )

    answer = code.choose(is_null(place), lambda: _refuse(process, code), run)
    code.tell("void", "release", references)
    return answer


def _refuse(process: Process, code: Code) -> Value:
    """UNFIT; null if an interrupt came while arguments were compared, so that it is raised."""
    has_no_error = is_null(process.ask(code, "ptr", "ERROR"))
    return code.choose(has_no_error, lambda: _unfit(code), lambda: null(code))


def _play(attempt: _Attempt, player: Value, place: Value) -> Value:
    """Run the plan on a device, and wrap the buffers in the tuple that the player returns."""
    process, code = attempt.process, attempt.code
    buffers = process.ask(code, "ptr", "VECTORCALL", player, attempt.data, attempt.inputs, null(code))

    def wrap(k: Value) -> Value:
        buffer = process.tuple_item(code, buffers, k)
        process.count_reference(code, buffer)
        array = code.ask("ptr", "wrap", attempt.words, k, place, buffer)
        code.store(array, code.item(attempt.arrays, "ptr", k))
        return is_null(array).invert()

    def build() -> Value:
        attempt.count("W_RUNS")
        return code.ask("ptr", "build", attempt.words, attempt.arrays)

    def wrap_all() -> Value:
        count = code.leading(attempt.results, wrap)
        return code.choose(count.equals(attempt.results), build, lambda: drop(count))

    def drop(count: Value) -> Value:
        attempt.drop_arrays(count)
        return null(code)  # not UNFIT: the device has run the plan, which must not run again

    def answer() -> Value:
        is_declined = buffers.equals(process.object(code, "NONE"))
        result = code.choose(is_declined, lambda: _unfit(code), wrap_all)
        process.drop_reference(code, buffers)
        return result

    return code.choose(is_null(buffers), lambda: null(code), answer)


def _make_results(attempt: _Attempt, place: Value) -> Value:
    """Make arrays for the results, then continue the call."""
    code = attempt.code

    def is_there(k: Value) -> Value:
        array = code.ask("ptr", "lend", attempt.words, k, place, attempt.nodes, attempt.data)
        code.store(array, code.item(attempt.arrays, "ptr", k))
        return is_null(array).invert()

    count = code.leading(attempt.results, is_there)
    return code.choose(
        count.equals(attempt.results), lambda: _take_arena(attempt), lambda: _without_memory(attempt, count)
    )


def _take_arena(attempt: _Attempt) -> Value:
    """Take an arena, if the code needs one, then continue the call."""
    code, nbytes = attempt.code, attempt.word("W_ARENA_BYTES")
    is_needed = nbytes.compare("ne", 0)
    take = partial(code.ask, "ptr", "take_arena", attempt.words, nbytes)
    arena = code.choose(is_needed, take, lambda: null(code))
    return code.choose(
        is_needed & is_null(arena), lambda: _without_memory(attempt, attempt.results), lambda: _run(attempt, arena)
    )


def _without_memory(attempt: _Attempt, count: Value) -> Value:
    """Release the first `count` results: UNFIT if memory is short, null for other errors."""
    process, code = attempt.process, attempt.code
    code.tell("void", "take_back", attempt.words, count, attempt.nodes, attempt.data, attempt.arrays)
    attempt.drop_arrays(count)
    memory_error = process.object(code, "MEMORY_ERROR")
    is_short = process.ask(code, "i32", "ERROR_MATCHES", memory_error).compare("ne", 0)

    def forget() -> Value:
        process.clear_error(code)
        return _unfit(code)

    return code.choose(is_short, forget, lambda: null(code))


def _run(attempt: _Attempt, arena: Value) -> Value:
    """Run the code and build the tree of results; takes over the reference to the arena, if any."""
    code, number = attempt.code, attempt.inputs + attempt.results
    sizes = code.item(attempt.words, "i64", attempt.word("W_SIZES_AT"))

    def lend() -> None:
        code.store(attempt.process.field(code, arena, "DATA"), attempt.datum(number))

    def copy(k: Value) -> None:
        code.store(item(code, sizes, k, "ptr"), attempt.datum(number + 1 + k))

    code.either(is_null(arena).invert(), lend)
    code.count_up(code.constant("i64", 0), attempt.word("W_SIZES"), 1, copy)
    return code.choose(_is_complete(attempt), lambda: _finish(attempt, arena), lambda: _abandon(attempt, arena))


def _is_complete(attempt: _Attempt) -> Value:
    """Run the code; false if it was interrupted, with the error set."""
    process, code = attempt.process, attempt.code
    run = partial(code.tell, "void", attempt.word("W_FUNCTION", "ptr"), attempt.data)

    def run_briefly() -> Value:
        run()
        return true(code)  # a brief plan checks for no signals

    def run_unlocked() -> Value:
        state = process.ask(code, "ptr", "SAVE_THREAD")
        run()
        code.tell("void", process.object(code, "RESTORE_THREAD"), state)
        return is_null(process.ask(code, "ptr", "ERROR"))

    # Before another thread may run, and even if the run is interrupted: the memory of donated
    # arguments will be overwritten.
    code.tell("void", "delete", attempt.words, attempt.nodes)
    attempt.count("W_SUBMITTED")
    is_brief = attempt.word("W_IS_BRIEF").compare("ne", 0)
    is_complete = code.choose(is_brief, run_briefly, run_unlocked)
    attempt.count("W_FINISHED")
    attempt.count("W_RUNS")
    return is_complete


def _finish(attempt: _Attempt, arena: Value) -> Value:
    """Return the arena to the list for later calls, and build the tree of results."""
    process, code = attempt.process, attempt.code

    def give_back() -> None:
        status = process.ask(code, "i32", "LIST_APPEND", attempt.word("W_ARENAS", "ptr"), arena)
        code.either(status.compare("ne", 0), lambda: process.clear_error(code))
        process.drop_reference(code, arena)  # frees it, if the list could not take it

    code.either(is_null(arena).invert(), give_back)
    return code.ask("ptr", "build", attempt.words, attempt.arrays)


def _abandon(attempt: _Attempt, arena: Value) -> Value:
    """Release the results and the arena; null, so that the error that is set is raised."""
    attempt.drop_arrays(attempt.results)
    attempt.process.drop_reference(attempt.code, arena)
    return null(attempt.code)
