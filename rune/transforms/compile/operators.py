"""Operators of arrays, compiled once they are applied often: a tier of single operations.

`x + y` of ten numbers takes some 3 µs of Python around NumPy's sum; native code makes the same call
in a sixth of that. An operator counts its eager calls by the types of its operands. After OFTEN of
a kind, by which time they have taken as long as compiling does, it is compiled as a jitted
function, whose cached calls native code makes (backends/cpu/calls/operators.py).

The results do not reveal it: an operation is compiled only where that gives the bits of eager
evaluation (exact.py). All other calls are made as before: of tracers, of arrays on a device, under
other settings, with operands of any other class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeAlias

from rune import config, dtypes
from rune.array import Array
from rune.core.interpreter import is_evaluating
from rune.errors import RuneError
from rune.lowering.live import live
from rune.ops.operators import Operators
from rune.transforms import late_modules
from rune.transforms.compile.exact import is_exact
from rune.transforms.compile.jit import Jitted, jit
from rune.transforms.compile.tiers import LARGE, is_watched

if TYPE_CHECKING:
    from rune.backends.cpu.calls.operators import Table

# Calls of a kind before it is compiled: some 0.2 s, which the first compilation of a process takes.
OFTEN = 1 << 15
OFTEN_OF_MANY = 1 << 11  # the same for an operator of some forty operations
KINDS = 1024  # the most kinds that are counted for an operator
_PAIRS = "add sub mul truediv floordiv mod and or xor lshift rshift lt le gt ge eq ne".split()
_REFLECTED = "radd rsub rmul rtruediv rfloordiv rmod rand ror rxor rlshift rrshift".split()
_OF_ONE = "neg invert".split()
_OF_MANY = "floordiv mod rfloordiv rmod".split()
# Python's numbers are rounded once, also by a call of jit, beside these dtypes.
_DTYPES_BESIDE_NUMBERS = {dtypes.f32, dtypes.i32}
Method: TypeAlias = Callable[..., object]


class _Operator:
    """One operator: how often it was applied to each kind of operands, and its native code."""

    def __init__(self, name: str):
        self.name = f"__{name}__"
        self.function: Method = getattr(Operators, self.name)
        self.often = OFTEN_OF_MANY if name in _OF_MANY else OFTEN
        self.operands = 1 if name in _OF_ONE else 2
        self.kinds: dict[Hashable, int] = {}
        self.counted = self._one if self.operands == 1 else self._pair
        self.apply: Method = self.counted  # or native code, which falls back on it
        self.table: Table | None = None  # of cached calls, once there is one

    def method(self) -> Method:
        """The method of arrays."""
        operator = self

        def pair(self: Array, other: object, /) -> object:
            return operator.apply(self, other)

        def one(self: Array, /) -> object:
            return operator.apply(self)

        method = one if self.operands == 1 else pair
        method.__name__, method.__qualname__ = self.name, f"Array.{self.name}"
        return method

    def _pair(self, array: Array, other: object, /) -> object:
        kind = array.type, other.type if type(other) is Array else type(other)
        count = self.kinds.get(kind, 0)
        if count <= self.often:
            self.decide(kind, count, array, other)
        return self.function(array, other)

    def _one(self, array: Array, /) -> object:
        count = self.kinds.get(array.type, 0)
        if count <= self.often:
            self.decide(array.type, count, array)
        return self.function(array)

    def decide(self, kind: Hashable, count: int, array: Array, *others: object) -> None:
        """Count one more call of a kind; compile it if it is now made often."""
        if count == 0 and len(self.kinds) >= KINDS:
            self.kinds.clear()
        self.kinds[kind] = count + 1
        if count == self.often and is_evaluating() and _is_plain(array, others):
            self.compile(array, others)

    def compile(self, array: Array, others: tuple[object, ...]) -> None:
        """Let native code make calls like this one from now on, if it can, with the same bits."""
        jitted = jit(self.function)
        try:
            if not is_exact(live(jitted.program(array, *others))):
                return
            for _ in range(3):  # the second call describes its kind
                jitted(array, *others)
        except RuneError:  # the operator itself raises it
            return
        table = self.table or late_modules.native_operators().Table()
        if jitted.native_calls and table.add(array.type, jitted.native_calls) and self.table is None:
            natively = late_modules.native_calls().native_operator
            native = natively(Jitted, "_native_calls", self.name, self.counted, self.operands, table)
            if native is not None:
                self.table, self.apply = table, native


def _is_plain(array: Array, others: tuple[object, ...]) -> bool:
    """Whether a compiled call would convert the operands as the operator does."""
    settings = config.current()
    if is_watched(settings) or settings.x64 or settings.symbolic != "declared":
        return False
    arrays = [array, *(x for x in others if type(x) is Array)]
    if any(x.place.device is not None or x.size >= LARGE for x in arrays):
        return False
    # Beside these dtypes a call of jit rounds Python's numbers once, too.
    takes_numbers = array.type.dtype in _DTYPES_BESIDE_NUMBERS
    return all(type(x) is Array or (type(x) in (float, int) and takes_numbers) for x in others)


def attach() -> None:
    """Give the counting methods to `Array`: traced values keep those of `Operators`."""
    for name in (*_PAIRS, *_REFLECTED, *_OF_ONE):
        operator = _Operator(name)
        setattr(Array, operator.name, operator.method())
