"""Eager calls of small arrays: what a function of rune.numpy costs, beside NumPy's and jax.numpy's.

    python benchmarks/eager.py                              # rune and NumPy
    python benchmarks/eager.py --jax /path/to/its/python    # and JAX, in its environment

Each library runs in a process of its own, and they take turns. The time is the processor's, on one
thread, a call, after as many as rune takes until it compiles a function: the least of some rounds.
Functions that take longer than JAX's are marked.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from typing import Any

import numpy as np

WARM = 300  # calls, more than `rune.transforms.compile.tiers.OFTEN`
TURNS, ROUNDS, ROUND = 5, 5, 0.003  # turns of a library, rounds of a turn, seconds of a round
MODULES = {"rune": "rune.numpy", "jax": "jax.numpy", "numpy": "numpy"}
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RUNE_CPU_THREADS": "1"}
# f, g, p > 0: ten floats, i, j > 0: integers, b: truths, u: bytes, c: complex numbers, row: sorted;
# h: three floats; s, m: matrices.
CASES = """
    xp.add(f, g); xp.sin(f); xp.clip(f, -1, 1); xp.clip(f, -1.0, None); xp.gradient(f)
    xp.gradient(f, 0.5); xp.gradient(m); xp.packbits(b); xp.unpackbits(u); xp.hypot(f, g)
    xp.heaviside(f, g); xp.nan_to_num(f); xp.sinc(f); xp.i0(f); xp.logaddexp(f, g)
    xp.logaddexp2(f, g); xp.exp2(f); xp.expm1(f); xp.log1p(p); xp.cbrt(f); xp.square(f)
    xp.reciprocal(p); xp.floor_divide(f, g); xp.remainder(f, g); xp.fmod(f, g); xp.divmod(f, g)
    xp.floor_divide(i, j); xp.remainder(i, j); xp.power(p, g); xp.float_power(p, g); xp.power(i, j)
    f**2; f**3; -f; abs(f); f+1; f@g; xp.sign(f); xp.signbit(f); xp.copysign(f, g)
    xp.nextafter(f, g); xp.ldexp(f, i); xp.frexp(f); xp.modf(f); xp.rint(f); xp.round(f)
    xp.round(f, 2); xp.trunc(f); xp.deg2rad(f); xp.rad2deg(f); xp.maximum(f, g); xp.fmax(f, g)
    xp.fmin(f, g); xp.isclose(f, g); xp.allclose(f, g); xp.array_equal(f, g); xp.array_equiv(f, g)
    xp.isfinite(f); xp.isnan(f); xp.isinf(f); xp.isposinf(f); xp.isneginf(f); xp.isreal(c)
    xp.iscomplex(c); xp.logical_and(b, b); xp.logical_not(b); xp.logical_xor(b, b)
    xp.bitwise_and(i, j); xp.left_shift(i, j); xp.right_shift(i, j); xp.gcd(i, j); xp.lcm(i, j)
    xp.where(b, f, g); xp.select([b, ~b], [f, g], 0.0); xp.piecewise(f, [f<0, f>=0], [-1.0, 1.0])
    xp.choose(i%2, [f, g]); xp.compress(b, f); xp.extract(b, f); xp.nonzero(b); xp.flatnonzero(b)
    xp.argwhere(b); xp.count_nonzero(b); xp.sum(f); xp.prod(f); xp.mean(f); xp.var(f); xp.std(f)
    xp.max(f); xp.min(f); xp.ptp(f); xp.any(b); xp.all(b); xp.argmax(f); xp.argmin(f); xp.nansum(f)
    xp.nanprod(f); xp.nanmean(f); xp.nanvar(f); xp.nanstd(f); xp.nanmax(f); xp.nanmin(f)
    xp.nanargmax(f); xp.nancumsum(f); xp.nanmedian(f); xp.nanpercentile(f, 30); xp.median(f)
    xp.percentile(f, 30); xp.quantile(f, 0.3); xp.average(f); xp.average(f, weights=p); xp.cumsum(f)
    xp.cumprod(f); xp.diff(f); xp.diff(f, 2); xp.ediff1d(f); xp.trapezoid(f); xp.cross(h, h)
    xp.dot(f, g); xp.vdot(f, g); xp.inner(f, g); xp.outer(f, g); xp.kron(h, h); xp.tensordot(m, m)
    xp.einsum('i, i->', f, g); xp.matmul(s, s); xp.trace(s); xp.convolve(f, h); xp.correlate(f, h)
    xp.interp(f, row, g); xp.polyval(h, f); xp.polyfit(f, g, 1); xp.polyadd(h, f); xp.polymul(h, f)
    xp.polyder(f); xp.polyint(f); xp.vander(h); xp.sort(f); xp.argsort(f); xp.searchsorted(row, f)
    xp.digitize(f, row); xp.histogram(f, 5); xp.unique(i); xp.isin(i, j); xp.intersect1d(i, j)
    xp.union1d(i, j); xp.setdiff1d(i, j); xp.partition(f, 3); xp.argpartition(f, 3)
    xp.lexsort((i, j)); xp.flip(f); xp.roll(f, 2); xp.rot90(s); xp.fliplr(s); xp.tile(f, 2)
    xp.repeat(f, 2); xp.concatenate([f, g]); xp.stack([f, g]); xp.vstack([f, g]); xp.hstack([f, g])
    xp.column_stack([f, g]); xp.dstack([f, g]); xp.split(f, 2); xp.array_split(f, 3)
    xp.append(f, g); xp.insert(f, 2, 1.0); xp.delete(f, 2); xp.pad(f, 2); xp.pad(f, 2, mode='edge')
    xp.pad(f, 2, mode='reflect'); xp.pad(f, 2, mode='wrap'); xp.reshape(f, (2, 5)); xp.ravel(s)
    xp.transpose(s); xp.swapaxes(s, 0, 1); xp.moveaxis(s, 0, 1); xp.expand_dims(f, 0); xp.squeeze(f)
    xp.broadcast_to(f, (3, 10)); xp.take(f, i); xp.take_along_axis(f, i, 0); xp.diag(f); xp.diag(s)
    xp.diagonal(s); xp.tril(s); xp.triu(s); xp.tri(3); xp.eye(3); xp.zeros(10); xp.ones(10)
    xp.full(10, 2.0); xp.zeros_like(f); xp.ones_like(f); xp.full_like(f, 2.0); xp.arange(10)
    xp.linspace(0, 1, 10); xp.logspace(0, 1, 10); xp.geomspace(1, 10, 10); xp.meshgrid(f, g)
    xp.indices((3, 3)); xp.tril_indices(3); xp.unravel_index(i, (2, 5)); xp.cov(m); xp.corrcoef(m)
    xp.hanning(10); xp.hamming(10); xp.blackman(10); xp.bartlett(10); xp.kaiser(10, 2.0); xp.real(c)
    xp.imag(c); xp.conj(c); xp.angle(c); xp.abs(c); xp.unwrap(f)
    xp.apply_along_axis(lambda x:x.sum(), 0, s); xp.linalg.norm(f); xp.linalg.norm(s)
    xp.linalg.det(s); xp.linalg.inv(s); xp.linalg.solve(s, h); xp.linalg.eigh(s); xp.linalg.svd(s)
    xp.linalg.qr(s); xp.linalg.matrix_power(s, 3); xp.linalg.pinv(s); xp.linalg.matrix_rank(s)
    xp.linalg.slogdet(s); xp.linalg.cross(h, h); xp.fft.fft(f); xp.fft.rfft(f); xp.fft.fftshift(f)
    xp.fft.fftfreq(10); f[2]; f[1:3]; f[i]; f[b]; f[::-1]; s[1, :]; s[:, None]; f.sum()
    f.astype('int32'); f==g; f<g; xp.astype(f, 'float16'); xp.sort_complex(c); xp.trim_zeros(f)
    xp.block([[s, s], [s, s]]); xp.spacing(f); xp.positive(f); xp.arctan2(f, g); xp.sinh(f)
    xp.arccosh(p+1); xp.tanh(f); xp.histogram2d(f, g, 5); xp.cumulative_sum(f); xp.ix_(i, j)
    xp.resize(f, 20); xp.matvec(s, h); xp.vecdot(f, g); xp.bitwise_count(i); xp.invert(i)
    xp.left_shift(i, 1); xp.atleast_2d(f); xp.roots(h); xp.poly(h); xp.mod(f, 2)
    xp.nanquantile(f, 0.3)
"""


def operands(xp: Any) -> dict[str, Any]:
    """The arrays of the cases by name."""
    rng = np.random.default_rng(0)
    floats = {"f": 10, "g": 10, "h": 3, "s": (3, 3), "m": (5, 2)}
    drawn = {name: rng.standard_normal(shape).astype("f4") for name, shape in floats.items()}
    drawn |= {"p": abs(drawn["g"]) + np.float32(0.1), "row": np.sort(drawn["f"])}
    drawn |= {"i": rng.integers(0, 10, 10, "i4"), "j": rng.integers(1, 10, 10, "i4")}
    drawn |= {"b": drawn["f"] > 0, "u": rng.integers(0, 255, 10, "u1")}
    drawn["c"] = (drawn["f"] + 1j * drawn["g"]).astype("c8")
    return {name: xp.asarray(x) for name, x in drawn.items()}


def serve(library: str) -> None:
    """Answer each line, a case, with the least time of a call in some rounds. Units: µs."""
    xp = importlib.import_module(MODULES[library])
    values = {"xp": xp, **operands(xp)}
    calls: dict[str, tuple[Callable[[], object], int]] = {}
    for line in sys.stdin:
        case = line.strip()
        if case not in calls:
            calls = {case: _warm(eval(f"lambda: {case}", values))}  # an expression of this file
        print(_least(*calls[case]) * 1e6, flush=True)


def chosen(pattern: str) -> list[str]:
    """The cases that match."""
    cases = [c.strip() for line in CASES.split("\n") for c in line.split(";")]
    return [c for c in cases if c and fnmatch(c, pattern)]


def _warm(call: Callable[[], object]) -> tuple[Callable[[], object], int]:
    """The call, made often enough, and how many are a round."""
    for _ in range(WARM):
        call()
    return call, max(1, min(200, int(ROUND / max(_round(call, 1), 1e-7))))


def _least(call: Callable[[], object], count: int) -> float:
    return min(_round(call, count) for _ in range(ROUNDS))


def _round(call: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


class Library:
    """A process that measures on request."""

    def __init__(self, python: str, library: str):
        command = [python, __file__, "--serve", library]
        pipe = subprocess.PIPE
        environment = {**os.environ, **ONE_THREAD}
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)

    def measured(self, case: str) -> float:
        """Processor time of a call. Units: µs."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def in_turns(libraries: Sequence[Library], case: str) -> list[float]:
    """The least of some turns of each library. Units: µs."""
    turns = [[library.measured(case) for library in libraries] for _ in range(TURNS)]
    return [min(times) for times in zip(*turns, strict=True)]


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table, the slowest beside JAX first."""
    parser = argparse.ArgumentParser(prog="benchmarks/eager.py")
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that imports jax")
    parser.add_argument("--cases", default="*", help="a pattern of expressions")
    parser.add_argument("--serve", choices=MODULES, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.serve:
        serve(options.serve)
        return 0
    libraries = [Library(sys.executable, "rune"), Library(sys.executable, "numpy")]
    libraries += [Library(options.jax, "jax")] if options.jax else []
    times = {case: [*in_turns(libraries, case), math.nan][:3] for case in chosen(options.cases)}
    ratios = {case: ours / jax for case, (ours, _, jax) in times.items()}
    print("| call | rune, µs | NumPy, µs | JAX, µs | rune / JAX |\n|---|---|---|---|---|")
    for case in sorted(times, key=lambda c: -ratios[c] if options.jax else -times[c][0]):
        mark = " slower" if ratios[case] > 1 else ""
        print(f"| `{case}` | {' | '.join(f'{x:.1f}' for x in times[case])} | {ratios[case]:.2f}{mark} |")
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    print(f"{len(ratios)} calls, geometric mean {mean:.2f}, slower than JAX in {sum(r > 1 for r in ratios.values())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
