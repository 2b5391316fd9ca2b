"""rune.lax: the functions of jax.lax, strict where rune.numpy is obliging.

elementwise   add, exp, select, clamp, …: one dtype and one shape, nothing promoted
bits          shifts, logic, bitcast_convert_type, reduce_precision, …
movement      broadcast_in_dim, reshape, slice, pad, concatenate, iota, …
indexing      dynamic_slice, gather, scatter, scatter_add, …
reductions    reduce, reduce_sum, argmax, cumsum, …
sorting       sort, sort_key_val, top_k, …
fourier       fft, FftType
products      dot, dot_general, batch_matmul, ragged_dot
special       lgamma, digamma, igamma, betainc, zeta, …
control       cond, switch, while_loop, fori_loop, scan, map, associative_scan, custom_root,
              custom_linear_solve
collectives   psum, pmean, pmax, pmin, all_gather, psum_scatter, all_to_all, ppermute, pshuffle,
              pswapaxes, axis_index, axis_size
derivatives   stop_gradient
linalg        cholesky, lu, qr, triangular_solve, …: a module of its own
"""

# isort: off
import typing as _typing

from rune.absent import of as _absent
from rune.control import (
    associative_scan,
    cond,
    custom_linear_solve,
    custom_root,
    fori_loop,
    map,
    scan,
    switch,
    while_loop,
)
from rune.lax.bits import (
    bitcast_convert_type,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clz,
    mulhi,
    convert_element_type,
    population_count,
    reduce_precision,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from rune.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)
from rune.lax.conv_layouts import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_general_permutations,
    padtype_to_pads,
)
from rune.lax.convolution import (
    conv,
    conv_general_dilated,
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose,
    conv_transpose_shape_tuple,
    conv_with_general_padding,
)
from rune.lax.fourier import FftType, fft
from rune.lax.windows import reduce_window, reduce_window_shape_tuple
from rune.lax.dynamic_slices import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from rune.lax.elementwise import (
    RoundingMethod,
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    clamp,
    complex,
    conj,
    cos,
    cosh,
    div,
    eq,
    erf,
    erf_inv,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    ge,
    gt,
    imag,
    integer_pow,
    is_finite,
    le,
    log,
    log1p,
    logistic,
    lt,
    max,
    min,
    mul,
    ne,
    neg,
    nextafter,
    pow,
    real,
    reciprocal,
    rem,
    round,
    rsqrt,
    select,
    select_n,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    sub,
    tan,
    tanh,
)
from rune.lax.identities import dtype, optimization_barrier, shape_as_value, stop_gradient
from rune.lax.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    index_take,
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from rune.lax import linalg as linalg
from rune.lax.movement import (
    broadcast,
    broadcast_in_dim,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    broadcasted_iota,
    collapse,
    concatenate,
    empty,
    expand_dims,
    full,
    full_like,
    index_in_dim,
    iota,
    pad,
    reshape,
    rev,
    slice,
    slice_in_dim,
    split,
    squeeze,
    stack,
    tile,
    transpose,
    unstack,
)
from rune.lax.products import DotDimensionNumbers, Precision, PrecisionLike, batch_matmul, dot, dot_general, ragged_dot
from rune.lax.reductions import (
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from rune.lax.sorting import approx_max_k, approx_min_k, sort, sort_key_val, top_k
from rune.lax.special import (
    bessel_i0e,
    bessel_i1e,
    betainc,
    digamma,
    igamma,
    igamma_grad_a,
    igammac,
    lgamma,
    polygamma,
    random_gamma_grad,
    zeta,
)

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
