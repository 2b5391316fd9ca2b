"""Programs of several processes: the data they exchange, and the errors that end all of them."""

from __future__ import annotations

import pytest

from tests.distributed.faults import IN_SHORT, MPIRUN, require_fault, run
from tests.distributed.kills import kills
from tests.distributed.program import PROGRAMS

pytestmark = pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun: pip install 'rune-ml[distributed]'")


def test_processes_do_together_what_each_expects():
    process = run((1, 1, 1), "program", *PROGRAMS)

    assert process.returncode == 0, process.stdout + process.stderr


def test_a_checkpoint_reported_as_saved_survives_the_kill_of_a_process():
    assert [*kills(2)] == [{"kills": 1}, {"kills": 2}, {"kills": 2}]


@pytest.mark.parametrize("devices", [(2, 2), (1, 3, 2)], ids=str)
def test_a_mesh_over_processes_computes_what_one_process_would(devices: tuple[int, ...]):
    process = run(devices, "meshes", "all")

    assert process.returncode == 0, process.stdout + process.stderr


def test_programs_on_eight_devices_of_two_uneven_processes_give_what_jax_gave():
    process = run((5, 3), "meshes", "stored")

    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.parametrize(("module", "fault"), IN_SHORT)
def test_a_failing_process_ends_all_with_its_number(module: str, fault: str):
    # The exchange of arrays of the host detects that a third process has ended.
    is_end = module == "program" and fault in ("leave", "die")
    require_fault(module, fault, step=2, devices=(1, 2, 1) if is_end else (1, 2))
