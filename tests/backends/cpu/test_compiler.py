"""Compiling without enough memory raises an error, and the process survives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import os, re, resource, sys
import numpy as np
import rune, rune.numpy as rnp

def occupied():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmSize:\\s+(\\d+)", file.read())[1]) << 10

def deep(x):
    for k in range(40):
        x = rnp.tanh(x @ x) + rnp.sum(x * float(k))
    return x

x = np.ones((5, 5), np.float32)
rune.jit(lambda x: rnp.sum(x + 1))(x)
for room in (2, 4, 6, 7, 8, 9, 10, 12, 16, 48, 256):
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (occupied() + (room << 20),) * 2)
        code = 1
        try:
            rune.jit(deep)(x)
            code = 0
        except MemoryError:
            code = 3  # OutOfMemory is one
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_under_a_limit_of_the_address_space_a_program_compiles_or_raises():
    environment = {"PYTHONPATH": str(ROOT), "RUNE_CACHE_DIR": "", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )
    codes = process.stdout.split()

    assert set(codes) == {"0", "3"}, process.stderr
    assert codes == sorted(codes, reverse=True)
    assert codes[-1] == "0"
