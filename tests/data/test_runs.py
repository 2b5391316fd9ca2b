"""Runs: elements by number are those in order, a run resumes exactly where another stopped, and
workers change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rune
from rune import data
from rune.errors import ArgumentError, DataError
from tests.data.functions import refuse_five, square
from tests.support.close import same

Stages = Callable[[data.Pipeline], data.Pipeline]


def plain(element: Any) -> Any:
    """An element as lists and numbers, to be compared."""
    if isinstance(element, tuple):
        return tuple(map(plain, element))
    return np.asarray(element).tolist()


def known_stages() -> st.SearchStrategy[list[tuple[str, Stages]]]:
    """Stages of sources with a known length, with their names."""
    return st.lists(
        st.one_of(
            st.integers(0, 3).map(lambda k: (f"shuffle({k})", lambda p: p.shuffle(k))),
            st.tuples(st.integers(0, 2), st.integers(3, 4)).map(lambda c: (f"shard{c}", lambda p: p.shard(*c))),
            st.integers(1, 3).map(lambda k: (f"repeat({k})", lambda p: p.repeat(k))),
            st.integers(1, 3).map(lambda k: (f"map(workers={k})", lambda p: p.map(plain, workers=k))),
            st.just(("map", lambda p: p.map(plain))),
            st.just(("enumerate", lambda p: p.enumerate().map(lambda pair: pair[1]))),
            st.just(("prefetch", lambda p: p.prefetch("cpu", depth=1))),
        ),
        max_size=4,
    )


def stream_stages() -> st.SearchStrategy[list[tuple[str, Stages]]]:
    """Stages of streams."""
    return st.lists(
        st.one_of(
            st.integers(0, 3).map(lambda k: (f"shuffle({k})", lambda p: p.shuffle(k, buffer=4))),
            st.integers(0, 1).map(lambda k: (f"shard({k})", lambda p: p.shard(k, 2))),
            st.integers(1, 3).map(lambda k: (f"repeat({k})", lambda p: p.repeat(k))),
            st.integers(1, 3).map(lambda k: (f"map(workers={k})", lambda p: p.map(plain, workers=k))),
            st.just(("enumerate", lambda p: p.enumerate().map(lambda pair: pair[1]))),
            st.just(("prefetch", lambda p: p.prefetch("cpu", depth=1))),
        ),
        max_size=4,
    )


def built(source: data.Pipeline, stages: list[tuple[str, Stages]], batch: int | None) -> data.Pipeline:
    for _, add in stages:
        source = add(source)
    return source if batch is None else source.batch(batch)


@settings(deadline=None)
@given(stages=known_stages(), size=st.integers(0, 23), batch=st.none() | st.integers(1, 5))
def test_a_run_gives_the_elements_by_number(stages, size, batch):
    pipeline = built(data.sequence(range(size)), stages, batch)

    assert [plain(x) for x in pipeline] == [plain(pipeline[n]) for n in range(len(pipeline))]


@settings(deadline=None)
@given(stages=known_stages(), size=st.integers(1, 23), batch=st.none() | st.integers(1, 5), at=st.integers(0, 30))
def test_a_restored_run_gives_what_the_other_one_had_left(stages, size, batch, at):
    _goes_on_exactly(built(data.sequence(range(size)), stages, batch), at)


@settings(deadline=None)
@given(stages=stream_stages(), size=st.integers(1, 23), batch=st.none() | st.integers(1, 5), at=st.integers(0, 30))
def test_a_restored_run_of_a_stream_gives_what_the_other_one_had_left(stages, size, batch, at):
    _goes_on_exactly(built(data.iterable(range(size)), stages, batch), at)


def _goes_on_exactly(pipeline: data.Pipeline, at: int) -> None:
    everything = [plain(x) for x in pipeline]
    run = iter(pipeline)
    before = [plain(x) for x, _ in zip(run, range(at))] if at else []
    state = json.loads(json.dumps(run.state()))
    # `zip` asks for one element more than it needs, unless the second one ends first.
    place = state["element"]

    after = [plain(x) for x in pipeline.restore(state)]

    run.close()
    assert before == everything[: len(before)]
    assert after == everything[place:]


@settings(deadline=None)
@given(size=st.integers(0, 23), batch=st.integers(1, 5), workers=st.integers(1, 4))
def test_workers_change_no_element(size, batch, workers):
    rows = data.sequence(range(size)).shuffle(0)

    alone = [plain(b) for b in rows.map(square).batch(batch)]
    together = [plain(b) for b in rows.map(square, workers=workers).batch(batch)]

    assert together == alone


def test_elements_read_ahead_are_not_counted():
    run = iter(data.sequence(range(100)).map(square, workers=4).prefetch("cpu", depth=8))

    for _ in range(2):
        next(run)

    assert run.state()["element"] == 2
    run.close()


def test_a_state_of_another_order_is_refused():
    state = iter(data.sequence("abc").shuffle(0)).state()

    with pytest.raises(ArgumentError, match="another order"):
        data.sequence("abc").shuffle(1).restore(state)


def test_a_state_fits_a_pipeline_with_other_functions_workers_and_devices():
    state = iter(data.sequence(range(4)).map(square).batch(2)).state()

    assert [plain(x) for x in data.sequence(range(4)).map(abs, workers=2).batch(2).prefetch("cpu").restore(state)] == [
        [0, 1],
        [2, 3],
    ]


@pytest.mark.parametrize("state", [None, {}, {"element": 3}, 7])
def test_a_value_that_is_not_a_state_is_refused(state: Any):
    with pytest.raises(ArgumentError, match="restore: cannot go on from"):
        data.sequence("abc").restore(state)


def test_a_state_goes_through_a_file_of_arrays(tmp_path: Path):
    run = iter(data.sequence(range(9)).shuffle(0).batch(2))
    next(run)

    rune.tree.save(tmp_path / "state.npz", run.state())
    state = rune.tree.load(tmp_path / "state.npz")

    same([x.tolist() for x in data.sequence(range(9)).shuffle(0).batch(2).restore(state)], [x.tolist() for x in run])


def test_a_state_of_one_process_fits_the_part_of_another():
    state = iter(data.sequence(range(9)).shard(0, 3)).state()

    assert list(data.sequence(range(9)).shard(2, 3).restore(state)) == [2, 5, 8]


def test_a_restored_run_calls_no_function_on_what_was_used():
    calls: list[int] = []
    pipeline = data.sequence(range(9)).shuffle(0).map(lambda x: calls.append(x) or x).batch(2)

    list(pipeline.restore({"element": 4, "order": iter(pipeline).state()["order"]}))

    assert len(calls) == 1


def test_an_error_names_its_element_and_the_line_of_the_map():
    run = iter(data.sequence(range(9)).map(refuse_five))

    with pytest.raises(ValueError, match="five is refused") as error:
        list(run)

    notes = "\n".join(error.value.__notes__)
    assert "at element 5 of sequence[9]" in notes
    assert "run = iter(data.sequence(range(9)).map(refuse_five))" in notes
    assert error.traceback[-1].name == "refuse_five"


@pytest.mark.parametrize("workers", [None, 3])
@pytest.mark.parametrize("depth", [None, 2])
def test_an_error_in_a_thread_is_raised_with_the_users_line(workers, depth):
    pipeline = data.sequence(range(9)).map(refuse_five, workers=workers)
    pipeline = pipeline if depth is None else pipeline.prefetch("cpu", depth)

    with pytest.raises(ValueError, match="five is refused") as error:
        list(pipeline)

    assert error.traceback[-1].name == "refuse_five"


def test_a_run_does_not_continue_after_an_error():
    run = iter(data.sequence(range(9)).map(refuse_five))
    with pytest.raises(ValueError, match="five"):
        list(run)

    with pytest.raises(DataError, match="it ended with ValueError at element 5"):
        next(run)


def test_a_function_that_raises_stop_iteration_ends_nothing_silently():
    def ends(_: Any) -> Any:
        raise StopIteration

    for workers in (None, 2):
        with pytest.raises(RuntimeError):
            list(data.sequence(range(9)).map(ends, workers=workers))


def test_a_run_reports_how_many_elements_remain():
    run = iter(data.sequence(range(9)).batch(2))
    next(run)

    assert length_hint(run) == 4
    assert length_hint(iter(data.iterable("abc")), -1) == -1


def test_pipelines_may_be_nested():
    inner = data.sequence(range(6)).batch(2).map(np.sum, workers=2)

    outer = data.sequence(inner).map(lambda s: [s + sum(inner)], workers=2)

    assert [int(x[0]) for x in outer] == [1 + 15, 5 + 15, 9 + 15]
