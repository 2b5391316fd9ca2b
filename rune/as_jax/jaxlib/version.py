"""`jaxlib.version`."""

__version__ = "0.10.2"
