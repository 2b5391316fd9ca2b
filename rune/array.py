"""Array: the concrete, immutable array. It has a type, a buffer, and the buffer's place.

On the CPU the buffer is a NumPy array and is shared with NumPy without a copy (read-only there).
On another device it is what that backend's `alloc` returns, and reading it copies.

An array is committed to its device if the user put it there, or if it was computed from one that
is. Other arrays are free: an operation takes them to the device of its committed operands
(`transforms/compile/placement.py` has the rule). No array ever moves: it keeps copies of itself on
other devices, which stay valid because its contents never change.
"""

from __future__ import annotations

import gc
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from rune import config, dtypes, profiling
from rune.array_state import Memory
from rune.backends import Device, device_named, device_of, dlpack
from rune.backends.shared.allocations import copied_in, copied_out, note
from rune.backends.shared.host_memory import count_arrays
from rune.backends.shared.protocol import Buffer, ReadsAhead, SharesMemory
from rune.core.types import ArrayType
from rune.core.values import DTypeLike
from rune.dtypes import stored_words
from rune.errors import ArgumentError, DeletedArrayError, DtypeError
from rune.ops.operators import Operators
from rune.ops.promote import refuse_mask, takes_real_part, unfit
from rune.ops.scalars import convert, int_bounds
from rune.records import dataclass
from rune.sharding import picture
from rune.sharding.memory import Blocks, Spread, is_readable, replicas
from rune.sharding.shardings import Sharding, SingleDeviceSharding
from rune.sharding.shards import RemoteShard, Shard, shard
from rune.sharding.stored import StoredSharding, stored


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array is (None: the CPU), and whether it is committed to that device."""

    device: Device | None
    committed: bool


# No other objects stand for the two places on the CPU, so the fast paths compare by identity.
CPU, COMMITTED_CPU = Place(None, False), Place(None, True)


def committed_to(device: Device | None) -> Place:
    """The place of arrays committed to `device`."""
    return COMMITTED_CPU if device is None else Place(device, True)


def free_on(device: Device | None) -> Place:
    """The place of arrays that are on `device` without being committed to it."""
    return CPU if device is None else Place(device, False)


class Array(Operators, Memory, metaclass=ABCMeta):
    """A concrete array, made by `rune.numpy`, by operations or by jitted functions.

    Traced values are instances, too, so that isinstance finds arrays in every transformation;
    `type(x) is Array` says that x is concrete.

    >>> import rune.numpy as rnp
    >>> rnp.arange(3)
    Array([0, 1, 2], i32[3], cpu:0)
    """

    # Users may set attributes of their own (`x.trainable = False`), as on JAX's arrays.
    __slots__ = ("__dict__", "__weakref__", "_buffer", "_copy", "place", "type")

    def __init__(self, buffer: object, type: ArrayType, place: Place = CPU):
        self._buffer = buffer
        self._copy: tuple[Device | None, object] | None = None
        self.type = type
        self.place = place

    @property
    def device(self) -> Device:
        """The device that holds the array.

        >>> import rune.numpy as rnp
        >>> rnp.ones(2).device.name
        'cpu:0'
        """
        return self.place.device or device_named("cpu")

    @property
    def committed(self) -> bool:
        """Whether the user put the array, or something it was computed from, on its device.

        >>> import rune, rune.numpy as rnp
        >>> rnp.ones(2).committed, (rune.device_put(1.0, "cpu") + rnp.ones(2)).committed
        (False, True)
        """
        return self.place.committed

    @property
    def buffer(self) -> Any:
        """The backend's buffer. Errors: DeletedArrayError after donation or `delete`."""
        if self._buffer is None:
            raise DeletedArrayError(
                f"array: cannot read {self.type} (it was donated to a jitted call, or deleted)",
                hint="after a donation, use the function's result; or call without donate_argnums",
            )
        return self._buffer

    def numpy(self) -> np.ndarray:
        """The contents as a NumPy array; a read-only view on the CPU, a copy elsewhere.

        NumPy sees keys as records of words; `rune.random.key_data` returns the words as numbers.
        """
        buffer = self.buffer
        if self.place.device is None:
            view = buffer.view()
            view.flags.writeable = False
            return view
        return copied_out(buffer, self.type, self.place.device)

    def start_numpy(self) -> Callable[[], np.ndarray]:
        """Begin to copy the contents to the host; call the result, once, to wait for them."""
        backend = None if self.place.device is None else self.place.device.backend
        if isinstance(backend, ReadsAhead):
            return backend.start_copy_out(self.buffer, self.type)
        return self.numpy

    def rank0(self) -> np.ndarray | None:
        """The contents of an uncommitted array of rank 0 on the CPU, for literals; else None."""
        return self.buffer if not self.type.shape and self.place is CPU else None

    def buffer_on(self, device: Device | None) -> Any:
        """The contents in the memory of `device` (None: the CPU); keeps a copy for later calls."""
        buffer, copy = self.buffer, self._copy
        if self.place.device is device:
            return buffer
        if copy is None or copy[0] is not device:
            copy = self._copy = (device, self.copied_to(device))
        return copy[1]

    def copied_to(self, device: Device | None) -> Buffer:
        """A buffer with the contents in the memory of `device` (None: the CPU)."""
        # The contents never change, so blocks in the host's memory can be views.
        if isinstance(device, Spread):
            return device.backend.share(self.numpy())
        return put(self.numpy(), self.type, free_on(device)).buffer

    @property
    def is_sole_owner(self) -> bool:
        """Whether no other array, view or NumPy array shares the memory.

        An eager transpose or slice on the CPU is a view, so donation has to check this first.
        """
        if self.place.device is None and type(self.buffer.base) is np.ndarray:
            return False
        return _references(self) <= _REFERENCES_OF_ONE

    def make_dense(self) -> None:
        """Store a CPU array that is strided or unaligned as a dense one with the same contents."""
        if not (self.buffer.flags.c_contiguous and self.buffer.flags.aligned):
            self._buffer = np.array(self._buffer, order="C")

    def delete(self) -> None:
        """Give up the buffer; later reads raise DeletedArrayError."""
        self._buffer = self._copy = None

    def is_deleted(self) -> bool:
        """True after `delete`, and after donation."""
        return self._buffer is None

    def block_until_ready(self) -> Array:
        """Wait for pending work on the array's device; returns the array."""
        if self.place.device is not None:
            self.place.device.backend.synchronize()
        return self

    def item(self, *index: int) -> Any:
        """The only element as a Python scalar, or the one at an index, flat or one per axis.

        Errors: ArgumentError without an index unless there is one element; IndexError out of range.
        """
        self._require_numbers("item")
        if not index and self.size != 1:
            raise ArgumentError(f"item: cannot make a scalar of {self.type} (size 1 required)")
        return self.numpy().item(*index)

    def tolist(self) -> Any:
        """Nested Python lists. Errors: DtypeError for keys."""
        self._require_numbers("tolist")
        return self.numpy().tolist()

    def tobytes(self, order: Literal["C", "F", "A"] = "C") -> bytes:
        """The elements as bytes, row by row."""
        return self.numpy().tobytes(order)

    def _require_numbers(self, name: str) -> None:
        if self.type.dtype in dtypes.KEYS:
            raise DtypeError(
                f"{name}: cannot take {self.type} as numbers", hint="rune.random.key_data gives the words of keys"
            )

    def devices(self) -> set[Device]:
        """The devices that hold the array, or a block of it."""
        return set(self.sharding.device_set)

    @property
    def sharding(self) -> Sharding:
        """Which block of the array each device holds.

        >>> import rune.numpy as rnp
        >>> rnp.ones(2).sharding
        SingleDeviceSharding(cpu:0)
        """
        place = self.place.device
        return place.sharding if isinstance(place, Spread) else SingleDeviceSharding(self.device)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The blocks on the devices of this process, each with its index in the array.

        >>> import rune.numpy as rnp
        >>> rnp.ones(2).addressable_shards
        [Shard(device=cpu:0, index=(slice(None, None, None),), replica_id=0, data=f32[2])]
        """
        return [s for s in self.global_shards if isinstance(s, Shard)]

    @property
    def global_shards(self) -> list[Shard | RemoteShard]:
        """The blocks on all devices; those of other processes have no data here."""
        if not isinstance(self.place.device, Spread):
            return [Shard(self.device, (slice(None),) * self.type.ndim, 0, self)]
        sharding = self.place.device.sharding
        type = self.type.with_shape(sharding.shard_shape(self.buffer.shape))
        places = zip(replicas(sharding, self.buffer.shape), self.buffer.buffers, strict=True)
        return [shard(*place, None if b is None else Array(b, type, committed_to(on(place[0])))) for place, b in places]

    def addressable_data(self, index: int) -> Array:
        """The block on one device of this process, in the order of the mesh."""
        return self.addressable_shards[index].data

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return self.sharding.is_fully_replicated

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices that hold a block belong to this process."""
        return self.sharding.is_fully_addressable

    def to_device(self, device: str | Device, *, stream: object = None) -> Array:
        """A copy on `device`, committed to it; the array itself if it is there already.

        Errors: ArgumentError for a stream: all work on a device runs in one order.

        >>> import rune.numpy as rnp
        >>> rnp.ones(2).to_device("cpu").committed
        True
        """
        if stream is not None:
            raise ArgumentError(f"to_device: cannot use stream={stream!r} (a device has one order of work)")
        target = on(device)
        if self.place.device is target:
            return Array(self.buffer, self.type, committed_to(target))
        return put(self.numpy(), self.type, committed_to(target))

    # --- other libraries -----------------------------------------------------------------------

    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0) for the CPU, (2, number) for a CUDA device; other devices export a CPU copy."""
        device = self.place.device
        if device is not None and device.target.backend == "cuda":
            return dlpack.CUDA, int(device.name.split(":")[1])
        return dlpack.CPU, 0

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A read-only DLPack capsule, without a copy on the CPU and on CUDA.

        stream: a CUDA stream that waits for the array; None: the array is complete on return.
        Errors: BufferError for dtypes that DLPack does not know (int4), for another device, and
                for copy=False if a copy is necessary.
        """
        native = self.__dlpack_device__()
        target_device = native if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        if not dlpack.can_lend(self.type.dtype) or target_device not in (native, (dlpack.CPU, 0)):
            raise BufferError(f"dlpack: cannot lend {self.type} to device {target_device}")
        fresh = bool(copy) or target_device != native or not self._is_shared
        if fresh and copy is False:
            raise BufferError(f"dlpack: cannot lend {self.type} on {self.device.name} uncopied")
        memory, owner = self._lendable(target_device, bool(copy), stream)
        is_versioned = max_version is not None and max_version[0] >= 1
        return dlpack.lend(memory, owner, versioned=is_versioned, read_only=not fresh, is_copied=fresh)

    def _lendable(self, device: tuple[int, int], copy: bool, stream: int | None) -> tuple[dlpack.Memory, object]:
        """The memory of the elements on `device`, and the object that keeps it alive."""
        if device[0] == dlpack.CUDA:
            source = put(self.numpy(), self.type, self.place) if copy else self
            return source._device_memory(device, stream), source.buffer
        host = np.array(self.numpy(), order="C") if copy else self.numpy()
        strides = tuple(s // host.itemsize for s in host.strides)
        return dlpack.Memory(host.ctypes.data, host.dtype, host.shape, strides), host

    @property
    def _is_shared(self) -> bool:
        """Whether other libraries can read the memory in place."""
        return self.place.device is None or self.place.device.target.backend == "cuda"

    def _device_memory(self, device: tuple[int, int], stream: int | None) -> dlpack.Memory:
        """The memory of a CUDA array, for a stream that waits until all its writers are done."""
        shape, backend = self.shape, self.device.backend
        assert isinstance(backend, SharesMemory)
        steps = dlpack.dense_strides(shape)  # type: ignore[arg-type]
        return dlpack.Memory(backend.lend(self.buffer, stream), self.type.dtype, shape, steps, device)  # type: ignore[arg-type]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of the elements on a CUDA device (version 3), read-only and complete.

        Errors: AttributeError on other devices, DtypeError for dtypes without a name in it.
        """
        if self.__dlpack_device__()[0] != dlpack.CUDA:
            raise AttributeError(f"array: not on a CUDA device ({self.device.name})")
        if self.type.dtype.kind not in "biufc":
            raise DtypeError(f"array: cannot describe {self.type} by __cuda_array_interface__")
        memory = self._device_memory(self.__dlpack_device__(), None)
        return {
            "version": 3,
            "shape": memory.shape,
            "typestr": memory.dtype.str,
            "data": (memory.address, True),
            "strides": None,
            "stream": None,
        }

    def __buffer__(self, flags: int, /) -> memoryview:
        """A read-only view for memoryview, which Python calls from 3.12 on (PEP 688)."""
        self._require_numbers("array")
        return self.numpy().data

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if dtype != self.type.dtype:
            self._require_numbers("array")
        data = self.numpy()
        if dtype is not None and np.dtype(dtype) != data.dtype:
            return data.astype(dtype)
        return data.copy() if copy else data

    def __bool__(self) -> bool:
        self._require_numbers("array")
        if self.size != 1:
            raise ArgumentError(
                f"array: cannot use {self.type} as a truth value (size 1 required)", hint="use x.any() or x.all()"
            )
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.type.shape or self.type.dtype not in dtypes.INTEGER:
            raise DtypeError(f"index: cannot use {self.type} as an index (rank-0 integer required)")
        return int(self.item())

    def __iter__(self):
        if not self.type.shape:
            raise ArgumentError(f"iter: cannot iterate over {self.type} (rank 0)")
        return (self[i] for i in range(len(self)))

    def __format__(self, spec: str) -> str:
        if not self.type.shape and self.type.dtype not in dtypes.KEYS:
            return format(self.item(), spec)
        if spec:
            raise ArgumentError(f"format: cannot apply {spec!r} to {self.type} (one number required)")
        return str(self)

    def __str__(self) -> str:
        is_here = self._buffer is not None and is_readable(self.place.device, self._buffer)
        return str(self._printed_numbers()) if is_here else repr(self)

    def __repr__(self) -> str:
        if self.is_deleted():
            body = "<deleted>"
        elif not is_readable(self.place.device, self._buffer):
            body = "<blocks in several processes>"
        else:
            body = np.array2string(self._printed_numbers(), separator=", ", prefix="Array(", threshold=200)
        return f"Array({body}, {self.type}, {self.device.name})"

    def _repr_html_(self) -> str | None:
        """For notebooks: the device of each block. None on a single device, to show the text."""
        if self.is_deleted() or not isinstance(self.place.device, Spread) or not picture.can_draw(self.buffer.shape):
            return None
        return picture.array_html(self.buffer.shape, self.place.device.sharding, repr(self))

    def _printed_numbers(self) -> np.ndarray:
        """The numbers to print: the elements, or for keys their words along a last axis."""
        contents = self.numpy()
        return stored_words(contents) if self.type.dtype in dtypes.KEYS else contents

    def copy(self) -> Array:
        """Another array with the same contents, which outlives the donation of this one."""
        return Array(self.buffer, self.type, self.place)

    def __reduce__(self) -> tuple:
        return _unpickle, (self.numpy(), self.type, stored(self.sharding))


def _buffers_on_host() -> Iterator[np.ndarray]:
    """All live arrays and blocks in the host's memory, except those that gc has frozen."""
    for candidate in gc.get_objects():
        buffer = candidate._buffer if type(candidate) is Array else None
        blocks = buffer.buffers if isinstance(buffer, Blocks) else (buffer,)
        yield from (b for b in blocks if isinstance(b, np.ndarray))


count_arrays(_buffers_on_host)


def _references(array: Array) -> int:
    return sys.getrefcount(array._buffer)


# Python releases differ in how many references the interpreter adds to that of the slot.
_REFERENCES_OF_ONE = _references(Array(object(), ArrayType((), dtypes.f32)))


def _unpickle(data: np.ndarray, type: ArrayType, layout: StoredSharding | None = None) -> Array:
    return put(data, type, CPU if layout is None else committed_to(layout.spread(type)))


def as_array(value: object, dtype: np.dtype | None = None, weak: bool = False) -> Array:
    """A concrete array from host data, on the default device and not committed to it.

    Types:  without `dtype`, Python and NumPy values become 32-bit types.
    Errors: OverflowError for a Python integer out of range; DtypeError if an argument is not a
            number, and for a complex number if `dtype` is real; ArgumentError for a masked
            array that hides elements.
    """
    refuse_mask("array", value)
    host = dtypes.native(np.asarray(value))
    target = dtype or dtypes.on_arrival(host.dtype, type(value).__name__)
    if target in dtypes.KEYS and host.dtype != target:
        raise DtypeError(f"array: cannot make {dtypes.short(target)} of {host.dtype}")
    host = host.real if isinstance(value, np.ndarray | np.generic) and takes_real_part(host.dtype, target) else host
    dtypes.require_whole("array", host.dtype, target)
    is_counted = host.dtype.kind in "iu" or type(value) is int  # NumPy holds larger ones as objects
    if is_counted and target in dtypes.INTEGER and not isinstance(value, np.ndarray | np.generic):
        check_range(host, target)
    host = convert(host, target) if host.dtype in dtypes.FLOATING and target in dtypes.INTEGER else host
    with np.errstate(all="ignore"):
        data = np.array(host, dtype=target, order="C")
    return put(data, ArrayType(data.shape, target, weak), default_place())


def check_range(host: np.ndarray, target: np.dtype) -> None:
    """Errors: OverflowError for integers that `target` cannot hold."""
    low, high = int_bounds(target)
    if host.size and (host.max() > high or host.min() < low):
        number = host.max() if host.max() > high else host.min()
        raise unfit("array", int(number), target)


def default_place() -> Place:
    """The place of newly created arrays: the configured device, else the CPU; not committed."""
    name = config.current().device
    return CPU if name is None else free_on(on(name))


def on(device: str | Device) -> Device | None:
    """The device, from itself or its name; None for cpu:0, whose arrays need no copy."""
    instance = device_of(device)
    return None if instance.name == "cpu:0" else instance


def put(data: np.ndarray, type: ArrayType, place: Place) -> Array:
    """An array at `place` with the contents of `data`."""
    buffer = data if place.device is None else copied_in(data, place.device)
    if profiling.gathers:
        note(buffer, type, place.device)
    return Array(buffer, type, place)
