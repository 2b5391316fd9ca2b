"""Gates: a measured launch is entirely on the device before it begins."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import rune
from rune.backends.cuda.gate import Gate
from rune.backends.shared.timing import StepMeter
from rune.lowering.stages import stages
from tests.backends.cuda import fake as cuda_fake
from tests.backends.cuda.fake import FakeCuda
from tests.support.lowering import f32, program_of


def number_at(word: int) -> int:
    """The number that the device reads there."""
    return ctypes.c_uint32.from_address(word).value


def test_a_gate_is_closed_within_and_open_afterwards(device: Any, fake: FakeCuda):
    gate = Gate(device)
    for _ in range(3):
        with gate.closed():
            word, number, _ = fake.gates[-1]
            assert number_at(word) == number - 1
        assert number_at(word) == number


def test_a_gate_opens_even_if_its_block_raises(device: Any, fake: FakeCuda):
    gate = Gate(device)
    with pytest.raises(KeyboardInterrupt), gate.closed():
        raise KeyboardInterrupt

    word, number, _ = fake.gates[-1]
    assert number_at(word) == number


def test_a_gate_counter_wraps_past_the_largest_number(device: Any, fake: FakeCuda):
    gate = Gate(device)
    gate._word[0] = 2**32 - 1
    with gate.closed():
        pass

    word, number, _ = fake.gates[-1]
    assert number_at(word) == number == 0


def test_a_launch_is_measured_while_its_gate_is_closed(device: Any, fake: FakeCuda):
    lowering = stages(program_of(lambda x: x + 1.0, f32(8)), cuda_fake.TARGET)
    device.record(lowering.plan)  # which lets the driver know its kernels
    with rune.configure(cache_dir=""):
        executable = device.record_timed(lowering.plan, StepMeter(lowering, "cuda:0"))
    with rune.debug.profile():
        executable([device.copy_in(np.ones(8, np.float32))])

    assert len(fake.gates) == 1
