"""First-order primitives, one record each, by family. Called like functions: `ops.sin(x)`.

    family          constructors, broadcast, reshape, reduce_sum: what all rules rest on
    arithmetic      comparison, selection, arithmetic, logic, bits, conversion
    complex_numbers real, imag, complex, conj;  pairs, parts: complex functions by parts
    precision       reduce_precision
    transcendental  roots, powers, exponentials, circular and hyperbolic functions
    movement        transpose, slice, pad, reverse, concatenate
    reduction       prod, max, min, and, or, argmax, argmin; cumulative operations
    contraction     dot_general;  fourier: fft;  sliding: shear, windows;  convolution
    window_reductions  reduce_window
    indexing        gather, scatter;  scatters: scatter_mul, …;  windows: dynamic_slice, …
    sorting         sort, top_k, search_sorted;  segments: segment_sum, …
    linalg          cholesky, lu, qr, solve, …: linear algebra
    creation        iota; stop_gradient;  random: bits and keys (ciphers has the generators)

`PRIMITIVES` is the table from which tests are made. The rule matrix of these and of all other
primitives is printed by `python -m rune.ops`.
"""

from rune.core.primitive import Primitive
from rune.ops import (
    arithmetic,
    complex_numbers,
    contraction,
    convolution,
    creation,
    fourier,
    indexing,
    linalg,
    movement,
    precision,
    random,
    reduction,
    scatters,
    sliding,
    sorting,
    transcendental,
    window_reductions,
    windows,
)
from rune.ops.arithmetic import (
    abs,
    add,
    bitcast,
    cast,
    ceil,
    clz,
    convert,
    copysign,
    div,
    eq,
    floor,
    ge,
    gt,
    is_finite,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    max,
    min,
    mul,
    ne,
    neg,
    nextafter,
    popcount,
    rem,
    round,
    select,
    shl,
    shr,
    sign,
    square,
    sub,
    trunc,
    zero_like,
)
from rune.ops.collectives import (
    COLLECTIVES,
    all_gather,
    all_to_all,
    axis_index,
    pmax,
    pmin,
    ppermute,
    psum,
    psum_scatter,
    pvary,
)
from rune.ops.complex_numbers import complex, conj, imag, real
from rune.ops.contraction import dot_general
from rune.ops.convolution import conv_general_dilated
from rune.ops.creation import iota, stop_gradient
from rune.ops.family import broadcast, fit, reduce_sum, reshape, zeros_like
from rune.ops.fourier import fft
from rune.ops.index_dims import IndexDims
from rune.ops.indexing import gather, scatter, scatter_add
from rune.ops.movement import concatenate, pad, reverse, slice_, transpose
from rune.ops.precision import reduce_precision
from rune.ops.random import (
    key_of_words,
    key_word,
    random_bits,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    random_words,
)
from rune.ops.reduction import (
    argmax,
    argmin,
    cummax,
    cummin,
    cumprod,
    cumsum,
    expand_axes,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
)
from rune.ops.scatters import scatter_max, scatter_min, scatter_mul
from rune.ops.segments import segment_max, segment_min, segment_prod, segment_sum
from rune.ops.sliding import shear
from rune.ops.sorting import search_sorted, sort, top_k
from rune.ops.transcendental import *
from rune.ops.window_reductions import reduce_window
from rune.ops.windows import dynamic_slice, dynamic_update_slice

PRIMITIVES: tuple[Primitive, ...] = (
    *arithmetic.PRIMITIVES,
    *complex_numbers.PRIMITIVES,
    *precision.PRIMITIVES,
    *transcendental.PRIMITIVES,
    *movement.PRIMITIVES,
    *reduction.PRIMITIVES,
    *contraction.PRIMITIVES,
    *sliding.PRIMITIVES,
    *convolution.PRIMITIVES,
    *window_reductions.PRIMITIVES,
    *indexing.PRIMITIVES,
    *scatters.PRIMITIVES,
    *windows.PRIMITIVES,
    *creation.PRIMITIVES,
    *random.PRIMITIVES,
)
# Primitives whose meaning is a routine of NumPy's (core/lower.py); each has a file of its own.
LIBRARY: tuple[Primitive, ...] = (*sorting.PRIMITIVES, *fourier.PRIMITIVES, *linalg.PRIMITIVES)
BY_NAME = {p.name: p for p in (*PRIMITIVES, *LIBRARY)}
