"""tune: what it reports, that calls are made by winners, and that no search changes a value."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import device_named
from rune.errors import ArgumentError, OutOfMemory
from rune.lowering.build import build
from rune.lowering.build.schedule import Schedule, parse
from rune.lowering.kernels import Kernel
from rune.transforms.tuning import trials, tune, winners
from rune.transforms.tuning.one_kernel import arguments, plan_of, types_at
from rune.transforms.tuning.report import Progress
from rune.transforms.tuning.search import EXPLORING, Dropped, Loser, Outcome
from rune.transforms.tuning.trials import Timed, Trials, agrees

X = np.random.default_rng(0).normal(size=(8, 12, 35)).astype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path):
    with rune.configure(cache_dir=str(tmp_path)):
        winners.forget()
        yield tmp_path
    winners.forget()


def sums(x: Any) -> Any:
    return rnp.sum(rnp.square(x), axis=2)


def winning(text: str) -> Any:
    """A search that always ends with this schedule."""

    def search(default: Schedule, space: list[Schedule], *_: object) -> Outcome:
        assert parse(text) in space
        return Outcome(default, parse(text), 0.5, 1e-3, 2e-3, len(space), 3, (Loser(default, "slower, 2"),), True)

    return search


def schedule_of(f: Any, *args: Any) -> str:
    return rune.explain(f)(*args)["schedules"]


# --- what has won ---------------------------------------------------------------------------------


def test_calls_are_made_by_the_winner_after_tune(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tune, "search", winning("parts(8)"))
    f = rune.jit(sums)
    f(X)
    rune.tune(f)(X)

    with rune.counting() as counts:
        np.testing.assert_allclose(f(X), np.square(X.astype(float)).sum(2), rtol=1e-5)
    assert counts.compiles == 1
    assert schedule_of(f, X) == "sum_0: parts(8)  # winner of a search"


def test_with_searches_off_only_defaults_are_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tune, "search", winning("parts(8)"))
    f = rune.jit(sums)
    rune.tune(f)(X)

    with rune.configure(search="off"):
        assert schedule_of(f, X) == "sum_0: plain  # default"


def test_a_requested_schedule_is_not_searched():
    f = rune.jit(sums, schedule={"sum_0": "parts(4)"})

    assert rune.tune(f)(X).kernels == ()
    assert schedule_of(f, X) == "sum_0: parts(4)  # asked for"


def test_a_first_call_searches_if_the_settings_say_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tune, "search", winning("parts(4)"))
    f = rune.jit(sums)

    with rune.configure(search=3.0), rune.counting() as counts:
        f(X)
        f(X)
        assert schedule_of(f, X) == "sum_0: parts(4)  # winner of a search"
    assert counts.searches == 1


def test_a_kernel_that_was_searched_is_not_searched_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tune, "search", winning("parts(4)"))
    rune.tune(sums)(X)

    with rune.counting() as counts:
        outcome = rune.tune(sums, search="full")(X)
    assert (counts.searches, outcome["sum_0"].note) == (0, "known from an earlier search")


def test_it_is_searched_again_on_request(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tune, "search", winning("parts(4)"))
    rune.tune(sums)(X)

    with rune.counting() as counts:
        rune.tune(sums, again=True)(X)
    assert counts.searches == 1


def test_a_longer_search_begins_with_the_winner_of_a_shorter_one(monkeypatch: pytest.MonkeyPatch):
    firsts: list[list[Schedule]] = []

    def search(default: Schedule, space: list[Schedule], *others: Any) -> Outcome:
        firsts.append(others[-1])
        return Outcome(default, parse("parts(4)"), 0.5, 1.0, 2.0, len(space), 1, (), False)

    monkeypatch.setattr(tune, "search", search)
    rune.tune(sums, search=1.0)(X)
    rune.tune(sums, search=2.0)(X)

    assert firsts == [[], [parse("parts(4)")]]


PROCESS = """
import sys
import numpy as np
import rune
import rune.numpy as rnp
rune.configure(cache_dir=sys.argv[1], search=0.1)
rune.jit(lambda x: rnp.sum(x, axis=1))(np.ones((8, 35), np.float32))
print(rune.counters().searches)
"""


def test_a_second_process_searches_nothing(folder: Path):
    command = [sys.executable, "-c", PROCESS, str(folder)]
    searches = [int(subprocess.run(command, capture_output=True, check=True, text=True).stdout) for _ in range(2)]

    assert searches == [1, 0]


# --- real searches --------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0", "reference:0"])
def test_a_real_search_keeps_every_value(device: str):
    f = rune.jit(lambda x: rnp.argmax(x, axis=1) + 1, device=device)
    rune.tune(f, search=0.3)(X)

    np.testing.assert_array_equal(f(X), np.argmax(X, axis=1) + 1)


def test_a_kernel_of_open_sizes_is_timed_at_those_of_the_call():
    f = rune.jit(sums, dims={"n": (1, 4096)}, in_dims=("n,_,_",))
    outcome = rune.tune(f, search=0.2)(X)

    assert outcome.kernels[0].default_seconds > 0
    np.testing.assert_allclose(f(X[:3]), np.square(X[:3].astype(float)).sum(2), rtol=1e-5)


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0", "vulkan:0", "wgpu:0"])
def test_candidates_agree_with_the_default_on_an_executor(device: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trials, "DEADLINE_S", 1e9)  # a busy machine would drop a candidate before it is compared
    where = device_named(device)
    (kernel,) = rune.explain(sums, device=device)(X).lowered.kernels.kernels.values()
    trial = Trials(kernel, where, {}, 0)
    trial.prepare(parse("plain"))

    for text in ("parts(4)", "vectors(2, lanes=1)", "parts(8) vectors(3, lanes=4)"):
        assert trial.prepare(parse(text))() > 0


@pytest.mark.parametrize("device", ["opencl:0", "vulkan:0"])
def test_a_device_with_a_clock_is_timed_by_it_and_not_by_the_host(device: str):
    (kernel,) = rune.explain(sums, device=device)(X).lowered.kernels.kernels.values()
    where = device_named(device)
    stopwatch = Timed.of(plan_of(kernel, build(kernel, parse("plain"), where.target), device), where.backend)
    values = [where.backend.copy_in(v) for v in arguments(kernel, types_at(kernel.inputs, {}), 0)]

    before = stopwatch.clock()
    assert stopwatch.clock() == before
    stopwatch.executable(values)
    assert stopwatch.clock() > before


# --- what is dropped ------------------------------------------------------------------------------


def trial_of(function: Any, *args: Any) -> Trials:
    (kernel,) = rune.explain(function)(*args).lowered.kernels.kernels.values()
    trial = Trials(kernel, device_named("cpu:0"), {}, 5)
    trial.prepare(parse("plain"))
    return trial


def test_a_schedule_that_disagrees_is_dropped_with_its_name_and_seed(monkeypatch: pytest.MonkeyPatch):
    trial = trial_of(sums, X)
    monkeypatch.setattr(trials, "agrees", lambda reference, actual: False)

    with pytest.raises(Dropped, match=r"disagrees, y0 by parts\(4\) on arguments of seed 5"):
        trial.prepare(parse("parts(4)"))


def test_an_illegal_schedule_is_dropped_with_the_reason():
    with pytest.raises(Dropped, match=r"fails, ArgumentError: schedule: cannot apply parts\(64\) to sum_0"):
        trial_of(sums, X).prepare(parse("parts(64)"))


def test_a_schedule_beyond_its_deadline_is_dropped(monkeypatch: pytest.MonkeyPatch):
    trial = trial_of(sums, X)
    monkeypatch.setattr(trials, "DEADLINE", 0)
    monkeypatch.setattr(trials, "DEADLINE_S", 0)

    with pytest.raises(Dropped, match="beyond its deadline, "):
        trial.prepare(parse("parts(4)"))


def test_a_schedule_of_very_many_statements_is_not_compiled(monkeypatch: pytest.MonkeyPatch):
    trial = trial_of(sums, X)
    monkeypatch.setattr(trials, "MOST_STATEMENTS", 10)

    with pytest.raises(Dropped, match="too long to compile, "):
        trial.prepare(parse("parts(8)"))


def test_a_search_out_of_memory_keeps_the_default_and_notes_the_reason(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OutOfMemory("cpu: cannot allocate 5 B")

    monkeypatch.setattr(tune, "Trials", refuse)
    (kernel,) = rune.tune(sums)(X).kernels

    assert (kernel.winner, kernel.note) == ("plain", "out of memory: cpu: cannot allocate 5 B")
    origin = "default, a search found none faster (out of memory: cpu: cannot allocate 5 B)"
    assert schedule_of(rune.jit(sums), X) == f"sum_0: plain  # {origin}"


def test_a_search_out_of_time_keeps_the_default_and_notes_the_reason():
    outcome = rune.tune(sums, search=1e-9)(X)

    assert (outcome["sum_0"].winner, outcome["sum_0"].note) == ("plain", "out of time")
    assert schedule_of(rune.jit(sums), X) == "sum_0: plain  # default, a search found none faster (out of time)"


@pytest.mark.parametrize(
    ("dtype", "reference", "actual", "same"),
    [
        ("float32", [1.0, np.nan, np.inf], [1.00001, np.nan, np.inf], True),
        ("float32", [1.0, 2.0], [1.0, 2.1], False),
        ("float32", [1.0, np.nan], [1.0, 1.0], False),
        ("float64", [1.0, 2.0], [1.0, 2.00001], False),
        ("int32", [1, 2], [1, 2], True),
        ("int32", [1, 2], [1, 3], False),
        ("bool", [True], [False], False),
    ],
)
def test_results_agree_but_for_the_order_of_sums(dtype: str, reference: list, actual: list, same: bool):
    assert agrees(np.array(reference, dtype), np.array(actual, dtype)) is same


# --- arguments ------------------------------------------------------------------------------------


def kernels_of(function: Any, *args: Any) -> list[Kernel]:
    return list(rune.explain(function)(*args).lowered.kernels.kernels.values())


def test_arguments_that_are_indices_are_in_range():
    (kernel,) = kernels_of(lambda x, i: x[i], np.ones((7, 40), np.float32), np.zeros(300, np.int32))
    index, table = arguments(kernel, types_at(kernel.inputs, {}), 0)

    assert set(index.tolist()) == set(range(7))
    assert 0.25 <= table.min()
    assert table.max() < 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32"])
def test_arguments_have_the_dtype_and_are_finite(dtype: str):
    kernel = kernels_of(lambda x: x != x[::-1], rnp.ones((5, 9), dtype))[0]
    (values,) = arguments(kernel, types_at(kernel.inputs, {}), 0)

    assert (str(values.dtype), values.shape) == (dtype, (5, 9))
    assert np.isfinite(values.astype(float)).all()


# --- reports and messages -------------------------------------------------------------------------


def test_the_report_reads_well(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tune, "search", winning("parts(8)"))

    assert str(rune.tune(sums)(X)) == (
        "tuned sums on cpu:0\n"
        "sum_0: plain (default) -> parts(8)\n"
        "  2 ms -> 1 ms, 0.50 of the time\n"
        f"  3 of {rune.tune(sums, again=True)(X).kernels[0].candidates} schedules tried: 1 slower"
    )


@pytest.fixture
def two_tries(monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds of a search in which two schedules are tried, by a clock that each look advances."""
    monkeypatch.setattr(tune, "perf_counter", itertools.count().__next__)
    return 3 / EXPLORING


def test_a_progress_callback_receives_the_progress(two_tries: float):
    reports: list[Progress] = []
    rune.tune(sums, search=two_tries, progress=reports.append)(X)

    assert [(p.kernel, p.tried) for p in reports] == [("sum_0", 1), ("sum_0", 2)]
    assert all(p.tried <= p.candidates for p in reports)


def test_progress_is_a_line_of_a_terminal_which_is_cleared(
    two_tries: float, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    rune.tune(sums, search=two_tries)(X)
    text = capsys.readouterr().err

    assert "\rtune 1/1 sum_0: 1/" in text.replace("\x1b[K", "")
    assert text.endswith("\r\x1b[K")


def test_elsewhere_nothing_is_written(two_tries: float, capsys: Any):
    rune.tune(sums, search=two_tries)(X)

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("search", ["off", "stored", "long", 0, -1.0, float("nan"), float("inf"), True, None])
def test_tune_takes_seconds_or_all(search: Any):
    with pytest.raises(ArgumentError, match=r"tune: cannot search .* \('full', or a positive number of seconds\)"):
        rune.tune(sums, search=search)


@pytest.mark.parametrize("search", ["long", 0, -1.0, float("nan"), float("inf"), True, None])
def test_settings_take_seconds_or_words(search: Any):
    with pytest.raises(
        ArgumentError, match=r"configure: cannot use search=.* \('stored', 'off', 'full', or a positive"
    ):
        rune.configure(search=search)


def test_a_function_on_several_devices_is_refused():
    def moving(x: Any) -> Any:
        return rnp.exp(rune.device_put(rnp.sin(x), "reference"))

    with pytest.raises(ArgumentError, match=r"tune: cannot search for moving \(it runs on several devices\)"):
        rune.tune(moving)(X)


def test_a_schedule_without_memory_for_it_is_dropped_with_the_reason(monkeypatch: pytest.MonkeyPatch):
    def refuse(schedule: Schedule) -> None:
        raise OutOfMemory("opencl: cannot allocate 5 B")

    trial = trial_of(sums, X)
    monkeypatch.setattr(trial, "_prepared", refuse)

    with pytest.raises(Dropped, match=r"^out of memory, opencl: cannot allocate 5 B"):
        trial.prepare(parse("parts(4)"))
