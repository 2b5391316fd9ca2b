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
from rune.exporting.source import texts, web
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


_HOST = """
typedef WGPUBuffer buffer;
static WGPUInstance instance;
static WGPUDevice device;
static WGPUQueue queue;
static int failure; /* 1: no device; 2: memory cannot be mapped; 3: a module or command was rejected */

static WGPUStringView text_view(const char *text) {
  return (WGPUStringView){text, strlen(text)};
}

static void on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message, void *to,
                       void *done) {
  (void)message;
  if (status == WGPURequestAdapterStatus_Success) *(WGPUAdapter *)to = adapter;
  *(int *)done = 1;
}

static void on_device(WGPURequestDeviceStatus status, WGPUDevice result, WGPUStringView message, void *to,
                      void *done) {
  (void)message;
  if (status == WGPURequestDeviceStatus_Success) *(WGPUDevice *)to = result;
  *(int *)done = 1;
}

static void on_map(WGPUMapAsyncStatus status, WGPUStringView message, void *to, void *done) {
  (void)message;
  *(int *)to = status == WGPUMapAsyncStatus_Success;
  *(int *)done = 1;
}

static void on_error(WGPUDevice const *sender, WGPUErrorType type, WGPUStringView message, void *a, void *b) {
  (void)sender, (void)type, (void)a, (void)b;
  fprintf(stderr, "WebGPU: %.*s\\n", (int)message.length, message.data);
  if (!failure) failure = 3;
}

/* Process events of the instance until one sets `done`. */
static void wait_for(const int *done) {
  while (!*done) wgpuInstanceProcessEvents(instance);
}

static WGPUBuffer memory_for(size_t bytes, WGPUBufferUsage usage) {
  const WGPUBufferDescriptor descriptor = {.usage = usage, .size = bytes < 4 ? 4 : (bytes + 3) / 4 * 4};
  return failure ? NULL : wgpuDeviceCreateBuffer(device, &descriptor);
}

static WGPUBuffer memory(size_t bytes) {
  return memory_for(bytes, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
}

static void submit(WGPUCommandEncoder encoder) {
  const WGPUCommandBuffer commands = wgpuCommandEncoderFinish(encoder, NULL);
  wgpuQueueSubmit(queue, 1, &commands);
  wgpuCommandBufferRelease(commands);
  wgpuCommandEncoderRelease(encoder);
}

static void copy(WGPUBuffer source, size_t at, WGPUBuffer target, size_t to, size_t bytes) {
  if (failure || !bytes) return;
  const WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(device, NULL);
  if (source == target) { /* WebGPU refuses a copy within one buffer */
    const WGPUBuffer between = memory(bytes);
    wgpuCommandEncoderCopyBufferToBuffer(encoder, source, at, between, 0, bytes);
    wgpuCommandEncoderCopyBufferToBuffer(encoder, between, 0, target, to, bytes);
    submit(encoder);
    wgpuBufferRelease(between);
    return;
  }
  wgpuCommandEncoderCopyBufferToBuffer(encoder, source, at, target, to, bytes);
  submit(encoder);
}

static void fetch_from(WGPUBuffer source, size_t at, void *host, size_t bytes) {
  if (failure || !bytes) return;
  const size_t padded = (bytes + 3) / 4 * 4;
  const WGPUBuffer staging = memory_for(padded, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  copy(source, at, staging, 0, padded);
  int done = 0, is_mapped = 0;
  wgpuBufferMapAsync(staging, WGPUMapMode_Read, 0, padded,
                     (WGPUBufferMapCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                 .callback = on_map, .userdata1 = &is_mapped, .userdata2 = &done});
  wait_for(&done);
  if (is_mapped) memcpy(host, wgpuBufferGetConstMappedRange(staging, 0, padded), bytes);
  else failure = 2;
  wgpuBufferRelease(staging);
}

static void store(WGPUBuffer target, size_t to, int32_t number) {
  if (!failure) wgpuQueueWriteBuffer(queue, target, to, &number, sizeof number);
}

static void fetch(WGPUBuffer source, void *host, size_t bytes) {
  fetch_from(source, 0, host, bytes);
}

static int32_t load(WGPUBuffer source, size_t at, size_t bytes) {
  int32_t number = 0;
  fetch_from(source, at, &number, bytes);
  return failure ? 0 : number;
}

static void send(WGPUBuffer target, const void *host, size_t bytes) {
  if (failure || !bytes) return;
  wgpuQueueWriteBuffer(queue, target, 0, host, bytes / 4 * 4);
  if (bytes % 4) {
    uint32_t word = 0;
    memcpy(&word, (const char *)host + bytes / 4 * 4, bytes % 4);
    wgpuQueueWriteBuffer(queue, target, bytes / 4 * 4, &word, 4);
  }
}

/* The layout of a launch: a uniform block, then `count` buffers. */
static WGPUBindGroupLayout layout_of(int count) {
  WGPUBindGroupLayoutEntry entries[9] = {{0}}; /* the block, and the eight buffers that every device can bind */
  for (int k = 0; k <= count; k++) {
    entries[k].binding = (uint32_t)k;
    entries[k].visibility = WGPUShaderStage_Compute;
    entries[k].buffer.type = k ? WGPUBufferBindingType_Storage : WGPUBufferBindingType_Uniform;
  }
  const WGPUBindGroupLayoutDescriptor descriptor = {.entryCount = (size_t)count + 1, .entries = entries};
  return wgpuDeviceCreateBindGroupLayout(device, &descriptor);
}

static void compile(int number, const char *path, const char *entry, int count) {
  char *text = text_of(path);
  if (!text) failure = 3;
  if (failure) return;
  WGPUShaderSourceWGSL source = {.chain = {.sType = WGPUSType_ShaderSourceWGSL}, .code = text_view(text)};
  const WGPUShaderModuleDescriptor descriptor = {.nextInChain = &source.chain};
  const WGPUShaderModule module = wgpuDeviceCreateShaderModule(device, &descriptor);
  const WGPUBindGroupLayout layout = layout_of(count);
  const WGPUPipelineLayoutDescriptor layout_descriptor = {.bindGroupLayoutCount = 1, .bindGroupLayouts = &layout};
  const WGPUPipelineLayout layouts = wgpuDeviceCreatePipelineLayout(device, &layout_descriptor);
  const WGPUComputePipelineDescriptor pipeline = {
      .layout = layouts, .compute = {.module = module, .entryPoint = text_view(entry)}};
  pipelines[number] = wgpuDeviceCreateComputePipeline(device, &pipeline);
  wgpuPipelineLayoutRelease(layouts);
  wgpuBindGroupLayoutRelease(layout);
  wgpuShaderModuleRelease(module);
  free(text);
}

static void prepare(int number, int count, const WGPUBuffer *buffers, int words, const uint32_t *block) {
  if (failure) return;
  const size_t bytes = ((size_t)words * 4 + 15) / 16 * 16;
  if (groups[number]) wgpuBindGroupRelease(groups[number]);
  if (blocks[number]) wgpuBufferRelease(blocks[number]);
  blocks[number] = memory_for(bytes, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst);
  wgpuQueueWriteBuffer(queue, blocks[number], 0, block, (size_t)words * 4);
  WGPUBindGroupEntry entries[9] = {{.buffer = blocks[number], .size = bytes}};
  for (int k = 0; k < count; k++)
    entries[k + 1] = (WGPUBindGroupEntry){
        .binding = (uint32_t)k + 1, .buffer = buffers[k], .size = wgpuBufferGetSize(buffers[k])};
  const WGPUBindGroupLayout layout = layout_of(count);
  const WGPUBindGroupDescriptor descriptor = {.layout = layout, .entryCount = (size_t)count + 1, .entries = entries};
  groups[number] = wgpuDeviceCreateBindGroup(device, &descriptor);
  wgpuBindGroupLayoutRelease(layout);
}

static void launch(int number, int pipeline, int64_t count) {
  if (failure || count <= 0) return;
  const int64_t wide = count < ROW ? count : ROW;
  const WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(device, NULL);
  const WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(encoder, NULL);
  wgpuComputePassEncoderSetPipeline(pass, pipelines[pipeline]);
  wgpuComputePassEncoderSetBindGroup(pass, 0, groups[number], 0, NULL);
  wgpuComputePassEncoderDispatchWorkgroups(pass, (uint32_t)wide, (uint32_t)((count + wide - 1) / wide), 1);
  wgpuComputePassEncoderEnd(pass);
  wgpuComputePassEncoderRelease(pass);
  submit(encoder);
}

static void choose(void) {
  int done = 0;
  WGPUAdapter adapter = NULL;
  instance = wgpuCreateInstance(NULL);
  const WGPURequestAdapterOptions options = {.powerPreference = WGPUPowerPreference_HighPerformance};
  wgpuInstanceRequestAdapter(instance, &options,
                             (WGPURequestAdapterCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                              .callback = on_adapter, .userdata1 = &adapter,
                                                              .userdata2 = &done});
  wait_for(&done);
  done = 0;
  const WGPUDeviceDescriptor descriptor = {.uncapturedErrorCallbackInfo = {.callback = on_error}};
  if (adapter) {
    wgpuAdapterRequestDevice(adapter, &descriptor,
                             (WGPURequestDeviceCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                             .callback = on_device, .userdata1 = &device,
                                                             .userdata2 = &done});
    wait_for(&done);
    wgpuAdapterRelease(adapter);
  }
  failure = device ? 0 : 1;
  if (device) queue = wgpuDeviceGetQueue(device);
}
"""


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
        _HOST,
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
