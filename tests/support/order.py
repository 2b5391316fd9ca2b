"""The order of tests: those of a case run together, so that they share compiled code.

The cache of eager loops evicts a loop after a thousand others. Tests stay in their file, and the
first test of a case decides where the case comes.

When several processes share a run, files that take long come first, then files of many tests: the
last files are short, and no process waits for another at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from pathlib import Path

import pytest

from tests.numpy.spelling import Case

TESTS = Path(__file__).parent.parent
# Many seconds of processor time for few tests, which start processes or compile much. The last ones
# take some seconds, but as short files they would come at the very end.
LONG = (
    "distributed/test_processes.py",
    "laws/test_attention.py",
    "as_jax/surface/functions/test_functions.py",
    "test_notebooks.py",
    "sharding/test_arrays_on_eight_devices.py",
    "sharding/test_programs_on_eight_devices.py",
    "test_benchmarks.py",
    "test_digits.py",
    "cuda_emulator/test_emulator.py",
    "as_jax/test_programs.py",
    "laws/test_sorts_and_scatters.py",
    "test_docs.py",
    "laws/test_control.py",
    "laws/test_casts.py",
    "laws/test_long_axes.py",
    "laws/test_extents.py",
    "lowering/test_streams.py",
    "lowering/test_cuda_c.py",
    "lowering/test_split_scans.py",
    "scipy/test_krylov.py",
    "user_types/test_user_types.py",
    "test_fuzz.py",
    "looking/test_screens.py",
    "backends/test_thirdparty.py",
    "backends/cpu/test_images.py",
    "as_jax/test_libraries.py",
    "as_jax/surface/objects/test_objects.py",
    "as_jax/promotion/test_results.py",
    "differential/test_against_jax.py",
    "exporting/test_cuda_folder.py",
    "exporting/test_source.py",
    "sharding/test_examples.py",
    "test_worked_pages.py",
    "looking/test_stop.py",
    "control/test_symbolic_sizes.py",
    "data/test_soak.py",
    "backends/cpu/test_compiler.py",
    "llm/test_model.py",
    "test_stress.py",
)


def by_case(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The items, with the tests of a case after the first test of it in the file."""
    places: dict[Hashable, int] = {}
    ranks = [(places.setdefault(_group(item), n), n, item) for n, item in enumerate(items)]
    return [item for _, _, item in sorted(ranks, key=lambda k: k[:2])]


def longest_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The items, with slow files first, then files of many tests."""
    items = list(items)
    counts = Counter(item.path for item in items)
    ranks = {TESTS / name: rank for rank, name in enumerate(LONG)}
    files = sorted(counts, key=lambda path: (ranks.get(path, len(ranks)), -counts[path], path))
    places = {path: place for place, path in enumerate(files)}
    return sorted(items, key=lambda item: places[item.path])


def _group(item: pytest.Item) -> Hashable:
    """The item's file and case; an item without a case is its own group."""
    callspec = getattr(item, "callspec", None)
    values = () if callspec is None else callspec.params.values()
    cases = (getattr(v, "case", v) for v in values)
    return next(((item.path, id(c)) for c in cases if isinstance(c, Case)), item)
