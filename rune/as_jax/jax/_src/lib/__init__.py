"""`jax._src.lib`: jaxlib's modules (dynamiqs)."""

from jaxlib import xla_client
from jaxlib.version import __version__ as version_str

from rune import absent

__getattr__ = absent.of(__name__)
