"""Axes longer than what a driver counts in 16 bits, in every role that an axis can have.

65,536 is the first size that does not fit, 65,537 a prime beyond it, 50,257 the vocabulary of a
language model; 0, 1 and rank 0 are the other end. Elements are whole numbers, so that there is only
one right result, NumPy's. Mesa's CPU device limits the number of iterations of a thread: long
reductions and scans are split among threads there, and programs that cannot be split are refused by
name.

RUNE_TEST_WHOLE=1 tries every size in every role on every executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune import numpy as rnp
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.errors import DeviceError
from rune.lowering.codegen.target import LLVMPIPE_ROUNDS
from rune.lowering.kernel.rounds import most_rounds
from rune.lowering.stages import stages
from tests.lowering import models
from tests.support.close import near, same
from tests.support.lowering import f32, i32, program_of, target
from tests.support.sampling import IS_WHOLE, in_turn, is_in_turn, sharing_kernels

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]
LONG = (65_536, 65_537, 70_000, 50_257)
SHORT = (0, 1, 2)
PIPE = replace(
    target(language="spirv"),
    threads_per_workgroup=1024,
    shared_bytes=1 << 15,
    cores=2,
    scratch_bytes=1 << 12,
    loop_rounds=LLVMPIPE_ROUNDS,
)


@dataclass(frozen=True)
class Role:
    """A use of an axis of n elements: by rune, by NumPy, and the shape of the array."""

    by_rune: Callable[[Any], Any]
    by_numpy: Callable[[np.ndarray], Any]
    shape: Callable[[int], tuple[int, ...]]
    least: int = 0

    def hold(self, n: int, device: str) -> None:
        """Both agree."""
        x = (np.arange(np.prod(self.shape(n))) * 7919 % 1009).astype(np.int32)
        x = x.reshape(self.shape(n))
        integers = np.asarray(rune.jit(self.by_rune, device=device)(x))
        same(np.asarray(self.by_numpy(x)).astype(np.int32), integers)


def _both(function: Callable[[Any, Any], Any], *shape: Any, least: int = 0) -> Role:
    """One function of the module and the array; None in the shape is the long axis."""
    return Role(
        lambda x: function(rnp, x),
        lambda x: function(np, x),
        lambda n: tuple(n if d is None else d for d in shape),
        least,
    )


STABLE: dict[Any, dict[str, str]] = {np: {"kind": "stable"}, rnp: {}}  # rune's sorts are


def _counts(x: np.ndarray) -> np.ndarray:
    counts = np.zeros(7, np.int64)
    np.add.at(counts, x % 7, x)
    return counts


def _largest(x: np.ndarray) -> np.ndarray:
    largest = np.zeros(7, np.int64)
    np.maximum.at(largest, x % 7, x)
    return largest


def _placed(x: np.ndarray) -> np.ndarray:
    places = np.zeros(len(x), np.int64)
    places[np.argsort(x, kind="stable")] = x
    return places


def _spread(x: np.ndarray) -> np.ndarray:
    sums = np.zeros(len(x), np.int64)
    np.add.at(sums, (np.arange(len(x)) * 3) % max(len(x), 1), x)
    return sums


ROLES: dict[str, Role] = {
    "batch": _both(lambda m, x: x * 2 + x[:, :1], None, 3),
    "batch of matrices": _both(lambda m, x: m.einsum("nij,njk->nik", x, x), None, 2, 2),
    "kept": _both(lambda m, x: x.sum(1, dtype="int32"), None, 3),
    "kept columns": _both(lambda m, x: x.sum(0, dtype="int32"), 3, None),
    "reduced": _both(lambda m, x: x.sum(dtype="int32"), None),
    "reduced rows": _both(lambda m, x: x.sum(1, dtype="int32"), 33, None),
    "reduced columns": _both(lambda m, x: x.sum(0, dtype="int32"), None, 17),
    "reduced about a kept one": _both(lambda m, x: x.sum((0, 2), dtype="int32"), None, 40, 3),
    "largest of a row": _both(lambda m, x: x.argmax(1), 33, None, least=1),
    "smallest of a row": _both(lambda m, x: x.min(1), 33, None, least=1),
    "place of the smallest of all": _both(lambda m, x: m.argmin(x), 3, None, least=1),
    "multiplied": _both(lambda m, x: m.prod(x % 2 * 2 - 1, axis=1, dtype="int32"), 33, None),
    "true somewhere": _both(lambda m, x: m.any(x > 1_007, axis=1).astype("int32"), 33, None),
    "counted": _both(lambda m, x: m.count_nonzero(x % 3 == 1, axis=0), None, 17),
    "taken off its row": _both(lambda m, x: x - x.max(1, keepdims=True), 33, None, least=1),
    "contracted": _both(lambda m, x: x @ x.T, 17, None),
    "contracted vectors": _both(lambda m, x: m.vdot(x, x), None),
    "contracted with both others": _both(lambda m, x: m.einsum("inj,knj->ik", x, x), 5, None, 3),
    "matrix and vector": _both(lambda m, x: x @ x[0], 33, None),
    "convolved": _both(lambda m, x: m.convolve(x % 5, m.arange(7, dtype="int32")).astype("int32"), None, least=7),
    "gathered": _both(lambda m, x: x[x % x.shape[0]], None, least=1),
    "gathered from few": _both(lambda m, x: x[:5][m.arange(x.shape[0]) % 5], None, least=5),
    "scattered to few": Role(lambda x: rnp.zeros(7, "int32").at[x % 7].add(x), _counts, lambda n: (n,)),
    "scattered": Role(
        lambda x: rnp.zeros(x.shape, "int32").at[(rnp.arange(x.shape[0]) * 3) % max(x.shape[0], 1)].add(x),
        _spread,
        lambda n: (n,),
    ),
    "scattered, the largest": Role(lambda x: rnp.zeros(7, "int32").at[x % 7].max(x), _largest, lambda n: (n,)),
    "scattered, the last": Role(
        lambda x: rnp.zeros(x.shape, "int32").at[::-1].set(x), lambda x: x[::-1], lambda n: (n,)
    ),
    "put in place": Role(lambda x: rnp.zeros(x.shape, "int32").at[rnp.argsort(x)].set(x), _placed, lambda n: (n,)),
    "sorted": _both(lambda m, x: m.sort(x), None),
    "sorted rows": _both(lambda m, x: m.sort(x, axis=1), 2, None),
    "order of rows": _both(lambda m, x: m.argsort(x, axis=1, **STABLE[m]), 2, None),
    "in the middle": _both(lambda m, x: (2 * m.median(x % 7, axis=1)).astype("int32"), 3, None, least=1),
    "scanned": _both(lambda m, x: m.cumsum(x, dtype="int32"), None),
    "scanned rows": _both(lambda m, x: m.cumsum(x, axis=1, dtype="int32"), 33, None),
    "scanned products": _both(lambda m, x: m.cumprod(x % 2 * 2 - 1, axis=1, dtype="int32"), 3, None),
    "scanned from the end": _both(lambda m, x: m.cumsum(x[:, ::-1], axis=1, dtype="int32"), 3, None),
    "scanned columns": _both(lambda m, x: m.cumsum(x, axis=0, dtype="int32"), None, 3),
    "turned": _both(lambda m, x: x[::-1].T, None, 3),
    "repeated": _both(lambda m, x: m.repeat(x, 2), None),
}
# What is tried in every run: each role with one long size on the CPU and on one of the executors
# that share kernels, each fourth with a short one, too; NumPy's interpreter of kernels has no use
# for length.
EVERY = {"reference:0": 100}
IN_TURN = sharing_kernels()


def _cases(sizes: Sequence[int], apart: int) -> list[tuple[str, str, int]]:
    """(device, role, size): all of them, or for each role one of the sizes."""
    return [
        (device, name, n)
        for device in DEVICES
        for k, (name, role) in enumerate(ROLES.items())
        for m, n in enumerate(sizes)
        if n >= role.least and (IS_WHOLE or (m == k % len(sizes) and _is_tried(device, k, apart)))
    ]


def _is_tried(device: str, role: int, apart: int) -> bool:
    """Whether the role of this number is tried on the device."""
    number, between = divmod(role, apart * EVERY.get(device, 1))
    return between == 0 and is_in_turn(number, len(ROLES) // apart, device, IN_TURN)


@pytest.mark.parametrize(("device", "name", "n"), [*_cases(LONG, 1), *_cases(SHORT, 4)])
def test_an_axis_may_have_any_size_in_every_role(device: str, name: str, n: int):
    ROLES[name].hold(n, device)


@in_turn()
@pytest.mark.parametrize("device", DEVICES)
def test_an_array_may_have_no_axes(device: str):
    def function(x: Any) -> Any:
        return x + 1, rnp.sum(x), rnp.sort(x.ravel()), rnp.cumsum(x), rune.nn.softmax(x[None])

    arrays = rune.jit(function, device=device)(np.float32(3))

    same([4, 3, [3], [3], [1]], [np.asarray(a).astype(np.int64).tolist() for a in arrays])


@in_turn()
@pytest.mark.parametrize("device", [d for d in DEVICES if IS_WHOLE or d != "reference:0"])
def test_a_row_of_a_vocabulary_has_its_log_softmax(device: str):
    x = np.random.default_rng(0).normal(size=(64, 50_257)).astype(np.float32)

    log_probabilities = rune.jit(rune.nn.log_softmax, device=device)(x)[:, :100]

    wide = x.astype(np.float64)
    expected = (wide - np.log(np.exp(wide).sum(-1, keepdims=True)))[:, :100]
    near(expected, np.asarray(log_probabilities), relative=1e-5, why="f32 sums of exponentials")


# --- rounds of loops ----------------------------------------------------------------------------

PROGRAMS: dict[str, Any] = {
    "softmax": (models.softmax, [f32(64, 50_257)]),
    "log_softmax": (models.log_softmax, [f32(64, 50_257)]),
    "layer norm": (models.layernorm, [f32(999, 70_000), f32(70_000), f32(70_000)]),
    "sum of two axes": (lambda x: ops.reduce_sum(x, axes=(0, 2)), [f32(300, 64, 300)]),
    "sum of long columns": (lambda x: ops.reduce_sum(x, axes=(0,)), [f32(70_000, 600)]),
    "sum of a long and a short axis": (lambda x: ops.reduce_sum(x, axes=(0, 2)), [f32(100_000, 64, 130)]),
    "largest": (lambda x: ops.reduce_max(x, axes=(1,)), [ArrayType((64, 70_000), dtypes.f16)]),
    "place of the largest": (lambda x: ops.argmax(x, axis=1, dtype=dtypes.i32), [f32(64, 70_000)]),
    "scan of many rows": (lambda x: ops.cumsum(x, axis=1, reverse=False), [i32(9000, 70_000)]),
    "scan of few rows": (lambda x: ops.cumsum(x, axis=1, reverse=True), [i32(64, 70_000)]),
    "dot": (
        lambda a, b: ops.dot_general(a, b, dimension_numbers=(((1,), (0,)), ((), ()))),
        [f32(16, 70_000), f32(70_000, 16)],
    ),
    "dot of tiles": (
        lambda a, b: ops.dot_general(a, b, dimension_numbers=(((1,), (0,)), ((), ()))),
        [f32(512, 1_000_003), f32(1_000_003, 512)],
    ),
    "rows beside their sums": (
        lambda x: (y := ops.exp(x), ops.reduce_sum(y, axes=(1,)), ops.reverse(y, axes=(1,))),
        [f32(64, 70_000)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_thread_runs_more_rounds_than_its_driver_lets_it(name: str):
    function, types = PROGRAMS[name]

    codes = stages(program_of(function, *types), PIPE, check=True).codes

    most = {name: most_rounds(code.body) for name, code in codes.items()}
    assert all(m is not None and m <= LLVMPIPE_ROUNDS for m in most.values()), most


def test_rounds_that_cannot_be_shared_are_refused_by_name():
    narrow = replace(PIPE, threads_per_workgroup=1)  # no other threads to share with
    function, types = PROGRAMS["dot"]

    with pytest.raises(DeviceError, match=r"cannot run on test:0 \(up to \d+ rounds .* 65535\)"):
        stages(program_of(function, *types), narrow)


def test_rounds_of_open_sizes_are_counted_for_each_call():
    n = symbol("n", 1, None)
    program = program_of(models.softmax, f32(64, n))

    (code,) = stages(program, PIPE, check=True).codes.values()

    assert most_rounds(code.body) is None
    assert (most_rounds(code.body, {"n": 50_257}) or 0) < LLVMPIPE_ROUNDS
    assert (most_rounds(code.body, {"n": 1 << 30}) or 0) > LLVMPIPE_ROUNDS


def test_the_rows_after_the_last_tile_of_an_open_size_are_few():
    def layer(w, b, x):
        return rnp.maximum(x @ w + b, 0.0)

    w, b = np.ones((64, 32), np.float32), np.ones(32, np.float32)
    for device in [d.name for d in rune.devices() if d.target.backend in ("vulkan", "wgpu")]:
        program = rune.jit(layer, dims={"n": (1, 4096)}, in_dims=(None, None, "n"), device=device)
        for n in (1, 1797):
            rows = np.asarray(program(w, b, np.ones((n, 64), np.float32)))
            assert np.array_equal(rows, np.full((n, 32), 65.0, np.float32))
