"""Whole programs of people who train: agents, mixed precision, modules of their own."""

import zlib
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, jit, lax, random, tree_util, value_and_grad, vmap


class Transition(NamedTuple):
    done: jnp.ndarray
    action: jnp.ndarray
    value: jnp.ndarray
    reward: jnp.ndarray
    log_prob: jnp.ndarray
    obs: jnp.ndarray


@partial(tree_util.register_dataclass, data_fields=["position", "momentum", "step"], meta_fields=["name"])
@dataclass(frozen=True)
class SgldState:
    position: Any
    momentum: Any
    step: Any = 0
    name: str = "sgld"


def mixed_precision_with_loss_scales(n=24, d=12, h=20, steps=9):
    """Master weights in f32, f16 activations, a scale that halves; Muon's steps in bf16."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float16) * np.float16(8)
    Y = rng.integers(0, 5, n)
    params = {
        "w1": jnp.array(rng.normal(size=(d, h)) * 0.3, jnp.float32),
        "w2": jnp.array(rng.normal(size=(h, 5)) * 0.3, jnp.float32),
        "scale": jnp.ones((h,)),
    }

    def forward(p, x):
        p = jax.tree.map(lambda a: a.astype(jnp.float16), p)
        z = jnp.dot(x, p["w1"], preferred_element_type=jnp.float32)
        z = z * lax.rsqrt(jnp.mean(z * z, -1, keepdims=True) + 1e-6)
        z = jax.nn.gelu(z.astype(jnp.float16) * p["scale"], approximate=True)
        return z @ p["w2"]

    def loss(p, x, y, scale):
        logits = forward(p, x).astype(jnp.float32)
        l = -jnp.mean(jnp.sum(jax.nn.one_hot(y, 5) * jax.nn.log_softmax(logits), axis=-1))
        return (l.astype(jnp.float16) * scale.astype(jnp.float16)).astype(jnp.float32), l

    def newton_schulz(G):
        X = G.astype(jnp.bfloat16)
        X = X / (jnp.linalg.norm(X.astype(jnp.float32)).astype(jnp.bfloat16) + 1e-7)
        transposed = G.shape[0] > G.shape[1]
        if transposed:
            X = X.T
        for a, b, c in [(3.4445, -4.7750, 2.0315)] * 3:
            A = X @ X.T
            X = a * X + (b * A + c * A @ A) @ X
        return X.T if transposed else X

    @jit
    def step(carry, i):
        p, mom, scale, good = carry
        (_, l), g = value_and_grad(loss, has_aux=True)(p, X, Y, scale)
        g = jax.tree.map(lambda a: a / scale, g)
        finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(a)) for a in jax.tree.leaves(g)]))

        def apply(op):
            p, mom, g = op
            mom = jax.tree.map(lambda m, g: 0.9 * m + g, mom, g)
            upd = {
                k: newton_schulz(v).astype(jnp.float32) if v.ndim == 2 else jnp.sign(v) * 0.1 for k, v in mom.items()
            }
            return jax.tree.map(lambda a, u: a - 0.05 * u, p, upd), mom, good + 1

        p, mom, good = lax.cond(finite, apply, lambda op: (op[0], op[1], jnp.zeros_like(good)), (p, mom, g))
        grow = good >= 3
        scale = jnp.where(finite, jnp.where(grow, scale * 2, scale), scale / 2)
        return (p, mom, scale, jnp.where(grow, 0, good)), (l, scale, finite)

    carry = (params, jax.tree.map(jnp.zeros_like, params), jnp.float32(2.0**17), jnp.int32(0))
    carry, (losses, scales, ok) = lax.scan(step, carry, jnp.arange(steps))
    out = forward(carry[0], X)
    i8 = jnp.clip(jnp.round(carry[0]["w1"] / jnp.max(jnp.abs(carry[0]["w1"])) * 127), -127, 127).astype(jnp.int8)
    acc = lax.dot_general(i8, i8, (((0,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    return losses[:3], scales, ok, np.array([str(out.dtype), str(acc.dtype), str(jnp.result_type(out, i8, 1.0))])


class Scope:
    """Names to parameters, a key for each name."""

    def __init__(self, params: Any = None, key=None, path=()):
        self.params, self.key, self.path = params, key, path

    def child(self, name):
        if self.key is not None:
            self.params.setdefault(name, {})
        return Scope(self.params[name], self.key, (*self.path, name))

    def param(self, name, init, *args):
        if self.key is not None and name not in self.params:
            k = random.fold_in(self.key, np.uint32(zlib.crc32("/".join((*self.path, name)).encode())))
            self.params[name] = init(k, *args)
        return self.params[name]


tree_util.register_pytree_node(Scope, lambda s: ((s.params,), s.path), lambda path, c: Scope(c[0], None, path))


def vision_transformer_of_own_modules(b=2, img=8, patch=4, dim=12, heads=3, depth=2):
    init = jax.nn.initializers

    def dense(s, x, out, use_bias=True):
        w = s.param("kernel", init.lecun_normal(), (x.shape[-1], out))
        y = jnp.einsum("...i,io->...o", x, w)
        return y + s.param("bias", init.zeros, (out,)) if use_bias else y

    def norm(s, x):
        mu, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return jax.nn.standardize(x, epsilon=1e-6) * s.param("g", init.ones, (dim,)) + 0 * (mu + var)

    def attend(s, x, mask=None):
        qkv = dense(s.child("qkv"), x, 3 * dim, use_bias=False)
        q, k, v = [t.reshape(*t.shape[:-1], heads, dim // heads) for t in jnp.split(qkv, 3, -1)]
        o = jax.nn.dot_product_attention(q, k, v, mask=mask)
        return dense(s.child("out"), o.reshape(x.shape), dim)

    def block(s, x, drop_key, train):
        x = x + attend(s.child("attn"), norm(s.child("ln1"), x))
        y = dense(s.child("up"), norm(s.child("ln2"), x), 2 * dim)
        y = jax.nn.silu(y[..., :dim]) * y[..., dim:]
        if train:
            keep = random.bernoulli(drop_key, 0.8, y.shape)
            y = jnp.where(keep, y / 0.8, 0)
        return x + dense(s.child("down"), y, dim)

    def model(s, x, key, train):
        p = img // patch
        x = x.reshape(b, p, patch, p, patch, 3).swapaxes(2, 3).reshape(b, p * p, -1)
        x = dense(s.child("patch"), x, dim)
        cls = jnp.broadcast_to(s.param("cls", init.normal(0.02), (1, 1, dim)), (b, 1, dim))
        x = jnp.concatenate([cls, x], 1) + s.param("pos", init.truncated_normal(0.02), (1, p * p + 1, dim))
        for i in range(depth):
            f = jax.checkpoint(block, static_argnums=(3,)) if s.key is None else block
            x = f(s.child(f"block_{i}"), x, random.fold_in(key, i), train)
        return dense(s.child("head"), x[:, 0], 4)

    images = jnp.asarray(np.random.default_rng(1).integers(0, 256, (b, img, img, 3), dtype=np.uint8)) / 255
    labels = jnp.arange(b) % 4
    params = {}
    model(Scope(params, random.key(0)), images, random.key(1), False)
    shapes = jax.eval_shape(lambda: model(Scope({}, random.key(0)), images, random.key(1), False))

    @partial(jit, static_argnames="train")
    def loss(params, key, train=True):
        logits = model(Scope(params), images, key, train)
        z = jax.nn.logsumexp(logits, axis=-1)
        return jnp.mean(z - logits[jnp.arange(b), labels]) + 1e-4 * jnp.mean(z**2)

    l, g = value_and_grad(loss)(params, random.key(2))
    paths = sorted(tree_util.keystr(k) for k, _ in tree_util.tree_flatten_with_path(g)[0])
    decay = tree_util.tree_map_with_path(lambda k, v: v.ndim > 1 and "pos" not in str(k[-1]), params)
    new = jax.tree.map(lambda p, g, d: p - 0.1 * g - 0.01 * p * d, params, g, decay)
    return l, loss(new, random.key(2)), loss(new, random.key(2), train=False), g, np.array(paths), np.array(str(shapes))


@dataclass
class Replay:
    """A ring in NumPy's hand, batches in jax's."""

    capacity: int
    store: dict = field(default_factory=dict)
    at: int = 0

    def add(self, **items):
        for k, v in items.items():
            v = np.asarray(v)
            self.store.setdefault(k, np.zeros((self.capacity, *v.shape), v.dtype))[self.at % self.capacity] = v
        self.at += 1

    def sample(self, key, n):
        i = random.randint(key, (n,), 0, min(self.at, self.capacity))
        return {k: jnp.asarray(v)[i] for k, v in self.store.items()}


def categorical_q_learning_with_a_ring(size=5, atoms=11, steps=40):
    z = jnp.linspace(-1.0, 1.0, atoms)
    dz = z[1] - z[0]

    def q_dist(p, o) -> Array:
        h = jax.nn.relu(p["emb"][o] @ p["w"] + p["b"])
        return jax.nn.softmax((h @ p["out"]).reshape((*h.shape[:-1], 2, atoms)), -1)

    def project(r, d, probs):
        tz = jnp.clip(r + 0.9 * (1 - d) * z, z[0], z[-1])
        b = (tz - z[0]) / dz
        lo, up = jnp.floor(b).astype(int), jnp.ceil(b).astype(int)
        same = lo == up
        out = jnp.zeros(atoms).at[lo].add(probs * (up - b + same), mode="drop")
        return out.at[up].add(probs * (b - lo))

    @jit
    def td(p, target, batch):
        def loss(p):
            nxt = q_dist(target, batch["o2"])
            best = jnp.argmax((q_dist(p, batch["o2"]) * z).sum(-1), -1)
            nxt = nxt[jnp.arange(len(best)), best]
            m = lax.stop_gradient(vmap(project)(batch["r"], batch["d"].astype(jnp.float32), nxt))
            pr = jnp.take_along_axis(q_dist(p, batch["o"]), batch["a"][:, None, None], 1)[:, 0]
            return jnp.mean(-jnp.sum(jax.scipy.special.xlogy(m, pr), -1)), m

        (l, m), g = value_and_grad(loss, has_aux=True)(p)
        return jax.tree_util.tree_map(lambda a, b: a - 0.5 * b, p, g), l, m

    @jit
    def act(p, key, o, eps):
        k1, k2 = random.split(key)
        greedy = (q_dist(p, o) * z).sum(-1).argmax()
        return lax.select(random.uniform(k1) < eps, random.randint(k2, (), 0, 2), greedy.astype(jnp.int32))

    k = random.split(random.PRNGKey(7), 3)
    p = {
        "emb": random.normal(k[0], (size, 4)),
        "w": random.normal(k[1], (4, 6)),
        "b": jnp.zeros(6),
        "out": random.normal(k[2], (6, 2 * atoms)) * 0.1,
    }
    target, key, ring, o, losses, m = p, random.PRNGKey(8), Replay(16), 0, [], None
    for t in range(steps):
        key, ka, ks = random.split(key, 3)
        a = int(act(p, ka, o, jnp.maximum(0.1, 1 - t / 20)))
        o2 = min(max(o + 2 * a - 1, 0), size - 1)
        done = o2 == size - 1
        ring.add(o=o, a=a, r=np.float32(done), d=done, o2=o2)
        o = 0 if done else o2
        if t >= 8 and t % 4 == 0:
            p, l, m = td(p, target, ring.sample(ks, 6))
            losses.append(float(l))
        if t % 10 == 9:
            target = jax.tree.map(lambda a, b: 0.5 * a + 0.5 * b, p, target)
    return jnp.array(losses), m, (q_dist(p, jnp.arange(size)) * z).sum(-1), ring.store["o"], ring.store["d"]
