"""rune.nn: neural networks as plain functions, under JAX's names; losses and layers under torch's.

activations     relu, gelu, silu, softplus, elu, …     normalisation  softmax, layer_norm, …
attention       dot_product_attention                  batches        batch_norm, group_norm
convolutions    conv1d…3d, conv_transpose1d…3d         pooling        max_pool, avg_pool, …
recurrences     rnn, lstm, gru and their cells         graphs         message_passing, gcn_layer
losses          cross_entropy, mse_loss, ctc_loss, …   regularisation dropout
scaled          products of block-scaled matrices      initializers   he_normal, orthogonal, …
embeddings      embedding

Parameters and running statistics are the caller's: any tree of arrays. There are no layers here
that hold them.
"""

# isort: off
import typing as _typing

from rune.absent import of as _absent
from rune.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from rune.nn import initializers as initializers
from rune.nn.attention import dot_product_attention
from rune.nn.batches import BatchNormState, batch_norm, batch_norm_state, group_norm
from rune.nn.convolutions import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from rune.nn.embeddings import embedding
from rune.nn.graphs import aggregate, gcn_layer, message_passing
from rune.nn.regularisation import dropout
from rune.nn.losses.classes import (
    cross_entropy,
    nll_loss,
    softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels,
)
from rune.nn.losses.differences import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from rune.nn.losses.probabilities import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    kl_div,
    sigmoid_binary_cross_entropy,
)
from rune.nn.losses.sequences import ctc_loss
from rune.nn.normalisation import (
    layer_norm,
    log_softmax,
    logmeanexp,
    logsumexp,
    one_hot,
    rms_norm,
    softmax,
    standardize,
)
from rune.nn.pooling import adaptive_avg_pool, adaptive_max_pool, avg_pool, fractional_max_pool, max_pool
from rune.nn.recurrences import (
    CellParams,
    LSTMState,
    gru,
    gru_cell,
    init_cell,
    lstm,
    lstm_cell,
    recurrent,
    rnn,
    rnn_cell,
)
from rune.nn.scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
