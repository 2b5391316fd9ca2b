"""Whole programs of people who train: agents, posteriors, mixed precision, modules of their own."""

import zlib
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, grad, jit, lax, random, tree_util, value_and_grad, vmap
from jax.flatten_util import ravel_pytree


class Transition(NamedTuple):
    done: jnp.ndarray
    action: jnp.ndarray
    value: jnp.ndarray
    reward: jnp.ndarray
    log_prob: jnp.ndarray
    obs: jnp.ndarray


def cart_pole_by_ppo(envs=4, steps=16, updates=3, width=8):
    config = {"GAMMA": 0.99, "GAE_LAMBDA": 0.95, "CLIP_EPS": 0.2, "ENT": 0.01, "VF": 0.5, "LR": 3e-3, "MINI": 2}

    def reset(key):
        return {"s": random.uniform(key, (4,), minval=-0.05, maxval=0.05), "t": jnp.zeros((), jnp.int32)}

    def env_step(key, state, action):
        x, v, th, om = state["s"]
        force = jnp.where(action == 1, 10.0, -10.0)
        temp = (force + 0.05 * om**2 * jnp.sin(th)) / 1.1
        acc = (9.8 * jnp.sin(th) - jnp.cos(th) * temp) / (0.5 * (4 / 3 - 0.1 * jnp.cos(th) ** 2 / 1.1))
        s = jnp.array(
            [x + 0.02 * v, v + 0.02 * (temp - 0.05 * acc * jnp.cos(th) / 1.1), th + 0.02 * om, om + 0.02 * acc]
        )
        t = state["t"] + 1
        done = (jnp.abs(s[0]) > 2.4) | (jnp.abs(s[2]) > 0.12) | (t >= 40)
        new = {"s": s, "t": t}
        # auto-reset
        new = jax.tree.map(lambda a, b: jnp.where(done, a, b), reset(key), new)
        return new, new["s"], jnp.where(done, 0.0, 1.0), done

    def init(key):
        ks = random.split(key, 4)
        ortho = jax.nn.initializers.orthogonal
        return {
            "torso": {"w": ortho(2**0.5)(ks[0], (4, width)), "b": jnp.zeros(width)},
            "pi": {"w": ortho(0.01)(ks[1], (width, 2)), "b": jnp.zeros(2)},
            "v": {"w": ortho(1.0)(ks[2], (width, 1)), "b": jnp.zeros(1)},
        }

    def net(p, x):
        h = jnp.tanh(x @ p["torso"]["w"] + p["torso"]["b"])
        return h @ p["pi"]["w"] + p["pi"]["b"], jnp.squeeze(h @ p["v"]["w"] + p["v"]["b"], axis=-1)

    def rollout_step(runner, _):
        params, env, obs, rng = runner
        rng, a, b = random.split(rng, 3)
        logits, value = net(params, obs)
        action = random.categorical(a, logits)
        logp = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], axis=1).squeeze(1)
        env, nobs, reward, done = vmap(env_step)(random.split(b, envs), env, action)
        return (params, env, nobs, rng), Transition(done, action, value, reward, logp, obs)

    def gae(traj, last):
        def back(c, t):
            adv, nxt = c
            delta = t.reward + config["GAMMA"] * nxt * (1 - t.done) - t.value
            adv = delta + config["GAMMA"] * config["GAE_LAMBDA"] * (1 - t.done) * adv
            return (adv, t.value), adv

        _, adv = lax.scan(back, (jnp.zeros_like(last), last), traj, reverse=True, unroll=4)
        return adv, adv + traj.value

    def loss_fn(params, traj, adv, target):
        logits, value = net(params, traj.obs)
        lp = jax.nn.log_softmax(logits)
        logp = lp[jnp.arange(lp.shape[0]), traj.action]
        clipped = traj.value + (value - traj.value).clip(-config["CLIP_EPS"], config["CLIP_EPS"])
        vloss = 0.5 * jnp.maximum((value - target) ** 2, (clipped - target) ** 2).mean()
        ratio = jnp.exp(logp - traj.log_prob)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        actor = -jnp.minimum(ratio * adv, jnp.clip(ratio, 1 - config["CLIP_EPS"], 1 + config["CLIP_EPS"]) * adv).mean()
        ent = -(jnp.exp(lp) * lp).sum(-1).mean()
        return actor + config["VF"] * vloss - config["ENT"] * ent, (vloss, actor, ent)

    def adam(p, g, opt):
        count = opt["count"] + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt["m"], g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, opt["v"], g)
        f = lambda p, m, v: p - config["LR"] * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-5)
        return jax.tree.map(f, p, m, v), dict(m=m, v=v, count=count)

    def update(carry, _):
        runner, opt = carry
        runner, traj = lax.scan(rollout_step, runner, None, steps)
        params, env, obs, rng = runner
        adv, target = gae(traj, net(params, obs)[1])

        def epoch(c, key):
            perm = random.permutation(key, envs * steps)
            flat = jax.tree.map(lambda x: x.reshape((envs * steps, *x.shape[2:]))[perm], (traj, adv, target))
            batches = jax.tree_util.tree_map(lambda x: jnp.reshape(x, [config["MINI"], -1, *x.shape[1:]]), flat)

            def minibatch(c, b):
                (l, aux), g = value_and_grad(loss_fn, has_aux=True)(c[0], *b)
                norm = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(g)))
                g = jax.tree.map(lambda x: x * jnp.minimum(1.0, 0.5 / (norm + 1e-6)), g)
                return adam(c[0], g, c[1]), (l, aux[0], aux[2])

            return lax.scan(minibatch, c, batches)

        rng, k = random.split(rng)
        (params, opt), losses = lax.scan(epoch, (params, opt), random.split(k, 2))
        return ((params, env, obs, rng), opt), {"loss": losses, "episodes": traj.done.sum(), "r": traj.reward.mean()}

    rng = random.PRNGKey(30)
    rng, k1, k2 = random.split(rng, 3)
    params = init(k1)
    env = vmap(reset)(random.split(k2, envs))
    zeros = tree_util.tree_map(jnp.zeros_like, params)
    opt = dict(m=zeros, v=zeros, count=0)
    train = jit(lambda c: lax.scan(update, c, None, updates))
    (runner, opt), metrics = train(((params, env, env["s"], rng), opt))
    return {"params": runner[0], "env": runner[1], "metrics": metrics, "count": opt["count"], "rng": runner[3]}


@partial(tree_util.register_dataclass, data_fields=["position", "momentum", "step"], meta_fields=["name"])
@dataclass(frozen=True)
class SgldState:
    position: Any
    momentum: Any
    step: Any = 0
    name: str = "sgld"


def posterior_of_a_network_by_langevin_noise(n=41, width=5, steps=23, chains=3):
    """Cyclical steps, minibatches, momentum noise; predictive moments and a Laplace check."""
    r = np.random.RandomState(3)
    x = np.linspace(-2, 2, n).astype(np.float32)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * r.randn(n).astype(np.float32)
    x, y = jnp.array(x), jnp.array(y)

    def init(key):
        k = iter(random.split(key, 4))
        return [
            (random.normal(next(k), (1, width)), jnp.zeros(width)),
            (random.normal(next(k), (width,)) / width**0.5, 0.0),
        ]

    def f(params, x):
        (w, b), (v, c) = params
        return jax.nn.softplus(x @ w + b) @ v + c

    def logpost(params, xb, yb):
        prior = -0.5 * sum(jnp.sum(jnp.square(q)) for q in jax.tree_util.tree_leaves(params))
        return prior + n / len(yb) * jax.scipy.stats.norm.logpdf(yb, f(params, xb), 0.3).sum()

    def rate(t):
        return 3e-4 * (1 + jnp.cos(jnp.pi * (t % 8) / 8))

    @partial(jit, static_argnames=("batch",), donate_argnums=())
    def step(state, key, *, batch):
        kb, kn = random.split(key)
        idx = random.choice(kb, n, (batch,), replace=False)
        g = grad(logpost)(state.position, x[idx], y[idx])
        flat, unravel = ravel_pytree(g)
        mom, _ = ravel_pytree(state.momentum)
        h = rate(state.step)
        mom = 0.9 * mom + h * flat + jnp.sqrt(2 * 0.1 * h) * random.normal(kn, flat.shape, flat.dtype) * 0.1
        pos = jax.tree.map(lambda p, m: p + m, state.position, unravel(mom))
        return replace(state, position=pos, momentum=unravel(mom), step=state.step + 1)

    def chain(key):
        ki, ks = random.split(key)
        p = init(ki)
        s = SgldState(p, jax.tree.map(jnp.zeros_like, p))
        s = jax.tree.map(jnp.asarray, s)

        def body(s, k):
            s = step(s, k, batch=7)
            return s, (lax.cond(s.step % 8 == 0, lambda p: f(p, x), lambda p: jnp.full(n, jnp.nan), s.position), s.step)

        return lax.scan(body, s, random.split(ks, steps))

    last, (preds, ts) = vmap(chain)(random.split(random.key(4), chains))
    flat, unravel = ravel_pytree(jax.tree.map(lambda a: a[0], last.position))
    lp = lambda z: logpost(unravel(z), x, y)
    hess = jax.hessian(lp)(flat)
    hvp = lambda v: jax.jvp(grad(lp), (flat,), (v,))[1]
    prec = -hess + 40 * jnp.eye(flat.size)
    cov = jnp.linalg.inv(prec)
    jac = jax.jacrev(lambda z: f(unravel(z), x[::5]))(flat)
    band = jnp.sqrt(jnp.einsum("ai,ij,aj->a", jac, cov, jac))
    return {
        "mean": jnp.nanmean(preds, axis=(0, 1)),
        "std": jnp.nanstd(preds, (0, 1)),
        "ts": ts[0],
        "band": band,
        "hvp": hvp(jnp.ones_like(flat)) - hess @ jnp.ones_like(flat) > 1.0,
        "slog": jnp.linalg.slogdet(prec),
        "names": np.array([last.name, str(jax.tree.structure(last.momentum))]),
        "count": tree_util.tree_reduce(lambda a, b: a + b.size, last, 0),
    }


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
        assert z.dtype == jnp.float16
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
        assert X.dtype == jnp.bfloat16
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
    # everything after two steps of 16-bit numbers is compared by its type and roughly
    return losses[:3], scales, ok, np.array([str(out.dtype), str(acc.dtype), str(jnp.result_type(out, i8, 1.0))])


class Scope:
    """Names to parameters, a key for each name."""

    def __init__(self, params=None, key=None, path=()):
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
    target, key, ring, o, losses = p, random.PRNGKey(8), Replay(16), 0, []
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
