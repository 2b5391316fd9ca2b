"""A sample of laws where drivers of processors optimise kernels, as they do for users.

Elsewhere they do not (tests/support/drivers.py). Here are functions of floats, which an optimiser
could round otherwise, sums, scans and products in every dtype, and attention. Mesa asks once in a
process, so it is a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.drivers import optimising
from tests.support.sampling import sharing_kernels

ROOT = Path(__file__).parents[2]
PRIMITIVES = ("exp", "reduce_sum", "cumsum", "dot_general")
CONFORMANCE = "tests/laws/test_conformance.py::test_compiled_code_agrees_with_the_reference_in_every_dtype"
ATTENTION = "tests/laws/test_attention.py::test_batches_of_attention_are_right"


@pytest.mark.skipif(not sharing_kernels(), reason="no driver of a processor is here")
def test_laws_hold_where_drivers_optimise():
    laws = [f"{CONFORMANCE}[{primitive}-{name}]" for primitive in PRIMITIVES for name in sharing_kernels()]
    laws += [f"{ATTENTION}[{name}]" for name in sharing_kernels()]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n0", *laws]

    done = subprocess.run(command, cwd=ROOT, env=optimising(), capture_output=True, text=True, timeout=280)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
