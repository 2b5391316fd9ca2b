"""The networks of networks.py in torch, as its users write them; compiled where that helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Mlp, Sizes, mlp_data, normal
from networks import HEADS, LAYERS, RATE, attention_data, gpt_data, text_data

Call = Callable[[], Any]


def torch_networks(torch: Any) -> dict[str, Callable[[Sizes], Call]]:
    """The calls by name."""
    functional, tensor = torch.nn.functional, torch.from_numpy

    def leaf(x: np.ndarray) -> Any:
        return tensor(x.copy()).requires_grad_()

    def attention(s: Sizes) -> Call:
        q, k, v = map(tensor, attention_data(s))
        return lambda: functional.scaled_dot_product_attention(q, k, v)

    def attention_grad(s: Sizes) -> Call:
        operands = [leaf(x) for x in attention_data(s)]

        def call() -> Any:
            loss = (functional.scaled_dot_product_attention(*operands) ** 2).sum()
            return list(torch.autograd.grad(loss, operands))

        return call

    def descend(loss: Any, weights: dict[str, Any], first: str) -> Call:
        names, leaves = list(weights), list(weights.values())

        def call() -> Any:
            grads = torch.autograd.grad(loss(), leaves)
            with torch.no_grad():
                updated = {n: w - RATE * g for n, w, g in zip(names, leaves, grads)}
            return updated[first]

        return call

    def gpt(s: Sizes) -> Call:
        weights, text = {n: leaf(w) for n, w in gpt_data(s).items()}, tensor(text_data(s)).long()
        loss = torch.compile(lambda: gpt_loss(torch, weights, text))
        return descend(loss, weights, "qkv0")

    def mlp(s: Sizes) -> Call:
        return compiled_mlp(torch, mlp_data(s))

    def conv(s: Sizes) -> Call:
        x, w = tensor(normal((s.images, 64, 28, 28), 1)), tensor(normal((64, 64, 3, 3), 2))
        return lambda: functional.conv2d(x, w, padding=1)

    def conv_grad(s: Sizes) -> Call:
        x, w = leaf(normal((s.images, 64, 28, 28), 1)), leaf(normal((64, 64, 3, 3), 2))

        def call() -> Any:
            loss = (functional.conv2d(x, w, padding=1) ** 2).sum()
            return list(torch.autograd.grad(loss, [x, w]))[1]

        return call

    return {
        "attention": attention,
        "attention_grad": attention_grad,
        "gpt": gpt,
        "mlp_compiled": mlp,
        "conv": conv,
        "conv_grad": conv_grad,
    }


def norm(x: Any) -> Any:
    """Rows of mean 0 and variance 1."""
    centred = x - x.mean(-1, keepdim=True)
    return centred / ((centred**2).mean(-1, keepdim=True) + 1e-5).sqrt()


def gpt_loss(torch: Any, weights: Any, text: Any) -> Any:
    """The cross entropy of every next token."""
    functional = torch.nn.functional
    tokens, targets = text[:, :-1], text[:, 1:]
    x = weights["tokens"][tokens] + weights["places"]
    b, t, width = x.shape
    for i in range(LAYERS):
        parts = (norm(x) @ weights[f"qkv{i}"]).chunk(3, -1)
        q, k, v = (y.reshape(b, t, HEADS, -1).transpose(1, 2) for y in parts)
        attention = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + attention.transpose(1, 2).reshape(b, t, width) @ weights[f"out{i}"]
        x = x + functional.gelu(norm(x) @ weights[f"up{i}"], approximate="tanh") @ weights[f"down{i}"]
    scores = norm(x) @ weights["tokens"].T
    return functional.cross_entropy(scores.reshape(b * t, -1), targets.reshape(-1))


def compiled_mlp(torch: Any, data: Mlp) -> Call:
    """The MLP step with forward and backward through torch.compile."""
    functional, tensor = torch.nn.functional, torch.from_numpy
    weights = [tensor(w.copy()).requires_grad_() for w in data.weights]
    images, labels = tensor(data.images), tensor(data.labels).long()

    @torch.compile
    def loss(w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return functional.cross_entropy(functional.relu(images @ w1 + b1) @ w2 + b2, labels)

    @torch.compile
    def updated(grads: Any) -> Any:
        return [w - RATE * g for w, g in zip(weights, grads)]

    def step() -> Any:
        grads = torch.autograd.grad(loss(*weights), weights)
        with torch.no_grad():
            return updated(grads)

    return step
