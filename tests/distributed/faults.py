"""One of several processes fails: the errors of the others, and that none waits forever.

python -m tests.distributed.faults 100      so many times, at the first, a middle and the last step
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.distributed.program import STEPS

ROOT = Path(__file__).parents[2]
MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
LIMIT_S = 600

# The error of the processes that are not at fault: in exchanges of arrays of the host, ...
EXCHANGES = {
    "fail": r"process_allgather: cannot go on \(process 1 has failed: ValueError: the data are bad",
    "leave": r"process_allgather: cannot go on \(process 1 left without it\)",
    "die": r"rank 1 .*\n?.*signal 9",  # by mpirun, which ends the others
    "hang": r"process_allgather: cannot go on \(no word from process 1 in 2 s\)",
    "call_another": r"\(process 1 is in sync_global_devices 'elsewhere', process \d in process_allgather of f32",
    "send_another_type": r"\(process 1 is in process_allgather of f32\[4\], process \d in process_allgather of f32",
}
# ... and in a program on a mesh of all devices.
MESHES = {
    "fail": r"cannot go on \(process 1 has failed: ValueError: the data are bad",
    "leave": r"cannot go on \(process 1 left without it\)",
    "die": EXCHANGES["die"],
    "hang": r"cannot go on \(no word from process 1 in 2 s\)",
    "meet_in_another_order": r"cannot meet process \d \(it is in p(sum|max) over 'd' of float32\[1, 5\], this one in p",
    "meet_nobody": r"psum over 'd': cannot go on \(no word from process 1 in 2 s\)",
    "run_another_program": r"process 1, which runs another .* \('.*mul %\d+, 2\.0: f32.*' here, '.*mul %\d+, 3\.0: f32",
    "run_on_other_numbers": r"with process 1, which has other numbers \(\[0\.5\] here, \[0\.25\] there\)",
    "raise_on_a_device": r"cannot go on \(process 1 (raised|has failed:) .*the device is bad",
}
CASES = [("program", fault) for fault in EXCHANGES] + [("meshes", fault) for fault in MESHES]
IN_SHORT = [c for c in CASES if c[0] == "program" or c[1] not in EXCHANGES]


def mpirun(devices: Sequence[int], *command: str) -> list[str]:
    """The command that runs another in several processes with this many devices each."""
    parts = ([":", "-n", "1", "-x", f"RUNE_CPU_DEVICES={count}", *command] for count in devices)
    return [str(MPIRUN), "--allow-run-as-root", "--oversubscribe", *list(itertools.chain(*parts))[1:]]


def run(devices: Sequence[int], module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module of this folder in several processes with this many devices each.

    Errors: TimeoutExpired if it does not end by itself.
    """
    command = mpirun(devices, sys.executable, "-m", f"tests.distributed.{module}", *arguments)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)


def require_fault(module: str, fault: str, step: int, devices: Sequence[int] = (1, 2, 1)) -> None:
    """Errors: AssertionError unless all processes end, and one reports why."""
    process = run(devices, module, fault, str(step))
    text = process.stdout + process.stderr

    assert process.returncode != 0, text
    assert re.search((MESHES if module == "meshes" else EXCHANGES)[fault], text), text


def main(times: int) -> None:
    """Print how often each fault ended all processes."""
    cases = itertools.islice(itertools.cycle(itertools.product(CASES, (0, STEPS // 2, STEPS - 1))), times)
    start = time.monotonic()
    for (module, fault), step in cases:
        require_fault(module, fault, step)
    print(f"{times} of {times} faults ended all processes ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main(int(sys.argv[1]))
