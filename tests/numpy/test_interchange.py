"""Arrays passed to other libraries and taken from them: DLPack, buffers, array interfaces.

On the CPU nothing is copied either way. A fake driver stands in for CUDA. torch is tried if it is
installed.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.array import Array, committed_to
from rune.backends import Device, dlpack
from rune.core.types import ArrayType
from rune.errors import DtypeError
from tests.backends.cuda.fake import TARGET, FakeCuda, opened
from tests.support.arrays import array
from tests.support.close import same

OF_NUMPY = sorted((d for d in dtypes.ANY if d.isbuiltin == 1), key=dtypes.short)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Lender:
    """An array of another library, known only by its DLPack methods."""

    def __init__(self, host: np.ndarray, *, versions: bool = True):
        self.host, self.versions = host, versions

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **how: Any) -> Any:
        if how and not self.versions:
            raise TypeError("__dlpack__() takes no arguments")
        return self.host.__dlpack__(**how)


# --- to others --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", OF_NUMPY, ids=dtypes.short)
def test_numpy_reads_an_array_where_it_is(dtype: np.dtype):
    x = array(np.ones((2, 3)).astype(dtype))

    view = np.from_dlpack(x)

    same(x, view)
    assert np.shares_memory(view, x.numpy())
    assert not view.flags.writeable


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x[1], lambda x: x[:0]], ids=range(4))
def test_views_are_exported_with_the_right_values(view: Any):
    same(view(X), np.from_dlpack(view(rnp.asarray(X))))


def test_lent_memory_outlives_the_array_and_is_freed_with_the_borrower():
    x = rnp.asarray(X) + 1
    view = np.from_dlpack(x)
    loans = len(dlpack._lent)
    del x
    gc.collect()

    same(X + 1, view)
    del view
    gc.collect()
    assert len(dlpack._lent) == loans - 1


def test_an_unconsumed_capsule_releases_its_array():
    loans = len(dlpack._lent)

    capsule = rnp.ones(2).__dlpack__()
    assert len(dlpack._lent) == loans + 1
    del capsule
    dlpack.sweep()

    assert len(dlpack._lent) == loans


def test_a_copy_is_writable_and_shares_nothing():
    x = rnp.asarray(X)

    copy = np.from_dlpack(x, copy=True)
    copy[0] = 9

    same(X, x)


def test_an_array_on_another_device_is_lent_as_a_copy_on_the_cpu():
    x = rnp.ones(2, device="reference")

    assert x.__dlpack_device__() == (1, 0)
    same(np.ones(2, np.float32), np.from_dlpack(x))
    with pytest.raises(BufferError, match=r"cannot lend f32\[2\] on reference:0 uncopied"):
        x.__dlpack__(copy=False)


def test_an_array_that_cannot_be_lent_is_refused():
    with pytest.raises(BufferError, match=r"dlpack: cannot lend i4\[2\]"):
        rnp.ones(2, rnp.int4).__dlpack__()
    with pytest.raises(BufferError, match=r"to device \(2, 0\)"):
        rnp.ones(2).__dlpack__(dl_device=(2, 0))


def test_numpy_takes_an_array_as_it_takes_its_own():
    x = rnp.asarray(X)

    assert np.shares_memory(np.asarray(x), x.numpy())
    same(X.astype(np.int8), np.asarray(x, dtype=np.int8))
    assert x.tobytes() == X.tobytes()
    assert type(np.add(np.float32(1), x)) is np.ndarray  # as JAX: ufuncs of NumPy compute in NumPy
    assert isinstance(np.float32(1) + x, Array)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks for __buffer__ from 3.12 on")
def test_a_memoryview_shows_the_elements_read_only():
    view = memoryview(rnp.asarray(X))  # type: ignore[arg-type]

    assert view.readonly
    assert view.tolist() == X.tolist()


def test_the_buffer_is_the_arrays_memory():
    x = rnp.asarray(X)

    view = x.__buffer__(0)

    assert view.readonly
    assert np.shares_memory(np.asarray(view), x.numpy())


# --- from others ------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [True, False], ids=["1.x", "0.x"])
@pytest.mark.parametrize("dtype", OF_NUMPY, ids=dtypes.short)
def test_an_array_of_another_library_is_read_where_it_is(dtype: np.dtype, versions: bool):
    host = np.ones((2, 3)).astype(dtype)

    view = rnp.from_dlpack(Lender(host, versions=versions))

    same(host, view)
    assert np.shares_memory(view.numpy(), host)


def test_strided_memory_is_read_in_place():
    same(X.T[::-1, ::2], rnp.from_dlpack(Lender(X.T[::-1, ::2])))


def test_borrowed_memory_is_given_back_with_the_last_array_on_it():
    host = X.copy()
    count = sys.getrefcount(host)

    x = rnp.from_dlpack(Lender(host))
    y = x[1:]
    del x
    gc.collect()
    assert sys.getrefcount(host) > count
    del y
    gc.collect()

    assert sys.getrefcount(host) == count


def test_borrowed_memory_is_never_donated():
    host = X.copy()
    double = rune.jit(lambda x: x * 2, donate_argnums=0)

    result = double(rnp.from_dlpack(Lender(host)))

    same(X * 2, result)
    same(X, host)


def test_a_copy_can_be_requested():
    host = X.copy()

    copy = rnp.from_dlpack(Lender(host), copy=True)
    host[:] = 0

    same(X, copy)


def test_an_array_that_is_ours_already_keeps_its_memory():
    x = rnp.ones(2)

    assert rnp.from_dlpack(x).buffer is x.buffer


@pytest.mark.parametrize(
    ("lender", "how", "message"),
    [([1, 2], {}, "cannot read list"), (Lender(X), {"copy": False, "device": "reference"}, "cannot keep copy=False")],
)
def test_memory_that_cannot_be_borrowed_is_refused(lender: Any, how: dict, message: str):
    with pytest.raises(ValueError, match=f"from_dlpack: {message}"):
        rnp.from_dlpack(lender, **how)


def test_memory_of_another_device_is_refused_with_the_way_out():
    class OnGpu(Lender):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 1

    with pytest.raises(rune.errors.DeviceError, match=r"(?s)device \(2, 1\).*copy it to the CPU"):
        rnp.from_dlpack(OnGpu(X))


def test_a_capsule_can_be_taken_once():
    capsule = X.__dlpack__()
    dlpack.borrow(capsule)

    with pytest.raises(BufferError, match="a fresh DLPack capsule required"):
        dlpack.borrow(capsule)


def test_torch_shares_memory_both_ways():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(4, dtype=torch.bfloat16)

    ours = rnp.from_dlpack(tensor)
    back = torch.from_dlpack(rnp.from_dlpack(tensor, copy=True))

    assert ours.numpy().ctypes.data == tensor.data_ptr()
    assert back.tolist() == tensor.tolist()


# --- CUDA -------------------------------------------------------------------------------------


@pytest.fixture
def on_cuda(monkeypatch: pytest.MonkeyPatch) -> tuple[Array, FakeCuda]:
    """An array on a CUDA device that does not exist."""
    monkeypatch.setattr("rune.backends._open_backends", [])
    fake = FakeCuda()
    backend = opened(monkeypatch, fake)

    class File:
        @staticmethod
        def open_device(target: Any) -> Any:
            return backend

    device = Device(TARGET, File)
    return Array(backend.copy_in(X), ArrayType(X.shape, X.dtype), committed_to(device)), fake


def test_the_cuda_array_interface_has_the_address_of_the_elements(on_cuda: tuple[Array, FakeCuda]):
    x, fake = on_cuda

    interface = x.__cuda_array_interface__
    address, read_only = interface["data"]

    assert (interface["version"], interface["shape"], interface["typestr"]) == (3, (3, 4), "<f4")
    assert (read_only, interface["strides"], interface["stream"]) == (True, None, None)
    same(X, fake.at(address, X.nbytes).view(np.float32).reshape(X.shape))


def test_the_cuda_array_interface_has_no_name_for_bf16(on_cuda: tuple[Array, FakeCuda]):
    x, _ = on_cuda
    narrow = Array(x.buffer, ArrayType(X.shape, dtypes.bf16), x.place)

    with pytest.raises(DtypeError, match=r"cannot describe bf16\[3,4\] by __cuda_array_interface__"):
        _ = narrow.__cuda_array_interface__


def test_an_array_of_the_cpu_has_no_cuda_array_interface():
    assert not hasattr(rnp.ones(2), "__cuda_array_interface__")


@pytest.mark.parametrize("transform", [rune.jit, rune.vmap], ids=["jit", "vmap"])
def test_an_array_made_on_the_device_of_a_traced_value_combines_with_it(transform: Any):
    def shifted(x: Any) -> Any:
        xp = x.__array_namespace__()
        return (x.to_device(x.device) + xp.ones((), device=x.device)).value

    same(X + 1, transform(shifted)(array(X)))


def test_a_traced_value_is_moved_to_a_device():
    copy = rune.jit(lambda x: x.to_device("reference"))(array(X))

    assert copy.device.name == "reference:0"
    same(X, copy)


def test_cuda_memory_is_exported_without_a_copy(on_cuda: tuple[Array, FakeCuda]):
    x, _fake = on_cuda

    memory, loan = dlpack.borrow(x.__dlpack__(max_version=(1, 0)))

    assert x.__dlpack_device__() == memory.device == (2, 0)
    assert memory.address == x.__cuda_array_interface__["data"][0]
    assert (memory.dtype, memory.shape, memory.strides) == (X.dtype, X.shape, (4, 1))
    del loan


def test_cuda_memory_is_copied_to_the_cpu_on_request(on_cuda: tuple[Array, FakeCuda]):
    x, _ = on_cuda

    memory, loan = dlpack.borrow(x.__dlpack__(dl_device=(1, 0)))

    same(X, dlpack.as_numpy(memory, loan))
