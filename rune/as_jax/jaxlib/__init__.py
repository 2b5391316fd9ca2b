"""`jaxlib`, which some libraries ask for its version."""

from jaxlib import version

__version__ = version.__version__
