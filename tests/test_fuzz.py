"""The long run of random programs: failures are found, minimised, and replayed by their seed.

A few programs of each way run here; `./scripts/fuzz` has as many as there is time for.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import rune
from tests.fuzz import LAWS, ROOT, main
from tests.fuzzing import planted
from tests.fuzzing.compare import values
from tests.fuzzing.generate import draw
from tests.fuzzing.program import Input, Program, Step
from tests.fuzzing.trial import WAYS, Way, shrunk, trial, way_of
from tests.fuzzing.ways import in_bits, is_chaotic, some
from tests.support.sampling import IS_WHOLE, one_in

PLANTED = str(Path(__file__).parent / "support" / "planted_law.py")
EACH = 60 if IS_WHOLE else 1  # programs of each way
DEVICES = ("opencl", "vulkan", "wgpu")
CHEAP = [w for w in WAYS if w.name not in DEVICES]


@pytest.fixture(autouse=True)
def _nothing_from_disk():
    """A way that lowers limits would load the plan of a way that does not."""
    with rune.configure(cache_dir=""):
        yield


@pytest.mark.filterwarnings("ignore:jit. cannot make axis:UserWarning")
@pytest.mark.parametrize("way", CHEAP, ids=lambda w: w.name)
def test_random_programs_have_one_meaning(way: Way):
    for seed in range(WAYS.index(way) % 3, EACH + WAYS.index(way) % 3):
        failure = trial(seed, (way,))
        assert failure is None, str(shrunk(failure)) if failure else ""


@pytest.mark.parametrize("way", [w for w in WAYS if w.name in DEVICES], ids=lambda w: w.name)
def test_random_programs_have_one_meaning_on_a_device(way: Way):
    if way.name not in {d.target.backend for d in rune.devices()}:
        pytest.skip(f"no {way.name} here")
    for seed in range(max(1, EACH // 3)):
        failure = trial(seed, (way,))
        assert failure is None, str(shrunk(failure)) if failure else ""


# Each with a seed at which it is found: programs before it would find nothing.
QUICK = {
    "a host call with another shape": 16,
    "a lost lane of a tail": 4,
    "a race between threads": 56,
    "an index that wraps": 4,
    "donation of what is held": 2,
    "memory shared by two live buffers": 31,
}


@pytest.mark.filterwarnings("ignore:jit. cannot make axis:UserWarning")
@pytest.mark.parametrize("name", planted.FAULTS if IS_WHOLE else one_in(2, list(QUICK)))
def test_a_planted_fault_is_found(name: str):
    discovery = planted.find(name, 300.0, 0 if IS_WHOLE else QUICK[name])

    assert discovery is not None
    assert "<locals>" not in discovery.error  # a patch that no longer fits what it replaces


def test_a_failure_shrinks_to_the_steps_that_matter():
    with planted.FAULTS["a lost lane of a tail"]():
        failure = next(f for s in range(1000) if (f := trial(s, WAYS[1:3])) is not None)
        smaller = shrunk(failure, seconds=math.inf)

    assert 1 <= len(smaller.drawn.steps) <= 2
    assert f"replay: ./scripts/fuzz --seed {failure.seed}" in str(smaller)


def test_only_where_the_last_bit_of_an_argument_decides_is_a_difference_excused():
    chaotic = Program((Input("v0", (1,), "float32", "smooth"),), (Step(("v1",), "rnp.sin(v0 * 1e7)"),), ("v1",))
    smooth = [p for s in range(100) if (p := some(s)).steps and not in_bits(p)]

    assert is_chaotic(chaotic, 0)
    assert len(smooth) > 10
    assert not any(is_chaotic(p, 0) for p in smooth)


def test_one_seed_is_one_program_with_one_way_and_one_set_of_arguments():
    for seed in range(20):
        assert draw(seed) == draw(seed)
        assert way_of(seed) == way_of(seed)
        first, second = draw(seed).arguments(seed), draw(seed).arguments(seed)
        assert [np.asarray(x).tobytes() for x in first] == [np.asarray(y).tobytes() for y in second]


def test_removing_what_no_result_needs_changes_no_result():
    for seed in range(20):
        program = draw(seed)
        small = program.returning(program.results[-1:]).needed()
        names = {i.name for i in small.inputs}
        args = {i.name: x for i, x in zip(program.inputs, program.arguments(seed))}

        results = values(small, [args[i.name] for i in small.inputs])

        assert names <= args.keys()
        expected = values(program, list(args.values()))[small.results[0]]
        np.testing.assert_array_equal(np.asarray(expected), np.asarray(results[small.results[0]]))


def test_a_run_replays_a_seed_and_counts_it(capsys: pytest.CaptureFixture[str]):
    assert main(["--seed", "1", "--ways", "NumPy"]) == 0

    assert "1 programs of seeds 1 to 1" in capsys.readouterr().out


def test_a_law_that_fails_is_found_and_its_seed_fails_in_the_same_example(capfd: pytest.CaptureFixture[str]):
    assert main(["--seed", "3", "--", PLANTED]) == 1

    first = capfd.readouterr().out
    command = re.findall(r"^replay: \./scripts/fuzz (.*)$", first, re.MULTILINE)
    assert main(command[0].split()) == 1
    second = capfd.readouterr().out
    assert _example(first) == _example(second)


def _example(output: str) -> str:
    match = re.search(r"number=(\d+)", output)
    assert match is not None
    return match.group()


def test_the_laws_in_the_sample_exist():
    assert all((ROOT / path).is_file() for path in LAWS)
