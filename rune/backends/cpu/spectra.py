"""Calls of NumPy's eigh and svd in a plan of the CPU, made by native code where possible.

Lowering writes them as Python functions (lowering/host_calls.py). They remain that if sizes are
symbolic, if a matrix is so large that a user may want to interrupt LAPACK, and if LAPACK's address
is unknown. Otherwise the plan calls linalg/lapack.py, or for small symmetric matrices
linalg/symmetric.py. Work arrays are in the arena, so that a call allocates no memory.
"""

from __future__ import annotations

import math

from rune.backends.cpu.dots import Run
from rune.backends.cpu.library_calls import Native, Pool, library_call
from rune.backends.cpu.linalg import lapack, symmetric
from rune.backends.cpu.linalg.batches import Signature
from rune.backends.cpu.linalg.lapack import Spectrum
from rune.backends.cpu.linalg.library import PARALLEL_OPERATIONS
from rune.backends.cpu.scratch import in_lines
from rune.backends.shared.callbacks import is_callback
from rune.core.types import ArrayType
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.host_calls import LibraryCall
from rune.lowering.plan import Step
from rune.ops.linalg.dense import NUMBERS
from rune.ops.linalg.eigh import eigh
from rune.ops.linalg.svd import square_svd, svd

# Rows and columns. A call of LAPACK cannot be interrupted, but takes at most a tenth of a second.
MOST = 512
# Rows and columns of matrices whose batch cores share. For larger ones LAPACK uses threads itself.
MOST_SHARED = 64


def spectrum_of(step: Step) -> Spectrum | None:
    """The decomposition that a step makes, if native code can make it; else None."""
    call = library_call(step)
    if call is None or call[0].primitive not in (eigh, svd, square_svd):
        return None
    spectrum = _spectrum(call[0], call[1][0])
    if spectrum is None or is_small(spectrum):
        return spectrum
    return spectrum if lapack.address(spectrum.routine, spectrum.dtype) else None


def _spectrum(call: LibraryCall, a: ArrayType) -> Spectrum | None:
    sizes = [d for d in a.shape if isinstance(d, int)]
    if len(sizes) < a.ndim or a.dtype not in NUMBERS or 0 in sizes or max(sizes[-2:]) > MOST:
        return None
    batch, (rows, columns), params = math.prod(sizes[:-2]), sizes[-2:], dict(call.params)
    routine = "eigh" if call.primitive is eigh else "svd"
    vectors, lower, full = (bool(params.get(name, False)) for name in ("vectors", "lower", "full_matrices"))
    return Spectrum(routine, a.dtype, batch, rows, columns, vectors, lower, full)


def is_small(spectrum: Spectrum) -> bool:
    """Whether our own code decomposes it, without LAPACK."""
    return spectrum.routine == "eigh" and symmetric.is_small(spectrum.rows, spectrum.dtype)


def native_of(step: Step) -> Native | None:
    """The native code of a decomposition."""
    spectrum = spectrum_of(step)
    if spectrum is None:
        return None
    return Native(
        lambda cores: shares_of(spectrum, cores) * sum(_bytes(spectrum).values()),
        lambda run, call, memory, pool: write_spectrum(run, call, spectrum, memory, pool),
    )


def shares_of(spectrum: Spectrum, cores: int) -> int:
    """The number of cores that decompose a batch, each with its own work arrays."""
    is_little = spectrum.batch * spectrum.operations < PARALLEL_OPERATIONS
    if is_little or max(spectrum.rows, spectrum.columns) > MOST_SHARED:
        return 1
    # Rounding up may leave fewer chunks than cores.
    chunk = -(-spectrum.batch // cores)
    return -(-spectrum.batch // chunk)


def _bytes(spectrum: Spectrum) -> dict[str, int]:
    if is_small(spectrum):
        return symmetric.scratch_of(spectrum.rows, spectrum.dtype)
    sizes = lapack.scratch_of(spectrum, lapack.lanes_of(spectrum.dtype))
    return {name: int(in_lines(size)) for name, size in sizes.items()}


def write_spectrum(run: Run, step: Step, spectrum: Spectrum, scratch: Value, pool: Pool) -> None:
    """A decomposition, by a call of native code. scratch: the address of the work arrays"""
    address, signature = _routine(spectrum)
    function = pointer_to(address)
    watch = run.watch(spectrum.batch * spectrum.operations)
    known = {**_pointers(run, step, spectrum), **_work_arrays(run, spectrum, scratch), "watch": watch.pointer.text}
    shares = shares_of(spectrum, pool.cores)
    if shares > 1:
        known["parallel"] = pointer_to(pool.parallel())
    pointers, sizes = (names.split() for names in signature)
    numbers = {**_sizes(spectrum), "chunk": -(-spectrum.batch // shares)}
    # Null are the arrays of vectors where only values are computed, and the pool for one core.
    operands = [*(f"ptr {known.get(name, 'null')}" for name in pointers), *(f"i64 {numbers[name]}" for name in sizes)]
    run.writer.do(f"call void {function}({', '.join(operands)})")
    watch.close()


def _routine(spectrum: Spectrum) -> tuple[int, Signature]:
    if is_small(spectrum):
        return symmetric.code(spectrum.dtype).address("symmetric"), symmetric.SIGNATURE
    routine = spectrum.routine
    return lapack.code(routine, spectrum.dtype).address(routine), lapack.SIGNATURES[routine]


def _pointers(run: Run, step: Step, spectrum: Spectrum) -> dict[str, str]:
    assert is_callback(step)
    results = {"eigh": ("w", "v"), "svd": ("u", "s", "vh") if spectrum.vectors else ("s",)}[spectrum.routine]
    slots = zip(("a", *results), (*step.inputs, *step.outputs), strict=False)
    pointers = {name: run.pointer(slot).text for name, slot in slots}
    # Small symmetric matrices need no LAPACK, so its address may be unknown here.
    place = lapack.address(spectrum.routine, spectrum.dtype)
    return pointers if place is None else {"f": pointer_to(place), **pointers}


def _work_arrays(run: Run, spectrum: Spectrum, scratch: Value) -> dict[str, str]:
    places, first = {}, 0
    for name, size in _bytes(spectrum).items():
        places[name] = run.writer.item(scratch, "i8", first).text
        first += size
    return places


def _sizes(spectrum: Spectrum) -> dict[str, int]:
    """The integers that a call passes, by name."""
    if is_small(spectrum):
        return symmetric.sizes_of(spectrum)
    work, m, n, (uc, vr) = lapack.work_of(spectrum), spectrum.rows, spectrum.columns, spectrum.outer
    lanes = lapack.lanes_of(spectrum.dtype)
    lda, ldv = (-(-x // lanes) * lanes for x in (m, vr))
    return {
        "batch": spectrum.batch,
        "apart": sum(_bytes(spectrum).values()),
        "m": m,
        "n": n,
        "k": spectrum.least,
        "uc": uc,
        "vr": vr,
        "ld": lda,
        "lda": lda,
        "ldu": lda,
        "ldv": ldv,
        "job": lapack.job_of(spectrum),
        "triangle": lapack.triangle_of(spectrum),
        "lwork": work.numbers,
        "lrwork": work.reals,
        "liwork": work.integers,
    }
