"""Failures between CUDA devices: no thread waits forever, and a failed sum never gives numbers.

The machine and NCCL are stand-ins; a stream that would wait forever is an error of the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.backends import Device
from rune.errors import CollectiveError, DeviceError
from rune.sharding import P, make_mesh
from tests.backends.cuda.fake import Code
from tests.backends.cuda.fake_machine import Machine, machine_of
from tests.backends.cuda.fake_nccl import REMOTE_ERROR, UNHANDLED, FakeNccl, installed

X = np.arange(6, dtype="f").reshape(3, 2)


class Parts:
    """A machine of three devices with NCCL, and a program that sums."""

    def __init__(self, machine: Machine, devices: list[Device], nccl: FakeNccl):
        self.machine, self.devices, self.nccl = machine, devices, nccl
        self.mesh = make_mesh((3,), ("a",), devices=devices)
        self.total = self.program(lambda v: lax.psum(v, "a"))
        self.sine = self.program(rnp.sin)

    def program(self, body: Any) -> Any:
        return rune.jit(rune.shard_map(body, mesh=self.mesh, in_specs=P("a"), out_specs=P("a"), check_vma=False))

    def sum(self, x: np.ndarray = X) -> Any:
        return self.total(x)

    def pause(self) -> None:
        """Nothing that is enqueued from now on is done; the programs have been compiled."""
        np.asarray(self.sine(self.sum()))
        self.machine.is_paused = True


@pytest.fixture
def parts() -> Iterator[Parts]:
    with machine_of(3) as (machine, devices), pytest.MonkeyPatch.context() as patch:
        nccl = installed(patch, machine)
        yield Parts(machine, devices, nccl)
        assert nccl.problems == []
        assert machine.depths() == [0, 0, 0]


def lose(machine: Machine, number: int) -> None:
    """The device is lost, before anything that was enqueued while time stood still."""
    machine.devices[number].fault = Code.CUDA_ERROR_ILLEGAL_ADDRESS
    machine.is_paused = False


def test_a_call_that_nccl_refuses_is_an_error_and_the_next_one_works(parts: Parts):
    parts.nccl.refusals["ncclAllReduce"] = UNHANDLED
    with pytest.raises(CollectiveError, match=r"psum over 'a': cannot go on .*ncclAllReduce: unhandled cuda error"):
        parts.sum()

    np.testing.assert_array_equal(np.asarray(parts.sum())[0], X.sum(0))
    assert (parts.nccl.log.count("ncclCommAbort"), parts.nccl.log.count("ncclCommInitAll")) == (3, 2)


def test_a_group_that_starts_on_some_devices_only_is_ended_on_them(parts: Parts):
    parts.nccl.start_limit = 1
    with pytest.raises(CollectiveError, match="ncclGroupEnd: unhandled cuda error"):
        parts.sum()

    np.testing.assert_array_equal(np.asarray(parts.sum())[2], X.sum(0))


def test_results_of_earlier_runs_survive_a_refusal(parts: Parts):
    parts.pause()
    earlier = parts.sum()
    parts.nccl.start_limit = 2  # time goes by again from that error on
    with pytest.raises(CollectiveError):
        parts.sum(X + 1)

    np.testing.assert_array_equal(np.asarray(earlier)[1], X.sum(0))


def test_communicators_that_cannot_be_made_are_an_error_and_are_tried_again(parts: Parts):
    parts.nccl.refusals["ncclCommInitAll"] = UNHANDLED
    with pytest.raises(CollectiveError, match="ncclCommInitAll: unhandled cuda error"):
        parts.sum()

    np.testing.assert_array_equal(np.asarray(parts.sum())[0], X.sum(0))


def test_an_error_in_the_middle_of_a_collective_ends_the_wait(parts: Parts):
    parts.pause()
    y = parts.sum()
    parts.nccl.async_error = REMOTE_ERROR

    with pytest.raises(DeviceError, match=r"cannot go on .*has failed: remote error"):
        np.asarray(y)
    assert parts.nccl.log.count("ncclCommAbort") == 3


def test_every_thread_that_waits_for_a_lost_device_gets_an_error(parts: Parts):
    parts.pause()
    y = parts.sum()
    lose(parts.machine, 1)

    with pytest.raises(DeviceError, match=r"cuda:0, cuda:2: cannot go on \(cuda:1, which it waits for"):
        np.asarray(y)
    assert parts.nccl.log.count("ncclCommAbort") == 3


def test_results_computed_from_a_failed_collective_are_never_read(parts: Parts):
    parts.pause()
    y = parts.sum()
    z = parts.sine(y)
    lose(parts.machine, 1)
    with pytest.raises(DeviceError):
        np.asarray(z)

    for array in (y, z):
        for shard in array.addressable_shards:
            with pytest.raises(DeviceError, match=r"cuda:\d: cannot be used"):
                np.asarray(shard.data)


def test_existing_results_can_be_read_even_if_another_device_is_lost(parts: Parts):
    y = parts.sum()
    parts.devices[0].backend.synchronize()
    lose(parts.machine, 1)

    np.testing.assert_array_equal(np.asarray(y.addressable_shards[0].data), X.sum(0)[None])


def test_waiting_in_the_middle_of_a_run_ends_too(parts: Parts):
    def body(v: Any) -> Any:
        return rune.while_loop(lambda c: c.sum() < 50, lambda c: lax.psum(c, "a"), v)

    f = parts.program(body)
    np.testing.assert_array_equal(np.asarray(f(X))[0], X.sum(0) * 9)
    parts.pause()
    parts.sum()
    lose(parts.machine, 2)

    with pytest.raises(DeviceError, match="cuda:2"):
        f(X)


def test_a_program_that_fails_on_one_device_keeps_the_communicators(parts: Parts):
    def body(v: Any) -> Any:
        return lax.cond(lax.axis_index("a") == 1, lambda y: y, lambda y: lax.psum(y, "a"), lax.psum(v, "a"))

    with pytest.raises(CollectiveError, match="in vain"):
        parts.program(body)(X)

    np.testing.assert_array_equal(np.asarray(parts.sum())[0], X.sum(0))
    assert parts.nccl.log.count("ncclCommInitAll") == 1
    assert "ncclCommAbort" not in parts.nccl.log
