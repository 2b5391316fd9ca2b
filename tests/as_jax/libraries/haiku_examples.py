"""Haiku: transformed functions, modules, parameters, state and random numbers."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax


def _classifier(x):
    return hk.nets.MLP([8, 3])(x)


def _data():
    x = jax.random.normal(jax.random.PRNGKey(7), (16, 4))
    return x, (x[:, 0] > 0).astype(jnp.int32) + (x[:, 1] > 0)


def linear_layer_is_transformed():
    forward = hk.without_apply_rng(hk.transform(lambda x: hk.Linear(5)(x)))
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    params = forward.init(jax.random.PRNGKey(42), x)
    return {"params": params, "y": forward.apply(params, x)}


def perceptron_and_its_gradient():
    model = hk.without_apply_rng(hk.transform(_classifier))
    x, labels = _data()
    params = model.init(jax.random.PRNGKey(0), x)

    def loss(p):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(p, x), labels).mean()

    return jax.jit(jax.value_and_grad(loss))(params)


def training_with_optax():
    model = hk.without_apply_rng(hk.transform(_classifier))
    x, labels = _data()
    optimizer = optax.adam(1e-2)
    params = model.init(jax.random.PRNGKey(0), x)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        def loss(p):
            return optax.softmax_cross_entropy_with_integer_labels(model.apply(p, x), labels).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for _ in range(10):
        params, state, value = step(params, state)
        losses.append(value)
    return {"losses": jnp.stack(losses), "params": params}


class _MyLinear(hk.Module):
    def __init__(self, output_size, name=None):
        super().__init__(name=name)
        self.output_size = output_size

    def __call__(self, x):
        j, k = x.shape[-1], self.output_size
        w = hk.get_parameter("w", shape=[j, k], dtype=x.dtype, init=hk.initializers.TruncatedNormal(1.0 / jnp.sqrt(j)))
        b = hk.get_parameter("b", shape=[k], dtype=x.dtype, init=jnp.zeros)
        return jnp.dot(x, w) + b


def module_of_ones_own():
    forward = hk.transform(lambda x: _MyLinear(4, name="first")(x) + _MyLinear(4)(x))
    x = jnp.ones((2, 3))
    params = forward.init(jax.random.PRNGKey(1), x)
    return {"params": params, "y": forward.apply(params, None, x)}


def state_counts_calls():
    def counter():
        count = hk.get_state("counter", shape=[], dtype=jnp.int32, init=jnp.zeros)
        hk.set_state("counter", count + 1)
        return count

    model = hk.transform_with_state(counter)
    params, state = model.init(None)
    counts = []
    for _ in range(3):
        count, state = model.apply(params, state, None)
        counts.append(count)
    return {"counts": jnp.stack(counts), "state": state}


def batch_norm_keeps_averages():
    model = hk.transform_with_state(lambda x, train: hk.BatchNorm(True, True, decay_rate=0.9)(hk.Linear(4)(x), train))
    x, _ = _data()
    params, state = model.init(jax.random.PRNGKey(0), x, True)
    y, state = model.apply(params, state, None, x, True)
    use, _ = model.apply(params, state, None, x, False)
    return {"y": y, "state": state, "use": use}


def layer_and_group_norm():
    x = jax.random.normal(jax.random.PRNGKey(2), (2, 5, 8))

    def norms(x):
        layer = hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)(x)
        return {
            "layer": layer,
            "rms": hk.RMSNorm(axis=-1)(x),
            "group": hk.GroupNorm(4)(x),
            "instance": hk.InstanceNorm(True, True)(x),
        }

    model = hk.transform(norms)
    return model.apply(model.init(jax.random.PRNGKey(0), x), None, x)


def dropout_draws_from_the_transformed_key():
    model = hk.transform(lambda x: hk.dropout(hk.next_rng_key(), 0.5, x))
    x = jnp.ones((3, 4))
    return model.apply(model.init(jax.random.PRNGKey(0), x), jax.random.PRNGKey(3), x)


def keys_follow_one_another():
    def draws():
        keys = hk.PRNGSequence(5)
        return jax.random.normal(next(keys), (2,)), jax.random.uniform(hk.next_rng_key()), hk.next_rng_keys(2)

    model = hk.transform(draws)
    return model.apply({}, jax.random.PRNGKey(11))


def convolutional_network():
    def forward(x):
        x = jax.nn.relu(hk.Conv2D(4, 3, stride=2)(x))
        x = hk.MaxPool(2, 2, "SAME")(x)
        x = hk.AvgPool((2, 2, 1), (1, 1, 1), "VALID")(x)
        return hk.Linear(3)(hk.Flatten()(x))

    model = hk.without_apply_rng(hk.transform(forward))
    x = jax.random.normal(jax.random.PRNGKey(1), (2, 8, 8, 2))
    params = model.init(jax.random.PRNGKey(0), x)
    return {"y": model.apply(params, x), "grad": jax.grad(lambda p: model.apply(p, x).sum())(params)}


def transposed_and_separable_convolutions():
    def forward(x):
        return {
            "transpose": hk.Conv2DTranspose(3, 3, stride=2)(x),
            "depthwise": hk.DepthwiseConv2D(2, 3)(x),
            "separable": hk.SeparableDepthwiseConv2D(1, 3)(x),
            "sequence": hk.Conv1D(3, 2, padding=hk.pad.causal)(x[:, 0]),
        }

    model = hk.transform(forward)
    x = jax.random.normal(jax.random.PRNGKey(1), (2, 5, 6, 2))
    return model.apply(model.init(jax.random.PRNGKey(0), x), None, x)


def residual_network():
    def forward(x, is_training):
        return hk.nets.ResNet([1, 1, 1, 1], 5, channels_per_group=(8, 8, 16, 16), bottleneck=False)(x, is_training)

    model = hk.transform_with_state(forward)
    x = jax.random.normal(jax.random.PRNGKey(1), (2, 16, 16, 3))
    params, state = jax.jit(model.init, static_argnums=2)(jax.random.PRNGKey(0), x, True)
    y, state = jax.jit(model.apply, static_argnums=4)(params, state, None, x, True)
    return {"y": y, "parameters": hk.data_structures.tree_size(params), "states": hk.data_structures.tree_size(state)}


def long_short_term_memory():
    def unroll(xs):
        core = hk.LSTM(4)
        return hk.dynamic_unroll(core, xs, core.initial_state(xs.shape[1]))

    model = hk.without_apply_rng(hk.transform(unroll))
    xs = jax.random.normal(jax.random.PRNGKey(3), (5, 2, 3))
    params = model.init(jax.random.PRNGKey(0), xs)
    return jax.jit(model.apply)(params, xs)


def gated_recurrent_network_and_reset():
    def unroll(xs, resets):
        core = hk.ResetCore(hk.GRU(4))
        return hk.static_unroll(core, (xs, resets), core.initial_state(2))

    model = hk.without_apply_rng(hk.transform(unroll))
    xs = jax.random.normal(jax.random.PRNGKey(3), (5, 2, 3))
    resets = jnp.array([[0, 0], [0, 1], [0, 0], [1, 0], [0, 0]], bool)
    return model.apply(model.init(jax.random.PRNGKey(0), xs, resets), xs, resets)


def deep_recurrent_network():
    def unroll(xs):
        core = hk.DeepRNN([hk.Linear(4), jax.nn.relu, hk.VanillaRNN(3), hk.LSTM(2)])
        return hk.dynamic_unroll(core, xs, core.initial_state(2))

    model = hk.without_apply_rng(hk.transform(unroll))
    xs = jax.random.normal(jax.random.PRNGKey(3), (4, 2, 3))
    return model.apply(model.init(jax.random.PRNGKey(0), xs), xs)


def attention_of_several_heads():
    def attend(x):
        mask = jnp.tril(jnp.ones((1, 1, 5, 5)))
        return hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling(0.5))(x, x, x, mask=mask)

    model = hk.without_apply_rng(hk.transform(attend))
    x = jax.random.normal(jax.random.PRNGKey(4), (2, 5, 8))
    params = model.init(jax.random.PRNGKey(0), x)
    return {"y": model.apply(params, x), "grad": jax.grad(lambda v: model.apply(params, v).mean())(x)}


def transformer_block():
    class Block(hk.Module):
        def __call__(self, h):
            attention = hk.MultiHeadAttention(2, 4, model_size=8, w_init=hk.initializers.VarianceScaling(1.0))
            normed = hk.LayerNorm(-1, True, True)(h)
            h = h + attention(normed, normed, normed)
            dense = hk.Sequential([hk.Linear(16), jax.nn.gelu, hk.Linear(8)])
            return h + dense(hk.LayerNorm(-1, True, True)(h))

    def forward(tokens):
        h = hk.Embed(11, 8)(tokens)
        h = h + hk.get_parameter("positions", [tokens.shape[1], 8], init=hk.initializers.TruncatedNormal(0.02))
        for _ in range(2):
            h = Block()(h)
        return hk.Linear(11)(h)

    model = hk.without_apply_rng(hk.transform(forward))
    tokens = jnp.array([[1, 2, 3, 10], [0, 5, 5, 7]])
    params = jax.jit(model.init)(jax.random.PRNGKey(0), tokens)
    return {"y": jax.jit(model.apply)(params, tokens), "parameters": hk.data_structures.tree_size(params)}


def initializers():
    makers = {
        "constant": hk.initializers.Constant(2.5),
        "normal": hk.initializers.RandomNormal(0.1),
        "uniform": hk.initializers.RandomUniform(-1, 1),
        "orthogonal": hk.initializers.Orthogonal(),
        "identity": hk.initializers.Identity(),
        "scaling": hk.initializers.VarianceScaling(2.0, "fan_out", "uniform"),
        "truncated": hk.initializers.TruncatedNormal(),
    }
    model = hk.transform(lambda: {k: hk.get_parameter(k, [4, 3], init=m) for k, m in makers.items()})
    return model.init(jax.random.PRNGKey(0))


def parameters_are_partitioned_and_merged():
    model = hk.transform(_classifier)
    params = model.init(jax.random.PRNGKey(0), jnp.ones((1, 4)))
    weights, biases = hk.data_structures.partition(lambda module, name, value: name == "w", params)
    doubled = hk.data_structures.map(lambda module, name, value: 2 * value, weights)
    subset = hk.data_structures.filter(lambda module, name, value: "linear_1" in module, params)
    return {"merged": hk.data_structures.merge(doubled, biases), "subset": subset}


def several_methods_share_parameters():
    def autoencoder():
        encoder, decoder = hk.Linear(2, name="encoder"), hk.Linear(4, name="decoder")

        def init(x):
            return decoder(encoder(x))

        return init, (encoder, decoder)

    model = hk.multi_transform(autoencoder)
    x = jnp.linspace(-1, 1, 8).reshape(2, 4)
    params = model.init(jax.random.PRNGKey(0), x)
    encode, decode = model.apply
    z = encode(params, None, x)
    return {"z": z, "x": decode(params, None, z)}


def scan_under_a_transform():
    def forward(xs):
        cell = hk.Linear(3)
        return hk.scan(lambda c, x: (jnp.tanh(cell(c) + x), c.sum()), jnp.zeros(3), xs)

    model = hk.transform(forward)
    xs = jnp.linspace(-1, 1, 12).reshape(4, 3)
    return model.apply(model.init(jax.random.PRNGKey(0), xs), None, xs)


def control_flow_under_a_transform():
    def forward(x):
        linear = hk.Linear(3)
        linear(x)
        y = hk.cond(x.sum() > 0, linear, lambda v: -v, x)
        z = hk.fori_loop(0, 3, lambda i, v: jnp.tanh(linear(v)), y)
        if not hk.running_init():
            z = hk.while_loop(lambda v: v.sum() < 10, lambda v: v + 1, z)
        return y, z, hk.switch(1, [linear, jnp.sin], x)

    model = hk.transform(forward)
    x = jnp.array([0.5, -0.25, 1.0])
    return model.apply(model.init(jax.random.PRNGKey(0), x), None, x)


def layers_are_stacked():
    def forward(x):
        return hk.experimental.layer_stack(3)(lambda h: jax.nn.relu(hk.Linear(4)(h)))(x)

    model = hk.transform(forward)
    x = jnp.ones((2, 4))
    params = model.init(jax.random.PRNGKey(0), x)
    return {"params": params, "y": model.apply(params, None, x)}


def vmap_of_a_module():
    def forward(xs):
        return hk.vmap(hk.Linear(3), split_rng=False)(xs)

    model = hk.transform(forward)
    xs = jnp.linspace(-1, 1, 8).reshape(2, 4)
    return model.apply(model.init(jax.random.PRNGKey(0), xs), None, xs)


def derivatives_inside_a_transform():
    def forward(x):
        net = hk.nets.MLP([4, 1])
        net(x)
        value, grad = hk.value_and_grad(lambda v: net(v).sum())(x)
        return value, grad, hk.remat(net)(x)

    model = hk.transform(forward)
    x = jnp.linspace(-1, 1, 3)
    params = model.init(jax.random.PRNGKey(0), x)
    return jax.jit(lambda p: model.apply(p, None, x))(params)


def getters_and_creators_intercept():
    def halves(next_getter, value, context):
        return next_getter(value * 0.5)

    def ones(next_creator, shape, dtype, init, context):
        return next_creator(shape, dtype, jnp.ones)

    def forward(x):
        with hk.custom_creator(ones), hk.custom_getter(halves):
            return hk.Linear(2)(x)

    model = hk.transform(forward)
    x = jnp.ones((1, 3))
    params = model.init(jax.random.PRNGKey(0), x)
    return {"params": params, "y": model.apply(params, None, x)}


def methods_are_intercepted():
    def scale(next_fun, args, kwargs, context):
        out = next_fun(*args, **kwargs)
        return out * 10 if context.method_name == "__call__" and isinstance(context.module, hk.Linear) else out

    def forward(x):
        with hk.intercept_methods(scale):
            return hk.Linear(2)(x)

    model = hk.transform(forward)
    x = jnp.ones((1, 3))
    return model.apply(model.init(jax.random.PRNGKey(0), x), None, x)


def moving_averages_and_quantisation():
    def forward(x):
        average = hk.ExponentialMovingAverage(0.9)
        quantizer = hk.nets.VectorQuantizer(embedding_dim=3, num_embeddings=5, commitment_cost=0.25)
        return average(x), quantizer(x, is_training=True)

    model = hk.transform_with_state(forward)
    x = jax.random.normal(jax.random.PRNGKey(6), (4, 3))
    params, state = model.init(jax.random.PRNGKey(0), x)
    (average, quantized), state = model.apply(params, state, None, x)
    return {"average": average, "quantized": quantized["quantize"], "loss": quantized["loss"], "state": state}


def spectral_norm_has_state():
    def forward(x):
        return hk.Linear(3)(x), hk.SpectralNorm()(hk.get_parameter("w", [4, 3], init=hk.initializers.RandomNormal()))

    model = hk.transform_with_state(forward)
    x = jnp.ones((2, 4))
    params, state = model.init(jax.random.PRNGKey(0), x)
    (y, w), state = model.apply(params, state, None, x)
    return {"y": y, "norm": jnp.linalg.svd(w, compute_uv=False), "state": state}


def mixed_precision_policy():
    policy = jmp.get_policy("params=float32,compute=bfloat16,output=float32")
    hk.mixed_precision.set_policy(_MyLinear, policy)
    model = hk.transform(lambda x: _MyLinear(3)(x))
    x = jnp.linspace(-1, 1, 8).reshape(2, 4)
    params = model.init(jax.random.PRNGKey(0), x)
    y = model.apply(params, None, x)
    hk.mixed_precision.clear_policy(_MyLinear)
    return {"y": y, "dtype": str(y.dtype), "params": params}


def bias_reshape_and_flatten():
    def forward(x):
        x = hk.Bias()(x)
        x = hk.Reshape((-1, 2))(x)
        return hk.BatchApply(hk.Linear(2))(x), x

    model = hk.transform(forward)
    x = jnp.linspace(-1, 1, 8).reshape(2, 4)
    return model.apply(model.init(jax.random.PRNGKey(0), x), None, x)


def modules_are_described():
    def forward(x):
        return hk.nets.MLP([4, 2], name="net")(x)

    rows = hk.experimental.eval_summary(hk.transform(forward))(jnp.ones((3, 5)))
    return {"rows": len(rows), "names": [int("net" in row.module_details.module.name) for row in rows]}


def parameters_by_eval_shape():
    model = hk.transform(_classifier)
    shapes = jax.eval_shape(model.init, jax.random.PRNGKey(0), jax.ShapeDtypeStruct((2, 4), jnp.float32))
    return jax.tree_util.tree_map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
