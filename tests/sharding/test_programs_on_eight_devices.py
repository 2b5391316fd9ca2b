"""Programs on eight devices: bodies, lanes, derivatives, partition (eight_devices/)."""

from tests.sharding.in_a_process import OF_PROGRAMS, require_passing


def test_programs_compute_on_eight_devices_what_they_mean():
    require_passing(OF_PROGRAMS)
