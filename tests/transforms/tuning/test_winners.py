"""Winners are found only under their kernel and device, even if a process died while writing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import rune
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import kernelize
from rune.lowering.kernels import Kernel
from rune.transforms.tuning import winners
from rune.transforms.tuning.winners import Winner, load, store, stored
from tests.lowering.test_build import AB, dot
from tests.support.lowering import f32, only_kernel, program_of, target

CPU = target()
WINNER = Winner("tile(i0=2)", 0.5, 10.0)


def kernel_of(rows: int = 12) -> Kernel:
    return only_kernel(kernelize(program_of(dot(AB), f32(rows, 5), f32(5, 6)), CPU))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path):
    with rune.configure(cache_dir=str(tmp_path)):
        winners.forget()
        yield tmp_path / "schedules"
    winners.forget()


def in_another_process(kernel: Kernel, device: Target = CPU) -> Winner | None:
    winners.forget()
    return load(kernel, device)


def test_a_winner_is_reused_here_and_in_another_process():
    store(kernel_of(), CPU, WINNER)

    assert load(kernel_of(), CPU) == in_another_process(kernel_of()) == WINNER


def test_the_last_winner_counts():
    store(kernel_of(), CPU, WINNER)
    store(kernel_of(), CPU, replace(WINNER, budget=20.0))

    assert load(kernel_of(), CPU) == in_another_process(kernel_of()) == replace(WINNER, budget=20.0)


def test_the_name_of_a_kernel_does_not_matter():
    store(kernel_of(), CPU, WINNER)

    assert in_another_process(replace(kernel_of(), name="another")) == WINNER


@pytest.mark.parametrize("change", [{"driver": "2"}, {"description": "another"}, {"cores": 99}, {"language": "wgsl"}])
def test_each_device_has_its_own_winners(change: dict):
    store(kernel_of(), CPU, WINNER)

    assert in_another_process(kernel_of(), replace(CPU, **change)) is None


def test_another_kernel_has_none():
    store(kernel_of(), CPU, WINNER)

    assert in_another_process(kernel_of(rows=13)) is None


def test_without_a_directory_winners_last_as_long_as_the_process():
    with rune.configure(cache_dir=""):
        store(kernel_of(), CPU, WINNER)

        assert load(kernel_of(), CPU) == WINNER
        assert in_another_process(kernel_of()) is None


def test_who_has_no_winners_makes_no_folder(folder: Path):
    assert load(kernel_of(), CPU) is None
    assert not folder.exists()


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[:-1], lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-3] + b"xyz", lambda b: b + b"x"],
)
def test_a_damaged_winner_is_a_miss(folder: Path, damage):
    store(kernel_of(), CPU, WINNER)
    (entry,) = folder.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))

    assert in_another_process(kernel_of()) is None


@pytest.mark.parametrize("schedule", ["tile(i7=2)", "share(3)", "nonsense"])
def test_a_winner_that_is_not_legal_leaves_the_default(schedule: str):
    store(kernel_of(), CPU, replace(WINNER, schedule=schedule))

    assert stored(CPU)(kernel_of()) == (None, "default")


def test_kernels_are_built_by_their_winner_unless_searches_are_off():
    store(kernel_of(), CPU, WINNER)
    kernel, origin = stored(CPU)(kernel_of())

    assert kernel is not None
    assert (str(kernel.schedule), origin) == ("tile(i0=2)", "winner of a search")
    with rune.configure(search="off"):
        assert stored(CPU)(kernel_of()) == (None, "default")


# Children of a process without threads, each killed at another moment of its writing.
KILLED = """
import os, random, signal, sys, time
import rune
from rune.transforms.tuning import winners
from tests.transforms.tuning.test_winners import CPU, kernel_of
rune.configure(cache_dir=sys.argv[1])
kernels = [kernel_of(rows) for rows in range(10, 14)]
texts = [winners.Winner("plain" * 5000, 1.0, float(n)) for n in range(4)]
for moment in random.Random(0).choices([0.0, 0.0005, 0.001, 0.003, 0.01], k=30):
    child = os.fork()
    while not child:
        for kernel, text in zip(kernels, texts):
            winners.store(kernel, CPU, text)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    winners.forget()
    for kernel, text in zip(kernels, texts):
        assert winners.load(kernel, CPU) in (None, text)
for kernel, text in zip(kernels, texts):  # nothing that was killed is in the way
    winners.store(kernel, CPU, text)
winners.forget()
print([winners.load(kernel, CPU) for kernel in kernels] == texts)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forks")
def test_processes_that_are_killed_while_they_write_leave_winners_or_misses(folder: Path):
    command = [sys.executable, "-c", KILLED, str(folder.parent)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (process.returncode, process.stdout) == (0, "True\n"), process.stderr
    store(kernel_of(), CPU, WINNER)
    assert in_another_process(kernel_of()) == WINNER
