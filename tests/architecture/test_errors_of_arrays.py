"""A call for each place that raises in array, ops, numpy, lax, random and nn.

errors_of_arrays.txt is the golden text. Errors that the calls of test_errors.py or the tests of a
function already provoke are left out; together they reach every raise.
"""

from __future__ import annotations

import pytest

from tests.architecture.provocations import golden_text, has_the_form_of_the_grammar, provoke, works_as_before
from tests.architecture.sources import HERE
from tests.support.expect import expect_file

ARRAYS: list[tuple[str, str]] = [
    ("an array that is formatted as a number", "f'{x:.2f}'"),
    ("a stream to copy on", "x.to_device('cpu', stream=1)"),
    ("a stream to copy on under jit", "rune.jit(lambda v: v.to_device('cpu', stream=1))(x)"),
    ("numbers as keys", "rnp.asarray(3, dtype=rune.random.key(0).dtype)"),
    ("a traced mask of the whole array", "rune.jit(lambda v: v[v.sum() > 0])(x)"),
    ("positions around an empty axis", "x[:0].at[0].get(mode='wrap')"),
    (
        "an unknown mode of an index",
        "ops.gather(x, rnp.array([[0]]), rnp.ones(()), slice_sizes=(1,), mode='magic',"
        " dims=ops.IndexDims((), (0,), (0,)))",
    ),
    ("an index that is a text", "x['a']"),
    ("two sizes left open", "x.reshape(-1, -1)"),
    ("bits of half a byte", "rnp.ones(4, 'uint8').view('int4')"),
    ("a number without an axis to split", "x.sum().view('i2')"),
    ("a number without an axis to join", "rnp.asarray(1, 'i2').view('f4')"),
    ("a view in NumPy of a box", "rnp.mutable(x).__array__(copy=False)"),
]

OPERATIONS: list[tuple[str, str]] = [
    ("a place in an empty axis", "x[:0].at[rnp.array([1])].get(mode='clip')"),
    ("a selection by floats", "ops.select(x, x, x)"),
    ("contracted axes that differ", "rune.lax.dot_general(x, rnp.ones(4), (((0,), (0,)), ((), ())))"),
    (
        "a convolution of another rank",
        "ops.conv_general_dilated(rnp.ones((1, 1, 4, 4)), rnp.ones((1, 1, 2)), strides=(1,),"
        " padding=((0, 0),), lhs_dilation=(1,), rhs_dilation=(1,), specs=((0, 1, 2),) * 3,"
        " groups=(1, 1))",
    ),
    (
        "a stride of 0",
        "ops.conv_general_dilated(rnp.ones((1, 1, 4)), rnp.ones((1, 1, 2)), strides=(0,),"
        " padding=((0, 0),), lhs_dilation=(1,), rhs_dilation=(1,), specs=((0, 1, 2),) * 3,"
        " groups=(1, 1))",
    ),
    (
        "axes of a convolution given twice",
        "rune.lax.conv_general_dilated(rnp.ones((1, 1, 4)), rnp.ones((1, 1, 2)), (1,), [(0, 0)],"
        " dimension_numbers=rune.lax.ConvDimensionNumbers((0, 0, 2), (0, 1, 2), (0, 1, 2)))",
    ),
    (
        "groups of features and of batches",
        "rune.lax.conv_general_dilated(rnp.ones((2, 2, 4)), rnp.ones((2, 1, 2)), (1,), 'VALID',"
        " feature_group_count=2, batch_group_count=2)",
    ),
    ("positions along an axis that is not there", "ops.iota(shape=(2,), axis=1, dtype=np.dtype('int32'))"),
    ("a stretched axis", "ops.broadcast(x, shape=(4,), axes=(0,))"),
    ("a reduction over an axis that is not there", "ops.reduce_sum(x, axes=(1,))"),
    ("a scan along an axis that is not there", "ops.cumsum(x, axis=1, reverse=False)"),
    ("a transform of an axis that is not there", "ops.fft(x * 1j, kind='fft', axes=(1,), odd=False)"),
    ("a transform of an empty axis", "ops.fft(x[:0] * 1j, kind='fft', axes=(0,), odd=False)"),
    (
        "updates of another shape",
        "rune.lax.scatter(x, rnp.array([[0]]), rnp.ones(2), rune.lax.ScatterDimensionNumbers((), (0,), (0,)))",
    ),
    ("more reflectors than columns", "rune.lax.linalg.householder_product(rnp.eye(3), rnp.ones(4))"),
    (
        "rows permuted by floats",
        "ops.linalg.linear_solve(rnp.eye(2), rnp.eye(2), rnp.ones(2), rnp.eye(2), transposed=False)",
    ),
    ("a right side of other sizes", "ops.linalg.sylvester(*(rnp.eye(2),) * 6, rnp.eye(3), transposed=False)"),
    (
        "a triangular system of other sizes",
        "rune.lax.linalg.triangular_solve(rnp.eye(2), rnp.ones((3, 1)), left_side=True)",
    ),
    ("diagonals of another length", "rune.lax.linalg.tridiagonal_solve(x, x, x, rnp.ones((4, 1)))"),
    (
        "batches that differ",
        "ops.linalg.linear_solve(rnp.ones((2, 3, 3)), rnp.ones((4, 3, 3)),"
        " rnp.arange(3), rnp.ones((2, 3, 3)), transposed=False)",
    ),
    ("a factor of a matrix that is not square", "rune.lax.linalg.cholesky(rnp.ones((2, 3)))"),
    ("a stride of 0 in a slice", "rune.lax.slice(x, (0,), (2,), (0,))"),
    ("padding of another rank", "ops.pad(x, rnp.ones(()), low=(1, 1), high=(0, 0), interior=(0, 0))"),
    ("padding that takes too much away", "rune.lax.pad(x, 0.0, [(-2, -2, 0)])"),
    ("an axis reversed twice", "ops.reverse(x, axes=(0, 0))"),
    ("an exponent of no bits", "rune.lax.reduce_precision(x, 0, 1)"),
    ("an axis to stretch down", "rnp.broadcast_to(x, (1,))"),
    ("random bits of floats", "ops.random_bits(rune.random.key(0), shape=(2,), dtype=np.dtype('float32'))"),
    (
        "a gradient of products of unknown number",
        "rune.jit(rune.grad(lambda v: rnp.ones(2).at[rnp.zeros(v.shape, 'i32')].multiply(v).sum()),"
        " dims={'n': (1, None)})(x)",
    ),
    ("a window over an axis that is not there", "ops.shear(x, axes=(1,), strides=(1,), dilations=(1,))"),
    ("a search in other rows", "ops.search_sorted(rnp.ones((2, 3)), x, side='left')"),
    (
        "an unknown way to combine",
        "ops.reduce_window(x, combine='median', window=(1,), strides=(1,), padding=((0, 0),),"
        " base_dilation=(1,), window_dilation=(1,))",
    ),
    ("a window of no elements", "rune.lax.reduce_window(x, 0.0, rune.lax.add, (0,), (1,), 'VALID')"),
    ("a window greater than the array", "rune.lax.dynamic_slice(x, (0,), (4,))"),
]

NUMPY: list[tuple[str, str]] = [
    ("an insertion behind the end", "rnp.insert(x, 7, 0.0)"),
    ("the condition of a matrix without elements", "rnp.linalg.cond(rnp.ones((0, 3)))"),
    ("a partition at an element behind the end", "rnp.partition(x, 7)"),
    ("observations of rank 3", "rnp.cov(rnp.ones((2, 2, 2)))"),
    ("numbers of observations that are floats", "rnp.cov(x, fweights=x)"),
    ("degrees of freedom that are a float", "rnp.cov(x, ddof=0.5)"),
    ("a NaN in checked data", "rnp.asarray_chkfinite([1.0, np.nan])"),
    ("rows of different shapes", "rnp.array([x, rnp.ones(4)])"),
    ("a symbolic range in floating steps", "rune.jit(lambda v: rnp.arange(0, v.shape[0], 0.5), dims={'n': (1, 9)})(x)"),
    ("a diagonal of unequal axes", "rnp.einsum('ii->i', rnp.ones((2, 3)))"),
    ("frequencies of length 0", "rnp.fft.fftfreq(0)"),
    ("an unknown scaling of a covariance", "rnp.polyfit(x, x, 1, cov='scaled')"),
    ("too few points to scale a covariance", "rnp.polyfit(x, x, 2, cov=True)"),
    ("parts of a small float", "rnp.frexp(rnp.ones(3, 'f8_e4m3'))"),
    ("a function that removes axes", "rnp.apply_over_axes(lambda a, axis: a.sum(), rnp.ones((2, 2, 2)), 0)"),
    ("fewer functions than conditions", "rnp.piecewise(x, [x < 0, x > 0], [1.0])"),
    ("truths in the place of conditions", "rnp.piecewise(x, [True, False, True], [1.0, 2.0])"),
    ("more arguments than a signature", "rnp.vectorize(rnp.add, signature='(n)->(n)')(x, x)"),
    ("an argument of lower rank", "rnp.vectorize(rnp.sum, signature='(n,m)->()')(x)"),
    ("core sizes that differ", "rnp.vectorize(rnp.dot, signature='(n),(n)->()')(x, rnp.ones(4))"),
    ("more results than a signature", "rnp.vectorize(rnp.modf, signature='(n)->(n)')(x)"),
    ("a result of lower rank", "rnp.vectorize(rnp.sum, signature='(n)->(n)')(x)"),
    ("a ufunc of nothing", "rnp.frompyfunc(lambda: 1.0, 0, 1)"),
    ("a diagonal of negative length", "rnp.diag_indices(-1)"),
    ("a diagonal of a vector", "rnp.fill_diagonal(x, 0.0, inplace=False)"),
    ("an unknown order of axes", "rnp.unravel_index(rnp.arange(3), (2, 2), order='K')"),
    ("positions of fewer axes", "rnp.ravel_multi_index((rnp.arange(2),), (2, 2))"),
    ("a position out of bounds", "rnp.ravel_multi_index((rnp.array([0, 3]),), (2,), mode='raise')"),
    ("an unknown mode of positions", "rnp.ravel_multi_index((rnp.array([0]),), (2,), mode='clamp')"),
    ("a grid of a number", "rnp.mgrid[3]"),
    ("a grid without an end", "rnp.mgrid[1:]"),
    ("an unknown directive", "rnp.r_['a,b', x]"),
    ("bins of rank 2", "rnp.digitize(x, rnp.ones((2, 2)))"),
    ("counts of a matrix", "rnp.bincount(rnp.ones((2, 2), 'i32'))"),
    ("fewer weights than elements", "rnp.bincount(rnp.arange(3), weights=rnp.ones(2))"),
    ("no bins", "rnp.histogram(x, bins=0)"),
    ("a range of three numbers", "rnp.histogram(x, range=(0, 1, 2))"),
    ("a range from high to low", "rnp.histogram(x, range=(1, 0))"),
    ("points of rank 3", "rnp.histogramdd(rnp.ones((2, 2, 2)))"),
    ("bins of another number of axes", "rnp.histogramdd(rnp.ones((4, 2)), bins=(2, 2, 2))"),
    ("points without coordinates", "rnp.histogramdd(rnp.ones((4, 0)))"),
    ("elements deleted from a symbolic axis", "rune.jit(lambda v: rnp.delete(v, 0), dims={'n': (2, 9)})(x)"),
    ("a traced position to delete", "rune.jit(lambda v, i: rnp.delete(v, i))(x, 1)"),
    ("a mask of another length", "rnp.delete(x, [True, False])"),
    ("a floating position to delete", "rnp.delete(x, [0.5])"),
    ("a choice out of bounds", "rnp.choose(rnp.array([2]), [x[:1], x[:1]], mode='raise')"),
    ("an unknown mode of a choice", "rnp.choose(rnp.array([0]), [x[:1]], mode='clamp')"),
    ("blocks in a tuple", "rnp.block((x, x))"),
    ("blocks of uneven depths", "rnp.block([x, [x]])"),
    ("nothing to put in places", "rnp.place(x, x > 0, [], inplace=False)"),
    ("a negative number of repeats", "rnp.repeat(x, -1)"),
    ("a negative number of tiles", "rnp.tile(x, -1)"),
    ("an unknown method of a determinant", "rnp.linalg.slogdet(rnp.eye(2), method='svd')"),
    ("two tolerances of a rank", "rnp.linalg.matrix_rank(rnp.eye(2), rtol=0.1, tol=0.1)"),
    ("a norm that matrices do not have", "rnp.linalg.norm(rnp.eye(2), 3)"),
    ("a product of one matrix", "rnp.linalg.multi_dot([rnp.eye(2)])"),
    ("two tolerances of an inverse", "rnp.linalg.pinv(rnp.eye(2), rtol=0.1, rcond=0.1)"),
    ("an inverse without axes", "rnp.linalg.tensorinv(rnp.eye(2), 0)"),
    ("more unknowns than equations", "rnp.linalg.tensorsolve(rnp.ones((2, 3)), rnp.ones(2))"),
    ("an unknown triangle", "rnp.linalg.eigh(rnp.eye(2), UPLO='X')"),
    ("singular values that are not there", "rnp.linalg.svd(rnp.eye(2), full_matrices=False, subset_by_index=(1, 5))"),
    ("weights of a quantile that do not fit", "rnp.quantile(x, 0.5, weights=rnp.ones(2), method='inverted_cdf')"),
    (
        "an odd reflection of a symbolic axis",
        "rune.jit(lambda v: rnp.pad(v, 1, mode='reflect', reflect_type='odd'), dims={'n': (2, 9)})(x)",
    ),
    ("a negative number of columns", "rnp.vander(x, -1)"),
    ("positions in a number", "rnp.nonzero(x.sum())"),
    ("fills of another number of axes", "rnp.nonzero(x, size=3, fill_value=(0, 0))"),
    ("digits of a float", "rnp.base_repr(1.5)"),
    ("pairs of axes of different number", "rnp.tensordot(rnp.eye(2), rnp.eye(2), axes=((0, 1), (0,)))"),
    ("a mask of floats", "rnp.sum(x, where=x)"),
    ("a negative number of values", "rnp.linspace(0.0, 1.0, -1)"),
    ("an unknown method of a search in a set", "rnp.isin(x, x, method='magic')"),
    ("two axes moved to one place", "rnp.moveaxis(rnp.eye(2), (0, 1), 0)"),
    ("an axis moved behind the last", "rnp.rollaxis(rnp.eye(2), 0, 3)"),
    ("shifts of another number of axes", "rnp.roll(rnp.eye(2), (1, 2, 3), (0, 1))"),
    ("a traced shift that is a float", "rune.jit(lambda v, s: rnp.roll(v, s))(x, 1.5)"),
    ("spacings of another number of axes", "rnp.gradient(rnp.eye(3), 1.0, 1.0, 1.0)"),
    ("a spacing of rank 2", "rnp.gradient(x, rnp.ones((3, 3)))"),
    ("stability that is neither true nor false", "rnp.sort(x, stable='yes')"),
    ("keys of different shapes", "rnp.lexsort((x, rnp.ones(4)))"),
    ("an unknown side of a search", "rnp.searchsorted(x, x, side='middle')"),
    ("pairs by a function of one argument", "rnp.frompyfunc(rnp.sin, 1, 1).reduce(x)"),
    ("a fold over several axes", "rnp.frompyfunc(rnp.hypot, 2, 1).reduce(rnp.eye(2), axis=(0, 1))"),
    ("a masked fold without a start", "rnp.frompyfunc(rnp.hypot, 2, 1).reduce(x, where=x > 0)"),
    ("a fold of nothing without a start", "rnp.frompyfunc(rnp.hypot, 2, 1).reduce(x[:0])"),
    ("a start that is a number", "rnp.add.reduceat(x, 0)"),
    ("an unknown order of bits", "rnp.packbits(rnp.ones(8, 'uint8'), bitorder='middle')"),
    ("weights of other observations", "rnp.cov(x, aweights=rnp.ones(2))"),
    (
        "more axes than letters",
        "rnp.einsum(rnp.ones((1,) * 30), list(range(30)), rnp.ones((1,) * 30), list(range(30, 60)))",
    ),
    ("a triangle of a vector", "rnp.tril_indices_from(x)"),
    ("an element of nothing", "rnp.take(x[:0], rnp.array([0]))"),
    ("a choice by floats", "rnp.choose(x, [x, x])"),
    ("a choice between nothing", "rnp.choose(rnp.array([0]), [])"),
    ("a condition longer than the axis", "rnp.compress(rnp.ones(4, bool), x, size=1)"),
    ("a diagonal matrix of a number", "rnp.diag(x.sum())"),
    ("fewer differences than none", "rnp.diff(x, -1)"),
    ("an option of a function that has none", "rnp.frompyfunc(rnp.hypot, 2, 1)(x, x, axis=0)"),
    ("more bits left out than there are", "rnp.unpackbits(rnp.ones(1, 'u1'), count=-9)"),
]

LAX: list[tuple[str, str]] = [
    ("upper halves of floats", "rune.lax.mulhi(x, x)"),
    (
        "groups of lanes of two axes",
        "rune.vmap(lambda v: rune.lax.psum(v, ('i', 'j'), axis_index_groups=[[0]]), axis_name='i')(x)",
    ),
    (
        "a permutation of symbolic lanes",
        "rune.jit(rune.vmap(lambda v: rune.lax.ppermute(v, 'i', [(0, 1)]), axis_name='i'), dims={'n': (1, 9)})(x)",
    ),
    ("an unknown padding", "rune.lax.conv_transpose(rnp.ones((1, 4, 1)), rnp.ones((2, 1, 1)), (1,), 'FULL')"),
    ("positions without an axis", "rune.lax.index_take(x, (-1,), (0,))"),
    ("positions for one of two axes", "rune.lax.index_take(rnp.eye(2), (rnp.array([0]),), (0, 1))"),
    ("signs of another number of axes", "rune.lax.dynamic_slice(x, (0,), (2,), allow_negative_indices=(True, True))"),
    ("an unknown rounding", "rune.lax.round(x, 7)"),
    ("more lengths than axes", "rune.lax.fft(x * 1j, 'FFT', (3, 3))"),
    ("another length of a transform", "rune.lax.fft(x, 'RFFT', (4,))"),
    ("an update of a complex factor", "rune.lax.linalg.cholesky_update(rnp.eye(2) * 1j, rnp.ones(2) * 1j)"),
    ("more pivots than rows", "rune.lax.linalg.lu_pivots_to_permutation(rnp.arange(3), 2)"),
    ("a subset that is not there", "rune.lax.linalg.svd(rnp.eye(3), full_matrices=False, subset_by_index=(2, 5))"),
    ("a subset of full matrices", "rune.lax.linalg.svd(rnp.eye(3), subset_by_index=(0, 1))"),
    ("a dynamic shape", "rune.lax.linalg.qdwh(rnp.eye(3), dynamic_shape=(2, 2))"),
    ("a polar decomposition of integers", "rune.lax.linalg.qdwh(rnp.eye(3, dtype='i32'))"),
    ("a lower rank", "rune.lax.broadcast_to_rank(rnp.eye(3), 1)"),
    ("padding by pairs", "rune.lax.pad(x, 0.0, [(1, 1)])"),
    ("numbers along an axis that is not there", "rune.lax.broadcasted_iota('i32', (2, 2), 2)"),
    (
        "a product that would lose its imaginary part",
        "rune.lax.dot_general(x, x * 1j, (((0,), (0,)), ((), ())), preferred_element_type='f32')",
    ),
    (
        "an offset of groups",
        "rune.lax.ragged_dot(rnp.ones((3, 1)), rnp.ones((2, 1, 1)), rnp.array([2, 1]), group_offset=rnp.array([0]))",
    ),
    ("fewer initial values than arrays", "rune.lax.reduce((x, x), (0.0,), lambda a, b: a, (0,))"),
    (
        "arrays of different shapes reduced together",
        "rune.lax.reduce((x, rnp.ones(4)), (0.0, 0.0), lambda a, b: a, (0,))",
    ),
    ("a sort of nothing", "rune.lax.sort(())"),
    ("more of the least than there are", "rune.lax.approx_min_k(x, 4)"),
    ("parts that are not joined", "rune.lax.approx_max_k(x, 1, aggregate_to_topk=False)"),
    ("a window of another rank", "rune.lax.reduce_window(x, 0.0, rune.lax.add, (2, 2), (1, 1), 'VALID')"),
    ("random bits as floats", "rune.lax.rng_bit_generator(rnp.array([1, 2, 3, 4], 'u4'), (3,), 'f4')"),
    (
        "sizes of groups in a matrix",
        "rune.lax.ragged_dot_general(rnp.ones((3, 1)), rnp.ones((3, 1)), rnp.ones((2, 1), 'i4'),"
        " rune.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ()))",
    ),
    (
        "two ragged axes",
        "rune.lax.ragged_dot_general(rnp.ones((3, 1)), rnp.ones((3, 1)), rnp.array([2, 1]),"
        " rune.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0, 1), ()))",
    ),
    (
        "an axis of groups too many",
        "rune.lax.ragged_dot_general(rnp.ones((3, 1)), rnp.ones((3, 1)), rnp.array([2, 1]),"
        " rune.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), (0,)))",
    ),
    (
        "scales of blocks that are not whole",
        "rune.lax.scaled_dot(rnp.ones((2, 4)), rnp.ones((4, 2)), lhs_scale=rnp.ones((2, 3)))",
    ),
]

RANDOM: list[tuple[str, str]] = [
    ("one outcome", "rune.random.multinomial(rune.random.key(0), 10.0, 1.0)"),
    ("shares of one number", "rune.random.dirichlet(rune.random.key(0), 1.0)"),
    ("a generator named twice", "rune.random.key(0, impl='threefry2x32', dtype='threefry2x32')"),
    ("a list in the place of words", "rune.random.wrap_key_data([0, 42])"),
    ("a covariance of another size", "rune.random.multivariate_normal(rune.random.key(0), x, rnp.eye(2))"),
    (
        "an unknown way to a root",
        "rune.random.multivariate_normal(rune.random.key(0), rnp.ones(2), rnp.eye(2), method='lu')",
    ),
    (
        "a permutation of any size",
        "rune.jit(lambda v: rune.random.permutation(rune.random.key(0), v), dims={'n': (1, None)})(x)",
    ),
    (
        "a symbolic number of draws",
        "rune.jit(lambda v: rune.random.choice(rune.random.key(0), 5, v.shape, replace=False), dims={'n': (1, 3)})(x)",
    ),
    ("a choice from nothing", "rune.random.choice(rune.random.key(0), x[:0], (1,))"),
    ("more draws than elements", "rune.random.choice(rune.random.key(0), x, (4,), replace=False)"),
    ("probabilities of another size", "rune.random.choice(rune.random.key(0), x, p=rnp.ones(2) / 2)"),
    ("more draws than outcomes", "rune.random.categorical(rune.random.key(0), x, shape=(4,), replace=False)"),
]

NN: list[tuple[str, str]] = [
    (
        "keys and values of different lengths",
        "rune.nn.dot_product_attention(rnp.ones((1, 2, 2, 4)), rnp.ones((1, 3, 2, 4)), rnp.ones((1, 4, 2, 4)))",
    ),
    (
        "heads that do not divide",
        "rune.nn.dot_product_attention(rnp.ones((1, 2, 3, 4)), *(rnp.ones((1, 2, 2, 4)),) * 2)",
    ),
    (
        "queries of another dtype",
        "rune.nn.dot_product_attention(rnp.ones((1, 2, 2, 4), 'f16'), *(rnp.ones((1, 2, 2, 4)),) * 2)",
    ),
    ("padding of another number of axes", "rune.nn.conv1d(rnp.ones((1, 1, 4)), rnp.ones((1, 1, 2)), padding=(1, 1))"),
    ("an orthogonal vector", "rune.nn.initializers.orthogonal()(rune.random.key(0), (3,))"),
    (
        "orthogonal columns of an axis that is not there",
        "rune.nn.initializers.orthogonal(column_axis=2)(rune.random.key(0), (3, 3))",
    ),
    ("an orthogonal kernel without sizes", "rune.nn.initializers.delta_orthogonal()(rune.random.key(0), (3, 3))"),
    ("classes of a number", "rune.nn.cross_entropy(x.sum(), rnp.array(0))"),
    ("bools as labels", "rune.nn.one_hot(rnp.array([True]), 2)"),
    ("a window of too many axes", "rune.nn.max_pool(x, (1, 1))"),
    (
        "three directions",
        "rune.nn.rnn([(rune.nn.init_cell('rnn', 3, 2, rune.random.key(0)),) * 3], rnp.ones((1, 1, 3)))",
    ),
    (
        "scales that do not divide the columns",
        "rune.nn.scaled_matmul(*(rnp.ones((1, 1, 4)),) * 2, *(rnp.ones((1, 1, 3)),) * 2)",
    ),
    (
        "blocks that do not divide the columns",
        "rune.nn.scaled_dot_general(rnp.ones((4, 5)), rnp.ones((4, 5)), (((1,), (1,)), ((), ())),"
        " configs=[rune.nn.get_scaled_dot_general_config('mxfp8')] * 3)",
    ),
]

CALLS = ARRAYS + OPERATIONS + NUMPY + LAX + RANDOM + NN


def test_every_message_is_the_one_in_the_golden_text(request: pytest.FixtureRequest):
    expect_file(request.config, HERE / "errors_of_arrays.txt", golden_text(CALLS))


@pytest.mark.parametrize("code", [c for _, c in CALLS], ids=[t for t, _ in CALLS])
def test_every_message_has_the_form_of_the_grammar(code: str):
    has_the_form_of_the_grammar(str(provoke(code)))


def test_everything_works_after_all_these_errors():
    for _, code in CALLS:
        provoke(code)

    works_as_before()
