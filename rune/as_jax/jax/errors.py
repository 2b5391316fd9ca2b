"""`jax.errors`."""

from rune.errors import *
from rune.errors import CheckError, DimensionError, EscapedTracerError, NonConcreteBooleanIndexError, TracerError

JAXTypeError = TracerError
JAXIndexError = NonConcreteBooleanIndexError
UnexpectedTracerError = EscapedTracerError
InconclusiveDimensionOperation = DimensionError
JaxprTypeError = CheckError
# What fails as a program runs is a RuntimeError, of rune's own or of the callback that raised it.
JaxRuntimeError = RuntimeError
