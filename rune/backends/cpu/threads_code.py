"""The worker pool as native code: claiming pieces, sleeping and waking, placing threads.

    @parallel  share the pieces of a task with the workers     @start   start workers
    @worker    the main function of a worker                   @forget  a forked child has none
    @help      claim pieces and run them until none remains

One word, @ticket, is epoch | pieces | next piece; @done counts pieces that have run. A worker
without work polls `spins` times more, and then sleeps on a condition variable.

If no processor is idle, Linux wakes a thread on the processor on which it last ran, and a worker
that slept on the caller's processor would wait there until the caller has finished. So the caller
moves such workers away: @places has the processor on which each last ran, @ids the thread ids.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rune.backends.cpu import float_mode
from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

# The epoch has the other 24 bits: a late claim would have to sleep through 16 million jobs.
BITS = 20  # of the number of a piece in the ticket
MOST = (1 << BITS) - 1
MOST_WORKERS = 1024

ALLOWED = f"@allowed = global [{MOST_WORKERS // 64} x i64] zeroinitializer\n"  # processors, as bits
PTHREADS = """\
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i64 @llvm.umin.i64(i64, i64)
"""
_DATA = f"""
@ticket = internal global i64 0, align 128
@done = internal global i64 0, align 128
@busy = internal global i32 0, align 128
@sleepers = internal global i64 0, align 128
@waiting = internal global i32 0
@workers = global i64 0
@task = internal global ptr null
@words = internal global ptr null
@total = internal global i64 0
@chunk = internal global i64 0
@mode = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 64
@wake = internal global [128 x i8] zeroinitializer, align 64
@ready = internal global [128 x i8] zeroinitializer, align 64
@places = internal global [{MOST_WORKERS} x i32] zeroinitializer
@ids = global [{MOST_WORKERS} x i32] zeroinitializer
{ALLOWED}
{PTHREADS}"""
PLACING = """
declare i32 @sched_getcpu()
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @gettid()
"""


@dataclass(frozen=True, slots=True)
class System:
    """The differences between systems: the pause instruction, and the attributes of threads."""

    pause_declared: str  # "void @llvm.x86.sse2.pause()"
    pause: str  # the call of it
    detached: int
    stack_bytes: int
    spins: int
    can_place: bool  # whether the C library moves threads between processors


def text(system: System) -> str:
    """The module."""
    job = [
        define(("void", "help", ""), _help),
        define(("i1", "pending", ""), lambda code: _job(code)[0]),
        define(("ptr", "worker", "ptr number"), partial(_worker, system)),
    ]
    entries = [
        (("void", "parallel", "ptr task, ptr words, i64 total, i64 chunk"), _parallel),
        (("i64", "start", "i64 wanted"), _start),
    ]
    entry_functions = [define(s, partial(write, system), "") for s, write in entries]
    placing = _placing() if system.can_place else _not_placing()
    forget = define(("void", "forget", ""), _forget, "")
    return "\n\n".join([_DATA, f"declare {system.pause_declared}", *placing, *job, *entry_functions, forget])


# --- pieces -----------------------------------------------------------------------------------


def _job(code: Code) -> tuple[Value, Value, Value]:
    """Whether a piece waits to be claimed, the ticket, and the number of the piece."""
    ticket = code.word("i64", code.symbol("ticket"))
    piece, pieces = ticket & MOST, (ticket >> BITS) & MOST
    return piece.compare("ult", pieces), ticket, piece


def _help(code: Code) -> None:
    """Claim pieces and run them until none remains."""

    def claim(ticket: Value, piece: Value) -> None:
        is_claimed = code.swap_if(code.symbol("ticket"), ticket, ticket + 1)
        code.either(is_claimed, partial(_run_piece, code, piece))

    code.loop(partial(_job, code), claim)


def _run_piece(code: Code, piece: Value) -> None:
    """Run one piece, count it, and wake the caller if it sleeps."""
    # Plain loads: the job's fields change only after all claimed pieces have been counted.
    task, words = (code.load("ptr", code.symbol(name)) for name in ("task", "words"))
    total, chunk = (code.load("i64", code.symbol(name)) for name in ("total", "chunk"))
    begin = piece * chunk
    length = code.ask("i64", "llvm.umin.i64", chunk, total - begin)
    float_mode.set_mode(code, code.load("i64", code.symbol("mode")))
    _run_task(code, task, words, begin, begin + length)
    code.add_to_word(code.symbol("done"), 1)
    # The caller sets @waiting and then reads @done; this thread changes @done and then reads
    # @waiting. All of it is sequentially consistent, so at least one sees the other's change.
    is_awaited = code.word("i32", code.symbol("waiting")).compare("ne", 0)
    code.either(is_awaited, partial(_broadcast, code, "ready"))


def _run_task(code: Code, task: Value, words: Value, begin: Value, end: Value) -> None:
    code.tell("void", task, words, begin, end)


# --- waiting ----------------------------------------------------------------------------------


def poll(code: Code, pause: str, most: int, is_over: Callable[[], Value]) -> Value:
    """Poll until it is over, at most so many times; returns whether it is.

    pause: the call of the processor's pause instruction
    """
    count = code.variable("i64", 0)

    def look() -> tuple[Value, Value, Value]:
        over, looks = is_over(), code.load("i64", count)
        return over.invert() & looks.compare("ult", most), over, looks

    def wait(over: Value, looks: Value) -> None:
        code.store(looks + 1, count)
        code.do(f"call void {pause}")

    over, _ = code.loop(look, wait)
    return over


def _sleep(code: Code, condition: str, is_over: Callable[[], Value]) -> None:
    """Sleep until it is over. The caller holds the mutex, which is released while it sleeps."""
    wait = partial(code.tell, "i32", "pthread_cond_wait")
    code.loop(lambda: (is_over().invert(),), lambda: wait(code.symbol(condition), code.symbol("mutex")))


def _lock(code: Code) -> None:
    code.tell("i32", "pthread_mutex_lock", code.symbol("mutex"))


def _unlock(code: Code) -> None:
    code.tell("i32", "pthread_mutex_unlock", code.symbol("mutex"))


def _broadcast(code: Code, condition: str) -> None:
    """Wake all threads that sleep on a condition."""
    # Under the mutex, or a thread between its last check and its sleep would miss the wake-up.
    _lock(code)
    code.tell("i32", "pthread_cond_broadcast", code.symbol(condition))
    _unlock(code)


# --- a worker ---------------------------------------------------------------------------------


def _worker(system: System, code: Code, number: Value) -> Value:
    """Wait for pieces and run them, as long as the process lives."""
    worker = code.emit("i64", f"ptrtoint ptr {number.text} to i64")
    code.tell("void", "introduce", worker)
    pending = partial(code.ask, "i1", "pending")

    def sleep() -> None:
        sleepers = code.symbol("sleepers")
        _lock(code)
        # Before the last look for a job. The caller publishes one, and then looks for sleepers.
        code.add_to_word(sleepers, 1)
        _sleep(code, "wake", pending)
        code.add_to_word(sleepers, -1)
        _unlock(code)

    def work() -> None:
        code.either(poll(code, system.pause, system.spins, pending).invert(), sleep)
        code.tell("void", "help")
        code.tell("void", "remember", worker)

    code.loop(lambda: (Value(code, "i1", "true"),), work)
    return Value(code, "ptr", "null")


# --- the caller -------------------------------------------------------------------------------


def _parallel(system: System, code: Code, task: Value, words: Value, total: Value, chunk: Value) -> None:
    """Run a task over 0..total; alone if it is one piece, or if the workers are busy."""
    # Tasks of more pieces than the ticket can count run alone, too: callers never make so many.
    pieces = total.ceil_div(chunk)
    has_workers = code.word("i64", code.symbol("workers")).compare("ne", 0)
    is_split = pieces.compare("ugt", 1) & pieces.compare("ult", MOST)

    def take() -> Value:
        return code.swap_if(code.symbol("busy"), code.constant("i32", 0), code.constant("i32", 1))

    def share() -> None:
        mode = float_mode.mode(code)
        job = {"task": task, "words": words, "total": total, "chunk": chunk, "mode": mode}
        # Plain stores: the ticket, which is set after them, publishes them.
        for name, value in job.items():
            code.store(value, code.symbol(name))
        _share(system, code, pieces)
        code.set_word("i32", code.symbol("busy"), 0)

    def alone() -> None:
        _run_task(code, task, words, code.constant("i64", 0), total)

    code.either(code.where(is_split & has_workers, take), share, alone)


def _share(system: System, code: Code, pieces: Value) -> None:
    """Publish the job, help with it, and wait until every piece has run."""
    code.set_word("i64", code.symbol("done"), 0)
    ticket = code.symbol("ticket")
    # The epoch makes each ticket differ from earlier ones, so that a late claim fails.
    epoch = (code.word("i64", ticket) >> 2 * BITS) + 1
    code.set_word("i64", ticket, (epoch << 2 * BITS) | (pieces << BITS))
    code.tell("void", "spread")
    is_asleep = code.word("i64", code.symbol("sleepers")).compare("ne", 0)
    code.either(is_asleep, partial(_broadcast, code, "wake"))
    code.tell("void", "help")

    def is_done() -> Value:
        return code.word("i64", code.symbol("done")).equals(pieces)

    def sleep() -> None:
        code.set_word("i32", code.symbol("waiting"), 1)
        _lock(code)
        _sleep(code, "ready", is_done)
        _unlock(code)
        code.set_word("i32", code.symbol("waiting"), 0)

    code.either(poll(code, system.pause, system.spins, is_done).invert(), sleep)


def _start(system: System, code: Code, count_limit: Value) -> Value:
    """Start workers until the system refuses one; returns how many there are."""
    null = Value(code, "ptr", "null")
    code.tell("i32", "pthread_mutex_init", code.symbol("mutex"), null)
    for condition in ("wake", "ready"):
        code.tell("i32", "pthread_cond_init", code.symbol(condition), null)
    attributes = thread_attributes(code, system.stack_bytes, system.detached)
    thread, count, failure = code.allocate("i64"), code.allocate("i64"), code.allocate("i32")
    code.store(code.constant("i64", 0), count)
    code.store(code.constant("i32", 0), failure)

    def is_wanted() -> tuple[Value, Value]:
        workers = code.load("i64", count)
        has_failed = code.load("i32", failure).compare("ne", 0)
        return workers.compare("ult", count_limit) & has_failed.invert(), workers

    def make(workers: Value) -> None:
        number = code.emit("ptr", f"inttoptr i64 {workers.text} to ptr")
        worker = code.symbol("worker")
        status = code.ask("i32", "pthread_create", thread, attributes, worker, number)
        code.store(status, failure)
        code.store(workers + status.equals(0).cast("zext", "i64"), count)

    (workers,) = code.loop(is_wanted, make)
    code.set_word("i64", code.symbol("workers"), workers)
    return workers


def thread_attributes(code: Code, stack_bytes: int, detached: int) -> Value:
    """The attributes of threads that nobody joins, with stacks of this size."""
    # 128 bytes: pthread_attr_t has at most 64 in glibc and on macOS.
    attributes = code.allocate("i64", 16)
    code.tell("i32", "pthread_attr_init", attributes)
    code.tell("i32", "pthread_attr_setstacksize", attributes, code.constant("i64", stack_bytes))
    code.tell("i32", "pthread_attr_setdetachstate", attributes, code.constant("i32", detached))
    return attributes


def _forget(code: Code) -> None:
    """In a forked child: no workers, and no job that another thread has begun."""
    # The mutex may stay locked by a worker that the child does not have: without workers nobody
    # takes it.
    code.set_word("i64", code.symbol("workers"), 0)
    code.set_word("i32", code.symbol("busy"), 0)


# --- processors -------------------------------------------------------------------------------


def _placing() -> list[str]:
    return [
        PLACING,
        define(("void", "remember", "i64 worker"), _remember),
        define(("void", "introduce", "i64 worker"), _introduce),
        define(("void", "send_away", "i32 thread, i32 here"), send_away),
        define(("void", "spread", ""), _spread),
    ]


def _not_placing() -> list[str]:
    signatures = [("remember", "i64 worker"), ("introduce", "i64 worker"), ("spread", "")]
    return [define(("void", *s), lambda code, *args: None) for s in signatures]


def _remember(code: Code, worker: Value) -> None:
    """Note the processor on which this worker runs."""
    place = code.item(code.symbol("places"), "i32", worker)
    code.set_word("i32", place, code.ask("i32", "sched_getcpu"))


def _introduce(code: Code, worker: Value) -> None:
    """Note this worker's thread id, and the processor on which it runs."""
    thread = code.item(code.symbol("ids"), "i32", worker)
    code.set_word("i32", thread, code.ask("i32", "gettid"))
    code.tell("void", "remember", worker)


def _spread(code: Code) -> None:
    """Move workers off the caller's processor."""
    processor_here = code.ask("i32", "sched_getcpu")

    def look(worker: Value) -> None:
        place = code.item(code.symbol("places"), "i32", worker)

        def move() -> None:
            thread = code.word("i32", code.item(code.symbol("ids"), "i32", worker))
            code.tell("void", "send_away", thread, processor_here)
            # It is somewhere else from now on, and says where after its next job.
            code.set_word("i32", place, -1)

        code.either(code.word("i32", place).equals(processor_here), move)

    code.count_up(code.constant("i64", 0), code.word("i64", code.symbol("workers")), 1, look)


def send_away(code: Code, thread: Value, processor_here: Value) -> None:
    """Let a thread run on all allowed processors except this one."""
    words, mask = MOST_WORKERS // 64, code.allocate("i64", MOST_WORKERS // 64)
    nbytes, no = code.constant("i64", 8 * words), Value(code, "i1", "false")
    code.run("@llvm.memcpy.p0.p0.i64", mask, code.symbol("allowed"), nbytes, no)
    processor = processor_here.cast("zext", "i64")
    word = code.item(mask, "i64", processor >> 6)
    bit = code.constant("i64", 1).binary("shl", processor & 63)
    code.store(code.load("i64", word) & bit.invert(), word)
    code.tell("i32", "sched_setaffinity", thread, nbytes, mask)
