"""`jaxlib.xla_client`: classes in annotations and `except` (dynamiqs, jax_dataclasses, jaxlie)."""

from rune import absent
from rune.array import Array as ArrayImpl
from rune.backends import Device
from rune.sharding import NamedSharding, Sharding, SingleDeviceSharding

XlaRuntimeError = RuntimeError
__getattr__ = absent.of(__name__)
