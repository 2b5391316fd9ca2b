"""Writes the sort of words and positions (keys.py), and the tasks over rows that call it.

    ordered     the words of a first key: few by counting those before each, more by the digits of
                their upper halves, the last digit first; one that all words share takes no pass
    again       those of the next key, which are in the order of the one before
    least       the k least: words below a bound are put aside, and whenever there are many of
                them, their sort gives the next bound; the first is that of words far apart
    sort_rows   for each row of a task: its keys, the last first, then its operands in that order

No two words are equal, for positions are in them, so that sorts by a first key are stable.
Source: Knuth, The Art of Computer Programming 3, sections 5.2 (C, D) and 5.2.5.
"""

from __future__ import annotations

from rune.backends.cpu.gemm.tile import watched
from rune.backends.cpu.routines import Code, define
from rune.backends.cpu.sorting.job import DIGIT, FEW, HEAD, JOB, KEY, PADDING, TAKE, TAKES
from rune.backends.cpu.sorting.keys import WORD
from rune.backends.cpu.sorting.keys_code import position_of
from rune.lowering.codegen.llvm.ir.text import Value

DIGITS = WORD // DIGIT
_VALUES = 1 << DIGIT  # of a digit
_TOGETHER = 4  # words whose places are counted at once


def text(vector_bytes: int) -> str:
    """The module. Its functions are @sort_rows, and one for each size of elements to take."""
    lanes = vector_bytes // 8
    functions = [
        define(("ptr", "by_counts", "ptr words, ptr spare, i64 count"), lambda code, *x: _by_counts(code, lanes, *x)),
        define(("ptr", "by_digits", "ptr words, ptr spare, ptr counts, i64 count"), _by_digits),
        define(("ptr", "ordered", "ptr words, ptr spare, ptr counts, i64 count"), _ordered),
        define(("ptr", "again", "ptr words, ptr spare, ptr counts, i64 count"), _again),
        define(
            ("ptr", "least", "ptr words, ptr spare, ptr counts, i64 count, i64 k, i64 room, i64 sample"),
            lambda code, *x: _least(code, lanes, *x),
        ),
        define(("void", "sort_rows", "ptr job, i64 first, i64 last"), _sort_rows, ""),
        define(("void", "positions", "ptr source, ptr words, ptr target, i64 count"), _positions, ""),
        *(_take_text(nbytes) for nbytes in TAKES),
    ]
    # Functions share declarations, which a module has once.
    lines = "\n\n".join(functions).split("\n")
    heads = sorted({line for line in lines if line.startswith("declare ")})
    return "\n".join([*heads, *(line for line in lines if not line.startswith("declare "))])


# --- sorts ------------------------------------------------------------------------------------


def _ordered(code: Code, words: Value, spare: Value, counts: Value, count: Value) -> Value:
    """Sort words; returns which of the two arrays has them, sorted."""
    return code.choose(
        count.compare("ule", FEW),
        lambda: code.ask("ptr", "by_counts", words, spare, count),
        lambda: code.ask("ptr", "by_digits", words, spare, counts, count),
    )


def _by_counts(code: Code, lanes: int, words: Value, spare: Value, count: Value) -> Value:
    """The place of each word is the number of words that are less."""
    vector, together = f"<{lanes} x i64>", max(lanes, _TOGETHER)
    # Words after the last are larger than all others, and have places after theirs.
    for k in range(0, together, lanes):
        code.store(code.constant(vector, -1), code.item(words, "i64", count + k), 8)
    width, sums = _rounded_up(count, lanes), [code.allocate(vector) for _ in range(_TOGETHER)]

    def several(first: Value) -> None:
        numbers = [code.load("i64", code.item(words, "i64", first + k)) for k in range(_TOGETHER)]
        for place in sums:
            code.store(code.constant(vector, 0), place)

        def compare(k: Value) -> None:
            others = code.load(vector, code.item(words, "i64", k), 8)
            for number, place in zip(numbers, sums, strict=True):
                is_less = others.compare("ult", code.splat(number, lanes))
                code.store(code.load(vector, place) - is_less.cast("sext", "i64"), place)

        code.count_up(width.like(0), width, lanes, compare)
        for number, place in zip(numbers, sums, strict=True):
            before = code.call("i64", f"@llvm.vector.reduce.add.v{lanes}i64", code.load(vector, place))
            code.store(number, code.item(spare, "i64", before))

    code.count_up(width.like(0), _rounded_up(count, _TOGETHER), _TOGETHER, several)
    return spare


def _again(code: Code, words: Value, spare: Value, counts: Value, count: Value) -> Value:
    """Sort words that an earlier key has put into order, which decides where upper halves are
    equal."""

    def number_words(k: Value) -> None:
        place = code.item(words, "i64", k)
        word = code.load("i64", place)
        code.store(word, code.item(counts, "i64", k))
        code.store((word & (-1 << WORD)) | k, place)

    def name_again(k: Value) -> None:
        word = code.load("i64", code.item(counts, "i64", position_of(code, spare, k)))
        code.store(word, code.item(spare, "i64", k))

    def few() -> Value:
        code.count_up(count.like(0), count, 1, number_words)
        code.ask("ptr", "by_counts", words, spare, count)
        code.count_up(count.like(0), count, 1, name_again)
        return spare

    return code.choose(
        count.compare("ule", FEW), few, lambda: code.ask("ptr", "by_digits", words, spare, counts, count)
    )


def _rounded_up(count: Value, multiple: int) -> Value:
    return (count + (multiple - 1)) & -multiple


def _by_digits(code: Code, words: Value, spare: Value, counts: Value, count: Value) -> Value:
    """Move the words digit by digit, the last digit first."""
    zero, no = count.like(0), Value(code, "i1", "false")
    nbytes = count.like(DIGITS * _VALUES * 4)
    code.run("@llvm.memset.p0.i64", counts, code.constant("i8", 0), nbytes, no)

    def tally(k: Value) -> None:
        word = code.load("i64", code.item(words, "i64", k))
        for digit in range(DIGITS):
            place = code.item(counts, "i32", _digit(word, WORD + DIGIT * digit) + digit * _VALUES)
            code.store(code.load("i32", place) + 1, place)

    code.count_up(zero, count, 1, tally)
    source, target = code.allocate("ptr"), code.allocate("ptr")
    code.store(words, source)
    code.store(spare, target)

    def move(digit: Value) -> None:
        _pass(code, source, target, code.item(counts, "i32", digit * _VALUES), digit * DIGIT + WORD, count)

    code.count_up(zero, count.like(DIGITS), 1, move)
    return code.load("ptr", source)


def _pass(code: Code, source: Value, target: Value, counts: Value, shift: Value, count: Value) -> None:
    """Move words by one digit, unless all have the same, and exchange the arrays."""
    before, after = code.load("ptr", source), code.load("ptr", target)
    first = code.item(counts, "i32", _digit(code.load("i64", before), shift))
    are_alike = code.load("i32", first).cast("zext", "i64").equals(count)
    total = code.allocate("i32")

    def start(value: Value) -> None:
        place, sum_before = code.item(counts, "i32", value), code.load("i32", total)
        code.store(sum_before + code.load("i32", place), total)
        code.store(sum_before, place)

    def move(k: Value) -> None:
        word = code.load("i64", code.item(before, "i64", k))
        place = code.item(counts, "i32", _digit(word, shift))
        number = code.load("i32", place)
        code.store(number + 1, place)
        code.store(word, code.item(after, "i64", number.cast("zext", "i64")))

    def move_all() -> None:
        code.store(code.constant("i32", 0), total)
        code.count_up(count.like(0), count.like(_VALUES), 1, start)
        code.count_up(count.like(0), count, 1, move)
        code.store(after, source)
        code.store(before, target)

    code.either(are_alike.invert(), move_all)


def _digit(word: Value, shift: Value | int) -> Value:
    return word.binary("lshr", shift) & (_VALUES - 1)


def _least(code: Code, lanes: int, *operands: Value) -> Value:
    """The k least words, sorted. spare: memory for twice as many words as are sorted at a time."""
    words, spare, counts, count, k, room, sample = operands
    most = code.select(room < sample, sample, room)
    aside, other = spare, code.item(spare, "i64", most + PADDING)
    vector, number = f"<{lanes} x i64>", code.variable("i64", 0)
    bound = code.variable("i64", -1)
    code.store(code.constant(vector, -1), code.item(words, "i64", count), 8)

    def sort_aside(number: Value) -> Value:
        return code.ask("ptr", "ordered", aside, other, counts, number)

    def sample_bound() -> None:
        step = count.binary("udiv", sample)

        def one(place: Value) -> None:
            word = code.load("i64", code.item(words, "i64", place * step))
            code.store(word, code.item(aside, "i64", place))

        code.count_up(count.like(0), sample, 1, one)
        last = code.load("i64", code.item(sort_aside(sample), "i64", k - 1))
        code.store(last + 1, bound)

    def next_bound() -> None:
        # The bound itself is one of the k that stay.
        _copy(code, sort_aside(code.load("i64", number)), aside, k)
        code.store(code.load("i64", code.item(aside, "i64", k - 1)), bound)
        code.store(k, number)

    def put_aside(first: Value) -> None:
        most = code.load("i64", bound)
        for lane in range(lanes):
            word, place = code.load("i64", code.item(words, "i64", first + lane)), code.load("i64", number)
            code.store(word, code.item(aside, "i64", place))
            code.store(place + word.compare("ult", most).cast("zext", "i64"), number)
        code.either(code.load("i64", number).compare("ugt", room), next_bound)

    def look(first: Value) -> None:
        several = code.load(vector, code.item(words, "i64", first), 8)
        is_less = several.compare("ult", code.splat(code.load("i64", bound), lanes))
        code.either(code.any_lane(is_less), lambda: put_aside(first))

    code.either(sample.compare("ne", 0), sample_bound)
    code.count_up(count.like(0), _rounded_up(count, lanes), lanes, look)
    return sort_aside(code.load("i64", number))


def _copy(code: Code, source: Value, target: Value, count: Value) -> None:
    no = Value(code, "i1", "false")
    code.run("@llvm.memmove.p0.p0.i64", target, source, count * 8, no)


# --- rows -------------------------------------------------------------------------------------


def _sort_rows(code: Code, job: Value, first: Value, last: Value) -> None:
    """Rows of a job, in the work memory of their share."""
    head = {name: code.load(type, code.item(job, "i64", k)) for k, (name, type) in enumerate(JOB.items())}
    number = first.binary("udiv", head["chunk"])
    words = code.item(head["memory"], "i8", number * head["apart"])
    counts = code.item(words, "i8", head["length"])
    spare = code.item(counts, "i8", 4 * DIGITS * _VALUES)
    current, other = code.allocate("ptr"), code.allocate("ptr")
    entries = code.item(job, "i64", HEAD)
    takes = code.item(entries, "i64", head["keys"] * len(KEY))

    def sort_row(row: Value) -> None:
        code.store(words, current)
        code.store(spare, other)
        code.count_up(row.like(0), head["keys"], 1, lambda k: sort_by(row, k))
        code.count_up(row.like(0), head["takes"], 1, lambda k: take(row, k))

    def sort_by(row: Value, k: Value) -> None:
        before, free = code.load("ptr", current), code.load("ptr", other)
        entry = _entry(code, code.item(entries, "i64", k * len(KEY)), KEY)
        source = code.item(entry["source"], "i8", row * entry["row_bytes"])
        code.tell("void", entry["function"], source, before, head["count"])
        search = (head[name] for name in ("count", "width", "room", "sample"))
        after = code.choose(
            k.equals(0),
            lambda: code.choose(
                head["room"].equals(0),
                lambda: code.ask("ptr", "ordered", before, free, counts, head["count"]),
                lambda: code.ask("ptr", "least", before, free, counts, *search),
            ),
            lambda: code.ask("ptr", "again", before, free, counts, head["count"]),
        )
        code.store(after, current)
        code.store(code.select(after.compare("eq", before), free, before), other)

    def take(row: Value, k: Value) -> None:
        entry = _entry(code, code.item(takes, "i64", k * len(TAKE)), TAKE)
        source, target = (code.item(entry[side], "i8", row * entry[f"{side}_bytes"]) for side in ("source", "target"))
        code.tell("void", entry["function"], source, code.load("ptr", current), target, head["width"])

    code.count_up(first, last, 1, watched(code, head["watch"], sort_row))


def _entry(code: Code, words: Value, names: dict[str, str]) -> dict[str, Value]:
    return {name: code.load(type, code.item(words, "i64", k)) for k, (name, type) in enumerate(names.items())}


def _take_text(nbytes: int) -> str:
    """A function that takes elements of so many bytes in the order of words."""
    type = f"i{8 * nbytes}" if nbytes <= 8 else f"<{nbytes // 8} x i64>"

    def take(code: Code, source: Value, words: Value, target: Value, count: Value) -> None:
        def one(k: Value) -> None:
            element = code.load(type, code.item(source, type, position_of(code, words, k)), 1)
            code.store(element, code.item(target, type, k), 1)

        code.count_up(count.like(0), count, 1, one)

    return define(("void", f"take{nbytes}", "ptr source, ptr words, ptr target, i64 count"), take, "")


def _positions(code: Code, source: Value, words: Value, target: Value, count: Value) -> None:
    def one(k: Value) -> None:
        code.store(position_of(code, words, k).cast("trunc", "i32"), code.item(target, "i32", k))

    code.count_up(count.like(0), count, 1, one)
