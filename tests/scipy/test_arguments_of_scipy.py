"""Arguments that SciPy's functions take by name and rune's of the same name do not, with reasons.

The chapter of docs/guide/missing.md is made from the table (pytest --accept). Signatures come from
the installed SciPy; its universal functions are left out (the page says why).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.support.absent import Table, chapter, expect_chapter, listed

INTRODUCTION = """\
Arguments that SciPy's functions take by name and those of `rune.scipy` do not. `*` stands for any
name. An argument that is not taken is an error; none is silently ignored. Give later ones by name.

SciPy's universal functions (most of `scipy.special`) also have NumPy's `out`, `where`, `casting`,
`order`, `dtype`, `subok` and `signature`; here they take only their operands, as all elementwise
functions do ([from NumPy](from-numpy.md)). For JAX see [its chapter](#jax)."""

MODULES = """special linalg signal fft ndimage optimize integrate interpolate stats cluster.vq
spatial.distance spatial.transform"""

MISSING: Table = {
    "Arrays are values: nothing is written in place, and results are returned.": """
        *(overwrite_a) *(overwrite_b) *(overwrite_x) *(overwrite_data) *(output) *(out)
        interpolate.interp1d(copy) spatial.transform.Rotation(copy)
        """,
    "How work is divided, and on which device, is not stated in each call.": "*(workers) fft.*(plan) signal.*(device)",
    "There is only one kind of array to create.": "*(xp)",
    "They choose or tune LAPACK's routines.": """
        *(driver) *(lapack_driver) *(lwork) linalg.inv(assume_a) linalg.inv(lower)
        """,
    "Compiled programs print nothing, and do not check values to complain about them.": """
        *(disp) *(check_finite) integrate.odeint(ixpr) integrate.odeint(printmessg)
        integrate.odeint(mxhnil) optimize.least_squares(verbose) signal.*(measure)
        interpolate.interp1d(bounds_error) spatial.distance.squareform(checks)
        spatial.distance.squareform(force)
        """,
    "Derivatives are exact, from `rune.grad` and the like: nobody has to supply them.": """
        optimize.*(jac) optimize.*(hess) optimize.*(hessp) optimize.*(diff_step)
        optimize.*(jac_sparsity) integrate.odeint(Dfun) integrate.odeint(col_deriv)
        integrate.odeint(ml) integrate.odeint(mu)
        """,
    "Bounds and constraints are not supported (nor are they in jax.scipy.optimize).": """
        optimize.*(bounds) optimize.*(constraints)
        """,
    "There is one method, and its steps are not reported one by one.": """
        optimize.root(method) optimize.root(options) optimize.least_squares(method)
        optimize.least_squares(x_scale) optimize.least_squares(loss) optimize.least_squares(f_scale)
        optimize.least_squares(tr_*) optimize.least_squares(kwargs) optimize.*(callback)
        optimize.newton(x1) optimize.newton(rtol) optimize.golden(full_output) special.lambertw(tol)
        signal.filtfilt(method) signal.filtfilt(irlen) interpolate.Akima1DInterpolator(method)
        interpolate.RegularGridInterpolator(solver*)
        """,
    "The tolerances choose the steps of `odeint` (Dormand and Prince), as in JAX; the arguments "
    "of its function are positional.": """
        integrate.odeint(args) integrate.odeint(tfirst) integrate.odeint(full_output)
        integrate.odeint(h0) integrate.odeint(hmin) integrate.odeint(tcrit) integrate.odeint(mxord*)
        """,
    "The number of points is fixed, so that it can be compiled and differentiated.": """
        integrate.quad(epsabs) integrate.quad(epsrel) integrate.quad(points) integrate.quad(weight)
        integrate.quad(wvar) integrate.quad(wopts) integrate.quad(maxp1) integrate.quad(limlst)
        integrate.quad(full_output) integrate.quad(complex_func)
        """,
    "Not written: the number of steps would depend on values.": """
        integrate.solve_ivp(events) integrate.solve_ivp(vectorized)
        """,
    "Fields of a result, which only the library creates.": "optimize.RootResults(*) integrate.OdeSolution(*)",
    "`order` is 0 or 1, which needs no prefilter.": "ndimage.*(prefilter)",
    "Not written: the shape of the neighbourhood, or a choice of axes (`vmap` over the others).": """
        ndimage.*(footprint) ndimage.*(axes)
        """,
    "Not written; the rest of the function is here.": """
        linalg.*(subset_by_value) linalg.schur(sort) special.factorial(extend)
        interpolate.make_interp_spline(bc_type) interpolate.Barycentric*(*)
        interpolate.barycentric_interpolate(*) stats.pearsonr(axis) stats.pearsonr(method)
        stats.pearsonr(alternative) stats.spearmanr(axis) stats.spearmanr(nan_policy)
        stats.spearmanr(alternative) spatial.transform.Rotation(normalize)
        spatial.transform.Rotation(scalar_first)
        """,
    "Other names for positional arguments: NumPy's (`a`), JAX's (`A`, `B`, `C`).": """
        fft.*(x) linalg.solve_sylvester(*)
        """,
}


def _argument_names(function: Any) -> set[str] | None:
    """The arguments that a function takes by name; None if it has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _not_taken(module: str) -> Iterator[str]:
    ours, scipys = (import_module(f"{m}.{module}") for m in ("rune.scipy", "scipy"))
    for name in sorted(set(dir(ours)) & set(dir(scipys))):
        function, function_of_scipy = getattr(ours, name), getattr(scipys, name)
        if name.startswith("_") or isinstance(function_of_scipy, np.ufunc) or not callable(function_of_scipy):
            continue
        arguments, arguments_of_scipy = _argument_names(function), _argument_names(function_of_scipy)
        if arguments is not None and arguments_of_scipy is not None:
            yield from (f"{module}.{name}({argument})" for argument in sorted(arguments_of_scipy - arguments))


@pytest.mark.parametrize("module", MODULES.split())
def test_an_argument_of_scipy_is_accepted_or_listed_with_the_reason(module: str):
    patterns = listed(MISSING)

    assert [a for a in _not_taken(module) if not any(fnmatchcase(a, p) for p in patterns)] == []


def test_no_accepted_argument_is_listed():
    absent = [a for module in MODULES.split() for a in _not_taken(module)]

    assert [p for p in sorted(listed(MISSING)) if not any(fnmatchcase(a, p) for a in absent)] == []


def test_the_page_shows_the_table(pytestconfig: pytest.Config):
    text = chapter("Arguments of SciPy", INTRODUCTION, {"Parameters of SciPy": MISSING})

    expect_chapter(pytestconfig, text)
