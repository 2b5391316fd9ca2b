"""Recurrent cells and layers: torch's formulas under `scan`; memory grows with the length.

A cell is a function of its parameters, one step's input and the state. Parameters are named tuples
    input [G·H, I]   hidden [G·H, H]   input_bias, hidden_bias [G·H] or None
with G gates one above the other: LSTM input, forget, cell, output; GRU reset, update, new.
A layer runs a cell over the leading axis of x [T, *B, I].
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import rune.numpy as rnp
from rune import control, ops, random, tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.nn.activations import relu
from rune.nn.support import record
from rune.random.streams import take_key
from rune.transforms.arguments import require_callable
from rune.typing import ArrayLike, DTypeLike

Cell = Callable[..., Any]


class CellParams(NamedTuple):
    """The weights of a cell of G gates.

    Shapes: input [G*H, I], hidden [G*H, H], biases [G*H] or None.

    >>> import rune, rune.nn as nn
    >>> params = nn.init_cell("gru", 3, 5, rune.random.key(0))
    >>> params.input.shape, params.hidden.shape, params.input_bias.shape
    ((15, 3), (15, 5), (15,))
    """

    input: Array
    hidden: Array
    input_bias: Any = None
    hidden_bias: Any = None


class LSTMState(NamedTuple):
    """The state of an LSTM: its output h and its memory c, each [*B, H].

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> params = nn.init_cell("lstm", 3, 5, rune.random.key(0))
    >>> nn.lstm_cell(params, rnp.ones(3), nn.LSTMState(rnp.zeros(5), rnp.zeros(5))).c.shape
    (5,)
    """

    h: Any
    c: Any


GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def init_cell(
    kind: Literal["rnn", "lstm", "gru"],
    inputs: int,
    hidden: int,
    key: ArrayLike | None = None,
    bias: bool = True,
    dtype: DTypeLike = "f32",
) -> CellParams:
    """Initial parameters of a cell: uniform numbers within ±1/√hidden.

    key: a key, or None to draw one from `with rune.random.seed(…)`.
    Shapes: those of CellParams, G = 1, 4 for "lstm", 3 for "gru". Types: `dtype`, floating.
    Errors: ArgumentError for an unknown kind, or a cell of no size.

    >>> import rune, rune.nn as nn
    >>> nn.init_cell("lstm", 3, 5, rune.random.key(0)).input.shape
    (20, 3)
    """
    if kind not in GATES:
        raise ArgumentError(f"init_cell: cannot make a cell of kind {kind!r} ({', '.join(GATES)})")
    if inputs < 0 or hidden < 1:
        raise ArgumentError(f"init_cell: cannot make a cell of {inputs=} and {hidden=}")
    rows, bound = GATES[kind] * hidden, 1 / math.sqrt(hidden)
    keys = random.split(take_key("init_cell", key, None), 4)
    shapes = ((rows, inputs), (rows, hidden), (rows,), (rows,))[: 4 if bias else 2]
    weights = [random.uniform(keys[n], shape, dtype, -bound, bound) for n, shape in enumerate(shapes)]
    return CellParams(*weights)


def _gates(name: str, params: CellParams, x: ArrayLike, h: ArrayLike) -> tuple[Any, Any]:
    """The contributions of the input and of the hidden state to every gate."""
    record(name, params, CellParams)
    of_input, of_hidden = x @ rnp.transpose(params.input), h @ rnp.transpose(params.hidden)
    if params.input_bias is not None:
        of_input = of_input + params.input_bias
    if params.hidden_bias is not None:
        of_hidden = of_hidden + params.hidden_bias
    return of_input, of_hidden


def rnn_cell(params: CellParams, x: ArrayLike, h: ArrayLike, nonlinearity: Literal["tanh", "relu"] = "tanh") -> Array:
    """tanh(W x + U h + b), or relu of it. Source: Elman 1990, Cognitive Science 14(2).

    Shapes: x [*B, I], h [*B, H] -> [*B, H].
    Types:  bools and integers become floats.
    Errors: ArgumentError for an unknown `nonlinearity`; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> params = nn.CellParams(rnp.ones((1, 1)), rnp.ones((1, 1)))
    >>> nn.rnn_cell(params, rnp.ones(1), rnp.ones(1), "relu")
    Array([2.], f32[1], cpu:0)
    """
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentError(f"rnn_cell: cannot use {nonlinearity!r} (tanh or relu)")
    of_input, of_hidden = _gates("rnn_cell", params, x, h)
    return (rnp.tanh if nonlinearity == "tanh" else relu)(of_input + of_hidden)


def lstm_cell(params: CellParams, x: ArrayLike, state: LSTMState) -> LSTMState:
    """c' = f c + i g,  h' = o tanh(c').

    Shapes: x [*B, I]; h and c of the state [*B, H].
    Types:  bools and integers become floats.
    Source: Hochreiter & Schmidhuber 1997; the forget gate, Gers et al. 2000.
    Errors: ShapeError if the shapes do not match exactly.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> params = nn.CellParams(rnp.zeros((4, 1)), rnp.zeros((4, 1)))
    >>> nn.lstm_cell(params, rnp.ones(1), nn.LSTMState(rnp.zeros(1), rnp.ones(1))).c
    Array([0.5], f32[1], cpu:0)
    """
    h = record("lstm_cell", state, LSTMState).h
    of_input, of_hidden = _gates("lstm_cell", params, x, h)
    i, f, g, o = rnp.split(of_input + of_hidden, 4, -1)
    c = ops.logistic(f) * state.c + ops.logistic(i) * rnp.tanh(g)
    return LSTMState(ops.logistic(o) * rnp.tanh(c), c)


def gru_cell(params: CellParams, x: ArrayLike, h: ArrayLike) -> Array:
    """n = tanh(Wₙ x + r (Uₙ h)),  h' = (1 - z) n + z h.

    Shapes: x [*B, I], h [*B, H] -> [*B, H].
    Source: Cho et al. 2014, arXiv:1406.1078, in the form that resets after the product.
    Types:  bools and integers become floats.
    Errors: ShapeError if the shapes do not match.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> params = nn.CellParams(rnp.zeros((3, 1)), rnp.zeros((3, 1)))
    >>> nn.gru_cell(params, rnp.ones(1), rnp.ones(1))
    Array([0.5], f32[1], cpu:0)
    """
    of_input, of_hidden = _gates("gru_cell", params, x, h)
    input_r, input_z, input_n = rnp.split(of_input, 3, -1)
    hidden_r, hidden_z, hidden_n = rnp.split(of_hidden, 3, -1)
    r, z = ops.logistic(input_r + hidden_r), ops.logistic(input_z + hidden_z)
    n = rnp.tanh(input_n + r * hidden_n)
    return (1 - z) * n + z * h


# --- layers -----------------------------------------------------------------------------------


def recurrent(cell: Cell, params: object, x: ArrayLike, state: ArrayLike, reverse: bool = False) -> tuple[Array, ...]:
    """A cell along the leading axis of x: (the states after each step stacked, the last state).

    cell: (params, x of one step, state) -> state.   reverse: from the last step to the first.
    Shapes: x [T, *S], state any -> each [T, *state], and the last [*state]. Types: those of state.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.recurrent(lambda rate, x, s: rate * s + x, 0.5, rnp.ones(3), rnp.zeros(()))[0]
    Array([1.  , 1.5 , 1.75], f32[3], cpu:0)
    """

    require_callable("recurrent", cell)

    def step(carry: ArrayLike, row: ArrayLike) -> tuple[Array, Array]:
        after = cell(params, row, carry)
        return after, after

    last, states = control.scan(step, state, x, reverse=reverse)
    return states, cast("Array", last)


def rnn(
    params: object, x: ArrayLike, h: ArrayLike | None = None, *, nonlinearity: Literal["tanh", "relu"] = "tanh"
) -> tuple[Array, Array]:
    """Layers of `rnn_cell` along the leading axis of x: (outputs, last states).

    params: CellParams of one layer, or for each layer CellParams or a pair of them, forwards and
            backwards (D = 2).
    h:      initial states, in the form of the last states; zeros by default.
    Shapes: x [T, *B, I] -> outputs [T, *B, D·H], last states [L·D, *B, H] of L layers.
    Types:  that of `params`, no narrower than that of x; bools and integers in x become floats.
    Errors: DtypeError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> params = nn.init_cell("rnn", 3, 5, rune.random.key(0))
    >>> outputs, last = nn.rnn(params, rnp.ones((7, 2, 3)))
    >>> outputs.shape, last.shape
    ((7, 2, 5), (1, 2, 5))
    """

    def cell(p: CellParams, row: ArrayLike, state: ArrayLike) -> Array:
        return rnn_cell(p, row, state, nonlinearity)

    return _layers("rnn", cell, params, x, h, lambda state: state)


def gru(params: object, x: ArrayLike, h: ArrayLike | None = None) -> tuple[Array, Array]:
    """Layers of `gru_cell`, as `rnn`.

    Shapes: as for `rnn`. Types: as for `rnn`.
    Errors: DtypeError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> params = nn.init_cell("gru", 3, 5, rune.random.key(0))
    >>> nn.gru(params, rnp.ones((7, 2, 3)))[0].shape
    (7, 2, 5)
    """
    return _layers("gru", gru_cell, params, x, h, lambda state: state)


def lstm(params: Any, x: ArrayLike, state: LSTMState | None = None) -> tuple[Array, LSTMState]:
    """Layers of `lstm_cell`, as `rnn`; states are LSTMState.

    Shapes: as for `rnn`. Types: as for `rnn`.
    Errors: DtypeError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> params = nn.init_cell("lstm", 3, 5, rune.random.key(0))
    >>> outputs, last = nn.lstm([params], rnp.ones((7, 2, 3)))
    >>> outputs.shape, last.c.shape
    ((7, 2, 5), (1, 2, 5))
    """
    return _layers("lstm", lstm_cell, params, x, state, lambda state: state.h)


def _layers(
    name: str, cell: Cell, params: object, x: ArrayLike, state: Any, output: Callable[[Any], Array]
) -> tuple[Any, Any]:
    x = rnp.asarray(x)
    layers = _directions(name, params)
    if state is None:
        state = _first(name, layers, x)
    last: list[Array] = []
    for layer in layers:
        outputs = []
        for number, weights in enumerate(layer):
            start = tree.map(operator.itemgetter(len(last)), state)
            states, after = recurrent(cell, weights, x, start, reverse=number == 1)
            outputs.append(output(states))
            last.append(after)
        x = outputs[0] if len(outputs) == 1 else rnp.concatenate(outputs, -1)
    return x, tree.map(lambda *states: rnp.stack(states), *last)


def _directions(name: str, params: Any) -> list[tuple[CellParams, ...]]:
    """The cells of every layer: one, or one each way."""
    layers = [params] if isinstance(params, CellParams) else list(params)
    passes = [(p,) if isinstance(p, CellParams) else tuple(p) for p in layers]
    strangers = [c for layer in passes for c in layer if not isinstance(c, CellParams)]
    if strangers or not passes:
        kind = type(strangers[0]).__name__ if strangers else "no layer"
        raise ArgumentError(f"{name}: cannot run {kind} (CellParams, or layers of them, required)")
    if any(len(layer) not in (1, 2) for layer in passes) or len(set(map(len, passes))) != 1:
        raise ArgumentError(
            f"{name}: cannot run layers of {[len(layer) for layer in passes]} cells (one in every "
            "layer, or two: forwards and backwards)"
        )
    return passes


def _first(name: str, layers: list[tuple[CellParams, ...]], x: Array) -> Any:
    hidden = layers[0][0].hidden
    count = len(layers) * len(layers[0])
    zeros = rnp.zeros((count, *x.shape[1:-1], hidden.shape[1]), hidden.dtype)
    return LSTMState(zeros, zeros) if name == "lstm" else zeros
