"""Flax's linen: modules, variables, transformations, a training state."""

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import serialization, struct, traverse_util
from flax.training import train_state

KEY = 0


def _shapes(variables):
    return {k: jnp.array(v.shape) for k, v in traverse_util.flatten_dict(variables, sep="/").items()}


class _MLP(nn.Module):
    features: tuple[int, ...]

    @nn.compact
    def __call__(self, x):
        for i, size in enumerate(self.features):
            x = nn.Dense(size, name=f"layer_{i}")(x)
            x = nn.relu(x) if i + 1 < len(self.features) else x
        return x


class _CNN(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(features=4, kernel_size=(3, 3))(x))
        x = nn.avg_pool(x, window_shape=(2, 2), strides=(2, 2))
        x = nn.relu(nn.Conv(features=8, kernel_size=(3, 3), padding="VALID")(x))
        x = nn.max_pool(x, window_shape=(2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        return nn.Dense(features=10)(x)


def dense_layer_is_initialised_and_applied():
    model = nn.Dense(features=5)
    x = jax.random.normal(jax.random.key(1), (10,))
    params = model.init(jax.random.key(KEY), x)
    return {"params": params, "y": model.apply(params, x), "shapes": jax.tree_util.tree_map(jnp.shape, params)}


def linear_regression_by_gradient_descent():
    key = jax.random.key(3)
    kernel, bias = jax.random.normal(key, (5, 2)), jnp.array([0.5, -1.0])
    xs = jax.random.normal(jax.random.fold_in(key, 1), (20, 5))
    ys = xs @ kernel + bias
    model = nn.Dense(features=2)
    params = model.init(jax.random.key(KEY), xs)

    @jax.jit
    def mse(params):
        return jnp.mean((model.apply(params, xs) - ys) ** 2)

    step = jax.jit(lambda p: jax.tree_util.tree_map(lambda v, g: v - 0.1 * g, p, jax.grad(mse)(p)))
    losses = [mse(params)]
    for _ in range(20):
        params = step(params)
        losses.append(mse(params))
    return {"losses": jnp.stack(losses), "params": params}


def compact_module_names_its_layers():
    model = _MLP((3, 4, 5))
    x = jnp.ones((2, 4))
    variables = model.init(jax.random.key(KEY), x)
    return {"shapes": _shapes(variables), "y": model.apply(variables, x)}


def module_with_setup():
    class Explicit(nn.Module):
        sizes: tuple[int, ...]

        def setup(self):
            self.layers = [nn.Dense(size) for size in self.sizes]

        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = nn.tanh(layer(x))
            return self.layers[-1](x)

    model = Explicit((4, 3))
    x = jnp.linspace(-1, 1, 10).reshape(2, 5)
    y, variables = model.init_with_output(jax.random.key(KEY), x)
    return {"y": y, "shapes": _shapes(variables)}


def parameters_of_ones_own():
    class SimpleDense(nn.Module):
        features: int

        @nn.compact
        def __call__(self, x):
            kernel = self.param("kernel", nn.initializers.lecun_normal(), (x.shape[-1], self.features))
            bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
            return x @ kernel + bias

    x = jax.random.uniform(jax.random.key(1), (4, 4))
    y, variables = SimpleDense(3).init_with_output(jax.random.key(KEY), x)
    return {"y": y, "variables": variables}


def variables_are_a_running_average():
    class BiasAdder(nn.Module):
        decay: float = 0.99

        @nn.compact
        def __call__(self, x):
            is_initialized = self.has_variable("batch_stats", "mean")
            mean = self.variable("batch_stats", "mean", lambda s: jnp.zeros(s), x.shape[1:])
            bias = self.param("bias", lambda key, shape: jnp.zeros(shape), x.shape[1:])
            if is_initialized:
                mean.value = self.decay * mean.value + (1.0 - self.decay) * jnp.mean(x, axis=0, keepdims=True)
            return x - mean.value + bias

    model = BiasAdder()
    x = jnp.arange(50.0).reshape(10, 5)
    variables = model.init(jax.random.key(KEY), x)
    for _ in range(3):
        y, state = model.apply(variables, x, mutable=["batch_stats"])
        variables = {"params": variables["params"], **state}
    return {"y": y, "state": variables["batch_stats"]}


def convolutional_network():
    x = jax.random.normal(jax.random.key(1), (2, 12, 12, 1))
    y, variables = _CNN().init_with_output(jax.random.key(KEY), x)
    return {"y": y, "shapes": _shapes(variables)}


def gradient_of_a_convolutional_network():
    x = jax.random.normal(jax.random.key(1), (2, 12, 12, 1))
    model = _CNN()
    params = model.init(jax.random.key(KEY), x)

    def loss(p):
        logits = model.apply(p, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.array([3, 7])).mean()

    return jax.jit(jax.value_and_grad(loss))(params)


def batch_norm_in_training_and_use():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, train: bool):
            x = nn.Dense(4)(x)
            return nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)

    x = jax.random.normal(jax.random.key(2), (6, 3))
    variables = Block().init(jax.random.key(KEY), x, train=False)
    y, state = Block().apply(variables, x, train=True, mutable=["batch_stats"])
    use = Block().apply({"params": variables["params"], **state}, x, train=False)
    return {"train": y, "state": state, "use": use}


def dropout_takes_a_stream_of_keys():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train: bool):
            x = nn.Dense(8)(x)
            return nn.Dropout(rate=0.5, deterministic=not train)(x)

    x = jnp.ones((3, 4))
    variables = Net().init(jax.random.key(KEY), x, train=False)
    y = Net().apply(variables, x, train=True, rngs={"dropout": jax.random.key(5)})
    return {"train": y, "use": Net().apply(variables, x, train=False)}


def normalisations():
    x = jax.random.normal(jax.random.key(4), (2, 5, 8))
    layers = {
        "layer": nn.LayerNorm(),
        "group": nn.GroupNorm(num_groups=4),
        "rms": nn.RMSNorm(),
        "instance": nn.InstanceNorm(),
    }
    return {name: layer.init_with_output(jax.random.key(KEY), x)[0] for name, layer in layers.items()}


def spectral_and_weight_norm():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train: bool):
            x = nn.SpectralNorm(nn.Dense(4))(x, update_stats=train)
            return nn.WeightNorm(nn.Dense(3))(x)

    x = jnp.linspace(-1, 1, 10).reshape(2, 5)
    variables = Net().init(jax.random.key(KEY), x, train=False)
    y, state = Net().apply(variables, x, train=True, mutable=["batch_stats"])
    return {"y": y, "shapes": _shapes(state)}


def embedding_and_its_attention():
    embed = nn.Embed(num_embeddings=7, features=4)
    ids = jnp.array([[1, 2, 6], [0, 0, 3]])
    y, variables = embed.init_with_output(jax.random.key(KEY), ids)
    return {"y": y, "logits": embed.apply(variables, y, method=embed.attend)}


def attention_with_a_causal_mask():
    layer = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=8)
    x = jax.random.normal(jax.random.key(6), (2, 5, 8))
    mask = nn.make_causal_mask(jnp.ones((2, 5)))
    y, variables = layer.init_with_output(jax.random.key(KEY), x, mask=mask)
    return {"y": y, "shapes": _shapes(variables)}


def attention_decodes_with_a_cache():
    layer = nn.SelfAttention(num_heads=2, decode=True)
    x = jax.random.normal(jax.random.key(6), (1, 4, 8))
    variables = layer.init(jax.random.key(KEY), x)
    params, cache = variables["params"], variables["cache"]
    ys = []
    for i in range(4):
        y, state = layer.apply({"params": params, "cache": cache}, x[:, i : i + 1], mutable=["cache"])
        cache = state["cache"]
        ys.append(y)
    return {"y": jnp.concatenate(ys, 1), "index": cache["cache_index"]}


def recurrent_network_over_a_sequence():
    x = jax.random.normal(jax.random.key(7), (2, 6, 3))
    y, variables = nn.RNN(nn.LSTMCell(features=4)).init_with_output(jax.random.key(KEY), x)
    return {"y": y, "shapes": _shapes(variables)}


def gru_in_both_directions():
    x = jax.random.normal(jax.random.key(7), (2, 6, 3))
    model = nn.Bidirectional(nn.RNN(nn.GRUCell(features=4)), nn.RNN(nn.GRUCell(features=4)))
    return model.init_with_output(jax.random.key(KEY), x, seq_lengths=jnp.array([6, 4]))[0]


def lifted_scan_shares_parameters():
    class Cell(nn.Module):
        @nn.compact
        def __call__(self, carry, x):
            return nn.LSTMCell(features=4)(carry, x)

    class Sequence(nn.Module):
        @nn.compact
        def __call__(self, x):
            scan = nn.scan(
                nn.LSTMCell, variable_broadcast="params", split_rngs={"params": False}, in_axes=1, out_axes=1
            )
            cell = scan(features=4)
            return cell(cell.initialize_carry(jax.random.key(9), x[:, 0].shape), x)

    x = jax.random.normal(jax.random.key(7), (2, 6, 3))
    (carry, y), variables = Sequence().init_with_output(jax.random.key(KEY), x)
    return {"carry": carry, "y": y, "shapes": _shapes(variables)}


def lifted_scan_over_layers():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return nn.tanh(nn.Dense(4)(x)), None

    class Deep(nn.Module):
        @nn.compact
        def __call__(self, x):
            layers = nn.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
            return layers()(x, None)[0]

    y, variables = Deep().init_with_output(jax.random.key(KEY), jnp.ones((2, 4)))
    return {"y": y, "variables": variables}


def lifted_vmap_is_an_ensemble():
    ensemble = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None, axis_size=3)
    y, variables = ensemble(features=2).init_with_output(jax.random.key(KEY), jnp.ones((2, 4)))
    return {"y": y, "variables": variables}


def lifted_jit_and_remat():
    class Deep(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.jit(_MLP)((4, 4))(x)
            return nn.remat(_MLP)((4, 2))(x)

    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    variables = Deep().init(jax.random.key(KEY), x)
    return jax.value_and_grad(lambda v: (Deep().apply(v, x) ** 2).sum())(variables)


def intermediates_are_sown():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            h = nn.Dense(4)(x)
            self.sow("intermediates", "h", h)
            return nn.Dense(2)(nn.relu(h))

    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    variables = Net().init(jax.random.key(KEY), x)
    y, state = Net().apply({"params": variables["params"]}, x, mutable=["intermediates"])
    return {"y": y, "h": state["intermediates"]["h"][0]}


def intermediates_are_captured():
    model = _MLP((4, 3))
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    variables = model.init(jax.random.key(KEY), x)
    y, state = model.apply(variables, x, capture_intermediates=True, mutable=["intermediates"])
    return {"y": y, "state": flax.core.unfreeze(state["intermediates"])}


def bound_module_has_submodules():
    class AutoEncoder(nn.Module):
        def setup(self):
            self.encoder = nn.Dense(3)
            self.decoder = nn.Dense(5)

        def __call__(self, x):
            return self.decoder(self.encoder(x))

    x = jnp.ones((2, 5))
    model = AutoEncoder()
    variables = model.init(jax.random.key(KEY), x)
    bound = model.bind(variables)
    return {"z": bound.encoder(x), "same": jnp.allclose(bound.decoder(bound.encoder(x)), bound(x))}


def sequential_and_method_of_a_name():
    model = nn.Sequential([nn.Dense(4), nn.relu, nn.Dense(2), nn.log_softmax])
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    return model.init_with_output(jax.random.key(KEY), x)[0]


def abstract_shapes_by_eval_shape_and_lazy_init():
    model = _MLP((4, 3))
    shapes = jax.eval_shape(model.init, jax.random.key(KEY), jax.ShapeDtypeStruct((2, 5), jnp.float32))
    lazy = model.lazy_init(jax.random.key(KEY), jax.ShapeDtypeStruct((2, 5), jnp.float32))
    return {"shapes": _shapes(shapes), "lazy": lazy}


def training_state_with_optax():
    x = jax.random.normal(jax.random.key(1), (16, 3))
    labels = (x.sum(1) > 0).astype(jnp.int32)
    model = _MLP((8, 2))
    state = train_state.TrainState.create(
        apply_fn=model.apply, params=model.init(jax.random.key(KEY), x)["params"], tx=optax.adam(1e-2)
    )

    @jax.jit
    def step(state, x, labels):
        def loss(params):
            logits = state.apply_fn({"params": params}, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    losses = []
    for _ in range(10):
        state, value = step(state, x, labels)
        losses.append(value)
    return {"losses": jnp.stack(losses), "params": state.params, "step": state.step}


def bytes_of_a_state():
    variables = _MLP((3, 2)).init(jax.random.key(KEY), jnp.ones((1, 2)))
    data = serialization.to_bytes(variables)
    restored = serialization.from_bytes(variables, data)
    return {"size": len(data), "restored": restored, "dict": serialization.to_state_dict(variables)}


def structs_are_trees():
    @struct.dataclass
    class State:
        x: jax.Array
        name: str = struct.field(pytree_node=False, default="a")

    state = State(jnp.arange(3.0))
    doubled = jax.jit(lambda s: s.replace(x=s.x * 2))(state)
    return {"x": doubled.x, "leaves": len(jax.tree_util.tree_leaves(doubled)), "name": doubled.name}


def flat_dictionaries_and_masks():
    params = _MLP((3, 2)).init(jax.random.key(KEY), jnp.ones((1, 2)))["params"]
    kernels = traverse_util.path_aware_map(lambda path, v: v if path[-1] == "kernel" else jnp.zeros_like(v), params)
    frozen = flax.core.freeze({"a": {"b": 1.0}})
    return {"kernels": kernels, "flat": traverse_util.flatten_dict(params, sep="."), "frozen": frozen["a"]["b"]}


def logical_axes_are_metadata():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            init = nn.with_partitioning(nn.initializers.lecun_normal(), (None, "model"))
            return nn.Dense(4, kernel_init=init)(x)

    x = jnp.ones((2, 3))
    variables = Net().init(jax.random.key(KEY), x)
    spec = nn.get_partition_spec(variables)
    return {"y": Net().apply(variables, x), "axes": str(spec["params"]["Dense_0"]["kernel"]).count("model")}


def table_of_a_model():
    text = nn.tabulate(_MLP((4, 3)), jax.random.key(KEY), compute_flops=False, console_kwargs={"width": 120})(
        jnp.ones((2, 5))
    )
    return {"rows": text.count("layer_"), "parameters": int("39" in text)}


def lifted_while_and_cond():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, pred):
            self.variable("state", "count", lambda: jnp.array(0))
            dense = nn.Dense(3)
            dense(x)

            def body(m, c):
                m.variables["state"]
                m.put_variable("state", "count", m.get_variable("state", "count") + 1)
                return nn.tanh(c * 1.5)

            x = (
                nn.while_loop(lambda m, c: m.get_variable("state", "count") < 3, body, self, x, carry_variables="state")
                if not self.is_initializing()
                else x
            )
            return nn.cond(pred, lambda m, v: m(v), lambda m, v: v, dense, x)

    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    variables = Net().init(jax.random.key(KEY), x, True)
    (y, state) = Net().apply(variables, x, True, mutable=["state"])
    (z, _) = Net().apply(variables, x, False, mutable=["state"])
    return {"y": y, "z": z, "count": state["state"]["count"]}


def gradient_of_a_module_with_state():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, y):
            dense = nn.Dense(2)
            dense(x)  # which makes its parameters
            out, pullback = nn.vjp(lambda m, x: m(x), dense, x)
            grads, x_grad = pullback(out - y)
            return out, grads["params"], x_grad

    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    return Net().init_with_output(jax.random.key(KEY), x, jnp.ones((2, 2)))[0]


def transposed_and_local_convolutions():
    x = jax.random.normal(jax.random.key(8), (1, 6, 6, 2))
    layers = {
        "transpose": nn.ConvTranspose(3, (3, 3), strides=(2, 2)),
        "depthwise": nn.Conv(4, (3, 3), feature_group_count=2, kernel_dilation=2),
        "circular": nn.Conv(3, (3, 3), padding="CIRCULAR"),
        "local": nn.ConvLocal(2, (3, 3)),
    }
    return {name: layer.init_with_output(jax.random.key(KEY), x)[0] for name, layer in layers.items()}


def half_precision_of_a_layer():
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    y, variables = nn.Dense(2, dtype=jnp.bfloat16).init_with_output(jax.random.key(KEY), x)
    return {"y": y, "dtype": str(y.dtype), "params": variables}


def einsum_and_general_dense():
    x = jax.random.normal(jax.random.key(9), (2, 3, 4))
    general = nn.DenseGeneral(features=(2, 5), axis=(-2, -1)).init_with_output(jax.random.key(KEY), x)[0]
    einsum = nn.Einsum((4, 2, 3), "...a,abc->...bc").init_with_output(jax.random.key(KEY), x)[0]
    return {"general": general, "einsum": einsum}
