"""Python's entry into a compiled plan of open sizes: a built-in function over NumPy's arrays.

    @entry(ptr self, ptr argv, i64 count)     checks, then @run (plan.py)

`@entry` is called like a built-in function, with the argument arrays, the result arrays and the
arena. It reads addresses and sizes from the array objects, whose layout is NumPy's ABI (host_abi.py
checks it once), and releases the interpreter's lock while the plan runs. It returns 0, or k + 1 if
argument k does not fit the plan, or -s - 1 if size s is out of range, or GAVE_UP if a draft would
have run for too long.

The types of the arguments are in tables, which functions shared by all plans read
(array_checks.py): so the code for ten thousand arguments is as long as for one.

    @prepare(ptr self, ptr argv, i64 count)   the same checks; writes the words for @run into one
                                              more array, for calls by native code

Invariant: memory is accessed only after all arguments have passed the checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rune.backends.cpu.array_checks import array_checks
from rune.backends.cpu.host_abi import MISCOUNTED, Abi
from rune.core.sizes import SizeSource
from rune.core.types import ArrayType
from rune.lowering.codegen.llvm import index as llvm_index
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.plan import Plan


def entry(plan: Plan, abi: Abi, asks: bool, gives_up: bool = False) -> str:
    """The function `@entry`, after its tables.

    asks:     whether the plan checks for signals
    gives_up: whether it may end early, and then writes GAVE_UP in place of its seat
    """
    return _text("entry", _Entry(plan, abi, Writer(), asks, gives_up))


def prepare(plan: Plan, abi: Abi) -> str:
    """The function `@prepare`, after its tables."""
    return _text("prepare", _Prepare(plan, abi, Writer(), False))


def _text(name: str, function: _Entry) -> str:
    function.write()
    text = function.writer.definition(f"ptr @{name}(ptr %self, ptr %argv, i64 %count)")
    return "\n".join([*_tables(function.plan.arguments), text])


def _tables(types: tuple[ArrayType, ...]) -> list[str]:
    """Tables of the arguments' dtype objects and ranks, and of the lengths of all axes."""
    # Symbolic lengths are 0 here; each call fills them in, in a copy of its own (`lengths`).
    lengths = [n if isinstance(n, int) else 0 for t in types for n in t.shape]
    return [
        _table("dtypes", "ptr", (pointer_to(id(t.dtype)) for t in types)),
        _table("ranks", "i64", (len(t.shape) for t in types)),
        _table("lengths", "i64", lengths),
    ]


def _table(name: str, type: str, items: Iterable[object]) -> str:
    items_text = [f"{type} {x}" for x in items]
    return f"@{name} = internal constant [{len(items_text)} x {type}] [{', '.join(items_text)}]"


class _Entry:
    """Writes @entry."""

    more = 0  # arrays after those of the plan

    def __init__(self, plan: Plan, abi: Abi, writer: Writer, asks: bool, gives_up: bool = False):
        self.plan, self.abi, self.writer, self.asks, self.gives_up = plan, abi, writer, asks, gives_up
        self.checks = array_checks(abi)
        self.arguments = writer.constant("i64", len(plan.arguments))
        self.zero = writer.constant("i64", 0)
        writer.block = "start"

    def write(self) -> None:
        """Read the array objects, check them, and run without the interpreter's lock."""
        # In this order: a size is read from an axis only after the ranks were checked, and lengths
        # are compared only after the sizes are known.
        plan, writer = self.plan, self.writer
        total = writer.constant("i64", len(plan.arguments) + len(plan.results) + 1)
        count = Value(writer, "i64", "%count")
        self.require(count.equals(total + self.more), writer.constant("i64", MISCOUNTED))
        self.require_fit(self.checks.unfit_array, "ptr @dtypes", "ptr @ranks")
        sizes: dict[str, Value] = {}
        for k, source in enumerate(plan.size_sources):
            sizes[source.name] = self.read_size(source, sizes)
            self.check_range(source, sizes, writer.constant("i64", -k - 1))
        self.require_fit(self.checks.unfit_shape, "ptr @ranks", f"ptr {self.lengths(sizes).text}")
        self.run(total, [*sizes.values()])

    def run(self, total: Value, sizes: list[Value]) -> None:
        """Call @run on the addresses of all arrays and the sizes, without a seat, and return 0."""
        writer, abi = self.writer, self.abi
        words = writer.allocate("i64", int(total.text) + len(sizes) + 1)
        self.fill(words, total, [*sizes, self.zero])
        # Other threads of Python run meanwhile; steps that call Python take the lock for that.
        state = writer.effect("ptr", f"call ptr {pointer_to(abi.save_thread)}()")
        writer.do(f"call void @run(ptr {words.text})")
        writer.do(f"call void {pointer_to(abi.restore_thread)}(ptr {state.text})")
        if self.asks:
            self.raise_waiting()
        seat = writer.item(words, "i64", int(total.text) + len(sizes))
        self.answer(writer.load("i64", seat) if self.gives_up else self.zero)

    def fill(self, words: Value, total: Value, sizes: list[Value]) -> None:
        """Write the addresses and the sizes into words."""
        writer = self.writer
        reads = pointer_to(self.checks.read_addresses)
        writer.do(f"call void {reads}(ptr %argv, i64 {total.text}, ptr {words.text})")
        for k, size in enumerate(sizes, int(total.text)):
            writer.store(size, writer.item(words, "i64", k))

    def raise_waiting(self) -> None:
        """Raise the error of a signal handler that ran during the plan (pulse.py)."""
        # It is set in the interpreter already: a null result is enough to raise it.
        writer = self.writer
        error = writer.effect("ptr", f"call ptr {pointer_to(self.abi.error)}()")
        no_error, an_error = writer.name("none"), writer.name("some")
        writer.branch(error.equals(Value(writer, "ptr", "null")), no_error, an_error)
        writer.label(an_error)
        writer.do("ret ptr null")
        writer.label(no_error)

    def answer(self, code: Value) -> None:
        """Return a Python int."""
        python_int = f"call ptr {pointer_to(self.abi.from_long)}(i64 {code.text})"
        self.writer.do(f"ret ptr {self.writer.effect('ptr', python_int).text}")

    def require(self, holds: Value, code: Value) -> None:
        """Return `code` if the condition does not hold."""
        good, bad = self.writer.name("good"), self.writer.name("bad")
        self.writer.branch(holds, good, bad)
        self.writer.label(bad)
        self.answer(code)
        self.writer.label(good)

    def require_fit(self, check: int, *tables: str) -> None:
        """Return the number of the first argument that does not fit, counted from 1."""
        arguments = f"ptr %argv, i64 {self.arguments.text}, {', '.join(tables)}"
        unfit = self.writer.effect("i64", f"call i64 {pointer_to(check)}({arguments})")
        self.require(unfit.equals(0), unfit)

    def array(self, number: Value) -> Value:
        """The array object with this number."""
        argv = Value(self.writer, "ptr", "%argv")
        return self.writer.load("ptr", self.writer.item(argv, "ptr", number))

    def table_item(self, table: str, number: Value) -> Value:
        """An item of a table of words."""
        base = Value(self.writer, "ptr", f"@{table}")
        return self.writer.load("i64", self.writer.item(base, "i64", number))

    def field(self, type: str, base: Value, offset: int) -> Value:
        """The field at `offset` bytes of a structure."""
        return self.writer.load(type, self.writer.item(base, "i8", offset))

    def length(self, array: Value, axis: Value) -> Value:
        """The length of one axis."""
        shape = self.field("ptr", array, self.abi.shape)
        return self.writer.load("i64", self.writer.item(shape, "i64", axis))

    def read_size(self, source: SizeSource, known: Mapping[str, Value]) -> Value:
        """A size, computed from the length of its axis. A remainder fails the check of shapes."""
        argument, axis = (self.zero.like(n) for n in (source.argument, source.axis))
        length = self.length(self.array(argument), axis)
        difference = length - llvm_index.render(self.writer, source.offset, known)
        if source.factor == 1:
            return difference
        return difference.binary("sdiv", llvm_index.render(self.writer, source.factor, known))

    def check_range(self, source: SizeSource, sizes: Mapping[str, Value], code: Value) -> None:
        """Require that a size is within its bounds."""
        low = llvm_index.render(self.writer, source.low, sizes)
        self.require(sizes[source.name] >= low, code)
        if source.high is not None:
            high = llvm_index.render(self.writer, source.high, sizes)
            self.require(sizes[source.name] <= high, code)

    def lengths(self, sizes: Mapping[str, Value]) -> Value:
        """The table of the lengths of all axes; a copy with the sizes filled in, if some are
        symbolic."""
        writer, table = self.writer, Value(self.writer, "ptr", "@lengths")
        axes = [n for t in self.plan.arguments for n in t.shape]
        if all(isinstance(n, int) for n in axes):
            return table
        # On the stack, because threads that call the plan at once share @lengths.
        copy, count = writer.allocate("i64", len(axes)), self.zero.like(len(axes))

        def put(axis: Value) -> None:
            writer.store(self.table_item("lengths", axis), writer.item(copy, "i64", axis))

        writer.count_up(self.zero, count, 1, put)
        for k, n in enumerate(axes):
            if not isinstance(n, int):
                length = llvm_index.render(writer, n, sizes)
                writer.store(length, writer.item(copy, "i64", k))
        return copy


class _Prepare(_Entry):
    """Writes @prepare."""

    more = 1

    def run(self, total: Value, sizes: list[Value]) -> None:
        """Write the addresses and the sizes into the last array, and return 0."""
        words = self.field("ptr", self.array(total), self.abi.data)
        self.fill(words, total, sizes)
        self.answer(self.zero)
