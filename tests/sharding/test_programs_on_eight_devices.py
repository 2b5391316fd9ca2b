"""Programs on eight devices: bodies, lanes, derivatives, partition (eight_devices/)."""

from tests.sharding.in_a_process import OF_PROGRAMS, require_passing


def test_programs_on_eight_devices_give_the_results_of_jax():
    require_passing(OF_PROGRAMS)
