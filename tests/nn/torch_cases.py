"""Calls that rune.nn and torch share: one line gives both spellings and the operands.

make_vectors.py stores what torch answers, values and gradients; test_against_torch.py compares.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Operand:
    """f32 numbers within low..high; integers below `classes` if given."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    classes: int | None = None

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        if self.classes is not None:
            return rng.integers(int(self.low), self.classes, self.shape).astype(np.int32)
        return rng.uniform(self.low, self.high, self.shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """ours(nn, *arrays) and torch_call(F, *tensors) mean the same."""

    name: str
    ours: Callable[..., Any]
    torch_call: Callable[..., Any]
    operands: tuple[Operand, ...]

    def __str__(self) -> str:
        return self.name

    def draw(self) -> list[np.ndarray]:
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [o.draw(rng) for o in self.operands]


def f(*shape: int, low: float = -2.0, high: float = 2.0) -> Operand:
    return Operand(shape, low, high)


def n(classes: int, *shape: int, low: int = 0) -> Operand:
    return Operand(shape, low, 0.0, classes)


def _same(name: str, *operands: Operand, label: str = "", **options: Any) -> Case:
    """Both libraries have the function under this name, with these options."""
    return Case(
        f"{name} {label or options or ''}".strip(),
        lambda nn, *xs: getattr(nn, name)(*xs, **options),
        lambda F, *xs: getattr(F, name)(*xs, **options),
        operands,
    )


def _conv(rank: int, x: Operand, w: Operand, label: str, bias: bool = False, **options: Any) -> Case:
    operands = (x, w, f(w.shape[0])) if bias else (x, w)
    return _same(f"conv{rank}d", *operands, label=label, **options)


def _transposed(rank: int, x: Operand, w: Operand, label: str, bias: int = 0, **options: Any) -> Case:
    operands = (x, w, f(bias)) if bias else (x, w)
    return Case(
        f"conv_transpose{rank}d {label}",
        lambda nn, *xs: getattr(nn, f"conv_transpose{rank}d")(*xs, **options),
        lambda F, *xs: getattr(F, f"conv_transpose{rank}d")(*xs, **options),
        operands,
    )


def _pool(kind: str, rank: int, x: Operand, label: str, *args: Any, **options: Any) -> Case:
    torch_names = {"divisor": "divisor_override"}
    torch_options = {torch_names.get(k, k): v for k, v in options.items()}
    return Case(
        f"{kind}_pool{rank}d {label}",
        lambda nn, a: getattr(nn, f"{kind}_pool")(a, *args, **options),
        lambda F, a: getattr(F, f"{kind}_pool{rank}d")(a, *args, **torch_options),
        (x,),
    )


CONVOLUTIONS = [
    _conv(1, f(2, 3, 9), f(4, 3, 3), "plain", bias=True),
    _conv(1, f(2, 4, 11), f(6, 2, 3), "groups", stride=2, padding=1, dilation=2, groups=2),
    _conv(1, f(3, 9), f(4, 3, 4), "same, no batch", padding="same"),
    _conv(2, f(2, 3, 7, 8), f(4, 3, 3, 2), "plain", bias=True),
    _conv(2, f(2, 4, 9, 8), f(8, 1, 3, 3), "depthwise", padding=(1, 2), groups=4),
    _conv(2, f(2, 4, 9, 8), f(6, 2, 3, 2), "all", True, stride=(2, 3), padding=(2, 0), dilation=(1, 2), groups=2),
    _conv(3, f(1, 2, 5, 6, 4), f(3, 2, 2, 3, 2), "plain", True, stride=(1, 2, 1), padding=1),
    _transposed(1, f(2, 3, 5), f(3, 4, 3), "plain", 4),
    _transposed(1, f(2, 4, 5), f(4, 3, 3), "all", 6, stride=3, padding=1, output_padding=2, groups=2, dilation=2),
    _transposed(2, f(2, 3, 4, 5), f(3, 2, 3, 2), "strides", 2, stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
    _transposed(2, f(3, 4, 5), f(3, 2, 2, 2), "no batch", stride=2),
    _transposed(3, f(1, 2, 3, 3, 3), f(2, 2, 2, 2, 2), "plain", 2, stride=2),
]

POOLS = [
    _pool("max", 1, f(2, 3, 9), "plain", 3),
    _pool("max", 2, f(2, 3, 7, 8), "all", 3, stride=2, padding=1, dilation=2),
    _pool("max", 2, f(2, 3, 7, 8), "ceil", 3, stride=2, padding=1, ceil_mode=True),
    _pool("max", 3, f(1, 2, 4, 5, 6), "plain", 2),
    _pool("avg", 1, f(2, 3, 9), "plain", 2),
    _pool("avg", 2, f(2, 3, 7, 8), "padded", 3, stride=2, padding=1),
    _pool("avg", 2, f(2, 3, 7, 8), "counted", 3, stride=2, padding=1, count_include_pad=False),
    _pool("avg", 2, f(2, 3, 7, 8), "ceil", 3, stride=2, padding=1, ceil_mode=True),
    _pool("avg", 2, f(2, 3, 7, 8), "ceil counted", 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    _pool("avg", 2, f(2, 3, 7, 8), "divisor", 3, stride=2, divisor=5),
    _pool("avg", 3, f(1, 2, 4, 5, 6), "plain", 2, stride=1),
    _pool("adaptive_avg", 1, f(2, 3, 7), "to 3", 3),
    _pool("adaptive_avg", 2, f(2, 3, 7, 8), "to 3, 5", (3, 5)),
    _pool("adaptive_max", 2, f(2, 3, 7, 8), "to 4", 4),
]

LOGITS, LABELS = f(6, 5, low=-4, high=4), n(5, 6)
REDUCTIONS = ("mean", "sum", "none")


def _ignored(targets: Any) -> Any:
    """Every third target ignored."""
    return [-100, *targets[1:3], -100, *targets[4:]]


LOSSES = [
    *(
        _same(name, f(4, 3), f(4, 3), reduction=r)
        for name in ("l1_loss", "mse_loss", "huber_loss", "smooth_l1_loss")
        for r in REDUCTIONS
    ),
    _same("huber_loss", f(4, 3), f(4, 3), delta=0.5),
    _same("smooth_l1_loss", f(4, 3), f(4, 3), beta=0.5),
    *(_same("cross_entropy", LOGITS, LABELS, reduction=r, label_smoothing=s) for r in REDUCTIONS for s in (0.0, 0.2)),
    *(
        _same(
            "cross_entropy",
            LOGITS,
            LABELS,
            f(5, low=0.1),
            label=f"weighted {r} {s}",
            reduction=r,
            label_smoothing=s,
            ignore_index=2,
        )
        for r in REDUCTIONS
        for s in (0.0, 0.2)
    ),
    _same("cross_entropy", f(2, 5, 3, 4), n(5, 2, 3, 4), label="of pixels", label_smoothing=0.1),
    _same("cross_entropy", f(5), n(5), label="of one"),
    *(
        _same(
            "cross_entropy",
            LOGITS,
            f(6, 5, low=0, high=1),
            label=f"of distributions {r}",
            reduction=r,
            label_smoothing=0.1,
        )
        for r in REDUCTIONS
    ),
    *(
        _same("nll_loss", f(6, 5, low=-4, high=0), LABELS, f(5, low=0.1), reduction=r, ignore_index=1)
        for r in REDUCTIONS
    ),
    _same("nll_loss", f(2, 5, 3), n(5, 2, 3), label="of sequences"),
    *(
        _same("kl_div", f(4, 5, low=-4, high=0), f(4, 5, low=0, high=1), reduction=r)
        for r in (*REDUCTIONS, "batchmean")
    ),
    _same("kl_div", f(4, 5, low=-4, high=0), f(4, 5, low=-4, high=0), log_target=True, reduction="sum"),
    *(
        _same("binary_cross_entropy", f(4, 3, low=0.01, high=0.99), f(4, 3, low=0, high=1), reduction=r)
        for r in REDUCTIONS
    ),
    *(
        _same("binary_cross_entropy_with_logits", f(4, 3, low=-9, high=9), f(4, 3, low=0, high=1), reduction=r)
        for r in REDUCTIONS
    ),
    Case(
        "binary_cross_entropy_with_logits weighted",
        lambda nn, x, t, w, p: nn.binary_cross_entropy_with_logits(x, t, w, pos_weight=p),
        lambda F, x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w.detach(), pos_weight=p.detach()),
        (f(4, 3), f(4, 3, low=0, high=1), f(4, 3, low=0), f(3, low=0.5)),
    ),
]


def _ctc(label: str, **options: Any) -> Case:
    lengths, sizes = [7, 5, 2], [3, 2, 2]

    def torch_call(F: Any, x: Any, t: Any) -> Any:
        return F.ctc_loss(F.log_softmax(x, -1), t.long(), lengths, sizes, **options)

    def ours(nn: Any, x: Any, t: Any) -> Any:
        return nn.ctc_loss(nn.log_softmax(x, -1), t, np.array(lengths), np.array(sizes), **options)

    return Case(f"ctc_loss {label}", ours, torch_call, (f(7, 3, 5), n(5, 3, 3, low=1)))


LOSSES += [_ctc(r, reduction=r) for r in REDUCTIONS]
LOSSES += [_ctc("without infinities", zero_infinity=True)]


def _cell(kind: str, label: str, gates: int, states: int, **options: Any) -> Case:
    size = gates * 4

    def ours(nn: Any, x: Any, *operands: Any) -> Any:
        state, weights = operands[:states], nn.CellParams(*operands[states:])
        if kind == "lstm":
            return tuple(nn.lstm_cell(weights, x, nn.LSTMState(*state)))
        return getattr(nn, f"{kind}_cell")(weights, x, *state, **options)

    def torch_call(F: Any, x: Any, *operands: Any) -> Any:
        state, weights = operands[:states], operands[states:]
        name = {"rnn": f"rnn_{options.get('nonlinearity', 'tanh')}"}.get(kind, kind)
        return F.cells(f"{name}_cell", x, state, weights)

    weights = (f(size, 3, low=-1, high=1), f(size, 4, low=-1, high=1), f(size), f(size))
    return Case(f"{kind}_cell {label}", ours, torch_call, (f(2, 3), *(f(2, 4),) * states, *weights))


def _layer(kind: str, gates: int, ways: int) -> Case:
    """Two layers; weights in torch's order."""
    size, shapes = gates * 4, []
    for inputs in (3, 4 * ways):
        for _ in range(ways):
            shapes += [f(size, inputs, low=-1, high=1), f(size, 4, low=-1, high=1), f(size), f(size)]

    def ours(nn: Any, x: Any, *weights: Any) -> Any:
        cells = [nn.CellParams(*weights[k : k + 4]) for k in range(0, len(weights), 4)]
        layers = [tuple(cells[k : k + ways]) for k in range(0, len(cells), ways)]
        outputs, last = getattr(nn, kind)(layers, x)
        return (outputs, *last) if kind == "lstm" else (outputs, last)

    def torch_call(F: Any, x: Any, *weights: Any) -> Any:
        return F.layers(kind, x, weights, ways)

    return Case(f"{kind} of two layers, {ways} way(s)", ours, torch_call, (f(5, 2, 3), *shapes))


CELLS = [
    _cell("rnn", "tanh", 1, 1),
    _cell("rnn", "relu", 1, 1, nonlinearity="relu"),
    _cell("lstm", "", 4, 2),
    _cell("gru", "", 3, 1),
    *(_layer(kind, gates, ways) for kind, gates in (("rnn", 1), ("lstm", 4), ("gru", 3)) for ways in (1, 2)),
]


def _batch_norm(training: bool) -> Case:
    def ours(nn: Any, x: Any, mean: Any, var: Any, scale: Any, bias: Any) -> Any:
        state = nn.BatchNormState(mean, var, np.zeros((), np.int32))
        y, state = nn.batch_norm(x, state, scale, bias, training=training, momentum=0.3)
        return y, state.mean, state.var

    def torch_call(F: Any, x: Any, mean: Any, var: Any, scale: Any, bias: Any) -> Any:
        running = mean.detach().clone(), var.detach().clone()  # a constant of differentiation
        return F.batch_norm(x, *running, scale, bias, training, 0.3), *running

    operands = (f(4, 3, 5, 2), f(3), f(3, low=0.5), f(3), f(3))
    return Case(f"batch_norm training={training}", ours, torch_call, operands)


NORMS = [
    _batch_norm(True),
    _batch_norm(False),
    Case(
        "group_norm",
        lambda nn, x, w, b: nn.group_norm(x, 2, w, b),
        lambda F, x, w, b: F.group_norm(x, 2, w, b),
        (f(2, 4, 3), f(4), f(4)),
    ),
    Case(
        "embedding",
        lambda nn, i, t: nn.embedding(i, t, padding_idx=2),
        lambda F, i, t: F.embedding(i.long(), t, padding_idx=2),
        (n(5, 3, 4), f(5, 2)),
    ),
    Case(
        "attention",
        lambda nn, q, k, v: nn.dot_product_attention(q, k, v),
        lambda F, q, k, v: F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2),
        (f(2, 5, 3, 4), f(2, 6, 3, 4), f(2, 6, 3, 4)),
    ),
    Case(
        "causal attention",
        lambda nn, q, k, v: nn.dot_product_attention(q, k, v, is_causal=True, scale=0.3),
        lambda F, q, k, v: F.scaled_dot_product_attention(
            *(x.transpose(1, 2) for x in (q, k, v)), is_causal=True, scale=0.3
        ).transpose(1, 2),
        (f(2, 6, 3, 4), f(2, 6, 3, 4), f(2, 6, 3, 4)),
    ),
]

CASES = [*CONVOLUTIONS, *POOLS, *LOSSES, *CELLS, *NORMS]
