"""What users wrote in C and CUDA C, in files of their own beside the steps that call it.

    sums_source_0.c     the text as it was written, and behind it, for each way that it is called,
    void sums_source_0_0(void *r0, void *a0, int64_t n0) { total(a0, r0, n0); }

    sums_source_0.cu    the same with a launch, whose blocks follow sizes that are known at the call
    void sums_source_0_0(void *r0, void *a0, long long n0, dim3 blocks) {
      total<<<blocks, dim3(64, 1, 1), 0>>>(pointer_to{a0}, pointer_to{r0}, n0);
    }

The compiler sees both, so numbers are converted as the function declares them, and one that takes
something else is an error of the build. A text is compiled once, and no name in it meets one of
the folder's, but for those that the linker sees. Kernels of one name in two texts would be one
for it, and templates without a word: in CUDA C a kernel that is launched has a name by its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

from rune.backends.shared.executor import Place
from rune.core.source import Bound, Launch
from rune.dims import Size
from rune.exporting.source.steps import in_c, pointer
from rune.records import dataclass

_DIMENSIONS = 3
# A pointer that converts to what the kernel takes.
_POINTER_TO = """namespace {
struct pointer_to { void *at; template <class T> operator T *() const { return (T *)at; } };
}"""


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to call a function: how many results and operands, types of its numbers, its launch."""

    entry: str
    results: int
    operands: int
    numbers: tuple[str, ...]
    launch: Launch | None = None  # without its blocks

    def declared(self, name: str) -> str:
        """The head of the function that calls it so."""
        pointers = [f"void *{x}" for x in (*self._names("r", self.results), *self._names("a", self.operands))]
        numbers = [f"{t} n{k}" for k, t in enumerate(self.numbers)]
        blocks = [] if self.launch is None else ["dim3 blocks"]
        return f"void {name}({', '.join([*pointers, *numbers, *blocks])})"

    def body(self) -> str:
        """The call: operands first, as the user's function takes them."""
        pointers = [*self._names("a", self.operands), *self._names("r", self.results)]
        numbers = self._names("n", len(self.numbers))
        if self.launch is None:
            return f"{{ {self.entry}({', '.join([*pointers, *numbers])}); }}"
        arguments = [*(f"pointer_to{{{p}}}" for p in pointers), *numbers]
        return "\n".join(["{", *self._launched(self.launch, ", ".join(arguments)), "}"])

    def _launched(self, launch: Launch, arguments: str) -> Iterator[str]:
        if launch.shared_bytes:
            most = "cudaFuncAttributeMaxDynamicSharedMemorySize"
            yield f"  cudaFuncSetAttribute({self.entry}, {most}, {launch.shared_bytes});"
        shape = f"blocks, {extents(launch.group)}, {launch.shared_bytes}"
        yield f"  {self.entry}<<<{shape}>>>({arguments});"

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
        way = _way(kernel, results, len(places) - results)
        ways = self.ways.setdefault(kernel.source.text, [])
        if way not in ways:
            ways.append(way)
        number = list(self.ways).index(kernel.source.text)
        arguments = [f"(void *){pointer(p)}" for p in places] + [*map(_number, kernel.numbers)]
        arguments += [] if way.launch is None else [extents(kernel.launch.grid)]
        return f"{self._called(number, ways.index(way))}({', '.join(arguments)});"

    def _called(self, number: int, way: int) -> str:
        return f"{self.name}_source_{number}_{way}"

    def declarations(self) -> Iterator[str]:
        """What the file of the steps has to know of them."""
        for number, ways in enumerate(self.ways.values()):
            yield from (f"{way.declared(self._called(number, k))};" for k, way in enumerate(ways))

    def files(self) -> dict[str, str]:
        """A file for each text. An error in it has the user's line."""
        return {
            f"{self.name}_source_{number}{_suffix(ways)}": "\n".join(self._file(number, text, ways)) + "\n"
            for number, (text, ways) in enumerate(self.ways.items())
        }

    def _file(self, number: int, text: str, ways: Sequence[_Way]) -> Iterator[str]:
        launched = sorted({_last_name(way.entry) for way in ways if way.launch is not None})
        yield from (f"#define {entry} {self.name}_source_{number}_{entry}" for entry in launched)
        yield from ["#line 1"] if launched else []
        yield from (text.rstrip("\n"), "", "/* What the steps call. */")
        yield _POINTER_TO if launched else "#include <stdint.h>"
        for k, way in enumerate(ways):
            head = way.declared(self._called(number, k))
            yield from (f"{head};", f"{head} {way.body()}")


def _way(kernel: Bound, results: int, operands: int) -> _Way:
    is_launched = kernel.source.language == "cuda"
    integer = "long long" if is_launched else "int64_t"
    kinds = tuple("double" if isinstance(x, float) else integer for x in kernel.numbers)
    launch = Launch(1, kernel.launch.group, kernel.launch.shared_bytes) if is_launched else None
    return _Way(kernel.source.entry, results, operands, kinds, launch)


def _suffix(ways: Sequence[_Way]) -> str:
    return ".c" if all(way.launch is None for way in ways) else ".cu"


def _last_name(entry: str) -> str:
    """The name that the text defines: of `nvcuda::scale<float>` it is scale."""
    return re.findall(r"\w+", entry.partition("<")[0])[-1]


def extents(sizes: Sequence[Size]) -> str:
    """Blocks or threads along three dimensions."""
    return f"dim3({', '.join(in_c(size) for size in (*sizes, *[1] * (_DIMENSIONS - len(sizes))))})"


def _number(x: Size | float) -> str:
    """A number as C has it: 64 bits, or a double, to the last bit."""
    return x.hex() if isinstance(x, float) else f"(int64_t)({in_c(int(x) if isinstance(x, int) else x)})"
