"""The `raise` statements that no test reaches, each with the reason; all others are reached.

tools/unreached_raises.py lists them anew.
"""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT

# The file, a part of the statement, and why no test gets there.
_DRIVER = "a driver that fails where a software driver does not"
_FALL_THROUGH = "the last case of a match that covers all: a mistake of rune's own"
_ABSTRACT = "a method that every subclass has"
_ROUND_TRIP = "a program whose text is not read as the same program: a mistake of rune's own"
_RACE = "another process or thread that changes the file between two calls"

UNREACHED = [
    (
        "rune/backends/cpu/run.py",
        "raise self._misfit(arguments)",
        "native code that refuses what it asked to be repaired",
    ),
    ("rune/backends/cuda/__init__.py", "raise MemoryError from error", _DRIVER),
    ("rune/backends/cuda/run.py", "raise self.backend.pool.out_of_memory(0) from error", _DRIVER),
    ("rune/backends/opencl/run.py", "raise pool.out_of_memory", _DRIVER),
    ("rune/backends/shared/private_folder.py", "if not make:\n            raise", _RACE),
    ("rune/backends/shared/private_folder.py", 'raise Unsafe("is not a directory") from error\n        raise', _RACE),
    ("rune/backends/vulkan/__init__.py", "raise DeviceError(", _DRIVER),
    ("rune/backends/vulkan/device.py", "raise self.lost_error()", _DRIVER),
    ("rune/backends/vulkan/device.py", "raise self.failure(code,", _DRIVER),
    ("rune/backends/vulkan/memory.py", "raise self._as_python(failure) from failure", _DRIVER),
    ("rune/backends/vulkan/replay.py", "raise device.failure(failure.code,", _DRIVER),
    ("rune/backends/wgpu/read.py", "raise self.backend.refusal(", _DRIVER),
    ("rune/backends/vulkan/items.py", "raise AssertionError(item)", _FALL_THROUGH),
    ("rune/backends/vulkan/record.py", "raise AssertionError(item)", _FALL_THROUGH),
    ("rune/backends/vulkan/schedule.py", "raise AssertionError(step)", _FALL_THROUGH),
    ("rune/lowering/build/loops.py", "raise AssertionError(statement)", _FALL_THROUGH),
    ("rune/lowering/kernelize/write.py", "raise AssertionError(f", _FALL_THROUGH),
    ("rune/lowering/kernelize/emit.py", "(no rule for it)", "decompose refuses such a primitive first"),
    ("rune/transforms/compile/automatic_sizes.py", "raise AssertionError(", _FALL_THROUGH),
    ("rune/data/display.py", "raise AssertionError(stage)", _FALL_THROUGH),
    ("rune/data/elements.py", "raise AssertionError(stage)", _FALL_THROUGH),
    ("rune/data/numbers.py", "raise AssertionError(stage)", _FALL_THROUGH),
    ("rune/data/running.py", "raise AssertionError(stage)", _FALL_THROUGH),
    ("rune/data/processes.py", "raise _death(crew, worker) from None", "a worker that dies between two tasks"),
    ("rune/exporting/storable.py", 'raise ArgumentError(f"export: cannot store {program.name}', _ROUND_TRIP),
    ("rune/core/interpreter.py", "raise NotImplementedError", _ABSTRACT),
    ("rune/sparse/matrices.py", "raise NotImplementedError", _ABSTRACT),
    ("rune/effects.py", "raise NotImplementedError(", _ABSTRACT),
    ("rune/transforms/custom/rules.py", "raise NotImplementedError(", _ABSTRACT),
    ("rune/lowering/scalar/number.py", "raise NotImplementedError(", "an ability that is asked for before"),
    ("rune/dims/__init__.py", "except ValueError as error:  # a NUL", "an older Python that calls a NUL a ValueError"),
]


@pytest.mark.parametrize(("path", "part"), [(path, part) for path, part, _ in UNREACHED])
def test_what_is_said_to_be_out_of_reach_is_there(path: str, part: str):
    assert part in (ROOT / path).read_text()
