"""`jax.stages`."""

from rune.transforms.compile.jit import Jitted as Wrapped
from rune.transforms.compile.stages import ArgInfo, Compiled, Lowered, Traced

CompilerOptions = dict[str, str | bool]
