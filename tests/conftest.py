"""Set-up for all tests: checked stages and plans, `expect` with --accept, the hypothesis profiles.

Whatever a test compiles is checked after every stage, its plan goes through `null`, and nothing
comes from the disk cache of an earlier run: each run has a new one, which its workers share.
If all executors must be present, Vulkan runs under the validation layer, and its messages are
an error.

Arrays and arenas of the CPU lie between guard bytes, which each test checks; RUNE_TEST_GUARDS=after
or =before has inaccessible pages there instead, `none` no guards. RUNE_TEST_PROCESSOR=avx2 (or
sse2, sse4, avx512) compiles for that instruction set. RUNE_TEST_CUDA_EMULATOR=1 adds a CUDA device
whose driver is emulated; select its tests by `-k cuda`. RUNE_TEST_REFERENCE=1 also runs small
programs that are compiled for the CPU on `reference`, whose checks must find nothing.

The default profile is small and always draws the same examples; RUNE_TEST_PROFILE=thorough draws
many, and different ones each time; `fuzz` is the profile of tests/fuzz.py, where a seed decides
all.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers get the environment of the first process
    _OF_THIS_RUN = tempfile.TemporaryDirectory(prefix="rune-tests-")
    os.environ["RUNE_CACHE_DIR"] = _OF_THIS_RUN.name
    if sys.dont_write_bytecode:  # every process of the tests would compile all of its sources
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(_OF_THIS_RUN.name, "bytecode"))
        # What this one compiles from here on serves the others.
        sys.dont_write_bytecode, sys.pycache_prefix = False, os.environ["PYTHONPYCACHEPREFIX"]
if "RUNE_TEST_ALL" in os.environ:
    os.environ.setdefault("RUNE_VULKAN_VALIDATION", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.processors import compile_for

if "RUNE_TEST_PROCESSOR" in os.environ:  # before anything is compiled
    compile_for(os.environ["RUNE_TEST_PROCESSOR"])

if "RUNE_TEST_CUDA_EMULATOR" in os.environ:  # before anybody looks for devices
    from tests import cuda_emulator

    cuda_emulator.install()

from rune import configure
from rune.as_jax import SETTINGS
from rune.transforms.compile import trace_cache
from tests.support.expect import expect, pytest_addoption, pytest_sessionfinish
from tests.support.guards import GUARD
from tests.support.on_reference import interpreted_as_well
from tests.support.order import by_case, longest_first
from tests.support.sampling import each_in_turn, pairs_of_values, possible, sharing_kernels

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
AS_WELL = interpreted_as_well if "RUNE_TEST_REFERENCE" in os.environ else nullcontext
FROM_THE_END = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"

__all__ = ["expect", "pytest_addoption", "pytest_sessionfinish"]

with SETTINGS:  # its import, here or in an example, sets nothing for the rest of the process
    pass

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("quick", max_examples=10, deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("fuzz", max_examples=40, deadline=None, suppress_health_check=_SLOW, database=None)
settings.load_profile(os.environ.get("RUNE_TEST_PROFILE", "quick"))

# What is collected stays, and each look at a million objects takes as long as the imports.
gc.disable()

# Traces are a hundred thousand objects that stay: at 700 new ones a time, the collector's looks at
# them were a tenth of the suite's processor time.
gc.set_threshold(10_000, 10, 10)


@pytest.fixture(autouse=True)
def _around_each_test() -> Iterator[None]:
    """A test begins without traces of functions that others jitted as well, because tests count
    traces. Every program, kernel and plan made in it is checked. A write outside an array, or
    outside a value of an arena, fails it.

    One fixture for all of it: pytest takes a tenth of a millisecond to set one up.
    """
    trace_cache._shared.clear()
    with configure(check_stages=True), AS_WELL():
        yield
    damage = GUARD.damage()
    assert not damage, f"memory was written that belongs to nobody: {damage}"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Of two workers, one imports the files from the last to the first: each compiles half of them
    and reads what the other has compiled. The order of tests does not depend on it."""
    report = yield
    if FROM_THE_END and isinstance(collector, pytest.Directory):
        report.result.reverse()
    return report


@pytest.hookimpl(optionalhook=True)  # without xdist there is nothing to schedule
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """The order of `--dist loadfile`; other ways of distribution are xdist's."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.support.schedule import FileScheduling

    return FileScheduling(config, log)


@pytest.hookimpl(trylast=True)  # of those that -k, -m and others leave
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one case run together; in a run shared by processes slow files come first."""
    selection = by_case(pairs_of_values(each_in_turn(possible(items), sharing_kernels())))
    items[:] = longest_first(selection) if IS_WORKER else selection


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Workers report only the calls of tests, and failures elsewhere.

    Reports of start, set-up, teardown and end would be four more messages per test, which cost the
    first process as much as a test of a millisecond. The names and marks of a test that has passed
    are a third of its report, and nobody reads them there.
    """
    if not IS_WORKER:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            if report.passed:
                report.keywords = {}
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_collection_finish() -> None:
    """Hide a million objects that tests are made of from the collector: they stay anyway."""
    _hide_heap()
    gc.enable()


def _hide_heap() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C raises; a process that was started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def small_heap() -> None:
    """For files that collect garbage often: objects of other files are frozen first."""
    _hide_heap()


@pytest.fixture(autouse=True, scope="module")
def _nothing_remembered():
    """Each file begins with empty caches: the heap stays small, and no file leans on another.

    What the file leaves all the same (modules, samples, what libraries remember) is hidden from the
    collector, or each collection takes longer than the last: two seconds after 30,000 tests.
    """
    yield
    import rune
    from rune.backends.shared import host_memory

    rune.clear_caches()
    host_memory.clear()  # up to 256 MiB of arrays' memory that waits to be used again
    gc.freeze()


def pytest_terminal_summary(terminalreporter: object) -> None:
    """Say which executors the tests ran on, and why others are absent."""
    from rune.backends import devices, missing

    write = terminalreporter.write_line  # type: ignore[attr-defined]
    write(f"executors: {', '.join(d.name for d in devices())}")
    for name, reason in missing().items():
        write(f"absent: {name} ({reason})")
