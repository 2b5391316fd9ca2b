"""The errors of rune.nn and rune.optim: wrong ranks, sizes, groups and modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune import nn, optim, random
from rune.errors import RuneError
from rune.optim import deprecated

X, M, IMAGE = rnp.arange(3.0), rnp.ones((2, 3)), rnp.ones((2, 8, 8, 4))
IDS, KEY = rnp.array([0, 1]), random.key(0)
HEADS = rnp.ones((1, 2, 3, 4))


def stepped(optimizer: optim.GradientTransformation, state: Any = None) -> Any:
    return optimizer.update(X, optimizer.init(X) if state is None else state, X)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        f"{pool.__name__} of bools": (lambda pool=pool: pool(IMAGE > 0, 2), f"{pool.__name__}: cannot take bool")
        for pool in (nn.max_pool, nn.adaptive_max_pool)
    },
    **{
        f"{f.__name__} of complex numbers": (lambda f=f: f(X + 1j), f"{f.__name__}: cannot take c64[3]")
        for f in (nn.relu, nn.relu6, nn.leaky_relu, nn.elu, nn.celu)
    },
    "layers of vectors": (lambda: nn.gcn_layer(X, IDS, IDS, M), "gcn_layer: cannot take nodes f32[3]"),
    "classes by a pair": (
        lambda: nn.one_hot(IDS, (2, 2)),  # type: ignore[arg-type]
        "one_hot: cannot use num_classes",
    ),
    "labels along no axis": (
        lambda: nn.softmax_cross_entropy_with_integer_labels(X, rnp.array(1), 1),
        "softmax_cross_entropy_with_integer_labels: cannot find axis 1",
    ),
    "fractions of bools": (
        lambda: nn.fractional_max_pool(IMAGE > 0, 2, 3, key=KEY),
        "fractional_max_pool: cannot take bool",
    ),
    "groups of a vector": (lambda: nn.group_norm(X, 3), "group_norm: cannot split f32"),
    "groups that do not divide": (lambda: nn.group_norm(IMAGE, 3), "into 3 groups"),
    "a negative number of groups": (lambda: nn.group_norm(IMAGE, -2), "into -2 groups"),
    "a row that is none": (lambda: nn.embedding(IDS, M, 9), "padding_idx=9"),
    "a rate above 1": (lambda: nn.dropout(X, 1.5, KEY), "rate=1.5"),
    "a rate in words": (lambda: nn.dropout(X, "half", KEY), "rate='half'"),
    "padding in words": (lambda: nn.max_pool(IMAGE, 2, padding="MIDDLE"), "padding 'MIDDLE'"),
    "half a window": (lambda: nn.avg_pool(IMAGE, 2.5), "window 2.5"),  # type: ignore[arg-type]
    "pooling to nothing": (lambda: nn.adaptive_avg_pool(IMAGE, 0), "of size"),
    "classes that are no number": (lambda: nn.one_hot(IDS, -1), "num_classes=-1"),
    "attention of integers": (lambda: nn.dot_product_attention(*(HEADS.astype("i32"),) * 3), "floats required"),
    "a negative window": (lambda: nn.dot_product_attention(HEADS, HEADS, HEADS, local_window_size=-1), "window of -1"),
    "one target for two": (lambda: nn.nll_loss(M, rnp.array([0])), "cannot choose classes"),
    "targets that are floats": (lambda: nn.nll_loss(M, rnp.ones(2)), "integers required"),
    "too much smoothing": (lambda: nn.cross_entropy(M, IDS, label_smoothing=2.0), "label_smoothing=2.0"),
    "a mean over no batch": (lambda: nn.kl_div(1.0, 1.0, "batchmean"), "'batchmean'"),
    "a negative threshold": (lambda: nn.huber_loss(M, M, delta=-1.0), "delta=-1.0"),
    "a matrix of time and class": (lambda: nn.ctc_loss(M, IDS, IDS, IDS), "cannot align"),
    "a negative variance": (lambda: nn.initializers.variance_scaling(-1.0, "fan_in", "normal"), "scale=-1.0"),
    "an empty range": (lambda: nn.initializers.truncated_normal(lower=3.0, upper=1.0), "3.0…1.0"),
    "a cell of nothing": (lambda: nn.init_cell("rnn", 3, 0, KEY), "hidden=0"),
    "a rate that is a word": (lambda: optim.adam("fast"), "learning_rate='fast'"),  # type: ignore[arg-type]
    "a mean that grows": (lambda: stepped(optim.adam(0.1, b1=2.0)), "decay=2.0"),
    "a state of other parameters": (lambda: stepped(optim.adam(0.1), optim.adam(0.1).init(M)), "one shape required"),
    "no state": (lambda: optim.adam(0.1).update(X, None), "state of NoneType for 2 parts"),
    "a part that is none": (lambda: optim.chain(optim.sgd(0.1), None), "NoneType as an optimizer"),  # type: ignore[arg-type]
    "a negative norm": (lambda: optim.clip_by_global_norm(-1.0), "max_norm=-1.0"),
    "a mask of words": (lambda: deprecated.masked(optim.sgd(0.1), "w").init(X), "tree of bools"),
    "half a step": (lambda: deprecated.multi_steps(optim.sgd(0.1), 1.5), "every 1.5"),  # type: ignore[arg-type]
    "boundaries that fall": (
        lambda: optim.join_schedules([optim.constant_schedule(1.0)] * 3, [5, 3]),
        "boundaries that",
    ),
    "a negative boundary": (lambda: deprecated.piecewise_constant_schedule(1.0, {-1: 0.5}), "-1"),
    "a turn after the end": (
        lambda: deprecated.linear_onecycle_schedule(10, 1.0, pct_start=2.0),
        "cannot place the turns",
    ),
    "an average of other shapes": (lambda: deprecated.incremental_update(X, M, 0.5), "one shape"),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_refused_with_an_explanation(name: str):
    call, message = CALLS[name]

    with pytest.raises(RuneError) as error:
        call()
    assert message in str(error.value)
    assert ": cannot " in str(error.value)


def test_a_loss_of_any_batch_is_one_program():
    """The shapes of targets are compared with those of logits where sizes are names, too."""
    loss = rune.jit(nn.nll_loss, dims={"n": (1, 64)})

    for n in (2, 3):
        assert float(loss(rnp.ones((n, 3)), rnp.zeros(n, "i32"))) == -1.0
    assert loss.cache_size() == 1
