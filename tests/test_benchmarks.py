"""The benchmark scripts work: tiny sizes here, so that a broken one is noticed before it is needed.

Nothing is claimed about speed.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import cases  # noqa: E402  (a script's neighbour, not a package)
import run  # noqa: E402

from tests.support.sampling import IS_WHOLE, one_in  # noqa: E402

# Those that start separate processes, and a twelfth of the others.
CASES = [c for c in cases.CASES if c.how != "warm" or c.name in one_in(12, [c.name for c in cases.CASES])]


def _script(name: str, *options: str) -> str:
    command = [sys.executable, str(BENCHMARKS / name), *options]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def printed() -> str:
    names = [case.name for case in CASES]
    return _script("run.py", "--size", "tiny", "--rounds", "1", "--burst", "0.005", "--cases", *names)


def test_the_table_has_a_row_for_every_case(printed):
    rows = [line.split("|")[1].strip() for line in printed.splitlines() if line[:1] == "|"]

    assert rows[2:] == [c.title for c in CASES]


def test_every_row_has_a_time_for_rune_and_numpy_where_it_competes(printed):
    lines = {x.split("|")[1].strip(): x.split("|") for x in printed.splitlines() if x[:1] == "|"}

    for case in CASES:
        assert lines[case.title][2].strip()
        assert bool(lines[case.title][3].strip()) == ("numpy" in case.peers)


def test_a_missing_peer_is_announced_loudly(printed):
    missing = [n for n in ("jax", "torch") if importlib.util.find_spec(n) is None]

    assert [n for n in missing if f"NOT INSTALLED: {n}" not in printed] == []


def test_the_memory_of_the_mlp_step_is_reported(printed):
    assert "arena" in printed
    assert "largest sum of live bytes" in printed


def test_a_bar_against_a_missing_peer_is_not_called_held():
    row = run.Row(cases.CASES[0], [{"rune": 1.0, "numpy": 9.0}])

    assert row.bar_holds() is None
    assert "not measured" in run.cells(row)


def test_the_ratio_pairs_the_bursts_of_a_round():
    rounds = [{"rune": 1.0, "jax": 2.0}, {"rune": 30.0, "jax": 40.0}, {"rune": 5.0, "jax": 5.0}]

    assert run.Row(cases.CASES[0], rounds).ratio("jax") == 0.75


def test_a_bar_tells_whether_a_ratio_holds_it():
    bar = cases.Bar(1.3, "jax")

    assert bar.holds(1.3, 1.0)
    assert not bar.holds(1.31, 1.0)
    assert cases.Bar(1.0, "numpy", 0.15).holds(0.24, 0.1)
    assert not cases.Bar(5e-6).holds(6e-6, None)


def test_a_short_soak_of_training_is_flat():
    assert _script("soak.py", "--work", "training", "--steps", "300").splitlines()[-1] == "flat"


def test_the_cost_of_a_call_is_printed_for_every_number_of_kernels():
    options = ("--device", "cpu:0", "--kernels", "1", "3", "--rounds", "2")
    *_, row = _script("host_cost.py", *options).splitlines()
    assert len(row.split("|")) == 6


def test_the_growth_of_a_first_call_is_printed_with_its_exponent():
    command = [sys.executable, str(BENCHMARKS / "growth.py"), "--shape", "chain"]
    process = subprocess.run(
        [*command, "--length", "20", "--leaves", "8"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    row = next(line for line in process.stdout.splitlines() if line.startswith("| chain"))
    assert len(row.split("|")) == 7
    assert process.stdout.splitlines()[-1].startswith("bars (exponent")


@pytest.mark.skipif(not IS_WHOLE, reason="a hundred programs are compiled")
def test_a_short_soak_of_compiling_is_flat():
    options = ("--work", "cycles", "--device", "cpu:0", "--steps", "40", "--warm-up", "60")
    assert _script("soak.py", *options).splitlines()[-1] == "flat"


def test_loading_beside_computing_is_printed_for_every_load():
    options = ("overlap", "--rounds", "1", "--compute-ms", "1", "--batch", "2")
    rows = [line for line in _script("data.py", *options).splitlines() if " ms |" in line]
    assert [len(row.split("|")) for row in rows] == [7] * 4


@pytest.mark.skipif(not IS_WHOLE, reason="kernels of a second on each device")
def test_the_answer_to_the_stop_button_in_a_loop_is_timed_on_every_device():
    rows = _script("stop_button.py", "--times", "1").splitlines()[2:]
    loops = [row for row in rows if "loop on" in row]

    assert loops
    assert not any("nan" in row for row in loops)


def test_eager_calls_are_measured_beside_numpy():
    rows = _script("eager.py", "--cases", "*gradient(f)*").splitlines()

    assert rows[2].startswith("| `xp.gradient(f)` |")
    assert rows[-1].startswith("1 calls")
