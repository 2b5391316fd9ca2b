"""rune.lax: the functions of jax.lax, strict where rune.numpy is lenient.

elementwise   add, exp, select, clamp, …: one dtype and one shape, nothing promoted
bits          shifts, logic, bitcast_convert_type, reduce_precision, …
movement      broadcast_in_dim, reshape, slice, pad, concatenate, iota, …
indexing      dynamic_slice, gather, scatter, scatter_add, …
reductions    reduce, reduce_sum, argmax, cumsum, …
sorting       sort, sort_key_val, top_k, …
fourier       fft, FftType
products      dot, dot_general, batch_matmul, ragged_dot, scaled_dot, …
generators    rng_bit_generator
special       lgamma, digamma, igamma, betainc, zeta, …
control       cond, switch, while_loop, fori_loop, scan, map, associative_scan, custom_root,
              custom_linear_solve
collectives   psum, pmean, pmax, pmin, all_gather, psum_scatter, all_to_all, ppermute, pshuffle,
              pswapaxes, pbroadcast, pvary, axis_index, axis_size
derivatives   stop_gradient
linalg        cholesky, lu, qr, triangular_solve, …: a separate module
"""

# isort: off
import typing as _typing

from rune.listing import names as _names
from rune.absent import of as _absent
from rune.control import (
    associative_scan as associative_scan,
    cond as cond,
    custom_linear_solve as custom_linear_solve,
    custom_root as custom_root,
    fori_loop as fori_loop,
    map as map,
    scan as scan,
    switch as switch,
    while_loop as while_loop,
)
from rune.lax.arguments import AccuracyMode as AccuracyMode
from rune.lax.bits import (
    bitcast_convert_type as bitcast_convert_type,
    bitwise_and as bitwise_and,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    clz as clz,
    mulhi as mulhi,
    convert_element_type as convert_element_type,
    population_count as population_count,
    reduce_precision as reduce_precision,
    shift_left as shift_left,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_logical as shift_right_logical,
)
from rune.lax.collectives import (
    all_gather as all_gather,
    all_to_all as all_to_all,
    axis_index as axis_index,
    axis_size as axis_size,
    pmax as pmax,
    pbroadcast as pbroadcast,
    pcast as pcast,
    pmean as pmean,
    pmin as pmin,
    ppermute as ppermute,
    pshuffle as pshuffle,
    pvary as pvary,
    psum as psum,
    psum_scatter as psum_scatter,
    pswapaxes as pswapaxes,
)
from rune.lax.conv_layouts import (
    ConvDimensionNumbers as ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers as conv_dimension_numbers,
    conv_general_permutations as conv_general_permutations,
    padtype_to_pads as padtype_to_pads,
)
from rune.lax.convolution import (
    conv as conv,
    conv_general_dilated as conv_general_dilated,
    conv_general_dilated_local as conv_general_dilated_local,
    conv_general_dilated_patches as conv_general_dilated_patches,
    conv_general_shape_tuple as conv_general_shape_tuple,
    conv_shape_tuple as conv_shape_tuple,
    conv_transpose as conv_transpose,
    conv_transpose_shape_tuple as conv_transpose_shape_tuple,
    conv_with_general_padding as conv_with_general_padding,
)
from rune.lax.fourier import FftType as FftType, fft as fft
from rune.lax.windows import reduce_window as reduce_window, reduce_window_shape_tuple as reduce_window_shape_tuple
from rune.lax.dynamic_slices import (
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from rune.lax.elementwise import *
from rune.lax.generators import RandomAlgorithm as RandomAlgorithm, rng_bit_generator as rng_bit_generator
from rune.lax.identities import (
    dtype as dtype,
    optimization_barrier as optimization_barrier,
    shape_as_value as shape_as_value,
    stop_gradient as stop_gradient,
    with_sharding_constraint as with_sharding_constraint,
)
from rune.ops.jax_forms import (
    GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
)
from rune.lax.indexing import (
    gather as gather,
    index_take as index_take,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_apply as scatter_apply,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
)
from rune.lax import linalg as linalg
from rune.lax.movement import (
    broadcast as broadcast,
    broadcast_in_dim as broadcast_in_dim,
    broadcast_like as broadcast_like,
    broadcast_shapes as broadcast_shapes,
    broadcast_to_rank as broadcast_to_rank,
    broadcasted_iota as broadcasted_iota,
    collapse as collapse,
    concatenate as concatenate,
    empty as empty,
    expand_dims as expand_dims,
    full as full,
    full_like as full_like,
    index_in_dim as index_in_dim,
    iota as iota,
    pad as pad,
    reshape as reshape,
    rev as rev,
    slice as slice,
    slice_in_dim as slice_in_dim,
    split as split,
    squeeze as squeeze,
    stack as stack,
    tile as tile,
    transpose as transpose,
    unstack as unstack,
)
from rune.lax.products import (
    DotAlgorithmPreset as DotAlgorithmPreset,
    DotDimensionNumbers as DotDimensionNumbers,
    Precision as Precision,
    PrecisionLike as PrecisionLike,
    batch_matmul as batch_matmul,
    dot as dot,
    dot_general as dot_general,
)
from rune.lax.ragged import (
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
    ragged_dot as ragged_dot,
    ragged_dot_general as ragged_dot_general,
    scaled_dot as scaled_dot,
)
from rune.lax.reductions import (
    argmax as argmax,
    argmin as argmin,
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
    reduce as reduce,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    reduce_xor as reduce_xor,
)
from rune.lax.sorting import (
    approx_max_k as approx_max_k,
    approx_min_k as approx_min_k,
    sort as sort,
    sort_key_val as sort_key_val,
    top_k as top_k,
)
from rune.lax.special import (
    bessel_i0e as bessel_i0e,
    bessel_i1e as bessel_i1e,
    betainc as betainc,
    digamma as digamma,
    igamma as igamma,
    igamma_grad_a as igamma_grad_a,
    igammac as igammac,
    lgamma as lgamma,
    polygamma as polygamma,
    random_gamma_grad as random_gamma_grad,
    zeta as zeta,
)

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals(), "linalg")
