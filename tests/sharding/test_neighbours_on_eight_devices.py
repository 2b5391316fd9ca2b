"""Slices, windows and indices along a split axis on eight devices (eight_devices/)."""

from tests.sharding.in_a_process import OF_NEIGHBOURS, require_passing


def test_slices_and_indices_are_right_on_eight_devices():
    require_passing(OF_NEIGHBOURS)
