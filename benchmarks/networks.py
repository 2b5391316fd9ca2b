"""Networks, the same in rune and in JAX: attention, a small GPT, an autoencoder, decoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Sizes, normal

Call = Callable[[], Any]
HEADS, VOCABULARY, LAYERS, LATENT = 4, 256, 2, 16
RATE = 0.01
LAYER_SHAPES = {"qkv": (1, 3), "out": (1, 1), "up": (1, 4), "down": (4, 1)}  # rows and columns, in widths


# --- data, the same for torch -------------------------------------------------------------------


def attention_data(s: Sizes) -> list[np.ndarray]:
    """Queries, keys and values: 2 x 8 heads, positions, 64 numbers each."""
    return [normal((2, 8, s.positions, 64), seed) for seed in (1, 2, 3)]


def gpt_data(s: Sizes) -> dict[str, np.ndarray]:
    """Weights of a small GPT: an embedding that also reads out, places, and the layers'."""
    scale, width = np.float32(0.05), s.width
    weights = {"tokens": normal((VOCABULARY, width), 1) * scale, "places": normal((s.context, width), 2) * scale}
    for layer in range(LAYERS):
        for seed, (name, (rows, columns)) in enumerate(LAYER_SHAPES.items()):
            shape = rows * width, columns * width
            weights[f"{name}{layer}"] = normal(shape, 10 * layer + seed) * scale
    return weights


def text_data(s: Sizes) -> np.ndarray:
    """Eight sequences, each one token longer than the context."""
    return np.random.default_rng(5).integers(0, VOCABULARY, (8, s.context + 1)).astype(np.int32)


def vae_data(s: Sizes) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Weights of encoder and decoder, and a batch of images between 0 and 1."""
    hidden = s.hidden // 2
    shapes = {"in": (784, hidden), "code": (hidden, 2 * LATENT), "back": (LATENT, hidden), "image": (hidden, 784)}
    weights = {
        name: normal(shape, i) * np.float32((1 / shape[0]) ** 0.5) for i, (name, shape) in enumerate(shapes.items())
    }
    return weights, np.random.default_rng(7).random((s.batch, 784), np.float32)


# --- rune and JAX -------------------------------------------------------------------------------


def attention(nn: Any, q: Any, k: Any, v: Any) -> Any:
    """softmax(q kT / sqrt(d)) v of [..., T, D]."""
    return nn.softmax(q @ k.swapaxes(-1, -2) * (1 / q.shape[-1] ** 0.5), axis=-1) @ v


def norm(xp: Any, x: Any) -> Any:
    """Rows of mean 0 and variance 1."""
    centred = x - xp.mean(x, -1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred**2, -1, keepdims=True) + 1e-5)


def split_heads(xp: Any, x: Any) -> Any:
    """[B, T, 3 W] as queries, keys and values [B, heads, T, D]."""
    b, t, _ = x.shape
    return [xp.swapaxes(part.reshape(b, t, HEADS, -1), 1, 2) for part in xp.split(x, 3, -1)]


def gpt_loss(xp: Any, nn: Any, weights: Any, text: Any) -> Any:
    """The cross entropy of every next token."""
    tokens, targets = text[:, :-1], text[:, 1:]
    x = weights["tokens"][tokens] + weights["places"]
    length = tokens.shape[1]
    mask = xp.where(xp.tril(xp.ones((length, length), "bool")), 0.0, -1e9)
    for i in range(LAYERS):
        q, k, v = split_heads(xp, norm(xp, x) @ weights[f"qkv{i}"])
        weighted = nn.softmax(q @ xp.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5 + mask, axis=-1) @ v
        x = x + xp.swapaxes(weighted, 1, 2).reshape(x.shape) @ weights[f"out{i}"]
        x = x + nn.gelu(norm(xp, x) @ weights[f"up{i}"]) @ weights[f"down{i}"]
    scores = nn.log_softmax(norm(xp, x) @ weights["tokens"].T, axis=-1)
    return -xp.mean(xp.take_along_axis(scores, targets[..., None], -1))


def vae_loss(core: Any, xp: Any, nn: Any, weights: Any, images: Any, key: Any) -> Any:
    """Reconstruction's cross entropy and the divergence of the code, with one draw an image."""
    code = nn.relu(images @ weights["in"]) @ weights["code"]
    mean, log_variance = code[:, :LATENT], code[:, LATENT:]
    drawn = mean + xp.exp(0.5 * log_variance) * core.random.normal(key, mean.shape)
    logits = nn.relu(drawn @ weights["back"]) @ weights["image"]
    entropy = xp.sum(nn.softplus(logits) - images * logits, -1)
    divergence = 0.5 * xp.sum(xp.exp(log_variance) + mean**2 - 1 - log_variance, -1)
    return xp.mean(entropy + divergence)


def decode(core: Any, xp: Any, nn: Any, weights: Any, key: Any) -> Any:
    """Sample a whole context, a token at a time, with a cache of keys and values."""
    length, width = weights["places"].shape
    dynamic = core.lax.dynamic_update_slice_in_dim

    def token(i: Any, last: Any, caches: Any) -> tuple[Any, list[Any]]:
        x, after = weights["tokens"][last] + weights["places"][i], []
        for layer in range(LAYERS):
            q, k, v = xp.split((norm(xp, x) @ weights[f"qkv{layer}"]).reshape(3 * HEADS, -1), 3)
            keys, values = (dynamic(c, y[:, None], i, 1) for c, y in zip(caches[layer], (k, v)))
            scores = xp.einsum("hd,htd->ht", q, keys) * q.shape[-1] ** -0.5
            attention = nn.softmax(xp.where(xp.arange(length) <= i, scores, -1e9), axis=-1)
            x = x + xp.einsum("ht,htd->hd", attention, values).reshape(width) @ weights[f"out{layer}"]
            x = x + nn.gelu(norm(xp, x) @ weights[f"up{layer}"]) @ weights[f"down{layer}"]
            after.append((keys, values))
        return norm(xp, x) @ weights["tokens"].T, after

    def step(state: Any) -> Any:
        i, text, caches = state
        logits, caches = token(i, text[i], caches)
        drawn = core.random.categorical(core.random.fold_in(key, i), logits)
        return i + 1, text.at[i + 1].set(xp.astype(drawn, "int32")), caches

    empty = xp.zeros((HEADS, length, width // HEADS), "float32")
    start = xp.asarray(0, "int32"), xp.zeros(length + 1, "int32"), [(empty, empty)] * LAYERS
    return core.lax.while_loop(lambda state: state[0] < length, step, start)[1]


def networks(core: Any, xp: Any, nn: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """The calls by name."""

    def compiled(function: Any, *operands: Any, first: Callable[[Any], Any] = lambda x: x) -> Call:
        run = core.jit(function)
        return lambda: wait(first(run(*operands)))

    def arrays(values: Any) -> list[Any]:
        return [xp.asarray(x) for x in values]

    def named(values: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: xp.asarray(x) for name, x in values.items()}

    def attended(q: Any, k: Any, v: Any) -> Any:
        return attention(nn, q, k, v)

    def attention_grad(s: Sizes) -> Call:
        gradient = core.grad(lambda q, k, v: xp.sum(attended(q, k, v) ** 2), argnums=(0, 1, 2))
        return compiled(gradient, *arrays(attention_data(s)), first=lambda grads: grads[0])

    def descend(loss: Any) -> Any:
        def step(weights: Any, *data: Any) -> Any:
            grads = core.grad(loss)(weights, *data)
            return {name: w - RATE * grads[name] for name, w in weights.items()}

        return step

    def gpt(s: Sizes) -> Call:
        step = descend(lambda w, text: gpt_loss(xp, nn, w, text))
        return compiled(step, named(gpt_data(s)), xp.asarray(text_data(s)), first=lambda w: w["qkv0"])

    def vae(s: Sizes) -> Call:
        weights, images = vae_data(s)
        step = descend(lambda w, x, key: vae_loss(core, xp, nn, w, x, key))
        operands = named(weights), xp.asarray(images), core.random.key(3)
        return compiled(step, *operands, first=lambda w: w["in"])

    def decoding(s: Sizes) -> Call:
        return compiled(lambda w, key: decode(core, xp, nn, w, key), named(gpt_data(s)), core.random.key(4))

    return {
        "attention": lambda s: compiled(attended, *arrays(attention_data(s))),
        "attention_grad": attention_grad,
        "gpt": gpt,
        "vae": vae,
        "decode": decoding,
    }


def elementwise_functions(core: Any, xp: Any, nn: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """Single functions of many numbers, compiled; and composites of a million, not compiled."""
    functions = {name: getattr(xp, name) for name in ("exp", "exp2", "expm1", "log", "sin", "cos", "tanh")}
    functions |= {"sigmoid": nn.sigmoid, "softplus": nn.softplus, "erf": core.lax.erf}

    def one(function: Any, positive: bool = False) -> Callable[[Sizes], Call]:
        def call(s: Sizes) -> Call:
            x, run = normal(s.elements, 1), core.jit(function)
            operand = xp.asarray(abs(x) if positive else x)
            return lambda: wait(run(operand))

        return call

    def power(s: Sizes) -> Call:
        x, y, run = xp.asarray(abs(normal(s.elements, 1))), xp.asarray(normal(s.elements, 2)), core.jit(xp.power)
        return lambda: wait(run(x, y))

    calls = {f"each_{name}": one(f, positive=name == "log") for name, f in functions.items()}
    return calls | {"each_pow": power} | eager_composites(xp, xp.asarray, wait)


def eager_composites(xp: Any, array: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """Functions that are several operations each, one call at a time; NumPy's too."""

    def sinc(s: Sizes) -> Call:
        x = array(normal(s.elements // 4, 1))
        return lambda: wait(xp.sinc(x))

    def hypot(s: Sizes) -> Call:
        x, y = (array(normal(s.elements // 4, seed)) for seed in (1, 2))
        return lambda: wait(xp.hypot(x, y))

    def ldexp(s: Sizes) -> Call:
        x, n = array(normal(s.elements // 4, 1)), array(np.arange(s.elements // 4, dtype=np.int32) % 64)
        return lambda: wait(xp.ldexp(x, n))

    def deviations(s: Sizes) -> Call:
        x = array(normal(s.elements // 4, 1))
        return lambda: wait((x - xp.mean(x)) / xp.std(x))

    return {"eager_sinc": sinc, "eager_hypot": hypot, "eager_ldexp": ldexp, "eager_deviations": deviations}
