"""rune: the JAX programming model on every GPU and on any CPU."""

from rune import numpy as numpy
from rune import tree as tree
from rune.array import Array
from rune.backends import devices
from rune.config import configure, enable_x64
from rune.core.types import ArrayType
from rune.counts import counters, counting
from rune.transforms import evaluate as _evaluate
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
from rune.transforms.stage import make_program
from rune.transforms.vmap import vmap

make_jaxpr = make_program
