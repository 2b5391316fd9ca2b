"""CUDA: kernels and host in one file for nvcc.

Each launch has a row of a table on the device: the addresses of its buffers, which never change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from rune import dtypes
from rune.backends.shared.executor import Place
from rune.dims import Dim, product
from rune.exporting.source import texts
from rune.exporting.source.job import Job
from rune.exporting.source.steps import NEAREST, ROUNDING, InC, in_c, pointer, size_name, written
from rune.lowering.codegen.cstyle import Rendered, assemble, render
from rune.lowering.codegen.cuda_c import CUDA_C, OPTIONS
from rune.lowering.codegen.target import Target, natively
from rune.lowering.plan import Launch
from rune.records import dataclass

_FLOATS, _WORDS = [dtypes.f32, dtypes.f64], [dtypes.i32, dtypes.u32]
_THREADS = 256  # of a block at most, where the kernel leaves the choice
# What every device from compute capability 7.5 on has.
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
    routines=frozenset(),
    native=natively(fma=_FLOATS, arithmetic=_FLOATS, atomic_add=[*_WORDS, dtypes.u64], atomic_min=_WORDS),
)


@dataclass(slots=True)
class _Launches(InC):
    """A launch reads its row of the table; memory is the device's."""

    kernels: Mapping[str, Rendered]
    words: list[str] = field(default_factory=list)

    def launch(self, step: Launch, places: Sequence[Place]) -> list[str]:
        """One dimension of blocks."""
        kernel = self.kernels[step.kernel]
        points = product(kernel.grid)
        if points == 0:
            return []
        # A kernel of one point asks for no bounds, so another thread would do its work again.
        group = _THREADS if isinstance(points, Dim) else min(points, _THREADS)
        threads = math.prod(kernel.workgroup) if kernel.workgroup else group
        blocks = points if kernel.workgroup else (points + threads - 1) // threads
        first = len(self.words)
        self.words += [f"(unsigned long long){pointer(p)}" for p in places]
        self.words += [f"(unsigned long long){size_name(name)}" for name in kernel.sizes]
        test = f"if ({in_c(blocks)} > 0) " if isinstance(blocks, Dim) else ""
        shape = f"{in_c(blocks)}, {threads}, {kernel.shared_bytes}"
        return [f"{test}{kernel.name}<<<{shape}>>>(table + {first});"]

    def copy(self, target: Place, source: Place) -> list[str]:
        """Device to device."""
        return [
            f"note(cudaMemcpyAsync({pointer(target)}, {pointer(source)}, {in_c(target.bytes)}, "
            "cudaMemcpyDeviceToDevice));"
        ]

    def write(self, place: Place, number: str) -> str:
        """A copy from the host, which has read the number when it returns."""
        return f"note(cudaMemcpy({pointer(place)}, &{number}, sizeof {number}, cudaMemcpyHostToDevice));"

    def read(self, place: Place) -> str:
        """A copy that waits."""
        return f"load({pointer(place)}, {place.bytes})"


_FINISH = "note(cudaGetLastError()); note(cudaDeviceSynchronize());"
_HOST = """
typedef unsigned char *buffer;
static unsigned long long *table;
static cudaError_t failure; /* the first one */

static void note(cudaError_t code) {
  if (failure == cudaSuccess) failure = code;
}

static int32_t load(const unsigned char *at, size_t bytes) {
  int32_t number = 0;
  note(cudaMemcpy(&number, at, bytes, cudaMemcpyDeviceToHost));
  return failure == cudaSuccess ? number : 0;
}

static void send(unsigned char *target, const void *host, size_t bytes) {
  if (bytes) note(cudaMemcpy(target, host, bytes, cudaMemcpyHostToDevice));
}

static void fetch(const unsigned char *source, void *host, size_t bytes) {
  if (bytes) note(cudaMemcpy(host, source, bytes, cudaMemcpyDeviceToHost));
}

static unsigned char *memory(size_t bytes) {
  void *at = NULL;
  note(cudaMalloc(&at, bytes ? bytes : 16));
  return (unsigned char *)at;
}
"""


def files(job: Job) -> dict[str, str | bytes]:
    """The folder, by name."""
    kernels = {name: render(code, CUDA_C) for name, code in job.plan.kernels.items()}
    launches, name = _Launches(kernels), job.name
    steps = written(job.steps.steps, launches)
    source = [
        f'#include "{name}.h"',
        "#include <cuda_runtime.h>",
        f'#include "{name}_kernels.cu"',
        f'extern "C" {{\n{texts.declared_weights(job)}\n}}',
        _HOST,
        NEAREST,
        *([ROUNDING] if job.sizes else []),
        texts.device_memory(job, "buffer"),
        texts.growing(job, "buffer", "cudaFree({0});"),
        texts.table(job, launches.words, "unsigned long long", "send((unsigned char *)table, words, sizeof words);"),
        _opened(job, len(launches.words)),
        texts.steps_function(job, steps, "rune_nearest"),
        f'extern "C" {texts.device_entry(job, _FINISH, "write_table")}',
        _close(job),
    ]
    build = f"nvcc {' '.join(OPTIONS)} -o {name} main.c {name}.cu {name}_weights.c -lm"
    host: dict[str, str | bytes] = {
        f"{name}.cu": "\n".join(source) + "\n",
        f"{name}_kernels.cu": assemble(list(kernels.values()), CUDA_C),
    }
    return texts.folder(job, host, build, "Add -arch=native, or the architecture of the device.")


def _opened(job: Job, count: int) -> str:
    return f"""static void open_device(void) {{
{texts.device_opened(job)}
  table = (unsigned long long *)memory({8 * max(1, count)});
{texts.table_at_once(job)}
}}
"""


def _close(job: Job) -> str:
    return f"""extern "C" void {job.name}_close(void) {{
  if (!is_open) return;
{texts.released(job, "cudaFree({0});")}
  cudaFree(table);
  is_open = 0;
}}"""
