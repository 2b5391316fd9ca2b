"""A sample of laws where drivers of processors optimise kernels, as they do for users.

Elsewhere they do not (tests/support/drivers.py). Here is one primitive of each family, and what
threads do together: a driver says once in a process whether it optimises, so it is another one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.drivers import optimising
from tests.support.sampling import sharing_kernels

ROOT = Path(__file__).parents[2]
PRIMITIVES = (
    *("div", "exp", "select", "convert", "transpose", "pad", "reduce_sum", "argmax", "cumsum", "dot_general"),
    *("conv_general_dilated", "gather", "scatter_add", "random_bits"),
)
CONFORMANCE = "tests/laws/test_conformance.py::test_compiled_code_agrees_with_the_reference_in_every_dtype"
OTHERS = (
    "tests/laws/test_attention.py::test_batches_of_attention_are_right",
    "tests/laws/test_sorts_and_scatters.py::test_several_keys_and_what_goes_with_them_are_sorted",
    "tests/laws/test_sorts_and_scatters.py::test_sums_in_any_order_are_near_where_the_user_allows_them",
)


@pytest.mark.skipif(not sharing_kernels(), reason="no driver of a processor is here")
def test_laws_hold_where_drivers_optimise():
    names = sharing_kernels()
    laws = (f"{CONFORMANCE}[{primitive}-{name}]" for primitive in PRIMITIVES for name in names)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n0", "-k", " or ".join(n.split(":")[0] for n in names)]

    done = subprocess.run(
        [*command, *laws, *OTHERS], cwd=ROOT, env=optimising(), capture_output=True, text=True, timeout=600
    )

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
