"""Which executors the tests run on: all but cuda where RUNE_TEST_ALL is set, as it is in CI."""

from __future__ import annotations

import os

import pytest

import rune

EXPECTED = {"cpu", "opencl", "vulkan", "wgpu", "reference", "null"}


@pytest.mark.skipif("RUNE_TEST_ALL" not in os.environ, reason="executors may be absent here")
def test_every_executor_that_needs_no_hardware_is_there():
    present = {device.name.split(":")[0] for device in rune.devices()}

    assert present >= EXPECTED, rune.missing()


def test_an_executor_that_is_absent_says_why():
    assert all(isinstance(why, str) and why for why in rune.missing().values())
