"""Plans whose code was made in a hurry: the same bits, and better code once calls are worth it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import compiler, drafts
from rune.backends.cpu.drafts import DraftExecutable
from rune.errors import OutOfMemory
from rune.transforms.compile.executables import compiled, device_for
from rune.typing import Array

X = np.linspace(-3, 3, 37 * 41, dtype=np.float32).reshape(37, 41)
HARD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, -1e-40], np.float32)


def draft_of(function: Callable[..., object], *arrays: np.ndarray) -> DraftExecutable:
    """What `jit` would run for the function at its first call."""
    executable = compiled(rune.make_program(function)(*map(rnp.asarray, arrays)), device_for(None))
    assert isinstance(executable, DraftExecutable)
    return executable


def bits(array: np.ndarray) -> bytes:
    """Those of an array, one NaN standing for all: IEEE 754 leaves open which it is."""
    canonical = array.copy()
    canonical[np.isnan(array)] = np.nan if array.dtype.kind in "fc" else 0
    return canonical.tobytes()


def softmax_of_products(x: Array) -> Array:
    return rune.nn.softmax(x @ x.T, axis=-1)


def statistics(x: Array) -> list[Array]:
    return [rnp.sort(x, axis=0), rnp.cumsum(x, axis=1), rnp.median(x), rnp.argmax(x, axis=0), x.T.astype("float16")]


def recurrence(x: Array) -> Array:
    return rune.grad(lambda x: rune.scan(lambda c, row: (rnp.tanh(c + row), c.sum()), x[0], x)[1].sum())(x)


def solution(x: Array) -> Array:
    return rune.scipy.linalg.cho_solve((rnp.linalg.cholesky(x @ x.T + rnp.eye(len(x))), True), x)


def spectrum(x: Array) -> Array:
    return rnp.fft.fft2(x)


def functions(x: Array) -> list[Array]:
    return [rnp.exp(x), rnp.log(x), rnp.arctan2(x, x[::-1]), rnp.power(x, x), rnp.nextafter(x, x * 2), x % 0.7]


@pytest.fixture(autouse=True)
def _no_haste(monkeypatch):
    """On a busy machine a draft's first calls may take long."""
    monkeypatch.setattr(drafts, "PATIENCE", 1e9)


@pytest.mark.parametrize("function", [softmax_of_products, statistics, recurrence, solution, spectrum, functions])
@pytest.mark.parametrize("shape", [(1, 1), (37, 41), (129, 127)], ids=str)
@pytest.mark.parametrize("numbers", [X, HARD], ids=["numbers", "hard numbers"])
def test_a_draft_gives_the_bits_of_the_code_that_stays(
    function: Callable[..., object], numbers: np.ndarray, shape: tuple[int, int]
):
    x = np.resize(numbers, shape)
    executable = draft_of(function, x)
    hurried = [np.copy(y) for y in executable([x])]
    assert executable.is_draft

    executable.refine()

    assert not executable.is_draft
    for before, after in zip(hurried, map(np.asarray, executable([x])), strict=True):
        assert bits(before) == bits(after)


def test_code_is_made_with_effort_when_native_code_is_to_make_the_calls():
    f, x = rune.jit(lambda x: rnp.sin(x) + 1), rnp.asarray(X)
    efforts = []
    for _ in range(3):
        f(x)
        efforts.append(f.traced(x).on_cpu.code.effort)  # type: ignore[union-attr]

    assert efforts == [compiler.HURRY, compiler.EFFORT, compiler.EFFORT]


def test_code_is_made_with_effort_when_calls_by_python_have_taken_long(monkeypatch):
    executable = draft_of(lambda x: rnp.sin(x), X)
    seconds = iter(range(100))
    monkeypatch.setattr(drafts, "perf_counter", seconds.__next__)
    monkeypatch.setattr(drafts, "PATIENCE", 2.5)

    drafted = [executable([X]) and executable.is_draft for _ in range(5)]

    assert drafted == [True, True, False, False, False]


def long_product(x: Array) -> Array:
    tall = rnp.tile(x, (14, 13))
    return tall @ tall.T


def halving(x: Array) -> Array:
    return rune.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)


def many_steps(x: Array) -> Array:
    return rune.fori_loop(0, 10_000, lambda k, x: rnp.sin(x), x)


@pytest.mark.parametrize("function", [long_product, halving, many_steps])
def test_work_that_may_be_long_is_compiled_with_effort_at_once(function: Callable[..., object]):
    assert not draft_of(function, X).is_draft


def test_work_of_open_sizes_is_compiled_with_effort_at_once():
    f = rune.jit(rnp.sin, dims={"n": (1, 99)}, in_dims=("n",))
    executable = compiled(f.program(X[0]), device_for(None))

    assert isinstance(executable, DraftExecutable)
    assert not executable.is_draft


def test_a_recorded_plan_has_the_code_that_stays():
    executable = device_for(None).backend.record(draft_of(rnp.sin, X).plan)

    assert executable.code.effort == compiler.EFFORT  # type: ignore[attr-defined]


def test_without_memory_for_better_code_the_draft_stays_and_answers(monkeypatch):
    executable = draft_of(rnp.cos, X)

    def refuse(*_: object) -> None:
        raise OutOfMemory("cpu: cannot compile cos")

    with monkeypatch.context() as patch:
        patch.setattr(drafts, "compiled", refuse)
        executable.refine()

    assert executable.is_draft
    np.testing.assert_allclose(executable([X])[0], np.cos(X), rtol=1e-6)


def test_threads_may_call_while_the_code_is_replaced():
    executable, start = draft_of(softmax_of_products, X), threading.Barrier(4)
    wanted, answers = np.copy(executable([X])[0]), []

    def run(number: int) -> None:
        start.wait()
        for _ in range(50):
            answers.append(np.array_equal(executable([X])[0], wanted))
            if number == 0:
                executable.refine()

    threads = [threading.Thread(target=partial(run, n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 200
