"""The order of elements, and their batches. Only numbers and keys determine it.

Python's lists are the oracle; a shuffle must be a permutation, and all orders must be equally
likely.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rune
import rune.numpy as rnp
from rune import data
from rune.data.permutation import BLOCK, permuted
from rune.errors import ArgumentError, BoundsError, ShapeError
from tests.support.close import same

SIZES = (1, 2, 3, 7, 31, 64, 1009, BLOCK, BLOCK + 1, 4999)


def lists(batches: Any) -> list[list[int]]:
    return [np.asarray(b).tolist() for b in batches]


# --- shuffles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_a_shuffle_has_every_element_once(size: int):
    numbers = permuted(np.arange(size), size, (0, 7), 0)

    same(np.sort(numbers), np.arange(size))


@pytest.mark.parametrize("size", [1009, BLOCK + 1, 4999])
def test_parts_of_a_shuffle_are_those_of_all_of_it(size: int):
    everything = permuted(np.arange(size), size, (3, 1), 5)

    parts = [permuted(np.arange(k, min(k + 64, size)), size, (3, 1), 5) for k in range(0, size, 64)]

    same(np.concatenate(parts), everything)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_all_orders_of_a_few_elements_are_equally_likely(size: int):
    draws = Counter(tuple(permuted(np.arange(size), size, (0, k), 0)) for k in range(10 * math.factorial(size)))

    counts = [draws[order] for order in permutations(range(size))]

    assert stats.chisquare(counts).pvalue > 1e-4


def test_neighbours_in_a_shuffle_are_independent():
    numbers = permuted(np.arange(4999), 4999, (0, 0), 0).astype(float)

    correlation = np.corrcoef(numbers[1:], numbers[:-1])[0, 1]

    assert abs(correlation) < 4 / math.sqrt(4999)  # four standard deviations


def test_a_shuffle_has_another_order_in_each_epoch():
    epochs = np.array(list(data.sequence(range(100)).shuffle(0).repeat(3))).reshape(3, 100)

    assert len({tuple(e) for e in epochs}) == 3
    same(np.sort(epochs), np.tile(np.arange(100), (3, 1)))


def test_a_key_and_the_number_that_makes_it_give_one_order():
    letters = data.sequence("abcdefgh")

    assert list(letters.shuffle(5)) == list(letters.shuffle(rune.random.key(5)))


def test_a_stream_is_shuffled_through_a_buffer_by_the_key():
    stream = data.iterable(range(100))

    first, second, other = (list(stream.shuffle(k, buffer=10)) for k in (0, 0, 1))

    assert first == second != other
    assert sorted(first) == list(range(100))
    assert all(place >= n - 9 for place, n in enumerate(first))  # nothing comes before it is in the buffer


# --- parts, passes, batches -----------------------------------------------------------------------


@given(size=st.integers(0, 40), count=st.integers(1, 5))
def test_shards_are_disjoint_and_equally_long(size: int, count: int):
    parts = [list(data.sequence(range(size)).shard(k, count)) for k in range(count)]

    assert [len(p) for p in parts] == [size // count] * count
    assert sorted(chain.from_iterable(parts)) == list(range(size // count * count))


@given(size=st.integers(1, 40), count=st.integers(1, 5))
def test_a_shard_of_a_stream_is_that_of_its_list(size: int, count: int):
    for k in range(count):
        assert list(data.iterable(range(size)).shard(k, count)) == list(data.sequence(range(size)).shard(k, count))


def test_shards_of_a_shuffle_are_other_parts_in_each_epoch():
    shard = data.sequence(range(64)).shuffle(0).shard(0, 4).repeat(2)

    first, second = np.array(list(shard)).reshape(2, 16)

    assert set(first) != set(second)


def test_a_single_process_has_all_elements():
    assert list(data.sequence("abc").shard()) == ["a", "b", "c"]


@given(size=st.integers(0, 30), batch=st.integers(1, 8))
def test_batches_are_slices_of_the_list(size: int, batch: int):
    items = list(range(size))
    slices = [items[k : k + batch] for k in range(0, size, batch)]

    for source in (data.sequence(items), data.iterable(items), data.arrays(np.arange(size))):
        assert lists(source.batch(batch)) == slices
        assert lists(source.batch(batch, remainder="drop")) == [s for s in slices if len(s) == batch]


@given(size=st.integers(1, 30), batch=st.integers(1, 8))
def test_padded_batches_have_zeros_and_a_mask_where_nothing_is_left(size: int, batch: int):
    items = list(range(1, size + 1))

    for source in (data.sequence(items), data.iterable(items), data.arrays(np.array(items))):
        batches = list(source.batch(batch, remainder="pad"))
        assert all(x.shape == mask.shape == (batch,) for x, mask in batches)
        assert np.concatenate([x[mask] for x, mask in batches]).tolist() == items
        assert not np.concatenate([x[~mask] for x, mask in batches]).any()


def test_batches_end_with_an_epoch_if_repeat_comes_after_batch():
    letters = data.sequence([0, 1, 2])

    assert lists(letters.batch(2).repeat(2)) == [[0, 1], [2], [0, 1], [2]]
    assert lists(letters.repeat(2).batch(2)) == [[0, 1], [2, 0], [1, 2]]


def test_a_batch_may_be_larger_than_the_source():
    assert lists(data.sequence([0, 1]).batch(5)) == [[0, 1]]
    assert lists(data.sequence([0, 1]).batch(5, remainder="drop")) == []


@pytest.mark.parametrize("source", [data.sequence(()), data.iterable(()), data.arrays(np.zeros((0, 3)))])
def test_an_empty_source_gives_nothing_through_all_stages(source: data.Pipeline):
    for stages in (source, source.map(abs, workers=2).batch(3).prefetch("cpu"), source.enumerate().repeat(2)):
        assert list(stages) == []


def test_numbers_count_on_over_the_epochs():
    assert list(data.sequence("ab").enumerate().repeat(2)) == [(0, "a"), (1, "b"), (2, "a"), (3, "b")]


def test_any_number_of_items_can_be_taken_from_an_endless_pipeline():
    endless = data.sequence(range(3)).shuffle(0).repeat().batch(4)

    assert sorted(np.concatenate([endless[n] for n in range(3)]).tolist()) == sorted([*range(3)] * 4)
    assert [b.tolist() for b, _ in zip(endless, range(3))] == [endless[n].tolist() for n in range(3)]


def test_trees_of_rows_are_stacked_leaf_by_leaf():
    rows = [{"x": np.full(2, n), "pair": (n, float(n))} for n in range(3)]

    (batch,) = data.sequence(rows).batch(3)

    same(batch["x"], np.array([[0, 0], [1, 1], [2, 2]]))
    same(batch["pair"][0], np.arange(3))
    same(batch["pair"][1], np.arange(3.0))


def test_rows_of_arrays_and_their_stacked_elements_are_one_batch():
    values = {"x": np.arange(14.0).reshape(7, 2), "y": np.arange(7)}

    by_rows = list(data.arrays(values).shuffle(0).batch(3))
    by_elements = list(data.arrays(values).shuffle(0).map(lambda row: row).batch(3))

    assert [b["y"].tolist() for b in by_rows] == [b["y"].tolist() for b in by_elements]
    same(by_rows[1]["x"], by_elements[1]["x"])


def test_one_program_covers_batches_of_all_sizes():
    batches = data.arrays(np.arange(10.0, dtype=np.float32)).batch(4)
    total = rune.jit(rnp.sum, dims=batches.dims)

    with rune.counting() as counts:
        sums = [float(total(b)) for b in batches]

    assert sums == [6.0, 22.0, 17.0]
    assert (counts.traces, counts.compiles) == (1, 1)


def test_sizes_of_whole_batches_are_one_number():
    numbers = data.sequence(range(10))

    assert numbers.batch(4).dims == {"batch": (1, 4)}
    assert numbers.batch(4, remainder="drop").map(abs).dims == {"batch": (4, 4)}


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data.sequence("ab").batch(0), "batch: cannot use size=0"),
        (lambda: data.sequence("ab").batch(2, remainder="wrap"), "batch: cannot use remainder='wrap'"),  # type: ignore[arg-type]
        (lambda: data.sequence("ab").map(3), "map: cannot call int"),  # type: ignore[arg-type]
        (lambda: data.sequence("ab").map(abs, workers=0), "map: cannot use workers=0"),
        (lambda: data.sequence("ab").prefetch("cpu", depth=0), "prefetch: cannot use depth=0"),
        (lambda: data.sequence("ab").repeat(0), "repeat: cannot use epochs=0"),
        (lambda: data.sequence("ab").shard(3, 3), "shard: cannot take part 3 of 3"),
        (lambda: data.sequence("ab").shuffle(0, buffer=3), "the length is known"),
        (lambda: data.iterable("ab").shuffle(0), "streams need one"),
        (lambda: data.iterable("ab")[0], "cannot find element 0 of a stream"),
        (lambda: data.sequence("ab").dims, "it has none"),
        (lambda: data.sequence(iter("ab")), "sequence: cannot read "),  # type: ignore[arg-type]
        (lambda: data.iterable(3), "iterable: cannot read int"),  # type: ignore[arg-type]
        (lambda: data.arrays({}), "no arrays"),
    ],
)
def test_meaningless_arguments_are_refused_with_an_explanation(call: Any, message: str):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_elements_that_do_not_stack_are_named_with_the_line_of_the_batch():
    ragged = data.sequence([np.zeros(2), np.zeros(3)]).batch(2)

    with pytest.raises(ShapeError, match=r"element 1 with element 0 \(shapes \[3\] and \[2\]\)") as error:
        list(ragged)

    assert "ragged = data.sequence" in str(error.value)


def test_elements_of_other_trees_do_not_stack():
    with pytest.raises(ShapeError, match="cannot stack element 1 with element 0"):
        list(data.sequence([{"a": 1}, {"b": 1}]).batch(2))


def test_rows_of_arrays_of_other_lengths_are_refused():
    with pytest.raises(ShapeError, match="leading axes differ"):
        data.arrays({"x": np.zeros((3, 2)), "y": np.zeros(4)})


def test_there_is_no_element_before_the_first():
    with pytest.raises(BoundsError, match="element -1"):
        data.sequence("ab")[-1]


def test_an_endless_pipeline_has_no_length():
    with pytest.raises(TypeError, match="has no length"):
        len(data.sequence("ab").repeat())
