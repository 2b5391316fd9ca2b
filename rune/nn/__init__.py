"""rune.nn: activations, normalisations and losses, as plain functions under JAX's names.

activations      relu, gelu, silu, softplus, elu, …       normalisation  softmax, layer_norm, …
losses           softmax_cross_entropy, mse, …          regularisation dropout
initializers     he_normal, glorot_uniform, zeros, …

Parameters are the caller's: any tree of arrays. There are no layers here that hold them.
"""

# isort: off
from rune.nn.activations import (
    celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_swish, hard_tanh, identity, leaky_relu,
    log_sigmoid, mish, relu, relu6, selu, sigmoid, silu, soft_sign, softplus, squareplus, swish,
    tanh,
)  # fmt: skip
from rune.nn import initializers as initializers
from rune.nn.regularisation import dropout
from rune.nn.losses import (
    mse, sigmoid_binary_cross_entropy, softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels,
)  # fmt: skip
from rune.nn.normalisation import (
    layer_norm, log_softmax, logsumexp, one_hot, rms_norm, softmax, standardize,
)  # fmt: skip
