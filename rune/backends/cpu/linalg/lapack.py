"""LAPACK's eigenvalues and singular values, by the address that NumPy's own extension finds.

It is the library that NumPy was linked with, so values are those of `np.linalg` to the bit, and
nothing is loaded besides. Where a platform hides the symbols, `address` is None and plans call
NumPy. Integers are given as 64 bits: a library that reads 32 finds them in the lower half.

Arrays of Fortran lie by columns, so a matrix is transposed on its way in, and vectors on their way
out. Matrices that are not finite never get there: some routines would not return.
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
from rune.backends.cpu.gemm.library import SCALARS
from rune.backends.cpu.gemm.shape import Shape, shape_for
from rune.backends.cpu.linalg import moves
from rune.backends.cpu.linalg.batches import entry_function, task_maker
from rune.backends.cpu.linalg.moves import by_parts
from rune.backends.cpu.linalg.numbers import Complexes, Numbers, Reals
from rune.backends.cpu.linalg.routines import declarations
from rune.lowering.codegen.llvm.ir.text import Value
from rune.ops.complex_numbers import real_dtype
from rune.records import dataclass

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
    """A decomposition of matrices, whose sizes are numbers above 0.

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
        """Multiply-adds of one matrix, about."""
        each = 9 if self.routine == "eigh" else 20
        return each * self.rows * self.columns * self.least

    @property
    def outer(self) -> tuple[int, int]:
        """Columns of u and rows of vh."""
        return (self.rows, self.columns) if self.full else (self.least, self.least)


@functools.cache
def address(routine: str, dtype: np.dtype) -> int | None:
    """Where LAPACK's routine begins, None where it is hidden."""
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
    """NumPy's extension: what it is linked with is looked up through it, too."""
    try:
        return ctypes.CDLL(_umath_linalg.__file__)
    except OSError:
        return None


# --- memory -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Work:
    """Numbers of LAPACK's work arrays: of the dtype, real ones, and integers."""

    numbers: int
    reals: int
    integers: int


@functools.cache
def work_of(spectrum: Spectrum) -> Work:
    """What LAPACK asks for, as NumPy does."""
    return _work_of_eigh(spectrum) if spectrum.routine == "eigh" else _work_of_svd(spectrum)


def _work_of_eigh(spectrum: Spectrum) -> Work:
    is_complex = spectrum.dtype in dtypes.COMPLEX
    number, real, integers, info = _answers(spectrum)
    order, question = _integer(spectrum.rows), _integer(-1)
    letters = [bytes([letter]) for letter in (job_of(spectrum), triangle_of(spectrum))]
    reals = [real, question] if is_complex else []
    _ask(spectrum, [*letters, order, number, order, real, number, question, *reals, integers, question, info])
    return Work(_whole(number), _whole(real) if is_complex else 1, int(integers[0]))


def _work_of_svd(spectrum: Spectrum) -> Work:
    """LAPACK does not say how many real numbers and integers it wants: its manual does."""
    is_complex, least = spectrum.dtype in dtypes.COMPLEX, spectrum.least
    number, real, integers, info = _answers(spectrum)
    height, width, of_vh = map(_integer, (spectrum.rows, spectrum.columns, spectrum.outer[1]))
    matrices = [height, width, number, height, real, number, height, number, of_vh]
    reals = [real] if is_complex else []
    _ask(spectrum, [bytes([job_of(spectrum)]), *matrices, number, _integer(-1), *reals, integers, info])
    most = max(5 * least**2 + 7 * least, 2 * max(height[0], width[0]) * least + 2 * least**2 + least)
    return Work(_whole(number), int(most) if is_complex else 1, 8 * least)


def _answers(spectrum: Spectrum) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Memory for a number, a real number, and two integers."""
    return np.zeros(1, spectrum.dtype), np.zeros(1, real_dtype(spectrum.dtype)), _integer(0), _integer(0)


def _integer(value: int) -> np.ndarray:
    return np.array([value], np.int64)


def _ask(spectrum: Spectrum, arguments: Sequence[bytes | np.ndarray]) -> None:
    """Call a routine that answers how much memory it wants. The lengths of letters come last."""
    place = address(spectrum.routine, spectrum.dtype)
    assert place is not None
    letters = sum(isinstance(x, bytes) for x in arguments)
    kinds = [ctypes.c_char_p if isinstance(x, bytes) else ctypes.c_void_p for x in arguments]
    values = [x if isinstance(x, bytes) else x.ctypes.data for x in arguments]
    function = ctypes.CFUNCTYPE(None, *kinds, *[ctypes.c_size_t] * letters)(place)
    function(*values, *[1] * letters)


def _whole(answer: np.ndarray) -> int:
    return max(1, int(np.real(answer)[0]))


def scratch_of(spectrum: Spectrum, lanes: int) -> dict[str, int]:
    """The bytes of each array that a call works in, by its name among the parameters.

    lanes: numbers that are written together, for which there is room
    """
    work, size = work_of(spectrum), spectrum.dtype.itemsize
    m, n, uc, vr = (-(-x // lanes) * lanes for x in (spectrum.rows, spectrum.columns, *spectrum.outer))
    spare = max(m * uc, vr * n)
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
    """LAPACK's letter for the vectors that are wanted."""
    if not spectrum.vectors:
        return _NONE
    if spectrum.routine == "eigh":
        return VECTORS
    return _ALL if spectrum.full else _THIN


def triangle_of(spectrum: Spectrum) -> int:
    """The letter for the triangle that is read."""
    return LOWER if spectrum.lower else _UPPER


# --- code -------------------------------------------------------------------------------------


@functools.cache
def shape_of(dtype: np.dtype) -> Shape:
    """Vectors of a matrix on its way: short ones, whose squares take a third as long to compile."""
    tile = shape_for(compiler.machine(), SCALARS[real_dtype(dtype)])
    return replace(tile, lanes=min(tile.lanes, _VECTOR_BYTES // tile.bytes))


def lanes_of(dtype: np.dtype) -> int:
    """Numbers in such a vector."""
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
        moves.copied_function(shape, "copied", 1),
        _FUNCTIONS[routine](shape, numbers),
        entry_function(routine, SIGNATURES[routine], shape),
    ]
    # LAPACK takes the time: calls are no faster with more of LLVM's effort, 25 ms of it.
    return compiler.compile_module(routine, "\n\n".join(texts), conventions.LITTLE)


def eigh_function(shape: Shape, numbers: Numbers) -> str:
    """Eigenvalues and, where the job says so, vectors."""
    task = task_maker("eigh", SIGNATURES["eigh"], shape, numbers)
    of, make, writer, named = task.of, task.of.make, task.of.make.writer, task.named
    a, w, v, matrix, n, ld = (named[x] for x in ("a", "w", "v", "matrix", "n", "ld"))
    job, triangle, order, step, lwork, lrwork, liwork = task.references("job triangle n ld lwork lrwork liwork")
    info, letter = task.reference(make.number(0)), make.number(1)
    has_vectors = named["job"].equals(VECTORS)
    reals = [named["real_work"], lrwork] if of.parts > 1 else []

    def one(number: Value) -> None:
        source, values = of.at(a, number * n * n), make.at(w, number * n)
        out = of.at(v, number * n * n)

        def spoil() -> None:
            task.spoil(values, n, 1)
            writer.either(has_vectors, lambda: task.spoil(out, n * n, of.parts))

        def put() -> None:
            writer.either(has_vectors, lambda: task.put_columns(matrix, ld, out, (n, n), named["work"]))

        def solve() -> None:
            make.call("transposed", source, n, matrix, ld, n, n)
            writer.store(make.number(0), info)
            head = [job, triangle, order, matrix, step, values, named["work"], lwork, *reals]
            make.call(named["f"].text, *head, named["integers"], liwork, info, letter, letter)
            writer.either(writer.load("i64", info).equals(0), put, spoil)

        writer.either(task.is_finite(source, n * n), solve, spoil)

    return task.text(one)


def svd_function(shape: Shape, numbers: Numbers) -> str:
    """Singular values and, where the job says so, vectors."""
    task = task_maker("svd", SIGNATURES["svd"], shape, numbers)
    of, make, writer, named = task.of, task.of.make, task.of.make.writer, task.named
    m, n, k, uc, vr = (named[x] for x in "m n k uc vr".split())
    job, height, width, lda, ldu, ldv, lwork = task.references("job m n lda ldu ldv lwork")
    info, letter = task.reference(make.number(0)), make.number(1)
    has_vectors = named["job"].compare("ne", _NONE)
    reals = [named["real_work"]] if of.parts > 1 else []

    def one(number: Value) -> None:
        source, values = of.at(named["a"], number * m * n), make.at(named["s"], number * k)
        u, vh = of.at(named["u"], number * m * uc), of.at(named["vh"], number * vr * n)

        def spoil_vectors() -> None:
            task.spoil(u, m * uc, of.parts)
            task.spoil(vh, vr * n, of.parts)

        def spoil() -> None:
            task.spoil(values, k, 1)
            writer.either(has_vectors, spoil_vectors)

        def put_vectors() -> None:
            task.put_columns(named["columns"], named["ldu"], u, (m, uc), named["work"])
            task.put_columns(named["rows"], named["ldv"], vh, (vr, n), named["work"])

        def solve() -> None:
            make.call("transposed", source, n, named["matrix"], named["lda"], m, n)
            writer.store(make.number(0), info)
            vectors = [named["columns"], ldu, named["rows"], ldv]
            head = [job, height, width, named["matrix"], lda, values, *vectors, named["work"], lwork, *reals]
            make.call(named["f"].text, *head, named["integers"], info, letter)
            succeeded = writer.load("i64", info).equals(0)
            writer.either(succeeded, lambda: writer.either(has_vectors, put_vectors), spoil)

        writer.either(task.is_finite(source, m * n), solve, spoil)

    return task.text(one)


_FUNCTIONS = {"eigh": eigh_function, "svd": svd_function}
