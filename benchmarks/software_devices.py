"""rune's OpenCL and Vulkan executors on devices of the processor, beside tinygrad on the same PoCL.

    python benchmarks/software_devices.py --peer ../peers/bin/python     # which has tinygrad
    python benchmarks/software_devices.py --workloads 'sum*' --rounds 9

Every library has a process of its own, and they run in turns: a round is a burst of each, and a
ratio is the median of those of all rounds. Times are processor time, of all threads, so that what
else the machine does enters little. The bars: rune's OpenCL nowhere slower than tinygrad, and half
its time in the geometric mean; Vulkan (lavapipe) nowhere slower than twice OpenCL (PoCL).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from time import perf_counter, process_time
from typing import Any

import numpy as np

BURST_S = 0.2
Call = Callable[[], Any]


def normal(*shape: int) -> np.ndarray:
    """Values of a normal distribution, f32."""
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


SHAPES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "matmul 512": ((512, 512), (512, 512)),
    "x @ w.T 256x512x512": ((256, 512), (512, 512)),
    "conv 8x32x28x28 3x3": ((8, 32, 28, 28), (32, 32, 3, 3)),
    "MLP step 128x784x256x10": ((784, 256), (256, 10), (128, 784), (128, 10)),
    "sum 4M": ((1 << 22,),),
    "transpose 2048": ((2048, 2048),),
    "sum axis 0, 4096x1024": ((4096, 1024),),
    "elementwise 4M": ((1 << 22,), (1 << 22,)),
    "attention 2x4x256x64": ((2, 4, 256, 64),) * 3,
    "layernorm 1024x1024": ((1024, 1024),),
    "softmax 512x4096": ((512, 4096),),
    "cumsum 1M": ((1 << 20,),),
}


def by_rune(name: str, device: str) -> Call:
    """A call that ends when its result is there."""
    import rune
    import rune.numpy as rnp
    from rune import lax, nn

    def attention(q: Any, k: Any, v: Any) -> Any:
        return rnp.einsum("bhqk,bhkd->bhqd", nn.softmax(rnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125), v)

    def mlp(w1: Any, w2: Any, x: Any, y: Any) -> Any:
        def loss(w: Any) -> Any:
            return rnp.mean((rnp.maximum(x @ w[0], 0) @ w[1] - y) ** 2)

        return tuple(w - 0.1 * g for w, g in zip((w1, w2), rune.grad(loss)((w1, w2)), strict=True))

    def layernorm(x: Any) -> Any:
        mean, variance = rnp.mean(x, axis=1, keepdims=True), rnp.var(x, axis=1, keepdims=True)
        return (x - mean) / rnp.sqrt(variance + 1e-5)

    functions: dict[str, Callable[..., Any]] = {
        "matmul 512": lambda a, b: a @ b,
        "x @ w.T 256x512x512": lambda x, w: x @ w.T,
        "conv 8x32x28x28 3x3": lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        "MLP step 128x784x256x10": mlp,
        "sum 4M": rnp.sum,
        "transpose 2048": lambda x: x.T + 0,
        "sum axis 0, 4096x1024": lambda x: rnp.sum(x, axis=0),
        "elementwise 4M": lambda a, b: rnp.tanh(a) * b + rnp.exp(-a * a),
        "attention 2x4x256x64": attention,
        "layernorm 1024x1024": layernorm,
        "softmax 512x4096": nn.softmax,
        "cumsum 1M": rnp.cumsum,
    }
    function = rune.jit(functions[name], device=device)
    arrays = [rune.device_put(normal(*shape), device) for shape in SHAPES[name]]
    return lambda: rune.block_until_ready(function(*arrays))


def by_tinygrad(name: str, device: str) -> Call:
    """The same for tinygrad, as its users write it."""
    from tinygrad import Device, Tensor, TinyJit

    def attention(q: Any, k: Any, v: Any) -> Any:
        return ((q @ k.transpose(2, 3)) * 0.125).softmax() @ v

    def mlp(w1: Any, w2: Any, x: Any, y: Any) -> Any:
        hidden = x @ w1
        active = hidden.relu()
        error = active @ w2 - y
        out = error * (2.0 / (error.shape[0] * error.shape[1]))
        inner = (out @ w2.T) * (hidden > 0)
        return Tensor.cat((w1 - 0.1 * (x.T @ inner)).flatten(), (w2 - 0.1 * (active.T @ out)).flatten())

    functions: dict[str, Callable[..., Any]] = {
        "matmul 512": lambda a, b: a @ b,
        "x @ w.T 256x512x512": lambda x, w: x @ w.T,
        "conv 8x32x28x28 3x3": lambda x, w: x.conv2d(w, padding=1),
        "MLP step 128x784x256x10": mlp,
        "sum 4M": lambda x: x.sum(),
        "transpose 2048": lambda x: x.T.contiguous(),
        "sum axis 0, 4096x1024": lambda x: x.sum(0),
        "elementwise 4M": lambda a, b: a.tanh() * b + (-a * a).exp(),
        "attention 2x4x256x64": attention,
        "layernorm 1024x1024": lambda x: x.layernorm(),
        "softmax 512x4096": lambda x: x.softmax(),
        "cumsum 1M": lambda x: x.cumsum(0),
    }
    arrays = [Tensor(normal(*shape), device=device).realize() for shape in SHAPES[name]]
    function = TinyJit(lambda *xs: functions[name](*xs).realize())

    def call() -> Any:
        result = function(*arrays)
        Device[device].synchronize()
        return result

    for _ in range(3):  # TinyJit records its second call
        call()
    return call


def burst(call: Call) -> float:
    """Processor time of a call, in a burst of them. Units: s."""
    calls, start, begin = 0, process_time(), perf_counter()
    while calls == 0 or perf_counter() - begin < BURST_S:
        call()
        calls += 1
    return (process_time() - start) / calls


def work(library: str, device: str) -> None:
    """Answer each line, a workload's name, with the time of a burst and the result's norm."""
    make = {"rune": by_rune, "tinygrad": by_tinygrad}[library]
    calls: dict[str, Call] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in calls:
            calls[name] = make(name, device)
            result = calls[name]()
            parts = result if isinstance(result, tuple) else (result,)
            arrays = [r.numpy() if hasattr(r, "numpy") else np.asarray(r) for r in parts]
            norm = float(np.sqrt(sum(np.sum(np.square(a, dtype=np.float64)) for a in arrays)))
            print(json.dumps({"norm": norm}), flush=True)
        print(json.dumps({"seconds": burst(calls[name])}), flush=True)


# --- in turns ---------------------------------------------------------------------------------


class Worker:
    """A process that measures one library."""

    def __init__(self, python: str, library: str, device: str):
        command = [python, __file__, "--worker", library, "--device", device]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"DEBUG": "0"}
        )
        self.norms: dict[str, float] = {}

    def seconds(self, name: str) -> float:
        """The time of a burst."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(name, file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            answer = json.loads(line) if line.startswith("{") else {}
            if "norm" in answer:
                self.norms[name] = answer["norm"]
            if "seconds" in answer:
                return answer["seconds"]
        raise SystemExit(f"software_devices: a worker ended at {name!r}")


def ratio(rounds: list[dict[str, float]], one: str, other: str) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(r[one] / r[other] for r in rounds)


def main() -> None:
    """Measure the workloads that are asked for."""
    parser = argparse.ArgumentParser(description="devices of the processor, beside tinygrad")
    parser.add_argument("--peer", help="a Python that has tinygrad")
    parser.add_argument("--workloads", nargs="*", default=["*"], help="names or patterns")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.device)
        return
    workers = {d: Worker(sys.executable, "rune", f"{d}:0") for d in ("opencl", "vulkan")}
    if options.peer:
        workers["tinygrad"] = Worker(options.peer, "tinygrad", "CL")
    print(f"{'ms':26}" + "".join(f"{w:>10}" for w in workers) + f"{'/tinygrad':>11}{'vulkan/opencl':>15}")
    beside = []
    for name in (n for n in SHAPES if any(fnmatch(n, p) for p in options.workloads)):
        rounds = [{w: worker.seconds(name) for w, worker in workers.items()} for _ in range(options.rounds)]
        text = f"{name:26}" + "".join(f"{1e3 * statistics.median(r[w] for r in rounds):10.2f}" for w in workers)
        if options.peer:
            beside.append(ratio(rounds, "opencl", "tinygrad"))
            text += f"{beside[-1]:11.2f}"
        norms = [worker.norms[name] for worker in workers.values()]
        assert np.ptp(norms) <= 1e-3 * max(norms), f"{name}: results differ, of norms {norms}"
        print(f"{text}{ratio(rounds, 'vulkan', 'opencl'):15.2f}", flush=True)
    if beside:
        print(f"beside tinygrad: geometric mean {statistics.geometric_mean(beside):.2f}, most {max(beside):.2f}")


if __name__ == "__main__":
    main()
