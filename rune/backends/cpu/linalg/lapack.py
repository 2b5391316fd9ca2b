"""Calls LAPACK for eigenvalues and singular values, at the addresses that NumPy's extension has.

It is the library that NumPy was linked with, so values have the same bits as those of `np.linalg`,
and no other library is loaded. If a platform hides the symbols, `address` is None and plans call
NumPy. Integers are passed as 64 bits: a library that reads 32 finds them in the lower half.

Fortran's arrays are stored by columns, so matrices are transposed before the call, and vectors
after it. Matrices with infinities or NaN are not passed to LAPACK: some routines would not return.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.linalg import _umath_linalg

from rune import dtypes
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.gemm.shape import SCALARS, Shape, shape_for
from rune.backends.cpu.linalg import moves
from rune.backends.cpu.linalg.batches import entry_function, task_maker
from rune.backends.cpu.linalg.moves import by_parts
from rune.backends.cpu.linalg.numbers import Complexes, Numbers, Reals
from rune.backends.cpu.linalg.routines import declarations
from rune.lowering.codegen.llvm.ir.text import Value
from rune.ops.complex_numbers import real_dtype
from rune.records import dataclass

# NumPy's wheels rename the symbols of their OpenBLAS; `_64_` stands for integers of 64 bits.
_NAMES = ("scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_")
_LETTERS = {dtypes.f32: "s", dtypes.f64: "d", dtypes.c64: "c", dtypes.c128: "z"}
_VECTOR_BYTES = 32
_NONE, VECTORS, _ALL, _THIN, _UPPER, LOWER = map(ord, "NVASUL")
SIGNATURES = {
    "eigh": (
        "f a w v matrix work real_work integers parallel watch",
        "batch chunk apart n ld job triangle lwork lrwork liwork",
    ),
    "svd": (
        "f a s u vh matrix columns rows work real_work integers parallel watch",
        "batch chunk apart m n k uc vr lda ldu ldv job lwork lrwork",
    ),
}


@dataclass(frozen=True, slots=True)
class Spectrum:
    """A decomposition of matrices, with fixed sizes above 0.

    routine: "eigh" or "svd";  full: whether u and vh are square
    """

    routine: str
    dtype: np.dtype
    batch: int
    rows: int
    columns: int
    vectors: bool
    lower: bool = True
    full: bool = False

    @property
    def least(self) -> int:
        """The smaller side."""
        return min(self.rows, self.columns)

    @property
    def operations(self) -> int:
        """An estimate of the multiply-adds for one matrix."""
        factor = 9 if self.routine == "eigh" else 20
        return factor * self.rows * self.columns * self.least

    @property
    def outer(self) -> tuple[int, int]:
        """The number of columns of u and of rows of vh."""
        return (self.rows, self.columns) if self.full else (self.least, self.least)


@functools.cache
def address(routine: str, dtype: np.dtype) -> int | None:
    """The address of LAPACK's routine; None if it is hidden.

    Also None on big-endian machines, where the lower half of an integer is not at its address.
    """
    if sys.byteorder != "little" or dtype not in _LETTERS:
        return None
    library = _library()
    name = _LETTERS[dtype] + _stem(routine, dtype)
    symbols = (getattr(library, form.format(name), None) for form in _NAMES)
    function = next((s for s in symbols if s is not None), None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def _stem(routine: str, dtype: np.dtype) -> str:
    if routine == "svd":
        return "gesdd"
    return "heevd" if dtype in dtypes.COMPLEX else "syevd"


@functools.cache
def _library() -> ctypes.CDLL | None:
    """NumPy's extension. Its symbol lookup includes the libraries that it is linked with."""
    try:
        return ctypes.CDLL(_umath_linalg.__file__)
    except OSError:
        return None


# --- memory -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Work:
    """The lengths of LAPACK's work arrays: numbers of the dtype, real numbers, and integers."""

    numbers: int
    reals: int
    integers: int


@functools.cache
def work_of(spectrum: Spectrum) -> Work:
    """The work arrays that LAPACK asks for. NumPy asks in the same way."""
    return _work_of_eigh(spectrum) if spectrum.routine == "eigh" else _work_of_svd(spectrum)


def _work_of_eigh(spectrum: Spectrum) -> Work:
    is_complex = spectrum.dtype in dtypes.COMPLEX
    number, real, integers, info = _answers(spectrum)
    order, question = _integer(spectrum.rows), _integer(-1)
    letters = [bytes([letter]) for letter in (job_of(spectrum), triangle_of(spectrum))]
    reals = [real, question] if is_complex else []
    # jobz, uplo, n, a, lda, w, work, lwork, (rwork, lrwork,) iwork, liwork, info. A length of -1
    # asks for the lengths, which are then in the first elements.
    _ask(spectrum, [*letters, order, number, order, real, number, question, *reals, integers, question, info])
    return Work(_work_size(number), _work_size(real) if is_complex else 1, int(integers[0]))


def _work_of_svd(spectrum: Spectrum) -> Work:
    """LAPACK does not return the numbers of reals and integers, so they are from its manual."""
    is_complex, least = spectrum.dtype in dtypes.COMPLEX, spectrum.least
    number, real, integers, info = _answers(spectrum)
    height, width, of_vh = map(_integer, (spectrum.rows, spectrum.columns, spectrum.outer[1]))
    # m, n, a, lda, s, u, ldu, vt, ldvt, after jobz.
    matrices = [height, width, number, height, real, number, height, number, of_vh]
    reals = [real] if is_complex else []
    _ask(spectrum, [bytes([job_of(spectrum)]), *matrices, number, _integer(-1), *reals, integers, info])
    most = max(5 * least**2 + 7 * least, 2 * max(height[0], width[0]) * least + 2 * least**2 + least)
    return Work(_work_size(number), int(most) if is_complex else 1, 8 * least)


def _answers(spectrum: Spectrum) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Memory for LAPACK's answers: a number, a real number, and two integers."""
    return np.zeros(1, spectrum.dtype), np.zeros(1, real_dtype(spectrum.dtype)), _integer(0), _integer(0)


def _integer(value: int) -> np.ndarray:
    return np.array([value], np.int64)


def _ask(spectrum: Spectrum, arguments: Sequence[bytes | np.ndarray]) -> None:
    """Ask a routine for the size of its work arrays. Fortran passes lengths of letters last."""
    place = address(spectrum.routine, spectrum.dtype)
    assert place is not None
    letters = sum(isinstance(x, bytes) for x in arguments)
    kinds = [ctypes.c_char_p if isinstance(x, bytes) else ctypes.c_void_p for x in arguments]
    values = [x if isinstance(x, bytes) else x.ctypes.data for x in arguments]
    # gfortran has passed lengths as size_t since version 8, before as int.
    function = ctypes.CFUNCTYPE(None, *kinds, *[ctypes.c_size_t] * letters)(place)
    function(*values, *[1] * letters)


def _work_size(answer: np.ndarray) -> int:
    # f32 represents it exactly: sides are at most 512 (spectra.MOST), so it is less than 2^24.
    return max(1, int(np.real(answer)[0]))


def scratch_of(spectrum: Spectrum, lanes: int) -> dict[str, int]:
    """The bytes of each work array of a call, by the name of its parameter.

    lanes: numbers in a vector; sizes are rounded up to it, as whole vectors are written
    """
    work, size = work_of(spectrum), spectrum.dtype.itemsize
    m, n, uc, vr = (-(-x // lanes) * lanes for x in (spectrum.rows, spectrum.columns, *spectrum.outer))
    spare = max(m * uc, vr * n)  # put_columns transposes into "work", which is free after the call
    sizes = {
        "matrix": m * n * size,
        "work": max(work.numbers, spare) * size,
        "real_work": work.reals * size,
        "integers": work.integers * 8,
    }
    if spectrum.routine == "svd" and spectrum.vectors:
        sizes |= {"columns": m * uc * size, "rows": vr * n * size}
    return sizes


def job_of(spectrum: Spectrum) -> int:
    """LAPACK's letter for the vectors to compute."""
    if not spectrum.vectors:
        return _NONE
    if spectrum.routine == "eigh":
        return VECTORS
    return _ALL if spectrum.full else _THIN


def triangle_of(spectrum: Spectrum) -> int:
    """LAPACK's letter for the triangle that is read."""
    return LOWER if spectrum.lower else _UPPER


# --- code -------------------------------------------------------------------------------------


@functools.cache
def shape_of(dtype: np.dtype) -> Shape:
    """The vectors that transpose matrices. Short ones, whose squares compile in a third the
    time."""
    tile = shape_for(compiler.machine(), SCALARS[real_dtype(dtype)])
    return replace(tile, lanes=min(tile.lanes, _VECTOR_BYTES // tile.bytes))


def lanes_of(dtype: np.dtype) -> int:
    """The numbers in such a vector."""
    shape = shape_of(dtype)
    return shape.lanes * shape.bytes // dtype.itemsize


@compiler.lasting
def code(routine: str, dtype: np.dtype) -> compiler.Code:
    """The function of this process for matrices of a dtype."""
    shape = shape_of(dtype)
    numbers = Complexes() if dtype in dtypes.COMPLEX else Reals()
    texts = [
        declarations(shape),
        moves.transposed_function(shape, numbers, "transposed", lambda row: row, by_parts),
        moves.changed_function(shape, "copied", lambda row: row),
        _FUNCTIONS[routine](shape, numbers),
        entry_function(routine, SIGNATURES[routine], shape),
    ]
    # Calls spend their time in LAPACK, so more optimisation, 25 ms of it, makes them no faster.
    return compiler.compile_module(routine, "\n\n".join(texts), conventions.LITTLE)


def eigh_function(shape: Shape, numbers: Numbers) -> str:
    """Eigenvalues and, depending on the job, eigenvectors."""
    task = task_maker("eigh", SIGNATURES["eigh"], shape, numbers)
    of, make, writer, parameters = task.of, task.of.make, task.of.make.writer, task.parameters
    a, w, v, matrix, n, ld = (parameters[x] for x in ("a", "w", "v", "matrix", "n", "ld"))
    job, triangle, order, step, lwork, lrwork, liwork = task.references("job triangle n ld lwork lrwork liwork")
    info, letter = task.reference(make.number(0)), make.number(1)
    has_vectors = parameters["job"].equals(VECTORS)
    reals = [parameters["real_work"], lrwork] if of.parts > 1 else []

    def one(number: Value) -> None:
        source, values = of.at(a, number * n * n), make.at(w, number * n)
        out = of.at(v, number * n * n)

        def spoil() -> None:
            task.spoil(values, n, 1)
            writer.either(has_vectors, lambda: task.spoil(out, n * n, of.parts))

        def put() -> None:
            writer.either(has_vectors, lambda: task.put_columns(matrix, ld, out, (n, n), parameters["work"]))

        def solve() -> None:
            make.call("transposed", source, n, matrix, ld, n, n)
            # LAPACK may write only the lower half of info.
            writer.store(make.number(0), info)
            head = [job, triangle, order, matrix, step, values, parameters["work"], lwork, *reals]
            make.call(parameters["f"].text, *head, parameters["integers"], liwork, info, letter, letter)
            writer.either(writer.load("i64", info).equals(0), put, spoil)

        writer.either(task.is_finite(source, n * n), solve, spoil)

    return task.text(one)


def svd_function(shape: Shape, numbers: Numbers) -> str:
    """Singular values and, depending on the job, singular vectors."""
    task = task_maker("svd", SIGNATURES["svd"], shape, numbers)
    of, make, writer, parameters = task.of, task.of.make, task.of.make.writer, task.parameters
    m, n, k, uc, vr = (parameters[x] for x in "m n k uc vr".split())
    job, height, width, lda, ldu, ldv, lwork = task.references("job m n lda ldu ldv lwork")
    info, letter = task.reference(make.number(0)), make.number(1)
    has_vectors = parameters["job"].compare("ne", _NONE)
    reals = [parameters["real_work"]] if of.parts > 1 else []

    def one(number: Value) -> None:
        source, values = of.at(parameters["a"], number * m * n), make.at(parameters["s"], number * k)
        u, vh = of.at(parameters["u"], number * m * uc), of.at(parameters["vh"], number * vr * n)

        def spoil_vectors() -> None:
            task.spoil(u, m * uc, of.parts)
            task.spoil(vh, vr * n, of.parts)

        def spoil() -> None:
            task.spoil(values, k, 1)
            writer.either(has_vectors, spoil_vectors)

        def put_vectors() -> None:
            task.put_columns(parameters["columns"], parameters["ldu"], u, (m, uc), parameters["work"])
            task.put_columns(parameters["rows"], parameters["ldv"], vh, (vr, n), parameters["work"])

        def solve() -> None:
            make.call("transposed", source, n, parameters["matrix"], parameters["lda"], m, n)
            writer.store(make.number(0), info)
            vectors = [parameters["columns"], ldu, parameters["rows"], ldv]
            head = [job, height, width, parameters["matrix"], lda, values, *vectors, parameters["work"], lwork, *reals]
            make.call(parameters["f"].text, *head, parameters["integers"], info, letter)
            is_success = writer.load("i64", info).equals(0)
            writer.either(is_success, lambda: writer.either(has_vectors, put_vectors), spoil)

        writer.either(task.is_finite(source, m * n), solve, spoil)

    return task.text(one)


_FUNCTIONS = {"eigh": eigh_function, "svd": svd_function}
