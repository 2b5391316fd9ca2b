"""An editor offers at least as many public names for rune as for JAX."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rune.absent import of_jax
from tests.user_types import completions

ROOT = Path(__file__).parent.parent.parent
JAX: Mapping[str, Sequence[str]] = json.loads(completions.STORED.read_text())


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[str]]:
    """The names of these sources, as an environment without settings of ours has them."""
    pytest.importorskip("pyright")
    packages = tmp_path_factory.mktemp("packages")
    (packages / "rune").symlink_to(ROOT / "rune")
    return completions.offered("rune", [packages, Path(sysconfig.get_path("purelib"))])


def counted(place: str) -> list[str]:
    """JAX's names but those of primitives, lax.sin_p, and those that name XLA or its compiler."""
    of_xla = " ".join(of_jax.LAX.values()).split() if place == "lax" else []
    return [name for name in JAX[place] if not name.endswith("_p") and name not in of_xla]


@pytest.mark.parametrize("place", completions.PLACES)
def test_as_many_names_are_offered_as_for_jax(offered: Mapping[str, Sequence[str]], place: str):
    assert len(offered[place]) >= len(counted(place))


@pytest.mark.parametrize("place", completions.PLACES)
def test_nothing_is_offered_that_a_module_only_imports(offered: Mapping[str, Sequence[str]], place: str):
    imports = {"Any", "Callable", "Sequence", "annotations", "overload", "TypeVar", "ops"}

    assert not imports & set(offered[place])
