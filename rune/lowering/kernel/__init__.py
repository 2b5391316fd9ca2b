"""Kernel code, the loop language: nodes, text, parser, check, interpreter and rewrites."""
