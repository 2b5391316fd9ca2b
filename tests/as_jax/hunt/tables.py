"""Templates of single lines, by kind: the public API with arguments that few programs name.

writer.py explains braces and «». If jax refuses a line for the values at hand, another one is
drawn, so templates need not be valid for all values.
"""

from __future__ import annotations

from tests.as_jax.hunt.text import texts

ELEMENTWISE = texts("""
{x} «+|-|*|/|//|%|**» «{yb}|{number}|{number}»
«{number}|{z}» «+|-|*|/|//|%» {x}
{x:biu} «&|^» «{yb:biu}|3|True|-1»
{x:iu} «<<|>>» «{yb:iu}|1|3|7»
«-|~|abs|+»({x})
{x} «==|!=» «{yb}|{number}»
jnp.«less|greater|less_equal|greater_equal|not_equal|equal»({x}, «{yb}|{number}»)
jnp.«maximum|minimum|fmax|fmin|arctan2|hypot|copysign|nextafter|logaddexp|logaddexp2|fmod|mod|remainder»({x}, «{yb}|{number}»)
jnp.«power|float_power|floor_divide|true_divide|heaviside|ldexp|gcd|lcm|pow|subtract|divmod»({x}, «{yb}|{number}»)«|[0]»
jnp.«exp|exp2|expm1|log|log1p|log2|log10|sqrt|cbrt|square|reciprocal|sin|cos|tan|sinh|cosh|tanh»({x})
jnp.«arcsin|arccos|arctan|arcsinh|arccosh|arctanh|sinc|rint|trunc|fix|ceil|floor|sign|absolute|fabs»({x})
jnp.«isnan|isinf|isfinite|isposinf|isneginf|signbit|isreal|iscomplex|logical_not|angle|real|imag|conj»({x})
jnp.«degrees|radians|positive|negative|i0|nan_to_num|bitwise_count|invert|spacing»({x})
jnp.nan_to_num({x}, «|copy=True, nan=1.5|nan=-2, posinf=9.0, neginf=-9»)
jnp.«frexp|modf»({x})[«0|1»]
jnp.divmod({x}, «{yb}|{number}»)[«0|1»]
jnp.clip({x}, «{number}|None|{yb}», «2|None|{yb}|1.5»)
jnp.round({x}, «0|1|2|-1|-2|3»)
jnp.where({yb:biu}, {x}, «{yb}|{number}»)
jnp.where({x} > «0|1.5|{number}», «{number}|{yb}», «{number}|{yb}»)
{x}.astype({dtype})
lax.convert_element_type({x}, {dtype})
jnp.asarray({x}, dtype={dtype})
{x}.view(«jnp.int8|jnp.uint8|jnp.int16|jnp.uint32|jnp.float32|jnp.float16|jnp.bfloat16»)
lax.bitcast_convert_type({x}, «jnp.int8|jnp.uint8|jnp.int16|jnp.uint32|jnp.float32|jnp.float16|jnp.int32»)
lax.reduce_precision({x:f}, «3|5|8», «2|7|10»)
lax.«add|sub|mul|max|min|atan2|nextafter|rem|div|pow»({x}, {y})
lax.«bitwise_and|bitwise_or|bitwise_xor|shift_left|shift_right_logical|shift_right_arithmetic|mulhi»({x:biu}, {y:biu})
lax.«population_count|clz|bitwise_not»({x:iu})
lax.integer_pow({x}, «0|1|2|3|5|-1|-2|7»)
lax.«rsqrt|cbrt|logistic|expm1|log1p|erf_inv|lgamma|digamma|round|is_finite|sign|floor|exp2»({x:f})
lax.round({x:f}, lax.RoundingMethod.«TO_NEAREST_EVEN|AWAY_FROM_ZERO»)
lax.clamp(«{x}|{x}.dtype.type(0)», {x}, {y})
lax.select_n({x} > 0, {x}, {y})
lax.complex({x:f}, {y:f})
jnp.«isclose|array_equal|array_equiv|allclose»({x}, {yb}«|, equal_nan=True»)
jnp.interp({x:f}, jnp.array([-2.0, -0.5, 0.25, 3.0]), jnp.array([1.0, -1.0, 0.5, 2.0])«|, left=7, right=-3|, period=2.5|, left='extrapolate'»)
jnp.polyval(jnp.array([«1, 0, -2|0.5, 1.5, -1.0, 2.0|3»]), {x}«|, unroll=1»)
jnp.select([{x} > 1, {y} > 0], [{y}, {x}], «0|-1.5|True»)
jnp.piecewise({x:if}, [{x} > 1, {x} == 0], [lambda t: t * t, 5, lambda t: -t])
jnp.unwrap({x:if1}, «|discont=2.0, axis=0|period=3»)
jnp.bitwise_«left_shift|right_shift|or|and|xor»({x:iu}, «{yb:iu}|2»)
jnp.ldexp({x:f}, «{yb:i}|3|-140»)
jnp.isin({x}, «{z}|jnp.array([0, 1, -1])»«|, invert=True|, assume_unique=True|, method='sort'|, method='compare_all'»)
jnp.vectorize(lambda a, b: a * b.sum(), signature='(),(n)->()')({x:f}, {z:f1})
jnp.real_if_close({x:c})
jnp.packbits({x:biu1} > 0«|, axis={axis}|, bitorder='little'»)
jnp.unpackbits({x:u1}.astype(jnp.uint8)«|, axis={axis}|, count=5|, bitorder='little', count=-3»)
jax.nn.«relu|relu6|gelu|silu|elu|selu|celu|softplus|hard_tanh|hard_sigmoid|hard_silu|log_sigmoid|mish|squareplus»({x})
jax.nn.«leaky_relu|sparse_plus|sparse_sigmoid|soft_sign|sigmoid|identity|log1mexp|tanh|swish»({x:f})
jax.nn.gelu({x}, approximate=False)
jax.nn.elu({x}, «0.5|2|{yb:f}»)
jax.nn.leaky_relu({x}, «0.3|2»)
jax.nn.one_hot({x:iu}, «3|1|7», «|dtype={dtype}»«|, axis=0»)
""")

REDUCTIONS = texts("""
jnp.«sum|prod|max|min|mean|any|all|std|var|ptp|median|count_nonzero»({x}, axis={axes}«|, keepdims=True»)
jnp.«sum|mean|prod»({x}, {axes}, dtype={dtype})
jnp.«sum|prod|mean|std|var|any|all»({x}, {axes}, where={yb} > 0«|, keepdims=True»)
jnp.«sum|prod|max|min»({x}, {axes}, initial=«{number}|2»«|, where={yb:b}»)
jnp.«sum|prod»({x}, {axes}, promote_integers=False)
jnp.«var|std»({x}, {axes}, ddof=«1|2|0.5»«|, keepdims=True»«|, correction=0»)
jnp.«nansum|nanprod|nanmax|nanmin|nanmean|nanstd|nanvar|nanmedian»({x}, {axes}«|, keepdims=True»)
jnp.«argmax|argmin|nanargmax|nanargmin»({x:1}, {axis}«|, keepdims=True»)
jnp.«argmax|argmin»({x})
lax.«argmax|argmin»({x:1}, {axis+}, {int})
jnp.«cumsum|cumprod|nancumsum|nancumprod»({x}, «{axis}|None»«|, dtype={dtype}»)
jnp.«cumulative_sum|cumulative_prod»({x:1}, axis={axis}«|, include_initial=True»«|, dtype={dtype}»)
lax.«cumsum|cumprod|cummax|cummin|cumlogsumexp»({x:1}, {axis+}«|, reverse=True»)
lax.reduce_«sum|prod|max|min|and|or|xor»({x:1}, (0,))
lax.reduce({x:1}, «jnp.zeros((), {x}.dtype)|{x}.dtype.type(1)», «lax.add|lax.max|lax.mul|lambda a, b: a + b * 2 - b», ({axis+},))
jnp.«maximum|minimum|add|multiply|logaddexp|subtract».«reduce|accumulate»({x:1}, {axis})
jnp.«maximum|add|multiply».reduceat({x:1-1}, jnp.arange({x}.shape[0]) // 2, axis=0)
jnp.«add|multiply|maximum».outer({x:-1}, {z:-1})
jnp.add.at({x:1}, jnp.array([0, 1, 0]), 2, inplace=False)
jnp.average({x}, {axes}«|, weights=jnp.abs({y}) + 1, returned=True»[0])
jnp.average({x:1}, {axis}, weights=jnp.arange({n}) + 1.0)
jnp.«percentile|nanpercentile»({x}, «50|jnp.array([0.0, 37.5, 87.5])|75.5», axis={axes}«|, method='lower'|, method='nearest'|, method='midpoint'|, method='higher', keepdims=True»)
jnp.«quantile|nanquantile»({x}, «0.1|jnp.array([[0.25, 0.5]])», axis={axis}«|, keepdims=True»«|, weights=None»)
jnp.«diff»({x:1}, «1|2|0», {axis}«|, prepend=1|, append={number}|, prepend={x}»)
jnp.ediff1d({x}«|, to_end={number}, to_begin=2»)
jnp.gradient({x:f1}«|, 0.5|, axis={axis}|, 2.0, axis=(0,)»)«|[0]»
jnp.trapezoid({x:1}, «x={y}|dx=0.25», axis={axis})
jnp.cov({x:f-2}«|, rowvar=False|, bias=True|, ddof=0|, {y}, ddof=2»)
jnp.corrcoef({x:f-2}«|, rowvar=False»)
jnp.histogram({x}, «5|bins=jnp.array([-2.0, 0.0, 0.5, 3.0])», «(-1, 2)|(0, 1)»«|, weights={y:if}|, density=True»)[«0|1»]
jnp.histogram({x:if}, «4|jnp.array([-1.0, 0.0, 2.5])»)[«0|1»]
jnp.histogram2d({x:if1-1}, {y:if}, «3|(2, 4)», range=((-2, 2), (-1, 3)))[0]
jnp.bincount({x:u1-1}«|, {y:if}»«|, minlength=4», length=«5|9»)
jnp.digitize({x:if}, jnp.array(«[-1.0, 0.0, 2.0]|[3, 1, 0]»)«|, right=True»)
jnp.linalg.norm({x}, axis={axis}«|, ord=«1|2|jnp.inf|-jnp.inf|0|3|-1|2.5»»«|, keepdims=True»)
jnp.linalg.vector_norm({x}, axis={axes}, ord=«1|2|0|jnp.inf|3.5»«|, keepdims=True»)
jnp.linalg.matrix_norm({x:f2}«|, ord=«1|-1|jnp.inf|'fro'»»«|, keepdims=True»)
jax.nn.logsumexp({x}, «{axes}»«|, b={yb}|, keepdims=True»)
jax.scipy.special.logsumexp({x}, {axes}, b={yb}, return_sign=True)[«0|1»]
jax.nn.«softmax|log_softmax»({x}, «{axis}|{axes}»«|, where={y} > 0»)
jax.nn.standardize({x:f1}, {axis}«|, epsilon=1e-3|, where={y} > 0|, mean={x}.mean(), variance=2.0»)
jax.nn.logmeanexp({x:f}, {axes})
jax.nn.glu({x:f1}, {axis})
jax.scipy.stats.«mode|rankdata|sem»({x}, axis={axis})«|[0]»
jax.scipy.stats.rankdata({x}, «'min'|'max'|'dense'|'ordinal'|'average'»«|, axis={axis}»)
jnp.apply_along_axis({f}, {axis}, {x:1})
jnp.apply_over_axes(jnp.«sum|max|mean», {x:2}, [0, -1])
""")

SHAPES = texts("""
{x}.reshape(-1)«|.reshape(1, -1)|[:, None]»
{x}.ravel(«|'F'»)
{x}.reshape(-1, order='F')
{x:2}.reshape({x}.shape[0], -1)«|.T»
jnp.transpose({x}, {perm})
{x}.T
{x:2}.mT
jnp.«swapaxes»({x:2}, {axis}, {axis})
jnp.«moveaxis|rollaxis»({x:2}, {axis}, {axis})
jnp.expand_dims({x}, «0|-1|(0, -1)|(1,)»)
jnp.squeeze({x}«|, axis={axis}»)
jnp.atleast_«1|2|3»d({x})
jnp.«flip»({x}, {axes})
jnp.«fliplr|flipud»({x:2})
jnp.rot90({x:2}, «1|2|-1|3»«|, axes=(1, 0)»)
jnp.roll({x}, «1|-2|5|{z:i-0}», {axis})
jnp.roll({x:2}, (1, -2), «(0, 1)|(-1, 0)»)
jnp.tile({x}, «2|(2, 1)|(1, 3, 1)|0|()»)
jnp.repeat({x}, «2|0|3»«|, axis={axis}»)
jnp.repeat({x:1}, jnp.arange({n}) % 3, axis={axis}, total_repeat_length=«7|2»)
jnp.pad({x:1}, «1|(2, 0)|((0, 3),)»«|, constant_values=«-1|2.5|(1, 2)»»)
jnp.pad({x:1}, «1|(2, 1)|5», mode=«'edge'|'reflect'|'symmetric'|'wrap'|'linear_ramp'|'maximum'|'mean'|'median'|'minimum'|'empty'»)
jnp.pad({x:1}, 2, mode='«reflect|symmetric»', reflect_type='odd')
jnp.pad({x:1}, 3, mode='mean', stat_length=2)
lax.pad({x:2-2}, {x}.dtype.type(1), («(1, 2, 0)|(-1, 3, 1)|(0, 0, 2)», «(0, 0, 0)|(-1, -1, 0)|(2, -1, 3)»))
jnp.concatenate([{x:1}, {y}, {x}], axis=«{axis}|None»«|, dtype={dtype}»)
jnp.stack([{x}, {y}], axis=«0|-1|1»«|, dtype={float}»)
jnp.«hstack|vstack|dstack|column_stack»([{x}, {y}])
jnp.append({x}, «{y}|{number}|{z}»«|, axis={axis}»)
jnp.insert({x:1}, «0|-1|jnp.array([1, 0])|slice(0, 2)», «{number}|7», axis=«{axis}|None»)
jnp.delete({x:1}, «0|-1|jnp.array([0, 1])|slice(None, None, 2)», axis=«{axis}|None»)
jnp.split({x:1}, [1, 2], axis={axis})[«0|1|2»]
jnp.array_split({x:1}, 3, axis={axis})[«0|1|2»]
jnp.«hsplit|vsplit»({x:2}, [1])[«0|1»]
jnp.unstack({x:1}, axis={axis})[-1]
jnp.broadcast_to({x}, (2, *{x}.shape))
jnp.broadcast_arrays({x}, {yb})[«0|1»]
lax.broadcast_in_dim({x:1-2}, (3, *{x}.shape), tuple(range(1, {x}.ndim + 1)))
lax.«rev»({x:1}, (0,))
lax.collapse({x:2}, 0, 2)
jnp.resize({x}, «(3, 5)|7|(2, 0)|(1, 1, 9)»)
jnp.diag({x:1-2}«|, 1|, -2»)
jnp.diagonal({x:2}, «0|1|-1», {axis}, {axis})
jnp.trace({x:2}«|, 1|, -1»«|, dtype={dtype}»)
jnp.diagflat({x}, «0|1|-2») if {x}.size <= 40 else {x}
jnp.«tril|triu»({x:2}«|, 1|, -1|, -5»)
jnp.tri(«3|4», «None|5», «0|-2|2», {dtype})
jnp.kron({x:-2}, «jnp.array([[1, -2], [0, 3]])|{z:-1}») if {x}.size <= 200 else {x}
jnp.meshgrid({x:-1}, jnp.arange(3), indexing=«'ij'|'xy'»«|, sparse=True»)[«0|1»]
jnp.vander({x:-1}, «3|None»«|, increasing=True») if {x}.size <= 20 else {x}
jnp.block([[{x}, {y}], [{y}, {x}]])
jnp.ones_like({x}«|, dtype={dtype}»«|, shape=(3,)»)
jnp.full_like({x}, «{number}|{z:-0}»«|, dtype={dtype}»)
jnp.linspace({z:-0}, «{number}|5», «1|5|7»«|, endpoint=False|, dtype={dtype}»)
jnp.linspace({x:f}, {y:f}, 4, axis=«0|-1»«|, retstep=True»«[0]»)
jnp.«geomspace»(1, 1000, «4|1»«|, endpoint=False»)
jnp.logspace(«0|-1.5», 3, 5«|, base=2|, dtype={dtype}»)
jnp.arange(«5|-3, 4|0, 1, 0.3|10, 0, -3»«|, dtype={dtype}»)
jnp.eye(«3|2, 5», k=«0|1|-1», dtype={dtype})
jnp.fromfunction(lambda i, j: i * 3 - j, (4, 3), dtype={dtype})
jnp.indices((2, 3)«|, dtype={float}|, sparse=True»)[«0|1»]
jnp.«bartlett|blackman|hamming|hanning»(«1|5|8»)
jnp.kaiser(«7|1», «2.5|14»)
jnp.«tril_indices|triu_indices»(4, «0|1|-1»«|, 3»)[«0|1»]
jnp.ix_(jnp.arange(2), jnp.array([True, False, True]))[«0|1»]
jnp.unravel_index(«{x:iu}|jnp.array([3, 11, -1])», (3, 4))[«0|1»]
jnp.ravel_multi_index((jnp.array([0, 2, 5]), jnp.array([1, -1, 3])), (3, 4), mode=«'clip'|'wrap'»)
jnp.matrix_transpose({x:2})
jnp.copy({x})«|.flatten()»
""")

ORDERS = texts("""
jnp.sort({x}, «{axis}|None»«|, descending=True»«|, stable=False»)
jnp.argsort({x:1}, {axis}«|, descending=True»«|, kind=None, stable=True»)
lax.sort({x:1}, dimension={axis+}«|, is_stable=False»)
lax.sort(({x:1}, {y}, {y}), dimension={axis+}, num_keys=«1|2»)[«0|1»]
jnp.lexsort(({x:1}, {y}), axis={axis})
lax.top_k({x:1}, «1|2|3»)[«0|1»]
lax.top_k({x:1}, {n})[«0|1»]
jnp.partition({x:1}, «0|1|-1», {axis})«.max()|[0]|.sum()»
jnp.argpartition({x:1}, «0|-1», {axis}).shape[0] + {x}
jnp.sort_complex({x})
jnp.searchsorted(jnp.sort({x:biuf1-1}), {z:if}«|, side='right'»«|, method=«'scan'|'scan_unrolled'|'sort'|'compare_all'»»)
jnp.unique({x}, size=«3|9|1»«|, fill_value=-7»)
jnp.unique({x}, return_index=True, return_inverse=True, return_counts=True, size=«4|11»)[«0|1|2|3»]
jnp.unique({x:2}, axis=«0|-1», size=«2|5»«|, return_inverse=True»)«|[0]»
jnp.unique_«inverse»({x}, size=5)[1]
jnp.unique_values({x}, size=6)
jnp.setdiff1d({x}, {z}, size=4«|, fill_value=5»)
jnp.setxor1d({x}, jnp.array([0, 1, 5]), size=5)
jnp.union1d({x}, {z}, size=«4|20»«|, fill_value=0»)
jnp.intersect1d({x}, {z}, size=5, return_indices=True)[«0|1|2»]
jnp.nonzero({x}, size=«3|8»«|, fill_value=-2»)[0]
jnp.argwhere({x} > «0|1», size=«4|2»«|, fill_value=9»)
jnp.flatnonzero({x}, size=6, fill_value=«0|99»)
jnp.compress(jnp.array([True, False, True]), {x:1}, axis=«{axis}|None», size=3)
jnp.extract({x} > 0, {x}, size=5«|, fill_value=2»)
lax.associative_scan(«jnp.add|jnp.maximum|jnp.multiply|lambda a, b: b|lax.bitwise_xor», {x:1}, axis={axis}«|, reverse=True»)
lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (jnp.tanh({x:f1}), {x}), axis={axis})[«0|1»]
lax.approx_max_k({x:f1}, 1)[0]
jax.ops.segment_«sum|prod|max|min»({x:1}, jnp.arange({x}.shape[0]) % 3 - «0|1», num_segments=«3|2|5»«|, bucket_size=3»«|, mode='clip'»)
jax.ops.segment_«sum|max»({x:1}, jnp.sort({z:i1-1}), 4, indices_are_sorted=True)
""")

INDEXING = texts("""
{x:1}[«0|-1|{z:iu-0}|{z:iu}|{z:i1-1}|...|None|::2|::-1|1:|:-1|5:1:-2|100:»]
{x:1}[«..., 0|..., None|None, ::-1|..., {z:i}|..., ::-2»]
{x:2}[«0, -1|:, 0|::-1, ::2|{z:i1-1}, :|:, {z:i}|{z:iu-0}, {z:i1}|None, :, None|..., 1:, :|0, {z:i}|{z:i}, 0»]
{x:2}[{z:i1-1}, {z:i-1}]
{x:2}[{z:i1-1}[:, None], {z:i-1}[None]]
{x:3}[«{z:i1}, :, {z:i-0}|:, {z:i1}, 0|0, :, {z:i1}|..., {z:i1}, :|{z:i1}, {z:i-0}|:, None, {z:i1}, 1:|1, ..., -1»]
{x:1}[np.array([True, False] * 9)[: {x}.shape[0]]]
{x:2}[:, np.arange({x}.shape[1]) % 2 == 0]
{x:1}[{y:b}]
{x:1}.at[«0|-1|{z:iu-0}|{z:i}|::2|::-1|1:|...|{z:i1-1}|-100|100»].«set|add|subtract|multiply|min|max|power»(«{number}|2|3»«|, mode='clip'|, mode='fill'|, mode='drop'|, indices_are_sorted=False|, unique_indices=False|, wrap_negative_indices=False»)
{x:1}.at[«0|-1|{z:i}|1:|{z:iu-0}»].«add|min|max|multiply|set»(«{x}[0]|{x}[-1]»)
{x:1}.at[{z:i}].«add|max|min|multiply»({x}[{z:i}])
{x:2}.at[«:, {z:i1}|0, {z:i}|{z:i1}, -1|{z:i-0}, ::2|..., 0|None, 0|{z:i1-1}[:, None], jnp.array([0, 0, 1])|-1, 1:|::2, ::-1»].«set|add|min|max|mul»(«{number}|1»«|, mode='drop'|, mode='clip'»)
{x:3}.at[«:, {z:i1}, 0|{z:i1}, :, jnp.array(0)|0, ..., {z:i1}|..., {z:i}, :|1, 1:, ::-1»].«set|add|max»(«{number}|1»)
{x:1}.at[{y} > 0].«set|add|mul|min»({number})
{x:1}.at[{z:i}].get(«|mode='fill'|mode='clip'|mode='fill', fill_value=-3|wrap_negative_indices=False|mode='promise_in_bounds'»)
{x:1}.at[«{z:i}|1:|0»].apply(«jnp.sin|lambda t: t * 2 + 1|jnp.abs»)
{x:f1}.at[{z:i1-1}].«divide|power»(2)
jnp.take({x}, «{z:i}|{z:iu-0}|jnp.array([[0, -1], [5, 1]])», axis=«{axis}|None»«|, mode='clip'|, mode='wrap'|, mode='fill'|, fill_value=3|, unique_indices=True»)
jnp.take_along_axis({x:1}, jnp.argsort({y}, {axis}), {axis})
jnp.take_along_axis({x:1}, {y:i}, {axis}«|, mode='clip'|, mode='fill'|, fill_value=1»)
jnp.put_along_axis({x:1}, jnp.argmax({x}, {axis}, keepdims=True), {number}, {axis}, inplace=False)
jnp.put({x}, «{z:i}|jnp.array([0, 3, -1])», «{number}|jnp.array([1, 2])», mode=«'clip'|'wrap'|None», inplace=False)
jnp.place({x}, {y:b}, jnp.array([1, 2, 3]), inplace=False)
jnp.choose({x:iu}, [jnp.arange(3.0)[0], 7, -2], mode=«'clip'|'wrap'»)
jnp.fill_diagonal({x:2}, «{number}|{z:-1}», inplace=False«|, wrap=True»)
lax.dynamic_slice({x:2-2}, («{z:iu-0}|-1|1», «0|5|jnp.uint8(2)»), («1|2», «2|1»))
lax.dynamic_update_slice({x:2-2}, {x}[:1, :2], («{z:i-0}|3», «-2|1|0»))
lax.dynamic_slice_in_dim({x:1}, «{z:iu-0}|-3|2», «1|2», {axis})
lax.dynamic_update_slice_in_dim({x:1}, lax.slice_in_dim({x}, 0, 1, axis={axis}), «{z:iu-0}|9|-1», {axis})
lax.dynamic_index_in_dim({x:1}, «{z:iu-0}|-2|4», {axis}«|, keepdims=False»)
lax.slice_in_dim({x:1}, «0|1|-2», «None|-1», «1|2», {axis})
lax.slice({x:2-2}, (0, 1), ({x}.shape[0], {x}.shape[1]), «None|(2, 1)|(1, 3)»)
lax.gather({x:2-2}, {z:i2-2}[:, :2], lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(«0, 1|1, 0»)), slice_sizes=(1, «1|2»)«|, mode='clip'|, mode='fill', fill_value=4»)
lax.scatter«|_add|_min|_max|_mul»({x:1-1}, {z:i1-1}[:, None], {x}[{z:i1-1}], lax.ScatterDimensionNumbers((), (0,), (0,))«|, mode='clip'|, mode='drop'»)
lax.index_take({x:2-2}, ({z:i1-1},), (0,))
""")

PRODUCTS = texts("""
{x:1} @ {z:1}
{x:2} @ {x}.swapaxes(-1, -2)
{x:2}.swapaxes(-1, -2) @ {y}
jnp.«dot|matmul|inner|outer|vdot»({x:-2}, {z:-2}«|, precision='highest'|, preferred_element_type={float}»)
jnp.vecdot({x:1}, {yb}, axis=-1)
jnp.«matvec»({x:2}, {x}[..., 0, :])
jnp.vecmat({x:2}[..., :, 0], {x})
jnp.cross({x:1}[..., :3], {y}[..., :3])
jnp.tensordot({x}, {y}, axes=«0|1|2|((0,), (0,))|((-1,), (-1,))|((0, 1), (0, 1))») if {x}.size <= 300 else {x}
jnp.einsum('«...i,...i->...|i...,i...->...|...i,...j->...ij|...i,...i->i»', {x:1}, {y}) if {x}.size <= 2000 else {x}
jnp.einsum('«ij,ij->|ij,kj->ik|ij,ik->jk|ij,ij->j|ij,ij->ji|ij,kl->jl|ij,ij,ij->i»', {x:2-2}, {y}«|, {y}») if {x}.size <= 900 else {x}
jnp.einsum('«ij->ji|ij->|ij->i|ij->j|ii->i|ii|ij->ij»', {x:2-2})
jnp.einsum('«ijk,ijk->ij|ijk,ilk->ijl|ijk,ijl->ikl|ijk,ijk->kij|bij,bjk->bik»', {x:3-3}, {y}) if {x}.size <= 3000 else {x}
jnp.einsum({x:2-2}, [0, 1], {y}, [«2|0», 1], [«0, 2|0|1, 0|2»]) if {x}.size <= 900 else {x}
jnp.linalg.«multi_dot»([{x:2-2}, {x}.T, {y}])
lax.dot_general({x:2}, {y}, (((«0|1»,), («0|1»,)), ((), ()))«|, preferred_element_type={float}») if {x}.size <= 900 else {x}
lax.dot_general({x:3-3}, {y}, (((«2|1»,), («2|1»,)), ((0,), (0,)))«|, preferred_element_type={float}»)
lax.dot({x:1-2}, {z:1-2}«|, preferred_element_type={float}»)
lax.batch_matmul({x:3-3}, {x}.swapaxes(1, 2))
lax.ragged_dot({x:f2-2}, jnp.ones((2, {x}.shape[1], 3), {x}.dtype) * 0.5, jnp.array([1, {x}.shape[0] - 1], jnp.int32))
jnp.convolve({x:1-1}[:300], {z:1-1}[:9], «'full'|'same'|'valid'»)
jnp.correlate({x:1-1}[:300], {z:1-1}[:9], «'full'|'same'|'valid'»)
jax.scipy.signal.convolve({x:f2-2}, {z:f2-2}[:3, :3], «'full'|'same'|'valid'»«|, method='fft'»)
jax.scipy.signal.«correlate2d|convolve2d»({x:f2-2}, {z:f2-2}[:3, :3], «'full'|'same'|'valid'»)
jax.scipy.signal.fftconvolve({x:f1-2}, {y}, «'full'|'same'|'valid'»«|, axes=(0,)»)
lax.conv_general_dilated(jnp.resize({x:if}, («2, 4, 7, 5|1, 2, 9, 3», )), jnp.resize({x}, (4, «2|4|1», 3, 2)), («1, 1|2, 1|3, 2»), «'SAME'|'VALID'|((1, 2), (0, 1))|((-1, 1), (2, 0))|'SAME_LOWER'»«|, rhs_dilation=(2, 1)|, lhs_dilation=(1, 2)»«|, feature_group_count=2|, batch_group_count=2»)
lax.conv_general_dilated(jnp.resize({x:if}, (2, 11, 3)), jnp.resize({x}, («3|1|5», 3, 4)), («1|2|3»,), «'SAME'|'VALID'|((2, 3),)», dimension_numbers=('NWC', 'WIO', «'NWC'|'NCW'»)«|, rhs_dilation=(2,)»«|, preferred_element_type=jnp.float32»)
lax.conv_transpose(jnp.resize({x:f}, (1, 5, 4, 2)), jnp.resize({x}, («3, 2|2, 3|1, 4», 2, 3)), («2, 1|3, 2|1, 1»), «'SAME'|'VALID'|((1, 0), (2, 1))»«|, rhs_dilation=(1, 2)|, transpose_kernel=False»)
lax.conv_with_general_padding(jnp.resize({x:f}, (1, 2, 6, 5)), jnp.resize({x}, (3, 2, 2, 2)), (1, 2), ((1, 1), (0, 2)), (2, 1), (1, 2))
lax.conv_general_dilated_patches(jnp.resize({x:if}, (2, 3, 6, 5)), (2, 3), («1, 1|2, 1»), «'SAME'|'VALID'»)
lax.conv_general_dilated_local(jnp.resize({x:f}, (1, 2, 4, 4)), jnp.resize({x}, (3, 8, 3, 3)), (1, 1), 'VALID', (2, 2))
lax.reduce_window({x:2-2}, «0|-5|jnp.inf|1», lax.«add|max|min|mul», («2, 1|3, 2|1, 4», ), («1, 1|2, 1|1, 3»), «'SAME'|'VALID'|((1, 0), (0, 2))»«|, window_dilation=(1, 2)|, base_dilation=(2, 1)»)
lax.reduce_window({x:1-1}, 0.0, lax.«add|max», («2|5|9»,), («1|3»,), «'SAME'|'VALID'|((4, 3),)»)
jax.nn.dot_product_attention(jnp.resize({x:f}, (2, 5, 4, 3)), jnp.resize({x}, (2, 7, «4|2», 3)), jnp.resize(-{x}, (2, 7, «4|2», 3))«|, is_causal=True|, scale=0.3»)
jnp.polyadd({x:1-1}[:9], {z:1-1}[:7])
jnp.poly«mul|sub»({x:1-1}[:9], {z:1-1}[:7])
jnp.poly«der|int»({x:f1-1}[:9]«|, 2»)
jnp.polydiv({x:f1-1}[:9], jnp.array([2.0, 1.0]))[«0|1»]
jnp.poly({x:f1-1}[:5])
jnp.polyfit(jnp.arange(7.0), jnp.resize({x:f}, (7,)), «1|2»)
jax.image.resize({x:f2-2}, («3, 7|9, 2|5, 5»), «'linear'|'nearest'|'cubic'|'lanczos3'|'bilinear'»«|, antialias=False»)
jax.image.scale_and_translate({x:f2-2}, (6, 5), (0, 1), jnp.array([1.3, 0.7]), jnp.array([0.5, -1.0]), «'linear'|'cubic'»)
jax.scipy.ndimage.map_coordinates({x:f2-2}, [jnp.array([0.5, 1.2, -0.7, 3.0]), jnp.array([0.1, 2.0, 1.0, 0.0])], «0|1», mode=«'constant'|'nearest'|'mirror'|'reflect'|'wrap'»)
""")

TRANSFORMS = texts("""
jnp.fft.«fft|ifft»({x:1}«|, n=«1|4|9»»«|, axis={axis}»«|, norm='ortho'|, norm='forward'»)
jnp.fft.«rfft|ihfft»({x:if1}«|, n=«1|4|7»»«|, axis={axis}»«|, norm='ortho'|, norm='forward'»)
jnp.fft.«irfft|hfft»({x:1}«|, n=«2|5|8»»«|, axis={axis}»«|, norm='ortho'»)
jnp.fft.«fftn|ifftn»({x:1}«|, axes=({axis},)»«|, norm='ortho'»)
jnp.fft.«fft2|ifft2»({x:2}«|, s=(3, 4)»«|, axes=(0, 1)»)
jnp.fft.«rfftn|rfft2»({x:if2}«|, s=(4, 5)|, norm='forward'»)
jnp.fft.«irfftn|irfft2»({x:2}«|, s=(4, 5)»)
jnp.fft.«fftshift|ifftshift»({x}«|, axes={axis}»)
jnp.fft.«fftfreq|rfftfreq»(«7|8»«|, d=0.25»)
jax.scipy.fft.«dct|idct»({x:f1}«|, n=6»«|, axis={axis}»«|, norm='ortho'»)
jax.scipy.fft.«dctn|idctn»({x:f2}«|, norm='ortho'»)
jax.scipy.signal.«stft»(jnp.resize({x:f}, (64,)), nperseg=16«|, noverlap=5|, boundary=None»)[2]
jax.scipy.signal.«welch»(jnp.resize({x:f}, (64,)), nperseg=«16|20»«|, detrend='linear'|, scaling='spectrum'»)[1]
jax.scipy.signal.detrend({x:f1}, axis={axis}«|, type='constant'»)
""")

MATRICES = texts("""
jnp.linalg.solve(M({x:f2}), «M({x})[..., :1]|M(2 * {x})»)
jnp.linalg.«inv|pinv|slogdet|det|cond|matrix_rank»(M({x:f2}))«|[0]|[1]»
jnp.linalg.cholesky(S({x:f2})«|, upper=True»)
jnp.linalg.«eigvalsh|svdvals»(S({x:f2}))
jnp.linalg.eigvalsh(M({x:f2}), UPLO=«'L'|'U'»)
jnp.abs(jnp.linalg.qr(M({x:f2}), mode=«'r'»))
jnp.abs(jnp.linalg.qr({x:f2})[«0|1»])
jnp.linalg.svd({x:f2}, compute_uv=False)
(lambda u, s, v: (u * s[..., None, :]) @ v)(*jnp.linalg.svd({x:f2}, full_matrices=False))
jnp.linalg.lstsq(M({x:f2-2}), {x}[:, 0])[«0|3»]
jnp.linalg.matrix_power(M({x:f2}), «-2|0|1|3|5») / 100
jnp.linalg.tensorsolve(M({x:f2-2}), {x}[:, 0])
jax.scipy.linalg.solve_triangular(M({x:f2}), «M({x})[..., 0]|M(2 * {x})», lower=«True|False», trans=«0|1|'T'», unit_diagonal=«True|False»)
lax.linalg.triangular_solve(M({x:f2}), M(2 * {x}), left_side=«True|False», lower=«True|False», transpose_a=«True|False»)
jax.scipy.linalg.solve(S({x:f2-2}), {x}[:, 0], assume_a='pos'«|, lower=True»)
jax.scipy.linalg.lu(M({x:f2}))[«0|1|2»]
jax.scipy.linalg.lu_factor(M({x:f2}))[«0|1»]
jax.scipy.linalg.«expm|sqrtm»(S({x:f2-2}) / 50).real
jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(S({x:f2})), True), «M({x})[..., 0]|M({x})»)
jax.scipy.linalg.«toeplitz|circulant|hankel»({x:1-1}[:7])
jax.scipy.linalg.eigh_tridiagonal(jnp.arange(1.0, 6.0), jnp.resize({x:f}, (4,)), eigvals_only=True)
jax.scipy.linalg.block_diag({x:-2}, jnp.ones((1, 2)))
lax.linalg.tridiagonal_solve(jnp.resize({x:f}, (5,)).at[0].set(0), jnp.full(5, 9.0, {x}.dtype), jnp.resize({x}, (5,)).at[-1].set(0), jnp.ones((5, 2), {x}.dtype))
lax.linalg.«qdwh»(M({x:f2-2}))[1]
""")

SPECIAL = texts("""
jax.scipy.special.«erf|erfc|gammaln|digamma|expit|logit|ndtr|log_ndtr|ndtri|entr|i0e|i1e|i0|i1|spence|exp1|expi|gamma»({x:f})
jax.scipy.special.«erfinv|sinc|bessel_jn|zeta|factorial|gammasgn|loggamma»({x:f})
jax.scipy.special.«xlogy|xlog1py|betaln|rel_entr|kl_div|beta|poch»({x:f}, {yb:f})
jax.scipy.special.«gammainc|gammaincc»(jnp.abs({x:f}) + 0.3, jnp.abs({y:f}))
jax.scipy.special.betainc(jnp.abs({x:f}) + 0.5, jnp.abs({y:f}) + 0.5, jax.nn.sigmoid({x}))
jax.scipy.special.polygamma(«1|2|3», jnp.abs({x:f}) + 0.5)
jax.scipy.special.multigammaln(jnp.abs({x:f}) + 3.0, 2)
jax.scipy.special.«boxcox|boxcox1p»(jnp.abs({x:f}) + 0.1, «0.5|0.0|-1.0»)
jax.scipy.stats.«norm|cauchy|laplace|logistic|uniform».«pdf|logpdf|cdf»({x:f}«|, 0.5, 2|, scale=3.0»)
jax.scipy.stats.«norm|cauchy|logistic».«ppf|isf»(jax.nn.sigmoid({x:f})«|, 1.0, 0.5»)
jax.scipy.stats.«norm|logistic|cauchy».«sf|logsf|logcdf»({x:f})
jax.scipy.stats.«t|chi2».«logpdf|pdf»({x:f}, 3.5«|, loc=-1»)
jax.scipy.stats.«gamma|beta|pareto|expon».«logpdf|pdf»(jax.nn.sigmoid({x:f}), 2.5, 1.5)
jax.scipy.stats.«poisson|geom|bernoulli».«logpmf|pmf»({x:iu}, 0.4)
jax.scipy.stats.«binom».logpmf({x:iu}, 9, 0.4)
jax.scipy.stats.poisson.cdf({x:i}, 2.5)
""")

DRAWS = texts("""
jax.random.uniform({key}, «()|(7,)|(2, 5)|(0,)|(129,)|(1025,)»«|, minval=-2, maxval=«3|{x:f-0}»|, dtype={float}»)
jax.random.uniform({key}, {x:f}.shape, minval={x}, maxval={x} + 1)
jax.random.normal({key}, «()|(7,)|(3, 5)|(257,)»«|, dtype={float}|, dtype=jnp.complex64»)
jax.random.randint({key}, «(7,)|(2, 3)|()», «0, 9|-3, 100|-5, {z:i-0}|jnp.array([0, -4, 2])[:, None], 5|3, 3|0, 2**31 - 1|5, 1»«|, dtype={int}»)
jax.random.bits({key}, «(5,)|(2, 3)|()»«|, dtype=jnp.uint8|, dtype=jnp.uint16»)
jax.random.bernoulli({key}, «0.3|{x:f}|jax.nn.sigmoid({x:f})»«|, mode='high'»)
jax.random.«gumbel|exponential|laplace|logistic|cauchy|rademacher|maxwell|double_sided_maxwell»({key}, «(5,)|(2, 3)|()»)
jax.random.«t|chisquare|gamma|poisson|pareto|loggamma»({key}, «2.5|{x:f}.clip(0.5, 4)»«|, (3,)»)
jax.random.«beta|wald|weibull_min|binomial|lognormal»({key}, 3.0, 0.5, (4,))
jax.random.dirichlet({key}, jnp.array([1.0, 0.5, 3.0])«|, (2,)»)
jax.random.categorical({key}, {x:f1}, axis={axis}«|, shape=(2, *{x}.shape[1:])|, replace=False, shape=(2,)|, mode='high'»)
jax.random.choice({key}, «9|{x:1}», «(3,)|()|(2, 2)»«|, replace=False»«|, axis={axis}»)
jax.random.choice({key}, 5, (3,), «True|False», p=jnp.array([0.1, 0.0, 0.4, 0.3, 0.2])«|, mode='high'»)
jax.random.permutation({key}, «{x:1}|12|{x:2}, axis=1|{x:2}, axis=0, independent=True|{x:1}, independent=True»)
jax.random.truncated_normal({key}, -1, «2|0.5», (5,)«|, {float}»)
jax.random.multivariate_normal({key}, jnp.zeros(3), jnp.eye(3) + 0.5«|, (2,)»«|, method='svd'|, method='eigh'»)
jax.random.«orthogonal|ball»({key}, 3)
jax.random.«triangular»({key}, -1.0, 0.5, 2.0, (5,))
jax.random.«multinomial»({key}, 20, jnp.array([0.2, 0.3, 0.5]))
jax.random.generalized_normal({key}, 1.5, (4,))
jax.random.«geometric|rayleigh»({key}, 0.3, (6,))
jax.random.key_data(jax.random.split({key}, «3|(2, 2)»))
jax.vmap(lambda k: jax.random.«normal|uniform|permutation»(k, «5|(5,)»))(jax.random.split({key}, 3))
jax.random.key_data(jax.vmap(jax.random.fold_in, (None, 0))({key}, jnp.arange(4)))
jax.random.clone(jax.random.PRNGKey({k}))
jax.random.key_data(jax.random.key({k}, impl='threefry2x32'))
jax.nn.initializers.«glorot_normal|he_uniform|lecun_normal|orthogonal|variance_scaling(2.0, 'fan_in', 'truncated_normal')»«|()»({key}, (4, 3)«|, {float}»)
""")

KINDS: dict[str, tuple[float, list[str]]] = {
    "elementwise": (3.0, list(ELEMENTWISE)),
    "reductions": (3.0, list(REDUCTIONS)),
    "shapes": (2.0, list(SHAPES)),
    "orders": (2.0, list(ORDERS)),
    "indexing": (4.0, list(INDEXING)),
    "products": (2.0, list(PRODUCTS)),
    "transforms": (0.7, list(TRANSFORMS)),
    "matrices": (1.0, list(MATRICES)),
    "special": (1.0, list(SPECIAL)),
    "draws": (1.0, list(DRAWS)),
}

COLLECTIVES = texts("""
lax.«psum|pmean|pmax|pmin»({x:if}, 'AXIS')
lax.all_gather({x}, 'AXIS'«|, axis=-1|, tiled=True») if {x}.ndim else lax.all_gather({x}, 'AXIS')
{x} + lax.axis_index('AXIS').astype({x}.dtype)
lax.ppermute({x}, 'AXIS', [(k, (k + 1) % lax.axis_size('AXIS')) for k in range(lax.axis_size('AXIS'))])
{x:f} - lax.pmean({x}, 'AXIS')
{x:f} * lax.psum(1, 'AXIS')
lax.psum_scatter(lax.all_gather({x:f}, 'AXIS'), 'AXIS')
lax.pshuffle({x}, 'AXIS', list(range(lax.axis_size('AXIS')))[::-1])
lax.all_to_all(lax.all_gather({x:f}, 'AXIS') * (1 + lax.axis_index('AXIS')), 'AXIS', 0, 0)
lax.psum({x:f} * {yb:f}, 'AXIS') * {x}
""")

SMOOTH_LINES = texts("""
{x:f} «+|-|*» «{yb:f}|0.5|{z:f-0}»
{x:f} / (1.5 + {yb:f} ** 2)
jnp.«sin|tanh|arctan|cos|arcsinh|expm1|square|sinc|cbrt»({x:f})
jnp.«sqrt|log1p|log|reciprocal»(1.2 + {x:f} ** 2)
jnp.«maximum|minimum|arctan2|hypot|logaddexp»({x:f}, {yb:f})
jnp.where({x:f} > «0|0.3», {yb:f}, {x} * 2)
jax.nn.«gelu|silu|softplus|elu|relu|mish|log_sigmoid»({x:f})
jax.scipy.special.«erf|gammaln|ndtr|log_ndtr|expit|i0e»(1 + jnp.tanh({x:f}))
jnp.«sum|mean|max|prod|std|var|min»(jnp.tanh({x:f}) + 0.1, axis={axes}«|, keepdims=True»)
jnp.«cumsum|cumprod»(jnp.tanh({x:f1}), {axis})
lax.«cumsum|cumprod|cummax|cummin|cumlogsumexp»({x:f1}, {axis+}«|, reverse=True»)
jax.nn.«softmax|log_softmax|standardize»({x:f1}, {axis})
jax.nn.logsumexp({x:f}, {axes}, b=1 + {yb:f} ** 2)
jnp.linalg.norm({x:f} + 3, axis={axis}«|, keepdims=True»)
lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (jnp.tanh({x:f1}), {x}), axis={axis}«|, reverse=True»)[1]
jnp.sort({x:f1}, {axis})
jnp.take_along_axis({x:f1}, jnp.argsort({y:f}, {axis}), {axis})
{x:f1}[«0|-1|::-1|::2|jnp.array([0, -1, 0])|1:|..., 0|None, ..., -1|jnp.array([5, 0, 100])»]
{x:f1}.at[«0|-1|::2|jnp.array([0, -1, 0])|jnp.array([1, 200])|..., 0»].«add|multiply|set»(«2.0|{x}[0].sum()|{z:f-0}»)
{x:f1}.at[jnp.array([0, -1])].«min|max»({z:f-0})
jnp.take({x:f1}, jnp.array([0, -1, 7, 1]), axis={axis}, mode=«'clip'|'wrap'»)
lax.dynamic_slice_in_dim({x:f1}, jnp.argmax({x}.ravel()) % 3, 1, {axis})
lax.dynamic_update_slice_in_dim({x:f1}, 2 * lax.slice_in_dim({x}, 0, 1, axis={axis}), 1, {axis})
jnp.pad({x:f1}, «1|(2, 0)», mode=«'constant'|'edge'|'reflect'|'wrap'|'mean'|'linear_ramp'»)
jnp.roll({x:f1}, «1|-2», {axis})
jnp.flip({x:f1}, {axis})
jnp.transpose({x:f}, {perm})
jnp.concatenate([{x:f1}, {y:f}], {axis})
jnp.stack([{x:f}, {y:f}], «0|-1»)
jnp.repeat({x:f1}, 2, axis={axis})
jnp.tile({x:f}, 2)
{x:f1} @ {z:f1}
{x:f2}.swapaxes(-1, -2) @ {y:f}
jnp.einsum('...i,...i->...', {x:f1}, {y:f})
jnp.einsum('«ij,kj->ik|ij,ik->jk|ij,ij->i|ij,ij,ij->j»', {x:f2-2}, {y:f}«|, {y}») if {x}.size <= 900 else {x}
jnp.dot({x:f-2}, {z:f-2}) if {x}.ndim else {x}
jnp.outer({x:f-1}, {z:f-1}) if {x}.size < 30 else {x}
jnp.convolve({x:f1-1}[:60], {z:f1-1}[:5], «'same'|'valid'|'full'»)
lax.conv_general_dilated(jnp.resize({x:f}, (1, 2, 5, 4)), jnp.resize(jnp.tanh({x}), (4, «2|1», 3, 2)), («1, 1|2, 1»), «'SAME'|'VALID'»«|, rhs_dilation=(1, 2)»«|, feature_group_count=2»)
lax.reduce_window({x:f2-2}, «0.0, lax.add|-jnp.inf, lax.max», (2, 1), («1, 1|2, 1»), 'SAME')
jnp.linalg.solve(M({x:f2}), «{x}|M(2 * {x})|{x}[..., 0]»)
jnp.linalg.«inv|cholesky|det|eigvalsh»(S({x:f2}) / 30)
jnp.linalg.slogdet(M({x:f2}))[1]
jnp.abs(jnp.linalg.qr(M({x:f2}))[1])
jnp.linalg.svd(S({x:f2}), compute_uv=False) / 50
jnp.abs(jnp.fft.«fft|rfft|ifft»({x:f1}, axis={axis})) ** 2
jnp.fft.irfft(jnp.fft.rfft({x:f1}, axis=-1) * 0.5, n=5, axis=-1)
lax.custom_root(lambda s: s + 0.3 * jnp.tanh(s) - {x:f}, jnp.zeros_like({x}), lambda g, s: lax.fori_loop(0, 60, lambda i, t: t - 0.6 * g(t), s), lambda g, y: y / g(jnp.ones_like(y)))
lax.stop_gradient({x:f}) * {yb:f}
lax.scan(lambda c, r: (jnp.tanh(c + r), c * r), {x:f1}[0], {x}«|, reverse=True|, unroll=2»)[«0|1»]
lax.fori_loop(0, 3, lambda i, s: jnp.sin(s) + i * {yb:f}, {x:f})
lax.cond(jnp.sum({x:f}) > 0, lambda t: t * 2, lambda t: jnp.sin(t), {x})
lax.while_loop(lambda s: jnp.sum(s[1]) < 3, lambda s: (jnp.sin(s[0]), s[1] + 1), ({x:f}, 0))[0]
jnp.interp({x:f}, jnp.array([-2.0, -0.5, 0.25, 3.0]), jnp.array([1.0, -1.0, 0.5, 2.0]))
jnp.trapezoid({x:f1}, dx=0.3, axis={axis})
jnp.diff({x:f1}, «1|2», {axis})
jnp.gradient({x:f1-1})
jax.ops.segment_«sum|max|prod»({x:f1}, jnp.arange({x}.shape[0]) % 3, 4«|, mode='drop'»)
jnp.clip({x:f}, -0.5, {yb:f})
jnp.ptp({x:f1}, {axis})
jnp.quantile({x:f1}, 0.3, axis={axis})
jnp.median({x:f1}, {axis})
jnp.cross({x:f1}[..., :3], {y:f}[..., :3])
jax.random.normal(jax.random.key({k}), {x:f}.shape) * {x}
lax.map(lambda r: jnp.sum(r) * r, {x:f1})
lax.reduce({x:f1}, 0.0, lax.add, (0,))
jax.image.resize({x:f2-2}, (3, 7), «'linear'|'cubic'»)
jax.nn.dot_product_attention(*[jnp.resize(t, (2, 5, 2, 3)) for t in ({x:f}, jnp.sin({x}), {x} * 2)])
""")
SMOOTH: dict[str, tuple[float, list[str]]] = {"smooth": (1.0, list(SMOOTH_LINES))}
