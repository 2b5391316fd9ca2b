"""WebGPU: a WGSL module for each kernel and each sharing of its buffers, and a host for webgpu.h.

WebGPU forbids two bindings of a buffer that is written, so a launch binds each of its buffers once,
as a whole, and kernels are rendered for parameters that share buffers. A uniform block holds the
first element of each parameter. With fixed sizes, blocks are written when the device is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from rune import dtypes
from rune.backends.shared.executor import Place
from rune.dims import Size
from rune.errors import ArgumentError
from rune.exporting.source import hosts, texts, web
from rune.exporting.source.job import Job
from rune.exporting.source.steps import NEAREST, ROUNDING, BufferCommands, memories, memory, size_name, step_lines
from rune.lowering.codegen.target import Target, natively
from rune.lowering.codegen.wgsl.expr import STORED
from rune.lowering.codegen.wgsl.render import Rendered, render
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.plan import Launch
from rune.records import dataclass

_WORDS = [dtypes.i32, dtypes.u32]
_BUFFERS = 8  # the most storage buffers that every device can bind to a launch
_ROW = 65535  # workgroups along one dimension, WebGPU's default limit
# The limits of every WebGPU device, and the operations whose rounding WGSL leaves to drivers.
TARGET = Target(
    name="wgpu:0",
    backend="wgpu",
    language="wgsl",
    description="any WebGPU device",
    dtypes=STORED,
    vector_bytes=4,
    cores=16,
    threads_per_workgroup=256,
    shared_bytes=(16 << 10) // 4,
    scratch_bytes=1 << 12,
    routines=frozenset(),
    launch_groups=_ROW,
    native=natively(fma=[dtypes.f32], arithmetic=[dtypes.f32], atomic_add=_WORDS, atomic_min=_WORDS),
    loose=frozenset({"div", "sqrt", "denormals"}),
)


@dataclass(slots=True)
class _Commands(BufferCommands):
    """Steps in C: each launch has a bind group; modules are rendered for the launches."""

    codes: Mapping[str, KernelCode]
    modules: dict[tuple[str, tuple[int, ...]], Rendered] = field(default_factory=dict)
    bindings: list[tuple[list[str], list[str]]] = field(default_factory=list)  # buffers, uniform block

    def launch(self, step: Launch, places: Sequence[Place]) -> list[str]:
        """A launch of workgroups along two dimensions."""
        buffers = list(dict.fromkeys(memories(places)))
        if len(buffers) > _BUFFERS:
            raise ArgumentError(
                f"source: cannot write {step.kernel} ({len(buffers)} buffers; WebGPU binds {_BUFFERS} at once)",
                hint="return fewer results, or concatenate arguments",
            )
        key = step.kernel, tuple(buffers.index(memory(p)) for p in places)
        if key not in self.modules:
            self.modules[key] = render(self.codes[step.kernel], key[1], TARGET.loose)
        kernel, number = self.modules[key], list(self.modules).index(key)
        points = kernel.points
        groups = points if kernel.is_point_per_group else (points + kernel.threads - 1) // kernel.threads
        words = [0, points, 0, *(p.offset // p.type.dtype.itemsize for p in places)]
        self.bindings.append((buffers, [*map(self.number, words), *map(self.size, kernel.sizes)]))
        return [f"launch({len(self.bindings) - 1}, {number}, {self.number(groups)});"]

    def size(self, name: str) -> str:
        """A size as a word of a uniform block."""
        return size_name(name)

    def copy(self, target: Place, source: Place) -> list[str]:
        """A copy of whole words; within one buffer it goes through a temporary one."""
        at, to, count = map(self.number, (source.offset, target.offset, (target.bytes + 3) // 4 * 4))
        return [f"copy({memory(source)}, {at}, {memory(target)}, {to}, {count});"]


class _Script(_Commands):
    """The same in JavaScript, which awaits what it reads."""

    def number(self, x: Size) -> str:
        """A number as an expression of the sizes, which are BigInts."""
        return web.number(x)

    def size(self, name: str) -> str:
        """A size as a word of a uniform block."""
        return f"Number({size_name(name)})"

    def read(self, place: Place) -> str:
        """An awaited read."""
        return f"(await {_Commands.read(self, place)})"


def files(job: Job) -> dict[str, str | bytes]:
    """The files of the folder, by name."""
    commands, name = _Commands(job.plan.kernels), job.name
    steps = step_lines(job.steps.steps, commands)
    modules = list(commands.modules.values())
    source = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        "#include <webgpu.h>",
        f'#include "{name}.h"',
        '#ifndef KERNELS\n#define KERNELS "" /* the folder of the modules, with a slash at its end */\n#endif',
        texts.weight_declarations(job, "_Alignas(64) "),
        f"static WGPUComputePipeline pipelines[{max(1, len(modules))}];",
        f"static WGPUBindGroup groups[{max(1, len(commands.bindings))}];",
        f"static WGPUBuffer blocks[{max(1, len(commands.bindings))}];",
        f"enum {{ ROW = {_ROW} }}; /* groups along one dimension */",
        texts.TEXT_OF,
        hosts.text("webgpu.c"),
        NEAREST,
        *([ROUNDING] if job.sizes else []),
        texts.device_memory(job, "buffer"),
        texts.grow_function(job, "buffer", "wgpuBufferRelease({0});"),
        _prepare_function(job, commands),
        _open_function(job, commands),
        texts.steps_function(job, steps, "rune_nearest load store copy launch"),
        texts.device_entry(job, "", "prepare_all"),
        _close(job),
    ]
    build = (
        f"cc -std=c11 -O2 $CFLAGS -o {name} main.c {name}.c {name}_weights.c $LDFLAGS ${{WEBGPU:--lwgpu_native}} -lm"
    )
    advice = "CFLAGS: -I with the folder of webgpu.h; WEBGPU: the library to link, of wgpu-native or Dawn."
    host: dict[str, str | bytes] = {
        f"{name}.c": "\n".join(source) + "\n",
        **{f"{name}_{n}.wgsl": module.text for n, module in enumerate(modules)},
        **_in_a_browser(job),
    }
    return texts.folder(job, host, build, advice)


def _in_a_browser(job: Job) -> dict[str, str]:
    script = _Script(job.plan.kernels)
    steps = step_lines(job.steps.steps, script, "let")
    modules = [(f"{job.name}_{n}.wgsl", m.name, len(set(m.memories))) for n, m in enumerate(script.modules.values())]
    return web.files(job, steps, modules, script.bindings)


def _prepare_function(job: Job, commands: _Commands) -> str:
    """The function that binds the buffers and the uniform block of each launch."""
    lines = (
        f"  prepare({n}, {len(b)}, (WGPUBuffer[]){{{', '.join(b)}}}, {len(w)}, "
        f"(uint32_t[]){{{', '.join(f'(uint32_t)({word})' for word in w)}}});"
        for n, (b, w) in enumerate(commands.bindings)
    )
    signature = ", ".join(texts.size_list(job)) or "void"
    return f"static void prepare_all({signature}) {{\n" + "\n".join(lines) + "\n  (void)prepare;\n}\n"


def _open_function(job: Job, commands: _Commands) -> str:
    compilations = (
        f'compile({n}, KERNELS "{job.name}_{n}.wgsl", "{m.name}", {len(set(m.memories))});'
        for n, m in enumerate(commands.modules.values())
    )
    preparations = [] if job.sizes else ["prepare_all();"]
    lines = "\n".join(f"  {line}" for line in [*compilations, *preparations])
    return f"""static void open_device(void) {{
  choose();
  if (failure) return;
{texts.buffer_setup(job)}
{lines}
}}
"""


def _close(job: Job) -> str:
    return f"""void {job.name}_close(void) {{
  if (!is_open) return;
{texts.buffer_release(job, "if ({0}) wgpuBufferRelease({0});")}
  for (size_t k = 0; k < sizeof groups / sizeof *groups; k++) {{
    if (groups[k]) wgpuBindGroupRelease(groups[k]);
    if (blocks[k]) wgpuBufferRelease(blocks[k]);
    groups[k] = NULL;
    blocks[k] = NULL;
  }}
  for (size_t k = 0; k < sizeof pipelines / sizeof *pipelines; k++)
    if (pipelines[k]) wgpuComputePipelineRelease(pipelines[k]);
  wgpuQueueRelease(queue);
  wgpuDeviceRelease(device);
  wgpuInstanceRelease(instance);
  is_open = 0;
}}"""
