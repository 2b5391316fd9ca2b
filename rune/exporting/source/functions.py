"""Users' C and CUDA C functions, each text in a separate file, with wrappers that call them.

    sums_source_0.c     the user's text, followed by a wrapper for each signature it is called with
    void sums_source_0_0(void *r0, void *a0, int64_t n0) { total(a0, r0, n0); }

    sums_source_0.cu    the same with a launch; the number of blocks is an argument
    void sums_source_0_0(void *r0, void *a0, long long n0, dim3 blocks) {
      total<<<blocks, dim3(64, 1, 1), 0>>>(pointer_to{a0}, pointer_to{r0}, n0);
    }

The compiler sees the function and its wrapper together, so it converts numbers to the declared
types, and reports a function with other parameters when the folder is built. Each text is a
separate translation unit, so only names with external linkage can collide. For the linker, kernels
of the same name in two texts would be one kernel, and it would merge templates without a message; a
macro therefore prefixes the names of launched kernels with those of their files.
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
# A pointer that converts to any pointer type that a kernel's parameter may have.
_POINTER_TO = """namespace {
struct pointer_to { void *at; template <class T> operator T *() const { return (T *)at; } };
}"""


@dataclass(frozen=True, slots=True)
class _Way:
    """A signature that a function is called with: results, operands, types of numbers, launch."""

    entry: str
    results: int
    operands: int
    numbers: tuple[str, ...]
    launch: Launch | None = None  # without its blocks

    def head(self, name: str) -> str:
        """The head of the wrapper."""
        pointers = [f"void *{x}" for x in (*self._names("r", self.results), *self._names("a", self.operands))]
        numbers = [f"{t} n{k}" for k, t in enumerate(self.numbers)]
        blocks = [] if self.launch is None else ["dim3 blocks"]
        return f"void {name}({', '.join([*pointers, *numbers, *blocks])})"

    def body(self) -> str:
        """The body of the wrapper. The user's function takes the operands first."""
        pointers = [*self._names("a", self.operands), *self._names("r", self.results)]
        numbers = self._names("n", len(self.numbers))
        if self.launch is None:
            return f"{{ {self.entry}({', '.join([*pointers, *numbers])}); }}"
        arguments = [*(f"pointer_to{{{p}}}" for p in pointers), *numbers]
        return "\n".join(["{", *self._launch_lines(self.launch, ", ".join(arguments)), "}"])

    def _launch_lines(self, launch: Launch, arguments: str) -> Iterator[str]:
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
    """Users' functions, collected while steps are written. name: that of the folder"""

    name: str
    ways: dict[str, list[_Way]] = field(default_factory=dict)  # by text

    def call(self, kernel: Bound, places: Sequence[Place], results: int) -> str:
        """The line that calls a function on places: the results, then the operands."""
        way = _way(kernel, results, len(places) - results)
        ways = self.ways.setdefault(kernel.source.text, [])
        if way not in ways:
            ways.append(way)
        number = list(self.ways).index(kernel.source.text)
        arguments = [f"(void *){pointer(p)}" for p in places] + [*map(_number, kernel.numbers)]
        arguments += [] if way.launch is None else [extents(kernel.launch.grid)]
        return f"{self._function_name(number, ways.index(way))}({', '.join(arguments)});"

    def _function_name(self, number: int, way: int) -> str:
        return f"{self.name}_source_{number}_{way}"

    def declarations(self) -> Iterator[str]:
        """Declarations of the wrappers, for the file with the steps."""
        for number, ways in enumerate(self.ways.values()):
            yield from (f"{way.head(self._function_name(number, k))};" for k, way in enumerate(ways))

    def files(self) -> dict[str, str]:
        """A file for each text. Compilers report errors by the lines of the user's text."""
        return {
            f"{self.name}_source_{number}{_suffix(ways)}": "\n".join(self._file(number, text, ways)) + "\n"
            for number, (text, ways) in enumerate(self.ways.items())
        }

    def _file(self, number: int, text: str, ways: Sequence[_Way]) -> Iterator[str]:
        kernel_names = sorted({_last_name(way.entry) for way in ways if way.launch is not None})
        yield from (f"#define {entry} {self.name}_source_{number}_{entry}" for entry in kernel_names)
        yield from ["#line 1"] if kernel_names else []
        yield from (text.rstrip("\n"), "", "/* The functions that the steps call. */")
        yield _POINTER_TO if kernel_names else "#include <stdint.h>"
        for k, way in enumerate(ways):
            head = way.head(self._function_name(number, k))
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
    """The name that the text defines: `scale` for `nvcuda::scale<float>`."""
    return re.findall(r"\w+", entry.partition("<")[0])[-1]


def extents(sizes: Sequence[Size]) -> str:
    """Blocks or threads along three dimensions."""
    return f"dim3({', '.join(in_c(size) for size in (*sizes, *[1] * (_DIMENSIONS - len(sizes))))})"


def _number(x: Size | float) -> str:
    """A number in C: an int64_t, or a double in hexadecimal, exact to the last bit."""
    return x.hex() if isinstance(x, float) else f"(int64_t)({in_c(int(x) if isinstance(x, int) else x)})"
