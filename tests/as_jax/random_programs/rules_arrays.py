"""Steps over whole arrays: mixed dtypes, reductions, orders, products, factors, transforms."""

from __future__ import annotations

from tests.fuzzing.maker import Maker
from tests.fuzzing.rules_views import Made, Rule

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32", "complex64")


def mixed(m: Maker) -> Made:
    """Operands of two dtypes, Python numbers and NumPy scalars among them."""
    x, y = m.pick(0, most=3), m.pick(0, most=3)
    if x is None or y is None:
        return None
    op = m.choose(["+", "-", "*", "*", "/", "//", "%", "**"])
    numbers = [
        "2",
        "1.5",
        "True",
        "-1",
        "0.5",
        "3",
        "1j",
        "np.float32(2)",
        "np.int8(3)",
        "np.uint8(2)",
        "jnp.bfloat16(2)",
    ]
    other = m.choose([y, m.like(x, "biufc"), *m.rng.choice(numbers, 4)])
    if op == "**":
        other = m.choose(["2", "3", "2.0", "0", "-1", "0.5", "1"])
    if op in ("/", "//", "%"):
        other = m.choose(["2", "4", "0.5", "3", "-2", "True"])
    return m.choose([f"{x} {op} {other}", f"{other} {op} {x}"]) if op in "+-*" else f"{x} {op} {other}"


def named(m: Maker) -> Made:
    """Functions of two arguments."""
    x = m.pick(0, "biuf", 3)
    if x is None:
        return None
    y = m.like(x, "biuf")
    names = ["maximum", "minimum", "fmax", "fmin", "logical_and", "logical_xor", "equal", "less", "greater_equal"]
    names += [
        "floor_divide",
        "remainder",
        "fmod",
        "copysign",
        "heaviside",
        "logaddexp",
        "arctan2",
        "hypot",
        "float_power",
    ]
    names += ["bitwise_and", "left_shift", "right_shift", "gcd", "nextafter", "divide", "true_divide", "isclose"]
    return f"jnp.{m.choose(names)}({x}, {m.choose([y, m.number(x), '2'])})"


def unary(m: Maker) -> Made:
    x = m.pick(0, most=3)
    if x is None:
        return None
    names = ["abs", "sign", "square", "ceil", "trunc", "rint", "isnan", "signbit", "reciprocal", "positive", "invert"]
    names += ["real", "imag", "conj", "angle", "logical_not", "bitwise_count", "nan_to_num", "isfinite", "spacing"]
    names += ["sqrt", "exp2", "log2", "deg2rad", "sinc", "floor", "round", "negative", "i0", "cbrt", "expm1"]
    more = [f"{x}.astype(jnp.{m.choose(DTYPES)})", f"lax.convert_element_type({x}, jnp.{m.choose(DTYPES)})"]
    more += [f"jnp.clip({x}, {m.number(x)}, 2)", f"jnp.clip({x}, max=1.5)", f"jnp.round({x}, {m.choose([0, 1, -1])})"]
    more += [f"jnp.modf({x})[0]", f"jnp.divmod({x}, 2)[1]", f"jnp.frexp({x})[1]", f"lax.integer_pow({x}, 3)"]
    more += [
        f"lax.population_count({x})",
        f"lax.clz({x})",
        f"~{x}",
        f"-{x}",
        f"lax.bitcast_convert_type({x}, jnp.int32)",
    ]
    more += [f"{x}.view(jnp.{m.choose(['int8', 'uint32', 'float32', 'int32'])})", f"lax.reduce_precision({x}, 5, 4)"]
    more += [
        f"jnp.ones_like({x}, shape=(2,))",
        f"jnp.full_like({x}, 2.5)",
        f"lax.div({x}, {m.like(x)})",
        f"lax.rem({x}, {m.like(x)})",
    ]
    return f"jnp.{m.choose(names)}({x})" if m.chance(0.6) else m.choose(more)


def special(m: Maker) -> Made:
    x = m.pick(0, "f", 3)
    if x is None:
        return None
    names = ["erf", "gammaln", "expit", "log_ndtr", "ndtr", "i0e", "i1e", "digamma", "erfc", "entr", "sinc", "logit"]
    nn = ["relu", "relu6", "gelu", "silu", "elu", "selu", "softplus", "hard_tanh", "log_sigmoid", "celu", "leaky_relu"]
    nn += ["swish", "mish", "squareplus", "soft_sign", "hard_swish", "standardize", "log_softmax"]
    plain = ["sin", "cos", "tan", "tanh", "arctan", "sinh", "arcsinh", "exp", "log1p", "exp2", "sqrt", "log"]
    return m.choose(
        [
            f"jax.scipy.special.{m.choose(names)}({x})",
            f"jax.nn.{m.choose(nn)}({x})",
            f"jnp.{m.choose(plain)}({x})",
            f"jax.scipy.special.xlogy({x}, {m.like(x)})",
            f"lax.rsqrt(1 + {x} * {x})",
            f"lax.logistic({x})",
            f"jax.scipy.stats.norm.logpdf({x}, {m.choose(['0', '1.5'])}, 2)",
        ]
    )


def _axis(m: Maker, x: str) -> str:
    ndim = len(m.shape(x))
    several = tuple(int(k) for k in m.rng.permutation(ndim)[: 1 + m.below(ndim)]) if ndim else ()
    return m.choose(["None", str(m.axis(x)), str(m.axis(x)), str(several)]) if ndim else "None"


def reduced(m: Maker) -> Made:
    x = m.pick(0, most=4)
    if x is None:
        return None
    name = m.choose(
        "sum sum prod max min mean var std any all ptp nansum nanmax nanmean count_nonzero median nanmin".split()
    )
    options = m.choose(["", ", keepdims=True"])
    where = f"{m.like(x, 'biuf')} > {m.number(x)}"
    if name in ("sum", "prod", "mean", "var", "any", "all") and m.chance(0.3):
        options += f", where={where}"
    if name in ("max", "min") and 0 not in m.shape(x) and m.chance(0.4):  # JAX's slope of nothing is NaN
        options += f", where={where}, initial={m.choose(['0', '-3', '2.5'])}"
    if name in ("sum", "prod") and m.chance(0.3):
        options += m.choose([", initial=2", ", dtype=jnp.float32", ", dtype=jnp.int8", ", promote_integers=False"])
    if name in ("var", "std") and m.chance(0.4):
        options += ", ddof=1"
    return f"jnp.{name}({x}, {_axis(m, x)}{options})"


def reduced_otherwise(m: Maker) -> Made:
    x = m.pick(1, "iuf", 3)
    if x is None:
        return None
    axis = m.axis(x)
    y = m.like(x)
    return m.choose(
        [
            f"jax.nn.logsumexp({x}, {_axis(m, x)}, b={m.choose([y, '2', 'None'])})",
            f"jax.nn.softmax({x}, {axis}, where={y} > 0)",
            f"jnp.average({x}, {axis}, weights=jnp.abs({y}) + 1)",
            f"jnp.linalg.norm({x}, {m.choose(['None', '1', '2', 'jnp.inf', '-jnp.inf', '0', '3'])}, {axis})",
            f"jnp.percentile({x}, {m.choose(['30', 'jnp.array([0, 50, 99.0])'])}, axis={axis})",
            f"jnp.quantile({x}, {m.choose(['0.25', '1.0'])}, {axis}, method='{m.choose(['linear', 'lower', 'higher', 'nearest', 'midpoint'])}')",
            f"jnp.argmax({x}, {axis}, keepdims={m.chance(0.5)})",
            f"jnp.argmin({x})",
            f"jnp.nanargmax({x}, {axis})",
            f"lax.reduce({x}, jnp.zeros((), {x}.dtype), lambda a, b: a + b, ({axis % len(m.shape(x))},))",
            f"lax.reduce({x}, jnp.ones((), {x}.dtype), lax.mul, ({axis % len(m.shape(x))},))",
            f"jnp.trapezoid({x}, dx=0.5, axis={axis})",
            f"jnp.cov({x}.reshape({x}.shape[0], -1))",
            f"lax.argmax({x}, {axis % len(m.shape(x))}, jnp.int32)",
            f"jnp.gradient({x}, axis={axis})",
            f"jnp.diff({x}, {m.choose([1, 2])}, {axis})",
            f"jnp.ediff1d({x}, to_begin=1)",
            f"jnp.array_equal({x}, {y})",
            f"jnp.allclose({x}, {y})",
        ]
    )


def cumulative(m: Maker) -> Made:
    x = m.pick(1, most=3)
    if x is None:
        return None
    axis = m.below(len(m.shape(x)))
    back = m.choose(["", ", reverse=True"])
    return m.choose(
        [
            f"jnp.cumsum({x}, {m.choose([axis, 'None', -1])})",
            f"jnp.cumprod({x}, {axis})",
            f"jnp.cumsum({x}, {axis}, dtype={m.choose(['jnp.int8', 'jnp.float32'])})",
            f"jnp.nancumsum({x}, {axis})",
            f"lax.{m.choose(['cumsum', 'cumprod', 'cummax', 'cummin', 'cumlogsumexp'])}({x}, {axis}{back})",
            f"jnp.cumulative_sum({x}, axis={axis}, include_initial=True)",
            f"lax.associative_scan(jnp.{m.choose(['add', 'maximum', 'multiply'])}, {x}, axis={axis}{back})",
            f"lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (jnp.sign({x}), {x}))[1]",
            f"jnp.maximum.accumulate({x}, {axis})",
            f"jnp.add.reduce({x}, {axis})",
        ]
    )


def ordered(m: Maker) -> Made:
    x = m.pick(1, "biuf", 3)
    if x is None:
        return None
    axis, y = m.axis(x), m.like(x, "iuf")
    positive = axis % len(m.shape(x))
    k = 1 + m.below(min(m.shape(x)[-1], 4)) if m.shape(x)[-1] else 0
    return m.choose(
        [
            f"jnp.sort({x}, {m.choose([axis, 'None'])}, descending={m.chance(0.5)})",
            f"jnp.argsort({x}, {axis}, descending={m.chance(0.5)})",
            f"lax.sort(({y}, {x}), dimension={positive}, num_keys={m.choose([1, 2])})[1]",
            f"lax.sort({x}, dimension={positive})",
            f"jnp.lexsort(({x}, {y}), axis={axis})",
            f"lax.top_k({x}, {k})[{m.below(2)}]",
            f"lax.top_k({x}, {min(k, m.shape(x)[positive])}, axis={positive})[1]",
            f"jnp.partition({x}, {max(k - 1, 0)}, {m.choose([-1, axis])})[..., {max(k - 1, 0)}]",
            f"jnp.unique({x}, size={m.choose([1, 3, 7])}{m.choose(['', ', fill_value=9'])})",
            f"jnp.unique({x}, return_inverse=True, return_counts=True, size=6)[{m.below(3)}]",
            f"jnp.unique({x}, axis=0, size=2)",
            f"jnp.searchsorted(jnp.sort({x}.ravel()), {y}, side='{m.choose(['left', 'right'])}'{m.choose(['', ', method=' + repr('sort')])})",
            f"jnp.digitize({x}, jnp.array([-1, 0, 2]), right={m.chance(0.5)})",
            f"jnp.bincount(jnp.abs({x}).ravel(), length=6)",
            f"jnp.bincount(jnp.abs({x}).ravel() % 5, weights={y}.ravel(), length=5)",
            f"jnp.histogram({x} * jnp.float32(1), 4, (-3, 3))[0]",
            f"jnp.isin({x}, jnp.array([1, 2, -1]))",
            f"jnp.intersect1d({x}, jnp.arange(4), size=3, fill_value=0)",
            f"jnp.union1d({x}, jnp.arange(3), size=5)",
            f"jax.scipy.stats.rankdata({x}, 'average', axis={axis})",
            f"jnp.sort_complex({x}.ravel())",
            f"jax.scipy.stats.mode({x}, {axis})[0]",
        ]
    )


def product(m: Maker) -> Made:
    x, y = m.pick(1, "biufc", 4), m.pick(1, "biufc", 3)
    if x is None or y is None:
        return None
    a, b = m.axis(x), m.axis(y)
    pair = [(i, j) for i, s in enumerate(m.shape(x)) for j, t in enumerate(m.shape(y)) if s == t]
    i, j = m.choose(pair) if pair else (0, 0)
    kind = m.choose(["", ", preferred_element_type=jnp.float32", ", precision='highest'"])
    return m.choose(
        [
            f"jnp.tensordot({x}, {y}, axes=(({i},), ({j},)){kind})",
            f"jnp.tensordot({x}, {y}, axes=(({a},), ({b},)))",
            f"jnp.tensordot({x}, {y}, axes=0)" if m.envs[0][x].size * m.envs[0][y].size < 2000 else f"{x} @ {y}",
            f"lax.dot_general({x}, {y}, ((({i},), ({j},)), ((), ())){kind})",
            f"jnp.matmul({x}, jnp.moveaxis({x}, -1, 0)){'' if len(m.shape(x)) < 3 else '[0]'}",
            f"jnp.dot({x}, {y}{kind})",
            f"jnp.vecdot({x}, {m.like(x, 'biufc')}, axis={a})",
            f"jnp.einsum('...i,...i->...', {x}, {m.like(x, 'biufc')})",
            f"jnp.einsum('i...,i...', {x}, {m.like(x, 'biufc')})",
            f"jnp.einsum('...ij,...kj->...ik', {x}, {m.like(x, 'biufc')})",
            f"jnp.inner({x}, {m.like(x)})",
            f"jnp.cross({x}[..., :3], {m.like(x)}[..., :3])",
            f"jnp.linalg.multi_dot([{x}, {x}.T, {x}])",
            f"jnp.vander({x}.ravel()[:5], 3)",
            f"jnp.polyval({x}.ravel()[:4], {y})",
            f"jnp.outer({x}, {y}.ravel()[:3])",
            f"jnp.matvec({x}, {x}[..., 0, :])",
            f"jnp.kron({x}, jnp.array([1, -1]))",
        ]
    )


def _matrix(m: Maker) -> str | None:
    """A square well-conditioned matrix made of a value."""
    x = m.pick(2, "f", 3)
    if x is None or 0 in m.shape(x) or min(m.shape(x)[-2:]) > 12:
        return None
    n = min(m.shape(x)[-2:])
    part = f"jnp.tanh({x}[..., :{n}, :{n}])"
    return f"({part} + {n + 1} * jnp.eye({n}, dtype={x}.dtype))"


def factored(m: Maker) -> Made:
    """Results of linear algebra that no choice of signs or order changes."""
    a = _matrix(m)
    if a is None:
        return None
    s = f"({a} @ {a}.swapaxes(-1, -2))"
    texts = [
        f"jnp.linalg.solve({a}, {a}.swapaxes(-1, -2))",
        f"jnp.linalg.solve({a}, {a}[..., 0])",
        f"jnp.linalg.inv({a})",
        f"jnp.linalg.det({a} / 8)",
        f"jnp.linalg.slogdet({a})[1]",
        f"jnp.linalg.cholesky({s})",
        f"jnp.linalg.cholesky({s}, upper=True)",
        f"jnp.abs(jnp.linalg.qr({a})[1])",
        f"jnp.linalg.eigvalsh({s})",
        f"(lambda w, v: jnp.abs(v) * w[..., None, :])(*jnp.linalg.eigh({s} + jnp.diag(jnp.arange({a}.shape[-1]) * 9.0)))",
        f"jnp.linalg.svd({a}, compute_uv=False)",
        f"jnp.linalg.norm({a}, 'nuc', (-2, -1))",
        f"jnp.linalg.pinv({a})",
        f"jnp.linalg.matrix_power({a} / 8, {m.choose([0, 2, 3, -1])})",
        f"jax.scipy.linalg.solve_triangular({a}, {a}[..., 0], lower={m.chance(0.5)}, trans={m.choose([0, 1])})",
        f"jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor({s}), {a}[..., 0])",
        f"jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor({a}), {a}[..., 0])",
        f"lax.linalg.triangular_solve({a}, {a}, left_side=True, lower=True, unit_diagonal=True)",
        f"jax.scipy.linalg.expm({a} / 16)",
        f"jnp.linalg.lstsq({a}, {a}[..., 0])[0]",
        f"jnp.linalg.cond({a})",
        f"jnp.linalg.matrix_rank({a})",
        f"jax.scipy.linalg.block_diag({a}, {a})",
        f"jax.scipy.sparse.linalg.cg({s}, {a}[..., 0])[0]",
        f"jnp.trace({a}, axis1=-2, axis2=-1)",
        f"jnp.tril({a}, -1) + jnp.triu({a}, 1)",
    ]
    return m.choose(texts)


def transformed(m: Maker) -> Made:
    x = m.pick(1, "fc", 3)
    if x is None or 0 in m.shape(x):
        return None
    axis = m.axis(x)
    n = m.choose(["None", "None", "5", "8"])
    norm = m.choose(["", ", norm='ortho'", ", norm='forward'"])
    return m.choose(
        [
            f"jnp.fft.fft({x}, {n}, {axis}{norm})",
            f"jnp.fft.ifft({x}, {n}, {axis}{norm}).real",
            f"jnp.abs(jnp.fft.rfft({x}, {n}, {axis}{norm}))",
            f"jnp.fft.irfft({x}, {n}, {axis}{norm})",
            f"jnp.fft.fftn({x}).imag",
            f"jnp.fft.fftshift({x}, {axis})",
            f"jnp.fft.hfft({x}, {n}, {axis})",
            f"jax.scipy.fft.dct({x}, axis={axis}{m.choose(['', ', norm=' + repr('ortho')])})",
            f"jnp.convolve({x}.ravel()[:40], {x}.ravel()[:5], '{m.choose(['full', 'same', 'valid'])}')",
            f"jax.scipy.signal.fftconvolve({x} + 0 * jnp.float32(1), {x}, '{m.choose(['full', 'same'])}')",
            f"jnp.correlate({x}.ravel()[:20], {x}.ravel()[:3], '{m.choose(['full', 'same', 'valid'])}')",
            f"jax.image.resize({x}, tuple(d + 1 for d in {x}.shape), '{m.choose(['linear', 'nearest', 'cubic'])}')",
            f"jnp.interp({x}, jnp.array([-1.0, 0.0, 2.0]), jnp.array([1.0, 0.0, 3.0]))",
        ]
    )


def convolved(m: Maker) -> Made:
    x = m.pick(2, "if", 3)
    if x is None or 0 in m.shape(x):
        return None
    layout = m.choose(
        ["", ", dimension_numbers=('NHWC', 'HWIO', 'NHWC')", ", dimension_numbers=('NCHW', 'OIHW', 'NHWC')"]
    )
    image, kernel = ((2, 5, 6, 4), (3, 2, 4, 3)) if "HWIO" in layout else ((2, 4, 5, 6), (3, 4, 3, 2))
    pad = m.choose(["'SAME'", "'VALID'", "((1, 0), (2, 1))", "'SAME_LOWER'"])
    strides = m.choose([(1, 1), (2, 1), (2, 3)])
    dilation = m.choose(["", ", rhs_dilation=(2, 1)", ", lhs_dilation=(1, 2)" if pad[0] == "(" else ""])
    texts = [
        f"lax.conv_general_dilated(jnp.resize({x}, {image}), jnp.resize({x} + 1, {kernel}), {strides}, {pad}{dilation}{layout})",
        f"lax.conv(jnp.resize({x}, (1, 2, 7, 5)), jnp.resize({x}, (2, 2, 3, 3)), {strides}, 'SAME')",
        f"lax.reduce_window({x}, -9, lax.max, {tuple(min(2, d) for d in m.shape(x))}, {tuple(1 + m.below(2) for _ in m.shape(x))}, 'SAME')",
        f"lax.reduce_window({x}, 0, lax.add, {tuple(min(3, d) for d in m.shape(x))}, {tuple(1 for _ in m.shape(x))}, 'VALID')",
        f"lax.conv_transpose(jnp.resize({x}, (1, 4, 2)), jnp.resize({x}, (3, 2, 3)), (2,), {m.choose([repr('SAME'), repr('VALID')])})",
        f"lax.conv_general_dilated_patches(jnp.resize({x}, (1, 2, 5, 4)), (2, 2), {strides}, 'VALID')",
    ]
    return m.choose(texts)


def drawn(m: Maker) -> Made:
    """Random numbers: the bits of JAX, and floats within rounding."""
    x = m.pick(0, "iu", 0)
    seed = f"({x} % 7)" if x else str(m.below(9))
    key = m.choose(
        [
            f"jax.random.key({m.below(9)})",
            f"jax.random.PRNGKey({seed})",
            f"jax.random.fold_in(jax.random.key(2), {seed})",
        ]
    )
    shape = m.choose(["()", "(3,)", "(7,)", "(2, 5)", "(129,)", "(0,)"])
    like = m.pick(1, "iuf", 2)
    draws = [
        f"jax.random.uniform({key}, {shape}{m.choose(['', ', jnp.float16', ', jnp.bfloat16', ', minval=-2, maxval=3'])})",
        f"jax.random.normal({key}, {shape}{m.choose(['', ', jnp.bfloat16', ', jnp.complex64'])})",
        f"jax.random.randint({key}, {shape}, {m.choose(['0, 9', '-3, 100', '0, jnp.array(5)', '0, 256, jnp.uint8', '-4, 4, jnp.int8'])})",
        f"jax.random.bernoulli({key}, {m.choose(['0.3', '0.5'])}, {shape})",
        f"jax.random.bits({key}, {shape}{m.choose(['', ', jnp.uint8', ', jnp.uint16'])})",
        f"jax.random.permutation({key}, {m.choose(['7', '33', like or '5'])})",
        f"jax.random.choice({key}, 9, {shape}{m.choose(['', ', p=jnp.arange(9.0)'])})",
        f"jax.random.choice({key}, 9, (4,), replace=False)",
        f"jax.random.categorical({key}, jnp.log(jnp.arange(1.0, 6.0)), shape={shape})",
        f"jax.random.{m.choose(['gumbel', 'exponential', 'laplace', 'logistic', 'cauchy', 'rademacher'])}({key}, {shape})",
        f"jax.random.truncated_normal({key}, -1, 2, {shape})",
        f"jax.vmap(lambda k: jax.random.uniform(k, (3,)))(jax.random.split({key}, 4))",
        f"lax.scan(lambda k, _: (lambda a: (a[0], jax.random.randint(a[1], (2,), 0, 9)))(jax.random.split(k)), {key}, None, length=3)[1]",
        f"jax.random.key_data(jax.random.split({key}, (2, 2))[1])",
        f"jax.random.shuffle({key}, {like})" if like else f"jax.random.ball({key}, 3)",
        f"jax.random.gamma({key}, 2.5, {shape})",
        f"jax.random.beta({key}, 2.0, 3.0, {shape})",
        f"jax.random.dirichlet({key}, jnp.ones(3))",
        f"jax.random.multivariate_normal({key}, jnp.zeros(2), jnp.eye(2), {shape})",
        f"jax.random.orthogonal({key}, 3)",
        f"jax.random.rayleigh({key}, 2.0, {shape})",
        f"jax.random.geometric({key}, 0.3, {shape})",
        f"jax.random.binomial({key}, 10, 0.3, {shape})",
        f"jax.random.poisson({key}, 3.0, {shape})",
        f"jax.random.t({key}, 3.0, {shape})",
    ]
    return m.choose(draws)


def created(m: Maker) -> Made:
    x = m.pick(0, "biuf", 2)
    if x is None:
        return None
    return m.choose(
        [
            f"jnp.linspace(0, {m.choose(['1', '5'])}, {m.choose([1, 5, 7])}) * jnp.sum({x})",
            f"jnp.arange({m.choose(['5', '0, 7, 2', '3, 0, -1', '0.5, 3', '4, dtype=jnp.uint8'])})",
            f"jnp.eye({m.choose(['3', '3, 5', '4, k=1'])})",
            f"lax.iota(jnp.{m.choose(['int32', 'float32', 'uint8'])}, 6)",
            f"lax.broadcasted_iota(int, (3, 4), {m.below(2)})",
            f"jax.nn.one_hot({x}, {m.choose([3, 5])})",
            f"jnp.full((2, 3), {x}.sum())",
            f"jnp.array([{x}.sum(), 1, 2.5])",
            f"jnp.stack([{x}.max(initial=0), 2])",
            f"jnp.meshgrid({x}.ravel()[:4], jnp.arange(3), indexing='{m.choose(['ij', 'xy'])}')[0]",
            f"jnp.tri(3, 4, {m.choose([0, -1])})",
            f"jnp.zeros({x}.shape, {x}.dtype) + {m.choose(['1', '0.5', 'True'])}",
            "jnp.identity(3, jnp.int8)",
            f"jnp.broadcast_arrays({x}, jnp.arange({m.shape(x)[-1] if m.shape(x) else 3}))[0]",
            f"jnp.apply_along_axis(lambda r: r - r.sum(), 0, jnp.atleast_1d({x}))",
            f"jnp.vectorize(lambda r, k: r.sum() * k, signature='(n),()->()')(jnp.atleast_1d({x}), 2)",
            f"jnp.hstack([{x}, {x}])",
            f"jnp.vstack([{x}, {m.like(x, 'biuf')}])",
            f"jnp.dstack([{x}, {x}])",
            f"jnp.split(jnp.resize({x}, (6,)), [1, 4])[1]",
            f"jnp.unpackbits({x}.astype(jnp.uint8).ravel()[:9])",
            f"jnp.packbits({x}.ravel() > 0)",
            f"jnp.block([[jnp.atleast_2d({x})], [jnp.atleast_2d({x}) * 2]])",
            f"jnp.trim_zeros({x})",
            f"jnp.resize({x}, (2, 5))",
            f"jnp.unwrap({x})",
            f"jnp.squeeze({x}[None], 0)",
            f"jax.flatten_util.ravel_pytree({{'a': {x}, 'b': [1.0]}})[0]",
        ]
    )


ANY: tuple[Rule, ...] = (
    mixed,
    mixed,
    mixed,
    named,
    named,
    unary,
    unary,
    reduced,
    reduced,
    reduced,
    reduced_otherwise,
    cumulative,
    ordered,
    ordered,
    product,
    product,
    convolved,
    drawn,
    created,
)
SMOOTH: tuple[Rule, ...] = (*ANY, special, special, factored, factored, transformed, transformed, drawn)
