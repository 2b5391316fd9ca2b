"""Calls of NumPy's sorts in a plan of the CPU, made by native code where that is faster.

Lowering writes them as Python functions (lowering/host_calls.py). They remain that if sizes are
symbolic, for long rows of plain numbers alone, which NumPy sorts by instructions of AVX-512, and
for rows so long that a user may want to interrupt their sort.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rune import dtypes
from rune.backends.cpu.dots import Run
from rune.backends.cpu.frames import in_memory
from rune.backends.cpu.library_calls import SORTS, Native, Pool, library_call
from rune.backends.cpu.scratch import in_lines
from rune.backends.cpu.sorting import library
from rune.backends.cpu.sorting.job import DIGIT, PADDING, TAKES
from rune.backends.cpu.sorting.keys import KEYS, WORD, Key, keys_of
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.plan import Call, Slot, Step
from rune.ops.sorting import top_k
from rune.records import dataclass

# By bytes of a number: elements of plain numbers alone from which NumPy's call takes less time,
# where its sort has instructions of AVX-512: 13 us for the call and 3.5 ns for an element of 4
# bytes, where ours takes 5 to 8, and twice as much for 8 bytes.
PLAIN = {4: 1 << 11, 8: 1 << 10}
LEAST_PLAIN = 16  # elements of rows below which ours takes less
MOST = 1 << 22  # elements of a row, which take some hundredths of a second
LONG = 1 << 11  # words of which a sample is taken
PARALLEL_WORDS = 1 << 14  # that cores share, about 100 us on one
_COUNTERS = WORD // DIGIT * 4 << DIGIT  # [B]


@dataclass(frozen=True, slots=True)
class Sort:
    """Rows to be sorted, of fixed sizes above 0.

    keys:   the words by which they are sorted, the least significant first, with their operands
    width: elements of a row of results;  room: words put aside in a search for these, or 0
    """

    rows: int
    count: int
    keys: tuple[tuple[int, Key], ...]
    width: int
    room: int = 0

    @property
    def operations(self) -> int:
        """An estimate: one for each word and digit."""
        return self.rows * self.count * len(self.keys) * (WORD // DIGIT)

    def shares(self, cores: int) -> int:
        """The number of cores that sort rows, each with its own work memory."""
        if self.rows * self.count * len(self.keys) < PARALLEL_WORDS:
            return 1
        return -(-self.rows // -(-self.rows // cores))

    @property
    def sample(self) -> int:
        """The words that give the first bound: as many as will be below it; none of few words."""
        return math.isqrt(self.count * self.width) // 2 if self.room and self.count >= LONG else 0

    @property
    def words_bytes(self) -> int:
        """The bytes of the words of a row."""
        return int(in_lines(8 * (self.count + PADDING)))

    @property
    def bytes_apart(self) -> int:
        """The bytes of work memory of a core."""
        spare = 16 * (max(self.room, self.sample) + PADDING) if self.room else self.words_bytes
        return int(in_lines(self.words_bytes + _COUNTERS + spare))


def sort_of(step: Step) -> Sort | None:
    """The sort that a step makes, if native code makes it; else None."""
    sorting = library_call(step)
    if sorting is None or sorting[0].primitive not in SORTS:
        return None
    call, operands = sorting
    *rows, count = operands[0].shape
    sizes = [d for d in (*rows, count) if isinstance(d, int)]
    if len(sizes) <= len(rows) or 0 in sizes or sizes[-1] > MOST:
        return None
    params = dict(call.params)
    is_downward = call.primitive is top_k
    width, num_keys = (params["k"], 1) if is_downward else (sizes[-1], params["num_keys"])
    assert isinstance(width, int)
    assert isinstance(num_keys, int)
    types = [x.dtype for x in operands]
    if width == 0 or not {*types[:num_keys]} <= KEYS or not {t.itemsize for t in types} <= {*TAKES}:
        return None
    if len(operands) == 1 and not is_downward and _is_faster_by_numpy(math.prod(sizes), sizes[-1], types[0]):
        return None
    words = [(number, key) for number in range(num_keys) for key in keys_of(types[number], is_downward)]
    keys = [(number, replace(key, is_next=k > 0)) for k, (number, key) in enumerate(reversed(words))]
    room = _room(width, sizes[-1]) if is_downward and len(keys) == 1 else 0
    return Sort(math.prod(sizes[:-1]), sizes[-1], tuple(keys), width, room)


def _is_faster_by_numpy(elements: int, count: int, dtype: np.dtype) -> bool:
    """Whether NumPy sorts rows of plain numbers, with no positions, in less time."""
    is_plain = dtype.itemsize in PLAIN and dtype not in dtypes.COMPLEX
    return is_plain and count > LEAST_PLAIN and elements > PLAIN[dtype.itemsize]


def _room(width: int, count: int) -> int:
    """The words to put aside at a time; 0 if a sort of all takes less."""
    room = max(2 * width, PADDING)
    return room if 2 * room < count else 0


def native_of(step: Step) -> Native | None:
    """The native code of a sort."""
    sort = sort_of(step)
    if sort is None:
        return None
    return Native(
        lambda cores: sort.shares(cores) * sort.bytes_apart,
        lambda run, call, memory, pool: write_sort(run, call, sort, memory, pool),
    )


def write_sort(run: Run, step: Call, sort: Sort, memory: Value, pool: Pool) -> None:
    """A sort by native code. memory: the address of work memory"""
    effort = library.effort_for(pool.effort)
    shares = sort.shares(pool.cores)
    chunk = -(-sort.rows // shares)
    watch = run.watch(sort.operations)
    head = [sort.count, sort.width, sort.room, sort.sample, memory, sort.bytes_apart, sort.words_bytes]
    head += [chunk, len(sort.keys), len(step.outputs), watch.pointer]
    entries = [*_keys(run, step, sort, effort), *_takes(run, step, sort, effort)]
    words = [w if isinstance(w, Value) else run.writer.constant("i64", w) for w in (*head, *entries)]
    job, function = in_memory(run.writer, words).text, pointer_to(library.sorts(effort).address("sort_rows"))
    if shares > 1:
        task = f"ptr {function}, ptr {job}, i64 {sort.rows}, i64 {chunk}"
        run.writer.do(f"call void {pointer_to(pool.parallel())}({task})")
    else:
        run.writer.do(f"call void {function}(ptr {job}, i64 0, i64 {sort.rows})")
    watch.close()


def _keys(run: Run, step: Call, sort: Sort, effort: int) -> list[Value | int]:
    """The entries of the job for keys."""
    entries = list[Value | int]()
    for number, key in sort.keys:
        function = run.writer.at(library.words(key, effort).address("key"))
        entries += [function, run.pointer(step.inputs[number]), sort.count * key.step * key.dtype.itemsize]
    return entries


def _takes(run: Run, step: Call, sort: Sort, effort: int) -> list[Value | int]:
    """The entries of the job for results: elements of operands, and for `top_k` their positions."""
    functions, entries = library.sorts(effort), list[Value | int]()
    for number, target in enumerate(step.outputs):
        source = step.inputs[min(number, len(step.inputs) - 1)]
        nbytes = _bytes(target) // (sort.rows * sort.width)
        name = "positions" if number == len(step.inputs) else f"take{nbytes}"
        places = run.pointer(source), sort.count * nbytes, run.pointer(target), sort.width * nbytes
        entries += [run.writer.at(functions.address(name)), *places]
    return entries


def _bytes(slot: Slot) -> int:
    """The bytes of an array of fixed sizes."""
    return math.prod(d for d in slot.type.shape if isinstance(d, int)) * slot.type.dtype.itemsize
