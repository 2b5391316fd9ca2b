"""The laws of the surface detect faults, and their samples are what they claim to be."""

from __future__ import annotations

import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends import Device
from tests.numpy.spelling import case, f
from tests.support.surface_laws import DEVICES, Laws, Placed, dtypes_of, placed

WRONG = case("negative", lambda xp, x: xp.negative(x) + (xp is rnp), f(3))


def test_a_dtype_within_an_inner_program_is_one_of_the_program():
    inner = rune.jit(lambda x: rnp.sum(x.astype("f64")).astype("f32"))

    dtypes_within = dtypes_of(rune.make_program(lambda x: inner(x) + 1)(rnp.ones(3)))

    assert dtypes_within == {dtypes.f32, dtypes.f64}


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
def test_a_wrong_result_on_an_executor_is_detected(device: Device):
    with pytest.raises(AssertionError, match="f32 against f64"):
        Laws().test_a_program_on_an_executor_means_what_the_library_means(Placed(WRONG, device))


def test_a_case_that_needs_64_bits_skips_a_device_that_has_32():
    exact = case("linalg.pascal 2", lambda sp: sp.linalg.pascal(2), module="scipy")

    backends = {p.device.target.backend for p in placed([exact])}

    assert backends == {d.target.backend for d in DEVICES if dtypes.i64 in d.target.dtypes}
