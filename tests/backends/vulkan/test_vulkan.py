"""Vulkan's special features; what it computes is tested by the laws, as for every executor.

Copies and refused modules; memory, shared with the host or staged; what is destroyed and when; a
lost device; and that the validation layer reports nothing. Common behaviour of executors:
test_devices.py; recording and replaying of work: test_replay.py.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

import rune
from rune import dtypes
from rune.backends import vulkan
from rune.backends.vulkan import driver
from rune.core.types import ArrayType
from rune.errors import CompileError, DeviceError, OutOfMemory
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Copy, Plan, Slot, Space
from tests.backends.plans import plan_of, run
from tests.backends.vulkan.cases import MEMORIES, TARGETS, chain, needs_device, opened
from tests.support.close import same

pytestmark = needs_device


@pytest.fixture(scope="module", params=MEMORIES)
def device(request) -> Iterator[vulkan.VulkanBackend]:
    """Devices whose memory the host sees, in part, or not."""
    with opened(request.param) as backend:
        yield backend


@pytest.fixture
def backend() -> Iterator[vulkan.VulkanBackend]:
    """A device of this test alone."""
    with opened() as backend:
        yield backend


# --- plans ------------------------------------------------------------------------------------


def test_a_copy_moves_every_byte_at_any_offset(device):
    kind = ArrayType((7,), dtypes.i8)
    middle = Slot(Space.ARENA, kind, offset=3)
    x, y = Slot(Space.ARGUMENT, kind), Slot(Space.RESULT, kind)
    plan = Plan("f", "", (kind,), (kind,), (Copy(middle, x), Copy(y, middle)), {}, 16)
    values = np.arange(-3, 4, dtype=np.int8)

    (result,) = run(device, plan, values)

    same(values, result)


def test_a_module_that_the_driver_refuses_is_a_compile_error_with_the_kernel(backend, monkeypatch):
    refusal = driver.api().VK_ERROR_OUT_OF_HOST_MEMORY
    functions = backend.session().device.vk
    monkeypatch.setattr(functions, "vkCreateComputePipelines", lambda *args: refusal)

    with pytest.raises(CompileError, match="cannot compile double for vulkan:0") as error:
        backend.record(chain(1))

    assert "store y[i]" in error.value.source


def test_the_drivers_compiled_code_is_kept_on_disk_and_given_back_to_it(monkeypatch, tmp_path):
    ffi, header = driver.api().ffi, 32
    initial_data: list[bytes] = []

    def give_out(device, cache, size, data):
        size[0] = header + 8
        if data != ffi.NULL:
            ffi.memmove(data, bytes(range(header + 8)), header + 8)
        return 0

    def take_in(create):
        def call(device, info, allocator, handle):
            initial_data.append(bytes(ffi.buffer(info.pInitialData, info.initialDataSize)))
            info.initialDataSize = 0  # these bytes are no driver's
            return create(device, info, allocator, handle)

        return call

    with rune.configure(cache_dir=str(tmp_path)):
        for _ in range(2):
            with opened() as backend:
                functions = backend.session().device.vk
                monkeypatch.setattr(functions, "vkGetPipelineCacheData", give_out)
                create = take_in(functions.vkCreatePipelineCache)
                monkeypatch.setattr(functions, "vkCreatePipelineCache", create)
                backend.record(chain(1))

    assert initial_data == [b"", bytes(range(header + 8))]


# --- memory -----------------------------------------------------------------------------------


def test_an_array_of_several_staged_pieces_survives_the_round_trip(device):
    x = np.arange((5 << 24) // 4 + 3, dtype=np.uint32)
    buffer = device.copy_in(x)
    x_before, x[:] = x.copy(), 0

    same(x_before, device.copy_out(buffer, buffer.type))


def test_staging_memory_has_its_own_pool():
    with opened("staged") as backend:
        x = backend.copy_in(np.ones(1000, np.float32))
        backend.copy_out(x, x.type)
        pools = backend.memory_stats().pools

    assert list(pools) == ["device", "staging", "tables"]
    assert pools["device"].live_bytes > 0
    assert (pools["staging"].allocations, pools["staging"].live_bytes) == (2, 0)


def test_memory_that_host_and_device_share_is_one_pool():
    with opened("shared") as backend:
        assert list(backend.memory_stats().pools) == ["device"]


def test_a_driver_without_memory_is_out_of_memory_and_works_on(backend, monkeypatch):
    refusal = driver.api().VK_ERROR_OUT_OF_DEVICE_MEMORY
    functions = backend.session().device.vk
    with monkeypatch.context() as patch:
        patch.setattr(functions, "vkAllocateMemory", lambda *args: refusal)
        with pytest.raises(OutOfMemory, match="cannot allocate 400000000 B"):
            backend.alloc(ArrayType((100_000_000,), dtypes.f32))

    (y, _) = run(backend, chain(1), np.ones(3, np.float32))
    same(np.full(3, 2, np.float32), y)


def test_a_host_write_waits_for_commands_on_the_memory_that_it_takes(backend):
    executable = backend.record(chain(60))
    for k in range(30):  # an argument's memory is free while its call is pending
        executable([backend.copy_in(np.full(100, k, np.float32))])
    memory = backend.copy_in(np.full(100, 7, np.float32))

    result, _ = executable([memory])

    same(np.full(100, 7 * 2.0**60, np.float32), backend.copy_out(result, result.type))


def test_compiling_running_and_freeing_again_and_again_leaves_nothing_behind(backend):
    def cycle(k: int) -> None:
        code = parse(f"""
        code add{k}(x: read f32[8], y: write f32[8]) {{
          for i in 8 grid {{ store y[i] = x[i] + {k}.0_f32 }}
        }}""")
        (y,) = run(backend, plan_of(code), np.ones(8, np.float32))
        assert y[0] == k + 1

    def live_memory() -> tuple[int, int]:
        gc.collect()
        backend.synchronize()
        return len(backend.session().device._handles), backend.memory_stats().live_bytes

    for k in range(5):
        cycle(k)
    before = live_memory()
    for k in range(40):
        cycle(k)

    assert live_memory() == before


# --- a device that is lost, and the end -------------------------------------------------------


def test_a_lost_device_is_an_error_and_the_next_array_opens_it_again(backend, monkeypatch):
    executable, session = backend.record(chain(2)), backend.session()
    old = backend.copy_in(np.ones(3, np.float32))
    code = driver.api().VK_ERROR_DEVICE_LOST
    refuse = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(lambda *args: code)
    monkeypatch.setattr(session.device, "submit_address", ctypes.cast(refuse, ctypes.c_void_p).value)

    with pytest.raises(DeviceError, match="vulkan:0 cannot go on"):
        executable([old])
    with pytest.raises(DeviceError, match="the device was lost"):
        backend.copy_out(old, old.type)
    with pytest.raises(DeviceError, match="the device was lost"):
        executable([old])

    new = backend.copy_in(np.ones(3, np.float32))
    result, _ = executable([new])
    same(np.full(3, 4, np.float32), backend.copy_out(result, result.type))
    session.device.close()


def test_closing_destroys_all_that_was_made(backend):
    executable = backend.record(chain(2))
    executable([backend.copy_in(np.ones(3, np.float32))])
    device = backend.session().device

    backend.close()

    assert not device._handles
    with pytest.raises(DeviceError):
        device.submit((None, None))


def test_a_closed_device_refuses_to_make_command_buffers(backend):
    device = backend.session().device

    backend.close()

    with pytest.raises(DeviceError, match="it was closed"):
        device.command_buffers(1)


def test_a_process_may_end_while_a_thread_waits_for_the_device():
    program = """
import threading, time
import numpy as np
import rune
from rune import control
many = lambda x: control.fori_loop(0, 20_000, lambda i, v: v * 0.5 + i, x)
steps = rune.jit(many, device="vulkan")
steps(np.ones(100, np.float32))
threading.Thread(target=lambda: np.asarray(steps(np.ones(3, np.float32))), daemon=True).start()
time.sleep(0.05)
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=600)

    assert process.returncode == 0


def test_a_process_that_ends_opens_no_device_again():
    program = """
import atexit
import numpy as np
import rune
from rune.errors import DeviceError

def late():
    try:
        np.asarray(double(np.ones(3, np.float32)))
    except DeviceError as error:
        print(error)

atexit.register(late)  # before the driver's connection, so that it runs after that is closed
double = rune.jit(lambda x: x * 2, device="vulkan")
double(np.ones(3, np.float32))
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)

    assert process.returncode == 0
    assert "cannot open a device (the process ends)" in process.stdout


# --- the validation layer ---------------------------------------------------------------------

PROGRAMS = """
import gc
import numpy as np
from rune.backends import vulkan
from tests.backends.vulkan import cases as t
from tests.backends.plans import run
for name in t.MEMORIES:
    backend = vulkan.VulkanBackend(t.TARGETS[0], t.with_memory(name))
    executable = backend.record(t.chain(20))
    for k in range(20):
        executable([backend.copy_in(np.full(50, k, np.float32))])
    for name in t.CASES:
        run(backend, *(lambda p, plan, args: (plan, *args))(*t.lowered(name)))
    del executable
    gc.collect()
    backend.synchronize()
"""


def validated(program: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, under the validation layer."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, driver.VALIDATION: "1"},
        capture_output=True,
        text=True,
        timeout=1200,
    )


def has_validation_layer() -> bool:
    layers = driver.listed(driver.api().lib.vkEnumerateInstanceLayerProperties, "VkLayerProperties")
    names = [driver.api().ffi.string(layer.layerName).decode() for layer in layers]
    return driver.LAYER in names


needs_layer = pytest.mark.skipif(
    not TARGETS or not has_validation_layer(), reason="no Vulkan validation layer; apt install vulkan-validationlayers"
)


@needs_layer
def test_the_validation_layer_reports_nothing_for_plans_loops_and_copies():
    process = validated(PROGRAMS)

    assert (process.returncode, process.stderr) == (0, "")


@needs_layer
def test_a_message_of_the_validation_layer_is_an_error():
    program = """
import numpy as np
from rune.backends import vulkan
backend = vulkan.open_device(vulkan.probe()[0][0])
device = backend.session().device
device.vk.vkCmdDispatch(device.command_buffers(1)[0], 1, 1, 1)
backend.synchronize()
"""
    process = validated(program)

    assert "DeviceError: vulkan: the validation layer objects" in process.stderr
    assert "vkCmdDispatch" in process.stderr


# --- float controls ---------------------------------------------------------------------------


def float_properties(independence: int, *bits: int) -> SimpleNamespace:
    """Properties of a driver that can keep denormals in some formats."""
    other = ("shaderSignedZeroInfNanPreserveFloat", "shaderRoundingModeRTEFloat")
    keeps = {f"shaderDenormPreserveFloat{b}": b in bits for b in (16, 32, 64)}
    nothing = {f"{prefix}{b}": 0 for prefix in other for b in (16, 32, 64)}
    return SimpleNamespace(roundingModeIndependence=1, denormBehaviorIndependence=independence, **keeps, **nothing)


@pytest.mark.parametrize(
    ("independence", "bits", "settable"),
    [
        (1, (16, 32), {16, 32}),  # each by itself
        (0, (32, 64), {32}),  # 32 bits by themselves, the others together
        (0, (16, 32, 64), {16, 32, 64}),
        (2, (16, 32), set()),  # all together
        (2, (16, 32, 64), {16, 32, 64}),
    ],
)
def test_a_float_control_is_requested_where_the_driver_lets_it_differ(
    independence: int, bits: tuple[int, ...], settable: set[int]
):
    controls = vulkan._float_controls(float_properties(independence, *bits))

    assert controls == {("denormals", b) for b in settable}
