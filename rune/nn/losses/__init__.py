"""Losses: one family, under torch's names with a reduction, and under Optax's without one.

classes         cross_entropy, nll_loss, softmax_cross_entropy[_with_integer_labels]
probabilities   binary_cross_entropy[_with_logits], sigmoid_binary_cross_entropy, kl_div
differences     l1_loss, mse_loss, huber_loss, smooth_l1_loss
sequences       ctc_loss

torch's functions have their classes at axis 1 of [N, C, *S] or axis 0 of [C], and
`reduction`: "mean", "sum", or "none" for one loss per example or element. Optax's functions have
their classes at `axis`, and give one loss per example.
"""
