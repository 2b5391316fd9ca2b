"""Equinox: models as trees, filtered transformations, layers, state, and its own loops."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.random as jr

_KEY = jr.key(7)
_X = jnp.sin(jnp.arange(12.0)).reshape(3, 4)


class _Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    name: str = eqx.field(static=True, default="linear")

    def apply(self, x):
        return self(x)

    def __call__(self, x):
        return self.weight @ x + self.bias


class _Network(eqx.Module):
    layers: list
    extra_bias: jax.Array
    activation: Callable

    def __init__(self, key):
        first, second = jr.split(key)
        self.layers = [eqx.nn.Linear(4, 8, key=first), eqx.nn.Linear(8, 2, key=second)]
        self.extra_bias = jnp.ones(2)
        self.activation = jax.nn.relu

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x) + self.extra_bias


def _error(function, *arguments):
    try:
        jax.block_until_ready(function(*arguments))
    except Exception as error:
        return "negative" in str(error)
    return False


def quick_start_linear_regression():
    class Linear(eqx.Module):
        weight: jax.Array
        bias: jax.Array

        def __init__(self, in_size, out_size, key):
            wkey, bkey = jr.split(key)
            self.weight = jr.normal(wkey, (out_size, in_size))
            self.bias = jr.normal(bkey, (out_size,))

        def __call__(self, x):
            return self.weight @ x + self.bias

    @jax.jit
    @jax.grad
    def loss_fn(model, x, y):
        pred_y = jax.vmap(model)(x)
        return jax.numpy.mean((y - pred_y) ** 2)

    model = Linear(2, 3, key=jr.PRNGKey(0))
    x, y = jnp.linspace(-1, 1, 64).reshape(32, 2), jnp.ones((32, 3))
    grads = loss_fn(model, x, y)
    return jax.tree_util.tree_map(lambda m, g: m - 0.1 * g, model, grads)


def all_of_equinox_in_one_model():
    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model, x, y):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    model = _Network(_KEY)
    losses = []
    for _ in range(4):
        value, gradients = loss(model, _X, _X[:, :2])
        model = eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients))
        losses.append(value)
    return {"losses": losses, "bias": model.extra_bias, "weight": model.layers[0].weight}


def module_is_a_tree_with_static_fields():
    module = _Linear(jnp.ones((2, 3)), jnp.zeros(2))
    leaves, structure = jax.tree_util.tree_flatten(module)
    doubled = jax.tree_util.tree_unflatten(structure, [2 * x for x in leaves])
    return {
        "weight": doubled.weight,
        "name": doubled.name,
        "leaves": len(leaves),
        "equal": bool(eqx.tree_equal(module, module)),
    }


def module_methods_are_trees():
    module = _Linear(jnp.ones((2, 3)), jnp.zeros(2))
    bound = module.apply
    return jax.jit(lambda f, x: f(x))(bound, jnp.arange(3.0))


def module_is_frozen_and_checks_itself():
    class Positive(eqx.Module):
        x: int

        def __check_init__(self):
            if self.x < 0:
                raise ValueError("negative")

    try:
        Positive(1).x = 2
        frozen = False
    except AttributeError:
        frozen = True
    return {"frozen": frozen, "checked": _error(Positive, -1)}


def field_with_converter():
    class Converted(eqx.Module):
        x: jax.Array = eqx.field(converter=jnp.asarray)

    return Converted([1.0, 2.0]).x


def abstract_module_with_a_strict_subclass():
    class Shape(eqx.Module):
        side: eqx.AbstractVar[float]

        def area(self):
            return self.side**2

    class Square(Shape):
        side: float

    return jax.grad(lambda s: Square(s).area())(3.0)


def partition_and_combination():
    model = _Network(_KEY)
    arrays, others = eqx.partition(model, eqx.is_array)
    again = eqx.combine(arrays, others)
    return {"same": bool(eqx.tree_equal(model, again)), "arrays": len(jax.tree.leaves(arrays)), "out": again(_X[0])}


def filters_of_leaves():
    leaves = [1, 2.0, True, jnp.ones(2), jnp.ones(2, int), jnp.array(1j), "text", None]
    tests = (eqx.is_array, eqx.is_array_like, eqx.is_inexact_array, eqx.is_inexact_array_like)
    return [[test(leaf) for leaf in leaves] for test in tests]


def filtered_compilation_of_any_arguments():
    @eqx.filter_jit
    def function(x, text, call, *, scale):
        return call(x) * scale if text == "on" else x

    return [function(_X, "on", jnp.tanh, scale=2), function(_X, "off", None, scale=jnp.array(3.0))]


def filtered_derivatives():
    model = _Network(_KEY)
    loss = lambda m, x: jnp.sum(m(x) ** 2)  # noqa: E731
    value, gradients = eqx.filter_value_and_grad(loss)(model, _X[0])
    _, out = eqx.filter_jvp(lambda m: m(_X[0]), (model,), (eqx.filter(model, eqx.is_inexact_array),))
    _, pull = eqx.filter_vjp(lambda m: m(_X[0]), model)
    return {"value": value, "gradients": gradients.layers[1].weight, "jvp": out, "vjp": pull(jnp.ones(2))[0].extra_bias}


def filtered_jacobians_and_hessian():
    function = lambda x: jnp.sin(x) * x.sum()  # noqa: E731
    x = jnp.array([0.3, 1.2])
    return {
        "forward": eqx.filter_jacfwd(function)(x),
        "reverse": eqx.filter_jacrev(function)(x),
        "hessian": eqx.filter_hessian(lambda x: jnp.prod(jnp.sin(x)))(x),
    }


def filtered_vmap_makes_an_ensemble():
    @eqx.filter_vmap
    def make(key):
        return eqx.nn.MLP(4, 2, 8, 1, key=key)

    ensemble = make(jr.split(_KEY, 3))
    apply = eqx.filter_vmap(lambda model, x: model(x), in_axes=(eqx.if_array(0), None))
    return apply(ensemble, _X[0])


def filtered_closure_and_shapes():
    model = _Network(_KEY)
    shape = eqx.filter_eval_shape(lambda m, x: m(x), model, _X[0])
    closed = eqx.filter_closure_convert(model, _X[0])
    return {"shape": shape.shape, "out": closed(_X[0])}


def filtered_checkpoint():
    return eqx.filter_grad(lambda x: eqx.filter_checkpoint(lambda y, f: f(jnp.sin(y)))(x, jnp.cos).sum())(_X)


def custom_derivatives_with_filters():
    @eqx.filter_custom_vjp
    def scaled(x, *, factor):
        return x * factor

    @scaled.def_fwd
    def forward(perturbed, x, *, factor):
        return x * factor, None

    @scaled.def_bwd
    def backward(residuals, gradient, perturbed, x, *, factor):
        return gradient * 10

    @eqx.filter_custom_jvp
    def twice(x):
        return 2 * x

    @twice.def_jvp
    def twice_jvp(primals, tangents):
        return 2 * primals[0], 5 * tangents[0]

    return {
        "vjp": jax.grad(lambda x: scaled(x, factor=3))(jnp.array(1.0)),
        "jvp": jax.jvp(twice, (jnp.array(1.0),), (jnp.array(1.0),)),
    }


def callback_with_a_shape_of_types():
    function = lambda x: eqx.filter_pure_callback(lambda y: y * 2, x, result_shape_dtypes=x)  # noqa: E731
    return jax.jit(function)(_X)


def dense_layers():
    return {
        "linear": eqx.nn.Linear(4, 3, key=_KEY)(_X[0]),
        "scalar": eqx.nn.Linear("scalar", 3, key=_KEY)(_X[0, 0]),
        "without bias": eqx.nn.Linear(4, 3, use_bias=False, key=_KEY)(_X[0]),
        "identity": eqx.nn.Identity()(_X[0]),
    }


def perceptron():
    model = eqx.nn.MLP(4, 2, 16, 3, activation=jax.nn.softplus, final_activation=jnp.tanh, key=_KEY)
    gradient = eqx.filter_grad(lambda m: m(_X[1]).sum())(model)
    return {"out": jax.vmap(model)(_X), "gradient": gradient.layers[0].bias}


def sequence_of_layers():
    model = eqx.nn.Sequential(
        [eqx.nn.Linear(4, 8, key=_KEY), eqx.nn.Lambda(jax.nn.relu), eqx.nn.Linear(8, 1, key=_KEY)]
    )
    return {"out": model(_X[0]), "first": model[:2](_X[0]).shape}


def convolutions():
    image = jnp.sin(jnp.arange(2 * 8 * 8.0)).reshape(2, 8, 8)
    return {
        "1d": eqx.nn.Conv1d(2, 3, 3, padding=1, key=_KEY)(image[:, 0]),
        "2d": eqx.nn.Conv2d(2, 3, 3, stride=2, dilation=2, key=_KEY)(image),
        "groups": eqx.nn.Conv2d(2, 4, 3, groups=2, padding="SAME", key=_KEY)(image),
        "circular": eqx.nn.Conv2d(2, 3, 3, padding="SAME", padding_mode="CIRCULAR", key=_KEY)(image),
        "transposed": eqx.nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1, key=_KEY)(image),
    }


def pooling():
    image = jnp.sin(jnp.arange(2 * 8 * 8.0)).reshape(2, 8, 8)
    return {
        "max": eqx.nn.MaxPool2d(3, 2)(image),
        "mean": eqx.nn.AvgPool2d(2, 2)(image),
        "ceiling": eqx.nn.MaxPool2d(3, 2, use_ceil=True)(image),
        "adaptive": eqx.nn.AdaptiveAvgPool2d((3, 5))(image),
    }


def recurrent_cells():
    cell, lstm = eqx.nn.GRUCell(4, 5, key=_KEY), eqx.nn.LSTMCell(4, 5, key=_KEY)
    final, states = jax.lax.scan(lambda h, x: (cell(x, h), h), jnp.zeros(5), _X)
    return {"gru": final, "states": states, "lstm": lstm(_X[0], (jnp.zeros(5), jnp.ones(5)))}


def attention():
    layer = eqx.nn.MultiheadAttention(num_heads=2, query_size=4, key=_KEY)
    mask = jnp.tril(jnp.ones((3, 3), bool))
    return {"plain": layer(_X, _X, _X), "causal": layer(_X, _X, _X, mask=mask)}


def embeddings():
    return {"table": eqx.nn.Embedding(5, 3, key=_KEY)(jnp.array(2)), "rotary": eqx.nn.RotaryPositionalEmbedding(4)(_X)}


def normalizations():
    image = jnp.sin(jnp.arange(4 * 6.0)).reshape(4, 6)
    return {
        "layer": eqx.nn.LayerNorm(4)(_X[0]),
        "rms": eqx.nn.RMSNorm(4)(_X[0]),
        "group": eqx.nn.GroupNorm(2, 4)(image),
        "weight": eqx.nn.WeightNorm(eqx.nn.Linear(4, 3, key=_KEY))(_X[0]),
    }


def batch_norm_carries_a_state():
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, axis_name="batch", mode="batch")
    out, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(_X, state)
    quiet = eqx.nn.inference_mode(norm)
    again, _ = jax.vmap(quiet, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(_X, state)
    return {"out": out, "again": again}


def spectral_norm_carries_a_state():
    layer = eqx.nn.Linear(4, 3, key=_KEY)
    norm, state = eqx.nn.make_with_state(eqx.nn.SpectralNorm)(layer, "weight", key=_KEY)
    out, state = norm(_X[0], state)
    return out


def state_of_ones_own():
    class Counter(eqx.Module):
        index: eqx.nn.StateIndex

        def __init__(self):
            self.index = eqx.nn.StateIndex(jnp.array(0))

        def __call__(self, x, state):
            value = state.get(self.index)
            return x + value, state.set(self.index, value + 1)

    counter, state = eqx.nn.make_with_state(Counter)()
    step = eqx.filter_jit(counter)
    values = []
    for _ in range(3):
        value, state = step(jnp.array(10), state)
        values.append(value)
    return values


def dropout_by_key_and_inference():
    layer = eqx.nn.Dropout(0.5)
    return {"random": layer(_X, key=_KEY), "quiet": eqx.nn.inference_mode(layer)(_X)}


def shared_layers():
    class Model(eqx.Module):
        shared: eqx.nn.Shared

        def __init__(self, key):
            embedding, linear = eqx.nn.Embedding(4, 3, key=key), eqx.nn.Linear(3, 4, use_bias=False, key=key)
            where, get = lambda m: m[1].weight, lambda m: m[0].weight
            self.shared = eqx.nn.Shared((embedding, linear), where, get)

        def __call__(self, i):
            embedding, linear = self.shared()
            return linear(embedding(i))

    model = Model(_KEY)
    return {"out": model(jnp.array(1)), "arrays": len(jax.tree.leaves(eqx.filter(model, eqx.is_array)))}


def surgery_on_a_model():
    model = eqx.nn.MLP(4, 2, 8, 1, key=_KEY)
    changed = eqx.tree_at(lambda m: (m.layers[0].bias, m.layers[1].weight), model, replace_fn=lambda x: 0 * x + 1)
    return {"out": changed(_X[0]), "inference": eqx.tree_at(lambda m: m.layers[0].bias, model, jnp.ones(8))(_X[0])}


def saving_and_loading_of_leaves():
    model = eqx.nn.MLP(4, 2, 8, 1, key=_KEY)
    with tempfile.TemporaryDirectory() as folder:
        eqx.tree_serialise_leaves(Path(folder) / "model.eqx", model)
        other = eqx.tree_deserialise_leaves(Path(folder) / "model.eqx", eqx.nn.MLP(4, 2, 8, 1, key=jr.key(0)))
    return other(_X[0])


def texts_of_models_and_types():
    return {
        "arrays": eqx.tree_pformat({"a": jnp.ones((2, 3)), "b": jnp.ones(2, jnp.int32), "c": 1.0}),
        "module": eqx.tree_pformat(_Linear(jnp.ones((2, 3)), jnp.zeros(2))),
    }


def errors_at_run_time():
    @eqx.filter_jit
    def root(x):
        return jnp.sqrt(eqx.error_if(x, x < 0, "negative number"))

    return {"good": root(jnp.array(4.0)), "bad": _error(root, jnp.array(-1.0))}


def errors_by_branch():
    @eqx.filter_jit
    def root(x):
        return eqx.branched_error_if(x, x < 0, jnp.where(x < -5, 1, 0), ["negative number", "very negative number"])

    return {
        "good": root(jnp.array(4.0)),
        "first": _error(root, jnp.array(-1.0)),
        "second": _error(root, jnp.array(-9.0)),
    }


def enumerations_of_results():
    class Color(eqx.Enumeration):
        red = "is red"
        blue = "is blue"

    chosen = Color.where(jnp.array(True), Color.red, Color.blue)
    return {"same": chosen == Color.red, "other": chosen == Color.blue, "text": Color[Color.blue]}


def assertion_of_few_traces():
    calls = jax.jit(eqx.debug.assert_max_traces(lambda x: x + 1, max_traces=1))
    return {"value": calls(jnp.ones(2)), "traces": eqx.debug.get_num_traces(calls.__wrapped__)}


def loops_with_derivatives_of_each_kind():
    def final(kind, x):
        def body(carry):
            i, x = carry
            return i + 1, jnp.sin(x) + 0.1 * x

        options = {
            "lax": {},
            "checkpointed": {"checkpoints": 4, "max_steps": 16},
            "bounded": {"max_steps": 16, "base": 4},
        }
        loop = eqxi.while_loop(lambda c: c[0] < 7, body, (jnp.array(0), x), kind=kind, **options[kind])
        return loop[1].sum()

    x = jnp.array([0.5, 1.0, -0.7])
    return {
        "lax": final("lax", x),
        "checkpointed": jax.jit(jax.value_and_grad(lambda x: final("checkpointed", x)))(x),
        "bounded": jax.jit(jax.value_and_grad(lambda x: final("bounded", x)))(x),
    }


def loop_with_buffers_under_vmap():
    def fill(n):
        def body(carry):
            i, out = carry
            return i + 1, out.at[i].set(i * 1.0)

        _, out = eqxi.while_loop(
            lambda c: c[0] < n,
            body,
            (jnp.array(0), jnp.zeros(6)),
            kind="checkpointed",
            max_steps=6,
            buffers=lambda c: c[1],
        )
        return out

    return jax.jit(jax.vmap(fill))(jnp.array([2, 5, 0]))


def scan_that_is_checkpointed():
    def total(x):
        carry, outputs = eqxi.scan(
            lambda c, y: (jnp.sin(c + y), c), jnp.array(0.0), x, kind="checkpointed", checkpoints=3
        )
        return carry + outputs.sum()

    return jax.value_and_grad(total)(jnp.arange(5.0) / 3)


def zeros_that_stay_symbolic():
    return {
        "unvmap any": jax.vmap(lambda x: eqxi.unvmap_any(x))(jnp.array([True, False])),
        "unvmap max": jax.vmap(lambda x: eqxi.unvmap_max(x))(jnp.array([3, 1])),
        "nondifferentiable": eqxi.nondifferentiable(jnp.ones(2)),
    }


def one_program_for_the_same_subprogram():
    function = eqxi.noinline(lambda x: jnp.sin(x) * 2)
    return jax.jit(jax.value_and_grad(lambda x: function(function(x)).sum()))(_X)


def omega_notation():
    tree = {"a": jnp.arange(3.0), "b": jnp.ones(2)}
    return ((eqxi.ω(tree) * 2 + eqxi.ω(tree)) ** 2).ω
