"""Plain C: kernels, steps and entry in one file, which uses no memory but the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rune.backends.shared.executor import Place
from rune.exporting.source import texts
from rune.exporting.source.functions import Functions
from rune.exporting.source.job import Job
from rune.exporting.source.steps import NEAREST, ROUNDING, InC, in_c, pointer, size_name, step_lines
from rune.lowering.codegen.c.host import OPTIONS, TARGET, C
from rune.lowering.codegen.c.render import Rendered, assemble, render
from rune.lowering.kernel.nodes import Access
from rune.lowering.plan import Call, Launch
from rune.lowering.source_calls import is_source, kernel_of

__all__ = ["TARGET", "files"]


class _Calls(InC):
    """Steps in C: a launch is a loop over the grid, and memory is the host's."""

    def __init__(self, kernels: Mapping[str, Rendered], functions: Functions):
        self.kernels, self.functions = kernels, functions

    def launch(self, step: Launch, places: Sequence[Place]) -> list[str]:
        """Loops around a call of the kernel for one point."""
        kernel = self.kernels[step.kernel]
        extents = [*map(in_c, kernel.grid)]
        loops = [f"for (int64_t p{k} = 0; p{k} < {extents[k]}; p{k}++)" for k in reversed(range(len(extents)))]
        arguments = [
            _cast(p.dtype, p.access is Access.READ, place) for p, place in zip(kernel.params, places, strict=True)
        ]
        points = [f"p{k}" if k < len(extents) else "0" for k in range(3)]
        call_arguments = [*arguments, *map(size_name, kernel.sizes), *points]
        return [*loops, f"  {kernel.name}({', '.join(call_arguments)});"]

    def call(self, step: Call, places: Sequence[Place]) -> list[str]:
        """A call of a user's C function. Errors: ArgumentError for any other function."""
        if not is_source(step):
            return InC.call(self, step, places)
        return [self.functions.call(kernel_of(step), places, len(step.outputs))]

    def copy(self, target: Place, source: Place) -> list[str]:
        """A copy of bytes."""
        return [f"memmove({pointer(target)}, {pointer(source)}, {in_c(target.bytes)});"]

    def write(self, place: Place, number: str) -> str:
        """A store."""
        return f"memcpy({pointer(place)}, &{number}, sizeof {number});"

    def read(self, place: Place) -> str:
        """A load."""
        return f"rune_read({pointer(place)}, {place.bytes})"


def _cast(dtype: object, is_read: bool, place: Place) -> str:
    storage = C.scalars[dtype].storage  # type: ignore[index]
    return f"({'const ' if is_read else ''}{storage} *){pointer(place)}"


_READ = """static int32_t rune_read(const unsigned char *at, size_t bytes) {
  int32_t number = 0;
  memcpy(&number, at, bytes);
  return number;
}"""


def _arena_function(job: Job) -> str:
    arena = in_c(job.steps.arena_bytes)
    return f"{texts.arena_signature(job)} {{\n  const int64_t bytes = {arena};\n  return bytes < 64 ? 64 : bytes;\n}}"


def files(job: Job) -> dict[str, str | bytes]:
    """The files of the folder, by name."""
    kernels = {name: render(code, C) for name, code in job.plan.kernels.items()}
    count, name, functions = len(job.weights), job.name, Functions(job.name)
    steps = step_lines(job.steps.steps, _Calls(kernels, functions))
    arguments = [*(f"{name}_w{n}" for n in range(count)), *(f"(const void *)a{n}" for n in range(len(job.types)))]
    results = [f"(unsigned char *)r{n}" for n in range(len(job.out_types))]
    source = [
        f'#include "{name}.h"',
        assemble(list(kernels.values()), C),
        texts.weight_declarations(job, "_Alignas(64) "),
        *functions.declarations(),
        NEAREST,
        _READ,
        *([ROUNDING, _arena_function(job)] if job.sizes else []),
        f"{texts.signature(job, True)} {{",
        *texts.range_check(job),
        f"  const unsigned char *const a[] = {{{', '.join(arguments) or '0'}}};",
        f"  unsigned char *const r[] = {{{', '.join(results) or '0'}}};",
        "  unsigned char *const m = arena;",
        "  (void)a, (void)r, (void)m, (void)rune_nearest, (void)rune_read;",
        steps,
        "  return 0;",
        "}",
    ]
    user_files = functions.files()
    sources = " ".join(["main.c", f"{name}.c", f"{name}_weights.c", *user_files])
    build = f"cc {' '.join(OPTIONS)} -o {name} {sources} -lm"
    advice = "Add -march=native, or the device's instruction set, for vector instructions in kernels."
    return texts.folder(job, {f"{name}.c": "\n".join(source) + "\n", **user_files}, build, advice, arena=True)
