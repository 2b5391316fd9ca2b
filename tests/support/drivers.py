"""Drivers whose device is a processor translate kernels without optimising them in most tests.

PoCL's optimiser takes three quarters of the time of a first call there, Mesa's two fifths. What
rune writes for a driver is the same without them, and so are the values that a kernel has to give.
That they are right behind the optimisers, too, is held by laws/test_optimising_drivers.py in a
process of its own, and by every test with RUNE_TEST_WHOLE=1 or RUNE_TEST_OPTIMISED=1.

Source: https://docs.mesa3d.org/envvars.html (GALLIVM_PERF),
http://portablecl.org/docs/html/env_variables.html (POCL_EXTRA_BUILD_FLAGS).
"""

from __future__ import annotations

import os

OPTIMISED = "RUNE_TEST_OPTIMISED"
QUICK = {"GALLIVM_PERF": "nopt", "POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}


def compile_quickly() -> None:
    """Have drivers leave kernels as they are, here and in the processes of tests.

    Before the first look for devices. What the user's own environment says of drivers stays.
    """
    for name, value in QUICK.items():
        os.environ.setdefault(name, value)


def optimising() -> dict[str, str]:
    """The environment of a process whose drivers optimise as those of users do."""
    usual = {name: value for name, value in os.environ.items() if QUICK.get(name) != value}
    return {**usual, OPTIMISED: "1"}
