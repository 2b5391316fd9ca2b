"""Flax's nnx: modules that are objects, their state, transformations, optimizers."""

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax import nnx
from flax.nnx import bridge


class _MLP(nnx.Module):
    def __init__(self, din, dmid, dout, *, rngs):
        self.bn = nnx.BatchNorm(din, rngs=rngs)
        self.linear1 = nnx.Linear(din, dmid, rngs=rngs)
        self.dropout = nnx.Dropout(rate=0.1, rngs=rngs)
        self.linear2 = nnx.Linear(dmid, dout, rngs=rngs)

    def __call__(self, x):
        x = nnx.gelu(self.dropout(self.linear1(self.bn(x))))
        return self.linear2(x)


class _Count(nnx.Variable):
    pass


class _Block(nnx.Module):
    def __init__(self, size, *, rngs):
        self.linear = nnx.Linear(size, size, rngs=rngs)

    def __call__(self, x):
        return nnx.tanh(self.linear(x))


def _pure(state):
    return nnx.to_pure_dict(state)


def module_is_an_object():
    model = _MLP(2, 16, 5, rngs=nnx.Rngs(0))
    y = model(jax.random.normal(jax.random.key(4), (3, 2)))
    return {"y": y, "kernel": model.linear1.kernel[...], "mean": model.bn.mean[...]}


def training_with_an_optimizer():
    model = _MLP(2, 8, 3, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (16, 2))
    y = jax.random.normal(jax.random.key(2), (16, 3))

    @nnx.jit
    def train_step(model, optimizer, x, y):
        def loss_fn(model):
            return ((model(x) - y) ** 2).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return loss

    losses = [train_step(model, optimizer, x, y) for _ in range(8)]
    return {"losses": jnp.stack(losses), "params": _pure(nnx.state(model, nnx.Param)), "step": optimizer.step[...]}


def split_and_merge():
    model = _MLP(2, 4, 3, rngs=nnx.Rngs(0))
    graphdef, params, others = nnx.split(model, nnx.Param, ...)
    doubled = jax.tree.map(lambda p: 2 * p, params)
    merged = nnx.merge(graphdef, doubled, others)
    return {"params": _pure(params), "y": merged(jnp.eye(2))}


def functional_training_by_jax_grad():
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    graphdef, state = nnx.split(model)
    x = jnp.linspace(-1, 1, 8).reshape(4, 2)

    @jax.jit
    def loss(state):
        return (nnx.merge(graphdef, state)(x) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(state)
    return {"value": value, "grads": _pure(grads)}


def state_is_updated_in_place():
    class Counter(nnx.Module):
        def __init__(self):
            self.count = _Count(jnp.array(0))

        def __call__(self, x):
            self.count[...] += 1
            return x * self.count[...]

    model = Counter()
    call = nnx.jit(lambda m, x: m(x))
    ys = [call(model, jnp.arange(3.0)) for _ in range(3)]
    return {"ys": jnp.stack(ys), "count": model.count[...]}


def streams_of_keys():
    rngs = nnx.Rngs(0, dropout=1, noise=jax.random.key(5))
    return {
        "params": jax.random.normal(rngs.params(), (2,)),
        "dropout": jax.random.normal(rngs.dropout(), (2,)),
        "again": jax.random.normal(rngs.dropout(), (2,)),
        "noise": jax.random.uniform(rngs.noise()),
        "direct": rngs.normal((3,)),
        "count": rngs.dropout.count[...],
    }


def dropout_in_training_and_use():
    layer = nnx.Dropout(0.5, rngs=nnx.Rngs(3))
    x = jnp.ones((2, 6))
    train = layer(x)
    layer.eval()
    use = layer(x)
    layer.train()
    return {"train": train, "use": use, "again": layer(x)}


def batch_norm_keeps_averages():
    layer = nnx.BatchNorm(4, momentum=0.9, rngs=nnx.Rngs(0))
    x = jax.random.normal(jax.random.key(2), (6, 4))
    y = layer(x)
    return {"y": y, "mean": layer.mean[...], "var": layer.var[...], "use": layer(x, use_running_average=True)}


def normalisations():
    rngs = nnx.Rngs(0)
    x = jax.random.normal(jax.random.key(4), (2, 5, 8))
    return {
        "layer": nnx.LayerNorm(8, rngs=rngs)(x),
        "group": nnx.GroupNorm(8, num_groups=4, rngs=rngs)(x),
        "rms": nnx.RMSNorm(8, rngs=rngs)(x),
        "instance": nnx.InstanceNorm(8, rngs=rngs)(x),
    }


def convolutional_network():
    class CNN(nnx.Module):
        def __init__(self, *, rngs):
            self.conv1 = nnx.Conv(1, 4, kernel_size=(3, 3), rngs=rngs)
            self.conv2 = nnx.Conv(4, 8, kernel_size=(3, 3), rngs=rngs)
            self.linear = nnx.Linear(72, 5, rngs=rngs)

        def __call__(self, x):
            x = nnx.avg_pool(nnx.relu(self.conv1(x)), window_shape=(2, 2), strides=(2, 2))
            x = nnx.max_pool(nnx.relu(self.conv2(x)), window_shape=(2, 2), strides=(2, 2))
            return self.linear(x.reshape(x.shape[0], -1))

    model = CNN(rngs=nnx.Rngs(0))
    x = jax.random.normal(jax.random.key(1), (2, 12, 12, 1))

    def loss_fn(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), jnp.array([1, 4])).mean()

    loss, grads = nnx.jit(nnx.value_and_grad(loss_fn))(model)
    return {"loss": loss, "grads": _pure(grads)}


def transposed_convolution():
    layer = nnx.ConvTranspose(2, 3, kernel_size=(3, 3), strides=(2, 2), rngs=nnx.Rngs(0))
    return layer(jax.random.normal(jax.random.key(1), (1, 4, 4, 2)))


def embedding_and_its_attention():
    embed = nnx.Embed(7, 4, rngs=nnx.Rngs(0))
    y = embed(jnp.array([[1, 2, 6], [0, 0, 3]]))
    return {"y": y, "logits": embed.attend(y)}


def attention_with_a_mask():
    layer = nnx.MultiHeadAttention(num_heads=2, in_features=8, qkv_features=8, decode=False, rngs=nnx.Rngs(0))
    x = jax.random.normal(jax.random.key(6), (2, 5, 8))
    return layer(x, mask=nnx.make_causal_mask(jnp.ones((2, 5))))


def attention_decodes_with_a_cache():
    layer = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=True, rngs=nnx.Rngs(0))
    x = jax.random.normal(jax.random.key(6), (1, 3, 8))
    layer.init_cache(x.shape)
    ys = [layer(x[:, i : i + 1]) for i in range(3)]
    return {"y": jnp.concatenate(ys, 1), "index": layer.cache_index[...]}


def recurrent_network_over_a_sequence():
    rngs = nnx.Rngs(0)
    x = jax.random.normal(jax.random.key(7), (2, 6, 3))
    lstm = nnx.RNN(nnx.LSTMCell(3, 4, rngs=rngs))
    gru = nnx.RNN(nnx.GRUCell(3, 4, rngs=rngs), reverse=True, keep_order=True)
    return {"lstm": lstm(x), "gru": gru(x, seq_lengths=jnp.array([6, 4]))}


def ensemble_by_vmap():
    @nnx.split_rngs(splits=4)
    @nnx.vmap(in_axes=(0,), out_axes=0)
    def create(rngs):
        return nnx.Linear(3, 2, rngs=rngs)

    models = create(nnx.Rngs(0))

    @nnx.vmap(in_axes=(0, None), out_axes=0)
    def forward(model, x):
        return model(x)

    return {"kernel": models.kernel[...], "y": forward(models, jnp.ones((2, 3)))}


def layers_by_scan():
    @nnx.split_rngs(splits=3)
    @nnx.vmap(in_axes=(0,), out_axes=0)
    def create(rngs):
        return _Block(4, rngs=rngs)

    blocks = create(nnx.Rngs(0))

    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    def forward(x, block):
        return block(x)

    return forward(jnp.linspace(-1, 1, 4), blocks)


def scan_carries_a_module():
    class Accumulator(nnx.Module):
        def __init__(self):
            self.sum = _Count(jnp.zeros(2))

    def step(module, x):
        module.sum[...] += x
        return module, module.sum[...].sum()

    module = Accumulator()
    module, ys = nnx.scan(step, in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))(module, jnp.arange(6.0).reshape(3, 2))
    return {"sum": module.sum[...], "ys": ys}


def gradient_of_part_of_a_model():
    model = _MLP(2, 4, 3, rngs=nnx.Rngs(0))
    first = nnx.All(nnx.Param, nnx.PathContains("linear1"))

    @nnx.grad(argnums=nnx.DiffState(0, first))
    def loss(model, x):
        return (model(x) ** 2).sum()

    return _pure(loss(model, jnp.linspace(-1, 1, 6).reshape(3, 2)))


def control_flow_of_modules():
    block = _Block(3, rngs=nnx.Rngs(0))
    x = jnp.array([0.5, -0.5, 1.0])
    return {
        "cond": nnx.cond(x.sum() > 0, lambda m, v: m(v), lambda m, v: -v, block, x),
        "switch": nnx.switch(1, [lambda m, v: v, lambda m, v: m(m(v))], block, x),
        "fori": nnx.fori_loop(0, 3, lambda i, v: (v[0], v[0](v[1]) + i), (block, x))[1],
        "while": nnx.while_loop(lambda v: v[1].sum() < 3, lambda v: (v[0], v[0](v[1]) + v[1] + 1), (block, x))[1],
    }


def remat_of_a_block():
    block = _Block(3, rngs=nnx.Rngs(0))

    @nnx.grad
    def loss(model, x):
        return nnx.remat(lambda m, v: m(m(v)))(model, x).sum()

    return _pure(loss(block, jnp.array([0.5, -0.5, 1.0])))


def shapes_by_eval_shape():
    abstract = nnx.eval_shape(lambda: _MLP(2, 4, 3, rngs=nnx.Rngs(0)))
    state = nnx.state(abstract, nnx.Param)
    return [jnp.array(leaf.shape) for leaf in jax.tree.leaves(state)]


def state_is_exchanged():
    model, other = _Block(3, rngs=nnx.Rngs(0)), _Block(3, rngs=nnx.Rngs(1))
    nnx.update(model, nnx.state(other))
    clone = nnx.clone(model)
    clone.linear.bias[...] += 1.0
    return {"y": model(jnp.ones(3)), "clone": clone(jnp.ones(3))}


def surgery_with_low_rank_adapters():
    class Net(nnx.Module):
        def __init__(self, *, rngs):
            self.linear1 = nnx.Linear(3, 4, rngs=rngs)
            self.linear2 = nnx.Linear(4, 2, rngs=rngs)

        def __call__(self, x):
            return self.linear2(nnx.relu(self.linear1(x)))

    rngs = nnx.Rngs(0)
    model = Net(rngs=rngs)
    model.linear1 = nnx.LoRA(3, 2, 4, base_module=model.linear1, rngs=rngs)
    params = nnx.state(model, nnx.LoRAParam)
    return {"y": model(jnp.ones((2, 3))), "params": _pure(params)}


def sequential_and_lists_of_modules():
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), nnx.relu, nnx.Linear(4, 2, rngs=rngs))

    class Stack(nnx.Module):
        def __init__(self, *, rngs):
            self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(3)])

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    return {"y": model(x), "z": Stack(rngs=rngs)(model(x))}


def shared_layers_are_one():
    class Tied(nnx.Module):
        def __init__(self, *, rngs):
            self.first = nnx.Linear(3, 3, rngs=rngs)
            self.second = self.first

        def __call__(self, x):
            return self.second(self.first(x))

    model = Tied(rngs=nnx.Rngs(0))
    grads = nnx.grad(lambda m: m(jnp.ones(3)).sum())(model)
    return {"leaves": len(jax.tree.leaves(nnx.state(model))), "grads": _pure(grads)}


def metrics_accumulate():
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
    logits = jnp.array([[2.0, 1.0], [0.5, 1.5], [1.0, 0.0]])
    metrics.update(logits=logits, labels=jnp.array([0, 1, 1]), loss=jnp.array([0.3, 0.2, 0.9]))
    metrics.update(logits=logits, labels=jnp.array([0, 0, 0]), loss=0.5)
    values = metrics.compute()
    metrics.reset()
    return values


def intermediates_are_sown():
    class Net(nnx.Module):
        def __init__(self, *, rngs):
            self.linear = nnx.Linear(3, 2, rngs=rngs)

        def __call__(self, x):
            h = self.linear(x)
            self.sow(nnx.Intermediate, "h", h)
            return nnx.relu(h)

    model = Net(rngs=nnx.Rngs(0))
    y = model(jnp.ones((1, 3)))
    intermediates = nnx.pop(model, nnx.Intermediate)
    return {"y": y, "h": intermediates["h"].get_value()[0], "left": len(jax.tree.leaves(nnx.state(model)))}


def linen_module_inside_nnx():
    model = bridge.ToNNX(nn.Dense(3), rngs=nnx.Rngs(0))
    x = jnp.linspace(-1, 1, 6).reshape(3, 2)
    model.lazy_init(x)
    return {"y": model(x), "kernel": model.kernel[...]}


def custom_gradient_of_a_module():
    @nnx.custom_vjp
    def square(model, x):
        return model(x) ** 2

    def forward(model, x):
        return square(model, x), (model(x), x)

    def backward(residuals, cotangent):
        (model_cotangent, y_cotangent), (y, _x) = cotangent, residuals
        return jax.tree.map(lambda v: v * 0 + 1, model_cotangent), y_cotangent * 2 * y

    square.defvjp(forward, backward)
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    return square(model, jnp.array([0.5, 1.0]))


def einsum_and_general_linear():
    rngs = nnx.Rngs(0)
    x = jax.random.normal(jax.random.key(9), (2, 3, 4))
    general = nnx.LinearGeneral((3, 4), (2, 5), axis=(-2, -1), rngs=rngs)
    einsum = nnx.Einsum("abc,cd->abd", (4, 2), (2,), rngs=rngs)
    return {"general": general(x), "einsum": einsum(x)}


def half_precision_of_a_layer():
    layer = nnx.Linear(3, 2, dtype=jnp.bfloat16, param_dtype=jnp.float32, rngs=nnx.Rngs(0))
    y = layer(jnp.linspace(-1, 1, 6).reshape(2, 3))
    return {"y": y, "dtype": str(y.dtype), "kernel": str(layer.kernel.dtype)}


def variables_have_metadata_and_filters():
    model = _MLP(2, 4, 3, rngs=nnx.Rngs(0))
    _graphdef, params, statistics, others = nnx.split(model, nnx.Param, nnx.BatchStat, ...)
    return {
        "params": len(jax.tree.leaves(params)),
        "statistics": _pure(statistics),
        "others": len(jax.tree.leaves(others)),
        "modules": len(list(nnx.iter_modules(model))),
    }


def table_of_a_model():
    text = nnx.tabulate(_Block(4, rngs=nnx.Rngs(0)), jnp.ones((1, 4)), console_kwargs={"width": 150})
    return {"linear": int("linear" in text), "total": int("20" in text)}
