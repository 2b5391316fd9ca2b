"""A cached call, from Python's arguments to Python's results, as native code.

    @call      the first cached call that fits, else the general way
    @general   the call by the function that Python would have called
    @settings  the settings in force
    @attempt   one cached call; UNFIT, with nothing done, where this is another call

Each gives a new reference, or null where Python has set an error; @settings gives a borrowed one.
Where memory is short, the general way says of what it is short; other errors are raised.

Invariant: what is used while other Python code may run is counted, and let go on every path.
"""

from __future__ import annotations

from functools import partial

from rune.backends.cpu.calls.process import Process, is_null, item, null, true
from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

_MOST_COPIED = 256  # arguments that go to the general way over the stack
_DATA = "@unfit = internal global i8 0"  # its address is the answer UNFIT


def text(process: Process) -> str:
    """The functions."""
    call = "ptr instance, ptr argv, i64 count, ptr names"
    functions = [
        (("ptr", "general", call), _general),
        (("ptr", "settings", ""), _settings),
        (("ptr", "attempt", "ptr words, ptr argv, i64 count, ptr names, ptr settings"), _attempt),
    ]
    internal = [define(s, partial(write, process)) for s, write in functions]
    return "\n\n".join([_DATA, *internal, define(("ptr", "call", call), partial(_call, process), "")])


def _unfit(code: Code) -> Value:
    return code.symbol("unfit")


# --- which way to call --------------------------------------------------------------------------


def _call(process: Process, code: Code, instance: Value, argv: Value, count: Value, names: Value) -> Value:
    """The method: each cached call of the instance, then the general way."""
    calls = process.field(code, instance, "SLOT_CALLS")

    def by_settings() -> Value:
        settings = code.ask("ptr", "settings")
        attempt = partial(_first_that_fits, process, code, calls, argv, count, names, settings)
        return code.choose(is_null(settings), lambda: _unfit(code), attempt)

    answer = code.choose(is_null(calls), lambda: _unfit(code), by_settings)
    general = partial(code.ask, "ptr", "general", instance, argv, count, names)
    return code.choose(answer.equals(_unfit(code)), general, lambda: answer)


def _first_that_fits(process: Process, code: Code, calls: Value, *call: Value) -> Value:
    """What the first cached call that fits gives, else UNFIT."""
    answer = code.allocate("ptr")
    code.store(_unfit(code), answer)

    def is_unfit(k: Value) -> Value:
        record = process.tuple_item(code, process.tuple_item(code, calls, k), 0)
        words = process.field_at(code, record, "BYTES_DATA")
        code.store(code.ask("ptr", "attempt", words, *call), answer)
        return code.load("ptr", answer).equals(_unfit(code))

    # The instance may be given another tuple while a call runs, and this one would be freed.
    process.count_reference(code, calls)
    code.leading(process.field(code, calls, "SIZE", "i64"), is_unfit)
    process.drop_reference(code, calls)
    return code.load("ptr", answer)


def _settings(process: Process, code: Code) -> Value:
    """The settings in force, borrowed.

    Null while a transformation is being traced, and where a call of `configure` has not yet been
    heard. They are compared by their address only, so they need not be kept alive.
    """
    slot = code.allocate("ptr")

    def read(variable: str) -> Value:
        code.store(null(code), slot)
        return process.ask(code, "i32", "GET_VARIABLE", process.object(code, variable), null(code), slot)

    def is_outermost() -> Value:
        interpreter = code.load("ptr", slot)
        # The context holds a reference of its own. Where none is set, the outermost is in force.
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


# --- the general way ----------------------------------------------------------------------------


def _general(process: Process, code: Code, instance: Value, argv: Value, count: Value, names: Value) -> Value:
    """The call by the function that Python would have called."""
    total = count + _keyword_count(process, code, names)
    on_stack = partial(_call_from_stack, process, code, instance, argv, count, total, names)
    bound = partial(_call_bound, process, code, instance, argv, count, names)
    return code.choose(total > _MOST_COPIED, bound, on_stack)


def _call_bound(process: Process, code: Code, instance: Value, argv: Value, count: Value, names: Value) -> Value:
    """Call as a method: the interpreter copies the arguments, and not to the stack."""
    method = process.ask(code, "ptr", "METHOD_NEW", process.object(code, "GENERAL"), instance)

    def call() -> Value:
        answer = process.ask(code, "ptr", "VECTORCALL", method, argv, count, names)
        process.drop_reference(code, method)
        return answer

    return code.choose(is_null(method), lambda: null(code), call)


def _call_from_stack(
    process: Process, code: Code, instance: Value, argv: Value, count: Value, total: Value, names: Value
) -> Value:
    """Call with the instance in front of the arguments."""
    copy = code.row("ptr", total + 1)
    code.store(instance, copy)

    def copy_one(k: Value) -> None:
        code.store(item(code, argv, k, "ptr"), code.item(copy, "ptr", k + 1))

    code.count_up(code.constant("i64", 0), total, 1, copy_one)
    return process.ask(code, "ptr", "VECTORCALL", process.object(code, "GENERAL"), copy, count + 1, names)


def _keyword_count(process: Process, code: Code, names: Value) -> Value:
    """How many arguments have names; the tuple of names is null where none has."""
    has_names = is_null(names).invert()
    return code.where(has_names, lambda: process.field(code, names, "SIZE", "i64"))


# --- an attempt ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The words of a cached call that is being made, and its memory on the stack."""

    process: Process
    code: Code
    words: Value
    inputs: Value  # how many
    results: Value  # how many
    nodes: Value  # the objects of all nodes, borrowed; donated arrays are held
    data: Value  # the addresses that the code takes: inputs, results, the arena, sizes
    arrays: Value  # the results, whose references the attempt owns until @build takes them

    def word(self, word: str, type: str = "i64") -> Value:
        """One of the first words of the call."""
        return self.process.word(self.code, self.words, word, type)

    def datum(self, number: Value) -> Value:
        """Where one of the addresses stands."""
        return self.code.item(self.data, "ptr", number)

    def drop_arrays(self, end: Value) -> None:
        """Let go of the results before `end`."""
        self.code.tell("void", "drop", self.arrays, self.code.constant("i64", 0), end)

    def count(self, word: str) -> None:
        """Add one to a counter, to which a word points."""
        counter = self.word(word, "ptr")
        self.code.store(self.code.load("i64", counter) + 1, counter)


def _attempt(
    process: Process, code: Code, words: Value, argv: Value, count: Value, names: Value, settings: Value
) -> Value:
    """Make the call, if it is for these settings and this number and these names of arguments."""
    has_settings = process.word(code, words, "W_CONFIG", "ptr").equals(settings)
    has_count = process.word(code, words, "W_POSITIONAL").equals(count)
    is_alike = code.where(has_settings & has_count, lambda: _has_names(process, code, words, names))
    return code.choose(is_alike, lambda: _match_arguments(process, code, words, argv), lambda: _unfit(code))


def _has_names(process: Process, code: Code, words: Value, names: Value) -> Value:
    """Whether the arguments' names are these strings in this order."""
    count = process.word(code, words, "W_NAMES")
    expected = code.item(words, "i64", process.word(code, words, "W_NAMES_AT"))

    def is_name(k: Value) -> Value:
        return process.tuple_item(code, names, k).equals(item(code, expected, k, "ptr"))

    is_as_many = _keyword_count(process, code, names).equals(count)
    return code.where(is_as_many, lambda: code.leading(count, is_name).equals(count))


def _match_arguments(process: Process, code: Code, words: Value, argv: Value) -> Value:
    """Make the call, if each argument is as described; until then, nothing has been done."""
    counts = (process.word(code, words, f"W_{word}") for word in ("NODES", "INPUTS", "RESULTS", "SIZES"))
    nodes, inputs, results, sizes = counts
    data, arrays = code.row("ptr", inputs + results + 1 + sizes), code.row("ptr", results)
    # How many there are, one for each node, and one more for donated arrays.
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
    """UNFIT; where an interrupt came while arguments were compared, it is raised."""
    has_no_error = is_null(process.ask(code, "ptr", "ERROR"))
    return code.choose(has_no_error, lambda: _unfit(code), lambda: null(code))


def _play(attempt: _Attempt, player: Value, place: Value) -> Value:
    """Let a device run it, and wrap the buffers that the player gives in a tuple."""
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
        return null(code)  # the error is set: the call has been made, and is not made again

    def answer() -> Value:
        is_declined = buffers.equals(process.object(code, "NONE"))
        result = code.choose(is_declined, lambda: _unfit(code), wrap_all)
        process.drop_reference(code, buffers)
        return result

    return code.choose(is_null(buffers), lambda: null(code), answer)


def _make_results(attempt: _Attempt, place: Value) -> Value:
    """Make arrays for the results, and go on."""
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
    """Take an arena, if the code needs one, and go on."""
    code, nbytes = attempt.code, attempt.word("W_ARENA_BYTES")
    is_needed = nbytes.compare("ne", 0)
    take = partial(code.ask, "ptr", "take_arena", attempt.words, nbytes)
    arena = code.choose(is_needed, take, lambda: null(code))
    return code.choose(
        is_needed & is_null(arena), lambda: _without_memory(attempt, attempt.results), lambda: _run(attempt, arena)
    )


def _without_memory(attempt: _Attempt, count: Value) -> Value:
    """Let go of the first results: UNFIT where memory is short, other errors are raised."""
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
    """Run the code and make the tree of the results; takes the reference to the arena, if any."""
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
    """Run the code; false where a loop was interrupted, whose error is set."""
    process, code = attempt.process, attempt.code
    run = partial(code.tell, "void", attempt.word("W_FUNCTION", "ptr"), attempt.data)

    def run_briefly() -> Value:
        run()
        return true(code)  # nothing in it can be interrupted

    def run_unlocked() -> Value:
        state = process.ask(code, "ptr", "SAVE_THREAD")
        run()
        code.tell("void", process.object(code, "RESTORE_THREAD"), state)
        return is_null(process.ask(code, "ptr", "ERROR"))

    # Before anybody else may run, and also if the run is interrupted: lent memory is overwritten.
    code.tell("void", "delete", attempt.words, attempt.nodes)
    attempt.count("W_SUBMITTED")
    is_brief = attempt.word("W_IS_BRIEF").compare("ne", 0)
    is_complete = code.choose(is_brief, run_briefly, run_unlocked)
    attempt.count("W_FINISHED")
    attempt.count("W_RUNS")
    return is_complete


def _finish(attempt: _Attempt, arena: Value) -> Value:
    """Put the arena where later calls find it, and make the tree of the results."""
    process, code = attempt.process, attempt.code

    def give_back() -> None:
        status = process.ask(code, "i32", "LIST_APPEND", attempt.word("W_ARENAS", "ptr"), arena)
        code.either(status.compare("ne", 0), lambda: process.clear_error(code))
        process.drop_reference(code, arena)  # the last, if the list has no memory for another

    code.either(is_null(arena).invert(), give_back)
    return code.ask("ptr", "build", attempt.words, attempt.arrays)


def _abandon(attempt: _Attempt, arena: Value) -> Value:
    """Let go of the results and the arena; the error that is set is raised."""
    attempt.drop_arrays(attempt.results)
    attempt.process.drop_reference(attempt.code, arena)
    return null(attempt.code)
