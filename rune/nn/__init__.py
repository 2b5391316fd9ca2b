"""rune.nn: neural networks as plain functions, under JAX's names; losses and layers under torch's.

activations     relu, gelu, silu, softplus, elu, …     normalisation  softmax, layer_norm, …
attention       dot_product_attention                  batches        batch_norm, group_norm
convolutions    conv1d…3d, conv_transpose1d…3d         pooling        max_pool, avg_pool, …
recurrences     rnn, lstm, gru and their cells         graphs         message_passing, gcn_layer
losses          cross_entropy, mse_loss, ctc_loss, …   regularisation dropout
scaled          products of block-scaled matrices      initializers   he_normal, orthogonal, …
embeddings      embedding

Parameters and running statistics belong to the caller, in any tree of arrays; no layer object
stores them.
"""

# isort: off
import typing as _typing

from rune.listing import names as _names
from rune.absent import of as _absent
from rune.nn.activations import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hard_sigmoid as hard_sigmoid,
    hard_silu as hard_silu,
    hard_swish as hard_swish,
    hard_tanh as hard_tanh,
    identity as identity,
    leaky_relu as leaky_relu,
    log1mexp as log1mexp,
    log_sigmoid as log_sigmoid,
    mish as mish,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    soft_sign as soft_sign,
    softplus as softplus,
    sparse_plus as sparse_plus,
    sparse_sigmoid as sparse_sigmoid,
    squareplus as squareplus,
    swish as swish,
    tanh as tanh,
)
from rune.nn import initializers as initializers
from rune.nn.attention import dot_product_attention as dot_product_attention
from rune.nn.batches import (
    BatchNormState as BatchNormState,
    batch_norm as batch_norm,
    batch_norm_state as batch_norm_state,
    group_norm as group_norm,
)
from rune.nn.convolutions import (
    conv1d as conv1d,
    conv2d as conv2d,
    conv3d as conv3d,
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d,
)
from rune.nn.embeddings import embedding as embedding
from rune.nn.graphs import aggregate as aggregate, gcn_layer as gcn_layer, message_passing as message_passing
from rune.nn.regularisation import dropout as dropout
from rune.nn.losses.classes import (
    cross_entropy as cross_entropy,
    nll_loss as nll_loss,
    softmax_cross_entropy as softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels as softmax_cross_entropy_with_integer_labels,
)
from rune.nn.losses.differences import (
    huber_loss as huber_loss,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from rune.nn.losses.probabilities import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    kl_div as kl_div,
    sigmoid_binary_cross_entropy as sigmoid_binary_cross_entropy,
)
from rune.nn.losses.sequences import ctc_loss as ctc_loss
from rune.nn.normalisation import (
    layer_norm as layer_norm,
    log_softmax as log_softmax,
    logmeanexp as logmeanexp,
    logsumexp as logsumexp,
    one_hot as one_hot,
    rms_norm as rms_norm,
    softmax as softmax,
    standardize as standardize,
)
from rune.nn.pooling import (
    adaptive_avg_pool as adaptive_avg_pool,
    adaptive_max_pool as adaptive_max_pool,
    avg_pool as avg_pool,
    fractional_max_pool as fractional_max_pool,
    max_pool as max_pool,
)
from rune.nn.recurrences import (
    CellParams as CellParams,
    LSTMState as LSTMState,
    gru as gru,
    gru_cell as gru_cell,
    init_cell as init_cell,
    lstm as lstm,
    lstm_cell as lstm_cell,
    recurrent as recurrent,
    rnn as rnn,
    rnn_cell as rnn_cell,
)
from rune.nn.scaled import (
    get_scaled_dot_general_config as get_scaled_dot_general_config,
    scaled_dot_general as scaled_dot_general,
    scaled_matmul as scaled_matmul,
)

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals(), "initializers")
