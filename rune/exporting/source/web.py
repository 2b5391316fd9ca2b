"""The host of a WebGPU folder in a browser: a module of JavaScript, and a page that checks itself.

The steps are those of the host in C (wgsl.py): the statements are also JavaScript, except that
JavaScript has to await what it reads.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence

import numpy as np

from rune.core.types import ArrayType
from rune.dims import Dim, Size, product
from rune.exporting.source import texts
from rune.exporting.source.job import Job, StoredCall
from rune.exporting.source.steps import in_c, size_name

_HOST = """
let device, pipelines, groups, a = [], r = [], m;
const STORAGE = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
const bytes_of = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const padded = (bytes) => Math.max(4, Math.ceil(bytes / 4) * 4);
const memory = (bytes) => device.createBuffer({ size: padded(bytes), usage: STORAGE });
const grown = (buffer, bytes) => (buffer?.size >= bytes ? buffer : (buffer?.destroy(), memory(bytes)));
const rune_nearest = (number, last) => Math.min(Math.max(number, 0), last);

function send(target, bytes) {
  const block = new Uint8Array(padded(bytes.length));
  block.set(bytes);
  device.queue.writeBuffer(target, 0, block);
}

function store(target, to, number) {
  device.queue.writeBuffer(target, to, new Int32Array([number]));
}

function copy(source, at, target, to, bytes) {
  if (!bytes) return;
  const encoder = device.createCommandEncoder();
  const between = source === target ? memory(bytes) : null;
  if (between) encoder.copyBufferToBuffer(source, at, between, 0, bytes);
  encoder.copyBufferToBuffer(between ?? source, between ? 0 : at, target, to, bytes);
  device.queue.submit([encoder.finish()]);
}

async function fetched(source, at, bytes) {
  const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
  const staging = device.createBuffer({ size: padded(bytes), usage });
  copy(source, at, staging, 0, padded(bytes));
  await staging.mapAsync(GPUMapMode.READ);
  const result = new Uint8Array(staging.getMappedRange().slice(0, bytes));
  staging.destroy();
  return result;
}

async function load(source, at, bytes) {
  const word = new Uint8Array(4);
  word.set(await fetched(source, at, bytes));
  return new DataView(word.buffer).getInt32(0, true);
}

function layout_of(count) {
  const entry = (binding) => ({
    binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: binding ? "storage" : "uniform" },
  });
  return device.createBindGroupLayout({ entries: Array.from({ length: count + 1 }, (_, k) => entry(k)) });
}

async function compile({ file, entry, count }) {
  const code = await (await fetch(new URL(file, import.meta.url))).text();
  const layout = device.createPipelineLayout({ bindGroupLayouts: [layout_of(count)] });
  const compute = { module: device.createShaderModule({ code }), entryPoint: entry };
  return device.createComputePipelineAsync({ layout, compute });
}

function prepare(buffers, words) {
  const size = Math.ceil(words.length / 4) * 16;
  const block = device.createBuffer({ size, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
  device.queue.writeBuffer(block, 0, new Uint32Array(words));
  const entries = [block, ...buffers].map((buffer, binding) => ({ binding, resource: { buffer } }));
  return device.createBindGroup({ layout: layout_of(buffers.length), entries });
}

function launch(number, pipeline, count) {
  if (count <= 0) return;
  const wide = Math.min(count, 65535), high = Math.ceil(count / wide);
  const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
  pass.setPipeline(pipelines[pipeline]);
  pass.setBindGroup(0, groups[number]);
  pass.dispatchWorkgroups(wide, high);
  pass.end();
  device.queue.submit([encoder.finish()]);
}
"""

_NUMBER = re.compile(r"\b[0-9]+\b")
# The functions that expressions of `in_c` may call.
_ROUNDING = """
const host_floordiv = (a, b) => a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n);
const host_mod = (a, b) => a - b * host_floordiv(a, b);
const host_divisor = (b) => b || 1n;
"""

_PAGE = """<!doctype html>
<title>NAME</title>
<pre id="report">running</pre>
<script type="module">
import { call } from "./NAME.mjs";
import { calls } from "./NAME_vectors.mjs";

const number = (kind, view, at, size) => {
  if (kind === "f") return view.getFloat32(at, true);
  const bits = size === 1 ? view.getUint8(at) : size === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
  if (kind === "b") return new Float32Array(new Uint32Array([bits << 16]).buffer)[0];
  if (kind !== "h") return bits;
  const exponent = (bits >> 10) & 31, fraction = (bits & 1023) / 1024;
  const size_of = exponent === 31 ? (fraction ? NaN : Infinity)
    : exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14;
  return bits >> 15 ? -size_of : size_of;
};

const difference = ({ kind, size, count }, x, y) => {
  let largest = 1, worst = 0;
  const [left, right] = [x, y].map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length));
  for (let k = 0; k < count; k++) {
    const [u, v] = [number(kind, left, k * size, size), number(kind, right, k * size, size)];
    if (Number.isFinite(v)) largest = Math.max(largest, Math.abs(v));
    if (Object.is(u, v) || u === v) continue;
    worst = kind === "i" || !Number.isFinite(u - v) ? Infinity : Math.max(worst, Math.abs(u - v));
  }
  return worst / largest;
};

const lines = [];
let wrong = false;
try {
  for (const { sizes, vectors, expected } of calls) {
    const results = await call(...sizes, ...vectors);
    wrong ||= results.length !== expected.length;
    if (sizes.length) lines.push(`sizes: ${sizes}`);
    expected.forEach((e, n) => {
      const d = difference(e, results[n], e.bytes);
      wrong ||= !(d <= e.tolerance);
      lines.push(`r${n}: ${e.type}, difference ${d}`);
    });
  }
  lines.push(wrong ? "wrong" : "ok");
} catch (error) {
  lines.push(`the device failed: ${error}`);
}
document.getElementById("report").textContent = lines.join("\\n");
</script>
"""


def files(
    job: Job,
    steps: str,
    modules: Sequence[tuple[str, str, int]],
    bindings: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> dict[str, str]:
    """The files that a browser needs beside the WGSL modules.

    steps:    the lines of the plan's steps
    modules:  the file, the entry and the number of buffers of each
    bindings: the buffers and the uniform block of each launch
    """
    return {
        f"{job.name}.mjs": _module(job, steps, modules, bindings),
        f"{job.name}_vectors.mjs": _vectors(job),
        "index.html": _PAGE.replace("NAME", job.name),
    }


def _module(
    job: Job,
    steps: str,
    modules: Sequence[tuple[str, str, int]],
    bindings: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> str:
    module_list = json.dumps([{"file": f, "entry": e, "count": n} for f, e, n in modules])
    groups = ",\n    ".join(f"prepare([{', '.join(b)}], [{', '.join(w)}])" for b, w in bindings)
    count = len(job.weights)
    weights = "\n".join(f"  send(a[{n}], bytes_of({_text(w)}));" for n, w in enumerate(job.weights) if w.nbytes)
    of_weights = f"{[w.nbytes for w in job.weights]}.map(memory)"
    arguments, results = (f"[{', '.join(map(_bytes, types))}]" for types in (job.types, job.out_types))
    size_arguments = "".join(f"{name}, " for name in map(size_name, job.sizes))
    return f"""// call({size_arguments}...arguments) takes and returns Uint8Arrays of the arrays in {job.name}.h.
{_HOST}
{_ROUNDING if job.sizes else ""}
async function open() {{
  const adapter = await navigator.gpu.requestAdapter();
  device = await adapter.requestDevice();
  pipelines = await Promise.all({module_list}.map(compile));
  a = {of_weights};
{weights}
}}

export async function call(...args) {{
{_size_check(job)}
  if (!device) await open();
  const results = {results};
  {arguments}.forEach((bytes, n) => (a[{count} + n] = grown(a[{count} + n], bytes)));
  results.forEach((bytes, n) => (r[n] = grown(r[n], bytes)));
  m = grown(m, {number(job.steps.arena_bytes)});
  groups {"" if job.sizes else "??"}= [
    {groups}];
  args.forEach((bytes, n) => bytes.length && send(a[{count} + n], bytes));
{steps}
  return Promise.all(results.map((bytes, n) => (bytes ? fetched(r[n], 0, bytes) : new Uint8Array(0))));
}}
"""


def number(x: Size) -> str:
    """A number as an expression of the sizes, which are BigInts, so that `/` divides integers.

    >>> from rune import dims
    >>> number((dims.symbol("n", 1) + 63) // 64), number(7)
    ('Number(((size_n + 63n) / 64n))', '7')
    """
    text = _NUMBER.sub(lambda digits: f"{digits[0]}n", in_c(x))
    return f"Number({text})" if isinstance(x, Dim) else str(x)


def _bytes(type: ArrayType) -> str:
    return number(product(type.shape) * type.dtype.itemsize)


def _size_check(job: Job) -> str:
    """Lines that read the sizes from the arguments, with a RangeError if they are out of range."""
    if not job.sizes:
        return ""
    tests = " || ".join(texts.too_large(job, number)) or "false"
    names = ", ".join(map(size_name, job.sizes))
    return f"""  const [{names}] = args.splice(0, {len(job.sizes)}).map(BigInt);
  if ({tests}) throw new RangeError(`sizes: ${{[{names}]}}`);"""


def _vectors(job: Job) -> str:
    lines = [
        "const bytes_of = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));",
        "export const calls = [",
        *(line for call in job.calls for line in _vectors_of(job, call)),
        "];",
    ]
    return "\n".join(lines) + "\n"


def _vectors_of(job: Job, call: StoredCall) -> list[str]:
    rows = [
        f"  {{ kind: {json.dumps(k)}, size: {size}, count: {count}, type: {json.dumps(str(t))}, "
        f"tolerance: {texts.tolerance(t)}, bytes: bytes_of({_text(r)}) }}"
        for t, r in zip(job.out_types, call.results, strict=True)
        for k, size, count in [texts.kind(t.dtype, r)]
    ]
    vectors = ", ".join(f"bytes_of({_text(x)})" for x in call.arguments)
    sizes = [call.sizes[name] for name in job.sizes]
    return [f"{{ sizes: {sizes}, vectors: [{vectors}],", "  expected: [", *(f"{row}," for row in rows), "] },"]


def _text(array: np.ndarray) -> str:
    return json.dumps(base64.b64encode(np.ascontiguousarray(array).tobytes()).decode())
