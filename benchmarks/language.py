"""Tokens a second of the language model of examples/llm: rune, torch (eager, compiled) and JAX.

    python benchmarks/language.py                            the libraries of this Python
    python benchmarks/language.py --peers PYTHON             torch and JAX of another one
    python benchmarks/language.py --size medium --rounds 9

Each library has a process of its own; they take turns, and only one works at a time. Ratios are
formed within a round, so that a machine that slows down does so for all. On one core, the default,
seconds are those of the processor, so that others who use the machine count less. Before anything
is timed, the losses and the decoded tokens of all are compared.

train    a step of gradient descent on 8 x 128 tokens, f32
decode   tokens one after the other with a cache: rune's has a symbolic length; JAX's is masked.
         rune and one of JAX's rows draw 16 tokens in a call, the others call for each
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

HERE = Path(__file__).parent
LIBRARIES = ("rune", "torch", "torch compiled", "jax", "jax scanned")
RATE, CONTEXT, BATCH, DECODED = 0.01, 128, 8, 64
AT_ONCE = 16  # tokens of one call, where they are drawn on the device
SIZES = {
    "small": (512, 128, 344, 4, 4, 2, 32, 256),  # the size that the example trains
    "medium": (2048, 512, 1376, 8, 8, 4, 64, 256),
}
TASKS = ("train", "decode")
Bench = tuple[Callable[[np.ndarray], float], Callable[[int], list[int]]]  # loss of a step, decoded tokens


def text(size: str) -> np.ndarray:
    """The tokens of a step, i32[BATCH, CONTEXT + 1]."""
    return np.random.default_rng(5).integers(0, SIZES[size][0], (BATCH, CONTEXT + 1)).astype(np.int32)


# --- rune ---------------------------------------------------------------------------------------


def with_rune(arrays: Mapping[str, np.ndarray], size: str) -> Bench:
    """The example itself."""
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "examples" / "llm")]
    import llm_model as model
    import llm_training as training

    import rune

    config = model.Config(*SIZES[size])
    names = [
        rune.tree.keystr(p, simple=True, separator=".") for p, _ in rune.tree.leaves_with_path(model.shapes(config))
    ]
    treedef = rune.tree.structure(model.shapes(config))
    params = rune.tree.unflatten(treedef, [rune.numpy.asarray(arrays[name]) for name in names])

    @rune.jit
    def step(params: Any, tokens: Any) -> tuple[Any, Any]:
        value, gradients = rune.value_and_grad(training.loss)(params, tokens, config)
        return value, rune.tree.map(lambda w, g: w - RATE * g, params, gradients)

    ready = model.decoder(params, config)

    key = rune.random.key(0)

    def decode(count: int) -> list[int]:
        prefix, cache = np.array([7], np.int32), model.empty_cache(config)
        for _ in range(count // model.BLOCK):
            cache, block = ready.continued(cache, prefix, key, np.float32(0))
            prefix = np.append(prefix, np.asarray(block))
        return prefix.tolist()

    return lambda tokens: float(step(params, tokens)[0]), decode


# --- JAX ----------------------------------------------------------------------------------------


def with_jax(arrays: Mapping[str, np.ndarray], size: str, scanned: bool) -> Bench:
    """The same in JAX, as its users write it: token by token, or AT_ONCE in a scan."""
    import jax
    import jax.numpy as jnp

    _, _, _, layers, heads, groups, head, capacity = SIZES[size]
    weights = {name: jnp.asarray(array) for name, array in arrays.items()}

    def norm(x: Any, weight: Any) -> Any:
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * weight

    def rotated(x: Any, places: Any) -> Any:
        half = head // 2
        angles = places[:, None, None] * 10000.0 ** (-jnp.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return jnp.concatenate(
            [a * jnp.cos(angles) - b * jnp.sin(angles), b * jnp.cos(angles) + a * jnp.sin(angles)], -1
        )

    def forward(w: Any, tokens: Any, places: Any, attend: Callable[..., Any]) -> Any:
        x = w["model.embed_tokens.weight"][tokens]
        for n in range(layers):
            part = lambda name, n=n: w[f"model.layers.{n}.{name}.weight"]  # noqa: E731
            y = norm(x, part("input_layernorm"))
            q, k, v = (
                (y @ part(f"self_attn.{name}_proj").T).reshape(*y.shape[:-1], count, head)
                for name, count in (("q", heads), ("k", groups), ("v", groups))
            )
            y = attend(n, rotated(q, places), rotated(k, places), v)
            x = x + y.reshape(*x.shape[:-1], -1) @ part("self_attn.o_proj").T
            y = norm(x, part("post_attention_layernorm"))
            gated = jax.nn.silu(y @ part("mlp.gate_proj").T) * (y @ part("mlp.up_proj").T)
            x = x + gated @ part("mlp.down_proj").T
        return norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T

    def loss(w: Any, tokens: Any) -> Any:
        causal = lambda n, q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
        logits = forward(w, tokens[:, :-1], jnp.arange(CONTEXT), causal)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1)
        return -jnp.mean(chosen)

    @jax.jit
    def step(w: Any, tokens: Any) -> tuple[Any, Any]:
        value, gradients = jax.value_and_grad(loss)(w, tokens)
        return value, jax.tree.map(lambda a, g: a - RATE * g, w, gradients)

    def one(w: Any, cache: Any, token: Any, place: Any) -> tuple[Any, Any]:
        longer = dict(cache)

        def attend(n: int, q: Any, k: Any, v: Any) -> Any:
            for name, new in (("k", k), ("v", v)):
                longer[f"{name}{n}"] = jax.lax.dynamic_update_slice_in_dim(cache[f"{name}{n}"], new, place, 0)
            mask = (jnp.arange(capacity) <= place)[None, None]
            return jax.nn.dot_product_attention(q, longer[f"k{n}"], longer[f"v{n}"], mask=mask)

        logits = forward(w, token[None], place[None], attend)
        return longer, logits[0]

    def several(w: Any, cache: Any, token: Any, place: Any) -> tuple[Any, Any]:
        def next_one(carry: tuple[Any, Any], place: Any) -> tuple[tuple[Any, Any], Any]:
            cache, logits = one(w, carry[0], carry[1], place)
            token = jnp.argmax(logits).astype("int32")
            return (cache, token), token

        (cache, _), tokens = jax.lax.scan(next_one, (cache, token), place + jnp.arange(AT_ONCE))
        return cache, tokens

    several = jax.jit(several, donate_argnums=1)
    one_at_a_time = jax.jit(one, donate_argnums=1)

    def decode(count: int) -> list[int]:
        cache = {f"{name}{n}": jnp.zeros((capacity, groups, head)) for name in "kv" for n in range(layers)}
        tokens = [7]
        while len(tokens) <= count:
            token, place = np.int32(tokens[-1]), np.int32(len(tokens) - 1)
            if scanned:
                cache, block = several(weights, cache, token, place)
                tokens += np.asarray(block).tolist()
            else:
                cache, logits = one_at_a_time(weights, cache, token, place)
                tokens.append(int(np.asarray(logits).argmax()))
        return tokens

    return lambda tokens: float(step(weights, tokens)[0]), decode


# --- torch --------------------------------------------------------------------------------------


def with_torch(arrays: Mapping[str, np.ndarray], size: str, compiled: bool) -> Bench:
    """The same in torch, with its own functions for norms and attention."""
    import torch
    from torch.nn import functional as f

    _, _, _, layers, heads, groups, head, capacity = SIZES[size]
    weights = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
    frequencies = 10000.0 ** (-torch.arange(head // 2) / (head // 2))

    def rotated(x: Any, places: Any) -> Any:
        angles = places[:, None] * frequencies
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def forward(tokens: Any, places: Any, attend: Callable[..., Any]) -> Any:
        w = weights
        x = f.embedding(tokens, w["model.embed_tokens.weight"])
        for n in range(layers):
            part = lambda name, n=n: w[f"model.layers.{n}.{name}.weight"]  # noqa: E731
            y = f.rms_norm(x, x.shape[-1:], part("input_layernorm"), 1e-5)
            q, k, v = (
                f.linear(y, part(f"self_attn.{name}_proj")).unflatten(-1, (count, head)).transpose(1, 2)
                for name, count in (("q", heads), ("k", groups), ("v", groups))
            )
            y = attend(n, rotated(q, places), rotated(k, places), v).transpose(1, 2).flatten(2)
            x = x + f.linear(y, part("self_attn.o_proj"))
            y = f.rms_norm(x, x.shape[-1:], part("post_attention_layernorm"), 1e-5)
            gated = f.silu(f.linear(y, part("mlp.gate_proj"))) * f.linear(y, part("mlp.up_proj"))
            x = x + f.linear(gated, part("mlp.down_proj"))
        return f.linear(f.rms_norm(x, x.shape[-1:], w["model.norm.weight"], 1e-5), w["model.embed_tokens.weight"])

    def loss(tokens: Any) -> Any:
        causal = lambda n, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)  # noqa: E731
        logits = forward(tokens[:, :-1], torch.arange(CONTEXT), causal)
        return f.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def one(cache: Any, token: Any, place: Any) -> Any:
        mask = (torch.arange(capacity) <= place)[None]

        def attend(n: int, q: Any, k: Any, v: Any) -> Any:
            for name, new in (("k", k), ("v", v)):
                cache[f"{name}{n}"].index_copy_(2, place, new)
            return f.scaled_dot_product_attention(q, cache[f"k{n}"], cache[f"v{n}"], attn_mask=mask, enable_gqa=True)

        return forward(token[None], place, attend)[0, -1]

    if compiled:
        loss, one = torch.compile(loss), torch.compile(one)

    def step(tokens: np.ndarray) -> float:
        value = loss(torch.from_numpy(tokens).long())
        gradients = torch.autograd.grad(value, list(weights.values()))
        with torch.no_grad():
            _ = [w - RATE * g for w, g in zip(weights.values(), gradients)]
        return float(value.detach())

    def decode(count: int) -> list[int]:
        cache = {f"{name}{n}": torch.zeros(1, groups, capacity, head) for name in "kv" for n in range(layers)}
        tokens = [7]
        with torch.no_grad():
            for place in range(count):
                logits = one(cache, torch.tensor([tokens[-1]]), torch.tensor([place]))
                tokens.append(int(logits.argmax()))
        return tokens

    return step, decode


# --- the workers, and who asks them -------------------------------------------------------------


def work(library: str, folder: Path, size: str, cores: int) -> None:
    """Answer on standard output what is asked on standard input: a line of JSON each."""
    os.sched_setaffinity(0, [*range(cores)])  # before libraries start their threads
    clock = time.process_time if cores == 1 else time.perf_counter
    arrays = dict(np.load(folder / "weights.npz"))
    if library.startswith("torch"):
        step, decode = with_torch(arrays, size, compiled="compiled" in library)
    else:
        step, decode = with_rune(arrays, size) if library == "rune" else with_jax(arrays, size, "scanned" in library)
    tokens = text(size)
    print(json.dumps({"loss": step(tokens), "tokens": decode(DECODED)}), flush=True)
    for line in sys.stdin:
        began, count = clock(), 0
        while clock() - began < 1.0:
            step(tokens) if line.strip() == "train" else decode(DECODED)
            count += BATCH * CONTEXT if line.strip() == "train" else DECODED
        print(json.dumps(count / (clock() - began)), flush=True)


def answer_of(worker: subprocess.Popen[str], question: str) -> Any:
    """The answer of a worker."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    if question:
        worker.stdin.write(question + "\n")
        worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def weights(size: str) -> dict[str, np.ndarray]:
    """Parameters by the names of a checkpoint."""
    vocabulary, width, hidden, layers, heads, groups, head, _ = SIZES[size]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens": (vocabulary, width), "model.norm": (width,)}
    for n in range(layers):
        names = {"input_layernorm": (width,), "post_attention_layernorm": (width,)}
        names |= {f"self_attn.{x}_proj": (c * head, width) for x, c in (("q", heads), ("k", groups), ("v", groups))}
        names |= {"self_attn.o_proj": (width, heads * head), "mlp.down_proj": (width, hidden)}
        names |= {"mlp.gate_proj": (hidden, width), "mlp.up_proj": (hidden, width)}
        shapes |= {f"model.layers.{n}.{name}": shape for name, shape in names.items()}
    random = np.random.default_rng(3)
    drawn = {n: np.ones(s) if len(s) == 1 else random.normal(0, s[1] ** -0.5, s) for n, s in shapes.items()}
    return {f"{name}.weight": array.astype(np.float32) for name, array in drawn.items()}


def main() -> None:
    """Compare, then time in turns, and print tokens a second."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", default=sys.executable, help="the Python that has torch and JAX")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--task", nargs="*", default=TASKS, choices=TASKS)
    parser.add_argument("--library", nargs="*", default=LIBRARIES, choices=LIBRARIES)
    parser.add_argument("--work", nargs=2, metavar=("LIBRARY", "FOLDER"))
    options = parser.parse_args()
    if options.work:
        work(options.work[0], Path(options.work[1]), options.size, options.cores)
        return
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "weights.npz", **weights(options.size))  # type: ignore[arg-type]
        workers: dict[str, subprocess.Popen[str]] = {}
        for library in options.library:
            python = sys.executable if library == "rune" else options.peers
            command = [python, __file__, "--size", options.size, "--cores", str(options.cores)]
            command += ["--work", library, folder]
            environment = {**os.environ, "OMP_NUM_THREADS": str(options.cores)}
            workers[library] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
        try:
            compare(workers, options.rounds, options.task)
        finally:
            for worker in workers.values():
                worker.kill()
                worker.communicate()


def compare(workers: Mapping[str, subprocess.Popen[str]], rounds: int, tasks: Sequence[str]) -> None:
    """Time in turns. Errors: AssertionError for results that differ."""
    first = {library: answer_of(worker, "") for library, worker in workers.items()}
    reference = next(iter(first.values()))
    for library, answer in first.items():
        assert abs(answer["loss"] / reference["loss"] - 1) < 1e-4, (library, answer["loss"], reference["loss"])
        assert answer["tokens"] == reference["tokens"], library
    for task in tasks:
        speeds: dict[str, list[float]] = {library: [] for library in workers}
        for number in range(rounds):
            order = [*workers][number % len(workers) :] + [*workers][: number % len(workers)]
            for library in order:
                speeds[library].append(answer_of(workers[library], task))
        for library, values in speeds.items():
            ratio = median(a / b for a, b in zip(speeds["rune"], values)) if "rune" in speeds else float("nan")
            print(f"{task:7} {library:15} {median(values):10.0f} tokens/s   rune is {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
