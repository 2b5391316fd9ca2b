"""The laws of the surface see what they are to see, and their samples are what they claim."""

from __future__ import annotations

import zlib

import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends import Device
from tests.numpy.spelling import case, f
from tests.support.sampling import one_in
from tests.support.surface_laws import DEVICES, Laws, Placed, dtypes_of, placed

WRONG = case("negative", lambda xp, x: xp.negative(x) + (xp is rnp), f(3))


def test_a_dtype_within_an_inner_program_is_one_of_the_program():
    inner = rune.jit(lambda x: rnp.sum(x.astype("f64")).astype("f32"))

    dtypes_within = dtypes_of(rune.make_program(lambda x: inner(x) + 1)(rnp.ones(3)))

    assert dtypes_within == {dtypes.f32, dtypes.f64}


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
def test_a_wrong_result_on_an_executor_is_seen(device: Device):
    with pytest.raises(AssertionError, match="f32 against f64"):
        Laws().test_a_program_on_an_executor_means_what_the_library_means(Placed(WRONG, device))


def test_a_sample_depends_on_names_alone_and_is_whole_when_asked(monkeypatch: pytest.MonkeyPatch):
    names = [f"name {k}" for k in range(64)]

    monkeypatch.delenv("RUNE_TEST_WHOLE", raising=False)
    sample = one_in(4, names)
    monkeypatch.setenv("RUNE_TEST_WHOLE", "1")

    assert sample == [n for n in names if zlib.crc32(n.encode()) % 4 == 0]
    assert one_in(4, names) == names


def test_a_sample_of_some_cases_is_never_empty(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RUNE_TEST_WHOLE", raising=False)
    names = [n for n in map(str, range(9)) if zlib.crc32(n.encode()) % 64]

    assert one_in(64, names) == names[:1]
    assert one_in(64, []) == []


def test_a_case_that_needs_64_bits_is_not_for_a_device_that_has_32():
    exact = case("linalg.pascal 2", lambda sp: sp.linalg.pascal(2), module="scipy")

    backends = {p.device.target.backend for p in placed([exact])}

    assert backends == {d.target.backend for d in DEVICES if dtypes.i64 in d.target.dtypes}
