"""Cached calls of jitted functions, made by native code (docs/decisions/0039)."""
