"""Arrays on eight devices, and reports about programs on them (eight_devices/)."""

from tests.sharding.in_a_process import OTHERS, require_passing


def test_arrays_plans_and_pages_are_right_on_eight_devices():
    require_passing(OTHERS)
