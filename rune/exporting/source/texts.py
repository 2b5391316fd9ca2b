"""The files that every target has: header, weights, vectors, and the program that checks itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from rune import dims, dtypes
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.exporting.source.job import ELEMENTS, Job, element
from rune.exporting.source.steps import in_c, size_name

_LINE = 24  # bytes


def size_list(job: Job) -> list[str]:
    """The declarations of the entry's arguments that are sizes."""
    return [f"int64_t {size_name(name)}" for name in job.sizes]


def size_names(job: Job) -> str:
    """The sizes as arguments of a call."""
    return ", ".join(map(size_name, job.sizes))


def signature(job: Job, arena: bool) -> str:
    """The entry: `int f_call(int64_t size_n, const float *a0, float *r0)`."""
    pieces = [*size_list(job)]
    pieces += [f"const {element(t.dtype)} *a{n}" for n, t in enumerate(job.types)]
    pieces += [f"{element(t.dtype)} *r{n}" for n, t in enumerate(job.out_types)]
    pieces += ["void *arena"] if arena else []
    return f"int {job.name}_call({', '.join(pieces) or 'void'})"


def header(job: Job, arena: bool) -> str:
    """The header: the declaration of the entry, and the type of each argument."""
    guard = f"{job.name.upper()}_H"
    rows = [f" *   {size_name(n)}: {n} in {_range(d)}" for n, d in job.sizes.items()]
    rows += [f" *   a{n}: {t}" for n, t in enumerate(job.types)] + [
        f" *   r{n}: {t}" for n, t in enumerate(job.out_types)
    ]
    lines = [
        f"/* {job.name}: arrays are dense and in row-major order; complex numbers and keys are pairs.",
        *rows,
        " * Returns 0, or another number if the device failed"
        + (f"; {BAD_SIZE} for sizes out of range." if job.sizes else "."),
        *([" * The arena is the caller's memory, aligned to 64 bytes."] if arena else []),
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stdint.h>",
        *(
            [f"#define {job.name.upper()}_ARENA_BYTES {max(64, job.steps.arena_bytes)}"]
            if arena and not job.sizes
            else []
        ),
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        f"{signature(job, arena)};",
        *([f"{arena_signature(job)}; /* bytes of the arena */"] if arena and job.sizes else []),
        *([] if arena else [f"void {job.name}_close(void); /* releases the device */"]),
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


BAD_SIZE = 1000  # what the entry returns for sizes out of range


def _range(size: Dim) -> str:
    low, high = dims.bounds(size)
    return f"{low}..{'inf' if high is None else high}"


def arena_signature(job: Job) -> str:
    """The function that returns the bytes of the arena for these sizes."""
    return f"int64_t {job.name}_arena_bytes({', '.join(size_list(job))})"


def range_check(job: Job) -> list[str]:
    """Lines that return from the entry if a size is out of range, or exceeds the plan's limit."""
    tests = too_large(job, in_c)
    return [f"  if ({' || '.join(tests)}) return {BAD_SIZE};"] if tests else []


def too_large(job: Job, number: Callable[[Size], str]) -> list[str]:
    """Conditions that hold if sizes are out of range, or exceed the plan's limits."""
    tests = []
    for name, size in job.sizes.items():
        (symbol,) = [s for s in dims.symbols(size) if s.name == name]
        tests += [f"{number(size)} < {number(symbol.low)}"]
        tests += [] if symbol.high is None else [f"{number(size)} > {number(symbol.high)}"]
    return [*tests, *(f"{number(size)} > {number(most)}" for size, most in job.plan.limits if job.sizes)]


def bytes_of(name: str, array: np.ndarray, storage: str = "static ") -> str:
    """A C array with the bytes of an array."""
    data = np.ascontiguousarray(array).tobytes() or b"\0"
    rows = (", ".join(map(str, data[at : at + _LINE])) for at in range(0, len(data), _LINE))
    body = ",\n  ".join(rows)
    return f"{storage}const _Alignas(64) unsigned char {name}[{len(data)}] = {{\n  {body}}};"


def weights(job: Job) -> str:
    """The arrays that the function closes over."""
    texts = [bytes_of(f"{job.name}_w{n}", w, "") for n, w in enumerate(job.weights)]
    return "\n".join(["/* The arrays that the function closes over, little-endian. */", *texts]) + "\n"


def weight_declarations(job: Job, qualifier: str = "") -> str:
    """Declarations of the weights."""
    return "\n".join(
        f"extern {qualifier}const unsigned char {job.name}_w{n}[{max(1, w.nbytes)}];" for n, w in enumerate(job.weights)
    )


def vectors(job: Job) -> str:
    """Arguments and results of the calls."""
    texts: list[str] = []
    for k, call in enumerate(job.calls):
        texts += [bytes_of(f"c{k}_a{n}", a) for n, a in enumerate(call.arguments)]
        texts += [bytes_of(f"c{k}_expected{n}", r) for n, r in enumerate(call.results)]
    return "\n".join(["/* Calls, with the results that rune computed. */", *texts]) + "\n"


def script(line: str, advice: str) -> str:
    """The build line as a shell script."""
    return f"#!/bin/sh\n# {advice}\nset -e\n{line}\n"


# --- the program that checks itself -------------------------------------------------------------

_TOLERANCE = {dtypes.f64: "1e-9", dtypes.c128: "1e-9", dtypes.f32: "1e-4", dtypes.c64: "1e-4"}
_TOLERANCE |= {dtypes.f16: "1e-2", dtypes.bf16: "6e-2", dtypes.f8_e4m3: "0.3", dtypes.f8_e5m2: "0.6"}

TEXT_OF = """
/* The text of a file, with a zero at its end; NULL if it cannot be read. */
static char *text_of(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char *text = malloc((size_t)size + 1);
  if (text) text[fread(text, 1, (size_t)size, file)] = 0;
  fclose(file);
  return text;
}
"""
_CHECK = """
/* The value of an element: 'f', 'd', 'h' (f16), 'b' (bf16), or else an integer of `bytes` bytes. */
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
    """A program that calls the function with the stored arguments and compares the results."""
    lines = [
        f'#include "{job.name}.h"',
        "#include <math.h>",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        f'#include "{job.name}_vectors.h"',
        _CHECK,
        *(line for k in range(len(job.calls)) for line in _check_function(job, k, arena)),
        "int main(void) {",
        "  int wrong = 0;",
        *(f"  wrong |= check{k}();" for k in range(len(job.calls))),
        *([] if arena else [f"  {job.name}_close();"]),
        "  if (wrong > 1) return 2;",
        '  printf(wrong ? "wrong\\n" : "ok\\n");',
        "  return wrong;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _check_function(job: Job, k: int, arena: bool) -> list[str]:
    """A C function that checks one call: 0, 1 if results differ, or 2 if the device failed."""
    call = job.calls[k]
    sizes = [str(call.sizes[name]) for name in job.sizes]
    arguments = [*sizes, *(f"(const {element(t.dtype)} *)c{k}_a{n}" for n, t in enumerate(job.types))]
    arguments += [f"({element(t.dtype)} *)r{n}" for n, t in enumerate(job.out_types)]
    arguments += ["arena"] if arena else []
    nbytes = f"{job.name}_arena_bytes({', '.join(sizes)})" if sizes else f"{job.name.upper()}_ARENA_BYTES"
    size_text = ", ".join(f"{name} = {call.sizes[name]}" for name in job.sizes)
    lines = [
        *(f"static _Alignas(64) unsigned char r{n}[{max(1, r.nbytes)}];" for n, r in enumerate(call.results)),
        *([f"void *arena = aligned_alloc(64, ((size_t){nbytes} + 63) / 64 * 64);"] if arena else []),
        "int wrong = 0;",
        *([f'printf("{size_text}\\n");'] if size_text else []),
        f"const int failure = {job.name}_call({', '.join(arguments)});",
        *(["free(arena);"] if arena else []),
        'if (failure) { printf("the device failed: %d\\n", failure); return 2; }',
        *_comparisons(k, job.out_types, call.results),
        "return wrong;",
    ]
    return [f"static int check{k}(void) {{", *(f"  {line}" for line in lines), "}"]


def folder(
    job: Job, host: Mapping[str, str | bytes], build: str, advice: str, arena: bool = False
) -> dict[str, str | bytes]:
    """All files: those of the host and kernels, and header, weights, check and build script.

    arena: whether the caller passes the memory for intermediate values
    """
    return {
        f"{job.name}.h": header(job, arena),
        **host,
        f"{job.name}_weights.c": weights(job),
        f"{job.name}_vectors.h": vectors(job),
        "main.c": main(job, arena),
        "build.sh": script(build, advice),
    }


def _comparisons(k: int, types: Sequence[ArrayType], results: Sequence[np.ndarray]) -> Iterator[str]:
    for n, (type, result) in enumerate(zip(types, results, strict=True)):
        letter, size, count = kind(type.dtype, result)
        yield f"const double d{n} = difference('{letter}', {size}, {count}, r{n}, c{k}_expected{n});"
        yield f'printf("r{n}: {type}, difference %g\\n", d{n});'
        yield f"wrong |= !(d{n} <= {tolerance(type)});"


def tolerance(type: ArrayType) -> str:
    """The largest tolerated difference, relative to the largest result."""
    return _TOLERANCE.get(type.dtype, "0")


def kind(dtype: np.dtype, array: np.ndarray) -> tuple[str, int, int]:
    """The kind, bytes and number of elements, as `main` reads them."""
    kinds = {dtypes.f32: "f", dtypes.c64: "f", dtypes.f64: "d", dtypes.c128: "d", dtypes.f16: "h", dtypes.bf16: "b"}
    parts = ELEMENTS.get(dtype, ("", 1))[1]
    return kinds.get(dtype, "i"), dtype.itemsize // parts, array.size * parts


# --- hosts of devices ---------------------------------------------------------------------------


def sizes(job: Job) -> tuple[list[str], list[str]]:
    """Bytes of the arguments' buffers, weights first, and of the results', as C expressions."""
    arguments = [*(str(w.nbytes) for w in job.weights), *map(_bytes, job.types)]
    return arguments, [*map(_bytes, job.out_types)]


def _bytes(type: ArrayType) -> str:
    return in_c(dims.product(type.shape) * type.dtype.itemsize)


def device_memory(job: Job, handle: str) -> str:
    """The buffers: arguments a, results r, arena m; with open sizes also their bytes, first 0."""
    arguments, results = sizes(job)
    rooms = f"a_room[{max(1, len(arguments))}], r_room[{max(1, len(results))}], m_room"
    open_line = f"static int64_t {rooms};\n" if job.sizes else ""
    return f"static {handle} a[{max(1, len(arguments))}], r[{max(1, len(results))}], m;\n{open_line}static int is_open;"


def buffer_setup(job: Job) -> str:
    """Lines that create the buffers whose sizes are known, and send the weights."""
    arguments, results = sizes(job)
    lines = [f"a[{n}] = memory({size});" for n, size in enumerate(arguments[: len(job.weights)])]
    if not job.sizes:
        lines += [f"a[{n}] = memory({size});" for n, size in enumerate(arguments) if n >= len(job.weights)]
        lines += [f"r[{n}] = memory({size});" for n, size in enumerate(results)]
        lines += [f"m = memory({job.steps.arena_bytes});"]
    lines += [f"send(a[{n}], {job.name}_w{n}, {w.nbytes});" for n, w in enumerate(job.weights)]
    return "\n".join(f"  {line}" for line in [*lines, "is_open = 1;"])


def table(job: Job, words: Sequence[str], word: str, send: str) -> str:
    """The function that writes the table that launches read: addresses and sizes."""
    rows = ",\n    ".join(words) or "0"
    return f"""static void write_table({", ".join(size_list(job)) or "void"}) {{
  const {word} words[] = {{
    {rows}}};
  {send}
}}
"""


def table_at_once(job: Job) -> str:
    """The line that writes the table when the device is opened; none with open sizes."""
    return "" if job.sizes else "  write_table();"


def device_entry(job: Job, finish: str, prepare: str = "") -> str:
    """The entry: it sends the arguments, runs the steps and fetches the results.

    prepare: a function to call once sizes and buffers are known
    """
    arguments, results = sizes(job)
    count = len(job.weights)
    lines: list[str] = []
    if job.sizes:
        lines += [f"grow(&a[{n}], &a_room[{n}], {size});" for n, size in enumerate(arguments) if n >= count]
        lines += [f"grow(&r[{n}], &r_room[{n}], {size});" for n, size in enumerate(results)]
        lines += [f"grow(&m, &m_room, {in_c(job.steps.arena_bytes)});"]
        lines += [f"{prepare}({size_names(job)});"] if prepare else []
    lines += [f"send(a[{count + n}], a{n}, {size});" for n, size in enumerate(arguments[count:])]
    lines += [f"steps({size_names(job)});", finish]
    lines += [f"fetch(r[{n}], r{n}, {size});" for n, size in enumerate(results)]
    body = "\n".join([*range_check(job), "  if (!is_open) open_device();", *(f"  {line}" for line in lines)])
    return f"{signature(job, False)} {{\n{body}\n  return (int)failure;\n}}\n"


def grow_function(job: Job, handle: str, release: str) -> str:
    """With open sizes, the function that replaces a buffer that is too small."""
    if not job.sizes:
        return ""
    return f"""/* Make a buffer have at least this many bytes. */
static void grow({handle} *slot, int64_t *room, int64_t bytes) {{
  if (*room > 0 && *room >= bytes) return;
  if (*room > 0) {release.format("*slot")}
  *slot = memory((size_t)bytes);
  *room = bytes > 0 ? bytes : 1;
}}
"""


def steps_function(job: Job, lines: str, names: str) -> str:
    """The function that runs the steps.

    names: functions that the steps may not call, mentioned so that compilers do not warn
    """
    signature = f"static void steps({', '.join(size_list(job)) or 'void'})"
    casts = ", ".join(f"(void){name}" for name in names.split())
    return f"{signature} {{\n{lines}\n  {casts};\n}}\n"


def buffer_release(job: Job, call: str) -> str:
    """Lines that release the buffers."""
    arguments, results = sizes(job)
    names = [f"a[{n}]" for n in range(len(arguments))] + [f"r[{n}]" for n in range(len(results))] + ["m"]
    lines = [call.format(name) for name in names]
    if job.sizes:
        lines += [f"{name.replace('[', '_room[') if '[' in name else f'{name}_room'} = 0;" for name in names]
    return "\n".join(f"  {line}" for line in lines)
