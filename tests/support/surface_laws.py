"""The laws of a `Case`: what holds for every call that both NumPy (SciPy) and rune accept.

The library computes in f64 what rune computes in f32, operation after operation and as a program on
every executor, whose gradients are those of the CPU in f64; the program of all lanes, compiled once
for every number of them, agrees with the loop over lanes; so does what is jitted or batched alone;
forward derivatives agree with central differences, and reverse derivatives with the forward ones.

A room gives its table of cases, and the share of them that is compiled:

    class TestSciPy(Laws):
        cases, sample = CASES, 8

The name of a law's argument decides which cases it takes (`_CHOICES`). Samples are the same in
every run, and complete with RUNE_TEST_WHOLE=1. surface_variants.py tries other sizes, strides and
dtypes."""

from __future__ import annotations

import functools
import math
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, tree
from rune.backends import Device
from rune.core.higher import subprograms
from rune.core.program import Program
from tests.numpy.spelling import Case
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import WHY, differences, directions, inner
from tests.support.sampling import one_in

ORDER = "other order of sums, other libm"
_NARROW = {dtypes.f64: dtypes.f32, dtypes.c128: dtypes.c64}
_WIDE = {narrow: wide for wide, narrow in _NARROW.items()}

# --- numbers ----------------------------------------------------------------------------------


def drawn(case: Case, lanes: tuple[int, ...] = ()) -> list[np.ndarray]:
    """The same numbers for the same case in every run."""
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    return [s.draw(rng, lanes) for s in case.specs]


def single(data: list[np.ndarray]) -> list[Any]:
    """As f32 and i32 arrays."""
    return [rnp.asarray(d) for d in data]


def silently(case: Case, library: Any, data: Sequence[Any]) -> Any:
    """The result of the call, without warnings about its numbers."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return case.call(library, *data)


def rounded(case: Case, lanes: tuple[int, ...] = ()) -> list[np.ndarray]:
    """The arguments of the case, rounded to 32 bits."""
    return [d.astype(_NARROW.get(d.dtype, d.dtype)) for d in drawn(case, lanes)]


def widened(data: list[np.ndarray]) -> list[np.ndarray]:
    """The same numbers in f64 and c128."""
    return [d.astype(_WIDE.get(d.dtype, d.dtype)) for d in data]


def answer(case: Case) -> Any:
    """The library's result for the rounded numbers, in 64 bits."""
    return silently(case, case.oracle, widened(rounded(case)))


def bound(case: Case) -> Callable[..., Any]:
    """The call of rune, as a function of its arrays."""
    return lambda *xs: case.call(case.ours, *xs)


def traced(case: Case) -> Program:
    """The program of the call on its own numbers."""
    return rune.make_program(bound(case))(*single(drawn(case)))


def batch(case: Case) -> Program:
    """The program of two lanes of the call."""
    return rune.make_program(rune.vmap(bound(case)))(*single(drawn(case, (2,))))


def gradient(case: Case) -> Program:
    """The program of the gradient of the call."""
    function, primals = of_reals(case, rounded(case), "f32")
    return rune.make_program(pulled(function))(*primals)


def looped(case: Case, args: Sequence[Any], size: int) -> Any:
    """The results of the call on each lane, stacked."""
    lanes = [case.call(case.ours, *(x[lane] for x in args)) for lane in range(size)]
    return tree.map(lambda *xs: rnp.stack(xs), *lanes)


def of_reals(case: Case, data: list[np.ndarray], dtype: str = "f64") -> tuple[Any, list[Any]]:
    """The call as a function of its floating arguments to one array, and those arguments.

    dtype: the least dtype of the result.
    """
    reals = [k for k, s in enumerate(case.specs) if s.is_real]

    def function(*xs: Any) -> Any:
        values = dict(zip(reals, xs, strict=True))
        args = [values[k] if k in values else array(d) for k, d in enumerate(data)]
        outs = [rnp.ravel(o) for o in tree.leaves(case.call(case.ours, *args))]
        return rnp.concatenate([rnp.zeros(0, dtype), *outs])

    return function, [array(data[k]) for k in reals]


def pulled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of a weighted sum of the elements of a function's result."""

    def gradients(*xs: Any) -> Any:
        out, pull = rune.vjp(function, *xs)
        return pull(rnp.cos(rnp.arange(out.size, dtype="f32")).astype(out.dtype))

    return gradients


@dataclass(frozen=True, slots=True)
class Pushed:
    """The function of a call's floating arguments, and its derivative along tangents."""

    function: Callable[..., Any]
    primals: list[Any]
    tangents: list[Any]
    out: Any
    tangent: Any


@functools.lru_cache(maxsize=1)
def pushed(case: Case) -> Pushed:
    """The forward derivative at the numbers of a case, for the two laws that follow each other."""
    function, primals = of_reals(case, drawn(case))
    tangents = directions(np.random.default_rng(0), primals)
    return Pushed(function, primals, tangents, *rune.jvp(function, primals, tangents))


# --- executors --------------------------------------------------------------------------------

DEVICES = [d for d in rune.devices() if d.target.backend not in ("cpu", "null")]
TINY = 16  # elements of the arguments of calls that the reference interprets
WIDE = {dtypes.i64, dtypes.u64, dtypes.f64, dtypes.c128}
EXACT = ("linalg.pascal*", "linalg.invpascal*")  # integers of 64 bits by contract


@dataclass(frozen=True, slots=True)
class Placed:
    """A case on a device."""

    case: Case
    device: Device

    def __str__(self) -> str:
        return f"{self.case} on {self.device.name}"

    @property
    def is_apt(self) -> bool:
        """Whether the device has the dtypes; the reference runs kernels element by element."""
        target, size = self.device.target, sum(math.prod(s.shape) for s in self.case.specs)
        is_tiny = size <= TINY or target.backend != "reference"
        return is_tiny and (dtypes.i64 in target.dtypes or not is_exact(self.case))


def is_exact(case: Case) -> bool:
    """Whether its results have 64 bits for arguments of any dtype."""
    return any(fnmatchcase(case.name, pattern) for pattern in EXACT)


def dtypes_of(program: Program) -> set[np.dtype]:
    """The dtypes of all values of a program and of the programs in it."""
    pending, dtypes_in = [program], set()
    while pending:
        inside = pending.pop()
        rows = [(*e.operands, *e.results) for e in inside.equations]
        dtypes_in.update(atom.type.dtype for row in (*rows, inside.inputs, inside.outputs) for atom in row)
        pending.extend(p for e in inside.equations for p in subprograms(e))
    return dtypes_in


# --- which cases ------------------------------------------------------------------------------


def dynamic(cases: Sequence[Case]) -> list[Case]:
    """Those that can be jitted and batched."""
    return [c for c in cases if c.specs and not c.static]


def smooth(cases: Sequence[Case]) -> list[Case]:
    """Those that have derivatives."""
    return [c for c in cases if c.smooth and any(s.is_real for s in c.specs)]


def narrow(cases: Sequence[Case]) -> list[Case]:
    """Those that can be jitted, and have 32 bits if their arguments have."""
    return [c for c in cases if not c.static and not is_exact(c)]


def placed(cases: Sequence[Case]) -> list[Placed]:
    """Those that can be jitted, on every device."""
    cases_placed = [Placed(c, d) for c in cases if not c.static for d in DEVICES]
    return [p for p in cases_placed if p.is_apt]


# The name of a law's argument, and the cases of a room that it takes. Samples of one table have no
# common factor, or the cases of the smallest would be in all of them.
_CHOICES: dict[str, Callable[[type[Laws]], Sequence[object]]] = {
    "case": lambda room: room.cases,
    "smooth": lambda room: one_in(room.smooth_sample, smooth(room.cases)),
    "symbolic": lambda room: one_in(room.sample, dynamic(room.cases)),
    "dynamic": lambda room: one_in(64, dynamic(room.cases)),
    "pair": lambda room: one_in(251, placed(room.cases)),
    "batch_pair": lambda room: one_in(1021, placed(dynamic(room.cases))),
    "gradient_pair": lambda room: one_in(509, placed(smooth(room.cases))),
}


class Laws:
    """The laws, for a room's table of cases."""

    cases: ClassVar[Sequence[Case]] = ()
    sample: ClassVar[int] = 1  # one in this many is compiled for every number of lanes
    smooth_sample: ClassVar[int] = 1  # one in this many is compared with differences

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Each law with each case that it takes."""
        for name in _CHOICES.keys() & set(metafunc.fixturenames):
            metafunc.parametrize(name, _CHOICES[name](type(self)), ids=str)

    def test_a_function_means_what_the_library_means(self, case: Case):
        result = case.call(case.ours, *single(rounded(case)))

        near(answer(case), result, relative=2e-5 * case.slack, why="f32 against f64")

    @pytest.mark.filterwarnings("ignore::rune.errors.HostFallbackWarning")
    def test_a_program_on_an_executor_means_what_the_library_means(self, pair: Placed):
        case, device = pair.case, pair.device

        result = rune.jit(bound(case), device=device.name)(*single(rounded(case)))

        near(answer(case), result, relative=2e-5 * case.slack, why="f32 against f64")

    @pytest.mark.filterwarnings("ignore::rune.errors.HostFallbackWarning")
    def test_a_batch_on_an_executor_is_the_loop_over_lanes_in_64_bits(self, batch_pair: Placed):
        case, data = batch_pair.case, rounded(batch_pair.case, (2,))
        expected = looped(case, [array(d) for d in widened(data)], 2)

        lanes = rune.jit(rune.vmap(bound(case)), device=batch_pair.device.name)(*single(data))

        near(expected, lanes, relative=2e-5 * case.slack, why="f32 against f64")

    @pytest.mark.filterwarnings("ignore::rune.errors.HostFallbackWarning")
    def test_a_gradient_on_an_executor_is_that_of_the_cpu_in_64_bits(self, gradient_pair: Placed):
        case, data = gradient_pair.case, rounded(gradient_pair.case)
        exact, wide = of_reals(case, widened(data))
        function, primals = of_reals(case, data, "f32")

        gradient = rune.jit(pulled(function), device=gradient_pair.device.name)(*primals)

        near(pulled(exact)(*wide), gradient, relative=2e-4 * case.slack, why="f32 against f64")

    def test_calls_on_32_bits_compute_in_32_bits(self):
        with rune.configure(check_stages=False):
            assert not [str(c) for c in one_in(self.smooth_sample, narrow(self.cases)) if dtypes_of(traced(c)) & WIDE]

    def test_batches_and_gradients_on_32_bits_compute_in_32_bits(self):
        programs = [(batch, c) for c in one_in(32, narrow(dynamic(self.cases)))]
        programs += [(gradient, c) for c in one_in(32, narrow(smooth(self.cases)))]

        with rune.configure(check_stages=False):
            assert not [(make, c.name) for make, c in programs if dtypes_of(make(c)) & WIDE]

    def test_a_program_compiled_once_for_every_batch_is_the_loop_over_lanes(self, symbolic: Case):
        case = symbolic
        program = rune.jit(rune.vmap(bound(case)), dims={"n": (1, 8)})

        for size in (2, 3):
            args = single(drawn(case, (size,)))
            expected = looped(case, args, size)
            near(expected, program(*args), relative=3e-6 * case.slack, why=ORDER)
        assert program.cache_size() == 1

    def test_a_jitted_call_gives_what_the_eager_call_gives(self, dynamic: Case):
        case = dynamic
        args = single(drawn(case))

        result = rune.jit(bound(case))(*args)

        near(case.call(case.ours, *args), result, relative=2e-6 * case.slack, why=ORDER)

    def test_a_batched_call_is_the_loop_over_lanes(self, dynamic: Case):
        case = dynamic
        args = single(drawn(case, (2,)))

        lanes = rune.vmap(bound(case))(*args)

        near(looped(case, args, 2), lanes, relative=2e-6 * case.slack, why=ORDER)

    def test_a_forward_derivative_is_the_limit_of_differences(self, smooth: Case):
        forward = pushed(smooth)

        expected = differences(forward.function, forward.primals, forward.tangents)
        near(expected, forward.tangent, relative=1e-6 * smooth.slack, why=WHY)

    def test_a_reverse_derivative_is_the_transpose_of_the_forward_one(self, smooth: Case):
        forward = pushed(smooth)

        cotangents = directions(np.random.default_rng(1), [forward.out])
        _, pull = rune.vjp(forward.function, *forward.primals)

        expected, actual = inner(cotangents, [forward.tangent]), inner(pull(*cotangents), forward.tangents)
        limit = 1e-10 * smooth.slack
        assert actual == pytest.approx(expected, rel=limit, abs=limit)
