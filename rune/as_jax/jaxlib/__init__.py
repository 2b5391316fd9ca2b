"""`jaxlib`: some libraries read its version."""

from jaxlib import version

__version__ = version.__version__
