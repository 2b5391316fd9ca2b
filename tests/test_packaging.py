"""The wheel contains all of rune/ and nothing else, and needs only the required packages.

The wheel is read, not installed: building it takes a second, and needs hatchling alone.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    process = subprocess.run([sys.executable, "-c", build], cwd=ROOT, capture_output=True, text=True, check=True)
    return zipfile.ZipFile(folder / process.stdout.split()[-1])


def test_the_distribution_is_named_apart_from_the_import():
    assert PROJECT["name"] == "rune-ml"
    assert PROJECT["requires-python"] == ">=3.11"


def test_the_wheel_holds_every_module_and_the_hosts_of_exported_programs(wheel):
    files = [*(ROOT / "rune").rglob("*.py"), *(ROOT / "rune/exporting/source/hosts").glob("*.*")]
    sources = {str(f.relative_to(ROOT)) for f in files}

    assert {"rune/exporting/source/hosts/vulkan.c", "rune/exporting/source/hosts/page.html"} < sources
    assert sources <= set(wheel.namelist())


def test_the_wheel_holds_nothing_but_rune_its_licence_and_a_line_for_pythons_start(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}

    assert {t for t in tops if not t.endswith(".dist-info")} == {"rune", "rune_as_jax.pth"}
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_the_licence_is_the_whole_apache_text():
    text = (ROOT / "LICENSE").read_text()

    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert PROJECT["license"] == "Apache-2.0"


def test_the_package_has_an_extra_for_each_kind_of_device():
    extras = set(PROJECT["optional-dependencies"])

    assert {"opencl", "vulkan", "wgpu", "cuda", "notebook", "distributed", "test"} <= extras


def test_the_extra_for_cuda_needs_only_wheels():
    assert PROJECT["optional-dependencies"]["cuda"] == ["cuda-bindings", "nvidia-cuda-nvrtc"]


def test_importing_rune_imports_no_driver_and_no_extra():
    optional = "pyopencl matplotlib tqdm scipy hypothesis pytest jax torch pycuda vulkan wgpu"
    code = f"import sys, rune; print([m for m in {optional.split()} if m in sys.modules])"

    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert process.stdout.strip() == "[]"


def test_methods_of_arrays_work_before_anybody_names_rune_numpy():
    code = (
        "import sys, numpy as np, rune; x = rune.device_put(np.arange(3.0));"
        "assert 'rune.numpy' not in sys.modules;"
        "print(x.sum(), x.__array_namespace__().__name__)"
    )

    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert process.stdout.split() == ["3.0", "rune.numpy.mutable"]
