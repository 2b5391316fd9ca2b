"""Damaged and malicious files: each is an error, and nothing in them is executed.

`python tests/hostile_files.py` tries a hundred thousand; a few hundred run here. Only the command
installs an audit hook, because a hook cannot be removed after a test.
"""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import CheckError
from rune.exporting import weights
from rune.exporting.weights import Content
from tests import hostile_files

SEEDS = 600
W = rnp.arange(6.0).reshape(2, 3)


@pytest.fixture(scope="module")
def files() -> list[bytes]:
    return hostile_files.sound()


def test_damaged_and_forged_files_are_refused(files: list[bytes]):
    outcomes = [hostile_files.attempt(seed, files) for seed in range(SEEDS)]

    assert outcomes.count("refused") > 0.9 * SEEDS


def test_python_executes_opens_and_imports_nothing_for_them():
    command = [sys.executable, "-m", "tests.hostile_files", "--files", "200"]

    process = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)

    assert (process.returncode, process.stdout[:10]) == (0, "200 files:"), process.stderr


def test_every_byte_counts():
    file = rune.export(lambda x: x @ W)(rnp.ones(2)).serialize()

    for at in range(len(file)):
        damage = file[:at] + bytes([file[at] ^ 4]) + file[at + 1 :]
        with pytest.raises(CheckError, match=r"load: cannot read|parse: cannot read"):
            rune.export.load(damage)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100, -1])
def test_a_file_cut_anywhere_is_refused(length: int, files: list[bytes]):
    with pytest.raises(CheckError, match="cannot read an exported file"):
        rune.export.load(files[0][:length])


class Evil:
    """The call that unpickling it would make."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was read",))


def _bomb() -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../program.txt", b"\0" * (1 << 24))
    return memory.getvalue()


@pytest.mark.parametrize(
    "file",
    [pickle.dumps(Evil()), _bomb(), b"\xff" * 64, (1 << 62).to_bytes(8, "little") + b"{}", b"import os"],
    ids=["pickle", "zip bomb", "ones", "a header without end", "source"],
)
def test_other_files_are_refused(file: bytes):
    with pytest.raises(CheckError, match="load: cannot read an exported file"):
        rune.export.load(file)


def forged(changes: Mapping[str, Any] = {}, arrays: Mapping[str, np.ndarray] | None = None) -> bytes:
    """A file with other texts or arrays, and a digest that fits."""
    content = weights.decode(np.frombuffer(rune.export(lambda x: rnp.sin(x) @ W)(rnp.ones(2)).serialize(), np.uint8))
    texts = {**content.texts, **changes}
    return weights.encode(Content(content.arrays if arrays is None else arrays, texts))


def program(body: str, inputs: str = "%0: f32[2,3], %1: f32[2]", where: str = "") -> dict[str, str]:
    return {"program.0": f"program f({inputs}){where} {{\n{body}\n}}"}


TREES = {"in": ["tuple", ["tuple", "*"], ["dict", []]], "out": "*", "weights": ["w000000"]}
DEEP = "(" * 50_000
_LOOP = rune.export(lambda x: rune.scan(lambda c, r: (c + r, c), 0.0, x))(rnp.ones(2)).program.text()
HOSTILE: list[tuple[str, Any]] = [
    ("version", {"version": "2"}),
    ("a digest of its own", {"sha256": "0"}),
    ("orders without end", {"orders": "9" * 5000}),
    ("no orders", {"orders": "0"}),
    ("more parts", {"program.7": "program f() { return }"}),
    ("another path", {"../../program.0": "x"}),
    ("an unknown operation", program("%2: f32[3] = os.system %1 return %2")),
    ("a callback", program("%2: f32[2] = callback %1 {function=<f>, types=(f32[2],)} return %2")),
    ("a function", program("%2: f32[2] = sin %1 {rule=<os.system>} return %2")),
    ("a wrong type", program("%2: f32[99] = sin %1 return %2")),
    ("a wrong dtype", program("%2: f64[2] = sin %1 return %2")),
    ("a parameter too few", program("%2: f32[] = reduce_sum %1 return %2")),
    ("a parameter of a record", program("%2: f32[2] = reduce_window %1 {combine='max', evil=1} return %2")),
    ("a misspelled parameter of a loop", {"program.0": _LOOP.replace("consts=", "lsts=")}),
    (
        "a device",
        program("%2: f32[2] = jit %1 {device='cpu:0', program=program g(%0: f32[2]) { return %0 }} return %2"),
    ),
    ("an unknown parameter", program("%2: f32[2] = sin %1 {evil=1} return %2")),
    ("arrays in the text", program("const %2: f32[2] = [1.0, 2.0] return %2")),
    ("an unbound variable", program("return %7")),
    ("another result", program("return %0, %1")),
    ("another weight", program("return %1", "%0: f32[3,2], %1: f32[2]")),
    ("a weight too few", program("return %0", "%0: f32[2]")),
    (
        "a size that nothing tells",
        program("%2: f32[n] = iota {axis=0, dtype=f32, shape=(n,)} return %2", where=" where n in 1..4"),
    ),
    (
        "a product without end",
        program(
            "return %1",
            f"%0: f32[2,3], %1: f32[2], %2: f32[{'*'.join(['(a+b+c+d+e)'] * 40)}]",
            " where " + ", ".join(f"{c} in 1..9" for c in "abcde"),
        ),
    ),
    ("a nest", {"program.0": f"program f(%0: f32[{DEEP}"}),
    (
        "a nest of programs",
        program("%2: f32[2] = jit %1 {program=" + "program f(%0: f32[2]) { %1: f32[2] = jit %0 {program=" * 3000),
    ),
    ("a nest of trees", {"trees.0": "[" * 50_000}),
    ("trees that are not trees", {"trees.0": "null"}),
    ("a class of trees", {"trees.0": json.dumps({**TREES, "out": ["node", "os.system", "", "*"]})}),
    ("keys twice", {"trees.0": json.dumps({**TREES, "out": ["dict", ["a", "a"], "*", "*"]})}),
    ("a weight that is not there", {"trees.0": json.dumps({**TREES, "weights": ["w9"]})}),
    ("weights that are not a list", {"trees.0": json.dumps({**TREES, "weights": {"a": 1}})}),
]


def test_bounds_that_double_from_size_to_size_are_read_at_once():
    sizes = ["a0 in 0..inf", *(f"a{i} in a{i - 1}*a{i - 1}..inf" for i in range(1, 60))]

    rune.export.load(forged(program("return %1", where=f" where {', '.join(sizes)}")))


@pytest.mark.parametrize(("changes"), [c for _, c in HOSTILE], ids=[n for n, _ in HOSTILE])
def test_a_hostile_file_is_refused(changes: dict[str, str]):
    with pytest.raises(CheckError):
        rune.export.load(forged(changes))


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 2), np.float32), np.zeros((2, 3), np.int32), np.zeros((2, 3, 4), np.uint8)],
    ids=["shape", "dtype", "bytes"],
)
def test_weights_of_another_type_are_refused(array: np.ndarray):
    with pytest.raises(CheckError, match="cannot read an exported file"):
        rune.export.load(forged(arrays={"w000000": array}))


def test_bytes_that_are_not_a_value_of_the_dtype_are_refused():
    weight = rnp.asarray([False, True, True])
    file = rune.export(lambda i: weight[i])(0).serialize()
    assert rune.export.load(file).call(1) == 1

    content = weights.decode(np.frombuffer(file, np.uint8))
    byte = np.array(content.arrays["w000000"]).view(np.uint8)
    byte[(0,) * byte.ndim] = 77
    stored_dtype = content.arrays["w000000"].dtype
    forgery = weights.encode(Content({"w000000": byte.view(stored_dtype)}, content.texts))

    with pytest.raises(CheckError, match="truth values"):
        rune.export.load(forgery)
