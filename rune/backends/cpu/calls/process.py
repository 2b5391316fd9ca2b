"""The process as native code sees it: functions, objects and offsets by names.

pointers   to functions and objects, by names in capitals
numbers    byte offsets and positions of words, by names in capitals
"""

from __future__ import annotations

from collections.abc import Mapping

from rune.backends.cpu.routines import Code
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Process:
    """Functions, objects and offsets by word (describe.py)."""

    pointers: Mapping[str, str]
    numbers: Mapping[str, int]

    def object(self, code: Code, word: str) -> Value:
        """A pointer to an object or a function that lives as long as the process."""
        return Value(code, "ptr", self.pointers[word])

    def ask(self, code: Code, type: str, word: str, *args: Value) -> Value:
        """Call a function of Python or NumPy."""
        return code.ask(type, self.object(code, word), *args)

    def count_reference(self, code: Code, object: Value) -> None:
        """Count one more reference."""
        # By Python's function, because the counts of immortal objects (3.12) must not change.
        code.tell("void", self.object(code, "INCREF"), object)

    def drop_reference(self, code: Code, object: Value) -> None:
        """Drop a reference, unless it is null. The last one frees the object, which may run Python
        code."""
        code.tell("void", self.object(code, "DECREF"), object)

    def clear_error(self, code: Code) -> None:
        """Clear Python's error, if one is set."""
        code.tell("void", self.object(code, "CLEAR_ERROR"))

    def field_at(self, code: Code, object: Value, word: str) -> Value:
        """The address of a field of an object."""
        return code.item(object, "i8", self.numbers[word])

    def field(self, code: Code, object: Value, word: str, type: str = "ptr") -> Value:
        """The value of a field of an object; a field with an object is a borrowed reference."""
        return code.load(type, self.field_at(code, object, word))

    def tuple_item(self, code: Code, tuple: Value, number: Value | int) -> Value:
        """An item of a tuple that is known to have it, as a borrowed reference."""
        return item(code, self.field_at(code, tuple, "TUPLE_ITEMS"), number, "ptr")

    def word(self, code: Code, words: Value, word: str, type: str = "i64") -> Value:
        """One of the first words of a call."""
        return item(code, words, self.numbers[word], type)


def item(code: Code, array: Value, number: Value | int, type: str = "i64") -> Value:
    """An item of an array in memory."""
    return code.load(type, code.item(array, type, number))
