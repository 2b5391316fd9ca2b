"""The calls that are compared with JAX: the tables of NumPy's, lax's, SciPy's and nn's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.differential.answers import WAYS
from tests.differential.operands import DIFFERENTIATED, VARIANTS, Operands
from tests.lax import cases as lax_cases
from tests.numpy import cases as numpy_cases
from tests.numpy.spelling import Case, case, f, i, named
from tests.scipy import cases as scipy_cases

_ACTIVATIONS = "relu relu6 sigmoid silu swish log_sigmoid softplus soft_sign hard_sigmoid hard_silu"
_ACTIVATIONS_TOO = "hard_swish hard_tanh elu celu selu gelu leaky_relu squareplus mish tanh glu"
NN: list[Case] = [
    *named(f"{_ACTIVATIONS} {_ACTIVATIONS_TOO}", f(4, 6), module="nn"),
    *named("softmax log_softmax logsumexp standardize identity", f(4, 6), module="nn"),
    case("gelu exact", lambda nn, x: nn.gelu(x, approximate=False), f(4, 6), module="nn"),
    case("elu by 2", lambda nn, x: nn.elu(x, 2.0), f(4, 6), module="nn"),
    case("softmax of columns", lambda nn, x: nn.softmax(x, axis=0), f(4, 6), module="nn"),
    case("softmax where", lambda nn, x: nn.softmax(x, where=x[:1] > -1), f(4, 6), module="nn"),
    case("log_softmax where", lambda nn, x: nn.log_softmax(x, where=x[:1] > -1), f(4, 6), module="nn"),
    case("one_hot", lambda nn, x: nn.one_hot(x, 5), i(6), smooth=False, module="nn"),
    case("one_hot of columns", lambda nn, x: nn.one_hot(x, 5, axis=0), i(6), smooth=False, module="nn"),
]


def _numbered(cases: Iterable[Case]) -> list[Case]:
    """The cases; repeated names get a number, since answers are stored by name."""
    times: Counter[str] = Counter()
    cases_with_numbers = []
    for item in cases:
        times[item.name] += 1
        name = item.name if times[item.name] == 1 else f"{item.name} ({times[item.name]})"
        cases_with_numbers.append(replace(item, name=name))
    return cases_with_numbers


CASES: dict[str, list[Case]] = {
    "numpy": _numbered(numpy_cases.CASES),
    "lax": _numbered(lax_cases.CASES),
    "scipy": _numbered(scipy_cases.CASES),
    "nn": NN,
}


def tried(case: Case) -> Iterator[tuple[str, Operands, str]]:
    """Each variant of a case, its operands, and the way of calling."""
    for variant, operands_of in VARIANTS.items():
        operands = operands_of(case)
        if operands is None:
            continue
        for way in WAYS:
            if way == "value" or (variant in DIFFERENTIATED and case.smooth):
                yield variant, operands, way


def key(case: Case, variant: str, way: str) -> str:
    """The name of an answer."""
    return f"{case.name} @ {variant}: {way}"
