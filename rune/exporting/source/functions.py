"""Functions of C that users wrote, in files of their own beside the steps that call them.

    sums_source_0.c     the text as it was written, and behind it, for each way that it is called,
    void sums_source_0_0(void *r0, void *a0, int64_t n0) { total(a0, r0, n0); }

The compiler sees both, so numbers are converted as the function declares them, and one that takes
something else is an error of the build. A text is compiled once, and no name in it meets one of
the folder's, but for those that the linker sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from rune.backends.shared.executor import Place
from rune.core.source import Bound
from rune.dims import Size
from rune.exporting.source.steps import in_c, pointer
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to call a function: how many results and operands, and the types of its numbers."""

    entry: str
    results: int
    operands: int
    numbers: tuple[str, ...]

    def declared(self, name: str) -> str:
        """The head of the function that calls it so."""
        pointers = [f"void *{x}" for x in (*self._names("r", self.results), *self._names("a", self.operands))]
        return f"void {name}({', '.join([*pointers, *(f'{t} n{k}' for k, t in enumerate(self.numbers))])})"

    def body(self) -> str:
        """The call: operands first, as the user's function takes them."""
        pointers = [*self._names("a", self.operands), *self._names("r", self.results)]
        return f"{{ {self.entry}({', '.join([*pointers, *self._names('n', len(self.numbers))])}); }}"

    @staticmethod
    def _names(letter: str, count: int) -> list[str]:
        return [f"{letter}{n}" for n in range(count)]


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of a folder, collected as its steps are written. name: of the folder"""

    name: str
    ways: dict[str, list[_Way]] = field(default_factory=dict)  # by text

    def call(self, kernel: Bound, places: Sequence[Place], results: int) -> str:
        """The line that calls it on these places: the results, then the operands."""
        kinds = tuple("double" if isinstance(x, float) else "int64_t" for x in kernel.numbers)
        way = _Way(kernel.source.entry, results, len(places) - results, kinds)
        ways = self.ways.setdefault(kernel.source.text, [])
        if way not in ways:
            ways.append(way)
        number = list(self.ways).index(kernel.source.text)
        arguments = [f"(void *){pointer(p)}" for p in places] + [*map(_number, kernel.numbers)]
        return f"{self._called(number, ways.index(way))}({', '.join(arguments)});"

    def _called(self, number: int, way: int) -> str:
        return f"{self.name}_source_{number}_{way}"

    def declarations(self) -> Iterator[str]:
        """What the file of the steps has to know of them."""
        for number, ways in enumerate(self.ways.values()):
            yield from (f"{way.declared(self._called(number, k))};" for k, way in enumerate(ways))

    def files(self) -> dict[str, str]:
        """A file for each text, which it begins with: an error has the user's line."""
        return {
            f"{self.name}_source_{number}.c": "\n".join([text.rstrip("\n"), "", *self._bodies(number, ways)]) + "\n"
            for number, (text, ways) in enumerate(self.ways.items())
        }

    def _bodies(self, number: int, ways: Sequence[_Way]) -> Iterator[str]:
        yield from ("/* What the steps call. */", "#include <stdint.h>")
        for k, way in enumerate(ways):
            head = way.declared(self._called(number, k))
            yield from (f"{head};", f"{head} {way.body()}")


def _number(x: Size | float) -> str:
    """A number as C has it: 64 bits, or a double, to the last bit."""
    return x.hex() if isinstance(x, float) else f"(int64_t)({in_c(int(x) if isinstance(x, int) else x)})"
