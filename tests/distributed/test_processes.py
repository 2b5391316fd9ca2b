"""Programs of several processes: what they exchange, and what ends them together."""

from __future__ import annotations

import pytest

from tests.distributed.faults import MPIRUN, require_fault, run
from tests.distributed.program import FAULTS, PROGRAMS

pytestmark = pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun: pip install 'rune-ml[distributed]'")


@pytest.mark.parametrize("program", PROGRAMS)
def test_processes_do_together_what_each_expects(program: str):
    done = run(3, program)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_a_process_that_goes_wrong_ends_all_with_its_number(fault: str):
    require_fault(fault, step=2)
