"""The CUDA folder, run: its host and its kernels by g++, on the blocks of the emulated device.

Everything is the folder's own, except for CUDA's runtime (tests/cuda_emulator/runtime) and the
syntax of a launch. This does not show that a GPU computes the same.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.exporting.source import Folder
from tests import cuda_emulator
from tests.exporting.test_open_sizes import joined
from tests.exporting.test_source import CASES, X, loops, rearrangements
from tests.support.sampling import IS_WHOLE

needs_gxx = pytest.mark.skipif(cuda_emulator.why_not() is not None, reason=str(cuda_emulator.why_not()))
EMULATOR = Path(cuda_emulator.__file__).parent
_LAUNCH = re.compile(r"(\w+)<<<(.+), (\d+), (\d+)>>>\((.*)\);")
_OF_A_USER = re.compile(r"^  (\S.*)<<<(.+, .+, .+)>>>\((.*)\);", re.MULTILINE)
_HOST = ("-O1", "-w", "-std=gnu++17", "-ffp-contract=off", "-fno-builtin", "-fno-strict-aliasing", "-fwrapv")


def built(folder: Folder, path: Path) -> subprocess.CompletedProcess[str]:
    """The output of a folder's program."""
    folder.save(path)
    name = folder.name
    host, kernels = (path / f"{name}.cu").read_text(), (path / f"{name}_kernels.cu").read_text()
    source = _LAUNCH.sub(r"launch(kernel_\1, \2, \3, \4, \5);", host)
    assert "<<<" not in source
    (path / f"{name}.cpp").write_text(source)
    (path / f"{name}_kernels.cu").write_text(cuda_emulator.host_source(kernels))
    for file in path.glob(f"{name}_source_*.cu"):
        source = _OF_A_USER.sub(r"  launch([&] { \1(\3); }, \2);", file.read_text())
        assert "<<<" not in source
        file.with_suffix(".cpp").write_text('#include "launches.h"\n' + cuda_emulator.host_source(source))
    includes = ["-I", str(EMULATOR / "runtime"), "-I", str(EMULATOR)]
    hosts = [file.name for file in path.glob("*.cpp")]
    objects = [f"{Path(file).stem}.o" for file in ("main.c", f"{name}_weights.c", *hosts, "blocks.cpp")]
    lines = [
        ["cc", "-std=c11", "-c", "main.c", f"{name}_weights.c"],
        ["g++", *_HOST, *includes, "-c", *hosts, str(EMULATOR / "blocks.cpp")],
        ["g++", *objects, "-lm", "-pthread", "-o", name],
    ]
    for line in lines:
        subprocess.run(line, cwd=path, check=True, timeout=300)
    return subprocess.run([f"./{name}"], cwd=path, capture_output=True, text=True, timeout=300)


def moments(x: Any) -> Any:
    return rune.nn.softmax(rnp.sin(x)), rnp.cumsum(x, 1), rnp.argmax(x, 0), rnp.sort(x, 0)


def together(x: Any, i: Any) -> Any:
    return (*moments(x), *loops(x, i), *rearrangements(x))


# One folder covers most cases, as g++ needs seconds for each folder.
SOME = CASES if IS_WHOLE else [(together, (X, 5))]


@needs_gxx
@pytest.mark.parametrize(("function", "args"), SOME)
def test_a_cuda_folder_agrees_with_its_vectors(function: Any, args: tuple, tmp_path: Path):
    run = built(rune.export.source(function, target="cuda", name="tested")(*args), tmp_path)

    assert run.stdout.endswith("ok\n"), run.stdout + run.stderr
    assert run.stdout.count("difference") == len(rune.tree.leaves(function(*args)))


def open_together(x: Any, i: Any) -> Any:
    return (*joined(x, x), *loops(x, i), rnp.sort(x, 0))


@needs_gxx
def test_a_cuda_folder_of_open_sizes_agrees_with_its_vectors_of_several(tmp_path: Path):
    folder = rune.export.source(open_together, target="cuda", name="tested")(
        X, 5, dims={"n": (1, 64)}, in_dims=("n", None)
    )
    run = built(folder, tmp_path)

    assert run.stdout.endswith("ok\n"), run.stdout + run.stderr
    assert run.stdout.count("n = ") >= 3


def test_no_thread_does_the_work_of_a_kernel_of_one_point_again():
    counting = rune.export.source(
        lambda i: rune.while_loop(lambda n: n < i, lambda n: n + 1, 0), target="cuda", name="counting"
    )

    shapes = {launch[1:3] for launch in _LAUNCH.findall(str(counting(5).files["counting.cu"]))}
    assert shapes == {("1", "1")}
