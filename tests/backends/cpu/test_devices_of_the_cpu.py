"""One processor as several devices: how they share the cores, and that they are separate.

Their number is fixed for a process, so programs on several devices run in one of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune.backends.cpu.threads import Share
from rune.errors import ArgumentError, DeviceError

ROOT = Path(__file__).parents[3]
COUNTS = st.integers(1, 130)


def printed(program: str, count: int = 3) -> list[str]:
    """The lines that a program prints in a process with this many devices."""
    environment = {**os.environ, "RUNE_CPU_DEVICES": str(count)}
    begin = "import numpy as np, rune, rune.numpy as rnp\n"
    command = [sys.executable, "-c", begin + program]
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


@given(COUNTS, COUNTS)
def test_every_core_belongs_to_one_device_and_shares_differ_by_one_at_most(devices: int, cores: int):
    if devices > cores:
        return
    shares = [Share(k, devices, cores) for k in range(devices)]

    cores_of_shares = [core for share in shares for core in share.of(range(cores))]

    assert cores_of_shares == list(range(cores))
    assert max(s.cores for s in shares) - min(s.cores for s in shares) <= 1


@given(COUNTS, COUNTS)
def test_more_devices_than_cores_have_one_core_each(devices: int, cores: int):
    if devices <= cores:
        return

    owners = [list(Share(k, devices, cores).of(range(cores))) for k in range(devices)]

    assert all(len(share) == 1 for share in owners)
    assert {core for share in owners for core in share} == set(range(cores))


def test_devices_are_named_by_number_and_describe_their_share_of_the_cores():
    names = printed("for d in rune.devices()[:3]: print(d.name, 'of' in d.target.description)\n")

    assert names == ["cpu:0 True", "cpu:1 True", "cpu:2 True"]


def test_one_device_is_the_whole_processor():
    (count, description) = printed("d = rune.devices()[0]; print(d.target.cores); print(d)\n", count=1)

    assert int(count) >= 1
    assert "cores" not in description


def test_a_program_gives_the_same_bits_on_each():
    program = """
x = np.random.default_rng(0).standard_normal((97, 131)).astype(np.float32)
def step(a):
    return rnp.sum(rnp.tanh(a @ a.T), axis=0), rnp.sort(a.ravel())
slope = rune.grad(lambda a: rnp.sum(step(a)[0]))
of = [rune.jit(slope)(rune.device_put(x, f"cpu:{k}")) for k in range(3)]
whole = [rune.jit(step, device=f"cpu:{k}")(x) for k in range(3)]
print([g.device.name for g in of], [w[1].device.name for w in whole])
for k in (1, 2):
    print(np.array_equal(of[0], of[k]), *(np.array_equal(a, b) for a, b in zip(whole[0], whole[k])))
"""
    names = "['cpu:0', 'cpu:1', 'cpu:2']"

    assert printed(program) == [f"{names} {names}", *["True True True"] * 2]


def test_operands_on_two_of_them_do_not_combine():
    program = """
x, y = rune.device_put(rnp.ones(2), "cpu:1"), rune.device_put(rnp.ones(2), "cpu:2")
try: x + y
except rune.errors.DeviceError as error: print(error.message)
"""

    assert printed(program) == ["add: cannot combine arrays on different devices (f32[2] on cpu:1, f32[2] on cpu:2)"]


def test_writing_to_a_copy_read_from_a_device_does_not_change_the_array():
    program = """
x = rune.device_put(rnp.zeros(3), "cpu:1")
x.numpy()[:] = 7
print(x)
"""

    assert printed(program) == ["[0. 0. 0.]"]


def test_each_counts_its_own_work():
    program = """
f = rune.jit(lambda x: x + 1.0, device="cpu:2")
before = [rune.work_stats(f"cpu:{k}").finished for k in range(3)]
f(1.0), f(2.0)
print([rune.work_stats(f"cpu:{k}").finished - before[k] for k in range(3)])
"""

    assert printed(program) == ["[0, 0, 2]"]


def test_threads_on_different_devices_compute_at_once_what_they_compute_alone():
    program = """
from concurrent.futures import ThreadPoolExecutor
xs = [np.random.default_rng(k).standard_normal((300, 257)).astype(np.float32) for k in range(3)]
fs = [rune.jit(lambda a: rnp.linalg.norm(rnp.exp(-a @ a.T), axis=1), device=f"cpu:{k}") for k in range(3)]
alone = [np.asarray(f(x)) for f, x in zip(fs, xs)]
with ThreadPoolExecutor(3) as pool:
    together = list(pool.map(lambda n: np.asarray(fs[n % 3](xs[n % 3])), range(60)))
print(all(np.array_equal(alone[n % 3], y) for n, y in enumerate(together)))
"""

    assert printed(program) == ["True"]


def test_a_statement_before_the_first_array_states_how_many_there_are():
    program = """
rune.configure(cpu_devices=5)
print([d.name for d in rune.devices() if d.target.backend == "cpu"][-1], rnp.ones(1).device.name)
"""

    assert printed(program, count=1) == ["cpu:4 cpu:0"]


def test_another_number_is_refused_once_the_cpu_is_in_use():
    count = sum(d.target.backend == "cpu" for d in rune.devices())

    with pytest.raises(DeviceError, match=rf"cannot make {count + 1} devices of the CPU \(it is in use as {count}\)"):
        rune.configure(cpu_devices=count + 1)

    rune.configure(cpu_devices=count)


def test_there_is_one_device_at_least():
    with pytest.raises(ArgumentError, match=r"cannot use cpu_devices=0 \(an integer from 1 on\)"):
        rune.configure(cpu_devices=0)
