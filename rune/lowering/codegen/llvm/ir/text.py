"""LLVM IR as text: values with arithmetic, and the writer that numbers them.

A Value knows its IR type and the writer that it belongs to; `x * y + 1.0` appends a multiply and
an add without fast-math flags, so that LLVM computes exactly what is written. Python numbers
become constants of the other side's type. Fusion is only by `fma`, reassociation only by
`reduce_step`. Text rather than an object model, because it is faster to build and to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

from rune.lowering.codegen.llvm.ir.instructions import FOLDED, INTRINSICS, PREDICATES, instructions
from rune.lowering.codegen.llvm.ir.names import (
    FLOATS,
    bits_type,
    float_constant,
    lanes_of,
    pointer_to,
    scalar_of,
    suffix,
    with_scalar,
)
from rune.lowering.scalar.operators import Operators
from rune.records import dataclass

Number = int | float


@dataclass(slots=True)
class Writer:
    """The body of one function under construction: lines, those of its entry block, declarations.

    `entry` holds the allocas: they belong to the first block, so that LLVM makes registers of them.
    `scalef` are the vector types that the processor scales by powers of two.
    A pure instruction written twice is one value: `known` has those that reach the current block,
    one table for each region of blocks that is being written. `out_of_line` names the mathematical
    functions that are called here instead of being written out.
    """

    lines: list[str] = field(default_factory=list)
    count: int = 0
    block: str = "entry"
    entry: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    known: list[dict[str, Value]] = field(default_factory=lambda: [{}])
    scalef: frozenset[str] = frozenset()
    slots: dict[tuple[str, int], Value] = field(default_factory=dict)
    out_of_line: frozenset[str] = frozenset()
    opaque: dict[int, Value] = field(default_factory=dict)  # masks of all lanes, by their number

    def definition(self, head: str) -> str:
        """The function's definition; `head` has its linkage, type, name and parameters."""
        # Allocas go into the entry block, which must not be a loop's target.
        lines = [f"define {head} #0 {{", "entry:", *self.entry, "  br label %start", "start:", *self.lines, "}"]
        return "\n".join(lines)

    def name(self, stem: str) -> str:
        """A fresh name, without the sigil."""
        self.count += 1
        return f"{stem}{self.count}"

    def emit(self, type: str, instruction: str) -> Value:
        """The value of a pure instruction, appended unless an equal one is visible here."""
        # Values of outer regions are usable here: their blocks dominate this one.
        for table in self.known:
            if instruction in table:
                return table[instruction]
        value = self.known[-1][instruction] = self.effect(type, instruction)
        return value

    def effect(self, type: str, instruction: str) -> Value:
        """Append an instruction that reads memory, or belongs to its block."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {instruction}")
        return Value(self, type, name)

    @contextmanager
    def region(self, label: str) -> Iterator[None]:
        """Blocks from `label` on, whose values are not visible after them."""
        self.label(label)
        # Values of a branch are dropped after it, since its blocks need not have run.
        self.known.append({})
        yield
        self.known.pop()

    def do(self, instruction: str) -> None:
        """Append an instruction that yields nothing."""
        self.lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.block = name
        self.lines.append(f"{name}:")

    def jump(self, target: str) -> None:
        """End the block with a jump."""
        self.do(f"br label %{target}")

    def branch(self, condition: Value, then: str, orelse: str) -> None:
        """End the block with a conditional jump."""
        self.do(f"br i1 {condition.text}, label %{then}, label %{orelse}")

    def constant(self, type: str, value: Number) -> Value:
        """A constant, the same in every lane."""
        scalar = scalar_of(type)
        text = float_constant(value, scalar) if scalar in FLOATS else str(int(value))
        return Value(self, type, f"splat ({scalar} {text})" if type[0] == "<" else text)

    def intrinsic(self, name: str, type: str, *args: Value) -> Value:
        """Call `llvm.<name>` overloaded on `type`, which it also yields."""
        return self.call(type, f"@llvm.{name}.{suffix(type)}", *args)

    def call(self, type: str, function: str, *args: Value) -> Value:
        """Call a function by its name with @, declaring what LLVM does not define."""
        if function.startswith("@llvm."):
            types = ", ".join(a.type for a in args)
            self.declarations.add(f"declare {type} {function}({types})")
        operands = ", ".join(f"{a.type} {a.text}" for a in args)
        # Masked loads are not shared: a store between two equal ones may change the result.
        append = self.effect if ".masked." in function else self.emit
        return append(type, f"call {type} {function}({operands})")

    def scale_register(self, y: Value, n: Value, where: Value | None) -> Value:
        """y 2ⁿ for a whole n in floating form, rounded once; 0 in lanes where `where` is false.

        y is of a type in `scalef`.
        """
        type = f"i{y.lanes}"
        mask = self.emit(type, f"bitcast {where.type} {where.text} to {type}") if where else self.constant(type, -1)
        name = f"@llvm.x86.avx512.mask.scalef.{'ps' if y.scalar_type == 'float' else 'pd'}.512"
        rounding = self.constant("i32", 4)  # as the current mode says
        return self.call(y.type, name, y, n, y.like(0.0), mask, rounding)

    def by_lane(self, function: str, *args: Value) -> Value:
        """A function of the C library on f64, one lane after the other, out of line."""
        signature = f"double @{function}({', '.join(['double'] * len(args))})"
        # Declared free of effects, so that LLVM may drop or merge calls.
        self.declarations.add(f"declare {signature} nounwind willreturn memory(none)")
        lanes = args[0].lanes
        if lanes == 0:
            return self.call("double", f"@{function}", *args)
        self.declarations.add(_lane_loop(function, len(args), lanes))
        # Through memory, because `_lane_loop` indexes lanes by a variable.
        slots = [self.passing_slot(a.type, k) for k, a in enumerate((*args, args[0]))]
        for slot, a in zip(slots, args, strict=False):
            self.store(a, slot)
        pointers = ", ".join(f"ptr {s.text}" for s in slots)
        self.do(f"call void @{_lane_name(function, lanes)}({pointers})")
        return self.load(args[0].type, slots[-1])

    def passing_slot(self, type: str, number: int) -> Value:
        """Memory that hands a value to a call and is free after it; every call shares it."""
        if (type, number) not in self.slots:
            self.slots[type, number] = self.allocate(type)
        return self.slots[type, number]

    def allocate(self, type: str, count: int = 1) -> Value:
        """Uninitialised memory on the stack, for `count` values of a type."""
        name = f"%{self.name('slot')}"
        # 64: the widest vector, and a cache line.
        align = 64 if count > 1 or type[0] == "<" else 8
        self.entry.append(f"  {name} = alloca {type}, i64 {count}, align {align}")
        return Value(self, "ptr", name)

    def _at_entry(self, instruction: str) -> str:
        """Put an instruction into the first block; the result is its name."""
        name = f"%{self.name('v')}"
        self.entry.append(f"  {name} = {instruction}")
        return name

    def at(self, address: int) -> Value:
        """A pointer to this address of the process."""
        return Value(self, "ptr", pointer_to(address))

    def item(self, array: Value, type: str, number: Value | int) -> Value:
        """The address of an item of an array of this type."""
        text = number if isinstance(number, int) else number.text
        return self.emit("ptr", f"getelementptr {type}, ptr {array.text}, i64 {text}")

    def load(self, type: str, pointer: Value, align: int | None = None) -> Value:
        """Read memory."""
        end = f", align {align}" if align else ""
        return self.effect(type, f"load {type}, ptr {pointer.text}{end}")

    def store(self, value: Value, pointer: Value, align: int | None = None) -> None:
        """Write memory."""
        end = f", align {align}" if align else ""
        self.do(f"store {value.type} {value.text}, ptr {pointer.text}{end}")

    def splat(self, value: Value, lanes: int) -> Value:
        """The scalar in every lane; a vector as it is."""
        if lanes == 0 or value.type[0] == "<":
            return value
        type = f"<{lanes} x {value.type}>"
        if value.is_constant:
            return Value(self, type, f"splat ({value.type} {value.text})")
        # LLVM recognises these two instructions as a broadcast.
        one = self.emit(type, f"insertelement {type} poison, {value.type} {value.text}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.emit(type, f"shufflevector {type} {one.text}, {type} poison, {zeros}")

    def iota(self, lanes: int, scalar: str) -> Value:
        """The number of each lane."""
        numbers = ", ".join(f"{scalar} {k}" for k in range(lanes))
        return Value(self, f"<{lanes} x {scalar}>", f"<{numbers}>")

    def first_lanes(self, count: Value, lanes: int) -> Value:
        """The mask of the first `count` of `lanes` lanes."""
        if count.is_constant:
            flags = ", ".join(f"i1 {int(k < int(count.text))}" for k in range(lanes))
            return Value(self, f"<{lanes} x i1>", f"<{flags}>")
        alive = self.splat(count.cast("trunc", "i32"), lanes)
        return self.iota(lanes, "i32").compare("ult", alive)

    def run(self, function: str, *args: Value) -> None:
        """Call an intrinsic that yields nothing."""
        types = ", ".join(a.type for a in args)
        self.declarations.add(f"declare void {function}({types})")
        self.do(f"call void {function}({', '.join(f'{a.type} {a.text}' for a in args)})")

    def any_lane(self, mask: Value) -> Value:
        """Whether an i1 holds in some lane."""
        if not mask.lanes:
            return mask
        return self.call("i1", f"@llvm.vector.reduce.or.{suffix(mask.type)}", mask)

    def opaque_mask(self, lanes: int) -> Value:
        """The mask of all lanes, opaque to LLVM, which cannot see that it is constant."""
        if lanes not in self.opaque:
            zero = self._at_entry('call i32 asm "", "=r,0"(i32 0)')
            type = f"<{lanes} x i32>"
            first = self._at_entry(f"insertelement {type} poison, i32 {zero}, i64 0")
            splat = f"shufflevector {type} {first}, {type} poison, {type} zeroinitializer"
            equal = f"icmp eq {type} {self._at_entry(splat)}, zeroinitializer"
            self.opaque[lanes] = Value(self, f"<{lanes} x i1>", self._at_entry(equal))
        return self.opaque[lanes]

    def hidden(self, value: Value) -> Value:
        """The same value, whose origin is hidden from LLVM."""
        return self.emit(value.type, f'call {value.type} asm "", "=r,0"({value.type} {value.text})')

    def part(self, vector: Value, first: int, count: int) -> Value:
        """`count` lanes of a vector, from `first` on."""
        return self.shuffle(vector, vector, range(first, first + count))

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """These lanes of a and b, numbered through: those of b follow those of a."""
        type = f"<{len(lanes)} x {a.scalar_type}>"
        mask = ", ".join(f"i32 {k}" for k in lanes)
        operands = f"{a.type} {a.text}, {b.type} {b.text}"
        return self.emit(type, f"shufflevector {operands}, <{len(lanes)} x i32> <{mask}>")

    def lane(self, vector: Value, number: int) -> Value:
        """One lane of a vector."""
        text = f"extractelement {vector.type} {vector.text}, i64 {number}"
        return self.emit(vector.scalar_type, text)

    def either(self, condition: Value, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        """if (condition) then() else orelse()."""
        yes, no, join = self.name("then"), self.name("else"), self.name("join")
        self.branch(condition, yes, no if orelse else join)
        for label, write in ((yes, then), (no, orelse)):
            if write:
                with self.region(label):
                    write()
                    self.jump(join)
        self.label(join)

    def where(self, condition: Value, compute: Callable[[], Value]) -> Value:
        """The result of `compute` where the condition holds, else 0."""
        then_label, join, before = self.name("then"), self.name("join"), self.block
        self.branch(condition, then_label, join)
        with self.region(then_label):
            value = compute()
            # `compute` may have opened blocks of its own; the phi names the one that jumps here.
            after = self.block
            self.jump(join)
        self.label(join)
        return self.phi(value.type, (value, after), (value.like(0), before))

    def choose(self, condition: Value, then: Callable[[], Value], orelse: Callable[[], Value]) -> Value:
        """The result of `then` where the condition holds, else that of `orelse`."""
        yes, no = self.name("then"), self.name("else")
        self.branch(condition, yes, no)
        return self.value_of_blocks([(yes, then), (no, orelse)])

    def value_of_blocks(self, blocks: Sequence[tuple[str, Callable[[], Value]]]) -> Value:
        """The value that the block which runs computes. The current block branches to all."""
        join, sources = self.name("join"), list[tuple[Value, str]]()
        for label, compute in blocks:
            with self.region(label):
                value = compute()
                sources.append((value, self.block))  # `compute` may have ended in another block
                self.jump(join)
        self.label(join)
        return self.phi(sources[0][0].type, *sources)

    def count_up(self, begin: Value, end: Value, step: int, body: Callable[[Value], None]) -> None:
        """for (i = begin; i < end; i += step) body(i), where step divides end - begin."""
        # Without a loop, at most one round needs no new blocks, so known values stay usable after
        # it.
        if begin.is_constant and end.is_constant and int(end.text) - int(begin.text) <= step:
            if int(begin.text) < int(end.text):
                body(begin)
            return
        head, last, after = self.name("loop"), self.name("next"), self.name("done")
        before = self.block
        self.branch(begin < end, head, after)
        # Named before it is defined, because the phi at the head refers to it.
        following = Value(self, "i64", f"%{self.name('i')}")
        with self.region(head):
            i = self.phi("i64", (begin, before), (following, last))
            body(i)
            self.jump(last)
            # A separate block, because the phi must name it before the body is emitted.
            self.label(last)
            self.do(f"{following.text} = add nuw nsw i64 {i.text}, {step}")
            self.branch(following < end, head, after)
        self.label(after)

    def select(self, condition: Value, a: Value | Number, b: Value | Number) -> Value:
        """`a` if the condition holds, else `b`."""
        known = a if isinstance(a, Value) else b
        assert isinstance(known, Value)
        a, b = known.like(a), known.like(b)
        return self.emit(a.type, f"select {condition.type} {condition.text}, {a.type} {a.text}, {b.type} {b.text}")

    def phi(self, type: str, *incoming: tuple[Value, str]) -> Value:
        """The value listed for the block from which control came."""
        sources = ", ".join(f"[ {v.text}, %{block} ]" for v, block in incoming)
        return self.effect(type, f"phi {type} {sources}")


@dataclass(frozen=True, slots=True, eq=False)
class Value(Operators["Value"]):
    """One scalar: its IR type and its text (a name or a constant)."""

    writer: Writer
    type: str
    text: str

    @property
    def is_float(self) -> bool:
        """True for half, float and double."""
        return scalar_of(self.type) in FLOATS

    @property
    def is_constant(self) -> bool:
        """True for literal text."""
        return self.text[0] != "%"

    @property
    def lanes(self) -> int:
        """How many lanes; 0 for a scalar."""
        return lanes_of(self.type)

    @property
    def scalar_type(self) -> str:
        """The type of one lane."""
        return scalar_of(self.type)

    def like(self, other: Value | Number) -> Value:
        """`other`, as a constant of this type if it is a Python number."""
        return other if isinstance(other, Value) else self.writer.constant(self.type, other)

    def apply(self, name: str, *others: Value | Number) -> Value:
        op = instructions(self.type).get(name)
        if op is not None:
            return self.binary(op, *others)
        if name in INTRINSICS:
            return self.call(INTRINSICS[name], *others)
        if name == "not":
            return self.invert()
        if name == "neg":
            return self.writer.emit(self.type, f"fneg {self.type} {self.text}") if self.is_float else 0 - self
        return self.compare(PREDICATES[name][self.is_float], *others)

    def swapped(self, name: str, other: Number) -> Value:
        return self.like(other).binary(instructions(self.type)[name], self)

    def binary(self, op: str, other: Value | Number) -> Value:
        """The instruction `op` on this value and another of its type; i64 constants are folded."""
        x, y = self.text, self.like(other).text
        # Folded here rather than by LLVM, because `is_constant` decides how loops are emitted.
        # That constants do not wrap around is a promise that folding need not hand on.
        if self.type == "i64" and (fold := FOLDED.get(op.removesuffix(" nsw"))) and x[0] != "%" and y[0] != "%":
            return self.writer.constant("i64", fold(int(x), int(y)))
        return self.writer.emit(self.type, f"{op} {self.type} {x}, {y}")

    def ceil_div(self, divisor: Value | Number) -> Value:
        """The quotient of two sizes, rounded up."""
        return (self + (divisor - 1)).binary("udiv", divisor)

    def round_down(self, multiple: Value | Number) -> Value:
        """The largest multiple that is not above this size."""
        return self - self.binary("urem", multiple)

    def compare(self, predicate: str, other: Value | Number) -> Value:
        """An i1 by the IR predicate: olt, une, slt, ult, ..."""
        kind = "fcmp" if self.is_float else "icmp"
        text = f"{kind} {predicate} {self.type} {self.text}, {self.like(other).text}"
        return self.writer.emit(with_scalar(self.type, "i1"), text)

    def is_nan(self) -> Value:
        """True for NaN."""
        return self.compare("uno", self)

    def invert(self) -> Value:
        """All bits flipped; for i1, not."""
        return self.binary("xor", -1)

    def cast(self, op: str, type: str) -> Value:
        """A conversion instruction of each lane: sext, trunc, fpext, sitofp, bitcast, ..."""
        type = with_scalar(self.type, scalar_of(type))
        if self.type == type:
            return self
        return self.writer.emit(type, f"{op} {self.type} {self.text} to {type}")

    def to_bits(self) -> Value:
        """The bits of a float as an integer."""
        return self.cast("bitcast", bits_type(self.type))

    def from_bits(self, type: str) -> Value:
        """The float with these bits."""
        return self.cast("bitcast", type)

    def call(self, intrinsic: str, *others: Value | Number) -> Value:
        """An overloaded intrinsic on this value and others of its type."""
        return self.writer.intrinsic(intrinsic, self.type, self, *(self.like(o) for o in others))

    def fma(self, b: Value | Number, c: Value | Number) -> Value:
        """self * b + c with one rounding."""
        return self.call("fma", b, c)

    def abs(self) -> Value:
        """The magnitude of a float."""
        return self.call("fabs")

    def copysign(self, sign: Value | Number) -> Value:
        """This magnitude with the sign of `sign`."""
        return self.call("copysign", sign)

    def round(self) -> Value:
        """Half to even."""
        return self.call("roundeven")


def _lane_name(function: str, lanes: int) -> str:
    return f"by_lane.{function}.{lanes}"


def _lane_loop(function: str, count: int, lanes: int) -> str:
    """The definition of a function that calls another on each lane of vectors in memory."""
    names = [*(f"%a{k}" for k in range(count)), "%out"]
    at = [f"  %p{k} = getelementptr double, ptr {n}, i64 %i" for k, n in enumerate(names)]
    loads = [f"  %x{k} = load double, ptr %p{k}" for k in range(count)]
    arguments = ", ".join(f"double %x{k}" for k in range(count))
    head = f"define internal void @{_lane_name(function, lanes)}"
    return "\n".join(
        [
            # Rarely called and long once inlined, so kept out of the loop.
            f"{head}({', '.join(f'ptr {n}' for n in names)}) noinline cold {{",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
            *at,
            *loads,
            f"  %y = call double @{function}({arguments})",
            f"  store double %y, ptr %p{count}",
            "  %next = add i64 %i, 1",
            f"  %more = icmp ult i64 %next, {lanes}",
            "  br i1 %more, label %loop, label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )
