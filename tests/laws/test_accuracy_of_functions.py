"""Every function of one float on every executor present, within its limit in docs/accuracy.md.

The oracle computes in f64. Arguments are random bits, the usual ranges and every edge; the worst
arguments that a search through tens of millions of numbers found on any executor; and the
neighbours of zeros and poles. An executor that the page's table does not name must meet the
limit of its family. Executors that share kernels try every third function, each its own."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.backends import Device
from tests.lowering.codegen.test_llvm_math import errors, exact, samples
from tests.lowering.codegen.test_math_expand import ORACLE, pairs
from tests.support.accuracy import allowed, bars
from tests.support.close import close
from tests.support.sampling import IS_WHOLE, in_turn, is_in_turn, sharing_kernels

COMPUTING = [d for d in rune.devices() if d.target.backend != "null"]
FUNCTIONS = {p.name: p for p in ops.PRIMITIVES if p.family == "transcendental" and p.name != "integer_pow"}
SMALLEST = np.finfo(np.float32).tiny

# Where the error was largest on some executor.
HARD: dict[str, tuple[float, ...]] = {
    "rsqrt": (3.3291898408285225e-24,),
    "cbrt": (8.500308172986886e37, 0.8186769485473633, 2.891680742322933e-05),
    "exp": (69.6626968383789, 15.630716323852539, -5.843447685241699, 37.08396911621094),
    "exp2": (0.5358962416648865, 0.5751741528511047, 127.57176208496094),
    "expm1": (-0.35708048939704895, -0.3514925539493561, 87.7326431274414),
    "log": (0.7069405913352966, 0.787460446357727),
    "log2": (11.283476829528809, 0.6989408731460571, 0.7449355125427246),
    "log1p": (0.4433634579181671, 0.44940677285194397),
    "sin": (-2.370360851287842, 2710468.5, -12930.794921875),
    "cos": (-9.150394895000729e37, 7436741.5, 68.30741119384766),
    "tan": (7.648198795793194e24, -2.3593199253082275, -7899235.5, -3.9208953380584717),
    "asin": (-0.8383628129959106, 0.5010761618614197, 0.5105888843536377),
    "acos": (-0.5915095210075378, 0.4966919720172882, 0.5498784184455872),
    "atan": (1.0259101390838623, 1.4732424020767212, 0.12523441016674042),
    "sinh": (1.431312918663025, -7.59777307510376),
    "cosh": (3.120845079421997, -3.8150930404663086, -2.0503101348876953),
    "tanh": (0.6292681694030762, -0.628381609916687, 0.5004718899726868),
    "asinh": (-0.3870668113231659, 0.24471691250801086, 1.9883904457092285),
    "acosh": (1.0293879508972168, 1.007729172706604, 1.001942753791809),
    "atanh": (-0.17699530720710754, -0.061777178198099136, 0.4606260359287262),
    "erf": (0.954555869102478, 0.9659554362297058, -1.2318558362260495e-38, 0.21982635557651520),
    "erfc": (8.55455207824707, 1.5548301935195923, 9.172191619873047, -0.8256548643112183),
    "erf_inv": (0.9996585845947266, 0.9992322325706482),
    "logistic": (-1.1048475503921509, -0.000597596459556371, -16.640674591064453),
}


def near_zeros_and_poles() -> np.ndarray:
    """Numbers next to multiples of π/2, whole numbers and powers of two, and dense in between."""
    turns = np.concatenate([np.arange(-200, 201), 2.0 ** np.arange(8, 60)]) * (np.pi / 2)
    exact_points = np.concatenate([turns, np.arange(-20, 21), 2.0 ** np.arange(-30, 31)])
    middle = exact_points.astype(np.float32)
    neighbours = [np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf)]
    dense = np.concatenate([np.linspace(low, low + 1, 4001) for low in (-2, -1, 0, 1, 2)])
    return np.concatenate([middle, *neighbours, dense.astype(np.float32)])


@functools.cache
def arguments(name: str) -> tuple[np.ndarray, ...]:
    """The same number of normal numbers for every operand, and for functions of one number."""
    if name in ORACLE:
        return pairs(dtypes.f32)
    x = np.concatenate([samples(np.float32, 3_000), near_zeros_and_poles()])
    hard = np.array(HARD.get(name, ()), np.float32)
    return (np.concatenate([np.resize(hard, 8) if hard.size else x[:8], x]),)


@functools.cache
def truth(name: str) -> np.ndarray:
    """The exact values in f64."""
    args = arguments(name)
    if name not in ORACLE:
        return exact(name, *args)
    with np.errstate(all="ignore"):
        return ORACLE[name](*(a.astype(np.float64) for a in args))


def tried(device: str) -> list[str]:
    """The functions whose turn it is."""
    turns = () if IS_WHOLE else sharing_kernels()
    return [name for k, name in enumerate(FUNCTIONS) if is_in_turn(k, len(FUNCTIONS), device, turns)]


@functools.cache
def results(device: str) -> dict[str, np.ndarray]:
    """The functions on their arguments, from one compiled program."""

    def everything(args: dict[str, Any]) -> dict[str, Any]:
        return {name: FUNCTIONS[name](*xs) for name, xs in args.items()}

    outputs = rune.jit(everything, device=device)({name: arguments(name) for name in tried(device)})
    return {name: np.asarray(x) for name, x in outputs.items()}


def bar(name: str, executor: str) -> float:
    """The ulps that the page promises."""
    return bars("Functions")[name].get(executor, allowed(FUNCTIONS[name], dtypes.f32))


def are_normal(name: str) -> np.ndarray:
    """Where neither an argument nor the value is denormal; executors may flush denormal numbers."""
    with np.errstate(invalid="ignore"):
        numbers = np.abs([*arguments(name), truth(name)])
        return ~np.asarray(((numbers < SMALLEST) & (numbers > 0)).any(axis=0))


def test_the_page_has_a_bar_for_every_function():
    assert set(bars("Functions")) == set(FUNCTIONS)


def test_no_bar_of_a_compiled_function_is_above_what_rune_promises():
    columns = [(f, e) for f, row in bars("Functions").items() for e in row if e != "reference"]

    assert max(bars("Functions")[f][e] for f, e in columns) <= 2


@pytest.mark.parametrize(
    ("name", "device"), [pytest.param(n, d, id=f"{n}-{d.name}") for d in COMPUTING for n in tried(d.name)]
)
def test_a_function_is_as_exact_as_the_page_says(name: str, device: Device):
    steps = np.where(are_normal(name), errors(results(device.name)[name], truth(name)), 0)

    worst = int(np.argmax(steps))
    at = [float(a[worst]) for a in arguments(name)]
    assert steps[worst] <= bar(name, device.target.backend), f"{steps[worst]} ulps at {at}"


# A driver may evaluate constant arguments by its own rules.
CONSTANTS = {name: arguments(name)[0][[3, -5]] for name in FUNCTIONS if len(arguments(name)) == 1}


@in_turn()
@pytest.mark.parametrize("device", COMPUTING, ids=lambda d: d.name)
def test_a_function_of_a_constant_is_that_of_a_stored_number(device: Device):
    def of_constants(zero: Any) -> list[Any]:
        return [zero + FUNCTIONS[n](rnp.asarray(x)) for n, xs in CONSTANTS.items() for x in xs]

    def of_numbers(zero: Any, numbers: list[Any]) -> list[Any]:
        return [zero + FUNCTIONS[n](x) for n, x in zip(names, numbers, strict=True)]

    names = [n for n, xs in CONSTANTS.items() for _ in xs]
    inputs = [x for xs in CONSTANTS.values() for x in xs]
    zero = np.zeros(3, np.float32)

    results_of_constants = rune.jit(of_constants, device=device.name)(zero)

    # NVIDIA's compilers evaluate functions of constants differently from the device; not for WGSL.
    is_nvidias = "NVIDIA" in device.target.description and device.target.backend != "wgpu"
    ulps = 4 if is_nvidias else 0
    results_of_numbers = rune.jit(of_numbers, device=device.name)(zero, inputs)
    for name, number, constant in zip(names, results_of_numbers, results_of_constants, strict=True):
        close(number, constant, ulps=ulps, why=name)
