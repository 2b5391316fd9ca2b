"""`jaxlib`, of which some libraries read the version."""

from jaxlib import version

__version__ = version.__version__
