"""The `raise` statements that no test reaches, each with the reason. Tests reach all others.

tools/unreached_raises.py lists them anew.
"""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT

# The file, a part of the statement, and why no test gets there.
_FALL_THROUGH = "the last case of a match that covers all: a mistake of rune's own"
_ROUND_TRIP = "a program whose text is not read as the same program: a mistake of rune's own"
_PROCESSES = "several processes that use different devices, or end at different times"

UNREACHED = [
    ("rune/data/display.py", "raise AssertionError(stage)", _FALL_THROUGH),
    ("rune/data/elements.py", "raise AssertionError(stage)", _FALL_THROUGH),
    ("rune/data/numbers.py", "raise AssertionError(stage)", _FALL_THROUGH),
    ("rune/data/running.py", "raise AssertionError(stage)", _FALL_THROUGH),
    ("rune/data/processes.py", "raise _death(crew, worker) from None", "a worker that dies between two tasks"),
    ("rune/exporting/storable.py", 'raise ArgumentError(f"export: cannot store {program.name}', _ROUND_TRIP),
    ("rune/exporting/storable.py", "(it holds arrays that are not inputs)", "export makes inputs of them first"),
    ("rune/exporting/storable.py", "is not a value)", "a text that can be read holds values alone"),
    (
        "rune/checkify/calls.py",
        "checkify.check: cannot check in",
        "a body that refuses references takes the words of checks",
    ),
    ("rune/distributed/checkpoints.py", "(the processes have left each other)", _PROCESSES),
    ("rune/files/trees.py", "(other processes have blocks of", _PROCESSES),
    ("rune/sharding/memory.py", "(all in other processes)", _PROCESSES),
    ("rune/sparse/matrices.py", "raise NotImplementedError", "a method that every subclass has"),
]


@pytest.mark.parametrize(("path", "part"), [(path, part) for path, part, _ in UNREACHED])
def test_every_raise_listed_as_unreachable_exists(path: str, part: str):
    assert part in (ROOT / path).read_text()
