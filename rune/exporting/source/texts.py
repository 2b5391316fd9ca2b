"""The files that every target has: header, weights, vectors, and the program that checks itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rune import dtypes
from rune.core.types import ArrayType
from rune.exporting.source.job import ELEMENTS, Job, element

_LINE = 24  # bytes


def signature(job: Job, arena: bool) -> str:
    """The entry: `int f_call(const float *a0, float *r0)`."""
    pieces = [f"const {element(t.dtype)} *a{n}" for n, t in enumerate(job.types)]
    pieces += [f"{element(t.dtype)} *r{n}" for n, t in enumerate(job.out_types)]
    pieces += ["void *arena"] if arena else []
    return f"int {job.name}_call({', '.join(pieces) or 'void'})"


def header(job: Job, arena: bool) -> str:
    """The declaration of the entry, with what every argument is."""
    guard = f"{job.name.upper()}_H"
    rows = [f" *   a{n}: {t}" for n, t in enumerate(job.types)] + [
        f" *   r{n}: {t}" for n, t in enumerate(job.out_types)
    ]
    lines = [
        f"/* {job.name}: arrays are dense and in row-major order; complex numbers and keys are pairs.",
        *rows,
        " * Returns 0, or another number where the device failed.",
        *([" * The arena is memory of the caller's, aligned to 64 bytes."] if arena else []),
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stdint.h>",
        *([f"#define {job.name.upper()}_ARENA_BYTES {max(64, job.steps.arena_bytes)}"] if arena else []),
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        f"{signature(job, arena)};",
        *([] if arena else [f"void {job.name}_close(void); /* gives the device back */"]),
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def bytes_of(name: str, array: np.ndarray, storage: str = "static ") -> str:
    """An array of C with the bytes of an array."""
    data = np.ascontiguousarray(array).tobytes() or b"\0"
    rows = (", ".join(map(str, data[at : at + _LINE])) for at in range(0, len(data), _LINE))
    body = ",\n  ".join(rows)
    return f"{storage}const _Alignas(64) unsigned char {name}[{len(data)}] = {{\n  {body}}};"


def weights(job: Job) -> str:
    """The arrays that the function closes over."""
    texts = [bytes_of(f"{job.name}_w{n}", w, "") for n, w in enumerate(job.weights)]
    return "\n".join(["/* The arrays that the function closes over, little-endian. */", *texts]) + "\n"


def declared_weights(job: Job, qualifier: str = "") -> str:
    """Declarations of the weights."""
    return "\n".join(
        f"extern {qualifier}const unsigned char {job.name}_w{n}[{max(1, w.nbytes)}];" for n, w in enumerate(job.weights)
    )


def vectors(job: Job) -> str:
    """Arguments and results of one call."""
    texts = [bytes_of(f"a{n}", a) for n, a in enumerate(job.arguments)]
    texts += [bytes_of(f"expected{n}", r) for n, r in enumerate(job.results)]
    return "\n".join(["/* A call as rune computed it. */", *texts]) + "\n"


def script(line: str, advice: str) -> str:
    """The line that builds all, as a script of the shell."""
    return f"#!/bin/sh\n# {advice}\nset -e\n{line}\n"


# --- the program that checks itself -------------------------------------------------------------

_TOLERANCE = {dtypes.f64: "1e-9", dtypes.c128: "1e-9", dtypes.f32: "1e-4", dtypes.c64: "1e-4"}
_TOLERANCE |= {dtypes.f16: "1e-2", dtypes.bf16: "6e-2", dtypes.f8_e4m3: "0.3", dtypes.f8_e5m2: "0.6"}

_CHECK = """
/* The value of an element: 'f', 'd', 'h' (f16), 'b' (bf16), else an integer of so many bytes. */
static double value(char kind, int bytes, const unsigned char *at) {
  if (kind == 'f') { float x; memcpy(&x, at, 4); return x; }
  if (kind == 'd') { double x; memcpy(&x, at, 8); return x; }
  uint64_t bits = 0;
  memcpy(&bits, at, (size_t)bytes);
  if (kind == 'b') { uint32_t wide = (uint32_t)bits << 16; float x; memcpy(&x, &wide, 4); return x; }
  if (kind == 'h') {
    const int exponent = (bits >> 10) & 31;
    const double fraction = (double)(bits & 1023) / 1024;
    double x = exponent == 31 ? (fraction > 0 ? NAN : INFINITY)
             : exponent ? ldexp(1 + fraction, exponent - 15) : ldexp(fraction, -14);
    return bits >> 15 ? -x : x;
  }
  return (double)bits;
}

/* The largest difference, relative to the largest number; 0 for equal bytes. */
static double difference(char kind, int bytes, size_t count, const unsigned char *x, const unsigned char *y) {
  double largest = 0, worst = 0;
  for (size_t k = 0; k < count; k++) {
    const double a = value(kind, bytes, x + k * bytes), b = value(kind, bytes, y + k * bytes);
    if (isfinite(b) && fabs(b) > largest) largest = fabs(b);
    if (memcmp(x + k * bytes, y + k * bytes, (size_t)bytes) == 0 || a == b || (isnan(a) && isnan(b))) continue;
    if (kind == 'i' || !isfinite(a) || !isfinite(b)) return INFINITY;
    if (fabs(a - b) > worst) worst = fabs(a - b);
  }
  return largest > 1 ? worst / largest : worst;
}
"""


def main(job: Job, arena: bool) -> str:
    """A program that calls the function on the stored arguments and compares the results."""
    arguments = [f"(const {element(t.dtype)} *)a{n}" for n, t in enumerate(job.types)]
    arguments += [f"({element(t.dtype)} *)r{n}" for n, t in enumerate(job.out_types)]
    arguments += ["arena"] if arena else []
    lines = [
        f'#include "{job.name}.h"',
        "#include <math.h>",
        "#include <stdio.h>",
        "#include <string.h>",
        f'#include "{job.name}_vectors.h"',
        *(f"static _Alignas(64) unsigned char r{n}[{max(1, r.nbytes)}];" for n, r in enumerate(job.results)),
        *([f"static _Alignas(64) unsigned char arena[{job.name.upper()}_ARENA_BYTES];"] if arena else []),
        _CHECK,
        "int main(void) {",
        "  int wrong = 0;",
        f"  const int failure = {job.name}_call({', '.join(arguments)});",
        '  if (failure) { printf("the device failed: %d\\n", failure); return 2; }',
        *(f"  {line}" for line in _comparisons(job.out_types, job.results)),
        *([] if arena else [f"  {job.name}_close();"]),
        '  printf(wrong ? "wrong\\n" : "ok\\n");',
        "  return wrong;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def folder(
    job: Job, host: Mapping[str, str | bytes], build: str, advice: str, arena: bool = False
) -> dict[str, str | bytes]:
    """The files: those of the host and its kernels among header, weights, check and build line.

    arena: whether the caller brings the memory for intermediate values
    """
    return {
        f"{job.name}.h": header(job, arena),
        **host,
        f"{job.name}_weights.c": weights(job),
        f"{job.name}_vectors.h": vectors(job),
        "main.c": main(job, arena),
        "build.sh": script(build, advice),
    }


def _comparisons(types: Sequence[ArrayType], results: Sequence[np.ndarray]) -> Iterator[str]:
    for n, (type, result) in enumerate(zip(types, results, strict=True)):
        letter, size, count = kind(type.dtype, result)
        yield f"const double d{n} = difference('{letter}', {size}, {count}, r{n}, expected{n});"
        yield f'printf("r{n}: {type}, difference %g\\n", d{n});'
        yield f"wrong |= !(d{n} <= {tolerance(type)});"


def tolerance(type: ArrayType) -> str:
    """How far results may be off, relative to the largest."""
    return _TOLERANCE.get(type.dtype, "0")


def kind(dtype: np.dtype, array: np.ndarray) -> tuple[str, int, int]:
    """How main reads elements: their kind, bytes and number."""
    kinds = {dtypes.f32: "f", dtypes.c64: "f", dtypes.f64: "d", dtypes.c128: "d", dtypes.f16: "h", dtypes.bf16: "b"}
    parts = ELEMENTS.get(dtype, ("", 1))[1]
    return kinds.get(dtype, "i"), dtype.itemsize // parts, array.size * parts


# --- what hosts of devices share ----------------------------------------------------------------


def sizes(job: Job) -> tuple[list[int], list[int]]:
    """Bytes of the buffers of arguments, the weights first, and of results."""
    arguments = [x.nbytes for x in (*job.weights, *job.arguments)]
    return arguments, [x.nbytes for x in job.results]


def device_memory(job: Job, handle: str) -> str:
    """The buffers: arguments a, results r, arena m."""
    arguments, results = sizes(job)
    return f"static {handle} a[{max(1, len(arguments))}], r[{max(1, len(results))}], m;\nstatic int is_open;"


def device_opened(job: Job) -> str:
    """Lines that make the buffers, and put the weights there."""
    arguments, results = sizes(job)
    lines = [f"a[{n}] = memory({size});" for n, size in enumerate(arguments)]
    lines += [f"r[{n}] = memory({size});" for n, size in enumerate(results)]
    lines += [f"m = memory({job.steps.arena_bytes});"]
    lines += [f"send(a[{n}], {job.name}_w{n}, {w.nbytes});" for n, w in enumerate(job.weights)]
    return "\n".join(f"  {line}" for line in [*lines, "is_open = 1;"])


def device_entry(job: Job, finish: str) -> str:
    """The entry: arguments to the device, the steps, results back."""
    count = len(job.weights)
    lines = [f"send(a[{count + n}], a{n}, {x.nbytes});" for n, x in enumerate(job.arguments)]
    lines += ["steps();", finish]
    lines += [f"fetch(r[{n}], r{n}, {x.nbytes});" for n, x in enumerate(job.results)]
    body = "\n".join(f"  {line}" for line in lines)
    return f"{signature(job, False)} {{\n  if (!is_open) open_device();\n{body}\n  return (int)failure;\n}}\n"


def released(job: Job, call: str) -> str:
    """Lines that give the buffers back."""
    arguments, results = sizes(job)
    names = [f"a[{n}]" for n in range(len(arguments))] + [f"r[{n}]" for n in range(len(results))] + ["m"]
    return "\n".join(f"  {call.format(name)}" for name in names)
