"""CUDA: files of kernels and of the host for nvcc, and files with users' kernels.

Each launch reads a row of a table on the device: the addresses of its buffers and its sizes. With
fixed sizes the table never changes. A user's kernel gets its arguments directly (functions.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from rune import dtypes
from rune.backends.shared.executor import Place
from rune.dims import Dim, product
from rune.exporting.source import hosts, texts
from rune.exporting.source.functions import Functions
from rune.exporting.source.job import Job
from rune.exporting.source.steps import NEAREST, ROUNDING, InC, in_c, pointer, size_name, step_lines
from rune.lowering.codegen.c.cuda import CUDA_C, OPTIONS
from rune.lowering.codegen.c.render import Rendered, assemble, render
from rune.lowering.codegen.target import Target, natively
from rune.lowering.plan import Call, Launch
from rune.lowering.source_calls import is_source, kernel_of
from rune.records import dataclass

_FLOATS, _WORDS = [dtypes.f32, dtypes.f64], [dtypes.i32, dtypes.u32]
_THREADS = 256  # the most in a block, for kernels that do not fix their workgroup
# The limits of every device of compute capability 7.5 or higher.
TARGET = Target(
    name="cuda:0",
    backend="cuda",
    language="cuda",
    description="any CUDA device from 7.5 on",
    dtypes=frozenset(CUDA_C.scalars),
    vector_bytes=16,
    cores=64,
    threads_per_workgroup=1024,
    shared_bytes=48 << 10,
    scratch_bytes=1 << 12,
    routines=frozenset({"cuda_source"}),
    native=natively(fma=_FLOATS, arithmetic=_FLOATS, atomic_add=[*_WORDS, dtypes.u64], atomic_min=_WORDS),
)


@dataclass(slots=True)
class _Launches(InC):
    """Steps in C: a launch reads its row of the table, and memory is the device's."""

    kernels: Mapping[str, Rendered]
    functions: Functions
    words: list[str] = field(default_factory=list)

    def launch(self, step: Launch, places: Sequence[Place]) -> list[str]:
        """A launch of blocks along one dimension."""
        kernel = self.kernels[step.kernel]
        points = product(kernel.grid)
        if points == 0:
            return []
        # A kernel of one point does not test bounds, so a second thread would repeat its work.
        group = _THREADS if isinstance(points, Dim) else min(points, _THREADS)
        threads = math.prod(kernel.workgroup) if kernel.workgroup else group
        blocks = points if kernel.workgroup else (points + threads - 1) // threads
        first = len(self.words)
        self.words += [f"(unsigned long long){pointer(p)}" for p in places]
        self.words += [f"(unsigned long long){size_name(name)}" for name in kernel.sizes]
        test = f"if ({in_c(blocks)} > 0) " if isinstance(blocks, Dim) else ""
        shape = f"{in_c(blocks)}, {threads}, {kernel.shared_bytes}"
        return [f"{test}{kernel.name}<<<{shape}>>>(table + {first});"]

    def call(self, step: Call, places: Sequence[Place]) -> list[str]:
        """A launch of a user's kernel, from its own file. Errors: ArgumentError for other calls."""
        if not is_source(step):
            return InC.call(self, step, places)
        kernel, results = kernel_of(step), len(step.outputs)
        written_bytes = sum((p.bytes for p in places[:results]), start=0)
        blocks = ", ".join(in_c(n) for n in (*kernel.launch.grid, 1, 1)[:3])
        return [
            f"if (launchable({in_c(written_bytes)}, {blocks}))",
            f"  {self.functions.call(kernel, places, results)}",
        ]

    def copy(self, target: Place, source: Place) -> list[str]:
        """An asynchronous copy on the device."""
        return [
            f"note(cudaMemcpyAsync({pointer(target)}, {pointer(source)}, {in_c(target.bytes)}, "
            "cudaMemcpyDeviceToDevice));"
        ]

    def write(self, place: Place, number: str) -> str:
        """A copy from the host, which has read the number by the time it returns."""
        return f"note(cudaMemcpy({pointer(place)}, &{number}, sizeof {number}, cudaMemcpyHostToDevice));"

    def read(self, place: Place) -> str:
        """A copy to the host, which waits for all earlier work."""
        return f"load({pointer(place)}, {place.bytes})"


_FINISH = "note(cudaGetLastError()); note(cudaDeviceSynchronize());"
_LAUNCHABLE = """
/* Whether to launch a kernel with these blocks. No blocks for bytes to write, or too many, is a failure. */
static int launchable(int64_t bytes, int64_t x, int64_t y, int64_t z) {
  const int is_empty = x <= 0 || y <= 0 || z <= 0;
  if ((is_empty && bytes > 0) || x > INT32_MAX || y > 65535 || z > 65535) note(cudaErrorInvalidConfiguration);
  return !is_empty && failure == cudaSuccess;
}
"""


def files(job: Job) -> dict[str, str | bytes]:
    """The files of the folder, by name."""
    kernels = {name: render(code, CUDA_C) for name, code in job.plan.kernels.items()}
    name, functions = job.name, Functions(job.name)
    launches = _Launches(kernels, functions)
    steps = step_lines(job.steps.steps, launches)
    user_files = functions.files()
    source = [
        f'#include "{name}.h"',
        "#include <cuda_runtime.h>",
        f'#include "{name}_kernels.cu"',
        f'extern "C" {{\n{texts.weight_declarations(job)}\n}}',
        hosts.text("cuda.cu"),
        *([_LAUNCHABLE, *functions.declarations()] if user_files else []),
        NEAREST,
        *([ROUNDING] if job.sizes else []),
        texts.device_memory(job, "buffer"),
        texts.grow_function(job, "buffer", "cudaFree({0});"),
        texts.table(job, launches.words, "unsigned long long", "send((unsigned char *)table, words, sizeof words);"),
        _open_function(job, len(launches.words)),
        texts.steps_function(job, steps, "rune_nearest"),
        f'extern "C" {texts.device_entry(job, _FINISH, "write_table")}',
        _close(job),
    ]
    sources = " ".join(["main.c", f"{name}.cu", f"{name}_weights.c", *user_files])
    build = f"nvcc {' '.join(OPTIONS)} -o {name} {sources} -lm"
    host: dict[str, str | bytes] = {
        f"{name}.cu": "\n".join(source) + "\n",
        f"{name}_kernels.cu": assemble(list(kernels.values()), CUDA_C),
        **user_files,
    }
    return texts.folder(job, host, build, "Add -arch=native, or the architecture of the device.")


def _open_function(job: Job, count: int) -> str:
    return f"""static void open_device(void) {{
{texts.buffer_setup(job)}
  table = (unsigned long long *)memory({8 * max(1, count)});
{texts.table_at_once(job)}
}}
"""


def _close(job: Job) -> str:
    return f"""extern "C" void {job.name}_close(void) {{
  if (!is_open) return;
{texts.buffer_release(job, "cudaFree({0});")}
  cudaFree(table);
  is_open = 0;
}}"""
