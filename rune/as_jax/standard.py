"""What `jax.numpy` says of itself to libraries written against the array API standard.

Its arrays are values, and a shape cannot depend on values under a transformation; so, as JAX does,
it says that it has neither masks as indices nor such shapes, and libraries choose other ways.
"""

from __future__ import annotations

from rune.numpy.array_api_info import ArrayNamespaceInfo

__array_api_version__ = "2024.12"


class JaxNamespaceInfo:
    """The inspection functions, with JAX's answers; the dtypes of a device are rune's."""

    default_dtypes = ArrayNamespaceInfo().default_dtypes
    dtypes = ArrayNamespaceInfo().dtypes
    devices = ArrayNamespaceInfo().devices

    def capabilities(self) -> dict[str, bool | int]:
        """Capabilities that hold in transformations, too."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: arrays are not committed to a device."""


def __array_namespace_info__() -> JaxNamespaceInfo:
    """The inspection functions of the standard."""
    return JaxNamespaceInfo()
