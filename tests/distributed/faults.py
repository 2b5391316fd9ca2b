"""Processes of which one goes wrong: what the others say, and that nobody waits for ever.

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
from pathlib import Path

from tests.distributed.program import FAULTS, STEPS

ROOT = Path(__file__).parents[2]
MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
LIMIT_S = 60

# What a process says that is not the faulty one.
SAYS = {
    "fail": r"process_allgather: cannot go on \(process 1 has failed: ValueError: the data are bad",
    "leave": r"process_allgather: cannot go on \(process 1 left without it\)",
    "die": r"rank 1 .*\n?.*signal 9",  # by mpirun, which ends the others
    "hang": r"process_allgather: cannot go on \(no word from process 1 in 2 s\)",
    "call_another": r"\(process 1 is in sync_global_devices 'elsewhere', process \d in process_allgather of f32",
    "send_another_type": r"\(process 1 is in process_allgather of f32\[4\], process \d in process_allgather of f32",
}


def run(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """program.py in several processes. Errors: TimeoutExpired if it does not end by itself."""
    command = [str(MPIRUN), "--allow-run-as-root", "--oversubscribe", "-n", str(processes)]
    command += [sys.executable, "-m", "tests.distributed.program", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)


def require_fault(fault: str, step: int) -> None:
    """Errors: AssertionError unless all processes end, and one says why."""
    done = run(3, fault, str(step))
    said = done.stdout + done.stderr

    assert done.returncode != 0, said
    assert re.search(SAYS[fault], said), said


def main(times: int) -> None:
    """Print how often each fault ended all processes."""
    cases = itertools.islice(itertools.cycle(itertools.product(FAULTS, (0, STEPS // 2, STEPS - 1))), times)
    start = time.monotonic()
    for fault, step in cases:
        require_fault(fault, step)
    print(f"{times} of {times} faults ended all processes ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main(int(sys.argv[1]))
