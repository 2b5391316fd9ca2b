"""Kernel code as source: a renderer for each language, and what languages and devices have."""
