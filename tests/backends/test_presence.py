"""The executors that the tests run on: all but cuda if RUNE_TEST_ALL is set, as in CI.

So are the programs that judge what is compiled: spirv-val, NVIDIA's compiler, and the validation
layer, under which all of Vulkan then runs (tests/conftest.py).
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest

import rune

EXPECTED = {"cpu", "opencl", "vulkan", "wgpu", "reference", "null"}


in_ci = pytest.mark.skipif("RUNE_TEST_ALL" not in os.environ, reason="executors may be absent here")


@in_ci
def test_every_executor_that_needs_no_hardware_is_present():
    present = {device.name.split(":")[0] for device in rune.devices()}

    assert present >= EXPECTED, rune.missing()


@in_ci
def test_the_tools_that_validate_compiled_code_are_present():
    assert shutil.which("spirv-val")
    assert find_spec("cuda.bindings.nvrtc")
    assert os.environ["RUNE_VULKAN_VALIDATION"] == "1"


def test_an_executor_that_is_absent_says_why():
    assert all(isinstance(why, str) and why for why in rune.missing().values())
