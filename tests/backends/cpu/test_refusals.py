"""CPU: refusals of the system, of LLVM and of object files are errors that say what failed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rune.backends import device_named
from rune.backends.cpu import conventions, llvm_functions, processor
from rune.backends.cpu.crew import run as crew
from rune.backends.cpu.images import layout, loader
from rune.backends.cpu.images.layout import Unplaced, _Layout, _Section, _Symbol
from rune.errors import DeviceError, LayoutError, OutOfMemory
from rune.lowering.kernel.text import parse
from tests.backends.plans import plan_of

pytestmark = pytest.mark.skipif(
    not (loader.is_available() and llvm_functions.is_available()), reason="ELF on x86-64, and an llvmlite that is known"
)

TEXT = _Section(".text", type=1, flags=layout._ALLOC, offset=0, size=16, link=0, info=0, alignment=16)


def layout_of(*sections: _Section, symbols: tuple[_Symbol, ...] = ()) -> _Layout:
    """The layout of an object with some bytes, these sections and these symbols."""
    return _Layout(bytes(64), [*sections], [*symbols], lambda name: None)


# --- object files -----------------------------------------------------------------------------


def test_a_symbol_of_a_section_that_is_not_loaded_is_refused():
    notes = _Section(".comment", type=1, flags=0, offset=0, size=8, link=0, info=0, alignment=1)
    symbol = _Symbol("where", section=1, value=0, is_seen=True)

    with pytest.raises(Unplaced, match="symbol where is in section 1, which is not in memory"):
        layout_of(TEXT, notes, symbols=(symbol,)).image()


def test_relocations_without_addends_are_refused():
    relocations = _Section(".rel.text", layout._REL, flags=0, offset=0, size=16, link=0, info=0, alignment=8)

    with pytest.raises(Unplaced, match=r"section \.rel\.text has relocations without addends"):
        layout_of(TEXT, relocations).image()


@pytest.mark.parametrize("distance", [1 << 31, -(1 << 31) - 1])
def test_buffers_too_large_for_32_bit_offsets_are_refused(distance: int):
    with pytest.raises(Unplaced, match=f"two places are {distance} B apart"):
        layout_of(TEXT)._put_half(0, distance)


def test_a_symbol_of_a_special_section_is_refused():
    common = layout._SYMBOL.pack(0, 0x11, 0, 0xFFF2, 8, 8)
    table = _Section(".symtab", type=2, flags=0, offset=0, size=len(common), link=1, info=0, alignment=8)
    names = _Section(".strtab", type=3, flags=0, offset=len(common), size=6, link=0, info=0, alignment=1)

    with pytest.raises(Unplaced, match="symbol count is in the special section 65522"):
        next(layout._symbols(common + b"count\0", table, names))


# --- the system -------------------------------------------------------------------------------

IMAGE = loader.Image(b"\xc3", loader.PAGE, loader.PAGE, {"f": 0}, (), ())


@pytest.mark.parametrize("answer", [None, ctypes.c_void_p(-1).value])
def test_a_system_without_room_for_code_is_out_of_memory(monkeypatch: pytest.MonkeyPatch, answer: int | None):
    monkeypatch.setattr(loader, "_system", lambda: SimpleNamespace(mmap=lambda *arguments: answer))

    with pytest.raises(OutOfMemory, match="cpu: cannot allocate 4096 B for machine code"):
        loader.load(IMAGE, ())


def test_a_system_that_forbids_new_code_is_named(monkeypatch: pytest.MonkeyPatch):
    real = loader._system()
    refusing = SimpleNamespace(mmap=real.mmap, munmap=real.munmap, mprotect=lambda *arguments: -1)
    monkeypatch.setattr(loader, "_system", lambda: refusing)

    with pytest.raises(DeviceError, match=r"cpu: cannot run new code \(the system refuses to make 4096 B executable\)"):
        loader.load(IMAGE, ())


def test_a_system_without_a_thread_for_a_device_is_named_with_its_error(monkeypatch: pytest.MonkeyPatch):
    start = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda record: 11)
    address = ctypes.cast(start, ctypes.c_void_p).value
    monkeypatch.setattr(crew, "_code", lambda: SimpleNamespace(address=lambda name: address))

    with pytest.raises(DeviceError, match=r"cpu: cannot start the thread of cpu:3 \(the system .*, error 11\)"):
        crew._thread.__wrapped__(3)


# --- LLVM -------------------------------------------------------------------------------------


def test_without_llvmlite_the_import_error_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processor, "find_spec", lambda name: None)

    with pytest.raises(ImportError, match="No module named 'llvmlite'") as error:
        processor.llvm_words.__wrapped__()
    assert error.value.name == "llvmlite"


def answers(**replies: Any) -> Callable[..., tuple[int, str]]:
    """LLVM's functions, some of them with other results."""
    ask = llvm_functions._ask
    return lambda name, *arguments: replies[name] if name in replies else ask(name, *arguments)


def test_an_unknown_processor_is_refused_with_llvms_message(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(llvm_functions, "_ask", answers(GetTargetFromTriple=(0, "no targets are registered")))

    with pytest.raises(RuntimeError, match=r"^no targets are registered$"):
        llvm_functions._target_machine(conventions.EFFORT, conventions.IN_ONE_PIECE, processor.Processor("cpu", ""))


def test_a_module_that_llvm_cannot_emit_is_refused_in_its_words(monkeypatch: pytest.MonkeyPatch):
    ask = answers(VerifyModule=(0, ""), TargetMachineEmitToMemory=(0, "no emission here"))
    monkeypatch.setattr(llvm_functions, "_ask", ask)

    with pytest.raises(RuntimeError, match=r"^no emission here$"):
        llvm_functions._emit(0, llvm_functions._Optimiser(0, None, None), 0)


# --- arguments --------------------------------------------------------------------------------


def test_arguments_that_native_code_refuses_twice_are_an_error():
    code = parse("code f(x: read f32[3], y: write f32[3]) { for i in 3 grid { store y[i] = x[i] } }")
    executable: Any = device_named("cpu").backend.record(plan_of(code))
    equal = np.dtype(np.float32, metadata={"unit": "m"})  # equal, but another object

    with pytest.raises(LayoutError, match=r"f: cannot run with these arguments"):
        executable.checked(lambda *arguments: 1, [np.ones(3, equal)], [])
