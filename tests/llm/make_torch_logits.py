"""Logits of the same decoder by torch: `python -m tests.llm.make_torch_logits` where torch is.

torch's own functions: rms_norm, scaled_dot_product_attention, silu; float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.llm.reference import Arrays, Sizes, arrays

HERE = Path(__file__).parent
SIZES = Sizes(layers=3, heads=6, groups=2, epsilon=1e-6, theta=5e5)
SHAPE = {"vocabulary": 67, "width": 48, "hidden": 101, "head": 10}
TOKENS = (np.arange(2 * 19).reshape(2, 19) * 29 % 67).astype(np.int64)


def drawn(tied: bool) -> dict[str, np.ndarray]:
    """The parameters."""
    return arrays(**SHAPE, sizes=SIZES, tied=tied)


def logits(torch: Any, parameters: Arrays, tokens: np.ndarray, sizes: Sizes) -> np.ndarray:
    """[B, T] -> [B, T, vocabulary]."""
    f = torch.nn.functional
    p = {name: torch.from_numpy(array) for name, array in parameters.items()}

    def normed(x: Any, name: str) -> Any:
        return f.rms_norm(x, (x.shape[-1],), p[f"{name}.weight"], sizes.epsilon)

    def heads(x: Any, name: str, count: int) -> Any:
        return f.linear(x, p[f"{name}.weight"]).unflatten(-1, (count, -1)).transpose(1, 2)

    def rotated(x: Any) -> Any:
        half = x.shape[-1] // 2
        inverse = 1.0 / sizes.theta ** (torch.arange(0, 2 * half, 2).float() / (2 * half))
        angles = torch.outer(torch.arange(x.shape[-2]).float(), inverse)
        angles = torch.cat([angles, angles], -1)
        quarter_turn = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * angles.cos() + quarter_turn * angles.sin()

    x = f.embedding(torch.from_numpy(tokens), p["model.embed_tokens.weight"])
    for n in range(sizes.layers):
        layer = f"model.layers.{n}"
        h = normed(x, f"{layer}.input_layernorm")
        q = rotated(heads(h, f"{layer}.self_attn.q_proj", sizes.heads))
        k = rotated(heads(h, f"{layer}.self_attn.k_proj", sizes.groups))
        v = heads(h, f"{layer}.self_attn.v_proj", sizes.groups)
        y = f.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + f.linear(y.transpose(1, 2).flatten(2), p[f"{layer}.self_attn.o_proj.weight"])
        h = normed(x, f"{layer}.post_attention_layernorm")
        gate, up = (f.linear(h, p[f"{layer}.mlp.{name}_proj.weight"]) for name in ("gate", "up"))
        x = x + f.linear(f.silu(gate) * up, p[f"{layer}.mlp.down_proj.weight"])
    head = p.get("lm_head.weight", p["model.embed_tokens.weight"])
    return f.linear(normed(x, "model.norm"), head).numpy()


if __name__ == "__main__":
    import torch  # pyright: ignore[reportMissingImports]

    both = [logits(torch, drawn(tied), TOKENS, SIZES) for tied in (True, False)]
    np.savez_compressed(HERE / "torch_logits_2_13.npz", tied=both[0], apart=both[1])
