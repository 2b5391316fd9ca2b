"""`jaxlib._jax`: the classes of jitted functions and devices (GPJax, tjax, SCICO)."""

from rune import absent
from rune.array import Array as ArrayImpl
from rune.backends import Device
from rune.transforms.compile.jit import Jitted as PjitFunction

XlaRuntimeError = RuntimeError
__getattr__ = absent.of(__name__)
