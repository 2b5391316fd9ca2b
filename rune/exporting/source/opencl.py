"""OpenCL: kernels in a separate file, and a host in C for any OpenCL 1.2 driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rune import dtypes
from rune.backends.shared.executor import Place
from rune.dims import Size, product
from rune.exporting.source import hosts, texts
from rune.exporting.source.job import Job
from rune.exporting.source.steps import NEAREST, ROUNDING, BufferCommands, in_c, memories, size_name, step_lines
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import Rendered, assemble, render
from rune.lowering.codegen.source_kernels import source_kernel
from rune.lowering.codegen.target import Target, natively
from rune.lowering.plan import Call, Launch
from rune.lowering.source_calls import is_source, kernel_of

_WORDS = [dtypes.i32, dtypes.u32]
# The limits of every device with the full profile, GPU or not.
TARGET = Target(
    name="opencl:0",
    backend="opencl",
    language="opencl",
    description="any OpenCL 1.2 device",
    dtypes=frozenset(OPENCL_C.scalars),
    vector_bytes=4,
    cores=16,
    threads_per_workgroup=128,
    shared_bytes=16 << 10,
    scratch_bytes=1 << 12,
    routines=frozenset({"opencl_source"}),
    native=natively(arithmetic=[dtypes.f32, dtypes.f64], atomic_add=_WORDS, atomic_min=_WORDS),
)


class _Commands(BufferCommands):
    """Steps in C: launches, copies, stores and loads are commands of the queue.

    sources: users' kernels by their text, each a separate program, numbered after rune's
    """

    def __init__(self, kernels: Mapping[str, Rendered]):
        self.kernels = kernels
        self.numbers = {name: n for n, name in enumerate(kernels)}
        self.sources: dict[str, Rendered] = {}

    def launch(self, step: Launch, places: Sequence[Place]) -> list[str]:
        """A launch; each argument is a buffer and the position of its first element."""
        return self.launch_lines(self.kernels[step.kernel], self.numbers[step.kernel], places)

    def call(self, step: Call, places: Sequence[Place]) -> list[str]:
        """A launch of a user's kernel. Errors: ArgumentError for any other call."""
        if not is_source(step):
            return BufferCommands.call(self, step, places)
        results, operands = ([slot.type for slot in slots] for slots in (step.outputs, step.inputs))
        kernel = source_kernel(kernel_of(step), results, operands, OPENCL_C)
        self.sources.setdefault(kernel.text, kernel)
        number = len(self.kernels) + list(self.sources).index(kernel.text)
        written_bytes = sum((p.bytes for p in places[: len(results)]), start=0)
        # With symbolic sizes, only the host knows whether there is anything to write.
        block_check = f"needed({in_c(written_bytes)}, {in_c(product(kernel.grid))});"
        return [block_check, *self.launch_lines(kernel, number, places)]

    def launch_lines(self, kernel: Rendered, number: int, places: Sequence[Place]) -> list[str]:
        """The line that launches a kernel on these places."""
        grid = [*kernel.grid] or [1]
        if 0 in grid:
            return []
        local = [*kernel.workgroup, *[1] * (len(grid) - len(kernel.workgroup))]
        grid += [1] * (len(local) - len(grid))
        total = [g * t for g, t in zip(grid, local, strict=True)] if kernel.workgroup else grid
        group = f"(size_t[]){{{_comma_list(local)}}}" if kernel.workgroup else "NULL"
        firsts = [p.offset // p.type.dtype.itemsize for p in places]
        sizes = f"{len(kernel.sizes)}, (cl_long[]){{{', '.join(map(size_name, kernel.sizes)) or '0'}}}"
        buffers = f"{len(places)}, (cl_mem[]){{{', '.join(memories(places))}}}, (cl_long[]){{{_comma_list(firsts)}}}"
        extents = f"{len(total)}, (size_t[]){{{_comma_list(total)}}}"
        return [f"launch({number}, {buffers}, {sizes}, {extents}, {group});"]


def _comma_list(numbers: Sequence[Size]) -> str:
    return ", ".join(map(in_c, numbers))


def files(job: Job) -> dict[str, str | bytes]:
    """The files of the folder, by name."""
    name, kernels = job.name, {name: render(code, OPENCL_C) for name, code in job.plan.kernels.items()}
    commands = _Commands(kernels)
    steps = step_lines(job.steps.steps, commands)
    sources = {f"{name}_source_{n}.cl": kernel for n, kernel in enumerate(commands.sources.values())}
    names = ", ".join(f'"{k.name}"' for k in (*kernels.values(), *sources.values()))
    macros = ["KERNELS", *(f"KERNELS_{n}" for n in range(len(sources)))]
    programs = ", ".join(map(str, (*[0] * len(kernels), *range(1, len(sources) + 1))))
    source = [
        "#define CL_TARGET_OPENCL_VERSION 120",
        "#include <CL/cl.h>",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        f'#include "{name}.h"',
        *map(_path, macros, (f"{name}.cl", *sources)),
        texts.weight_declarations(job, "_Alignas(64) "),
        f"static const char *const files[] = {{{', '.join(macros)}}};",
        f"static const char *const names[] = {{{names or '0'}}};",
        f"static const int program_of[] = {{{programs or '0'}}};",
        texts.TEXT_OF,
        hosts.text("opencl.c"),
        NEAREST,
        *([ROUNDING] if job.sizes else []),
        texts.device_memory(job, "cl_mem"),
        texts.grow_function(job, "cl_mem", "clReleaseMemObject({0});"),
        _open_function(job, len(kernels) + len(sources)),
        texts.steps_function(job, steps, "rune_nearest"),
        texts.device_entry(job, "clFinish(queue);"),
        _CLOSE.format(name=name, memories=texts.buffer_release(job, "if ({0}) clReleaseMemObject({0});")),
    ]
    build = f"cc -std=c11 -O2 -o {name} main.c {name}.c {name}_weights.c -lOpenCL -lm"
    host: dict[str, str | bytes] = {
        f"{name}.c": "\n".join(source) + "\n",
        f"{name}.cl": assemble(list(kernels.values()), OPENCL_C),
        **{file: kernel.text for file, kernel in sources.items()},
    }
    return texts.folder(job, host, build, "Headers and loader: on Debian opencl-headers and ocl-icd-opencl-dev.")


def _path(macro: str, file: str) -> str:
    """A macro with the path of a file of kernels, which a build may redefine."""
    return f'#ifndef {macro}\n#define {macro} "{file}" /* the path of the kernels */\n#endif'


def _open_function(job: Job, count: int) -> str:
    return f"""static void open_device(void) {{
  int is_read = 1;
  for (int k = 0; k < FILES; k++) is_read &= (sources[k] = text_of(files[k])) != NULL;
  failure = is_read && choose() ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
  for (int k = 0; k < FILES; k++) free(sources[k]);
  for (int k = 0; k < {count} && !failure; k++) {{
    cl_int code;
    kernels[k] = clCreateKernel(programs[program_of[k]], names[k], &code);
    note(code);
  }}
{texts.buffer_setup(job)}
}}
"""


_CLOSE = """void {name}_close(void) {{
  if (!context) return;
{memories}
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (kernels[k]) clReleaseKernel(kernels[k]);
  for (int k = 0; k < FILES; k++)
    if (programs[k]) clReleaseProgram(programs[k]);
  if (queue) clReleaseCommandQueue(queue);
  clReleaseContext(context);
  context = NULL;
  is_open = 0;
}}"""
