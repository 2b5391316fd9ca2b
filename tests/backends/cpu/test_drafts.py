"""Drafts, code that is compiled quickly: the same bits, and better code after many calls."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import array_checks, compiler, conventions, costs, drafts, llvm, plan
from rune.backends.cpu.drafts import DraftExecutable
from rune.backends.cpu.host_abi import MISCOUNTED
from rune.backends.cpu.linalg import symmetric
from rune.backends.shared.work import Work
from rune.errors import OutOfMemory
from rune.lowering.plan import Loop
from rune.transforms.compile.executables import compiled, device_for
from rune.typing import Array
from tests.support.bits import assert_same_bits, bits

X = np.linspace(-3, 3, 37 * 41, dtype=np.float32).reshape(37, 41)
HARD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, -1e-40], np.float32)


def draft_of(function: Callable[..., object], *arrays: np.ndarray) -> DraftExecutable:
    """The plan that `jit` would run at the first call of the function."""
    executable = compiled(rune.make_program(function)(*map(rnp.asarray, arrays)), device_for(None))
    assert isinstance(executable, DraftExecutable)
    return executable


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
    monkeypatch.setattr(conventions, "PATIENCE", 1e9)


@pytest.mark.parametrize("function", [softmax_of_products, statistics, recurrence, solution, spectrum, functions])
@pytest.mark.parametrize("shape", [(1, 1), (37, 41), (129, 127)], ids=str)
@pytest.mark.parametrize("numbers", [X, HARD], ids=["numbers", "hard numbers"])
def test_a_draft_gives_the_bits_of_the_final_code(
    function: Callable[..., object], numbers: np.ndarray, shape: tuple[int, int]
):
    x = np.resize(numbers, shape)
    executable = draft_of(function, x)
    draft_results = [np.copy(y) for y in executable([x])]
    assert executable.is_draft

    executable.refine()

    assert not executable.is_draft
    for before, after in zip(draft_results, map(np.asarray, executable([x])), strict=True):
        assert_same_bits(before, after)


def test_devices_that_share_a_draft_share_its_final_code(monkeypatch):
    executable, compile_module, modules = draft_of(recurrence, X), compiler.compile_module, []
    twins = [executable.on(Work()) for _ in range(3)]
    twins.append(twins[0].on(Work()))
    monkeypatch.setattr(compiler, "compile_module", lambda *args: modules.append(args) or compile_module(*args))

    for twin in (*twins, executable):
        twin.refine()

    assert len(modules) == 1
    assert all(twin.code is executable.code for twin in twins)
    assert {bits(np.asarray(run([X])[0])) for run in (executable, *twins)} == {
        bits(np.asarray(draft_of(recurrence, X)([X])[0]))
    }


def test_code_is_made_with_effort_when_native_code_is_to_make_the_calls():
    f, x = rune.jit(lambda x: rnp.sin(x) + 1), rnp.asarray(X)
    efforts = []
    for _ in range(3):
        f(x)
        efforts.append(f.traced(x).on_cpu.code.effort)  # type: ignore[union-attr]

    assert efforts == [conventions.HURRY, conventions.EFFORT, conventions.EFFORT]


def test_a_draft_is_kept_longer_if_the_final_code_compiles_slowly(monkeypatch):
    f, x = rune.jit(lambda x: [rnp.sin(x) + 1, x.sum()]), rnp.asarray(X)
    monkeypatch.setattr(conventions, "BYTE", 1.0)

    def effort() -> int:
        y, total = f(x)
        np.testing.assert_allclose(y, np.sin(X) + 1, atol=1e-6)
        np.testing.assert_allclose(total, X.sum(dtype=np.float64), atol=1e-3)
        return f.traced(x).on_cpu.code.effort  # type: ignore[union-attr]

    assert [effort() for _ in range(7)] == [conventions.HURRY] * 7

    seconds = iter(range(0, 10**9, 10**7))  # of each call that is measured from now on
    monkeypatch.setattr(drafts, "perf_counter", seconds.__next__)
    assert [effort() for _ in range(3)] == [conventions.HURRY, conventions.EFFORT, conventions.EFFORT]


def test_code_is_made_with_effort_when_calls_by_python_have_taken_long(monkeypatch):
    executable = draft_of(lambda x: rnp.sin(x), X)
    seconds = iter(range(100))
    monkeypatch.setattr(drafts, "perf_counter", seconds.__next__)
    monkeypatch.setattr(conventions, "PATIENCE", 2.5)

    is_draft = [executable([X]) and executable.is_draft for _ in range(5)]

    assert is_draft == [True, True, True, False, False]


def long_product(x: Array) -> Array:
    tall = rnp.tile(x, (14, 13))
    return tall @ tall.T


def halving(x: Array) -> Array:
    return rune.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)


def many_steps(x: Array) -> Array:
    return rune.fori_loop(0, 10_000, lambda k, x: rnp.sin(x), x)


def counting(x: Array) -> Array:
    """Inner loops that data end, in a long loop."""
    return rune.fori_loop(0, 10_000, lambda _, x: halving(x / 2), x)


def telling(x: Array) -> Array:
    return rune.while_loop(lambda x: x.sum() > 1, lambda x: rune.pure_callback(np.negative, x, x), x)


@pytest.mark.parametrize("function", [long_product, counting, many_steps, telling])
def test_work_that_may_be_long_is_compiled_with_effort_at_once(function: Callable[..., object]):
    assert not draft_of(function, X).is_draft


def test_work_of_open_sizes_is_compiled_with_effort_at_once():
    f = rune.jit(rnp.sin, dims={"n": (1, 99)}, in_dims=("n",))
    executable = compiled(f.program(X[0]), device_for(None))

    assert isinstance(executable, DraftExecutable)
    assert not executable.is_draft


def test_a_recorded_plan_has_the_final_code():
    executable = device_for(None).backend.record(draft_of(rnp.sin, X).plan)

    assert executable.code.effort == conventions.EFFORT  # type: ignore[attr-defined]


def test_without_memory_for_the_final_code_the_draft_is_kept(monkeypatch):
    executable = draft_of(rnp.cos, X)

    def refuse(*_: object) -> None:
        raise OutOfMemory("cpu: cannot compile cos")

    with monkeypatch.context() as patch:
        patch.setattr(plan, "compiled", refuse)
        executable.refine()

    assert executable.is_draft
    np.testing.assert_allclose(executable([X])[0], np.cos(X), rtol=1e-6)


def test_threads_may_call_while_the_code_is_replaced():
    executable, start = draft_of(softmax_of_products, X), threading.Barrier(4)
    reference, answers = np.copy(executable([X])[0]), []

    def run(number: int) -> None:
        start.wait()
        for _ in range(50):
            answers.append(np.array_equal(executable([X])[0], reference))
            if number == 0:
                executable.refine()

    threads = [threading.Thread(target=partial(run, n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 200


def test_a_call_that_began_with_a_draft_has_an_arena_for_the_final_code(monkeypatch):
    """An earlier process may have stored a draft of a plan that is lowered differently now."""
    executable, place_behind, new_arena = draft_of(recurrence, X), plan.behind, DraftExecutable.new_arena
    reference, sizes = bits(executable([X])[0]), []
    results, arena = executable.memory([X])
    monkeypatch.setattr(plan, "behind", lambda plan, _: place_behind(plan, [1 << 16]))
    monkeypatch.setattr(DraftExecutable, "new_arena", lambda self, n: sizes.append(n) or new_arena(self, n))

    executable.refine()
    executable.checked(executable.native.call, [X], (*results, arena))

    assert arena.size < 1 << 16 <= sizes[0]
    assert bits(np.asarray(results[0])) == bits(executable([X])[0]) == reference


# --- loops that data end --------------------------------------------------------------------------


def powers(n: Array, x: Array) -> tuple[Array, Array]:
    """n steps, each of one multiplication and one addition modulo 2^32."""
    return rune.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 3 + 1), (rnp.int32(0), x))


def expected_power(n: int, x: np.ndarray) -> np.ndarray:
    """n steps y -> 3 y + 1 modulo 2**32, as 3**n x + (3**n - 1) / 2."""
    power = pow(3, n, 1 << 33)  # one bit more, for the half
    y = x.astype(np.uint32) * np.uint32(power % (1 << 32)) + np.uint32((power - 1) // 2)
    return y.view(np.int32)


START, SEVEN = np.arange(-3, 8, dtype=np.int32), np.array(7, np.int32)


def kernels_of(executable: DraftExecutable) -> costs.Kernels:
    return executable.kernels_of_code(executable.plan, plan.layouts_of(executable.plan, executable._host))


def steps_of_a_draft(executable: DraftExecutable) -> int:
    """After how many steps the loop gives up."""
    (loop,) = (step for step in executable.plan.steps if isinstance(step, Loop))
    return costs.rounds_of_draft(loop, kernels_of(executable), executable._host.machine)


def test_a_short_loop_that_data_end_runs_in_the_draft():
    executable = draft_of(powers, SEVEN, START)

    count, y = executable([np.array(7, np.int32), START])

    assert executable.is_draft
    assert (count, y.tolist()) == (7, expected_power(7, START).tolist())


@pytest.mark.parametrize("more", [-1, 0, 1, 977])
def test_a_long_loop_is_restarted_by_the_final_code(more: int):
    executable = draft_of(powers, SEVEN, START)
    n = steps_of_a_draft(executable) + more

    count, y = executable([np.array(n, np.int32), START])

    assert executable.is_draft == (more < 0)
    assert (count, y.tolist()) == (n, expected_power(n, START).tolist())


def powers_in_turn(rounds: int, n: Array, x: Array) -> tuple[Array, Array]:
    """In each of this many rounds n steps, with one step more in each next round."""
    return rune.fori_loop(0, rounds, lambda _, s: (s[0] + 1, powers(*s)[1]), (n, x))


def total_of(rounds: int, n: int) -> int:
    """The steps of all rounds."""
    return sum(max(0, n + k) for k in range(rounds))


@pytest.mark.parametrize("rounds", [2, 3, 7])  # one round is no loop
@pytest.mark.parametrize("more", [-1, 0, 1, 977])
def test_a_loop_that_data_end_inside_another_loop_has_a_share_of_its_steps(rounds: int, more: int):
    executable = draft_of(partial(powers_in_turn, rounds), SEVEN, START)
    assert executable.is_draft
    (outer,) = (step for step in executable.plan.steps if isinstance(step, Loop))
    (inner,) = (step for step in outer.body.steps if isinstance(step, Loop))
    n = costs.rounds_of_draft(inner, kernels_of(executable), executable._host.machine, rounds) + more - (rounds - 1)

    last, y = executable([np.array(n, np.int32), START])

    assert executable.is_draft == (more < 0)
    assert (last, y.tolist()) == (n + rounds, expected_power(total_of(rounds, n), START).tolist())


def test_a_loop_that_data_end_inside_one_of_its_kind_gives_up_too():
    def function(n: Array, x: Array) -> tuple[Array, Array]:
        return rune.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, powers(*s)[1]), (n, x))

    executable = draft_of(function, SEVEN, START)
    answers = []
    for n in (0, 1, 7, 40, 3001):
        answers.append((executable.is_draft, executable([np.array(n, np.int32), START])[1].tolist()))

    assert [is_draft for is_draft, _ in answers[:4]] == [True] * 4
    assert not executable.is_draft
    assert [y for _, y in answers] == [expected_power(n * (n + 1) // 2, START).tolist() for n in (0, 1, 7, 40, 3001)]


def test_a_plan_has_no_draft_that_would_never_run():
    program = rune.make_program(partial(powers_in_turn, 3))(rnp.int32(7), rnp.asarray(START))
    executable, x = compiled(program, device_for(None), (1,)), START.copy()

    _, y = executable([np.array(5, np.int32), x], (1,))

    assert isinstance(executable, DraftExecutable)
    assert not executable.is_draft
    assert y is x
    assert y.tolist() == expected_power(total_of(3, 5), START).tolist()


def test_a_loop_in_a_branch_and_after_many_steps_gives_up_too():
    def function(n: Array, x: Array) -> Array:
        for _ in range(40):
            x = rnp.sort(x * 3)[::-1]
        return rune.cond(n > 3, lambda: powers(n, x)[1], lambda: x)

    executable = draft_of(function, SEVEN, START)
    assert executable.is_draft
    x = START
    for _ in range(40):
        x = np.sort(x * np.int32(3))[::-1]
    for n in (2, 7, 1_000_003):
        (y,) = executable([np.array(n, np.int32), START])
        assert y.tolist() == (x if n <= 3 else expected_power(n, x)).tolist()
    assert not executable.is_draft


def test_a_loop_of_products_runs_in_the_draft():
    executable = draft_of(lambda x: rune.while_loop(lambda x: x.sum() < 1e6, lambda x: x @ x + 1, x), np.eye(5))

    (y,) = executable([np.eye(5, dtype=np.float32)])

    x = np.eye(5, dtype=np.float32)
    while x.sum() < 1e6:
        x = x @ x + 1
    assert executable.is_draft
    np.testing.assert_array_equal(y, x)


def test_lent_memory_is_not_written_to_by_a_run_that_gives_up():
    program = rune.make_program(powers)(rnp.int32(7), rnp.asarray(START))
    executable, x = compiled(program, device_for(None), (1,)), START.copy()
    assert isinstance(executable, DraftExecutable)
    n = steps_of_a_draft(executable) + 5

    _, y = executable([np.array(n, np.int32), x], (1,))

    assert y is x
    assert y.tolist() == expected_power(n, START).tolist()


def test_threads_that_give_up_at_once_all_get_their_numbers():
    executable = draft_of(powers, SEVEN, START)
    n = steps_of_a_draft(executable)
    answers: dict[int, list[int]] = {}

    def work(k: int) -> None:
        answers[k] = executable([np.array(n + k, np.int32), START])[1].tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(-2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {k: expected_power(n + k, START).tolist() for k in range(-2, 3)}


def test_without_memory_for_better_code_a_long_loop_raises(monkeypatch):
    executable = draft_of(powers, SEVEN, START)

    def refuse(*_: object) -> None:
        raise OutOfMemory("cpu: cannot compile powers")

    with monkeypatch.context() as patch:
        patch.setattr(plan, "compiled", refuse)
        with pytest.raises(OutOfMemory, match="cannot compile powers"):
            executable([np.array(10_000_000, np.int32), START])
    assert executable([np.array(2, np.int32), START])[1].tolist() == expected_power(2, START).tolist()


# --- what is not compiled for a draft -----------------------------------------------------------


def renew(monkeypatch: pytest.MonkeyPatch, room: ModuleType, *names: str) -> None:
    """Give functions new caches until the test ends; the old code stays, as threads may run it."""
    for name in names:
        monkeypatch.setattr(room, name, functools.cache(getattr(room, name).__wrapped__))


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that LLVM compiles from now on."""
    names: list[str] = []
    real = llvm.compiled

    def noted(name: str, *others: Any) -> Any:
        names.append(name)
        return real(name, *others)

    monkeypatch.setattr(llvm, "compiled", noted)
    renew(monkeypatch, array_checks, "array_checks")
    return names


def test_neither_the_pool_nor_the_checks_of_arrays_are_compiled_for_a_draft(modules: list[str]):
    with rune.configure(cache_dir=""):
        executable = draft_of(lambda x: x @ x.T + rnp.sin(x[:, :1]), X)
        executable([X])
        assert not {"pool", "array_checks"} & set(modules)
        executable.refine()

    assert "array_checks" in modules


def test_a_draft_takes_the_arrays_that_its_plan_was_made_for_and_no_others():
    executable = draft_of(lambda x, y: x * 2 + y, X, X[0])
    result, arena = np.empty_like(X), np.empty(0, np.uint8)

    class Other(np.ndarray):
        pass

    answers = [
        executable.native.call(*arguments, result, arena)
        for arguments in [
            (X, X[0]),
            (X.astype(np.float64), X[0]),
            (X, X[0].astype(np.int32)),
            (X[:36], X[0]),
            (X, X[0, :40]),
            (X[0], X[0]),
            (X, X),
            (np.asfortranarray(X), X[0]),
            (X, np.resize(X, 82)[::2]),
            (np.frombuffer(bytes(4 * X.size + 1), np.uint8)[1:].view(np.float32).reshape(X.shape), X[0]),
            (X.view(Other), X[0]),
            (X.tolist(), X[0]),
        ]
    ]

    assert answers == [0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1]
    np.testing.assert_array_equal(result, X * 2 + X[0])
    assert executable.native.call(X, result, arena) == MISCOUNTED


# --- eager decompositions -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_draft_of_an_eager_decomposition_gives_the_bits_of_the_final_code(dtype: type, monkeypatch):
    matrix = np.resize(X, (41, 41)).astype(dtype)
    matrix += matrix.T
    renew(monkeypatch, symmetric, "_eager")
    first = symmetric.decomposed(matrix, lower=True, vectors=True)
    assert symmetric._eager(matrix.dtype).effort == conventions.HURRY

    monkeypatch.setattr(conventions, "PATIENCE", 0.0)
    symmetric.decomposed(matrix, lower=True, vectors=True)
    assert symmetric._eager(matrix.dtype).effort == conventions.EFFORT

    for before, after in zip(first, symmetric.decomposed(matrix, lower=True, vectors=True), strict=True):
        assert_same_bits(before, after)


def test_without_memory_for_the_final_code_an_eager_decomposition_keeps_its_draft(monkeypatch):
    renew(monkeypatch, symmetric, "_eager", "_entry", "code")
    matrix = np.diag(np.arange(5, dtype=np.float32))
    symmetric.decomposed(matrix, lower=True, vectors=False)
    monkeypatch.setattr(conventions, "PATIENCE", 0.0)

    def refused(*_: object) -> object:
        raise OutOfMemory("no memory")

    monkeypatch.setattr(compiler, "compile_module", refused)
    for _ in range(2):
        (values,) = symmetric.decomposed(matrix, lower=True, vectors=False)
        np.testing.assert_array_equal(values, np.arange(5))

    assert symmetric._eager(matrix.dtype).effort == conventions.HURRY
