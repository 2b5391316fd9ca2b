"""A backend outside the repository: the manual (docs/backends.md) is enough to write one.

`thirdparty/` is such a package. Its wheel is built and unpacked into a separate folder, as pip
would do; a fresh interpreter finds it by its entry point and runs the package's own tests and the
conformance tests. A broken entry point is reported as the reason for an absent backend; it is never
an error.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import rune.ops

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(__file__).parent / "thirdparty"
MANUAL = (ROOT / "docs" / "backends.md").read_text()
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
SOURCES = sorted((PACKAGE / "rune_pyloops").glob("*.py"))


def python(*args: object, path: Path, cwd: Path = ROOT) -> str:
    """The output of a fresh interpreter, which also looks for packages in `path`."""
    process = subprocess.run(
        [sys.executable, *map(str, args)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in it, and its metadata."""
    folder = tmp_path_factory.mktemp("installed")
    wheel = python("-c", BUILD, folder, path=folder, cwd=PACKAGE).split()[-1]
    zipfile.ZipFile(folder / wheel).extractall(folder)
    return folder


def test_it_is_listed_and_passes_its_own_tests_and_the_conformance_tests(installed: Path):
    out = python(
        "-m",
        "pytest",
        "-v",
        "-p",
        "no:cacheprovider",
        PACKAGE / "checks.py",
        "tests/laws/test_conformance.py",
        "-k",
        "checks or pyloops",
        path=installed,
    )

    pass_count = re.search(r"(\d+) passed", out)
    assert re.search(r"executors: .*pyloops:0", out)
    assert pass_count is not None
    assert int(pass_count[1]) > 2 * len(rune.ops.PRIMITIVES)


def test_a_call_on_another_device_imports_neither_the_package_nor_a_driver(installed: Path):
    code = """
import sys, rune
rune.jit(lambda x: x + 1.0)(1.0)
print([m for m in ("rune_pyloops", "pyopencl") if m in sys.modules])
"""

    assert python("-c", code, path=installed).strip() == "[]"


# --- the manual -------------------------------------------------------------------------------


def test_the_code_of_the_manual_is_the_packages_own():
    code = "\n".join(f.read_text() for f in (*SOURCES, PACKAGE / "pyproject.toml"))
    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```", MANUAL, re.M | re.S)

    assert len(blocks) > 5
    assert [block for block in blocks if block not in code] == []


def test_the_package_imports_only_what_the_manual_names():
    table = MANUAL[MANUAL.index("## What it may import") :]
    modules_in_manual = {m for row in re.findall(r"^\| (`.*?) \|", table, re.M) for m in _modules(row)}
    imports = {m for file in SOURCES for m in _imports(file) if m.split(".")[0] == "rune"}

    assert imports - modules_in_manual - {"rune"} == set()


def test_the_package_is_shorter_than_five_hundred_lines():
    assert sum(len(file.read_text().splitlines()) for file in SOURCES) < 500


def _modules(row: str) -> list[str]:
    """`rune.a.b`, `.c` -> rune.a.b, rune.a.c."""
    first, *others = re.findall(r"`([\w.]+)`", row)
    return [first, *(m if m[0] != "." else first.rpartition(".")[0] + m for m in others)]


def _imports(file: Path) -> set[str]:
    """Modules of rune that a file imports; `from rune import dims` counts as rune.dims."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            is_package = node.module == "rune"
            modules |= {f"rune.{a.name}" for a in node.names} if is_package else {node.module}
    return modules


# --- what is broken ---------------------------------------------------------------------------

BROKEN = {
    "absent": ("no_such_module", ""),
    "crashing": ("crashing", "raise OSError('libabacus.so is missing')"),
    "raising": ("raising", "def probe(): raise RuntimeError('driver 1.0 is too old')"),
    "empty": ("empty", ""),
    "nothing": ("nothing", "def probe(): return [], 'no abacus is plugged in'"),
    "astray": ("astray", "from rune.backends.null import probe"),
    "cpu": ("another_cpu", "from rune.backends.null import probe"),
}
LIST = """
import json, rune
print(json.dumps([[d.name for d in rune.devices()], rune.missing()]))
"""


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, str]]:
    """Devices and reasons in an interpreter that finds all of the broken packages."""
    folder = tmp_path_factory.mktemp("broken")
    for name, (module, source) in BROKEN.items():
        info = folder / f"rune_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: rune-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[rune.backends]\n{name} = {module}\n")
        if module != "no_such_module":
            (folder / f"{module}.py").write_text(source)
    names, reasons = json.loads(python("-c", LIST, path=folder))
    return names, reasons


def test_broken_backends_do_not_affect_others(listed: Any):
    names, _ = listed

    assert names[0] == "cpu:0"
    assert {"reference:0", "null:0"} <= set(names)
    assert not {n.split(":")[0] for n in names} & (BROKEN.keys() - {"cpu"})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent", "no_such_module fails (ModuleNotFoundError: No module named 'no_such_module')"),
        ("crashing", "crashing fails (OSError: libabacus.so is missing)"),
        ("raising", "raising fails (RuntimeError: driver 1.0 is too old)"),
        ("empty", "empty fails (AttributeError: module 'empty' has no attribute 'probe')"),
        ("nothing", "no abacus is plugged in"),
        ("astray", "astray gives its devices another name (null:0)"),
        ("cpu of another_cpu", "another backend has the name cpu"),
    ],
)
def test_a_broken_backend_is_listed_with_a_reason(listed: Any, name: str, reason: str):
    assert listed[1][name] == reason
