"""Continue a text with a checkpoint, in 32, 8 or 4 bits.

    python examples/llm/generate.py llm-output "The following example"
    python examples/llm/generate.py llm-output "The following example" --bits 4

The folder may be that of any model of llm_config.FAMILIES whose tokenizer.json or tokenizer.model
llm_tokenizer.py or llm_sentencepiece.py reads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import llm_checkpoint as checkpoint
import llm_model as model
import numpy as np
from llm_model import Decoder

import rune


def continuation(decoder: Decoder, prompt: Sequence[int], count: int, seed: int, temperature: float) -> Iterator[int]:
    """Up to `count` tokens that follow the prompt; at temperature 0 the likeliest ones."""
    prefix, key = np.array(prompt, np.int32), rune.random.key(seed)
    places = decoder.config.max_position_embeddings - len(prompt)
    cache, _ = decoder.prefill(model.empty_cache(decoder.config), prefix)
    for remaining in range(min(count, places), 0, -model.BLOCK):
        cache, block = decoder.continued(cache, prefix, key, np.float32(temperature))
        chosen = np.asarray(block)[:remaining]
        prefix = np.append(prefix, chosen)
        yield from chosen.tolist()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a prompt and what follows, token after token, then how fast it was."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("prompt")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--bits", type=int, default=32, choices=(32, 8, 4))
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    config, params = checkpoint.load(options.folder)
    tokenizer = checkpoint.tokenizer(options.folder)
    if options.bits < 32:
        params = model.quantized(params, options.bits, group=32 if options.bits == 4 else None)
    size = sum(leaf.nbytes for leaf in rune.tree.leaves(params))
    print(f"{size / 1e6:.2f} MB of parameters in {options.bits} bits")
    prompt = [*tokenizer.begin, *tokenizer.encode(options.prompt)]
    tokens, times = [], [time.perf_counter()]
    with rune.counting() as counts:
        following = continuation(
            model.decoder(params, config), prompt, options.tokens, options.seed, options.temperature
        )
        for token in following:
            tokens.append(token)
            times.append(time.perf_counter())
    print(tokenizer.decode([*prompt, *tokens]))
    # Tokens come in blocks, and the first one waits until both programs are compiled.
    speed = model.BLOCK * per_second(times[1 :: model.BLOCK])
    print(f"{len(tokens)} tokens, {counts.compiles} programs compiled, {speed:.0f} tokens a second")


def per_second(times: Sequence[float]) -> float:
    """How many intervals fit into a second."""
    return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else float("nan")


if __name__ == "__main__":
    main()
