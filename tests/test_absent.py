"""The error for a missing name says what to use instead; `hasattr` does not load the tables."""

from __future__ import annotations

import copy
import subprocess
import sys
from importlib import import_module

import pytest

import rune
import rune.numpy as rnp
from rune.absent import MissingName, hint, of_numpy, of_optax, of_scipy
from rune.absent.of_jax import CONFIG, LAX, MISSING

INSTEAD = {
    "rune.debug_key_reuse": "use rune.configure(check_keys=True)",
    "rune.default_backend": "use rune.devices()",
    "rune.config.update": "use rune.configure(check_nans=True)",
    "rune.numpy.putmask": "x.at[...] gives a changed copy",
    "rune.numpy.float8_e3m4": "Number types that no executor has",
    "rune.lax.composite": "It names XLA",
    "rune.optim.contrib": "pip install optax, and import rune.as_jax before it",
    "rune.optim.losses": "Losses that rune.nn lacks: most are a line of rune.numpy",
    "rune.optim.tree_utils": "rune.tree.map with operators",
    "rune.optim.fromage": "pip install optax, and import rune.as_jax before it",
    "rune.scipy.io": "Files, data sets",
    "rune.scipy.optimize.linprog": "Minimisation under constraints",
    "rune.numpy.relu": "use rune.nn.relu",
    "rune.nn.einsum": "use rune.numpy.einsum",
    "rune.numpy.linalg.inverse": None,
    "rune.gard": "did you mean rune.grad?",
    "rune.random.unifrom": "did you mean rune.random.uniform?",
    "rune.scipy.special.logsumxp": "did you mean rune.scipy.special.logsumexp?",
    "rune.numpy.zzzzzz": None,
    "rune.debug.breakpont": "rune.debug.breakpoint",
}


@pytest.mark.parametrize("path", INSTEAD)
def test_a_missing_name_raises_an_error_that_names_its_replacement(path: str):
    module, _, name = path.rpartition(".")

    with pytest.raises(AttributeError) as error:
        getattr(import_module(module), name)

    message = str(error.value)
    assert message.startswith(f"module {module!r} has no attribute {name!r}")
    assert (INSTEAD[path] or "") in message
    assert ("hint" in message) == (INSTEAD[path] is not None)


def test_every_name_of_the_tables_has_its_reason():
    tables = {
        "rune": [MISSING],
        "rune.lax": [LAX],
        "rune.config": [CONFIG],
        "rune.numpy": [of_numpy.MISSING, of_numpy.OF_JAX],
        "rune.optim": [of_optax.MISSING],
        "rune.scipy": [of_scipy.MODULES],
        **{f"rune.scipy.{m}": [table] for m, table in of_scipy.MISSING.items()},
    }
    for module, tables_of_module in tables.items():
        for table in tables_of_module:
            for reason, names in table.items():
                for name in names.split():
                    text = hint(module, name.replace("*", "x"))
                    assert text is not None
                    assert text[3:] in reason.replace("`", "")


def test_hasattr_and_getattr_treat_a_missing_name_as_absent():
    assert not hasattr(rune, "debug_key_reuse")
    assert getattr(rnp, "putmask", None) is None
    assert str(copy.copy(MissingName("rune", "gard"))).endswith("did you mean rune.grad?")


def test_tables_are_loaded_when_an_error_is_shown():
    code = (
        "import sys, rune\n"
        "hasattr(rune, 'debug_key_reuse'), hasattr(rune.numpy, 'cumsm')\n"
        "loaded = lambda: any(m.startswith('rune.absent.') for m in sys.modules)\n"
        "print(loaded())\n"
        "try: rune.debug_key_reuse\n"
        "except AttributeError as error: str(error)\n"
        "print(loaded())\n"
    )

    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert process.stdout.split() == ["False", "True"]
