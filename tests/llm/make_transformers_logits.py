"""Logits of tiny models of each family, where torch and transformers are:

    python -m tests.llm.make_transformers_logits

Each model's config.json is stored as transformers writes it, the
names and shapes of its parameters, and its logits; the parameters are drawn again by `drawn`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
TOKENS = (np.arange(23) * 29 % 67).astype(np.int64)
COMMON = {
    "vocab_size": 67,
    "hidden_size": 48,
    "intermediate_size": 52,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 96,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
GEMMA3 = {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}),
    "llama, scaled by parts": ("Llama", {"rope_parameters": LLAMA3}),
    "llama, scaled": ("Llama", {"rope_parameters": LINEAR, "tie_word_embeddings": True}),
    "mistral": ("Mistral", {"sliding_window": 6}),
    "phi3": ("Phi3", {"sliding_window": 7, "original_max_position_embeddings": 64}),
    "gemma": ("Gemma", {}),
    "gemma2": ("Gemma2", {"sliding_window": 5, "query_pre_attn_scalar": 24, "attn_logit_softcapping": 0.7,
                          "final_logit_softcapping": 0.9}),
    "gemma3": ("Gemma3Text", {"sliding_window": 5, "num_hidden_layers": 7, "query_pre_attn_scalar": 24}),
    "gemma3, scaled": ("Gemma3Text", {"sliding_window": 5, "num_hidden_layers": 7,
                                      "rope_parameters": {**GEMMA3, "full_attention": LINEAR}}),
}  # fmt: skip


def drawn(shapes: Mapping[str, list[int]], norm_origin: float) -> dict[str, np.ndarray]:
    """Parameters of these names and shapes; norms multiply by `norm_origin` plus their weights."""
    random = np.random.default_rng(11)
    arrays = {}
    for name, shape in sorted(shapes.items()):
        scale, mean = (0.1, 1 - norm_origin) if len(shape) == 1 else (shape[-1] ** -0.5, 0)
        arrays[name] = random.normal(mean, scale, shape).astype(np.float32)
    return arrays


def answer(torch: Any, transformers: Any, kind: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The stored data of one model."""
    architecture = {"Gemma3Text": "Gemma3"}.get(kind, kind)
    config = getattr(transformers, f"{kind}Config")(**{**COMMON, **numbers}, attn_implementation="eager")
    model = getattr(transformers, f"{architecture}ForCausalLM")(config).eval()
    state = model.state_dict()
    if config.tie_word_embeddings:
        del state["lm_head.weight"]
    shapes = {name: [*array.shape] for name, array in state.items()}
    arrays = drawn(shapes, 1.0 if "Gemma" in kind else 0.0)
    model.load_state_dict({name: torch.from_numpy(a) for name, a in arrays.items()}, strict=False)
    model.tie_weights()
    with torch.no_grad():
        logits = model(torch.from_numpy(TOKENS)[None]).logits[0].numpy()
    return {"config": json.loads(config.to_json_string()), "shapes": shapes, "logits": logits}


if __name__ == "__main__":
    import torch  # pyright: ignore[reportMissingImports]
    import transformers  # pyright: ignore[reportMissingImports]

    answers = {name: answer(torch, transformers, *case) for name, case in CASES.items()}
    np.savez_compressed(HERE / "transformers_logits_5_24.npz", **{n: a.pop("logits") for n, a in answers.items()})
    (HERE / "transformers_configs_5_24.json").write_text(json.dumps(answers) + "\n")
