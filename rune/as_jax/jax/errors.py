"""`jax.errors`."""

from rune.errors import *
from rune.errors import CheckError, DimensionError, EscapedTracerError, NonConcreteBooleanIndexError, TracerError

JAXTypeError = TracerError
JAXIndexError = NonConcreteBooleanIndexError
UnexpectedTracerError = EscapedTracerError
InconclusiveDimensionOperation = DimensionError
JaxprTypeError = CheckError
# A failure while a program runs is a RuntimeError, rune's own or that of a callback.
JaxRuntimeError = RuntimeError
