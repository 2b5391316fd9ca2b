"""rune.numpy: NumPy's names with JAX's rules. Arrays are immutable; default types are 32-bit.

creation        array, zeros, full, arange, linspace, meshgrid, …
arithmetic      add, power, maximum, clip, round, …      transcendental  exp, sin, hypot, sinc, …
logic           equal, logical_and, bitwise_or, isnan, where, select, …
reductions      sum, max, argmax, any, cumsum, diff, …   averages        mean, var, nansum, …
shapes          reshape, transpose, broadcast_to, flip, roll, …
joining         concatenate, stack, split, repeat, …    padding         pad
indexing        take, put, take_along_axis, …            matrices        eye, tril, diag, trace, …
complex_numbers real, imag, conj, angle, iscomplex, …
sorting         sort, argsort, searchsorted, lexsort, …  sets            unique, isin, union1d, …
order_statistics  quantile, median, nanmedian, …         histograms      histogram, bincount, …
positions       nonzero, argwhere, …
products        dot, matmul, tensordot, kron, cross, …   einsum
fft             fft, rfftn, fftfreq, …: a separate module
linalg          solve, inv, cholesky, svd, norm, …: a separate module
signals         convolve, interp, gradient, unwrap, …     polynomials     polyval, polyfit, roots, …
windows         hanning, kaiser, i0, …
types           float32, bfloat16, result_type, finfo, issubdtype, …

Not supported: anything that writes in place (out=, fill), and memory order.
Results whose shape depends on values (nonzero, unique) need `size=` under transformations.
"""

# isort: off
import typing as _typing

from rune.listing import names as _names
from rune.absent import of as _absent
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from rune.numpy.arithmetic import (
    abs as abs,
    absolute as absolute,
    around as around,
    ceil as ceil,
    clip as clip,
    copysign as copysign,
    divide as divide,
    divmod as divmod,
    fabs as fabs,
    fix as fix,
    float_power as float_power,
    floor as floor,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    heaviside as heaviside,
    mod as mod,
    modf as modf,
    nan_to_num as nan_to_num,
    nextafter as nextafter,
    positive as positive,
    pow as pow,
    power as power,
    reciprocal as reciprocal,
    remainder as remainder,
    rint as rint,
    round as round,
    sign as sign,
    square as square,
    true_divide as true_divide,
    trunc as trunc,
)
from rune.numpy.array_api_info import __array_api_version__, __array_namespace_info__
from rune.numpy.averages import (
    mean as mean,
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmin as nanmin,
    nanprod as nanprod,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
    std as std,
    var as var,
)
from rune.numpy.complex_numbers import (
    angle as angle,
    conj as conj,
    conjugate as conjugate,
    imag as imag,
    iscomplex as iscomplex,
    iscomplexobj as iscomplexobj,
    isreal as isreal,
    isrealobj as isrealobj,
    real as real,
    real_if_close as real_if_close,
)
from rune.numpy.covariances import corrcoef as corrcoef, cov as cov
from rune.numpy.creation import (
    arange as arange,
    array as array,
    asanyarray as asanyarray,
    asarray as asarray,
    asarray_chkfinite as asarray_chkfinite,
    copy as copy,
    empty as empty,
    empty_like as empty_like,
    full as full,
    full_like as full_like,
    meshgrid as meshgrid,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from rune.numpy.einstein_sums import einsum as einsum, einsum_path as einsum_path
from rune.numpy import fft as fft
from rune.numpy import linalg as linalg
from rune.numpy.float_parts import frexp as frexp, ldexp as ldexp, spacing as spacing
from rune.numpy.functional import (
    apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes,
    fromfunction as fromfunction,
    frompyfunc as frompyfunc,
    piecewise as piecewise,
    vectorize as vectorize,
)
from rune.numpy.grids import (
    c_ as c_,
    diag_indices as diag_indices,
    diag_indices_from as diag_indices_from,
    fill_diagonal as fill_diagonal,
    index_exp as index_exp,
    indices as indices,
    ix_ as ix_,
    mask_indices as mask_indices,
    mgrid as mgrid,
    ogrid as ogrid,
    r_ as r_,
    ravel_multi_index as ravel_multi_index,
    s_ as s_,
    tril_indices_from as tril_indices_from,
    triu_indices_from as triu_indices_from,
    unravel_index as unravel_index,
)
from rune.numpy.host_data import (
    from_dlpack as from_dlpack,
    frombuffer as frombuffer,
    fromfile as fromfile,
    fromiter as fromiter,
    fromstring as fromstring,
    load as load,
    loadtxt as loadtxt,
    save as save,
    savetxt as savetxt,
    savez as savez,
    savez_compressed as savez_compressed,
)
from rune.numpy.histograms import (
    bincount as bincount,
    digitize as digitize,
    histogram as histogram,
    histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd,
)
from rune.numpy.indexing import (
    put as put,
    put_along_axis as put_along_axis,
    take as take,
    take_along_axis as take_along_axis,
)
from rune.numpy.insertion import (
    block as block,
    choose as choose,
    compress as compress,
    delete as delete,
    extract as extract,
    insert as insert,
    place as place,
    resize as resize,
    trim_zeros as trim_zeros,
)
from rune.numpy.joining import (
    append as append,
    array_split as array_split,
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    dsplit as dsplit,
    dstack as dstack,
    hsplit as hsplit,
    hstack as hstack,
    repeat as repeat,
    split as split,
    stack as stack,
    tile as tile,
    unstack as unstack,
    vsplit as vsplit,
    vstack as vstack,
)
from rune.numpy.logic import (
    allclose as allclose,
    array_equal as array_equal,
    array_equiv as array_equiv,
    bitwise_count as bitwise_count,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_right_shift as bitwise_right_shift,
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    invert as invert,
    isclose as isclose,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    isneginf as isneginf,
    isposinf as isposinf,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    logical_not as logical_not,
    not_equal as not_equal,
    right_shift as right_shift,
    select as select,
    signbit as signbit,
    where as where,
)
from rune.numpy.matrices import (
    diag as diag,
    diagflat as diagflat,
    diagonal as diagonal,
    eye as eye,
    identity as identity,
    trace as trace,
    tri as tri,
    tril as tril,
    tril_indices as tril_indices,
    triu as triu,
    triu_indices as triu_indices,
)
from rune.numpy.mutable_boxes import mutable as mutable
from rune.numpy.order_statistics import (
    median as median,
    nanmedian as nanmedian,
    nanpercentile as nanpercentile,
    nanquantile as nanquantile,
    percentile as percentile,
    quantile as quantile,
)
from rune.numpy.padding import pad as pad
from rune.numpy.printing import (
    array2string as array2string,
    array_repr as array_repr,
    array_str as array_str,
    base_repr as base_repr,
    binary_repr as binary_repr,
    format_float_positional as format_float_positional,
    format_float_scientific as format_float_scientific,
    get_printoptions as get_printoptions,
    printoptions as printoptions,
    set_printoptions as set_printoptions,
)
from rune.numpy.positions import argwhere as argwhere, flatnonzero as flatnonzero, nonzero as nonzero
from rune.numpy.fitting import polyfit as polyfit
from rune.numpy.polynomial_roots import poly as poly, roots as roots
from rune.numpy.polynomials import (
    polyadd as polyadd,
    polyder as polyder,
    polydiv as polydiv,
    polyint as polyint,
    polymul as polymul,
    polysub as polysub,
    polyval as polyval,
    vander as vander,
)
from rune.numpy.products import (
    cross as cross,
    dot as dot,
    inner as inner,
    kron as kron,
    matmul as matmul,
    matvec as matvec,
    outer as outer,
    tensordot as tensordot,
    vdot as vdot,
    vecdot as vecdot,
    vecmat as vecmat,
)
from rune.numpy.reductions import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    diff as diff,
    ediff1d as ediff1d,
    max as max,
    min as min,
    prod as prod,
    ptp as ptp,
    sum as sum,
)
from rune.numpy.sequences import geomspace as geomspace, linspace as linspace, logspace as logspace
from rune.numpy.sets import (
    intersect1d as intersect1d,
    isin as isin,
    setdiff1d as setdiff1d,
    setxor1d as setxor1d,
    union1d as union1d,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from rune.numpy.shapes import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    ravel as ravel,
    reshape as reshape,
    roll as roll,
    rollaxis as rollaxis,
    rot90 as rot90,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
)
from rune.numpy.standard_ufuncs import (
    add as add,
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    logical_and as logical_and,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    subtract as subtract,
)
from rune.numpy.sorting import (
    argpartition as argpartition,
    argsort as argsort,
    lexsort as lexsort,
    partition as partition,
    searchsorted as searchsorted,
    sort as sort,
    sort_complex as sort_complex,
)
from rune.numpy.signals import (
    convolve as convolve,
    correlate as correlate,
    gradient as gradient,
    interp as interp,
    trapezoid as trapezoid,
    unwrap as unwrap,
)
from rune.numpy.transcendental import *
from rune.numpy.types import (
    astype as astype,
    bfloat16 as bfloat16,
    bool_ as bool_,
    can_cast as can_cast,
    cdouble as cdouble,
    character as character,
    common_type as common_type,
    complex128 as complex128,
    complex64 as complex64,
    complex_ as complex_,
    complexfloating as complexfloating,
    csingle as csingle,
    double as double,
    dtype as dtype,
    finfo as finfo,
    flexible as flexible,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    float8_e4m3fn as float8_e4m3fn,
    float8_e5m2 as float8_e5m2,
    float_ as float_,
    floating as floating,
    generic as generic,
    half as half,
    iinfo as iinfo,
    inexact as inexact,
    int16 as int16,
    int32 as int32,
    int4 as int4,
    int64 as int64,
    int8 as int8,
    int_ as int_,
    integer as integer,
    isdtype as isdtype,
    isscalar as isscalar,
    issubdtype as issubdtype,
    iterable as iterable,
    ndarray as ndarray,
    ndim as ndim,
    number as number,
    object_ as object_,
    promote_types as promote_types,
    result_type as result_type,
    shape as shape,
    signedinteger as signedinteger,
    single as single,
    size as size,
    uint as uint,
    uint16 as uint16,
    uint32 as uint32,
    uint4 as uint4,
    uint64 as uint64,
    uint8 as uint8,
    unsignedinteger as unsignedinteger,
)
from rune.numpy.ufuncs import ufunc as ufunc
from rune.numpy.weighted import average as average
from rune.numpy.whole_numbers import gcd as gcd, lcm as lcm, packbits as packbits, unpackbits as unpackbits
from rune.numpy.windows import (
    bartlett as bartlett,
    blackman as blackman,
    hamming as hamming,
    hanning as hanning,
    i0 as i0,
    kaiser as kaiser,
)

bool = bool_
newaxis = None
euler_gamma = 0.5772156649015329

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals(), "fft", "linalg")
