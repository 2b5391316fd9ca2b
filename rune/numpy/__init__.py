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
fft             fft, rfftn, fftfreq, …: a module of its own
linalg          solve, inv, cholesky, svd, norm, …: a module of its own
signals         convolve, interp, gradient, unwrap, …     polynomials     polyval, polyfit, roots, …
windows         hanning, kaiser, i0, …
types           float32, bfloat16, result_type, finfo, issubdtype, …

Missing from NumPy: anything that writes in place (out=, fill), and memory order.
Results whose shape depends on values (nonzero, unique) need `size=` under transformations.
"""

# isort: off
import typing as _typing

from rune.absent import of as _absent
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from rune.numpy.arithmetic import (
    abs,
    absolute,
    around,
    ceil,
    clip,
    copysign,
    divide,
    divmod,
    fabs,
    fix,
    float_power,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    heaviside,
    mod,
    modf,
    nan_to_num,
    nextafter,
    positive,
    pow,
    power,
    reciprocal,
    remainder,
    rint,
    round,
    sign,
    square,
    true_divide,
    trunc,
)
from rune.numpy.array_api_info import __array_api_version__, __array_namespace_info__
from rune.numpy.averages import (
    average,
    mean,
    nanargmax,
    nanargmin,
    nancumprod,
    nancumsum,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
    std,
    var,
)
from rune.numpy.complex_numbers import (
    angle,
    conj,
    conjugate,
    imag,
    iscomplex,
    iscomplexobj,
    isreal,
    isrealobj,
    real,
    real_if_close,
)
from rune.numpy.covariances import corrcoef, cov
from rune.numpy.creation import (
    arange,
    array,
    asanyarray,
    asarray,
    asarray_chkfinite,
    copy,
    empty,
    empty_like,
    full,
    full_like,
    meshgrid,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from rune.numpy.einstein_sums import einsum, einsum_path
from rune.numpy import fft as fft
from rune.numpy import linalg as linalg
from rune.numpy.float_parts import frexp, ldexp, spacing
from rune.numpy.functional import apply_along_axis, apply_over_axes, fromfunction, frompyfunc, piecewise, vectorize
from rune.numpy.grids import (
    c_,
    diag_indices,
    diag_indices_from,
    fill_diagonal,
    index_exp,
    indices,
    ix_,
    mask_indices,
    mgrid,
    ogrid,
    r_,
    ravel_multi_index,
    s_,
    tril_indices_from,
    triu_indices_from,
    unravel_index,
)
from rune.numpy.host_data import (
    from_dlpack,
    frombuffer,
    fromfile,
    fromiter,
    fromstring,
    load,
    loadtxt,
    save,
    savetxt,
    savez,
    savez_compressed,
)
from rune.numpy.histograms import bincount, digitize, histogram, histogram2d, histogram_bin_edges, histogramdd
from rune.numpy.indexing import put, put_along_axis, take, take_along_axis
from rune.numpy.insertion import block, choose, compress, delete, extract, insert, place, resize, trim_zeros
from rune.numpy.joining import (
    append,
    array_split,
    column_stack,
    concat,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    repeat,
    split,
    stack,
    tile,
    unstack,
    vsplit,
    vstack,
)
from rune.numpy.logic import (
    allclose,
    array_equal,
    array_equiv,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_right_shift,
    equal,
    greater,
    greater_equal,
    invert,
    isclose,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    left_shift,
    less,
    less_equal,
    logical_not,
    not_equal,
    right_shift,
    select,
    signbit,
    where,
)
from rune.numpy.matrices import (
    diag,
    diagflat,
    diagonal,
    eye,
    identity,
    trace,
    tri,
    tril,
    tril_indices,
    triu,
    triu_indices,
)
from rune.numpy.mutable_boxes import mutable
from rune.numpy.order_statistics import median, nanmedian, nanpercentile, nanquantile, percentile, quantile
from rune.numpy.padding import pad
from rune.numpy.printing import (
    array2string,
    array_repr,
    array_str,
    base_repr,
    binary_repr,
    format_float_positional,
    format_float_scientific,
    get_printoptions,
    printoptions,
    set_printoptions,
)
from rune.numpy.positions import argwhere, flatnonzero, nonzero
from rune.numpy.fitting import polyfit
from rune.numpy.polynomial_roots import poly, roots
from rune.numpy.polynomials import polyadd, polyder, polydiv, polyint, polymul, polysub, polyval, vander
from rune.numpy.products import cross, dot, inner, kron, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat
from rune.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    diff,
    ediff1d,
    max,
    min,
    prod,
    ptp,
    sum,
)
from rune.numpy.sequences import geomspace, linspace, logspace
from rune.numpy.sets import (
    intersect1d,
    isin,
    setdiff1d,
    setxor1d,
    union1d,
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from rune.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    roll,
    rollaxis,
    rot90,
    squeeze,
    swapaxes,
    transpose,
)
from rune.numpy.standard_ufuncs import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    subtract,
)
from rune.numpy.sorting import argpartition, argsort, lexsort, partition, searchsorted, sort, sort_complex
from rune.numpy.signals import convolve, correlate, gradient, interp, trapezoid, unwrap
from rune.numpy.transcendental import (
    acos,
    acosh,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    cos,
    cosh,
    deg2rad,
    degrees,
    exp,
    exp2,
    expm1,
    hypot,
    log,
    log1p,
    log2,
    log10,
    rad2deg,
    radians,
    sin,
    sinc,
    sinh,
    sqrt,
    tan,
    tanh,
)
from rune.numpy.types import (
    astype,
    bfloat16,
    bool_,
    can_cast,
    cdouble,
    character,
    common_type,
    complex128,
    complex64,
    complex_,
    complexfloating,
    csingle,
    double,
    dtype,
    finfo,
    flexible,
    float16,
    float32,
    float64,
    float8_e4m3fn,
    float8_e5m2,
    float_,
    floating,
    generic,
    half,
    iinfo,
    inexact,
    int16,
    int32,
    int4,
    int64,
    int8,
    int_,
    integer,
    isdtype,
    isscalar,
    issubdtype,
    iterable,
    ndarray,
    ndim,
    number,
    object_,
    promote_types,
    result_type,
    shape,
    signedinteger,
    single,
    size,
    uint,
    uint16,
    uint32,
    uint4,
    uint64,
    uint8,
    unsignedinteger,
)
from rune.numpy.ufuncs import ufunc
from rune.numpy.whole_numbers import gcd, lcm, packbits, unpackbits
from rune.numpy.windows import bartlett, blackman, hamming, hanning, i0, kaiser

bool = bool_
newaxis = None
euler_gamma = 0.5772156649015329

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
