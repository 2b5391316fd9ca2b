"""Vulkan: a SPIR-V module for each kernel, and a host in C for Vulkan 1.2.

Kernels have no descriptors. Each launch reads a row of a table: the device addresses of its buffers
and its sizes. Push constants hold the address of the row. All buffers are host-visible memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from rune import dtypes
from rune.backends.shared.executor import Place
from rune.exporting.source import hosts, texts
from rune.exporting.source.job import Job
from rune.exporting.source.steps import NEAREST, ROUNDING, BufferCommands, in_c, memory, size_name, step_lines
from rune.lowering.codegen.spirv.render import SpirvKernel, render
from rune.lowering.codegen.target import Target, natively
from rune.lowering.plan import Launch
from rune.records import dataclass

_WORDS = [dtypes.i32, dtypes.u32]
_ROW = 65535  # workgroups along one dimension, which Vulkan guarantees
# Vulkan 1.2 with bufferDeviceAddress and 64-bit integers; bytes and shorts need their features.
TARGET = Target(
    name="vulkan:0",
    backend="vulkan",
    language="spirv",
    description="any Vulkan 1.2 device",
    dtypes=frozenset(dtypes.INTEGER - {dtypes.i4, dtypes.u4}) | {dtypes.bool_, dtypes.f32, dtypes.f64},
    vector_bytes=16,
    cores=16,
    threads_per_workgroup=128,
    shared_bytes=16 << 10,
    scratch_bytes=1 << 12,
    routines=frozenset(),
    launch_groups=_ROW,
    native=natively(
        fma=[dtypes.f32, dtypes.f64], arithmetic=[dtypes.f32, dtypes.f64], atomic_add=_WORDS, atomic_min=_WORDS
    ),
    loose=frozenset({"div", "sqrt", "comparisons", "denormals"}),
)


@dataclass(slots=True)
class _Commands(BufferCommands):
    """Steps in C: a launch reads its row of the table."""

    kernels: Mapping[str, SpirvKernel]
    words: list[str] = field(default_factory=list)

    def launch(self, step: Launch, places: Sequence[Place]) -> list[str]:
        """A launch of workgroups along two dimensions."""
        kernel = self.kernels[step.kernel]
        number, first = list(self.kernels).index(step.kernel), len(self.words)
        self.words += [f"{memory(p)}.address + {in_c(p.offset)}" for p in places]
        self.words += [f"(uint64_t){size_name(name)}" for name in kernel.sizes]
        return [f"launch({number}, {first}, {in_c(kernel.count)});"]


def files(job: Job) -> dict[str, str | bytes]:
    """The files of the folder, by name."""
    kernels = {name: render(code, TARGET) for name, code in job.plan.kernels.items()}
    commands, name = _Commands(kernels), job.name
    steps = step_lines(job.steps.steps, commands)
    types, functions = hosts.text("vulkan.c").split(";\n", 1)
    source = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        "#include <vulkan/vulkan.h>",
        f'#include "{name}.h"',
        '#ifndef KERNELS\n#define KERNELS "" /* the folder of the modules, with a slash at its end */\n#endif',
        texts.weight_declarations(job, "_Alignas(64) "),
        f"{types};",
        f"static VkPipeline pipelines[{max(1, len(kernels))}];",
        f"static buffer table;\nenum {{ ROW = {_ROW} }}; /* groups along one dimension */",
        functions,
        NEAREST,
        *([ROUNDING] if job.sizes else []),
        texts.device_memory(job, "buffer"),
        texts.grow_function(job, "buffer", "release(slot);"),
        texts.table(job, commands.words, "uint64_t", "send(table, words, sizeof words);"),
        _open_function(job, kernels, len(commands.words)),
        texts.steps_function(job, steps, "rune_nearest load store copy launch"),
        texts.device_entry(job, "finish();", "write_table"),
        _close(job),
    ]
    build = f"cc -std=c11 -O2 -o {name} main.c {name}.c {name}_weights.c -lvulkan -lm"
    host: dict[str, str | bytes] = {
        f"{name}.c": "\n".join(source) + "\n",
        **{f"{name}_{n}.spv": kernel.words for n, kernel in enumerate(kernels.values())},
    }
    return texts.folder(job, host, build, "Headers and loader: on Debian libvulkan-dev.")


def _open_function(job: Job, kernels: Mapping[str, SpirvKernel], count: int) -> str:
    compilations = "\n".join(
        f'  compile({n}, KERNELS "{job.name}_{n}.spv", "{k.entry}");' for n, k in enumerate(kernels.values())
    )
    return f"""static void open_device(void) {{
  choose();
  if (failure) return;
{compilations}
{texts.buffer_setup(job)}
  table = memory({8 * max(1, count)});
{texts.table_at_once(job)}
}}
"""


def _close(job: Job) -> str:
    return f"""void {job.name}_close(void) {{
  if (!device) return;
  vkDeviceWaitIdle(device);
{texts.buffer_release(job, "release(&{0});")}
  release(&table);
  for (size_t k = 0; k < sizeof pipelines / sizeof *pipelines; k++) vkDestroyPipeline(device, pipelines[k], NULL);
  vkDestroyPipelineLayout(device, layout, NULL);
  vkDestroyFence(device, fence, NULL);
  vkDestroyCommandPool(device, pool, NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  device = NULL;
  is_open = 0;
}}"""
