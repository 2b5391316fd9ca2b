"""The steps before a run, in order: key checks, division at moves, checks of each part."""

from __future__ import annotations

import pytest

import rune
import rune.numpy as rnp
from rune.array import CPU
from rune.errors import KeyReuseError, NaNError
from rune.transforms.compile.run import STAGES, needs_stages
from tests.support.arrays import array
from tests.support.close import same

X = array([1.0, 2.0])


def on_reference(value):
    return rune.device_put(value, "reference")


def moving(x):
    return rnp.log(on_reference(x + 1.0))


def test_a_program_that_only_computes_needs_no_stage():
    assert not needs_stages(rune.make_program(rnp.sin)(X))


def test_each_stage_is_needed_by_a_program_that_moves_values_under_both_checks():
    program = rune.make_program(moving)(X)

    with rune.configure(check_keys=True, check_nans=True):
        settings = rune.config.current()
        needs = [stage.is_needed(program, settings, CPU) for stage in STAGES]
        assert needs == [True, True, False, False, True]  # it names no mesh, and asks for no layout


def test_a_program_that_asks_for_a_layout_needs_a_stage():
    def asking(x):
        rune.debug.inspect_array_sharding(x, callback=lambda _: None)
        return x

    assert needs_stages(rune.make_program(asking)(X))


def test_a_key_that_two_parts_use_is_used_twice():
    def draws(key):
        return rune.random.normal(key), on_reference(rune.random.uniform(key))

    key = rune.random.key(0)
    with rune.configure(check_keys=True), pytest.raises(KeyReuseError):
        rune.jit(draws)(key)


def test_a_nan_is_found_in_the_part_that_makes_it():
    with rune.configure(check_nans=True), pytest.raises(NaNError, match="log"):
        rune.jit(moving)(array([-3.0, 2.0]))


def test_under_both_checks_a_program_in_parts_gives_what_it_gives_without():
    expected = rune.jit(moving)(X)

    with rune.configure(check_keys=True, check_nans=True):
        same(rune.jit(moving)(X), expected)
