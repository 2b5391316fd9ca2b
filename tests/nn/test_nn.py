"""rune.nn against formulas in NumPy: activations, the softmax family, normalisation, losses.

Values in the tails where naive formulas overflow, derivatives at corners by JAX's conventions,
second derivatives, masks, half types, and that a jitted call is the eager one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, nn
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import WHY, differences, directions

X = np.array([-1e4, -90.0, -3.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 3.0, 5.5, 90.0, 1e4])
erf = np.vectorize(math.erf)


def sigmoid(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


FORMULAS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "softplus": softplus,
    "log_sigmoid": lambda x: -softplus(-x),
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "elu": elu,
    "celu": elu,
    "selu": lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "squareplus": lambda x: 0.5 * (x + np.sqrt(x * x + 4)),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "identity": lambda x: x,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_an_activation_is_its_formula_tails_included(name: str):
    near(FORMULAS[name](X), getattr(nn, name)(array(X)), relative=1e-12, why="f64 rounding")


@pytest.mark.parametrize("name", FORMULAS)
def test_a_jitted_activation_is_the_eager_one(name: str):
    x = rnp.asarray(X)

    near(getattr(nn, name)(x), rune.jit(getattr(nn, name))(x), relative=2e-6, why="another libm")


@pytest.mark.parametrize("name", FORMULAS)
def test_an_activation_differentiates_as_its_differences(name: str):
    function = getattr(nn, name)
    x = array(np.array([-90.0, -3.5, -1.5, -0.3, 0.5, 3.5, 5.5, 90.0]))
    (t,) = directions(np.random.default_rng(0), [x])

    _, derivative = rune.jvp(function, (x,), (t,))

    near(differences(function, [x], [t]), derivative, relative=1e-6, why=WHY)


def test_exact_gelu_uses_the_error_function():
    near(
        0.5 * X * (1 + erf(X / math.sqrt(2))), nn.gelu(array(X), approximate=False), relative=1e-12, why="f64 rounding"
    )


@pytest.mark.parametrize(
    ("name", "at", "slope"),
    [
        ("relu", 0.0, 0.0),
        ("relu6", 0.0, 0.0),
        ("relu6", 6.0, 0.0),
        ("leaky_relu", 0.0, 1.0),
        ("hard_tanh", 1.0, 1.0),
        ("hard_tanh", -1.0, 1.0),
        ("elu", 0.0, 1.0),
        ("selu", 0.0, 1.7580993408473766),
        ("softplus", 0.0, 0.5),
        ("soft_sign", 0.0, 1.0),
    ],
)
def test_the_slope_at_a_corner_is_jaxs(name: str, at: float, slope: float):
    gradient = rune.grad(getattr(nn, name))(array(np.float64(at)))

    assert float(gradient) == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("name", ["softplus", "sigmoid", "silu", "gelu", "log_sigmoid", "mish"])
def test_smooth_activations_have_smooth_second_derivatives_at_zero(name: str):
    slope = rune.grad(getattr(nn, name))
    zero = array(np.float64(0))

    gradient = rune.grad(slope)(zero)

    near(differences(slope, [zero], [array(np.float64(1))]), gradient, relative=1e-6, why=WHY)


def test_relu_keeps_nan():
    assert np.isnan(nn.relu(rnp.array([np.nan]))).all()


def test_integers_activate_as_floats():
    assert nn.gelu(rnp.array([1])).dtype == nn.softmax(rnp.array([1])).dtype == rnp.float32
    assert nn.relu(rnp.array([-1, 1])).tolist() == [0, 1]


def test_glu_gates_the_first_half_by_the_second():
    x = np.arange(6.0)

    near(x[:3] * sigmoid(x[3:]), nn.glu(array(x)), relative=1e-12, why="f64 rounding")


# --- softmax ----------------------------------------------------------------------------------


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    terms = np.exp(x - x.max(axis, keepdims=True))
    return terms / terms.sum(axis, keepdims=True)


LOGITS = np.random.default_rng(0).normal(size=(3, 5))
WIDE = LOGITS * 1e4


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("x", [LOGITS, WIDE], ids=["near", "wide"])
def test_softmax_is_stable_along_any_axis(x: np.ndarray, axis: int):
    near(softmax(x, axis), nn.softmax(array(x), axis), relative=1e-12, why="f64 rounding")


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.bf16, dtypes.f16], ids=dtypes.short)
def test_softmax_of_1e4_is_finite_and_sums_to_one(dtype: np.dtype):
    x = array(np.array([-1e4, 1e4, 1e4]).astype(dtype))

    assert nn.softmax(x).tolist() == [0.0, 0.5, 0.5]
    assert nn.softmax(x).dtype == dtype
    assert float(nn.logsumexp(x)) == pytest.approx(1e4, rel=1e-2)


def test_log_softmax_is_the_logarithm_and_does_not_underflow():
    expected = WIDE - WIDE.max(-1, keepdims=True)
    expected = expected - np.log(np.exp(expected).sum(-1, keepdims=True))

    near(expected, nn.log_softmax(array(WIDE)), relative=1e-12, why="f64 rounding")


def test_a_mask_leaves_elements_out():
    x, mask = array(LOGITS), array(np.array([True, False, True, True, False]))
    columns = np.flatnonzero(np.asarray(mask))

    probabilities = nn.softmax(x, where=mask)

    near(softmax(LOGITS[:, columns]), probabilities[:, columns], relative=1e-12, why="f64 rounding")
    assert probabilities[:, 1].tolist() == [0.0] * 3
    assert nn.log_softmax(x, where=mask)[:, 1].tolist() == [-math.inf] * 3


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("order", [1, 2])
def test_softmax_and_its_kin_differentiate_twice(name: str, order: int):
    function = getattr(nn, name)
    if order == 2:
        inner, weights = function, array(np.arange(5.0))
        function = rune.grad(lambda x: (inner(x, -1) * weights).sum() if name != "logsumexp" else inner(x))
    x = array(LOGITS[0])
    (t,) = directions(np.random.default_rng(1), [x])

    _, derivative = rune.jvp(function, (x,), (t,))

    near(differences(function, [x], [t]), derivative, relative=1e-6, why=WHY)


def test_the_maximum_of_softmax_carries_no_derivative():
    program = rune.make_program(lambda x, t: rune.jvp(nn.softmax, (x,), (t,)))(X, X)

    assert sum(e.primitive.name == "reduce_max" for e in program.equations) == 1
    assert not any(e.primitive.name == "eq" for e in program.equations)


# --- logsumexp --------------------------------------------------------------------------------


def test_logsumexp_of_infinities_agrees_with_the_sum():
    inf = math.inf

    assert nn.logsumexp(rnp.array([[-inf, -inf], [inf, 0.0], [-inf, 3.0]]), 1).tolist() == [-inf, inf, 3.0]
    assert float(nn.logsumexp(rnp.zeros(0))) == -inf


def test_the_gradient_of_logsumexp_ignores_single_infinities_and_is_nan_for_all():
    of_one_infinite = rune.grad(nn.logsumexp)(rnp.array([-math.inf, 0.0]))
    of_all_infinite = rune.grad(nn.logsumexp)(rnp.array([-math.inf, -math.inf]))

    assert of_one_infinite.tolist() == [0.0, 1.0]
    assert np.isnan(of_all_infinite).all()


def test_logsumexp_takes_weights_axes_and_a_sign():
    weights = np.array([1.0, -2.0, 3.0, 0.0, 1.0])
    total = (weights * np.exp(LOGITS)).sum(1, keepdims=True)

    value, sign = nn.logsumexp(array(LOGITS), 1, array(weights), keepdims=True, return_sign=True)

    near(np.log(np.abs(total)), value, relative=1e-12, why="f64 rounding")
    assert sign.tolist() == np.sign(total).tolist()
    near(np.log(np.exp(LOGITS).sum()), nn.logsumexp(array(LOGITS)), relative=1e-12, why="rounding")


# --- normalisation ----------------------------------------------------------------------------


def standardize(x: np.ndarray, axis: Any = -1) -> np.ndarray:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


@pytest.mark.parametrize("axis", [0, -1, (0, 1)])
def test_standardize_and_layer_norm_give_mean_zero_and_variance_one(axis: Any):
    scale, bias = np.arange(5.0), np.ones(5)
    expected = standardize(LOGITS, axis)

    near(expected, nn.standardize(array(LOGITS), axis), relative=1e-12, why="f64 rounding")
    near(
        expected * scale + bias,
        nn.layer_norm(array(LOGITS), array(scale), array(bias), axis),
        relative=1e-12,
        why="f64 rounding",
    )


def test_rms_norm_divides_by_the_root_mean_square():
    expected = LOGITS / np.sqrt((LOGITS**2).mean(-1, keepdims=True) + 1e-5)

    near(2 * expected, nn.rms_norm(array(LOGITS), 2.0), relative=1e-12, why="f64 rounding")


@pytest.mark.parametrize("name", ["standardize", "layer_norm", "rms_norm"])
def test_a_normalisation_differentiates_twice(name: str):
    weights = array(np.arange(5.0))
    slope = rune.grad(lambda x: (getattr(nn, name)(x) * weights).sum())
    x = array(LOGITS[0])
    (t,) = directions(np.random.default_rng(2), [x])

    _, derivative = rune.jvp(slope, (x,), (t,))

    near(differences(slope, [x], [t]), derivative, relative=1e-5, absolute=1e-6, why=WHY)


def test_layer_norm_of_large_f16_does_not_overflow():
    x = array(np.array([30000, -30000, 20000, -20000], np.float16))

    result = nn.layer_norm(x)

    assert result.dtype == np.float16
    near(standardize(np.asarray(x, np.float64)), result, relative=1e-3, why="f16 result")


# --- classes and losses -----------------------------------------------------------------------


def test_one_hot_places_the_class_axis_anywhere_and_ignores_labels_out_of_range():
    labels = rnp.array([0, 2, -1, 3])

    assert nn.one_hot(labels, 3, dtype=int).tolist() == [[1, 0, 0], [0, 0, 1], [0] * 3, [0] * 3]
    assert nn.one_hot(labels, 3, axis=0).shape == (3, 4)
    assert nn.one_hot(labels, 3).dtype == rnp.float32


def test_both_cross_entropies_agree_and_are_minus_the_log_of_the_chosen_class():
    labels = np.array([1, 4, 0])
    expected = -np.log(softmax(LOGITS)[np.arange(3), labels])

    by_label = nn.softmax_cross_entropy_with_integer_labels(array(LOGITS), rnp.asarray(labels))
    by_distribution = nn.softmax_cross_entropy(array(LOGITS), array(np.eye(5)[labels]))

    near(expected, by_label, relative=1e-12, why="f64 rounding")
    near(expected, by_distribution, relative=1e-12, why="f64 rounding")


def test_the_gradient_of_cross_entropy_is_softmax_minus_the_label():
    labels = rnp.array([1, 4, 0])

    gradient = rune.grad(lambda x: nn.softmax_cross_entropy_with_integer_labels(x, labels).sum())(array(LOGITS))

    near(softmax(LOGITS) - np.eye(5)[[1, 4, 0]], gradient, relative=1e-12, why="f64 rounding")


@pytest.mark.parametrize(
    "loss_of_each",
    [
        nn.softmax_cross_entropy_with_integer_labels,
        lambda logits, labels: nn.cross_entropy(logits, labels, reduction="none"),
    ],
    ids=["softmax_cross_entropy_with_integer_labels", "cross_entropy"],
)
def test_a_label_that_is_not_a_class_gives_nan_in_every_cross_entropy(loss_of_each: Any):
    losses = loss_of_each(rnp.asarray(LOGITS), rnp.array([5, -1, 1]))

    assert np.isnan(losses).tolist() == [True, True, False]


def test_labels_may_be_of_a_small_dtype():
    logits = rnp.asarray(LOGITS)

    small = nn.softmax_cross_entropy_with_integer_labels(logits, rnp.array([4, 0, 1], dtype="u1"))
    usual = nn.softmax_cross_entropy_with_integer_labels(logits, rnp.array([4, 0, 1]))

    assert small.tolist() == usual.tolist()
    assert nn.one_hot(rnp.array([100], dtype="i1"), 200).shape == (1, 200)


def test_the_loss_keeps_its_digits_where_logits_are_large():
    logits = rnp.array([10000.0, 10000.0 - 10.0])

    loss = nn.softmax_cross_entropy_with_integer_labels(logits, rnp.array(0))

    assert float(loss) == pytest.approx(math.log1p(math.exp(-10.0)), rel=1e-3)


def test_a_class_of_probability_zero_adds_nothing_even_at_minus_infinity():
    logits = rnp.array([0.0, -math.inf])

    assert float(nn.softmax_cross_entropy(logits, rnp.array([1.0, 0.0]))) == 0.0


def test_binary_cross_entropy_and_squares_are_their_formulas():
    x, labels = LOGITS[0], np.array([0.0, 1.0, 1.0, 0.0, 0.5])
    p = sigmoid(x)

    loss = nn.sigmoid_binary_cross_entropy(array(x), array(labels))

    near(-(labels * np.log(p) + (1 - labels) * np.log(1 - p)), loss, relative=1e-12, why="rounding")
    near(np.mean((x - labels) ** 2), nn.mse_loss(array(x), array(labels)), relative=1e-12, why="rounding")


def test_labels_that_are_not_integers_are_refused():
    with pytest.raises(TypeError, match=r"cannot use f32\[1\] as classes \(integers required\)"):
        nn.softmax_cross_entropy_with_integer_labels(rnp.zeros((1, 2)), rnp.zeros(1))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm"])
def test_normalisations_batch_and_compile(name: str):
    x = rnp.asarray(LOGITS)
    function = lambda v: getattr(nn, name)(v)  # noqa: E731

    rows = rnp.stack([function(row) for row in x])

    near(rows, rune.vmap(function)(x), relative=2e-6, why="order of sums")
    near(rows, rune.jit(rune.vmap(function))(x), relative=2e-6, why="another libm")


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0), (2, 0, 3), (0, 2, 3)])
@pytest.mark.parametrize("name", ["glorot_uniform", "glorot_normal", "lecun_uniform", "lecun_normal", "he_uniform"])
def test_scaled_initializers_make_arrays_without_elements(name: str, shape: tuple[int, ...]):
    assert getattr(nn.initializers, name)()(rune.random.key(0), shape).shape == shape


@pytest.mark.parametrize("compiled", [False, True])
def test_heads_without_elements_attend_to_all_keys_alike(compiled: bool):
    q, k = rnp.ones((2, 3, 4, 0)), rnp.ones((2, 5, 2, 0))
    attend = lambda q, k: nn.dot_product_attention(q, k, k, return_residual=True)  # noqa: E731

    out, residual = (rune.jit(attend) if compiled else attend)(q, k)

    assert out.shape == (2, 3, 4, 0)
    near(np.full((2, 3, 4), np.log(5.0), np.float32), residual, relative=1e-6, why="the logarithm of five keys")


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0), (2, 0, 3)])
def test_orthogonal_initializers_make_arrays_without_elements(shape: tuple[int, ...]):
    for axis in range(-len(shape), len(shape)):
        matrix = nn.initializers.orthogonal(column_axis=axis)(rune.random.key(0), shape)
        assert matrix.shape == shape
