"""Jraph: graphs as tuples of arrays, their batches, and networks on them."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np


def _graph():
    return jraph.GraphsTuple(
        nodes=jnp.arange(6.0).reshape(3, 2),
        edges=jnp.arange(8.0).reshape(4, 2) / 8,
        senders=jnp.array([0, 1, 2, 0]),
        receivers=jnp.array([1, 2, 0, 2]),
        n_node=jnp.array([3]),
        n_edge=jnp.array([4]),
        globals=jnp.array([[1.0]]),
    )


def _fields(graph):
    return {k: v for k, v in graph._asdict().items() if v is not None}


def _weights(rows, columns, seed=0):
    return jax.random.normal(jax.random.PRNGKey(seed), (rows, columns)) / 2


def batch_and_unbatch():
    batch = jraph.batch([_graph(), _graph()])
    return {"batch": _fields(batch), "second": _fields(jraph.unbatch(batch)[1])}


def batch_of_numpy_and_padding():
    batch = jraph.batch_np([jax.tree_util.tree_map(np.asarray, _graph())] * 2)
    padded = jraph.pad_with_graphs(batch, n_node=9, n_edge=11, n_graph=4)
    return {
        "padded": _fields(padded),
        "nodes": jraph.get_node_padding_mask(padded),
        "edges": jraph.get_edge_padding_mask(padded),
        "graphs": jraph.get_graph_padding_mask(padded),
        "unpadded": _fields(jraph.unpad_with_graphs(padded)),
    }


def graph_network():
    network = jraph.GraphNetwork(
        update_edge_fn=lambda e, s, r, g: jnp.tanh(jnp.concatenate([e, s, r, g], 1) @ _weights(7, 2)),
        update_node_fn=lambda n, s, r, g: jnp.tanh(jnp.concatenate([n, s, r, g], 1) @ _weights(7, 2, 1)),
        update_global_fn=lambda n, e, g: jnp.concatenate([n, e, g], 1) @ _weights(5, 1, 2),
    )
    return _fields(jax.jit(network)(_graph()))


def graph_network_with_attention():
    network = jraph.GraphNetwork(
        update_edge_fn=lambda e, s, r, g: e,
        update_node_fn=lambda n, s, r, g: n + r,
        attention_logit_fn=lambda e, s, r, g: jnp.sum(s * r, axis=1, keepdims=True),
        attention_reduce_fn=lambda e, w: e * w,
    )
    return _fields(network(_graph()))


def interaction_and_relation_networks():
    interaction = jraph.InteractionNetwork(lambda e, s, r: e + s - r, lambda n, e: n * 0.5 + e)
    relation = jraph.RelationNetwork(lambda s, r: s * r, lambda e: e.sum(axis=1))
    return {"interaction": _fields(interaction(_graph())), "relation": relation(_graph()).globals}


def deep_sets_and_map_features():
    sets = jraph.DeepSets(lambda n, g: jnp.tanh(n) * g, lambda n: n * 2)
    mapped = jraph.GraphMapFeatures(lambda e: e + 1, lambda n: n @ _weights(2, 3), lambda g: -g)
    return {"sets": _fields(sets(_graph())), "mapped": _fields(mapped(_graph()))}


def graph_convolution():
    convolution = jraph.GraphConvolution(
        lambda n: n @ _weights(2, 4), symmetric_normalization=True, add_self_edges=True
    )
    return convolution(_graph()).nodes


def graph_attention_network():
    network = jraph.GAT(
        attention_query_fn=lambda n: n @ _weights(2, 3),
        attention_logit_fn=lambda s, r, e: jnp.concatenate([s, r], 1) @ _weights(6, 1, 1),
        node_update_fn=jax.nn.relu,
    )
    return network(_graph()).nodes


def gradient_of_a_network():
    def loss(w):
        network = jraph.InteractionNetwork(lambda e, s, r: jnp.tanh(s @ w) * e, lambda n, e: n + e)
        return (network(_graph()).nodes ** 2).sum()

    return jax.jit(jax.value_and_grad(loss))(_weights(2, 2))


def segments():
    data, ids = jnp.array([1.0, 3.0, 2.0, -1.0, 5.0]), jnp.array([0, 0, 1, 1, 3])
    return {
        "sum": jraph.segment_sum(data, ids, 4),
        "mean": jraph.segment_mean(data, ids, 4),
        "variance": jraph.segment_variance(data, ids, 4),
        "normalize": jraph.segment_normalize(data, ids, 4),
        "max": jraph.segment_max_or_constant(data, ids, 4),
        "min": jraph.segment_min_or_constant(data, ids, 4),
        "softmax": jraph.segment_softmax(data, ids, 4),
        "partition": jraph.partition_softmax(data, jnp.array([2, 3]), 5),
    }


def batches_of_limited_size():
    graphs = [jax.tree_util.tree_map(np.asarray, _graph()) for _ in range(3)]
    batches = jraph.dynamically_batch(iter(graphs), n_node=8, n_edge=10, n_graph=3)
    return [_fields(batch) for batch in batches]


def graphs_under_vmap_and_scan():
    network = jraph.GraphNetwork(lambda e, s, r, g: e * 0.5 + s, lambda n, s, r, g: jnp.tanh(n + r))

    def step(graph, _):
        graph = network(graph)
        return graph, graph.nodes.mean()

    final, means = jax.lax.scan(step, _graph(), None, length=3)
    batched = jax.vmap(lambda n: network(_graph()._replace(nodes=n)).nodes)(jnp.ones((2, 3, 2)))
    return {"final": _fields(final), "means": means, "batched": batched}
