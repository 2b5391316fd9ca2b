"""Machine code that runs without LLVM: an image is laid out once, and other processes map it."""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import rune
from rune.backends.cpu import compiler, conventions, llvm, processor
from rune.backends.cpu.images import layout, loader
from rune.backends.cpu.images.layout import Unplaced, image_of
from rune.backends.shared import disk_cache
from rune.errors import CacheWarning, DeviceError

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(not loader.is_available(), reason="the layout knows ELF on x86-64 alone")

# Every way in which code refers to something: constants, tables of addresses, jumps by number, data
# that changes, data that begins as zeros, functions of the module, of the C library, of a caller.
TEXT = """
@squares = internal constant [5 x i64] [i64 0, i64 1, i64 4, i64 9, i64 16]
@functions = internal constant [2 x ptr] [ptr @twice, ptr @abs]
@outside = internal constant [2 x ptr] [ptr inttoptr (i64 4096 to ptr), ptr inttoptr (i64 8192 to ptr)]
@count = global i64 7
@zeros = internal global [9 x i64] zeroinitializer, align 128
declare i32 @abs(i32)

define i32 @twice(i32 %x) #0 {
  %y = mul i32 %x, 2
  ret i32 %y
}
define i64 @square(i64 %k) #0 {
  %at = getelementptr i64, ptr @squares, i64 %k
  %x = load i64, ptr %at
  ret i64 %x
}
define i32 @by_table(i64 %k, i32 %x) #0 {
  %at = getelementptr ptr, ptr @functions, i64 %k
  %f = load ptr, ptr %at
  %y = call i32 %f(i32 %x)
  ret i32 %y
}
define i64 @address(i64 %k) #0 {
  %at = getelementptr ptr, ptr @outside, i64 %k
  %p = load ptr, ptr %at
  %n = ptrtoint ptr %p to i64
  ret i64 %n
}
define i64 @next() #0 {
  %n = load i64, ptr @count
  %m = add i64 %n, 1
  store i64 %m, ptr @count
  %at = getelementptr i64, ptr @zeros, i64 8
  %z = load i64, ptr %at
  %s = add i64 %m, %z
  ret i64 %s
}
define double @chosen(i32 %k) #0 {
  switch i32 %k, label %other [ i32 0, label %a  i32 1, label %b  i32 2, label %c  i32 3, label %d  i32 4, label %e ]
a:
  ret double 0.1
b:
  ret double 2.5
c:
  %x = call i32 @abs(i32 -3)
  %y = sitofp i32 %x to double
  ret double %y
d:
  ret double 1.0e-300
e:
  ret double -0.7
other:
  ret double 9.0
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """A cache of this test's alone."""
    with rune.configure(cache_dir=str(tmp_path)):
        yield tmp_path


def object_code(effort: int, text: str = TEXT) -> bytes:
    with_symbols, _ = compiler._with_symbols(f"{text}\n{compiler.attributes()}\n")
    return llvm._object(with_symbols, effort, conventions.IN_ONE_PIECE, compiler.host())


def function(code: loader.Mapped | compiler.Code, name: str, result: type, *arguments: type):
    return ctypes.CFUNCTYPE(result, *arguments)(code.address(name))


def check(code: loader.Mapped | compiler.Code) -> None:
    """All functions compute what their text specifies."""
    i32, i64 = ctypes.c_int32, ctypes.c_int64
    assert [function(code, "square", i64, i64)(k) for k in range(5)] == [0, 1, 4, 9, 16]
    assert [function(code, "by_table", i32, i64, i32)(k, -21) for k in range(2)] == [-42, 21]
    assert [function(code, "address", i64, i64)(k) for k in range(2)] == [4096, 8192]
    assert [function(code, "next", i64)() for _ in range(2)] == [8, 9]
    assert i64.from_address(code.address("count")).value == 9
    choose = function(code, "chosen", ctypes.c_double, i32)
    assert [choose(k) for k in range(6)] == [0.1, 2.5, 3.0, 1e-300, -0.7, 9.0]


@pytest.mark.parametrize("effort", [conventions.HURRY, conventions.LITTLE, conventions.EFFORT])
def test_code_in_an_image_finds_all_that_it_refers_to(effort: int):
    image = image_of(object_code(effort), conventions.number_of)

    copy = loader.image_of(image.to_bytes())
    assert copy == image
    check(loader.load(copy, [4096, 8192]))


def test_each_load_has_data_of_its_own():
    image = image_of(object_code(conventions.EFFORT), conventions.number_of)

    for _ in range(2):
        check(loader.load(image, [4096, 8192]))


def permissions(address: int) -> str | None:
    """Those of the page at an address, as the system lists them."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        places, flags, *_ = line.split()
        first, last = (int(place, 16) for place in places.split("-"))
        if first <= address < last:
            return flags
    return None


def test_no_page_can_be_written_and_executed():
    code = loader.load(image_of(object_code(conventions.EFFORT), conventions.number_of), [4096, 8192])

    assert (permissions(code.address("square")), permissions(code.address("count"))) == ("r-xp", "rw-p")


def test_a_dropped_image_gives_its_memory_back():
    image = loader.Image(b"\xc3", loader.PAGE, 1 << 30, {"f": 0, "end": (1 << 30) - 1}, (), ())
    code = loader.load(image, ())
    end = code.address("end")
    assert permissions(end) == "rw-p"

    del code
    gc.collect()
    assert permissions(end) is None


def test_threads_load_and_run_one_image_at_once():
    image = image_of(object_code(conventions.EFFORT), conventions.number_of)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                check(loader.load(image, [4096, 8192]))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_function_that_the_process_lacks_is_named():
    text = "declare i32 @no_such_function()\ndefine i32 @f() #0 {\n  %x = call i32 @no_such_function()\n  ret i32 %x\n}"

    with pytest.raises(DeviceError, match="cpu: cannot link no_such_function"):
        compiler.compile_module("f", text)


# --- what the layout does not support -------------------------------------------------------------


def relocations(code: bytes) -> Iterator[int]:
    """The offset of each relocation's kind in an object file."""
    for section in layout._sections(code):
        if section.type == layout._RELA and section.name == ".rela.text":
            yield from range(section.offset + 8, section.offset + section.size, layout._RELOCATION.size)


@pytest.mark.parametrize("kind", [0, 3, 10, 11, 22, 250])
def test_a_relocation_of_another_kind_is_refused_when_code_is_written(kind: int):
    code = bytearray(object_code(conventions.EFFORT))
    at = next(relocations(bytes(code)))
    code[at : at + 4] = struct.pack("<I", kind)

    with pytest.raises(Unplaced, match=f"relocation {kind} refers to"):
        image_of(bytes(code), conventions.number_of)


def test_data_of_a_thread_and_wide_alignment_are_refused():
    for text in ("@x = thread_local global i64 1", "@x = global i64 1, align 8192"):
        code = object_code(conventions.EFFORT, f"{text}\ndefine ptr @f() #0 {{\n  ret ptr @x\n}}")
        with pytest.raises(Unplaced, match=r"section .* is aligned to .* B, or of a thread"):
            image_of(code, conventions.number_of)


@pytest.mark.parametrize("contents", [b"", b"MZ", b"\x7fELF\x01\x01", b"\x7fELF\x02\x01" + bytes(58)])
def test_a_file_that_is_not_an_object_for_this_processor_is_refused(contents: bytes):
    with pytest.raises(Unplaced, match="not an ELF file for x86-64"):
        image_of(contents, conventions.number_of)


def test_code_that_cannot_be_an_image_is_linked_by_llvm_with_a_warning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layout, "_BY_TABLE", frozenset())
    monkeypatch.setattr(disk_cache, "_warned_subjects", set())

    with pytest.warns(CacheWarning, match=r"LLVM links told anew in each process \(relocation \d+ refers to"):
        check(compiler.compile_module("told", TEXT))
    with warnings.catch_warnings():  # it was said once
        warnings.simplefilter("error")
        check(compiler.compile_module("told", TEXT))


# --- the processor --------------------------------------------------------------------------------


def test_the_processor_is_known_from_disk_as_llvm_names_it():
    first, second = processor.known(llvm.processor), processor.known(lambda: pytest.fail("LLVM was asked again"))

    assert first == second == llvm.processor()
    assert processor._identity.__wrapped__() == processor._identity()


def test_another_llvm_or_processor_is_queried_again(monkeypatch: pytest.MonkeyPatch):
    processor.known(llvm.processor)

    for name, value in (("llvm_words", "another"), ("_identity", b"another")):
        with monkeypatch.context() as patch:
            patch.setattr(processor, name, lambda value=value: value)
            other = compiler.Processor("another", "")
            assert processor.known(lambda other=other: other) == other


# --- processes ------------------------------------------------------------------------------------

SCRIPT = """
import os, sys, threading
import numpy as np
import rune, rune.numpy as rnp, rune.scipy.linalg
from rune import lax

x = np.random.default_rng(3).standard_normal((37, 41)).astype(np.float32)
square = x[:, :37] @ x[:, :37].T + 37 * np.eye(37, dtype=np.float32)
image = np.random.default_rng(4).standard_normal((2, 9, 11, 3)).astype(np.float32)
kernel = np.random.default_rng(5).standard_normal((3, 3, 3, 5)).astype(np.float32)

def softmax(x):
    return rune.nn.softmax(x @ x.T, axis=-1)

def convolved(image, kernel):
    return lax.conv_general_dilated(image, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))

def solved(a):
    return rune.scipy.linalg.cho_solve((rnp.linalg.cholesky(a), True), a)

def doubled(x):
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]

def scanned(x):
    return lax.scan(lambda c, row: (c + row, rnp.tanh(c)), x[0], x)[0]

def called(x):
    return rune.pure_callback(np.cbrt, rune.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

PROGRAMS = {
    "elementwise": (lambda x: rnp.tanh(x) * 2, x),
    "gemm": (softmax, x),
    "convolution": (convolved, image, kernel),
    "linalg": (solved, square),
    "while": (doubled, x),
    "scan": (scanned, x),
    "fft": (lambda x: rnp.fft.fft(x), x),
    "callback": (called, x),
}

def expected(name):
    match name:
        case "elementwise":
            return np.tanh(x) * 2
        case "gemm":
            scores = x.astype(np.float64) @ x.T
            e = np.exp(scores - scores.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)
        case "convolution":
            windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
            return np.einsum("bhwcij,ijco->bhwo", windows, kernel)
        case "linalg":
            return np.eye(37)
        case "while":
            return x * 32
        case "scan":
            return x[0] + x.sum(0)
        case "fft":
            return np.fft.fft(x)
        case "callback":
            return np.cbrt(x) + 1

def run(name):
    function, *arrays = PROGRAMS[name]
    f = rune.jit(function)
    for _ in range(3):  # the general way, the code that stays, and native calls
        np.testing.assert_allclose(np.asarray(f(*arrays)), expected(name), rtol=2e-4, atol=2e-4)
"""
SOME = """
for name in sys.argv[1:]:
    run(name)
print("llvmlite" in sys.modules, "rune.backends.cpu.llvm" in sys.modules, "rune.lowering.pipeline" in sys.modules)
"""
TOGETHER = """
threads = [threading.Thread(target=run, args=(name,)) for name in PROGRAMS for _ in range(2)]
failed = []
threading.excepthook = lambda hooked: failed.append(hooked.exc_value)
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed, "llvmlite" in sys.modules)
"""
FORKED = """
run("gemm")
child = os.fork()
if not child:
    code = 1
    try:
        run("gemm"); run("linalg"); run("while")
        code = 0 if "llvmlite" not in sys.modules else 2
    finally:
        os._exit(code)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def answer(folder: Path, script: str, *words: str) -> list[str]:
    """The output of a process that uses this cache."""
    environment = {**os.environ, "RUNE_CACHE_DIR": str(folder), "RUNE_CHECK_STAGES": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT + script, *words]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout.split()


STORED = ("elementwise", "gemm", "convolution", "linalg", "while", "scan")


def test_a_process_with_cached_programs_needs_no_llvm_and_no_lowering(folder: Path):
    first, second = (answer(folder, SOME, *STORED) for _ in range(2))

    assert (first, second) == (["True"] * 3, ["False"] * 3)


@pytest.mark.parametrize("name", ["fft", "callback"])
def test_a_program_without_words_is_lowered_and_finds_its_code(folder: Path, name: str):
    first, second = (answer(folder, SOME, name) for _ in range(2))

    assert (first, second) == (["True"] * 3, ["False", "False", "True"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_threads_and_children_of_forks_run_what_is_found(folder: Path):
    answer(folder, SOME, *STORED, "fft", "callback")

    assert answer(folder, TOGETHER) == ["[]", "False"]
    assert answer(folder, FORKED) == ["0"]


def test_damaged_code_is_compiled_again(folder: Path):
    answer(folder, SOME, "linalg")
    for path in (folder / "kernels").iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x10
        path.write_bytes(data)

    assert answer(folder, SOME, "linalg") == ["True"] * 3
    assert answer(folder, SOME, "linalg") == ["False"] * 3
