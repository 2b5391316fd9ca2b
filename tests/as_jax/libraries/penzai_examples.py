"""penzai: models as trees, named axes, selections, and parameters as variables."""

import jax
import jax.numpy as jnp
import optax
from penzai import pz
from penzai.models import simple_mlp
from penzai.models.transformer import variants
from penzai.toolshed import basic_training

X = jax.random.normal(jax.random.key(0), (3, 8))


def _mlp(sizes=(8, 16, 4)):
    return simple_mlp.MLP.from_config(name="mlp", init_base_rng=jax.random.key(42), feature_sizes=list(sizes))


def a_network_on_named_axes():
    return _mlp()(pz.nx.wrap(X, "batch", "features")).unwrap("batch", "features")


def arrays_of_named_axes():
    a = pz.nx.wrap(jnp.arange(12.0).reshape(3, 4), "i", "j")
    b = pz.nx.wrap(jnp.arange(4.0), "j")
    return {
        "dot": pz.nx.nmap(jnp.dot)(a.untag("j"), b.untag("j")).unwrap("i"),
        "sum": (a + b).untag("i").sum().unwrap("j"),
        "softmax": pz.nx.nmap(jax.nn.softmax)(a.untag("j")).tag("k").unwrap("i", "k"),
        "order": a.order_as("j", "i").unwrap("j", "i"),
        "index": a[{"i": 1, "j": pz.slice[1:3]}].unwrap("j"),
    }


def selections_look_into_and_change_a_model():
    model = _mlp()
    layers = pz.select(model).at_instances_of(pz.nn.Linear)
    doubled = (
        pz.select(model).at_instances_of(pz.Parameter).apply(lambda p: pz.Parameter(value=p.value * 2.0, label=p.label))
    )
    without = pz.select(model).at_instances_of(pz.nn.Elementwise).apply(lambda _: pz.nn.Identity())
    x = pz.nx.wrap(X, "batch", "features")
    return {
        "count": len(layers),
        "doubled": doubled(x).unwrap("batch", "features"),
        "without": without(x).unwrap("batch", "features"),
    }


def a_hook_captures_what_passes():
    @pz.pytree_dataclass
    class Capture(pz.nn.Layer):
        saved: pz.StateVariable

        def __call__(self, value, /, **side):
            self.saved.value = value
            return value

    saved = pz.StateVariable(value=None, label="saved")
    model = pz.select(_mlp()).at_instances_of(pz.nn.Elementwise).insert_after(Capture(saved))
    model(pz.nx.wrap(X, "batch", "features"))
    return saved.value.unwrap("batch", "features")


def gradients_of_a_model_without_its_state():
    model, params = pz.unbind_params(_mlp((8, 5, 1)))
    frozen = [p.freeze() for p in params]

    def loss(frozen):
        bound = pz.bind_variables(model, frozen)
        return jnp.mean(bound(pz.nx.wrap(X, "batch", "features")).unwrap("batch", "features") ** 2)

    return [leaf for leaf in jax.tree_util.tree_leaves(jax.jit(jax.grad(loss))(frozen))]


def a_network_learns_exclusive_or():
    def loss(model, rng, state, x, y):
        out = model(pz.nx.wrap(x, "batch", "features")).unwrap("batch", "features")[:, 0]
        return jnp.mean((out - y) ** 2), state, {}

    trainer = basic_training.StatefulTrainer.build(
        model=_mlp((2, 8, 1)), optimizer_def=optax.adam(0.05), root_rng=jax.random.key(1), loss_fn=loss
    )
    x, y = jnp.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), jnp.array([0.0, 1, 1, 0])
    for _ in range(5):
        trainer.step(x=x, y=y)
    return trainer.model(pz.nx.wrap(x, "batch", "features")).unwrap("batch", "features")


def a_small_transformer():
    config = variants.llamalike_common.LlamalikeTransformerConfig(
        num_kv_heads=2,
        query_head_multiplier=2,
        embedding_dim=16,
        projection_dim=4,
        mlp_hidden_dim=32,
        num_decoder_blocks=2,
        vocab_size=23,
        mlp_variant="swiglu",
        tie_embedder_and_logits=False,
        parameter_dtype=jnp.float32,
        activation_dtype=jnp.float32,
    )
    model = variants.llamalike_common.build_llamalike_transformer(config, init_base_rng=jax.random.key(3))
    tokens = pz.nx.wrap(jnp.arange(14).reshape(2, 7) % 23, "batch", "seq")
    return model(tokens, token_positions=pz.nx.arange("seq", 7)).unwrap("batch", "seq", "vocabulary")
