"""doctor: the text lists what works, what is missing, and the command that installs it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import rune
from rune import backends
from rune.backends import doctor
from rune.backends.doctor import NEEDS


def test_every_executor_is_named_with_its_devices_or_why_there_is_none():
    report = rune.doctor()

    names = {d.name for e in report.executors for d in e.devices}
    assert names == {d.name for d in rune.devices()}
    assert {e.name: e.why for e in report.executors if not e.devices} == rune.missing()


def test_every_device_that_computes_works():
    findings = {d.name: d.finding for e in rune.doctor().executors for d in e.devices}

    assert findings.pop("null:0") == "computes nothing"
    assert {name: finding for name, finding in findings.items() if "works" not in finding} == {}


def test_a_driver_that_fails_without_a_word_is_reported(monkeypatch: Any):
    def fail(device: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(doctor, "_computed", fail)

    assert {d.finding for e in rune.doctor().executors for d in e.devices} == {"FAILS (RuntimeError)"}


def test_the_text_begins_with_the_versions_that_a_report_needs():
    first = str(rune.doctor()).splitlines()[0]

    assert all(word in first for word in ("rune", "Python 3.", "numpy 2", "ml_dtypes "))


def test_a_notebook_and_a_prompt_show_the_text():
    report = doctor.Report(("rune 1",), (), "switched off")

    assert repr(report) == str(report) == "rune 1\n\ncompiled kernels  switched off"


def missing(monkeypatch: pytest.MonkeyPatch, reason: str) -> str:
    """The text where OpenCL is all there could be, and is not."""
    monkeypatch.setattr(backends, "missing", lambda: {"opencl": reason})
    monkeypatch.setattr(backends, "devices", lambda: ())
    return str(doctor.doctor())


def test_a_missing_package_comes_with_the_command_that_installs_it(monkeypatch: Any):
    monkeypatch.setattr(doctor, "_version", lambda name: None)

    text = missing(monkeypatch, "pyopencl cannot be imported (no module)")
    assert "  missing: pyopencl cannot be imported (no module)" in text
    assert '  to get it: pip install "rune-ml[opencl]"' in text


def test_a_missing_driver_comes_with_how_to_get_one(monkeypatch: Any):
    monkeypatch.setattr(doctor, "_version", lambda name: f"{name} 1.0")

    text = missing(monkeypatch, "no OpenCL platform")
    assert "opencl  (pyopencl 1.0, pocl-binary-distribution 1.0)" in text
    assert "  to get it: install the OpenCL driver of your GPU's vendor" in text


SAID = {
    "a package": (
        "opencl",
        False,
        "pyopencl cannot be imported (no module); pip install 'rune-ml[opencl]'",
        """
        opencl
          missing: pyopencl cannot be imported (no module)
          to get it: pip install "rune-ml[opencl]"
        """,
    ),
    "a driver": (
        "vulkan",
        True,
        "there is no Vulkan driver; apt install libvulkan1 mesa-vulkan-drivers, or the vendor's driver",
        """
        vulkan  (vulkan 1.0)
          missing: there is no Vulkan driver
          to get it: apt install libvulkan1 mesa-vulkan-drivers, or the vendor's driver
        """,
    ),
    "a driver below a package that is there": (
        "cuda",
        True,
        "no NVIDIA driver (libcuda.so.1 cannot be loaded); with one: pip install 'rune-ml[cuda]'",
        """
        cuda  (cuda-bindings 1.0, nvidia-cuda-nvrtc 1.0, pycuda 1.0)
          missing: no NVIDIA driver (libcuda.so.1 cannot be loaded)
          to get it: install NVIDIA's driver; nvidia-smi shows the GPUs that it finds
        """,
    ),
    "both": (
        "cuda",
        False,
        "no NVIDIA driver (libcuda.so.1 cannot be loaded); with one: pip install 'rune-ml[cuda]'",
        """
        cuda
          missing: no NVIDIA driver (libcuda.so.1 cannot be loaded)
          to get it: pip install "rune-ml[cuda]", beside NVIDIA's driver
        """,
    ),
    "another version": (
        "cuda",
        True,
        "the driver is of CUDA 12 and loads no code of NVRTC 13; update it, or pip install nvidia-cuda-nvrtc-cu12",
        """
        cuda  (cuda-bindings 1.0, nvidia-cuda-nvrtc 1.0, pycuda 1.0)
          missing: the driver is of CUDA 12 and loads no code of NVRTC 13
          to get it: update it, or pip install nvidia-cuda-nvrtc-cu12
        """,
    ),
    "what a third party knows": (
        "abacus",
        True,
        "no beads; abacus-install beads",
        """
        abacus
          missing: no beads; abacus-install beads
        """,
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_a_command_is_printed_once(case: str, monkeypatch: pytest.MonkeyPatch):
    name, is_installed, reason, golden = SAID[case]
    monkeypatch.setattr(doctor, "_version", lambda name: f"{name} 1.0" if is_installed else None)
    monkeypatch.setattr(backends, "missing", lambda: {name: reason})
    monkeypatch.setattr(backends, "devices", lambda: ())
    _, executor, _ = str(doctor.doctor()).split("\n\n")
    assert executor == inspect.cleandoc(golden)


def test_a_device_that_fails_reports_how(monkeypatch: Any):
    def broken(self: Any, plan: Any) -> Any:
        raise RuntimeError("the driver is upset\nvery")

    kind = type(backends.device_named("reference:0").backend)
    monkeypatch.setattr(kind, "record", broken)

    assert (
        "reference:0  NumPy interpreter of kernel code, every check on: FAILS (RuntimeError: "
        "the driver is upset)" in str(rune.doctor())
    )


def test_a_device_that_computes_wrongly_is_found(monkeypatch: Any):
    kind = type(backends.device_named("reference:0").backend)
    original: Any = kind.copy_out
    monkeypatch.setattr(kind, "copy_out", lambda self, b, t: original(self, b, t) + 1)

    assert "FAILS (1..8 doubled is not 2..16)" in str(rune.doctor())


def test_the_report_lists_what_a_driver_lacks_below_its_device(monkeypatch: Any):
    kind = type(backends.device_named("reference:0").backend)
    monkeypatch.setattr(kind, "lacks", lambda self: ("no loops in graphs, the host walks them (why)",), raising=False)

    assert "\n    no loops in graphs, the host walks them (why)\n" in str(rune.doctor())


def test_every_executor_of_rune_that_needs_something_has_a_command():
    with_drivers = set(backends._NAMES) - {"reference", "null"}

    assert with_drivers <= set(NEEDS)
    assert all("pip install" in needs.install for needs in NEEDS.values())


def test_the_cache_of_kernels_is_reported(tmp_path: Any):
    with rune.configure(cache_dir=str(tmp_path)):
        assert f"compiled kernels  {tmp_path}" in str(rune.doctor())
    with rune.configure(cache_dir=""):
        assert "compiled kernels  switched off" in str(rune.doctor())
    (tmp_path / "file").write_text("")
    with rune.configure(cache_dir=str(tmp_path / "file")):
        assert "compiled kernels  not used: " in str(rune.doctor())
