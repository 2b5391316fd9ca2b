"""The parts of the Vulkan API that rune needs: one instance, and the capabilities of its devices.

The `vulkan` package provides declarations and constants. Its functions are not used, because they
convert every argument in Python: `functions` looks up the driver's own, as C function pointers.

With RUNE_VULKAN_VALIDATION=1 in the environment, the Khronos validation layer checks every call,
and its messages are raised as an error at the next wait (device.py).
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Protocol

from rune import locks
from rune.backends.vulkan.memory_types import MemoryType
from rune.errors import DeviceError
from rune.lowering.codegen.target import DISCRETE_WORK, INTEGRATED_WORK
from rune.records import dataclass

VALIDATION = "RUNE_VULKAN_VALIDATION"  # environment variable
LAYER = "VK_LAYER_KHRONOS_validation"
_QUEUE_IS_PROTECTED = 0x10  # VK_QUEUE_PROTECTED_BIT, which the package lacks
_API_1_2, _API_1_3 = 1 << 22 | 2 << 12, 1 << 22 | 3 << 12

# The features that rune enables where a device has them; the first three are required.
FEATURES = """
    bufferDeviceAddress timelineSemaphore shaderInt64 shaderFloat64 shaderInt16 shaderFloat16 shaderInt8
    storageBuffer16BitAccess uniformAndStorageBuffer16BitAccess storageBuffer8BitAccess
    uniformAndStorageBuffer8BitAccess vulkanMemoryModel vulkanMemoryModelDeviceScope shaderSubgroupExtendedTypes
    scalarBlockLayout variablePointers variablePointersStorageBuffer shaderBufferInt64Atomics
    subgroupSizeControl computeFullSubgroups
""".split()
NEEDED = FEATURES[:3]


@functools.cache
def api() -> Any:
    """The `vulkan` package. Errors: ImportError; OSError where there is no loader."""
    import vulkan

    return vulkan


# --- C structures -----------------------------------------------------------------------------

# cffi's pointers do not keep their targets alive, so each structure is mapped to what it points to.
_referents: weakref.WeakKeyDictionary[Any, tuple[object, ...]] = weakref.WeakKeyDictionary()


def struct(name: str, **fields: object) -> Any:
    """A new C structure with its type tag, which keeps alive what its fields point to."""
    ffi = api().ffi
    tag = _tag(name)
    record = ffi.new(f"{name}*", fields if tag is None else {"sType": tag, **fields})
    _referents[record] = tuple(fields.values())
    return record


@functools.cache
def _tag(name: str) -> int | None:
    """VkBufferCreateInfo -> VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=[0-9])", "_", name[2:]).upper()
    words = re.sub(r"VULKAN_1(\d)", r"VULKAN_1_\1", words)
    return getattr(api(), f"VK_STRUCTURE_TYPE_{words}", None)


def c_array(type: str, values: Sequence[object]) -> Any:
    """A new C array, which keeps alive what its items point to."""
    array = api().ffi.new(f"{type}[]", list(values))
    _referents[array] = tuple(values)
    return array


def c_text(text: str) -> Any:
    """A new C string."""
    return api().ffi.new("char[]", text.encode())


def functions(find: Any, owner: Any, names: Sequence[str]) -> Any:
    """Functions by name. find: vkGetDeviceProcAddr, whose functions skip the loader's dispatch, or
    vkGetInstanceProcAddr."""
    ffi = api().ffi
    pointers = {name: ffi.cast(f"PFN_{name}", find(owner, c_text(name))) for name in names}
    return SimpleNamespace(**pointers)


class Failure(Exception):
    """A result code of the driver that is not success."""

    def __init__(self, code: int, action: str):
        super().__init__(code, action)
        self.code, self.action = code, action

    def __str__(self) -> str:
        return f"{self.action}: {result_name(self.code)}"


def is_out_of_memory(code: int) -> bool:
    """Whether the driver has run out of memory."""
    vk = api()
    no_more = vk.VK_ERROR_TOO_MANY_OBJECTS  # allocations, where all of them are in use
    return code in (vk.VK_ERROR_OUT_OF_HOST_MEMORY, vk.VK_ERROR_OUT_OF_DEVICE_MEMORY, no_more)


def check(code: int, action: str) -> int:
    """The code, if it means success: those are not negative. Errors: Failure."""
    if code < 0:
        raise Failure(code, action)
    return code


def result_name(code: int) -> str:
    """The API's name of a result code, "VK_ERROR_DEVICE_LOST"."""
    names = (n for n in dir(api()) if n.startswith("VK_ERROR_") and getattr(api(), n) == code)
    return next(names, f"result {code}")


def listed(function: Any, type: str, *before: Any) -> Any:
    """The items that a function of the form f(..., count*, array*) enumerates."""
    ffi = api().ffi
    count = ffi.new("uint32_t*")
    function(*before, count, ffi.NULL)
    items = ffi.new(f"{type}[]", count[0])
    function(*before, count, items)
    return items


# --- the instance -----------------------------------------------------------------------------


class Closable(Protocol):
    """An open device."""

    def close(self) -> None: ...


class Instance:
    """The connection to the loader; one per process. `devices`: the open ones, the newest last."""

    def __init__(self, is_validated: bool):
        vk, ffi = api(), api().ffi
        self.messages: list[str] = []  # of the validation layer
        self.is_validated = is_validated
        application = struct("VkApplicationInfo", apiVersion=_API_1_3)
        extensions = _names(["VK_EXT_debug_utils"] if is_validated else _portable())
        layers = _names([LAYER] if is_validated else [])
        portable = vk.VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
        info = struct(
            "VkInstanceCreateInfo",
            flags=portable if not is_validated and _portable() else 0,
            pApplicationInfo=application,
            enabledExtensionCount=len(extensions),
            ppEnabledExtensionNames=extensions,
            enabledLayerCount=len(layers),
            ppEnabledLayerNames=layers,
        )
        handle = ffi.new("VkInstance*")
        check(vk.lib.vkCreateInstance(info, ffi.NULL, handle), "vkCreateInstance")
        self.handle = handle[0]
        self._listener = self._listen() if is_validated else None
        self.devices: list[Closable] = []
        self._lock, self._is_closed = locks.reentrant(), False

    def _listen(self) -> Any:
        """Collect the messages of the validation layer."""
        vk, ffi = api(), api().ffi

        def hear(severity: int, kind: int, data: Any, user: object) -> int:
            self.messages.append(ffi.string(data.pMessage).decode(errors="replace"))
            return 0

        callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", hear)
        info = struct(
            "VkDebugUtilsMessengerCreateInfoEXT",
            messageSeverity=vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT
            | vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
            messageType=vk.VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT
            | vk.VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
            pfnUserCallback=callback,
        )
        names = ["vkCreateDebugUtilsMessengerEXT", "vkDestroyDebugUtilsMessengerEXT"]
        fn = functions(vk.lib.vkGetInstanceProcAddr, self.handle, names)
        messenger = ffi.new("VkDebugUtilsMessengerEXT*")
        create = fn.vkCreateDebugUtilsMessengerEXT
        check(create(self.handle, info, ffi.NULL, messenger), "vkCreateDebugUtilsMessengerEXT")
        return callback, messenger[0], fn.vkDestroyDebugUtilsMessengerEXT

    @contextmanager
    def opening(self) -> Iterator[None]:
        """While a device is opened: the instance is not closed meanwhile.

        Errors: DeviceError once it is closed, as another thread may go on while the process ends.
        """
        with self._lock:
            if self._is_closed:
                raise DeviceError("vulkan: cannot open a device (the process ends)")
            yield

    def close(self) -> None:
        """Close all devices, then destroy the instance. Prints messages that were never raised."""
        ffi = api().ffi
        with self._lock:
            self._is_closed = True
            for device in reversed([*self.devices]):
                device.close()
        for message in self.messages:
            print(message, file=sys.stderr)
        if self._listener is not None:
            self._listener[2](self.handle, self._listener[1], ffi.NULL)
        api().lib.vkDestroyInstance(self.handle, ffi.NULL)


def _names(texts: Sequence[str]) -> Any:
    return c_array("char*", [c_text(t) for t in texts])


@functools.cache
def _portable() -> list[str]:
    """The extension that lists layered drivers too (Vulkan over Metal), where the loader has it."""
    vk, name = api(), "VK_KHR_portability_enumeration"
    extensions = listed(vk.lib.vkEnumerateInstanceExtensionProperties, "VkExtensionProperties", vk.ffi.NULL)
    return [name] if any(vk.ffi.string(e.extensionName).decode() == name for e in extensions) else []


@functools.cache
def instance() -> Instance:
    """The process's instance. Errors: Failure, ImportError, OSError."""
    connection, process = Instance(os.environ.get(VALIDATION, "") not in ("", "0")), os.getpid()
    # A forked child must close nothing.
    atexit.register(lambda: connection.close() if os.getpid() == process else None)
    return connection


# --- capabilities of devices ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A queue: its family, and its number in the family."""

    family: int
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Physical:
    """A device as its driver describes it."""

    handle: object
    instance: Instance
    name: str
    driver: str  # with its version
    kind: int  # VkPhysicalDeviceType
    api_version: int
    features: frozenset[str]  # of FEATURES
    extensions: frozenset[str]
    family: int  # of the queue that computes; -1 if there is none
    copies: QueuePlace | None  # a second queue, for copies; None if there is none
    threads_per_workgroup: int
    shared_bytes: int
    launch_groups: int  # along one dimension
    cores: int | None  # of a CPU; Vulkan does not report those of a GPU
    subgroup_threads: int
    shuffles: bool  # whether threads of a subgroup can read each other's values
    largest_allocation_bytes: int  # of one allocation, and of one buffer
    most_allocations: int
    atom_bytes: int  # ranges of mapped memory are flushed in multiples of this
    memory_types: tuple[MemoryType, ...]
    heap_bytes: tuple[int, ...]
    identity: bytes  # of device and driver: no other one can use its compiled kernels
    float_controls: Any  # VkPhysicalDeviceVulkan12Properties
    stamp_bits: int  # of a time stamp; 0: the queue has no clock
    stamp_ns: float  # of one tick

    @property
    def is_1_3(self) -> bool:
        """Whether the device knows the structures of Vulkan 1.3."""
        return self.api_version >= _API_1_3

    @property
    def is_llvmpipe(self) -> bool:
        """Whether it is Mesa's device on the processor."""
        return self.name.startswith("llvmpipe")

    @property
    def submission_work(self) -> int | None:
        """As in Target: None for a CPU, on which no watchdog stops kernels."""
        vk = api()
        by_kind = {vk.VK_PHYSICAL_DEVICE_TYPE_CPU: None, vk.VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: DISCRETE_WORK}
        return by_kind.get(self.kind, INTEGRATED_WORK)

    def why_not(self) -> str | None:
        """The reason why rune cannot use the device, or None."""
        if self.api_version < _API_1_2:
            return "Vulkan 1.2 is needed"
        lacking = [name for name in NEEDED if name not in self.features]
        if self.family < 0:
            lacking.append("a queue that computes")
        return f"it lacks {', '.join(lacking)}" if lacking else None


def feature_structs(selection: frozenset[str] | None, is_1_3: bool) -> Any:
    """VkPhysicalDeviceFeatures2 with its chain: empty, or with a selection of features set."""
    chain = api().ffi.NULL
    for name in ("Vulkan13", "Vulkan12", "Vulkan11")[0 if is_1_3 else 1 :]:
        chain = struct(f"VkPhysicalDevice{name}Features", pNext=chain)
        _choose(chain, selection)
    features = struct("VkPhysicalDeviceFeatures2", pNext=chain)
    _choose(features.features, selection)
    return features


def _choose(features: object, selection: frozenset[str] | None) -> None:
    for name in selection or ():
        if hasattr(features, name):
            setattr(features, name, 1)


def _features(handle: object, is_1_3: bool) -> frozenset[str]:
    query = feature_structs(None, is_1_3)
    api().lib.vkGetPhysicalDeviceFeatures2(handle, query)
    structs, pointer = [query.features], query
    while pointer in _referents:
        pointer = _referents[pointer][0]  # pNext
        structs.append(pointer)
    return frozenset(n for n in FEATURES if any(getattr(s, n, 0) for s in structs))


def physical_devices(instance: Instance) -> list[Physical]:
    """All devices, GPUs first."""
    vk = api()
    order = {
        vk.VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: 0,
        vk.VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: 1,
        vk.VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: 2,
    }
    handles = listed(vk.lib.vkEnumeratePhysicalDevices, "VkPhysicalDevice", instance.handle)
    devices = [_physical(instance, handle) for handle in handles]
    return sorted(devices, key=lambda p: order.get(p.kind, 3))


def _physical(instance: Instance, handle: object) -> Physical:
    vk, ffi = api(), api().ffi
    subgroup = struct("VkPhysicalDeviceVulkan11Properties")
    floats = struct("VkPhysicalDeviceVulkan12Properties", pNext=subgroup)
    query = struct("VkPhysicalDeviceProperties2", pNext=floats)
    vk.lib.vkGetPhysicalDeviceProperties2(handle, query)
    properties, memory = query.properties, ffi.new("VkPhysicalDeviceMemoryProperties*")
    vk.lib.vkGetPhysicalDeviceMemoryProperties(handle, memory)
    types = memory.memoryTypes[0 : memory.memoryTypeCount]
    families = listed(vk.lib.vkGetPhysicalDeviceQueueFamilyProperties, "VkQueueFamilyProperties", handle)
    family = compute_family([f.queueFlags for f in families])
    extensions = listed(vk.lib.vkEnumerateDeviceExtensionProperties, "VkExtensionProperties", handle, ffi.NULL)
    return Physical(
        handle=handle,
        instance=instance,
        name=_text(properties.deviceName),
        driver=f"{_text(floats.driverName)} {_text(floats.driverInfo)}".strip(),
        kind=properties.deviceType,
        api_version=properties.apiVersion,
        features=_features(handle, properties.apiVersion >= _API_1_3),
        extensions=frozenset(_text(e.extensionName) for e in extensions),
        family=family,
        copies=copy_queue([(f.queueFlags, f.queueCount) for f in families], family),
        threads_per_workgroup=min(
            properties.limits.maxComputeWorkGroupInvocations, properties.limits.maxComputeWorkGroupSize[0]
        ),
        shared_bytes=properties.limits.maxComputeSharedMemorySize,
        launch_groups=min(list(properties.limits.maxComputeWorkGroupCount)[:2]),
        cores=os.cpu_count() if properties.deviceType == vk.VK_PHYSICAL_DEVICE_TYPE_CPU else None,
        subgroup_threads=subgroup.subgroupSize,
        shuffles=bool(subgroup.subgroupSupportedOperations & vk.VK_SUBGROUP_FEATURE_SHUFFLE_BIT),
        largest_allocation_bytes=_largest_bytes(handle, properties.apiVersion, subgroup.maxMemoryAllocationSize),
        most_allocations=properties.limits.maxMemoryAllocationCount,
        atom_bytes=properties.limits.nonCoherentAtomSize,
        memory_types=tuple(MemoryType(n, t.propertyFlags, t.heapIndex) for n, t in enumerate(types)),
        heap_bytes=tuple(h.size for h in memory.memoryHeaps[0 : memory.memoryHeapCount]),
        identity=_identity(properties),
        float_controls=floats,
        stamp_bits=families[family].timestampValidBits if family >= 0 else 0,
        stamp_ns=properties.limits.timestampPeriod,
    )


def compute_family(flags: Sequence[int]) -> int:
    """The queue family to compute on, from the flags of each; -1 if none can compute.

    Preferably one without graphics: the screen stays responsive while it computes, and drivers give
    such queues more time before they consider the device hung.
    """
    vk = api()
    computing = [n for n, can in enumerate(flags) if can & vk.VK_QUEUE_COMPUTE_BIT]
    return min(computing, key=lambda n: flags[n] & vk.VK_QUEUE_GRAPHICS_BIT, default=-1)


def copy_queue(families: Sequence[tuple[int, int]], computing: int) -> QueuePlace | None:
    """The queue for copies; None if there is none besides the one that computes.

    families: flags and number of queues of each

    Preferably of a family that can only copy, which is a separate unit of the device; else the
    second queue of the family that computes.
    """
    vk = api()
    # Sparse and protected memory are variants of copying. A family for video can copy too, but is
    # meant for something else.
    plain = vk.VK_QUEUE_TRANSFER_BIT | vk.VK_QUEUE_SPARSE_BINDING_BIT | _QUEUE_IS_PROTECTED
    for number, (can, _) in enumerate(families):
        if can & vk.VK_QUEUE_TRANSFER_BIT and not can & ~plain:
            return QueuePlace(number, 0)
    return QueuePlace(computing, 1) if computing >= 0 and families[computing][1] > 1 else None


def queue_counts(computing: int, copies: QueuePlace | None) -> dict[int, int]:
    """The number of queues of each family to open a device with."""
    counts = {computing: 1}
    if copies is not None:
        counts[copies.family] = max(counts.get(copies.family, 0), copies.index + 1)
    return counts


def _largest_bytes(handle: object, api_version: int, allocation_bytes: int) -> int:
    """The most bytes of one buffer; before Vulkan 1.3 only its memory limits it."""
    if api_version < _API_1_3:
        return allocation_bytes
    buffers = struct("VkPhysicalDeviceVulkan13Properties")
    api().lib.vkGetPhysicalDeviceProperties2(handle, struct("VkPhysicalDeviceProperties2", pNext=buffers))
    return min(allocation_bytes, buffers.maxBufferSize)


def _identity(properties: Any) -> bytes:
    numbers = (properties.vendorID, properties.deviceID, properties.driverVersion)
    return repr(numbers).encode() + bytes(properties.pipelineCacheUUID)


def _text(characters: object) -> str:
    return api().ffi.string(characters).decode(errors="replace")


def no_such_device(name: str, count: int) -> DeviceError:
    """The error for a device that does not exist, or not any more."""
    return DeviceError(f"device: cannot open {name} ({count} Vulkan devices)")
