"""Other libraries' loaders work with `prefetch`: tested with stand-ins for their classes.

The protocols are those of torch.utils.data.DataLoader (2.13), grain's DataLoader, MapDataset and
DatasetIterator (0.2), and datasets' Dataset and IterableDataset (4).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import data

ROWS = np.arange(21, dtype=np.float32).reshape(7, 3)
DEVICES = [d.name for d in rune.devices() if d.name.partition(":")[0] not in ("null", "reference")]


class Tensor:
    """Like torch's tensor on the CPU: exported by DLPack, and not a NumPy array."""

    def __init__(self, values: np.ndarray):
        self._values = np.ascontiguousarray(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


class TorchLoader:
    """Lists of tensors, in epochs; an error in a worker comes in the turn of its batch."""

    def __init__(self, size: int, fails_at: int | None = None):
        self.size, self.fails_at = size, fails_at

    def __len__(self) -> int:
        return -(-len(ROWS) // self.size)

    def __iter__(self) -> Iterator[list[Tensor]]:
        for number, at in enumerate(range(0, len(ROWS), self.size)):
            if number == self.fails_at:
                raise RuntimeError("Caught RuntimeError in DataLoader worker process 0.")
            rows = ROWS[at : at + self.size]
            yield [Tensor(rows), Tensor(rows[:, 0].astype(np.int64))]


class GrainIterator:
    """A run with a state."""

    def __init__(self) -> None:
        self._next = 0

    def __iter__(self) -> GrainIterator:
        return self

    def __next__(self) -> dict[str, np.ndarray | np.int64]:
        if self._next == len(ROWS):
            raise StopIteration
        self._next += 1
        return {"image": ROWS[self._next - 1], "label": np.int64(self._next - 1)}

    def get_state(self) -> dict[str, int]:
        return {"next_index": self._next}

    def set_state(self, state: dict[str, int]) -> None:
        self._next = state["next_index"]


class GrainLoader:
    """A loader that makes a new run whenever it is iterated."""

    def __iter__(self) -> GrainIterator:
        return GrainIterator()


class GrainMap:
    """Elements by number, which go round; slices are data sets again."""

    def __len__(self) -> int:
        return len(ROWS)

    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            raise TypeError("a data set, and no element")
        return {"image": ROWS[number % len(ROWS)], "label": np.int64(number % len(ROWS))}


class HuggingFaceData:
    """Rows as dicts of Python's numbers, lists and texts; several rows as a dict of lists."""

    def __len__(self) -> int:
        return len(ROWS)

    def __getitem__(self, number: int | slice) -> dict[str, Any]:
        if isinstance(number, slice):
            return {"image": ROWS[number].tolist(), "text": [f"row {n}" for n in range(len(ROWS))[number]]}
        return {"image": ROWS[number].tolist(), "text": f"row {number}"}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[n] for n in range(len(self)))


class HuggingFaceStream:
    """Rows that can be iterated, and no more."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(HuggingFaceData())


@pytest.mark.parametrize("device", DEVICES)
def test_batches_of_torchs_loader_arrive_on_a_device(device: str):
    batches = list(data.iterable(TorchLoader(3)).prefetch(device))

    assert [type(batch) for batch in batches] == [list] * 3
    assert all(x.device.name == device for batch in batches for x in batch)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in batches]), ROWS)
    np.testing.assert_array_equal(np.concatenate([y for _, y in batches]), ROWS[:, 0])


def test_each_iteration_is_an_epoch_of_torchs_loader():
    pipeline = data.iterable(TorchLoader(4)).prefetch("cpu")

    assert [len(list(pipeline)) for _ in range(3)] == [2, 2, 2]


def test_an_error_of_a_torch_worker_is_raised_at_its_element():
    batches = iter(data.iterable(TorchLoader(2, fails_at=2)).prefetch("cpu"))

    assert [next(batches)[0].shape for _ in range(2)] == [(2, 3)] * 2
    with pytest.raises(RuntimeError, match="DataLoader worker process 0"):
        next(batches)


@pytest.mark.parametrize("source", [data.iterable(GrainLoader()), data.sequence(GrainMap())], ids=["loader", "map"])
def test_elements_of_grain_are_batched_and_sent(source: Any):
    batches = list(source.batch(3).prefetch("cpu"))

    assert [batch["image"].shape for batch in batches] == [(3, 3), (3, 3), (1, 3)]
    np.testing.assert_array_equal(np.concatenate([batch["label"] for batch in batches]), range(7))


def test_grains_elements_by_number_are_shuffled_and_restored():
    pipeline = data.sequence(GrainMap()).shuffle(rune.random.key(0)).batch(2).prefetch("cpu")
    batches = iter(pipeline)
    first = next(batches)["label"]
    others = [batch["label"] for batch in pipeline.restore(batches.state())]

    assert sorted(np.concatenate([first, *others]).tolist()) == list(range(7))


@pytest.mark.parametrize(
    "source", [data.sequence(HuggingFaceData()), data.iterable(HuggingFaceStream())], ids=["rows", "stream"]
)
def test_rows_of_hugging_face_become_arrays_and_their_texts_stay(source: Any):
    rows = list(source.map(lambda row: {**row, "image": np.asarray(row["image"], "f4")}).batch(4).prefetch("cpu"))

    np.testing.assert_array_equal(np.concatenate([row["image"] for row in rows]), ROWS)
    assert [text for row in rows for text in row["text"]] == [f"row {n}" for n in range(7)]


def test_a_loader_that_is_left_early_is_not_read_on():
    loader = GrainIterator()
    with iter(data.iterable(loader).prefetch("cpu", depth=1)) as batches:
        next(batches)
    position = loader.get_state()["next_index"]

    assert position <= 4  # one in use, one that is ready, one that is sent, one that is read


@pytest.mark.parametrize("device", DEVICES)
def test_items_by_number_alone_are_iterated_as_python_does(device: str):
    class Numbered:
        def __getitem__(self, n: int) -> float:
            if n == 5:
                raise IndexError
            return 1.5 * n

    items: Any = Numbered()

    assert [float(x) for x in data.iterable(items).prefetch(device)] == [0, 1.5, 3, 4.5, 6]


@pytest.mark.parametrize("device", DEVICES)
def test_classes_of_a_loader_stay_around_its_numbers(device: str):
    class Pair(NamedTuple):
        x: Any
        name: str

    first, second = data.iterable([Pair(np.full(3, n), f"n{n}") for n in range(2)]).prefetch(device)

    assert (type(first), first.name, second.name) == (Pair, "n0", "n1")
    assert (second.x.device.name, second.x.tolist()) == (device, [1, 1, 1])


@pytest.mark.parametrize("device", DEVICES)
def test_batches_that_are_deleted_or_donated_at_once_harm_no_later_one(device: str):
    rows = np.arange(40_000, dtype=np.int32).reshape(200, 200)
    total = rune.jit(lambda s, x: s + rnp.sum(x), donate_argnums=1)
    batches = data.arrays(rows).batch(3)

    sums = []
    for x, y in zip(batches.prefetch(device), batches.prefetch(device, depth=3)):
        sums.append(total(rnp.int32(0), x))
        y.delete()

    assert [int(s) for s in sums] == [int(rows[n : n + 3].sum()) for n in range(0, 200, 3)]


@pytest.mark.parametrize("device", DEVICES)
def test_runs_in_several_threads_have_all_elements(device: str):
    batches = data.sequence(range(50)).batch(3).prefetch(device)
    sums: list[int] = []

    def add_up() -> None:
        sums.append(sum(int(rnp.sum(x)) for x in batches))

    threads = [threading.Thread(target=add_up) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sums == [1225] * 3
