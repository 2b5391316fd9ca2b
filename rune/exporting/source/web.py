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
from rune.exporting.source import hosts, texts
from rune.exporting.source.job import Job, StoredCall
from rune.exporting.source.steps import in_c, size_name

_NUMBER = re.compile(r"\b[0-9]+\b")
# The functions that expressions of `in_c` may call.
_ROUNDING = """
const host_floordiv = (a, b) => a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n);
const host_mod = (a, b) => a - b * host_floordiv(a, b);
const host_divisor = (b) => b || 1n;
"""


def files(
    job: Job,
    steps: str,
    modules: Sequence[tuple[str, str, int]],
    bindings: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> dict[str, str]:
    """The files that a browser needs in addition to the WGSL modules.

    steps:    the lines of the plan's steps
    modules:  the file, the entry and the number of buffers of each
    bindings: the buffers and the uniform block of each launch
    """
    return {
        f"{job.name}.mjs": _module(job, steps, modules, bindings),
        f"{job.name}_vectors.mjs": _vectors(job),
        "index.html": hosts.text("page.html").lstrip().replace("NAME", job.name),
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
{hosts.text("browser.js")}
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
