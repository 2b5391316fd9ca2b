"""rune: the JAX programming model on every GPU and on any CPU.

Pure Python functions over `rune.numpy` arrays are traced into a typed IR; grad, jvp, vmap and jit
rewrite it and compose freely. `jit` compiles for the CPU or an OpenCL device.

>>> import rune, rune.numpy as rnp
>>> rune.jit(rune.grad(lambda x: rnp.sum(x**3)))(rnp.arange(3.0))
Array([ 0.,  3., 12.], f32[3], cpu:0)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from rune import errors, nn, numpy, optim, tree
from rune.array import Array
from rune.backends import devices, missing
from rune.config import configure, enable_x64
from rune.core.types import ArrayType
from rune.counts import counters, counting
from rune.transforms import evaluate as _evaluate  # installs the outermost interpreter
from rune.transforms.grad import (
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from rune.transforms.jit import jit
from rune.transforms.placement import block_until_ready, device_get, device_put
from rune.transforms.stage import make_program
from rune.transforms.vmap import vmap

if TYPE_CHECKING:
    from rune.transforms.explain import explain

make_jaxpr = make_program


def __getattr__(name: str):
    # explain shows the compiler's stages; it loads the compiler, which `import rune` does not.
    if name == "explain":
        return import_module("rune.transforms.explain").explain
    raise AttributeError(f"module 'rune' has no attribute {name!r}")


__version__ = "0.1.0"
__all__ = [
    "Array", "ArrayType", "block_until_ready", "configure", "counters", "counting", "device_get",
    "device_put", "devices", "enable_x64", "errors", "explain", "grad", "hessian", "jacfwd",
    "jacrev", "jit", "jvp", "linearize", "make_jaxpr", "make_program", "missing", "nn", "numpy",
    "optim", "tree", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
