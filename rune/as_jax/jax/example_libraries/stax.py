"""`jax.example_libraries.stax`: layers as pairs of functions (NumPyro builds flows of them).

init(rng, input_shape) -> output_shape, params
apply(params, inputs, **kwargs) -> outputs          kwargs may include rng, which Dropout needs
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import rune.numpy as rnp
from rune import absent, eval_shape, lax, nn, random
from rune.array import Array
from rune.errors import ArgumentError
from rune.nn.initializers import glorot_normal, normal, ones, zeros
from rune.transforms.eval_shape import ShapeDtypeStruct

Init = Callable[..., tuple[Any, Any]]
Apply = Callable[..., Any]
Layer = tuple[Init, Apply]
Params = Any
Padding = str | Sequence[tuple[int, int]]
Shape = Sequence[int]

glorot = glorot_normal
randn = normal
logsoftmax = nn.log_softmax


_GLOROT, _SMALL, _TINY = glorot_normal(), normal(), normal(1e-6)


def Dense(out_dim: int, W_init: Apply = _GLOROT, b_init: Apply = _SMALL) -> Layer:
    """inputs @ W + b."""

    def init(rng: Array, input_shape: Shape) -> tuple[Any, Any]:
        w_key, b_key = random.split(rng)
        w, b = W_init(w_key, (input_shape[-1], out_dim)), b_init(b_key, (out_dim,))
        return (*input_shape[:-1], out_dim), (w, b)

    def apply(params: Params, inputs: Array, **kwargs: object) -> Array:
        w, b = params
        return rnp.dot(inputs, w) + b

    return init, apply


def _convolution(
    convolve: Apply,
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Shape,
    strides: Shape | None,
    padding: Padding,
    W_init: Apply | None,
    b_init: Apply,
) -> Layer:
    of_inputs, of_kernel, of_outputs = dimension_numbers
    make_kernel = W_init or glorot_normal(of_kernel.index("I"), of_kernel.index("O"))
    steps = strides or (1,) * len(filter_shape)

    def map_to_outputs(w: Array, x: Array) -> Array:
        return convolve(x, w, steps, padding, dimension_numbers=dimension_numbers)

    def init(rng: Array, input_shape: Shape) -> tuple[Any, Any]:
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[of_inputs.index("C")]}
        kernel_shape = [channels[letter] if letter in channels else next(sizes) for letter in of_kernel]
        w_key, b_key = random.split(rng)
        w = make_kernel(w_key, kernel_shape)
        b = b_init(b_key, [out_chan if letter == "C" else 1 for letter in of_outputs])
        outputs = eval_shape(map_to_outputs, w, ShapeDtypeStruct(tuple(input_shape), w.dtype))
        return outputs.shape, (w, b)

    def apply(params: Params, inputs: Array, **kwargs: object) -> Array:
        w, b = params
        return map_to_outputs(w, inputs) + b

    return init, apply


def _general(convolve: Apply) -> Callable[..., Layer]:
    """A function that makes convolution layers; dimension numbers are those of `convolve`."""

    def layer(
        dimension_numbers: tuple[str, str, str],
        out_chan: int,
        filter_shape: Shape,
        strides: Shape | None = None,
        padding: Padding = "VALID",
        W_init: Apply | None = None,
        b_init: Apply = _TINY,
    ) -> Layer:
        """A convolution with a bias for each channel."""
        window = (out_chan, filter_shape, strides, padding)
        return _convolution(convolve, dimension_numbers, *window, W_init, b_init)

    return layer


GeneralConv, GeneralConvTranspose = _general(lax.conv_general_dilated), _general(lax.conv_transpose)
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Shape = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Apply = zeros,
    gamma_init: Apply = ones,
) -> Layer:
    """Normalisation to mean 0 and variance 1 along axes, then times gamma plus beta."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Array, input_shape: Shape) -> tuple[Any, Any]:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        beta_key, gamma_key = random.split(rng)
        beta = beta_init(beta_key, shape) if center else ()
        return input_shape, (beta, gamma_init(gamma_key, shape) if scale else ())

    def apply(params: Params, inputs: Array, **kwargs: object) -> Array:
        beta, gamma = params
        outputs = nn.standardize(inputs, axes, epsilon=epsilon)
        outputs = rnp.expand_dims(gamma, axes) * outputs if scale else outputs
        return outputs + rnp.expand_dims(beta, axes) if center else outputs

    return init, apply


def elementwise(fun: Apply, **fun_kwargs: Any) -> Layer:
    """A function of each element, without parameters."""
    return _without_parameters(lambda inputs: fun(inputs, **fun_kwargs))


def _without_parameters(apply: Apply, output_shape: Callable[[Any], Any] = lambda shape: shape) -> Layer:
    return lambda rng, input_shape: (output_shape(input_shape), ()), lambda params, inputs, **kwargs: apply(inputs)


Tanh = elementwise(rnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(rnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)


def _pooling(
    reduce_windows: Apply, window_shape: Shape, strides: Shape | None, padding: Padding, spec: str | None
) -> Layer:
    """Windows over the spatial axes; `spec`, such as "NHWC", marks the axes N and C."""
    letters = spec or "N" + "x" * len(window_shape) + "C"
    sizes, steps = iter(window_shape), iter(strides or (1,) * len(window_shape))
    window = tuple(1 if letter in "NC" else next(sizes) for letter in letters)
    step = tuple(1 if letter in "NC" else next(steps) for letter in letters)

    def apply(inputs: Array) -> Array:
        return reduce_windows(inputs, window, step, padding)

    def output_shape(input_shape: Shape) -> tuple[int, ...]:
        return eval_shape(apply, ShapeDtypeStruct(tuple(input_shape), "float32")).shape

    return _without_parameters(apply, output_shape)


def _sum_of_windows(inputs: Array, *window: Any) -> Array:
    return lax.reduce_window(inputs, 0.0, lax.add, *window)


def _mean_of_windows(inputs: Array, *window: Any) -> Array:
    # At the edges of a padded array, windows have fewer elements, so count the elements of each.
    return _sum_of_windows(inputs, *window) / _sum_of_windows(rnp.ones_like(inputs), *window)


def _max_of_windows(inputs: Array, *window: Any) -> Array:
    return lax.reduce_window(inputs, -rnp.inf, lax.max, *window)


def _pool(reduce_windows: Apply) -> Callable[..., Layer]:
    """A function that makes pooling layers of a reduction of windows."""

    def layer(
        window_shape: Shape, strides: Shape | None = None, padding: Padding = "VALID", spec: str | None = None
    ) -> Layer:
        """One number for each window."""
        return _pooling(reduce_windows, window_shape, strides, padding, spec)

    return layer


MaxPool, SumPool, AvgPool = map(_pool, (_max_of_windows, _sum_of_windows, _mean_of_windows))
Flatten = _without_parameters(
    lambda inputs: rnp.reshape(inputs, (inputs.shape[0], -1)), lambda shape: (shape[0], math.prod(shape[1:]))
)
Identity = _without_parameters(lambda inputs: inputs)
FanInSum = _without_parameters(sum, lambda shapes: shapes[0])


def FanOut(num: int) -> Layer:
    """The inputs, `num` times."""
    return _without_parameters(lambda inputs: [inputs] * num, lambda shape: [shape] * num)


def FanInConcat(axis: int = -1) -> Layer:
    """Several inputs, concatenated along an axis."""

    def output_shape(shapes: Sequence[Shape]) -> tuple[int, ...]:
        at = axis % len(shapes[0])
        return (*shapes[0][:at], sum(s[at] for s in shapes), *shapes[0][at + 1 :])

    return _without_parameters(lambda inputs: rnp.concatenate(inputs, axis), output_shape)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keep elements with probability `rate`, divided by it; all unchanged unless training."""

    def apply(params: Params, inputs: Array, *, rng: Array | None = None, **kwargs: object) -> Array:
        if rng is None:
            raise ArgumentError("Dropout: cannot draw without a key", hint="use apply(params, inputs, rng=key)")
        if mode != "train":
            return inputs
        return rnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply


def serial(*layers: Layer) -> Layer:
    """Layers, one after another."""

    def init(rng: Array, input_shape: Any) -> tuple[Any, Any]:
        params = []
        for layer_init, _ in layers:
            rng, key = random.split(rng)
            input_shape, layer_params = layer_init(key, input_shape)
            params.append(layer_params)
        return input_shape, params

    def apply(params: Params, inputs: Any, *, rng: Array | None = None, **kwargs: object) -> Any:
        for (_, layer_apply), layer_params, key in zip(layers, params, _keys(rng, len(layers)), strict=True):
            inputs = layer_apply(layer_params, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers side by side, with one input and one output for each layer."""

    def init(rng: Array, input_shape: Sequence[Any]) -> tuple[Any, Any]:
        keys = random.split(rng, len(layers))
        pairs = [make(key, shape) for (make, _), key, shape in zip(layers, keys, input_shape, strict=True)]
        return tuple(shape for shape, _ in pairs), tuple(params for _, params in pairs)

    def apply(params: Params, inputs: Sequence[Any], *, rng: Array | None = None, **kwargs: object) -> list[Any]:
        together = zip(layers, params, inputs, _keys(rng, len(layers)), strict=True)
        return [layer_apply(p, x, rng=key, **kwargs) for (_, layer_apply), p, x, key in together]

    return init, apply


def _keys(rng: Array | None, count: int) -> Sequence[Array | None]:
    return [None] * count if rng is None else list(random.split(rng, count))


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """The layer that `make_layer` makes for the shape of the inputs."""
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )


__getattr__ = absent.of(__name__)
